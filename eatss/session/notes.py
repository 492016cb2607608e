"""What keeps loops of generated code slow, where that costs, and what would free them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop, SlowLoop
from eatss.analysis.work import instances_of
from eatss.base.frozen import frozen
from eatss.lower.pieces import NameTable, Piece, pieces_of
from eatss.lower.units import serial_runs, sums_of
from eatss.polyhedral.isl_names import equal_leading_dims
from eatss.polyhedral.scheduling import coincidence_dependences
from eatss.polyhedral.scop import Access, Scop, Statement

_STEPS = 100_000
"""Instances that a thread runs one after another, from which on that is told: some ms."""

_STEPS_OF_LAUNCH = 1000
"""The same in one launch: fewer take no longer than the launch."""

_STEP = 5_000
"""Instances that a card full of work runs while one waits for the one before it."""

_SHARE = 0.1
"""What of the instances of a program that has to be."""

_FEW = 128
"""Threads: a card runs some 10^5."""


@frozen
class _Chain:
    """Statements that run one after another, in few threads; ``depth`` loops are around that.

    ``steps`` is how many each of them runs.
    """

    statements: tuple[str, ...]
    threads: int
    depth: int
    steps: float


def slow_loops(program: AnalysedProgram) -> tuple[tuple[SlowLoop, ...], ...]:
    """Return for each region the loops that few threads run, where that costs."""
    everything = sum(
        _instances(region.scop, [one.name for one in region.scop.statements])
        for region in program.scops
    )
    return tuple(tuple(_of_region(region, everything)) for region in program.scops)


def _of_region(region: AnalysedScop, everything: int) -> Iterator[SlowLoop]:
    for chain in _chains(region):
        if chain.steps >= _STEPS and chain.steps * _STEP >= _SHARE * everything:
            yield from _of_chain(region, chain)


def _instances(scop: Scop, names: Sequence[str]) -> int:
    return instances_of(scop, names) or 0


def _chains(region: AnalysedScop) -> Iterator[_Chain]:
    """Yield what few threads run, if it is long for a launch."""
    scop = region.scop
    pieces: tuple[Piece, ...] = ()
    for fact in region.facts:
        launches = fact.work.launches or 1
        sums = {one.statement: len(one.loops) for one in fact.reductions}
        runs = [tuple(name for name in fact.statements if sums.get(name) != 1)]
        if not fact.parallel_loops:
            if _instances(scop, fact.statements) < max(_STEPS, _STEPS_OF_LAUNCH * launches):
                continue
            pieces = pieces or pieces_of(region.scheduled, NameTable())
            piece = next(one for one in pieces if one.kernel.statements == fact.statements)
            found = serial_runs(piece, sums_of(piece, scop))
            runs = [tuple(s.name for s in own.statements) for own, loop in found if loop is None]
        trips = dict(fact.work.trips)
        threads = prod(trips.get(loop.name, 1) for loop in fact.parallel_loops)
        for names in runs:
            steps = _instances(scop, names) / max(1, threads)
            if threads <= _FEW and steps >= _STEPS_OF_LAUNCH * launches:
                depth = len(fact.host_loops) + len(fact.parallel_loops)
                yield _Chain(statements=names, threads=threads, depth=depth, steps=steps)


def _of_chain(region: AnalysedScop, chain: _Chain) -> Iterator[SlowLoop]:
    """Yield the outermost loop of statements that a dependence binds."""
    statements = [one for one in region.scop.statements if one.name in chain.statements]
    for depth in range(chain.depth, max(len(one.loops) for one in statements)):
        for needs in (True, False):
            for loop, written, read in _bonds(region, statements, depth, needs=needs):
                array = region.scop.array(written.array)
                yield SlowLoop(
                    statements=tuple(one.name for one in statements),
                    loop=loop,
                    threads=chain.threads,
                    array=array.source_name or array.name,
                    needs=needs,
                    spans=tuple(sorted({written.span, read.span})),
                )
                return


def _bonds(
    region: AnalysedScop, statements: Sequence[Statement], depth: int, *, needs: bool
) -> Iterator[tuple[str, Access, Access]]:
    """Yield the loops at a depth whose iterations two accesses join.

    Args:
        region: what the statements are of.
        statements: those that run one after another.
        depth: loops around the loop.
        needs: whether a value is passed on, not only memory used again.
    """
    dependences = region.scheduled.dependences
    among = dependences.flow if needs else coincidence_dependences(region.scop, dependences)
    deep = [one for one in statements if len(one.loops) > depth]
    for first, then in product(deep, deep):
        for written, read in product(first.accesses, then.accesses):
            if written.array == read.array and (written.is_write or read.is_write):
                pairs = written.relation.apply_range(read.relation.reverse()).to_union_map()
                same = equal_leading_dims(among.intersect(pairs), depth)
                if not same.is_subset(equal_leading_dims(same, depth + 1)):
                    yield then.loops[depth], written, read

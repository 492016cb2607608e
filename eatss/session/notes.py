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
from eatss.polyhedral.expression import Array, Select
from eatss.polyhedral.isl_names import (
    equal_leading_dims,
    least_difference,
    maps_of,
)
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

    ``steps`` is how many each of them runs, ``sums`` are statements that add up over several loops.
    """

    statements: tuple[str, ...]
    threads: int
    depth: int
    steps: float
    sums: frozenset[str] = frozenset()


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
                several = frozenset(name for name, loops in sums.items() if loops > 1)
                yield _Chain(
                    statements=names, threads=threads, depth=depth, steps=steps, sums=several
                )


@frozen
class _Bond:
    """What joins iterations of the loop at a depth: from ``first`` of a statement to ``then``.

    ``step`` is how far they are apart (negative for a loop that counts down), ``None`` where that
    differs. ``needs`` says that a value is passed on, not only memory used again.
    """

    first: tuple[Statement, Access]
    then: tuple[Statement, Access]
    step: int | None
    needs: bool


def _of_chain(region: AnalysedScop, chain: _Chain) -> Iterator[SlowLoop]:
    """Yield the outermost loop of statements that a dependence binds."""
    statements = [one for one in region.scop.statements if one.name in chain.statements]
    for depth in range(chain.depth, max(len(one.loops) for one in statements)):
        bond = _bond(region, statements, depth, needs=True)
        bond = bond or _bond(region, statements, depth, needs=False)
        if bond is not None:
            threads = "one thread" if chain.threads == 1 else f"{chain.threads} threads"
            yield _slow(region, statements, f"runs in {threads}", depth, bond, chain.sums)
            return


def _slow(
    region: AnalysedScop,
    statements: Sequence[Statement],
    effect: str,
    depth: int,
    bond: _Bond,
    sums: frozenset[str],
) -> SlowLoop:
    (_, written), (then, read) = bond.first, bond.then
    array, loop = region.scop.array(written.array), then.loops[depth]
    return SlowLoop(
        kernel=", ".join(one.name for one in statements),
        loop=loop,
        effect=effect,
        array=array.source_name or array.name,
        dependence=_dependence(array, loop, bond),
        spans=tuple(sorted({written.span, read.span})),
        rewrite=_rewrite(array, loop, bond, depth, adds_up=then.name in sums),
        statements=tuple(one.name for one in statements),
    )


def _bond(
    region: AnalysedScop, statements: Sequence[Statement], depth: int, *, needs: bool
) -> _Bond | None:
    """Return a dependence between iterations of the loops at a depth, ``None`` if there is none."""
    dependences = region.scheduled.dependences
    among = dependences.flow if needs else coincidence_dependences(region.scop, dependences)
    deep = [one for one in statements if len(one.loops) > depth]
    for first, then in product(deep, deep):
        for written, read in product(first.accesses, then.accesses):
            if written.array != read.array or not (written.is_write or read.is_write):
                continue
            pairs = written.relation.apply_range(read.relation.reverse()).to_union_map()
            pairs = among.intersect(pairs)
            carried = equal_leading_dims(pairs, depth).subtract(
                equal_leading_dims(pairs, depth + 1)
            )
            for relation in maps_of(carried):
                least = least_difference(relation, depth, depth)
                most = least_difference(relation.reverse(), depth, depth)
                step = least if least is not None and most is not None and least == -most else None
                return _Bond(first=(first, written), then=(then, read), step=step, needs=needs)
    return None


def _dependence(array: Array, loop: str, bond: _Bond) -> str:
    if not bond.needs:
        again = "sets it anew" if not array.n_dims else "uses elements that others overwrite"
        return f"each iteration of {loop} {again}"
    if bond.step is None:
        return f"iterations of {loop} need what earlier ones left"
    before = f"{loop} - {bond.step}" if bond.step > 0 else f"{loop} + {-bond.step}"
    return f"iteration {loop} needs what {before} left"


def _rewrite(array: Array, loop: str, bond: _Bond, depth: int, *, adds_up: bool) -> str:
    """Return what to write instead."""
    (first, written), (then, read) = bond.first, bond.then
    name = array.source_name or array.name
    if not bond.needs:
        if array.n_dims:
            return f"give '{name}' an element for each {loop}, too"
        return f"declare '{name}' inside the loop {loop}"
    inner = then.loops[depth + 1 :]
    if adds_up:
        return (
            f"add up along {then.loops[-1]} in an array that has an element for each of the other "
            "iterations, and its elements then"
        )
    if first is then and isinstance(then.value, Select) and written.text == read.text:
        return "write a maximum as x > m ? x : m or fmax(m, x): threads take shares of those"
    if inner and first is not then and then.reads_from(then.write.array):
        return f"let {inner[-1]} run the other way: from what is computed first to what is last"
    return (
        "each step waits for the one before: let a loop stand around it whose iterations do not "
        "(rows, a batch), or write it as a scan"
    )

"""What keeps loops of generated code slow, where that costs, and what would free them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import prod

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop, SlowLoop
from eatss.analysis.work import instances_of
from eatss.base.diagnostics import Diagnostic, Severity, SourceSpan
from eatss.base.frozen import Names, their_names
from eatss.lower.pieces import Piece, own_pieces
from eatss.lower.scans import scan_of
from eatss.lower.units import serial_runs, sums_of
from eatss.polyhedral.isl_names import equal_leading_dims
from eatss.polyhedral.scheduling import coincidence_dependences
from eatss.polyhedral.scop import Scop

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


def slow_loops(program: AnalysedProgram) -> tuple[tuple[SlowLoop, ...], ...]:
    """Return for each region the loops that few threads run, where that costs."""
    everything = sum(
        _instances(region.scop, [one.name for one in region.scop.statements])
        for region in program.scops
    )
    return tuple(tuple(_of_region(region, everything)) for region in program.scops)


def _instances(scop: Scop, names: Sequence[str]) -> int:
    return instances_of(scop, names) or 0


def _of_region(region: AnalysedScop, everything: int) -> Iterator[SlowLoop]:
    """Yield what few threads run one after another, with the outermost loop that binds it."""
    scop = region.scop

    @cache
    def piece_of(statements: Names) -> Piece:
        pieces = own_pieces(region.scheduled)[0]
        return next(one for one in pieces if one.kernel.statements == statements)

    for fact in region.facts:
        launches = fact.work.launches or 1
        sums = {one.statement for one in fact.reductions}
        runs = [tuple(name for name in fact.statements if name not in sums)]
        if not fact.parallel_loops:
            if _instances(scop, fact.statements) < max(_STEPS, _STEPS_OF_LAUNCH * launches):
                continue
            piece = piece_of(fact.statements)
            known = sums_of(piece)
            found = (
                (their_names(own.statements), own, to) for own, to in serial_runs(piece, known)
            )
            runs = [
                names
                for names, own, loops in found
                if not loops or (names[0] not in known and not _is_running_sum(own, names, region))
            ]
        trips = dict(fact.work.trips)
        threads = prod(trips.get(loop.name, 1) for loop in fact.parallel_loops)
        for names in runs:
            steps = _instances(scop, names) / max(1, threads)
            long = steps >= max(_STEPS, _STEPS_OF_LAUNCH * launches)
            if threads <= _FEW and long and steps * _STEP >= _SHARE * everything:
                if fact.parallel_loops and _is_running_sum(
                    piece_of(fact.statements), names, region
                ):
                    continue
                depth = len(fact.host_loops) + len(fact.parallel_loops)
                yield from _bound(region, names, depth, threads)


def _is_running_sum(piece: Piece, names: Names, region: AnalysedScop) -> bool:
    """Tell whether warps may have rows of what statements are, or tiles of rows."""
    scop, dependences = region.scop, region.scheduled.dependences
    ways = ((one, [own for own in piece.bound if own != one]) for one in piece.bound)
    return any(scan_of(piece, names, loop, rows, scop, dependences) for loop, rows in ways)


def _bound(
    region: AnalysedScop, names: Sequence[str], depth: int, threads: int
) -> Iterator[SlowLoop]:
    """Yield the outermost loop behind ``depth`` whose iterations two accesses join."""
    scop, dependences = region.scop, region.scheduled.dependences
    statements = [one for one in scop.statements if one.name in names]
    kinds = (dependences.flow, coincidence_dependences(scop, dependences))
    for at in range(depth, max(len(one.loops) for one in statements)):
        deep = [one for one in statements if len(one.loops) > at]
        for among, first, then in product(kinds, deep, deep):
            for written, read in product(first.accesses, then.accesses):
                if written.array == read.array and (written.is_write or read.is_write):
                    pairs = written.relation.apply_range(read.relation.reverse()).to_union_map()
                    same = equal_leading_dims(among.intersect(pairs), at)
                    if not same.is_subset(equal_leading_dims(same, at + 1)):
                        array = scop.array(written.array)
                        name, spans = array.source_name or array.name, {written.span, read.span}
                        yield _slow(names, then.loops[at], threads, name, sorted(spans))
                        return


def _slow(
    names: Sequence[str], loop: str, threads: int, array: str, spans: Sequence[SourceSpan]
) -> SlowLoop:
    lines = " and ".join(str(line) for line in sorted({span.line for span in spans}))
    word, running = "lines" if " " in lines else "line", f"{threads} threads"
    running = "one thread" if threads == 1 else running
    return SlowLoop(
        statements=tuple(names),
        note=Diagnostic(
            code="EATSS-A010",
            severity=Severity.NOTE,
            message=f"the loop {loop} of {', '.join(names)} runs in {running} because of "
            f"'{array}' ({word} {lines}): its iterations depend on one another",
            span=spans[0],
            hint=f"where only its memory is used again, give '{array}' an element for each {loop}; "
            "else run inner loops from what is computed first to what is last, let a loop of "
            "independent iterations stand around it (rows, a batch), or write it as a scan; a "
            "maximum is x > m ? x : m",
        ),
    )

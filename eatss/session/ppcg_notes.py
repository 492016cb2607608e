"""What keeps PPCG's code from being faster, where the source could be written otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import islpy as isl

from eatss.analysis import VolumeKind
from eatss.analysis.analyse import AnalysedProgram, AnalysedScop, SlowLoop, analyse
from eatss.analysis.facts import KernelFacts
from eatss.analysis.work import instances_of
from eatss.base.diagnostics import Diagnostic, EatssError
from eatss.base.forked import anew
from eatss.base.shown import time_text
from eatss.cards import GpuProfile
from eatss.choose import KernelSelection, Selection, select_program
from eatss.cost.expected import host_time_s
from eatss.polyhedral.dependences import with_source_line
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.isl_names import affine_form, dim_names, maps_of, output_affs
from eatss.polyhedral.kernel import Kernel, ScheduledScop
from eatss.polyhedral.ppcg_scheduling import schedule_as_ppcg
from eatss.polyhedral.scop import Scop, Statement
from eatss.polyhedral.tiled_sums import SumInPlace, with_sums_in_place

_WORTH_IT = 1.25
"""How many times faster a region has to be expected for a rewrite to be told."""


def ppcg_notes(
    program: AnalysedProgram, selection: Selection, profile: GpuProfile
) -> tuple[Diagnostic, ...]:
    """Return notes on sums in scalars that keep PPCG from tiling the loops of the sums.

    Sizes are selected for the same region with the sums in arrays, and what is expected of both is
    compared: a rewrite that gains little is not told.

    Args:
        program: the kernels as PPCG makes them.
        selection: what was selected for them.
        profile: the card.
    """
    slow = [
        loop
        for region in program.scops
        for loop in _slow_loops(program, region, selection, profile)
    ]
    return tuple(with_source_line(loop.note()) for loop in slow)


def _slow_loops(
    program: AnalysedProgram, region: AnalysedScop, selection: Selection, profile: GpuProfile
) -> Iterator[SlowLoop]:
    """Yield the loops of a region that arrays instead of scalars would free."""
    before = _Cut(region.scheduled, region.facts)
    if not (before.scheduled.host_statements or any(fact.inner_loops for fact in before.facts)):
        return
    with suppress(EatssError, isl.Error):
        scop, sums = with_sums_in_place(region.scop)
        if not sums:
            return
        anew()
        scheduled, _ = schedule_as_ppcg(scop, max_operations=program.max_operations)
        facts = analyse(
            scheduled, volume=VolumeKind.FOOTPRINT, element_type=_other_type(program, scop)
        )
        after = _Cut(scheduled, facts)
        rewritten = select_program(facts, profile, selection.options, file=program.file)
        names = {fact.name for fact in region.facts}
        now = _time_s([kernel for kernel in selection.kernels if kernel.name in names], before)
        then = _time_s(rewritten.kernels, after)
        if now is not None and then is not None and now > _WORTH_IT * then:
            gain = f"{time_text(then)} expected instead of {time_text(now)}"
            told: set[tuple[str, str]] = set()
            for one in sums:
                others = {other.scalar: None for other in sums if other.scalar != one.scalar}
                also = f", with the same for {', '.join(others)}" if others else ""
                for loop in _freed(before, after, one, gain + also):
                    if (loop.kernel, loop.loop) not in told:  # others are named with the first
                        told.add((loop.kernel, loop.loop))
                        yield loop


@dataclass(frozen=True, slots=True)
class _Cut:
    """A region as PPCG cuts it."""

    scheduled: ScheduledScop
    facts: tuple[KernelFacts, ...]

    def place(self, name: str, outer: Sequence[str]) -> tuple[int, str, tuple[str, ...]]:
        """Return how a statement runs, where, and in which loops that it is slow in.

        The first is its place among ``_EFFECTS``. Loops that it moves along by none but its
        counters ``outer`` are left out.
        """
        statement = self.scheduled.scop.statement(name)
        for kernel, fact in zip(self.scheduled.kernels, self.facts, strict=True):
            if name in kernel.statements:
                if not fact.loops:
                    serial = (one for one in outer if one not in fact.host_loops)
                    return 1, fact.name, tuple(serial)
                inner = (one.name for one in fact.inner_loops)
                slow = (one for one in inner if _moves(kernel, statement, one, outer))
                return 0, fact.name, tuple(slow)
        return 2, f"'{self.scheduled.scop.function}'", tuple(outer)


_EFFECTS = ("is not tiled", "runs in one thread", "runs on the host")


def _freed(before: _Cut, after: _Cut, one: SumInPlace, gain: str) -> Iterator[SlowLoop]:
    """Yield a loop of each kernel that the rewrite of a scalar frees."""
    left = {statement.name for statement in after.scheduled.scop.statements}
    using = [before.scheduled.scop.statement(name) for name in one.statements]
    rewrite = f"add up in {one.reference} itself, without '{one.scalar}'"
    if one.reference is None:
        element = "".join(f"[{loop}]" for loop in one.loops)
        rewrite = (
            f"make '{one.scalar}' an array that has an element for each, {one.scalar}{element}"
        )
    told = set()
    for statement in sorted(using, key=lambda s: not _adds(s, one.scalar)):
        if statement.name not in left:
            continue
        how, kernel, loops = before.place(statement.name, one.loops)
        then, _, fewer = after.place(statement.name, one.loops)
        freed = then < how or (then == how == 0 and len(fewer) < len(loops))
        if freed and loops and kernel not in told:
            told.add(kernel)
            yield SlowLoop(
                kernel=kernel,
                loop=loops[0],
                effect=_EFFECTS[how],
                array=one.scalar,
                dependence=f"each iteration of {' and '.join(one.loops)} sets it anew",
                spans=tuple(statement.span for statement in using),
                rewrite=f"{rewrite}: {gain}",
            )


def _adds(statement: Statement, scalar: str) -> bool:
    return statement.write.array == scalar and statement.reads_from(scalar)


def _moves(kernel: Kernel, statement: Statement, loop: str, outer: Sequence[str]) -> bool:
    """Tell whether a statement moves along a loop of a kernel by a counter that is not outer."""
    for placed in maps_of(kernel.schedule.intersect_domain(statement.domain.to_union_set())):
        names = dim_names(placed.range())
        form = affine_form(output_affs(placed)[names.index(loop)])
        if form is not None and {name for name, _ in form.coefficients} - {*outer}:
            return True
    return False


def _time_s(kernels: Sequence[KernelSelection], cut: _Cut) -> float | None:
    """Return the time that is expected of a region, ``None`` where it is not known."""
    found = [kernel.predicted or kernel.default for kernel in kernels]
    of_host = instances_of(cut.scheduled.scop, cut.scheduled.host_statements)
    times = [*(None if one is None else one.time_s for one in found), host_time_s(of_host)]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _other_type(program: AnalysedProgram, scop: Scop) -> ElementType | None:
    """Return the type that overrides that of the arrays, if one does."""
    own = {array.element_type.value for array in scop.arrays}
    return None if program.dtype in own else ElementType(program.dtype)

"""What keeps PPCG's code from being faster, where the source could be written otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import islpy as isl

from eatss.analysis import VolumeKind
from eatss.analysis.analyse import analyse
from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.analysis.slow_loops import SlowLoop
from eatss.diagnostics import Diagnostic, EatssError
from eatss.forked import anew
from eatss.gpu import GpuProfile
from eatss.isl_names import affine_form, dim_names, maps_of, output_affs
from eatss.model import KernelSelection, Selection, select_program
from eatss.polyhedral.kernel import Kernel
from eatss.polyhedral.ppcg_scheduling import schedule_as_ppcg
from eatss.polyhedral.source_lines import with_source_line
from eatss.polyhedral.sums_in_place import SumInPlace, with_sums_in_place
from eatss.scops import ElementType, Scop, Statement
from eatss.shown import time_text

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
    return tuple(with_source_line(loop.note()) for loop in dict.fromkeys(slow))


def _slow_loops(
    program: AnalysedProgram, region: AnalysedScop, selection: Selection, profile: GpuProfile
) -> Iterator[SlowLoop]:
    """Yield the loops of a region that arrays instead of scalars would let PPCG tile."""
    if not any(fact.inner_loops for fact in region.facts):
        return
    with suppress(EatssError, isl.Error):
        scop, sums = with_sums_in_place(region.scop)
        if not sums:
            return
        anew()
        scheduled, _ = schedule_as_ppcg(scop, max_operations=program.max_operations)
        facts = analyse(
            scheduled,
            volume=VolumeKind.FOOTPRINT,
            element_type=_other_type(program, scop),
            first_index=region.facts[0].index,
        )
        rewritten = select_program(facts, profile, selection.options, file=program.file)
        names = {fact.name for fact in region.facts}
        now = _time_s([kernel for kernel in selection.kernels if kernel.name in names])
        then = _time_s(rewritten.kernels)
        if now is not None and then is not None and now > _WORTH_IT * then:
            gain = f"{time_text(then)} expected instead of {time_text(now)}"
            for one in sums:
                others = {f"'{other.scalar}'": None for other in sums if other.scalar != one.scalar}
                also = f", with the same for {' and '.join(others)}" if others else ""
                yield from _of_sum(region, one, gain + also)


def _of_sum(region: AnalysedScop, one: SumInPlace, gain: str) -> Iterator[SlowLoop]:
    """Yield the loops of kernels inside a tile that a scalar adds up along."""
    using = [s for s in region.scop.statements if any(a.array == one.scalar for a in s.accesses)]
    adding = [
        s
        for s in using
        if s.write.array == one.scalar and any(read.array == one.scalar for read in s.reads)
    ]
    rewrite = f"add up in {one.reference} itself, without '{one.scalar}'"
    if one.reference is None:
        element = "".join(f"[{loop}]" for loop in one.loops)
        rewrite = (
            f"make '{one.scalar}' an array that has an element for each, {one.scalar}{element}"
        )
    for kernel, fact in zip(region.scheduled.kernels, region.facts, strict=True):
        for loop in fact.inner_loops:
            if any(_moves(kernel, s, loop.name, one.loops) for s in adding):
                yield SlowLoop(
                    kernel=fact.name,
                    loop=loop.name,
                    effect="is not tiled",
                    array=one.scalar,
                    dependence=f"each iteration of {' and '.join(one.loops)} sets it anew",
                    spans=tuple(statement.span for statement in using),
                    rewrite=f"{rewrite}: {gain}",
                )


def _moves(kernel: Kernel, statement: Statement, loop: str, outer: Sequence[str]) -> bool:
    """Tell whether a statement moves along a loop of a kernel by a counter that is not outer."""
    for placed in maps_of(kernel.schedule.intersect_domain(statement.domain.to_union_set())):
        names = dim_names(placed.range())
        form = affine_form(output_affs(placed)[names.index(loop)])
        if form is not None and {name for name, _ in form.coefficients} - {*outer}:
            return True
    return False


def _time_s(kernels: Sequence[KernelSelection]) -> float | None:
    """Return the time that is expected of kernels, ``None`` where one is not predicted."""
    found = [kernel.predicted or kernel.default for kernel in kernels]
    return None if None in found else sum(one.time_s for one in found if one is not None)


def _other_type(program: AnalysedProgram, scop: Scop) -> ElementType | None:
    """Return the type that overrides that of the arrays, if one does."""
    own = {array.element_type.value for array in scop.arrays}
    return None if program.dtype in own else ElementType(program.dtype)

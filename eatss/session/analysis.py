"""Regions in; their kernels and facts out, for the sizes of the source and for any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain
from math import prod

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop, analyse
from eatss.analysis.layout import reordering_loops
from eatss.analysis.work import ASSUMED_SIZE
from eatss.base.diagnostics import (
    Diagnostic,
    Diagnostics,
    InputError,
    Severity,
    input_error,
)
from eatss.base.forked import REGION_S, allow
from eatss.base.frozen import frozen, their_names
from eatss.base.targets import Cut
from eatss.frontend.options import FrontendResult
from eatss.frontend.symbolic import SymbolicResult
from eatss.polyhedral.any_size import SymbolicRegion, region_for_any_size, same_kernels
from eatss.polyhedral.collapsed_loops import has_collapsed_loops, with_collapsed_loops
from eatss.polyhedral.copied_operands import (
    copied_places,
    frees_loops,
    operands_to_copy,
    with_copied_operands,
)
from eatss.polyhedral.dependences import REFUSALS, at_most, source_lines, with_source_line
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.isl_names import IN, maps_of
from eatss.polyhedral.kernel import Kernel, Loop, ScheduledScop
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.scalars import (
    calls,
    expanded_arrays,
    with_private_scalars,
    without_scalars,
)
from eatss.polyhedral.schedule import launching_all, schedule_scop
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.tiled_sums import with_tiled_sums
from eatss.program.expression import SizePairs

_COPYING = 500_000
"""isl operations to find out which operands to copy; trmm needs 18 000, fdtd-apml 26 000."""

_THREADS = 1 << 16
"""Threads of a kernel that leave no card idle."""


@frozen
class AnalysisOptions:
    """How regions become kernel facts.

    ``dtype`` (``float`` or ``double``) overrides the width of every floating-point array.
    ``ppcg_schedule`` is the text of a schedule that PPCG saved. ``temporaries`` says whether sums
    in scalars may get elements of their own, and operands copies, ``tiles_sums`` whether all loops
    of sums may be tiled, where code of eatss is wanted.
    """

    cut: Cut
    dtype: str | None
    ppcg_schedule: str | None
    temporaries: bool = True
    tiles_sums: bool = True


@frozen
class SymbolicProgram:
    """A C file, analysed for its own sizes and scheduled for any.

    ``program`` is what sizes are selected for. ``values`` are the macros (name, value) that may
    be parameters of ``regions``. ``warnings`` are those of ``program`` and why code is
    not generic where it is not.
    """

    file: str
    regions: tuple[SymbolicRegion, ...]
    program: AnalysedProgram
    values: SizePairs
    warnings: Diagnostics


def analyse_regions(
    file: str,
    parsed: FrontendResult,
    options: AnalysisOptions,
    scheduled: Mapping[int, ScheduledScop],
) -> AnalysedProgram:
    """Take the regions of a file to kernel facts.

    Args:
        file: what the file is called.
        parsed: the regions.
        options: whose kernels, and how they are analysed.
        scheduled: regions that are scheduled already, by number.

    Raises:
        InputError: a region is too hard, or the schedule of PPCG does not fit.
    """
    if options.ppcg_schedule is not None and len(parsed.scops) != 1:
        raise input_error(
            "EATSS-P025",
            f"the file has {len(parsed.scops)} regions, and PPCG saves the schedule of one",
            hint="put each region into a file of its own",
        )
    allow(REGION_S * len(parsed.scops))
    scops = []
    first_index = 0
    for scop in parsed.scops:
        analysed = _analysed(scop, options, first_index, scheduled.get(scop.index))
        first_index += len(analysed.facts)
        scops.append(analysed)
    return AnalysedProgram(
        file=file,
        dtype=options.dtype or _widest_type(parsed.scops),
        scops=tuple(scops),
        warnings=parsed.warnings + tuple(w for scop in scops for w in scop.warnings),
    )


def analyse_at_values(
    parsed: FrontendResult, options: AnalysisOptions, unvalued: AnalysedProgram
) -> AnalysedProgram:
    """Take regions whose parameters have values to the facts of the kernels that PPCG makes.

    PPCG knows no values, so its kernels are those of the source without them.

    Args:
        parsed: the regions with the values.
        options: how they are analysed.
        unvalued: the same file without values.

    Raises:
        InputError: as for :func:`analyse_regions`; ``EATSS-P020``, some of its kernels are empty.
    """
    from eatss.polyhedral.ppcg_scheduling import at_values  # noqa: PLC0415

    pairs = list(zip(parsed.scops, unvalued.scops, strict=True))
    scheduled = {scop.index: at_values(scop, one.scheduled) for scop, one in pairs}
    program = analyse_regions(unvalued.file, parsed, options, scheduled)
    scops = tuple(
        replace(analysed, warnings=one.warnings)
        for analysed, (_, one) in zip(program.scops, pairs, strict=True)
    )
    return replace(program, scops=scops, warnings=program.warnings + unvalued.doubts)


def for_any_size(parsed: SymbolicResult, program: AnalysedProgram) -> SymbolicProgram | None:
    """Schedule an analysed file for any size; ``None`` where temporaries or tiled sums forbid it.

    Args:
        parsed: the regions over their macro sizes, and over the numbers.
        program: what :func:`analyse_regions` made of the latter.
    """
    raws = parsed.numeric.scops
    regions = tuple(
        region_for_any_size(_like(symbolic, raw, analysed.scop), analysed.scheduled)
        for symbolic, raw, analysed in zip(parsed.scops, raws, program.scops, strict=True)
    )
    fixed = tuple(_not_generic(region) for region in regions if not region.generic)
    pairs = zip(program.scops, raws, strict=True)
    tiled = any(reordering_loops(facts) for analysed in program.scops for facts in analysed.facts)
    if fixed and (tiled or any(analysed.scop is not raw for analysed, raw in pairs)):
        return None
    scops = zip(program.scops, regions, strict=True)
    return SymbolicProgram(
        file=program.file,
        regions=regions,
        program=replace(program, scops=tuple(_with_open_loops(*pair) for pair in scops)),
        values=parsed.values,
        warnings=parsed.warnings + fixed,
    )


def with_fusion(
    program: SymbolicProgram,
    parsed: FrontendResult,
    options: AnalysisOptions,
    fuse: Callable[[ScheduledScop], ScheduledScop],
) -> SymbolicProgram | None:
    """Return a file whose nests share bands, ``None`` where others would for any size.

    Args:
        program: the file, analysed with each nest as a kernel of its own.
        parsed: its regions.
        options: how they are analysed.
        fuse: makes nests of a region one.

    Raises:
        InputError: a region is too hard.
    """
    before = [analysed.scheduled for analysed in program.program.scops]
    fused = {one.scop.index: fuse(one) for one in before}
    if all(fused[one.scop.index] is one for one in before):
        return program
    found = analyse_regions(program.file, parsed, options, fused)
    regions = []
    for region, old, analysed in zip(program.regions, before, found.scops, strict=True):
        scheduled, own = region.scheduled, analysed.scheduled
        if region.scheduled is old:
            scheduled = own
        elif fused[old.scop.index] is not old:
            scheduled = launching_all(fuse(scheduled))
            if not same_kernels(scheduled, own):
                return None
        regions.append(replace(region, scheduled=scheduled))
    scops = tuple(map(_with_open_loops, found.scops, regions))
    return replace(program, regions=tuple(regions), program=replace(found, scops=scops))


def _analysed(
    scop: Scop, options: AnalysisOptions, first_index: int, scheduled: ScheduledScop | None
) -> AnalysedScop:
    """Schedule a region, if it is not scheduled yet, and analyse its kernels."""
    warnings: Diagnostics = ()
    with source_lines(f"on region {scop.index} of '{scop.function}'", scop.span):
        if scheduled is None:
            scheduled, warnings = _scheduled(scop, options)
        if scheduled.source_order:
            warnings += (_source_order(scop),)
        if options.cut == "eatss":
            scheduled = launching_all(scheduled)
        facts = analyse(
            scheduled,
            element_type=None if options.dtype is None else ElementType(options.dtype),
            first_index=first_index,
        )
    return AnalysedScop(
        scop=scheduled.scop,
        scheduled=scheduled,
        facts=facts,
        warnings=tuple(map(with_source_line, warnings)),
    )


def _scheduled(scop: Scop, options: AnalysisOptions) -> tuple[ScheduledScop, Diagnostics]:
    """Schedule a region as the options say."""
    if options.ppcg_schedule is not None:
        from eatss.polyhedral.ppcg_scheduling import load_ppcg_schedule  # noqa: PLC0415

        return load_ppcg_schedule(scop, options.ppcg_schedule), ()
    if options.cut == "ppcg":
        from eatss.polyhedral.ppcg_scheduling import schedule_as_ppcg  # noqa: PLC0415

        return schedule_as_ppcg(scop)
    if scop.class_size:
        return schedule_scop(scop), ()
    scheduled = _with_temporaries(scop, options)
    if options.tiles_sums:
        with suppress(isl.Error):  # where it is too much for isl, loops of sums stay as they are
            return with_tiled_sums(scheduled), ()
    return scheduled, ()


def _with_temporaries(scop: Scop, options: AnalysisOptions) -> ScheduledScop:
    """Schedule a region for code of eatss, with temporaries where kernels gain by them."""
    if not options.temporaries:
        return schedule_scop(scop)
    before = cache(lambda: schedule_scop(scop))
    expanded = _with_private_scalars(scop, before)
    own = scop if expanded is None else expanded.scop
    scheduled = _with_collapsed_loops(own, positive=expanded is not None)
    scheduled = scheduled or expanded or before()
    copied = _with_copied_operands(scheduled, positive=expanded is not None)
    return copied or scheduled


def _with_private_scalars(scop: Scop, before: Callable[[], ScheduledScop]) -> ScheduledScop | None:
    """Schedule a region with scalars expanded, ``None`` where they stay as ``before``.

    Functions are called again for each reader of a value where a sum has but one parallel loop, and
    all scalars are forwarded where loops on the host run in one thread. What is one kernel with
    enough threads that walk memory side by side stays one.
    """
    found: ScheduledScop | None = None
    for private in with_private_scalars(scop):
        with suppress(*REFUSALS):
            tried = schedule_scop(private, positive=True, patient=False)
            looping = (one.write.array for one in tried.scop.statements if one.loops)
            scalars = {name for name in looping if not tried.scop.array(name).n_dims}
            if any(users > 1 for users in _users(tried, scalars)):
                continue  # kernels that read what loops of others set wait for their last
            names = expanded_arrays(scop, tried.scop)
            sums = [
                kernel
                for kernel in tried.kernels
                if any(one.array in names for one in kernel.reductions)
            ]
            if not names:
                if not scalars and _sums_anew(before, tried):
                    found = tried
            elif all(users == 1 for users in _users(tried, names)) or (
                not _fill_card(before()) and (sums or frees_loops(before(), tried, one_thread=True))
            ):
                found = tried
            if names and all(len(kernel.parallel_loops) > 1 for kernel in sums):
                break
    if found or not any(scop.statement(one).loops for one in before().host_statements):
        return found
    whole = without_scalars(scop)
    if whole is not scop:
        with suppress(*REFUSALS):
            tried = schedule_scop(whole, positive=True, patient=False)
            found = tried if frees_loops(before(), tried, one_thread=True) else None
    return found


def _sums_anew(before: Callable[[], ScheduledScop], after: ScheduledScop) -> bool:
    """Tell whether a sum that leaves a card idle computes anew what it adds, and may be split then.

    Functions are called by as many statements as before, unless these ran in one thread.
    """
    types = after.scop.types
    anew = {
        one.name
        for one in after.scop.statements
        if one.recomputed and update_of(one, types[one.write.array]) is not None
    }
    if not anew or _fill_card(before()):
        return False
    parallel = {name: kernel.parallel_loops for name, kernel in before().kernel_of.items()}
    alone = not all(map(parallel.get, anew))
    now, then = (sum(map(calls, one.scop.statements)) for one in (after, before()))
    return alone or now <= then


def _fill_card(scheduled: ScheduledScop) -> bool:
    """Tell whether the kernels that set scalars have threads for a whole card, side by side."""
    scop = scheduled.scop
    setting = {s.name for s in scop.statements if not scop.array(s.write.array).n_dims}
    return all(
        _fills_card(kernel)
        for kernel in scheduled.kernels
        if not setting.isdisjoint(kernel.statements)
    ) and setting.isdisjoint(scheduled.host_statements)


def _fills_card(kernel: Kernel) -> bool:
    """Tell whether a kernel has threads for a whole card, and neighbours read neighbours."""
    loops = {loop.name for loop in kernel.parallel_loops}
    rows = [one.subscripts[-1].coefficients for one in kernel.references if one.subscripts]
    along = sum(any(name in loops and abs(by) == 1 for name, by in row) for row in rows)
    return _threads(kernel.parallel_loops) >= _THREADS and 2 * along > len(rows)


def needs_anew(scheduled: ScheduledScop, arrays: Collection[str]) -> bool:
    """Tell whether a card is only full because values of some arrays are computed anew.

    An element that all of a parallel loop would go through holds one value after the other: with it
    in memory the loop would not be parallel.
    """
    statement = scheduled.scop.statement
    for kernel in scheduled.kernels:
        reads = (one for name in kernel.statements for one in statement(name).recomputed)
        for read in (one for one in reads if one.array in arrays):
            for own in maps_of(read.relation.to_union_map().apply_domain(kernel.schedule)):
                element = own.gist_domain(own.domain())
                places = [at for at, loop in enumerate(kernel.loops) if loop.parallel]
                moving = [at for at in places if element.involves_dims(IN, at, 1)]
                left = _threads(kernel.loops[at] for at in moving)
                if len(moving) < len(places) and left < _THREADS:
                    return True
    return False


def _threads(loops: Iterable[Loop]) -> int:
    return prod(loop.trip_count or ASSUMED_SIZE for loop in loops)


def _users(scheduled: ScheduledScop, names: Iterable[str]) -> list[int]:
    """Return how many kernels use each of some arrays."""
    used = [
        {
            access.array
            for name in kernel.statements
            for access in scheduled.scop.statement(name).accesses
        }
        for kernel in scheduled.kernels
    ]
    return [sum(name in own for own in used) for name in names]


def _with_collapsed_loops(scop: Scop, *, positive: bool) -> ScheduledScop | None:
    """Schedule a region with loops collapsed, ``None`` where there are none to."""
    collapsed = with_collapsed_loops(scop)
    if collapsed is scop:
        return None
    with suppress(InputError, isl.Error):
        return schedule_scop(collapsed, positive=positive, patient=False)
    return None


def _with_copied_operands(scheduled: ScheduledScop, *, positive: bool) -> ScheduledScop | None:
    """Schedule a region with operands copied, ``None`` where that frees no loop."""
    with suppress(*REFUSALS):
        with at_most(scheduled.scop.isl_context, _COPYING):
            copied = with_copied_operands(scheduled.scop, operands_to_copy(scheduled))
        if copied is scheduled.scop:
            return None
        tried = schedule_scop(copied, positive=positive, patient=False)
        return tried if frees_loops(scheduled, tried) else None
    return None


def _like(symbolic: Scop, raw: Scop, analysed: Scop) -> Scop:
    """Return the region for any size with the temporaries of that for its numbers."""
    if analysed is raw:
        return symbolic
    if symbolic is raw:
        return analysed
    names = {statement.name for statement in analysed.statements}
    if expanded_arrays(raw, analysed) or not names.issuperset(their_names(raw.statements)):
        private = chain(with_private_scalars(symbolic), [without_scalars(symbolic)])
        alike = (one for one in private if names.issuperset(s.name for s in one.statements))
        symbolic = next(alike, symbolic)
    if has_collapsed_loops(analysed):
        symbolic = with_collapsed_loops(symbolic)
    return with_copied_operands(symbolic, copied_places(analysed))


def _with_open_loops(analysed: AnalysedScop, region: SymbolicRegion) -> AnalysedScop:
    """Note which inner loops have a length that code for any size does not know."""
    if not region.generic:
        return analysed
    kernels = {kernel.name: kernel for kernel in region.scheduled.kernels}
    facts = tuple(
        replace(
            fact,
            open_loops=tuple(
                loop.name for loop in kernels[kernel.name].inner_loops if loop.trip_count is None
            ),
        )
        for fact, kernel in zip(analysed.facts, analysed.scheduled.kernels, strict=True)
    )
    return replace(analysed, facts=facts)


def _source_order(scop: Scop) -> Diagnostic:
    return Diagnostic(
        code="EATSS-P008",
        severity=Severity.NOTE,
        message="isl finds no schedule of this region in the time there is: its loops keep the "
        "order of the source, and only those are parallel that are so there",
        span=scop.span,
        hint="mark a smaller region",
    )


def _not_generic(region: SymbolicRegion) -> Diagnostic:
    return with_source_line(
        Diagnostic(
            code="EATSS-P005",
            severity=Severity.WARNING,
            message="code for this region is for the sizes in the source only: for unknown "
            "sizes its loops would be arranged otherwise",
            span=region.scheduled.scop.span,
            hint="give other sizes with -D when generating the code",
        )
    )


def _widest_type(scops: Sequence[Scop]) -> str:
    """Return the widest element type of the arrays, a floating-point one if there is any."""
    types = {array.element_type for scop in scops for array in scop.arrays if array.n_dims}
    types = types or {array.element_type for scop in scops for array in scop.arrays}
    widest = max(types, key=lambda t: (t.is_floating, t.size_bytes, t.value))
    return widest.value

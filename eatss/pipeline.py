"""The way of the data, in one place: each line below is one package.

kernel.c ─frontend→ Scop ─polyhedral→ Kernels ─analysis→ KernelFacts ─model→ Selection
                                                              Selection ─codegen→ Program
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import islpy as isl

from eatss.analysis import KernelFacts, VolumeKind, analyse
from eatss.analysis.structure import Structure
from eatss.diagnostics import (
    Diagnostic,
    EatssError,
    InputError,
    InternalError,
    Severity,
    input_error,
)
from eatss.forked import REGION_S, allow, allow_more
from eatss.frontend import (
    FrontendOptions,
    FrontendResult,
    SymbolicResult,
    parse_file,
    parse_source,
    parse_symbolic,
)
from eatss.gpu import GpuProfile
from eatss.model import PUBLISHED, KernelSelection, ModelOptions, Selection, select_program
from eatss.model.options import DEFAULT_TIMEOUT_S
from eatss.polyhedral import ScheduledScop, schedule_scop
from eatss.polyhedral.isl_limits import bounded_work
from eatss.polyhedral.schedule import default_operations
from eatss.program import Original, Program
from eatss.recipe.options import CodegenOptions
from eatss.recipe.recipe import Recipe
from eatss.scop import ElementType, Scop

if TYPE_CHECKING:
    from eatss.model.expectation import ProgramExpectation
    from eatss.recipe.requests import Block, Tiles

Cut: TypeAlias = Literal["ppcg", "eatss"]

_ELEMENT_TYPES = {"float": ElementType.FLOAT, "double": ElementType.DOUBLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """How C becomes kernel facts.

    ``dtype`` (``float`` or ``double``) overrides the width of every floating-point
    array; ``None`` takes the types of the source. ``max_operations`` bounds isl's
    work on one region. ``cut`` says whose kernels are wanted: PPCG's, or those that eatss
    generates code for. ``ppcg_schedule`` is the text of a schedule that PPCG saved. ``expand`` says
    whether sums in scalars may get elements of their own, for the latter.
    """

    frontend: FrontendOptions = FrontendOptions()  # noqa: RUF009 - frozen
    volume: VolumeKind = VolumeKind.FOOTPRINT
    dtype: str | None = None
    max_operations: int | None = None
    cut: Cut = "eatss"
    ppcg_schedule: str | None = None
    expand: bool = True

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in _ELEMENT_TYPES:
            raise input_error(
                "EATSS-A001",
                f"unknown dtype '{self.dtype}'",
                hint=f"write one of: {', '.join(_ELEMENT_TYPES)}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedScop:
    """One region with its schedule and the facts of its kernels.

    ``scop`` is the region as read; what is scheduled may lack its dead code. ``warnings`` say why
    the kernels may be others than PPCG's.
    """

    scop: Scop
    scheduled: ScheduledScop
    facts: tuple[KernelFacts, ...]
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedProgram:
    """All regions of a C file; kernels are numbered through the file.

    ``dtype`` is the element type selected for, in its C spelling. ``max_operations`` bounds isl's
    work on one region, ``None`` for the default.
    """

    file: str
    dtype: str
    scops: tuple[AnalysedScop, ...]
    warnings: tuple[Diagnostic, ...]
    max_operations: int | None = None

    @property
    def facts(self) -> tuple[KernelFacts, ...]:
        """The facts of all kernels of the file, in launch order."""
        return tuple(fact for scop in self.scops for fact in scop.facts)


def parse(source: str | PathLike[str], options: FrontendOptions) -> FrontendResult:
    """Parse a path, or C source text: a ``str`` of more than one line is text."""
    if isinstance(source, str) and "\n" in source:
        return parse_source(source, options=options)
    return parse_file(source, options)


def analyse_program(source: str | PathLike[str], options: AnalysisOptions) -> AnalysedProgram:
    """Take C to kernel facts.

    Code of eatss is for any size where it can be: what it knows of inner loops is noted then.
    """
    program = _analyse_parsed(source, parse(source, options.frontend), options)
    if options.cut == "eatss" and any(fact.inner_loops for fact in program.facts):
        return analyse_symbolic(source, options).program
    return program


def _analyse_parsed(
    source: str | PathLike[str],
    parsed: FrontendResult,
    options: AnalysisOptions,
    schedules: Mapping[int, ScheduledScop] | None = None,
) -> AnalysedProgram:
    saved = dict(schedules or {})
    if options.ppcg_schedule is not None and len(parsed.scops) > 1:
        raise input_error(
            "EATSS-P025",
            f"the file has {len(parsed.scops)} regions, and PPCG keeps the schedule of one",
            hint="put each region into a file of its own",
        )
    allow(sum(_seconds(scop, options.max_operations) for scop in parsed.scops))
    scops: list[AnalysedScop] = []
    first_index = 0
    for scop in parsed.scops:
        analysed = _analysed(scop, options, first_index, saved.get(scop.index))
        first_index += len(analysed.facts)
        scops.append(analysed)
    return AnalysedProgram(
        file=_display_name(source),
        dtype=options.dtype or _widest_type(parsed.scops),
        scops=tuple(scops),
        warnings=parsed.warnings + tuple(w for scop in scops for w in scop.warnings),
        max_operations=options.max_operations,
    )


def _seconds(scop: Scop, max_operations: int | None) -> float:
    """Return how long a region may take where its time is bounded; more operations take longer."""
    usual = default_operations(scop)
    return REGION_S * max(1.0, (max_operations or usual) / usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicRegion:
    """One region, scheduled over its macro sizes and over their numbers.

    Where ``generic`` holds, both have the same kernels, host loops, loop names and parallel
    loops. Else ``scheduled`` is ``numeric_scheduled``: code made from it is for the sizes of
    the source alone.
    """

    scheduled: ScheduledScop
    numeric_scheduled: ScheduledScop
    generic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicProgram:
    """A C file, analysed for its own sizes and scheduled for any.

    ``program`` is what sizes are selected for. ``values`` are the macros (name, value) that may
    be parameters of ``regions``. ``warnings`` are those of ``program`` and why code is
    not generic where it is not.
    """

    file: str
    regions: tuple[SymbolicRegion, ...]
    program: AnalysedProgram
    values: tuple[tuple[str, int], ...]
    warnings: tuple[Diagnostic, ...]


def analyse_symbolic(
    source: str | PathLike[str], options: AnalysisOptions, *, schedules: str | None = None
) -> SymbolicProgram:
    """Take C to kernel facts for its sizes, and to kernels for any size.

    Args:
        source: a path, or C source text.
        options: as for :func:`analyse_program`.
        schedules: what ``eatss.polyhedral.program_schedule_file.save_schedules`` returned; the
            regions in it keep those schedules instead of new ones.

    Raises:
        InputError: As :func:`analyse_program`. What only the symbolic reading cannot do is a
            warning, and the region keeps its numbers.
    """
    parsed = parse_symbolic(source, options.frontend)
    loaded = _loaded_regions(parsed, schedules, options)
    numeric = {index: region.numeric_scheduled for index, region in loaded.items()}
    program = _analyse_parsed(source, parsed.numeric, options, numeric)
    regions = tuple(
        loaded.get(symbolic.index)
        or _symbolic_region(_like(symbolic, raw, analysed.scop), analysed.scheduled, options)
        for symbolic, raw, analysed in zip(
            parsed.scops, parsed.numeric.scops, program.scops, strict=True
        )
    )
    pairs = zip(program.scops, parsed.numeric.scops, strict=True)
    expanded = any(analysed.scop is not raw for analysed, raw in pairs)
    if expanded and options.expand and not all(region.generic for region in regions):
        return analyse_symbolic(source, replace(options, expand=False), schedules=schedules)
    program = replace(
        program,
        scops=tuple(
            _for_any_size(analysed, region)
            for analysed, region in zip(program.scops, regions, strict=True)
        ),
    )
    fixed = tuple(_not_generic(region) for region in regions if not region.generic)
    return SymbolicProgram(
        file=program.file,
        regions=regions,
        program=program,
        values=parsed.values,
        warnings=parsed.warnings + fixed,
    )


def _like(symbolic: Scop, raw: Scop, analysed: Scop) -> Scop:
    """Return the region for any size with sums expanded where they are in that for its numbers."""
    if analysed is raw:
        return symbolic
    if symbolic is raw:
        return analysed
    from eatss.polyhedral.expansion import with_expanded_sums  # noqa: PLC0415

    return with_expanded_sums(symbolic)


def _for_any_size(analysed: AnalysedScop, region: SymbolicRegion) -> AnalysedScop:
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


def _not_generic(region: SymbolicRegion) -> Diagnostic:
    return _with_source_line(
        Diagnostic(
            code="EATSS-P005",
            severity=Severity.WARNING,
            message="code for this region is for the sizes in the source only: for unknown "
            "sizes its loops would be arranged otherwise",
            span=region.scheduled.scop.span,
            hint="give other sizes with -D when generating the code",
        )
    )


def _symbolic_region(
    symbolic: Scop, numeric: ScheduledScop, options: AnalysisOptions
) -> SymbolicRegion:
    if symbolic is numeric.scop:
        return SymbolicRegion(scheduled=numeric, numeric_scheduled=numeric, generic=True)
    scheduled = _carried_over(symbolic, numeric, options)
    if scheduled is not None:
        return SymbolicRegion(scheduled=scheduled, numeric_scheduled=numeric, generic=True)
    universe = isl.Set.universe(symbolic.context.get_space())
    contexts = [symbolic.context]
    if not symbolic.context.is_equal(universe):
        contexts.append(universe)  # facts may lead the scheduler elsewhere
    for context in contexts:
        try:
            assumed = replace(symbolic, context=context)
            scheduled = schedule_scop(assumed, max_operations=options.max_operations)
        except (EatssError, isl.Error):
            continue
        if same_kernels(scheduled, numeric):
            scheduled = replace(scheduled, scop=symbolic)
            return SymbolicRegion(scheduled=scheduled, numeric_scheduled=numeric, generic=True)
    return SymbolicRegion(scheduled=numeric, numeric_scheduled=numeric, generic=False)


def _carried_over(
    symbolic: Scop, numeric: ScheduledScop, options: AnalysisOptions
) -> ScheduledScop | None:
    """Return the region under the schedule for its numbers, ``None`` where it is not for any size.

    isl's integer programs grow with a size that several loops share: two sweeps of a stencil in
    four dimensions took minutes.
    """
    from eatss.polyhedral.ppcg_tree import Carrier, carried_over  # noqa: PLC0415
    from eatss.polyhedral.schedule import with_schedule  # noqa: PLC0415

    same = symbolic.domain.universe().identity_union_pw_multi_aff()
    carrier = Carrier(domain=symbolic.domain, names=same, members=())
    try:
        schedule = carried_over(numeric.schedule, carrier)
        scheduled = with_schedule(symbolic, schedule, max_operations=options.max_operations)
    except (EatssError, isl.Error):
        return None
    return scheduled if same_kernels(scheduled, numeric) else None


def _loaded_regions(
    parsed: SymbolicResult, schedules: str | None, options: AnalysisOptions
) -> dict[int, SymbolicRegion]:
    """Return the regions whose schedules are in a file, by number."""
    if schedules is None:
        return {}
    from eatss.polyhedral.program_schedule_file import load_schedules  # noqa: PLC0415 - rarely needed

    numbers = {scop.index: scop for scop in parsed.numeric.scops}
    try:
        loaded = load_schedules(
            [(scop, numbers[scop.index]) for scop in parsed.scops],
            schedules,
            parsed.values,
            max_operations=options.max_operations,
        )
    except InputError as error:
        raise InputError(*(_with_source_line(finding) for finding in error.diagnostics)) from None
    regions = {}
    for index, (symbolic, numeric) in loaded.items():
        generic = symbolic is not None and same_kernels(symbolic, numeric)
        regions[index] = SymbolicRegion(
            scheduled=symbolic if symbolic is not None and generic else numeric,
            numeric_scheduled=numeric,
            generic=generic,
        )
    return regions


def same_kernels(one: ScheduledScop, other: ScheduledScop) -> bool:
    """Tell whether two schedules of one region have the same kernels, up to sizes.

    Compared are the statements on the host and, kernel by kernel, statements, host loops,
    and the names, order and parallel marks of the loops.
    """
    return one.host_statements == other.host_statements and _outline(one) == _outline(other)


def _outline(scheduled: ScheduledScop) -> list[tuple[object, ...]]:
    return [
        (
            kernel.name,
            kernel.statements,
            kernel.host_loops,
            kernel.permutable,
            tuple((loop.name, loop.parallel) for loop in kernel.loops),
            tuple((loop.name, loop.parallel) for loop in kernel.inner_loops),
        )
        for kernel in scheduled.kernels
    ]


def _analysed(
    scop: Scop, options: AnalysisOptions, first_index: int, scheduled: ScheduledScop | None
) -> AnalysedScop:
    """Analyse a region, sums in scalars expanded where code of eatss keeps them in registers."""
    if scheduled is None and options.cut == "eatss" and options.expand:
        from eatss.polyhedral.expansion import with_expanded_sums  # noqa: PLC0415

        expanded = with_expanded_sums(scop)
        if expanded is not scop:
            limit = options.max_operations
            with suppress(EatssError, isl.Error):  # then the scalar stays one
                scheduled = schedule_scop(
                    expanded, max_operations=limit, positive=True, patient=False
                )
                if _stay_in_kernels(scop, scheduled):
                    return _analyse_scop(expanded, options, first_index, scheduled)
            scheduled = None
    return _analyse_scop(scop, options, first_index, scheduled)


def _stay_in_kernels(before: Scop, scheduled: ScheduledScop) -> bool:
    """Tell whether each scalar that was expanded is used by one kernel alone."""
    from eatss.polyhedral.expansion import expanded_arrays  # noqa: PLC0415

    names = expanded_arrays(before, scheduled.scop)
    using = [
        {
            access.array
            for statement in kernel.statements
            for access in scheduled.scop.statement(statement).accesses
        }
        for kernel in scheduled.kernels
    ]
    return all(sum(name in arrays for arrays in using) == 1 for name in names)


def _analyse_scop(
    scop: Scop, options: AnalysisOptions, first_index: int, scheduled: ScheduledScop | None
) -> AnalysedScop:
    """Schedule a region, if it is not scheduled yet, and analyse its kernels."""
    element_type = None if options.dtype is None else _ELEMENT_TYPES[options.dtype]
    warnings: tuple[Diagnostic, ...] = ()
    try:
        if scheduled is None:
            scheduled, warnings = _scheduled(scop, options)
        facts = analyse(
            scheduled,
            volume=options.volume,
            element_type=element_type,
            first_index=first_index,
        )
    except InputError as error:
        raise InputError(*(_with_source_line(finding) for finding in error.diagnostics)) from None
    except isl.Error as error:
        message = f"isl failed on region {scop.index} of '{scop.function}': {error}"
        diagnostic = Diagnostic(code="EATSS-X002", message=message, span=scop.span)
        raise InternalError(diagnostic) from error
    return AnalysedScop(
        scop=scop,
        scheduled=scheduled,
        facts=facts,
        warnings=tuple(_with_source_line(warning) for warning in warnings),
    )


def _scheduled(
    scop: Scop, options: AnalysisOptions
) -> tuple[ScheduledScop, tuple[Diagnostic, ...]]:
    """Schedule a region as the options say."""
    limit = options.max_operations
    if options.ppcg_schedule is not None:
        from eatss.polyhedral.ppcg_schedule_file import load_ppcg_schedule  # noqa: PLC0415

        return load_ppcg_schedule(scop, options.ppcg_schedule, max_operations=limit), ()
    if options.cut == "ppcg":
        from eatss.polyhedral.ppcg_scheduling import schedule_as_ppcg  # noqa: PLC0415

        return schedule_as_ppcg(scop, max_operations=limit)
    return schedule_scop(scop, max_operations=limit), ()


def ppcg_schedule_of(program: AnalysedProgram) -> str:
    """Return the schedule of a program as ``ppcg --load-schedule`` reads it.

    Raises:
        InputError: ``EATSS-P024`` PPCG schedules other instances, ``EATSS-P025`` there is more than
            one region.
    """
    from eatss.polyhedral.ppcg_schedule_file import save_ppcg_schedule  # noqa: PLC0415

    if len(program.scops) != 1:
        raise input_error(
            "EATSS-P025",
            f"the file has {len(program.scops)} regions, and PPCG loads the schedule of one",
            hint="put each region into a file of its own",
        )
    (region,) = program.scops
    try:
        return save_ppcg_schedule(region.scheduled, region.scop)
    except InputError as error:
        raise InputError(*(_with_source_line(finding) for finding in error.diagnostics)) from None


def _with_source_line(finding: Diagnostic) -> Diagnostic:
    """Add the text of the line a finding of a later pass points at."""
    if finding.span is None or finding.source_line is not None:
        return finding
    line = linecache.getline(finding.span.file, finding.span.line).rstrip("\r\n")
    return replace(finding, source_line=line or None)


def select_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    options: ModelOptions,
    *,
    strict_fp: bool = False,
) -> Selection:
    """Take kernel facts and a card to a selection.

    Args:
        program: the kernels.
        profile: the card.
        options: target, objective and bounds.
        strict_fp: whether generated code keeps the order of all operations.
    """
    if options.timeout_s is not None or options.model in PUBLISHED:
        allow_more((options.timeout_s or DEFAULT_TIMEOUT_S) * len(program.facts))
    structures = None
    if options.target == "cuda" and options.model == "prediction":
        structures = structures_for(program, profile, strict_fp=strict_fp)
    selection = select_program(
        program.facts,
        profile,
        options,
        file=program.file,
        functions=functions_of(program),
        host_statements=host_statements_of(program),
        dtype=program.dtype,
        structures=structures,
    )
    return replace(selection, warnings=doubts_of(program))


def expect_generated(
    program: AnalysedProgram,
    profile: GpuProfile,
    *,
    tiles: Tiles,
    block: Block,
    placements: Mapping[str, str],
) -> ProgramExpectation:
    """Predict generated code at sizes of the user's; what they leave out is selected for energy.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be.
        NoSolutionError: no sizes satisfy the limits of the card.
    """
    from eatss.lower.own_sizes import (  # noqa: PLC0415 - PPCG's target needs none
        places_without_effect,
        with_own_sizes,
    )
    from eatss.model.expectation import ProgramExpectation, expect_cuda  # noqa: PLC0415
    from eatss.recipe.requests import checked_options  # noqa: PLC0415

    options = checked_options(
        program.facts,
        [scop.scop for scop in program.scops],
        tiles=tiles,
        block=block,
        placements=placements,
        strict_fp=False,
        index_bits=None,
        line_info=False,
        shared_limit_bytes=None,
    )
    structures = structures_for(program, profile)
    selection = select_for(program, profile, ModelOptions(target="cuda"))
    own = with_own_sizes(selection, program.facts, structures, profile, options)
    unused = places_without_effect(program.facts, structures, options)
    return ProgramExpectation(
        file=program.file,
        functions=functions_of(program),
        gpu=profile.name,
        calibrated=profile.calibrated,
        dtype=program.dtype,
        options=None,
        kernels=expect_cuda(program.facts, structures, profile, selection, own),
        target="cuda",
        warnings=(
            *doubts_of(program),
            *map(_not_staged, unused),
            *(_on_host(kernel) for kernel in own.kernels if _asks_for_host_loop(kernel, options)),
        ),
    )


def structures_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    *,
    strict_fp: bool = False,
) -> dict[str, tuple[Structure, ...]]:
    """Return how the generator can cut each kernel of a program, by the kernel's name.

    Raises:
        InputError: ``EATSS-P001``, isl needs more than the program's ``max_operations`` for one
            region.
    """
    from eatss.lower.structures import structures_of  # noqa: PLC0415 - PPCG's target needs none

    found: dict[str, tuple[Structure, ...]] = {}
    for region in program.scops:
        options = CodegenOptions(strict_fp=strict_fp)
        limit = program.max_operations or default_operations(region.scop)
        try:
            with bounded_work(region.scop, limit):
                found |= structures_of(region.scheduled, region.facts, profile, options)
        except InputError as error:
            raise InputError(
                *(_with_source_line(finding) for finding in error.diagnostics)
            ) from None
    return found


def generate_for(
    program: SymbolicProgram,
    recipe: Recipe,
    profile: GpuProfile,
    *,
    name: str,
    original: Original,
    max_operations: int | None = None,
) -> Program:
    """Take schedules and a recipe to CUDA.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be.
    """
    from eatss.cuda.generate import RegionInput, generate  # noqa: PLC0415 - select needs none

    regions = [
        RegionInput(scheduled=region.scheduled, facts=analysed.facts, generic=region.generic)
        for region, analysed in zip(program.regions, program.program.scops, strict=True)
    ]
    try:
        return generate(
            regions,
            recipe,
            profile,
            name=name,
            original=original,
            parameters=program.values,
            max_operations=max_operations,
        )
    except InputError as error:
        raise InputError(*(_with_source_line(finding) for finding in error.diagnostics)) from None
    except isl.Error as error:
        message = f"isl failed when code was generated: {error}"
        raise InternalError(Diagnostic(code="EATSS-X002", message=message)) from error


def doubts_of(program: AnalysedProgram) -> tuple[Diagnostic, ...]:
    """Return why the kernels may be others than PPCG's."""
    return tuple(warning for scop in program.scops for warning in scop.warnings)


def _asks_for_host_loop(kernel: KernelSelection, options: CodegenOptions) -> bool:
    asked = {loop for name, sizes in options.tile_sizes if name == kernel.name for loop, _ in sizes}
    return kernel.host_loop in asked


def _on_host(kernel: KernelSelection) -> Diagnostic:
    return Diagnostic(
        code="EATSS-M017",
        severity=Severity.WARNING,
        message=f"the loop {kernel.host_loop} of {kernel.name} runs on the host: "
        "its tile size has no effect",
        hint="give tile sizes of its other loops",
    )


def _not_staged(name: str) -> Diagnostic:
    return Diagnostic(
        code="EATSS-M017",
        severity=Severity.WARNING,
        message=f"{name} is not staged in shared memory: no tile of it can be",
        hint="codegen says why: it lives in registers, or its tile has no fixed shape",
    )


def functions_of(program: AnalysedProgram) -> tuple[str, ...]:
    """Return the functions the regions stand in, each once, in source order."""
    return tuple(dict.fromkeys(scop.scheduled.scop.function for scop in program.scops))


def host_statements_of(program: AnalysedProgram) -> tuple[str, ...]:
    """Return the statements that no kernel has, as ``function: S0``."""
    return tuple(
        f"{scop.scheduled.scop.function}: {name}"
        for scop in program.scops
        for name in scop.scheduled.host_statements
    )


def _widest_type(scops: Sequence[Scop]) -> str:
    """Return the widest element type of the arrays, a floating-point one if there is any."""
    types = {array.element_type for scop in scops for array in scop.arrays if array.n_dims}
    types = types or {array.element_type for scop in scops for array in scop.arrays}
    widest = max(types, key=lambda t: (t.is_floating, t.size_bytes, t.value))
    return widest.value


def _display_name(source: str | PathLike[str]) -> str:
    if isinstance(source, str) and "\n" in source:
        return "<source>"
    return str(Path(fspath(source)))

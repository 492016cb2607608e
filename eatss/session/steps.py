"""The steps after analysis, as functions: selection, prediction, code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from eatss.analysis.analyse import AnalysedProgram, SlowLoop
from eatss.base.diagnostics import Diagnostic, Severity, input_error
from eatss.base.expected_run import sizes_text
from eatss.base.forked import allow_more
from eatss.base.notices import Told, nobody
from eatss.base.targets import TARGETS, TargetName
from eatss.base.text import bytes_text
from eatss.cards import GpuProfile
from eatss.choose import PUBLISHED, ModelOptions, PpcgOptions, Selection, select_program
from eatss.choose.expectation import far_from_roofline, least_time_s
from eatss.choose.options import DEFAULT_TIMEOUT_S
from eatss.cost.expected import host_time_s
from eatss.lower.recipe.options import CodegenOptions
from eatss.lower.recipe.recipe import Recipe
from eatss.polyhedral import ScheduledScop
from eatss.polyhedral.dependences import source_lines, with_source_line
from eatss.program import Original, Program
from eatss.session.analysis import SymbolicProgram, require_one_region

if TYPE_CHECKING:
    from eatss.choose.expectation import KernelExpectation, ProgramExpectation
    from eatss.lower.recipe.options import CodeRequest
    from eatss.plan.phases import RowRun


CodeSchedules: TypeAlias = Callable[[], Sequence[ScheduledScop]]
"""Gives the schedules of a program's regions that code is made from."""


def select_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    options: ModelOptions,
    *,
    strict_fp: bool = False,
    fuse_rows: bool = True,
    code: CodeSchedules | None = None,
    told: Told = nobody,
) -> Selection:
    """Take kernel facts and a card to a selection.

    Args:
        program: the kernels.
        profile: the card.
        options: target, objective and bounds.
        strict_fp: whether generated code keeps the order of all operations.
        fuse_rows: whether kernels that share rows may become one.
        code: gives the schedules that code is made from.
        told: is told which kernel it is at.

    Raises:
        InputError: ``EATSS-K019``, TF32 beside ``strict_fp``; ``EATSS-M001``, the card has none.
        NoSolutionError: no sizes satisfy the limits of the card.
    """
    if options.tf32 != "off":
        _check_tf32(profile, strict_fp=strict_fp)
    if options.timeout_s is not None or options.model in PUBLISHED:
        allow_more((options.timeout_s or DEFAULT_TIMEOUT_S) * len(program.facts))
    structures = None
    row_runs: tuple[RowRun, ...] = ()
    if TARGETS[options.target].own and options.model == "prediction":
        from eatss.lower.structures import structures_for  # noqa: PLC0415 - PPCG needs none

        told("trying how kernels can be cut")
        structures = structures_for(program, profile, strict_fp=strict_fp, tf32=options.tf32)
        if fuse_rows:
            from eatss.lower.row_planning import row_runs_for  # noqa: PLC0415

            row_runs = row_runs_for(program, profile, strict_fp=strict_fp, code=code)
    selection = select_program(
        program.facts,
        profile,
        options,
        file=program.file,
        functions=program.functions,
        host_statements=program.host_statements,
        dtype=program.dtype,
        structures=structures,
        row_runs=row_runs,
        strict_fp=strict_fp,
        told=told,
    )
    of_run = _of_run(program, profile, options.target, tf32=options.tf32 != "off")
    selection = replace(selection, warnings=program.doubts, **of_run)
    notes = _amount_notes(program, selection, profile)
    if not TARGETS[options.target].own and options.model == "prediction":
        from eatss.session.ppcg_notes import ppcg_notes  # noqa: PLC0415 - code of eatss needs none

        notes += ppcg_notes(program, selection, profile)
    return replace(selection, warnings=selection.warnings + notes)


def _amount_notes(
    program: AnalysedProgram, found: Selection | ProgramExpectation, profile: GpuProfile
) -> tuple[Diagnostic, ...]:
    """Return what is said of arrays that a card has no room for, and of far predictions."""
    kernels = [
        (one.statements, one.predicted) for one in found.kernels if one.predicted is not None
    ]
    span = next((scop.scop.span for scop in program.scops), None)
    run, taken = found.expected, program.array_bytes
    notes = [] if run is None else [far_from_roofline(run, kernels, found.gpu, span)]
    if taken > profile.memory_bytes:
        where = "with -D or --param" if found.sizes else "in the source"
        notes += [
            Diagnostic(
                code="EATSS-M026",
                severity=Severity.WARNING,
                message=f"the arrays take {bytes_text(taken)} {sizes_text(found.sizes)}, and "
                f"{profile.name} has {bytes_text(profile.memory_bytes)} of memory; the prediction "
                "assumes that the arrays fit in it",
                span=span,
                hint=f"give smaller sizes {where}",
            )
        ]
    return tuple(with_source_line(note) for note in notes if note is not None)


def _check_tf32(profile: GpuProfile, *, strict_fp: bool) -> None:
    """Refuse TF32 where rounding is to be that of the source, or where a card has none."""
    if strict_fp:
        raise input_error(
            "EATSS-K019",
            "tf32 rounds factors of products, and --strict-fp keeps all rounding",
            hint="leave one of the two out",
        )
    if profile.peak_tf32_tensor_gflops is None:
        raise input_error(
            "EATSS-M001",
            f"the profile {profile.name} has no tensor cores for TF32",
            hint="leave tf32 out; cards have them from compute capability 8.0 on",
        )


def expect_ppcg(
    program: AnalysedProgram, profile: GpuProfile, wanted: CodeRequest, options: PpcgOptions
) -> ProgramExpectation:
    """Predict PPCG's code at sizes of the user's; what they leave out is PPCG's default.

    Raises:
        InputError: ``EATSS-K0xx``, sizes that cannot be.
    """
    from eatss.choose.expectation import expect  # noqa: PLC0415
    from eatss.lower.recipe.requests import blocks_of, tile_sizes_of  # noqa: PLC0415

    found = expect(
        program.facts,
        profile,
        tiles=tile_sizes_of(wanted.tiles or {}, program.facts),
        blocks=blocks_of(wanted.block, program.facts),
        options=options,
    )
    return _expectation(program, profile, found, "ppcg", options)


def expect_code(
    program: AnalysedProgram, profile: GpuProfile, options: CodegenOptions, selection: Selection
) -> ProgramExpectation:
    """Predict generated code at sizes of the user's; what they leave out is what was selected.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be.
        NoSolutionError: no sizes satisfy the limits of the card.
    """
    from eatss.choose.expectation import expect_cuda  # noqa: PLC0415
    from eatss.lower.own_sizes import (  # noqa: PLC0415 - PPCG's target needs none
        places_without_effect,
        with_own_sizes,
    )
    from eatss.lower.structures import structures_for  # noqa: PLC0415

    tf32 = selection.options.tf32
    structures = structures_for(program, profile, strict_fp=options.strict_fp, tf32=tf32)
    own = with_own_sizes(selection, program.facts, structures, profile, options)
    found = expect_cuda(program.facts, structures, profile, selection, own)
    tiled = {(name, loop) for name, sizes in options.tile_sizes for loop, _ in sizes}
    vain = [
        (
            f"{name} is not staged in shared memory: no tile of it can be",
            "codegen says why: it lives in registers, or its tile has no fixed shape",
        )
        for name in places_without_effect(program.facts, structures, options)
    ]
    vain += [
        (
            f"the loop {one.host_loop} of {one.name} runs on the host: its tile size has no effect",
            "give tile sizes of its other loops",
        )
        for one in own.kernels
        if (one.name, one.host_loop) in tiled
    ]
    for kernel in own.kernels:
        for name, wish in options.shared_sums:
            if name == kernel.name and wish.blocks > 1 and kernel.shared_sum != wish:
                what, hint = _SHARED[wish.streamed]
                where = f"{what} of {kernel.name} over {wish.loop}"
                vain += [(f"blocks cannot {where}: what is told is without", hint)]
    warnings = tuple(
        Diagnostic(code="EATSS-M017", severity=Severity.WARNING, message=message, hint=hint)
        for message, hint in vain
    )
    return _expectation(program, profile, found, "cuda", warnings=warnings, tf32=tf32 != "off")


_SHARED = {
    False: ("share a sum", "it has to be a serial loop of a sum, of 64 iterations or more"),
    True: (
        "take equal shares of the turns",
        "it has to be the only serial loop of a sum, with as many turns in each tile",
    ),
}
"""What blocks are to do, and when they can; by whether the sum is streamed."""


def _expectation(
    program: AnalysedProgram,
    profile: GpuProfile,
    kernels: tuple[KernelExpectation, ...],
    target: TargetName,
    options: PpcgOptions | None = None,
    *,
    warnings: tuple[Diagnostic, ...] = (),
    tf32: bool = False,
) -> ProgramExpectation:
    from eatss.choose.expectation import ProgramExpectation  # noqa: PLC0415 - select needs none

    found = ProgramExpectation(
        file=program.file,
        functions=program.functions,
        gpu=profile.name,
        calibrated=profile.calibrated,
        dtype=program.dtype,
        options=options,
        kernels=kernels,
        target=target,
        warnings=(*program.doubts, *warnings),
        host_statements=program.host_statements if TARGETS[target].on_host else (),
        **_of_run(program, profile, target, tf32=tf32),
    )
    return replace(found, warnings=found.warnings + _amount_notes(program, found, profile))


def _of_run(
    program: AnalysedProgram, profile: GpuProfile, target: TargetName, *, tf32: bool
) -> dict[str, Any]:
    """Return what is known of a run besides its kernels."""
    return {
        "sizes": program.sizes,
        "host_time_s": host_time_s(program.host_instances) if TARGETS[target].on_host else 0.0,
        "least_time_s": least_time_s(program.facts, program.host_bytes, profile, tf32=tf32),
    }


def generate_for(
    program: SymbolicProgram,
    recipe: Recipe,
    profile: GpuProfile,
    *,
    name: str,
    original: Original,
    slow: Sequence[tuple[SlowLoop, ...]] = (),
    max_operations: int | None = None,
) -> Program:
    """Take schedules and a recipe to CUDA; kernels note which loops of each region are slow.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be.
    """
    from eatss.cuda.generate import generate  # noqa: PLC0415 - select needs none
    from eatss.cuda.region import RegionInput  # noqa: PLC0415

    regions = [
        RegionInput(
            scheduled=region.scheduled, facts=analysed.facts, generic=region.generic, slow=loops
        )
        for region, analysed, loops in zip(
            program.regions, program.program.scops, slow or [()] * len(program.regions), strict=True
        )
    ]
    with source_lines("when code was generated"):
        return generate(
            regions,
            recipe,
            profile,
            name=name,
            original=original,
            parameters=program.values,
            max_operations=max_operations,
        )


def ppcg_schedule_of(program: AnalysedProgram) -> str:
    """Return the schedule of a program as ``ppcg --load-schedule`` reads it.

    Raises:
        InputError: ``EATSS-P021`` PPCG schedules other instances, ``EATSS-P025`` there is more than
            one region.
    """
    from eatss.polyhedral.ppcg_scheduling import save_ppcg_schedule  # noqa: PLC0415

    require_one_region(program.scops, "loads")
    (region,) = program.scops
    with source_lines("on the schedule for PPCG"):
        return save_ppcg_schedule(region.scheduled, region.scop)

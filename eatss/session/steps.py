"""The steps of a session as functions: producers computed anew, selection, prediction, code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import islpy as isl
import numpy as np

from eatss.analysis.analyse import AnalysedProgram, SlowLoop
from eatss.analysis.variant import ChunkedScan, PrivateArrays, RecomputedArray, Rewrites
from eatss.analysis.work import bytes_of_arrays, parameter_values
from eatss.base.diagnostics import (
    Diagnostic,
    Diagnostics,
    Progress,
    Severity,
    input_error,
    no_progress,
)
from eatss.base.forked import allow_more
from eatss.base.frozen import Numbers
from eatss.base.shown import sizes_text
from eatss.base.targets import TARGETS, TargetName
from eatss.base.text import bytes_text
from eatss.cards import GpuProfile
from eatss.cards.match import CLOCK_SHARES, calibration_of
from eatss.choose.cuda import Known
from eatss.choose.expectation import least_time_s
from eatss.choose.objectives import NEVER, OBJECTIVES, costs, first_least
from eatss.choose.options import DEFAULT_TIMEOUT_S, PUBLISHED, ModelOptions, longest_s
from eatss.choose.select import Runs, select_program
from eatss.choose.selection import PpcgOptions, Selection
from eatss.cost.demand import Column
from eatss.cost.expected import Parts, host_time_s
from eatss.cost.terms import Predicted
from eatss.lower.recipe import CodegenOptions, NamedThreads, Recipe
from eatss.plan.shares import pair_part, scan_chunks
from eatss.polyhedral.chunked_pairs import pairs, with_chunked_pairs
from eatss.polyhedral.chunked_scans import (
    ends_of,
    recurrences,
    shape_of,
    with_chunked_scans,
)
from eatss.polyhedral.class_tiles import at_sizes, with_class_tiles
from eatss.polyhedral.dependences import at_most, source_lines, with_source_line
from eatss.polyhedral.factored_sums import with_factored_sums
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.parts import still_loops
from eatss.polyhedral.private_arrays import with_private_arrays
from eatss.polyhedral.recomputed_producers import recomputable_arrays, with_recomputed_producers
from eatss.polyhedral.reversed_sums import with_reversed_sums
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.split_sets import with_split_sets
from eatss.program import Original, Program
from eatss.program.expression import SizePairs, Sizes
from eatss.session.analysis import SymbolicProgram

if TYPE_CHECKING:
    from eatss.choose.expectation import KernelExpectation, ProgramExpectation
    from eatss.lower.recipe import CodeRequest


Arrays = tuple[RecomputedArray, ...]
Chunks = tuple[ChunkedScan, ...]
Private = tuple[PrivateArrays, ...]
Frees: TypeAlias = Callable[[ScheduledScop, ScheduledScop], bool]
"""Tells whether a region has more parallel loops than another one."""


def recomputable(numeric: Sequence[Scop], symbolic: Callable[[], Sequence[Scop]]) -> Arrays:
    """Return the arrays that readers may compute anew, at the sizes of the source and at any.

    Args:
        numeric: the regions for the sizes of the source.
        symbolic: the same for any size.
    """
    found = []
    for at, region in enumerate(numeric):
        names = recomputable_arrays(region)
        if names and with_recomputed_producers(symbolic()[at], names) is not None:
            found += [RecomputedArray(region=region.index, array=name) for name in names]
    return tuple(found)


def privatisable(numeric: Sequence[Scop], symbolic: Callable[[], Sequence[Scop]]) -> Private:
    """Return the regions whose arrays may have elements for each iteration, as for any size.

    Those of the inner of these loops where all would take too many bytes.
    """
    found = list[PrivateArrays]()
    for at, region in enumerate(numeric):
        sizes = parameter_values(region)
        with suppress(isl.Error), at_most(region.isl_context, _CHANGING):
            private, outer = with_private_arrays(region), 0
            while _bytes(private, sizes) - _bytes(region, sizes) > _MOST_BYTES:
                outer += 1
                private = with_private_arrays(region, outer)
            for_any_size = with_private_arrays(symbolic()[at], outer)
            if private is not region and _outline(private) == _outline(for_any_size):
                found.append(PrivateArrays(region=region.index, outer=outer))
    return tuple(found)


_MOST_BYTES = 4 << 30
"""Bytes of such arrays of a region, at the sizes that are expected."""


def _bytes(scop: Scop, sizes: Sizes) -> int:
    return sum(bytes_of_arrays(scop, sizes).values())


def with_few_pieces(scop: Scop) -> Scop:
    """Return a region whose statements are cut, itself where that makes many pieces.

    Or where there are many loops: isl has no time for more.
    """
    if max((len(one.loops) for one in scop.statements), default=0) > _MOST_LOOPS:
        return scop
    cut = with_split_sets(scop)
    return scop if len(cut.statements) > _MOST_PIECES else cut


_MOST_LOOPS = 4
"""Loops around a statement that is cut: in five, analysis took more than a region may have."""

_MOST_PIECES = 12
"""Statements of a region that is cut."""


def with_few_sums(scop: Scop) -> Scop:
    """Return a region whose sums have factors taken out, itself where sums take too many bytes."""
    changed, sizes = with_factored_sums(scop), parameter_values(scop)
    return scop if _bytes(changed, sizes) - _bytes(scop, sizes) > _MOST_BYTES else changed


def _outline(scop: Scop) -> list[tuple[str, int]]:
    """Return the statements of a region, and how much each uses."""
    return [(one.name, len(one.accesses)) for one in scop.statements]


def changeable(
    numeric: Sequence[Scop],
    symbolic: Callable[[], Sequence[Scop]],
    change: Callable[[Scop], Scop],
) -> Numbers:
    """Return the regions that a function changes, as for any size."""
    found = list[int]()
    for at, region in enumerate(numeric):
        with suppress(isl.Error), at_most(region.isl_context, _CHANGING):
            changed = change(region)
            if changed is not region and _outline(changed) == _outline(change(symbolic()[at])):
                found.append(region.index)
    return tuple(found)


CLASS_SIZES: Numbers = (32, 64, 16, 128)
"""Steps of a block that are compared; the last two where half or twice as many are best.

More than before only where classes of so many steps fit a launch, as those before do: else each
step is one.
"""

ROW_SIZES: Numbers = (8, 4)
"""The same where rows are added up in a step: one block has so many rows, whole."""

_CHANGING = 20_000_000
"""isl operations to find out whether a region may be changed."""


_MOST_MADE = 48
"""Statements that chunks of recurrences of higher order may make in a region, times the order: isl
takes five seconds for two of order two, and more than a region has for four, or one of order three
whose ends are in chunks."""


def chunkable(numeric: Sequence[Scop], profile: GpuProfile, *, strict_fp: bool) -> Chunks:
    """Return the recurrences that may be cut into chunks, and how long chunks are.

    With ``strict_fp`` those that come to the same value in any order. Of recurrences of higher
    order the first few, so that isl is done in time.
    """
    found = []
    for region in numeric:
        made = 0
        with suppress(isl.Error):
            for one in recurrences(region):
                name = one.statement.name
                still = still_loops(one.statement)
                sizes = tuple(parameter_values(region).items())
                steps, rows = shape_of(one.statement, one.loop, still, sizes)
                floating = region.array(one.statement.write.array).element_type.is_floating
                most_threads = profile.sm_count * profile.max_threads_per_sm
                lengths = scan_chunks(steps, rows, most_threads, one.order)
                each = one.order**2 * (one.order + 1) if one.order > 1 else 0
                lengths = lengths[: (_MOST_MADE - made) // each] if each else lengths
                made += each * len(lengths)
                names = (name, ends_of(name))
                found += [
                    ChunkedScan(region=region.index, statement=own, length=length)
                    for own, length in zip(names, lengths, strict=False)
                    if not (strict_fp and floating)
                ]
    return tuple(found)


def pairable(numeric: Sequence[Scop]) -> Chunks:
    """Return the sums that may be added up in the pass of others, by which parts of rows."""
    found = []
    for region in numeric:
        lengths: dict[str, int] = {}
        with suppress(isl.Error), at_most(region.isl_context, _PAIRS):
            for one in pairs(region):
                own, sizes = one.statement, tuple(parameter_values(region).items())
                moving = tuple(loop for loop in own.loops if loop not in one.still)
                part = pair_part(*shape_of(own, one.within, moving, sizes))
                if part is not None and with_chunked_pairs(region, lengths | {own.name: part}):
                    lengths[own.name] = part
        found += [
            ChunkedScan(region=region.index, statement=name, length=length)
            for name, length in lengths.items()
        ]
    return tuple(found)


_PAIRS = 5_000_000
"""isl operations to find sums of one pass."""


def in_classes(numeric: Scop, general: Scop, size: int, values: SizePairs) -> tuple[Scop, Scop]:
    """Return a region over numbers and for any size in blocks of so many steps.

    Each as it is where it cannot be. That over numbers is cut as that for any size, and is not
    where some of its pieces would be empty: too few steps for blocks of so many.

    Raises:
        InputError: ``EATSS-P026``, nothing is in blocks of so many.
    """
    if not 1 <= size <= max(CLASS_SIZES):
        raise input_error(
            "EATSS-P026",
            f"region {numeric.index} cannot run in blocks of {size} steps",
            hint=f"give classes a size from 1 to {max(CLASS_SIZES)}",
        )

    found = with_class_tiles(general, size)
    if numeric is general:
        return found, found
    if found is general:
        return numeric, found
    return at_sizes(found, numeric, values) or numeric, found


def regions_with(scops: Sequence[Scop], rewrites: Rewrites) -> tuple[Scop, ...]:
    """Return regions changed as they are to be, but for blocks of steps.

    Which nests are fused is of their schedules.

    Raises:
        InputError: ``EATSS-P026``, they cannot.
    """
    found = []
    for scop in scops:
        names = tuple(one.array for one in rewrites.recomputed if one.region == scop.index)
        changed = with_recomputed_producers(scop, names) if names else scop
        if changed is None or not {*names} <= {array.name for array in scop.arrays}:
            raise input_error(
                "EATSS-P026",
                f"region {scop.index} cannot compute {', '.join(names)} anew where it is read",
                hint="select again: the source is another one",
            )
        for regions, change in (
            (rewrites.factored, with_factored_sums),
            (rewrites.reverse, with_reversed_sums),
        ):
            changed = change(changed) if scop.index in regions else changed
        for private in rewrites.private:
            if private.region == scop.index:
                changed = with_private_arrays(changed, private.outer)
        if scop.index in rewrites.split:
            changed = with_split_sets(changed)
        chunks = rewrites.chunks
        lengths = {one.statement: one.length for one in chunks if one.region == scop.index}
        summed = {one.statement.name for one in pairs(changed)} if lengths else ()
        of_sums = {name: own for name, own in lengths.items() if name in summed}
        cut = with_chunked_pairs(changed, of_sums)
        if cut is not None:
            of_scans = {name: own for name, own in lengths.items() if name not in summed}
            cut = with_chunked_scans(cut, of_scans)
        if cut is None:
            raise input_error(
                "EATSS-P026",
                f"region {scop.index} has nothing in {', '.join(lengths)} to cut into chunks",
                hint="select again: the source is another one",
            )
        found.append(cut)
    return tuple(found)


def run_cost(selection: Selection) -> int:
    """Return what a run is expected to cost by the objective, ``NEVER`` where that is not known.

    What runs on the host is not known.
    """
    kernels = [one.predicted for one in selection.kernels if one.predicted is not None]
    published = OBJECTIVES.get(selection.objective).cost is None
    if published or selection.host_statements or len(kernels) < len(selection.kernels):
        return NEVER
    run = Predicted(
        time_s=np.array([sum(one.time_s for one in kernels)]),
        energy_j=np.array([sum(one.energy_j for one in kernels)]),
        terms_s=_summed([one.times_s for one in kernels]),
        terms_j=_summed([one.energies_j for one in kernels]),
        resident_blocks=np.array([min((one.resident_blocks for one in kernels), default=1)]),
    )
    return int(costs(run, selection.objective)[0])


def cheaper(best: Selection, found: Selection) -> Selection:
    """Return another selection where it is expected to cost less, else the best until now."""
    return (best, found)[first_least(map(run_cost, (best, found)))]


def is_far_from_roofline(selection: Selection) -> bool:
    """Tell whether a run is expected to take many times its work at the roofline of the card."""
    run = selection.expected
    return run is not None and run.time_s > _FAR * selection.least_time_s


_FAR = 4.0
"""Times the roofline. Programs of ``kernels/`` that steps hold up are at 100 and more."""


CHUNKS_MARGIN = 5.0
"""How many times faster chunks have to be expected. What threads do step by step is expected up to
3.4 times too slow, passes over chunks twice too fast: on an H200 averages of 2048 rows, expected to
be 3.4 times faster, took 1.4 times longer, sums of 1024 columns, expected 5.8 times, half."""


PAIRS_MARGIN = 1.02
"""How many times faster sums of one pass have to be expected."""


def run_time_s(selection: Selection) -> float:
    """Return the time that the kernels of a run are expected to take, in s."""
    return sum(one.predicted.time_s for one in selection.kernels if one.predicted is not None)


def _summed(kernels: Sequence[Parts]) -> dict[str, Column]:
    """Return the sums of terms by name, as columns of one entry."""
    names = dict.fromkeys(name for parts in kernels for name, _ in parts)
    return {
        name: np.array([sum(dict(parts).get(name, 0.0) for parts in kernels)]) for name in names
    }


CodeSchedules: TypeAlias = Callable[[], Sequence[ScheduledScop]]
"""Gives the schedules of a program's regions that code is made from."""


def select_for(
    program: AnalysedProgram,
    profile: GpuProfile,
    options: ModelOptions,
    *,
    strict_fp: bool = False,
    fuse_rows: bool = True,
    tile_time: bool = True,
    code: CodeSchedules | None = None,
    below: int = NEVER,
    known: Known | None = None,
    progress: Progress = no_progress,
) -> Selection:
    """Take kernel facts and a card to a selection.

    Args:
        program: the kernels.
        profile: the card.
        options: target, objective and bounds.
        strict_fp: whether generated code keeps the order of all operations.
        fuse_rows: whether kernels that share rows, or a loop on the host, may become one.
        tile_time: whether several steps of a loop over time, or of a factorisation, may.
        code: gives the schedules that code is made from.
        below: as for :func:`select_program`.
        known: as for :func:`select_program`.
        progress: hears which kernel it is at.

    Raises:
        InputError: ``EATSS-K019``, TF32 beside ``strict_fp``; ``EATSS-M001``, the card has none.
        NoSolutionError: no sizes satisfy the limits of the card.
    """
    if options.tf32 != "off":
        _check_tf32(profile, strict_fp=strict_fp)
    if options.model in PUBLISHED:
        allow_more((options.timeout_s or DEFAULT_TIMEOUT_S) * len(program.facts))
    else:
        allow_more(longest_s(options))
    variants = None
    runs = Runs()
    if TARGETS[options.target].own and options.model == "prediction":
        from eatss.lower.variants import kernel_variants_for  # noqa: PLC0415 - PPCG needs none

        progress("trying how kernels can be cut")
        variants = kernel_variants_for(program, profile, strict_fp=strict_fp, tf32=options.tf32)
        if fuse_rows:
            from eatss.lower.loop_blocks import loop_runs_for  # noqa: PLC0415
            from eatss.lower.row_planning import row_runs_for  # noqa: PLC0415

            loops = loop_runs_for(program, code)
            rows = row_runs_for(program, profile, strict_fp=strict_fp, code=code)
            runs = replace(runs, loops=loops, rows=rows)
        if tile_time:
            from eatss.lower.class_blocks import class_runs_for  # noqa: PLC0415
            from eatss.lower.time_tiles import time_runs_for  # noqa: PLC0415

            times, classes = time_runs_for(program, code), class_runs_for(program, code)
            runs = replace(runs, times=times, classes=classes)
    selection = select_program(
        program.facts,
        profile,
        options,
        file=program.file,
        functions=program.functions,
        host_statements=program.host_statements,
        dtype=program.dtype,
        variants=variants,
        runs=runs,
        strict_fp=strict_fp,
        below=below,
        known=known,
        progress=progress,
    )
    of_run = _of_run(program, profile, options.target, tf32=options.tf32 != "off")
    selection = replace(selection, warnings=program.doubts, **of_run)
    notes = _amount_notes(program, selection, profile, options.target)
    return replace(selection, warnings=selection.warnings + notes)


def _amount_notes(
    program: AnalysedProgram,
    found: Selection | ProgramExpectation,
    profile: GpuProfile,
    target: TargetName,
) -> Diagnostics:
    """Return what is said of arrays that a card has no room for, or PPCG's code no subscripts."""
    span, taken = next((scop.scop.span for scop in program.scops), None), program.array_bytes
    where = "with -D or --param" if found.sizes else "in the source"

    def warning(code: str, message: str) -> Diagnostic:
        hint = f"give smaller sizes {where}"
        one = Diagnostic(
            code=code, severity=Severity.WARNING, message=message, span=span, hint=hint
        )
        return with_source_line(one)

    notes: Diagnostics = ()
    if taken > profile.memory_bytes:
        notes += (
            warning(
                "EATSS-M026",
                f"the arrays take {bytes_text(taken)} {sizes_text(found.sizes)}, and "
                f"{profile.name} has {bytes_text(profile.memory_bytes)} of memory; the prediction "
                "assumes that the arrays fit in it",
            ),
        )
    if not TARGETS[target].own and program.beyond_32_bits:
        names = ", ".join(program.beyond_32_bits)
        notes += (
            warning(
                "EATSS-M027",
                f"subscripts of PPCG's code have 32 bits, which overflow in {names} "
                f"{sizes_text(found.sizes)}: it accesses memory that is not the array's",
            ),
        )
    return notes


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
    from eatss.lower.requests import Kernels  # noqa: PLC0415

    kernels = Kernels(program.facts)
    found = expect(
        program.facts,
        profile,
        tiles={name: dict(sizes) for name, sizes in kernels.tile_sizes(wanted.tiles or {})},
        blocks={
            name: dict(sizes.threads) if isinstance(sizes, NamedThreads) else sizes
            for name, sizes in kernels.blocks(wanted.block)
        },
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
    from eatss.lower.variants import (  # noqa: PLC0415 - PPCG's target needs none
        kernel_variants_for,
        with_own_sizes,
    )

    tf32 = selection.options.tf32
    variants = kernel_variants_for(program, profile, strict_fp=options.strict_fp, tf32=tf32)
    own = with_own_sizes(selection, program.facts, variants, profile, options)
    found = expect_cuda(program.facts, variants, profile, selection, own)
    return _expectation(program, profile, found, "cuda", tf32=tf32 != "off")


def at_clocks(
    expect: Callable[[GpuProfile], ProgramExpectation], profile: GpuProfile, over_clock: bool
) -> ProgramExpectation:
    """Return what is expected, and at each of :data:`CLOCK_SHARES` of the clock if so asked.

    Of kernels that become one it is not known.
    """
    from eatss.choose.expectation import AtClock  # noqa: PLC0415 - select needs none

    found, clocks = expect(profile), list[AtClock]()
    known = not any(kernel.joined for kernel in found.kernels)
    for share in CLOCK_SHARES if over_clock and known else ():
        held = replace(profile, clock_share=share)
        run = expect(held)
        clock_mhz = calibration_of(held)["clock_mhz"]
        clocks.append(AtClock(clock_mhz=clock_mhz, time_s=run.time_s, energy_j=run.energy_j))
    return replace(found, clocks=tuple(clocks))


def _expectation(
    program: AnalysedProgram,
    profile: GpuProfile,
    kernels: tuple[KernelExpectation, ...],
    target: TargetName,
    options: PpcgOptions | None = None,
    *,
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
        warnings=program.doubts,
        host_statements=program.host_statements if TARGETS[target].on_host else (),
        **_of_run(program, profile, target, tf32=tf32),
    )
    return replace(found, warnings=found.warnings + _amount_notes(program, found, profile, target))


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
) -> Program:
    """Take schedules and a recipe to CUDA; kernels note which loops of each region are slow.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be.
    """
    from eatss.cuda.generate import RegionInput, generate  # noqa: PLC0415 - loads slowly

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
        )

"""``Scop`` × ``Recipe`` in, ``Program`` out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from eatss.analysis.operations import work_of
from eatss.base.diagnostics import input_error
from eatss.cards import GpuProfile
from eatss.cuda.file_text import file_text
from eatss.cuda.region import Made, RegionBuilder, RegionInput, WideIndicesError
from eatss.cuda.signature import (
    parameters_of,
)
from eatss.lower.assumptions import (
    index_bits_of,
)
from eatss.lower.instructions import ATOMICS, SHUFFLES
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.kernel.uses import Needs, needs_of
from eatss.lower.recipe.recipe import Recipe, recipe_to_dict
from eatss.lower.size_products import (
    work_written_out,
    written_out,
)
from eatss.polyhedral.dependences import bounded_work, compute_dependences, default_operations
from eatss.program import (
    Original,
    Program,
)

_OF_SUMS = (*ATOMICS.values(), *SHUFFLES.values())


def check_capability(kernels: Sequence[Kernel], profile: GpuProfile) -> None:
    """Refuse a card that lacks what kernels use.

    Raises:
        InputError: ``EATSS-K012``.
    """
    needs = Needs()
    for kernel in kernels:
        needs = needs.joined(needs_of(kernel))
    has = profile.compute_capability
    for instruction, element_type in sorted(needs.instructions, key=lambda one: one[0].name):
        needed = instruction.least(element_type)
        if has < needed.least:
            what = instruction.what
            if needed.element_type is not None:
                what += f" on {element_type.value}"
            major, minor = needed.least
            raise input_error(
                "EATSS-K012",
                f"the code needs compute capability {major}.{minor} for {what}, and "
                f"{profile.title} has {has[0]}.{has[1]}",
                hint="--strict-fp keeps sums of floating-point numbers whole and needs neither "
                "atomics nor shuffles for them; or choose another card with --gpu"
                if instruction in _OF_SUMS
                else "leave the instruction out, or choose another card with --gpu",
            )


GENERATION_FACTOR = 4
"""How much more isl may do for code than for the schedule by default; PolyBench needs less."""


def generate(
    regions: Sequence[RegionInput],
    recipe: Recipe,
    profile: GpuProfile,
    *,
    name: str,
    original: Original,
    parameters: Sequence[tuple[str, int]],
    max_operations: int | None = None,
) -> Program:
    """Generate CUDA for every region of a file.

    Args:
        regions: the regions in source order, scheduled over symbolic sizes.
        recipe: what was decided about every kernel, numbered through the file.
        profile: the card that it is for.
        name: name of the program and of its ``.cu`` file.
        original: where the C is.
        parameters: macro sizes with the values they have in the source.
        max_operations: bound on isl's work for one region; ``None`` for
            ``GENERATION_FACTOR`` times that of scheduling.

    Returns:
        The program; its text compiles as CUDA and, with a shim, as C++ for the CPU.

    Raises:
        InputError: ``EATSS-K0xx``, sizes or placements that cannot be; ``EATSS-K012``, the card
            lacks what kernels use; ``EATSS-P001`` when isl's work exceeds ``max_operations``;
            ``EATSS-K016``: 32-bit indices were asked for and do not hold.
        InternalError: ``EATSS-K9xx``, a check of the generated code failed.
    """
    macros, options = dict(parameters), recipe.options
    limit = max_operations
    bits: Literal[32, 64] = options.index_bits or max(
        index_bits_of(region.scheduled.scop, macros) for region in regions
    )
    try:
        made = _regions(regions, recipe, profile, bits, macros, limit)
    except WideIndicesError as need:
        if options.index_bits is not None:
            raise input_error(
                "EATSS-K016",
                f"indices of 32 bits do not hold what is computed for {need.what}",
                span=need.scop.span,
                hint="leave --index away, or give --index 64",
            ) from None
        bits = 64
        made = _regions(regions, recipe, profile, bits, macros, limit)
    program = Program(
        name=name,
        file=f"{name}.cu",
        text="",
        original=original,
        gpu=profile.name,
        compute_capability=profile.compute_capability[0] * 10 + profile.compute_capability[1],
        dtype=recipe.dtype,
        strict_fp=options.strict_fp,
        index_bits=bits,
        flags=("-fmad=false",) if options.strict_fp else (),
        parameters=parameters_of(
            [(region.scheduled.scop, region.generic) for region in regions], macros, made.tiles
        ),
        kernels=tuple(made.kernels),
        entries=tuple(made.entries),
        recipe=recipe_to_dict(recipe),
    )
    check_capability(made.code, profile)
    return file_text(program, made.code, line_info=options.line_info)


def _regions(
    regions: Sequence[RegionInput],
    recipe: Recipe,
    profile: GpuProfile,
    bits: Literal[32, 64],
    macros: dict[str, int],
    max_operations: int | None,
) -> Made:
    """Make the code of all regions with indices of some width.

    Raises:
        WideIndicesError: 32 bits do not hold them.
    """
    made = Made()
    for region in regions:
        builder = RegionBuilder(region, recipe, profile, bits, made)
        scop = region.scheduled.scop
        dependences = region.scheduled.dependences
        with bounded_work(scop, max_operations or GENERATION_FACTOR * default_operations(scop)):
            entry = builder.build(single=len(regions) == 1, macros=macros)
            if scop.written is not None:
                dependences = compute_dependences(scop.written)
        work = work_of(scop.written or scop, dependences, builder.outside)
        work = work_written_out(work, scop.products)
        made.entries.append(replace(written_out(entry, scop.products), work=work))
    return made

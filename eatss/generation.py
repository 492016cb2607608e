"""The steps of code generation as the API and the command line take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Literal

from eatss.analysis import VolumeKind
from eatss.cuda.folder import write_program
from eatss.cuda.original import OriginalFiles, original_files, program_name
from eatss.diagnostics import Diagnostic, InputError, input_error
from eatss.files import folder_named
from eatss.frontend import FrontendOptions, type_macros
from eatss.gpu import GpuProfile
from eatss.model import PUBLISHED, ModelOptions, Selection
from eatss.pipeline import (
    AnalysisOptions,
    SymbolicProgram,
    analyse_symbolic,
    generate_for,
    select_for,
)
from eatss.program import Program
from eatss.recipe.from_selection import recipe_of
from eatss.recipe.recipe import Recipe
from eatss.recipe.requests import Block, Tiles, check_recipe, check_selection, checked_options
from eatss.scop import Array, Scop


@dataclass(frozen=True, slots=True, kw_only=True)
class CodegenInput:
    """A C file, analysed and scheduled, with the files it was read from.

    ``max_operations`` bounds isl's work on one region.
    """

    name: str
    symbolic: SymbolicProgram
    originals: OriginalFiles
    max_operations: int | None = None

    @property
    def scops(self) -> tuple[Scop, ...]:
        """The regions."""
        return tuple(region.scheduled.scop for region in self.symbolic.regions)


def analyse_for_codegen(
    source: str | PathLike[str],
    frontend: FrontendOptions,
    *,
    volume: VolumeKind,
    dtype: str | None,
    schedules: str | None,
    max_operations: int | None,
) -> CodegenInput:
    """Analyse and schedule a C file for code generation.

    Args:
        source: path of a C file, or C source text.
        frontend: how it is read.
        volume: how tile volumes are counted.
        dtype: floating-point type to compute in; ``None`` for that of the source.
        schedules: text of saved schedules that replace the scheduler's.
        max_operations: bound on isl's work for one region.

    Raises:
        InputError: the source is refused, or ``EATSS-K010``: its type cannot be changed.
    """
    options = AnalysisOptions(
        frontend=frontend, volume=volume, dtype=dtype, max_operations=max_operations
    )
    if dtype is not None:
        frontend = _with_type(source, frontend, dtype)
        options = replace(options, frontend=frontend)
    symbolic = analyse_symbolic(source, options, schedules=schedules)
    if dtype is not None:
        _check_type(symbolic, dtype)
    name = program_name(source, symbolic.regions[0].scheduled.scop.function)
    originals = original_files(
        source, name, defines=frontend.defines, include_dirs=frontend.include_dirs
    )
    return CodegenInput(
        name=name, symbolic=symbolic, originals=originals, max_operations=max_operations
    )


def recipe_for(
    program: CodegenInput,
    selection: Selection,
    profile: GpuProfile,
    *,
    tiles: Tiles,
    block: Block,
    placements: Mapping[str, str],
    strict_fp: bool,
    index_bits: Literal[32, 64] | None,
    line_info: bool,
    shared_limit_bytes: int | None,
) -> Recipe:
    """Return what a selection and the user decide; arguments are those of ``eatss.codegen``.

    Raises:
        InputError: ``EATSS-K0xx``, they do not fit the program.
    """
    facts = program.symbolic.program.facts
    check_selection(selection, facts, profile, program.symbolic.program.dtype)
    options = checked_options(
        facts,
        program.scops,
        tiles=tiles,
        block=block,
        placements=placements,
        strict_fp=strict_fp,
        index_bits=index_bits,
        line_info=line_info,
        shared_limit_bytes=shared_limit_bytes,
    )
    if selection.options.model in PUBLISHED and not strict_fp:
        selection = _with_cuts(selection, program, profile)
    return recipe_of(selection, options)


def check_alone(recipe: Recipe | None, chosen: Mapping[str, object]) -> None:
    """Refuse choices beside a recipe, which has all of them.

    Raises:
        InputError: ``EATSS-C015``.
    """
    given = [name for name, value in chosen.items() if value]
    if recipe is not None and given:
        raise input_error(
            "EATSS-C015",
            f"{', '.join(given)} beside a recipe: it has everything that is decided",
            hint="leave them out, or edit the recipe",
        )


def generated(program: CodegenInput, recipe: Recipe, profile: GpuProfile) -> Program:
    """Generate CUDA for an analysed file: what a recipe says.

    Raises:
        InputError: ``EATSS-K018``, the recipe is for another program; those of ``eatss.codegen``.
    """
    known = program.symbolic.program
    check_recipe(recipe, known.facts, program.scops, profile, known.dtype)
    return generate_for(
        program.symbolic,
        recipe,
        profile,
        name=program.name,
        original=program.originals.original,
        max_operations=program.max_operations,
    )


def _with_cuts(selection: Selection, program: CodegenInput, profile: GpuProfile) -> Selection:
    """Return sizes of a published model with what it has no variables for, as predicted.

    That is how sums are spread and which loop runs on the host.
    """
    options = ModelOptions(target="cuda")
    predicted = select_for(program.symbolic.program, profile, options)
    kernels = tuple(
        replace(kernel, spread=cut.spread, sum_loops=cut.sum_loops, host_loop=cut.host_loop)
        for kernel, cut in zip(selection.kernels, predicted.kernels, strict=True)
    )
    return replace(selection, kernels=kernels)


def written(
    program: CodegenInput, result: Program, output: str | PathLike[str], *, force: bool
) -> tuple[str, ...]:
    """Write the folder of a program; return its files, as ``write_program``."""
    return write_program(result, program.originals, folder_named(output), force=force)


def _with_type(
    source: str | PathLike[str], frontend: FrontendOptions, dtype: str
) -> FrontendOptions:
    """Define the macros that name the floating-point type."""
    macros = type_macros(source, frontend)
    return replace(frontend, defines=(*frontend.defines, *(f"{macro}={dtype}" for macro in macros)))


def _check_type(symbolic: SymbolicProgram, dtype: str) -> None:
    """Refuse arrays and numbers that are not of the type asked for."""
    others = [
        (array, region.scheduled.scop)
        for region in symbolic.regions
        for array in _floating(region.scheduled.scop)
        if array.element_type.value != dtype
    ]
    if others:
        array, scop = others[0]
        raise InputError(
            Diagnostic(
                code="EATSS-K010",
                message=f"'{array.name}' is of type {array.element_type.value}, which --dtype "
                f"{dtype} cannot change",
                span=scop.span,
                hint="spell the type by a macro: #ifndef DATA_TYPE, #define DATA_TYPE double, "
                "#endif; or give the macro that chooses it with -D",
            )
        )
    if not any(True for region in symbolic.regions for _ in _floating(region.scheduled.scop)):
        raise input_error(
            "EATSS-K010",
            f"nothing in the source is of a floating-point type that --dtype {dtype} could change",
            hint="leave --dtype out",
        )


def _floating(scop: Scop) -> Iterator[Array]:
    arrays: Sequence[Array] = scop.arrays
    return (array for array in arrays if array.element_type.is_floating)

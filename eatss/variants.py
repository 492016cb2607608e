"""From a C file to folders of generated programs that can be measured: the steps in order.

``FILE.c`` is analysed once, selected for once, and generated for every choice of tile sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Literal

from eatss import generation
from eatss.analysis import VolumeKind
from eatss.api import frontend_options, select_analysed
from eatss.diagnostics import Diagnostic, EatssError, InputError, NoSolutionError, input_error
from eatss.gpu import GpuProfile, load_profile
from eatss.gpu.detect import Detection, detect, match_profile, profile_from_device
from eatss.measurement.options import Variant
from eatss.model import Selection
from eatss.tile_choice import SELECTED, TileChoice

AUTO = "auto"
"""The word for the card in this machine."""

_MISTAKES = frozenset({"EATSS-E041", "EATSS-K001", "EATSS-K002", "EATSS-K013"})
"""What is wrong with the words of a choice, and not with its sizes on this card."""

_NO_NVML = object()
"""Stands in for NVML where only CUDA is to be asked."""

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.=-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How C is read and for which card sizes are selected.

    ``gpu`` is ``"auto"`` for the card in this machine, the name of a shipped profile, the path of
    a TOML profile, or a profile. The others are arguments of :func:`eatss.select`. ``force``
    replaces files in the folder that eatss did not write.
    """

    gpu: str | PathLike[str] | GpuProfile = AUTO
    dtype: Literal["float", "double"] | None = None
    defines: Mapping[str, str | int] | Sequence[str] = ()
    include_dirs: Sequence[str | PathLike[str]] = ()
    parameters: Mapping[str, int] | None = None
    function: str | None = None
    scop: int | None = None
    max_operations: int | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedVariants:
    """Variants of one C file, and the warnings of reading it."""

    variants: tuple[Variant, ...]
    warnings: tuple[Diagnostic, ...]


def generate_variants(
    source: str | PathLike[str],
    choices: Sequence[TileChoice],
    options: SourceOptions | None,
    folder: Path,
    *,
    device: int | str = 0,
) -> GeneratedVariants:
    """Generate a program for every choice of tile sizes, each into a folder of its own.

    Sizes that the model, the card or the generator refuses give a variant with a ``rejection``.

    Raises:
        InputError: the source, the profile or the words of a choice are wrong.
    """
    reading = options or SourceOptions()
    profile = profile_for(reading.gpu, device)
    program = _analysed(source, reading)
    try:
        selection = select_analysed(program.symbolic.program, gpu=profile, target="cuda")
    except NoSolutionError as error:
        variants = [_rejected(choice, error) for choice in choices]
    else:
        variants = [
            _variant(program, selection, profile, choice, folder, force=reading.force)
            for choice in choices
        ]
    return GeneratedVariants(variants=tuple(variants), warnings=program.symbolic.warnings)


def generate_one(
    source: str | PathLike[str],
    options: SourceOptions | None,
    folder: Path,
    *,
    device: int | str = 0,
) -> tuple[Variant, tuple[Diagnostic, ...]]:
    """Select for a C file and generate its program into a folder; return it with the warnings.

    Raises:
        InputError: the source, the profile or the folder is wrong.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    reading = options or SourceOptions()
    profile = profile_for(reading.gpu, device)
    program = _analysed(source, reading)
    selection = select_analysed(program.symbolic.program, gpu=profile, target="cuda")
    _generate(program, selection, profile, TileChoice(label=SELECTED), folder, reading.force)
    return Variant(label=SELECTED, directory=folder), program.symbolic.warnings


def profile_for(gpu: str | PathLike[str] | GpuProfile, device: int | str = 0) -> GpuProfile:
    """Return a profile; for ``"auto"`` that of the card in this machine.

    Raises:
        InputError: ``EATSS-E046`` there is no such card, ``EATSS-G0xx`` no such profile.
    """
    if isinstance(gpu, GpuProfile):
        return gpu
    if gpu != AUTO:
        return load_profile(gpu)
    return profile_of_device(in_order_of_cuda(detect(), detect(nvml=_NO_NVML)), device)


def in_order_of_cuda(detection: Detection, by_cuda: Detection) -> Detection:
    """Return the cards that CUDA sees, in its order, which the number of a card refers to.

    ``CUDA_VISIBLE_DEVICES`` hides cards and changes their order; NVML always lists all.
    """
    known = {gpu.uuid: gpu for gpu in detection.gpus if gpu.uuid}
    visible = tuple(known.get(gpu.uuid, gpu) for gpu in by_cuda.gpus)
    return replace(detection, gpus=visible) if visible else detection


def profile_of_device(detection: Detection, device: int | str) -> GpuProfile:
    """Return the shipped profile of a detected card, or one built from what its driver reports.

    Args:
        detection: the cards, in the order that numbers refer to.
        device: the number of one, or its UUID.

    Raises:
        InputError: ``EATSS-E046`` there is no such card, ``EATSS-G030`` or ``EATSS-G031`` it
            reports too little.
    """
    found = next(
        (gpu for number, gpu in enumerate(detection.gpus) if device in (number, gpu.uuid)), None
    )
    if found is not None:
        return match_profile(found) or profile_from_device(found)
    if detection.gpus:
        names = "; ".join(f"{k}: {gpu.name}" for k, gpu in enumerate(detection.gpus))
        raise input_error(
            "EATSS-E046", f"there is no GPU {device}", hint=f"this machine has {names}"
        )
    reasons = "; ".join(detection.reasons) or "none answers"
    raise input_error(
        "EATSS-E046",
        f"no GPU to select for was found: {reasons}",
        hint="measuring needs an NVIDIA GPU with its driver, CuPy and NVML: eatss doctor says what "
        "is missing; programs for another machine are made with: eatss codegen FILE.c --gpu NAME "
        "-o DIR",
    )


def _analysed(source: str | PathLike[str], options: SourceOptions) -> generation.CodegenInput:
    return generation.analyse_for_codegen(
        source,
        frontend_options(
            options.defines,
            options.include_dirs,
            options.parameters,
            options.function,
            options.scop,
        ),
        volume=VolumeKind.FOOTPRINT,
        dtype=options.dtype,
        schedules=None,
        max_operations=options.max_operations,
    )


def _variant(
    program: generation.CodegenInput,
    selection: Selection,
    profile: GpuProfile,
    choice: TileChoice,
    folder: Path,
    *,
    force: bool,
) -> Variant:
    directory = folder / (_UNUSUAL.sub("-", choice.label).strip("-.") or "variant")
    try:
        _generate(program, selection, profile, choice, directory, force)
    except (InputError, NoSolutionError) as error:
        if error.code in _MISTAKES or error.code == "EATSS-C008":
            raise
        return _rejected(choice, error)
    return Variant(label=choice.label, directory=directory)


def _generate(
    program: generation.CodegenInput,
    selection: Selection,
    profile: GpuProfile,
    choice: TileChoice,
    directory: Path,
    force: bool,
) -> None:
    kernels = [
        (kernel.name, tuple(loop.name for loop in kernel.loops))
        for kernel in program.symbolic.program.facts
    ]
    recipe = generation.recipe_for(
        program,
        selection,
        profile,
        tiles=choice.tiles(kernels),
        block=(),
        placements={},
        strict_fp=False,
        index_bits=None,
        line_info=False,
        shared_limit_bytes=None,
    )
    result = generation.generated(program, recipe, profile)
    generation.written(program, result, directory, force=force)


def _rejected(choice: TileChoice, error: EatssError) -> Variant:
    reason = "; ".join(found.message for found in error.diagnostics)
    return Variant(label=choice.label, directory=None, rejection=reason)

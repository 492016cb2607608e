"""The Python API: ``eatss.select`` and ``eatss.inspect``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal

from eatss.analysis import VolumeKind
from eatss.diagnostics import InputError, input_error
from eatss.frontend import FrontendOptions
from eatss.gpu import GpuProfile, load_profile
from eatss.model import ModelOptions, Selection
from eatss.pipeline import (
    AnalysedProgram,
    AnalysisOptions,
    analyse_program,
    select_for,
)


def select(
    source: str | PathLike[str],
    *,
    gpu: str | PathLike[str] | GpuProfile,
    dtype: Literal["float", "double"] | None = None,
    model: Literal["eatss", "paper"] = "eatss",
    volume: Literal["product", "footprint"] | None = None,
    split: float | Literal["auto"] = "auto",
    warp_fraction: float | Literal["auto"] = "auto",
    uniform: bool = False,
    timeout_s: float | None = None,
    shared_per_block: int | Literal["default", "opt-in"] = "default",
    defines: Mapping[str, str | int] | Sequence[str] = (),
    include_dirs: Sequence[str | PathLike[str]] = (),
    parameters: Mapping[str, int] | None = None,
    function: str | None = None,
    scop: int | None = None,
    max_operations: int | None = None,
) -> Selection:
    """Select tile sizes for every kernel of a C file or of C source text.

    Safe to call from several threads at once; equal input gives equal output.

    Args:
        source: Path of a C file, or C source text (a ``str`` with a line break).
        gpu: Name of a shipped profile (``"a100"``), path of a TOML profile, or a
            profile.
        dtype: Overrides the floating-point type of the source.
        model: ``"paper"`` keeps to EATSS as published, ``"eatss"`` counts exact
            footprints.
        volume: How tile volumes are counted; by default ``"product"`` for the paper's
            model, else ``"footprint"``.
        split: Share of L1 + shared memory that is shared, 0 to 1; ``"auto"`` tries the
            grid of Sec. V.
        warp_fraction: Tile sizes are multiples of this fraction of a warp; ``"auto"``
            tries the grid.
        uniform: One vector of tile sizes for the whole program, as in the paper.
        timeout_s: Bound on the solving of each kernel, all cells of the grid together (20 s
            by default); when it ends one, ``optimal`` says ``best found``.
        shared_per_block: Shared memory one block may have: the static limit of
            CUDA, the opt-in maximum of the card, or bytes.
        defines: Preprocessor macros, as a mapping or as ``"NAME=VALUE"`` strings.
        include_dirs: Folders searched for included files.
        parameters: Values of integer parameters of the region (``{"n": 4000}``).
        function: Only regions of this function.
        scop: Only the region with this number, from 0.
        max_operations: Bound on isl's work for one region.

    Raises:
        InputError: the source, the profile or an option is wrong; carries all
            findings.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    program = inspect(
        source,
        dtype=dtype,
        volume=volume or default_volume(model),
        defines=defines,
        include_dirs=include_dirs,
        parameters=parameters,
        function=function,
        scop=scop,
        max_operations=max_operations,
    )
    return select_analysed(
        program,
        gpu=gpu,
        model=model,
        split=split,
        warp_fraction=warp_fraction,
        uniform=uniform,
        timeout_s=timeout_s,
        shared_per_block=shared_per_block,
    )


def select_analysed(
    program: AnalysedProgram,
    *,
    gpu: str | PathLike[str] | GpuProfile,
    model: Literal["eatss", "paper"] = "eatss",
    split: float | Literal["auto"] = "auto",
    warp_fraction: float | Literal["auto"] = "auto",
    uniform: bool = False,
    timeout_s: float | None = None,
    shared_per_block: int | Literal["default", "opt-in"] = "default",
) -> Selection:
    """Select for a program that :func:`inspect` analysed: once parsed, many cards.

    Arguments and errors are those of :func:`select`.
    """
    profile = _profile(gpu)
    options = ModelOptions(
        model=model,
        split=_number("split", split),
        warp_fraction=_number("warp_fraction", warp_fraction),
        uniform=uniform,
        timeout_s=timeout_s,
        shared_per_block_bytes=shared_limit_bytes(profile, shared_per_block),
    )
    return select_for(program, profile, options)


def default_volume(model: str) -> Literal["product", "footprint"]:
    """Return how the given model counts volumes unless told otherwise."""
    return "product" if model == "paper" else "footprint"


def inspect(
    source: str | PathLike[str],
    *,
    dtype: Literal["float", "double"] | None = None,
    volume: Literal["product", "footprint"] = "footprint",
    defines: Mapping[str, str | int] | Sequence[str] = (),
    include_dirs: Sequence[str | PathLike[str]] = (),
    parameters: Mapping[str, int] | None = None,
    function: str | None = None,
    scop: int | None = None,
    max_operations: int | None = None,
) -> AnalysedProgram:
    """Return domains, accesses, dependences, schedule, kernels and facts of a C file.

    Arguments and errors are those of :func:`select`. The isl objects of the result belong
    to one isl context: use a result in one thread at a time.
    """
    frontend = FrontendOptions(
        include_dirs=tuple(str(d) for d in include_dirs),
        defines=_define_strings(defines),
        function=function,
        scop=scop,
        parameter_values=tuple(sorted((parameters or {}).items())),
    )
    options = AnalysisOptions(
        frontend=frontend,
        volume=VolumeKind(_one_of("volume", volume, ("product", "footprint"))),
        dtype=dtype,
        max_operations=max_operations,
    )
    return analyse_program(source, options)


def shared_limit_bytes(profile: GpuProfile, limit: int | str) -> int:
    """Return the shared memory one block may have, in bytes."""
    if limit == "default":
        return profile.shared_per_block_bytes
    if limit == "opt-in":
        return profile.shared_per_block_optin_bytes
    if isinstance(limit, int) and not isinstance(limit, bool):
        return limit
    raise _wrong("shared_per_block", limit, "default, opt-in or a number of bytes")


def _profile(gpu: object) -> GpuProfile:
    if isinstance(gpu, GpuProfile):
        return gpu
    if isinstance(gpu, str | PathLike):
        return load_profile(gpu)
    raise _wrong("gpu", gpu, "the name of a card, the path of a profile, or a profile")


def _number(option: str, value: object) -> float | None:
    """Return a number, or ``None`` for ``"auto"`` (and for ``None``)."""
    if value is None or value == "auto":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise _wrong(option, value, "auto or a number from 0 to 1")


def _one_of(option: str, value: str, known: tuple[str, ...]) -> str:
    if value in known:
        return value
    raise _wrong(option, value, " or ".join(known))


def _wrong(option: str, value: object, wanted: str) -> InputError:
    return input_error("EATSS-C004", f"{option} is {value!r}", hint=f"give {wanted}")


def _define_strings(defines: Mapping[str, str | int] | Sequence[str]) -> tuple[str, ...]:
    if isinstance(defines, Mapping):
        return tuple(f"{name}={value}" for name, value in defines.items())
    return tuple(defines)

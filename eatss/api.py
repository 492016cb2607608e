"""The Python API: ``eatss.select``, ``eatss.predict``, ``eatss.inspect``, ``eatss.codegen``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eatss.analysis import VolumeKind
from eatss.diagnostics import InputError, input_error
from eatss.forked import in_bounds
from eatss.frontend import FrontendOptions
from eatss.gpu import GpuProfile, load_profile
from eatss.model import (
    OBJECTIVES,
    PUBLISHED,
    ModelName,
    ModelOptions,
    ObjectiveName,
    PpcgOptions,
    Selection,
    TargetName,
)
from eatss.model.ppcg import PPCG_SHARED_BYTES
from eatss.pipeline import (
    AnalysedProgram,
    AnalysisOptions,
    Cut,
    analyse_program,
    doubts_of,
    expect_generated,
    functions_of,
    select_for,
)
from eatss.program import Program

if TYPE_CHECKING:
    from eatss.model.expectation import ProgramExpectation
    from eatss.recipe.recipe import Recipe
    from eatss.recipe.requests import Block, Tiles


@in_bounds
def select(
    source: str | PathLike[str],
    *,
    gpu: str | PathLike[str] | GpuProfile,
    dtype: Literal["float", "double"] | None = None,
    target: TargetName = "ppcg",
    objective: ObjectiveName | None = None,
    model: ModelName | None = None,
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
    ppcg_schedule: str | PathLike[str] | None = None,
) -> Selection:
    """Select tile sizes for every kernel of a C file or of C source text.

    Safe to call from several threads at once; equal input gives equal output.

    Args:
        source: Path of a C file, or C source text (a ``str`` with a line break).
        gpu: Name of a shipped profile (``"a100"``), path of a TOML profile, or a
            profile.
        dtype: Overrides the floating-point type of the source.
        target: What makes code from the sizes: ``"ppcg"``, or ``"cuda"`` for eatss itself.
        objective: ``"energy"`` (the default), ``"time"`` or ``"edp"`` of a run as predicted,
            ``"paper"``, the objective of EATSS, or another name of ``eatss.model.OBJECTIVES``.
        model: For the paper's objective: ``"paper"`` keeps to EATSS as published, ``"eatss"``
            counts exact footprints.
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
        ppcg_schedule: Path of a schedule that PPCG saved (``ppcg --save-schedule``): sizes are for
            the kernels that PPCG makes of it. Without it eatss schedules as PPCG does, and
            ``warnings`` of the selection say where that is not sure.

    Raises:
        InputError: the source, the profile or an option is wrong; carries all
            findings.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    name, goal = resolve_model(
        target=target,
        objective=objective,
        model=model,
        published=uniform or warp_fraction != "auto" or split != "auto" or volume is not None,
    )
    program = inspect(
        source,
        dtype=dtype,
        volume=volume or default_volume(name),
        defines=defines,
        include_dirs=include_dirs,
        parameters=parameters,
        function=function,
        scop=scop,
        max_operations=max_operations,
        ppcg_schedule=ppcg_schedule,
        cut=cut_for(target),
    )
    return select_analysed(
        program,
        gpu=gpu,
        target=target,
        objective=goal,
        model=name,
        split=split,
        warp_fraction=warp_fraction,
        uniform=uniform,
        timeout_s=timeout_s,
        shared_per_block=shared_per_block,
    )


def resolve_model(
    *,
    target: TargetName,
    objective: ObjectiveName | None,
    model: ModelName | None,
    published: bool,
) -> tuple[ModelName, ObjectiveName]:
    """Return how the objective is computed, and the objective.

    Args:
        target: what makes the code.
        objective: what the user names, if anything.
        model: likewise.
        published: whether an option is given that only the paper's objective has (a split, a warp
            fraction, one vector, a way to count volumes).

    Raises:
        InputError: ``EATSS-C012``, they do not go together.
    """
    _one_of("target", target, ("ppcg", "cuda"))
    if objective is not None:
        OBJECTIVES.get(objective)
    if model is not None:
        _one_of("model", model, ("eatss", "paper", "prediction"))
    if (
        model in PUBLISHED
        or objective == "paper"
        or (published and objective is None and model is None)
    ):
        if objective not in (None, "paper") or model not in (None, *PUBLISHED):
            raise input_error(
                "EATSS-C012",
                f"the model {model} has an objective of its own, not {objective}",
                hint="leave out one of the two",
            )
        return model or ("paper" if objective == "paper" else "eatss"), "paper"
    goal = objective or "energy"
    if published:
        raise input_error(
            "EATSS-C012",
            "splits, warp fractions, volumes and one vector belong to the paper's objective, "
            f"not to {goal}",
            hint="leave them out, or take --objective paper",
        )
    return "prediction", goal


def select_analysed(
    program: AnalysedProgram,
    *,
    gpu: str | PathLike[str] | GpuProfile,
    target: TargetName = "ppcg",
    objective: ObjectiveName | None = None,
    model: ModelName | None = None,
    split: float | Literal["auto"] = "auto",
    warp_fraction: float | Literal["auto"] = "auto",
    uniform: bool = False,
    timeout_s: float | None = None,
    shared_per_block: int | Literal["default", "opt-in"] = "default",
    strict_fp: bool = False,
) -> Selection:
    """Select for a program that :func:`inspect` analysed: once parsed, many cards.

    Arguments and errors are those of :func:`select`; with ``strict_fp`` sums of generated code are
    not spread.
    """
    profile = _profile(gpu)
    name, goal = resolve_model(
        target=target,
        objective=objective,
        model=model,
        published=uniform or warp_fraction not in ("auto", None) or split not in ("auto", None),
    )
    options = ModelOptions(
        model=name,
        target=target,
        objective=goal,
        split=_number("split", split),
        warp_fraction=_number("warp_fraction", warp_fraction),
        uniform=uniform,
        timeout_s=timeout_s,
        shared_per_block_bytes=shared_limit_bytes(profile, shared_per_block),
    )
    return select_for(program, profile, options, strict_fp=strict_fp)


@in_bounds
def predict(
    source: str | PathLike[str],
    *,
    gpu: str | PathLike[str] | GpuProfile,
    target: TargetName = "ppcg",
    tiles: Tiles | None = None,
    block: Block = (),
    placements: Mapping[str, str] | None = None,
    max_shared_memory: int | None = None,
    unroll_gpu_tile: bool = False,
    dtype: Literal["float", "double"] | None = None,
    defines: Mapping[str, str | int] | Sequence[str] = (),
    include_dirs: Sequence[str | PathLike[str]] = (),
    parameters: Mapping[str, int] | None = None,
    function: str | None = None,
    scop: int | None = None,
    max_operations: int | None = None,
    ppcg_schedule: str | PathLike[str] | None = None,
) -> ProgramExpectation:
    """Predict time and energy of the code for a C file at given sizes.

    What is not given is PPCG's default, or for the target ``"cuda"`` what :func:`select` selects
    for the energy objective.

    Args:
        source: Path of a C file, or C source text (a ``str`` with a line break).
        gpu: Name of a shipped profile, path of a TOML profile, or a profile.
        target: Whose code: ``"ppcg"``, or ``"cuda"`` for that of :func:`codegen`.
        tiles: Tile sizes by loop (``{"i": 32}``) or by kernel and loop.
        block: Threads of a block in the order of the loops (``(8, 32)``), the last one along
            ``x``, or by loop (``{"i": 8, "j": 32}``); also by kernel, in a mapping.
        placements: For the target cuda: ``"l1"`` or ``"shared"`` for arrays and references.
        max_shared_memory: Bytes of shared memory that PPCG may use for a block, 8192 by default.
        unroll_gpu_tile: Whether PPCG unrolls the points of a thread.
        dtype: Overrides the floating-point type of the source.
        defines: Preprocessor macros, as a mapping or as ``"NAME=VALUE"`` strings.
        include_dirs: Folders searched for included files.
        parameters: Values of integer parameters of the region (``{"n": 4000}``).
        function: Only regions of this function.
        scop: Only the region with this number, from 0.
        max_operations: Bound on isl's work for one region.
        ppcg_schedule: Path of a schedule that PPCG saved, as for :func:`select`; without it
            ``warnings`` of the result say where PPCG's kernels may be others.

    Raises:
        InputError: the source, the profile or a size is wrong; ``EATSS-C013`` an option does not
            belong to the target.
        NoSolutionError: for the target cuda, no sizes satisfy the limits of the card.
    """
    check_target(
        target,
        ppcg=_given(
            max_shared_memory=max_shared_memory is not None,
            unroll_gpu_tile=unroll_gpu_tile,
            ppcg_schedule=ppcg_schedule is not None,
        ),
        cuda=_given(placements=bool(placements)),
    )
    program = inspect(
        source,
        dtype=dtype,
        defines=defines,
        include_dirs=include_dirs,
        parameters=parameters,
        function=function,
        scop=scop,
        max_operations=max_operations,
        ppcg_schedule=ppcg_schedule,
        cut=cut_for(target),
    )
    return expect_analysed(
        program,
        gpu=gpu,
        target=target,
        tiles=tiles or {},
        block=block,
        placements=placements,
        max_shared_memory=max_shared_memory,
        unroll_gpu_tile=unroll_gpu_tile,
    )


def expect_analysed(
    program: AnalysedProgram,
    *,
    gpu: str | PathLike[str] | GpuProfile,
    tiles: Tiles,
    block: Block,
    target: TargetName = "ppcg",
    placements: Mapping[str, str] | None = None,
    max_shared_memory: int | None = None,
    unroll_gpu_tile: bool = False,
) -> ProgramExpectation:
    """Predict for a program that :func:`inspect` analysed, with the cut of the target.

    Arguments and errors are those of :func:`predict`.
    """
    from eatss.model.expectation import ProgramExpectation, expect  # noqa: PLC0415
    from eatss.recipe.requests import blocks_of, tile_sizes_of  # noqa: PLC0415

    profile = _profile(gpu)
    if target == "cuda":
        return expect_generated(
            program, profile, tiles=tiles, block=block, placements=placements or {}
        )
    limit = PPCG_SHARED_BYTES if max_shared_memory is None else max_shared_memory
    if limit < 0:
        raise _wrong("max_shared_memory", limit, "a number of bytes, or 0")
    options = PpcgOptions(max_shared_memory=limit, unroll_gpu_tile=unroll_gpu_tile)
    return ProgramExpectation(
        file=program.file,
        functions=functions_of(program),
        gpu=profile.name,
        calibrated=profile.calibrated,
        dtype=program.dtype,
        options=options,
        kernels=expect(
            program.facts,
            profile,
            tiles=tile_sizes_of(tiles, program.facts),
            blocks=blocks_of(block, program.facts),
            options=options,
        ),
        warnings=doubts_of(program),
    )


def check_target(target: str, *, ppcg: Sequence[str], cuda: Sequence[str]) -> None:
    """Refuse options that belong to the other target.

    Args:
        target: what makes the code.
        ppcg: the options given that only PPCG's code has, as the user spells them.
        cuda: those that only generated code has.

    Raises:
        InputError: ``EATSS-C013``.
    """
    _one_of("target", target, ("ppcg", "cuda"))
    wrong, other = (ppcg, "ppcg") if target == "cuda" else (cuda, "cuda")
    if wrong:
        raise input_error(
            "EATSS-C013",
            f"{wrong[0]} has no meaning for the target {target}",
            hint=f"leave it out, or take the target {other}",
        )


def _given(**options: bool) -> list[str]:
    return [name for name, given in options.items() if given]


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
    ppcg_schedule: str | PathLike[str] | None = None,
    cut: Cut = "ppcg",
) -> AnalysedProgram:
    """Return domains, accesses, dependences, schedule, kernels and facts of a C file.

    Arguments and errors are those of :func:`select`. ``cut`` says whose kernels: PPCG's, or those
    that :func:`codegen` makes. The isl objects of the result belong
    to one isl context: use a result in one thread at a time.
    """
    frontend = frontend_options(defines, include_dirs, parameters, function, scop)
    options = AnalysisOptions(
        frontend=frontend,
        volume=VolumeKind(_one_of("volume", volume, ("product", "footprint"))),
        dtype=dtype,
        max_operations=max_operations,
        cut=_cut(cut),
        ppcg_schedule=None if ppcg_schedule is None else _schedule_text(ppcg_schedule),
    )
    return analyse_program(source, options)


def cut_for(target: str) -> Cut:
    """Return whose kernels are selected for: the generator's own, or PPCG's."""
    return "eatss" if target == "cuda" else "ppcg"


def _cut(cut: str) -> Cut:
    return "ppcg" if _one_of("cut", cut, ("ppcg", "eatss")) == "ppcg" else "eatss"


def _schedule_text(path: str | PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise input_error(
            "EATSS-P021",
            f"cannot read the PPCG schedule '{fspath(path)}': {reason}",
            hint="write one with ppcg --save-schedule=FILE",
        ) from None


@in_bounds
def codegen(
    source: str | PathLike[str],
    *,
    gpu: str | PathLike[str] | GpuProfile,
    output: str | PathLike[str] | None = None,
    force: bool = False,
    tiles: Tiles | None = None,
    block: Block = (),
    placements: Mapping[str, str] | None = None,
    strict_fp: bool = False,
    index_bits: Literal[32, 64] | None = None,
    line_info: bool = False,
    selection: Selection | None = None,
    recipe: str | PathLike[str] | Recipe | None = None,
    schedule: str | None = None,
    dtype: Literal["float", "double"] | None = None,
    objective: ObjectiveName | None = None,
    model: ModelName | None = None,
    volume: Literal["product", "footprint"] | None = None,
    split: float | Literal["auto"] = "auto",
    warp_fraction: float | Literal["auto"] = "auto",
    uniform: bool = False,
    timeout_s: float | None = None,
    shared_per_block: int | Literal["default", "opt-in"] | None = None,
    defines: Mapping[str, str | int] | Sequence[str] = (),
    include_dirs: Sequence[str | PathLike[str]] = (),
    parameters: Mapping[str, int] | None = None,
    function: str | None = None,
    scop: int | None = None,
    max_operations: int | None = None,
) -> Program:
    """Generate CUDA for every kernel of a C file or of C source text.

    Safe to call from several threads at once; equal input gives equal text. Arguments from
    ``objective`` on are those of :func:`select` with ``target="cuda"``, which chooses the sizes.

    Args:
        source: Path of a C file, or C source text (a ``str`` with a line break).
        gpu: Name of a shipped profile (``"h200"``), path of a TOML profile, or a
            profile.
        output: A folder to write the program to, with its launch plan, a README and the
            C it was made from.
        force: Replace files in ``output`` that eatss did not write.
        tiles: Tile sizes instead of the selected ones, by loop (``{"i": 32}``) or by kernel and
            loop (``{"kernel0": {"i": 32}}``).
        block: Threads of a block in the order of the loops (``(8, 32)``), the last one along
            ``x``, or by loop (``{"i": 8, "j": 32}``); also by kernel, in a mapping.
        placements: ``"l1"`` or ``"shared"`` for arrays (``"A"``) and references (``"A[i][k]"``).
        strict_fp: Keep the order of every floating-point operation.
        index_bits: Width of index arithmetic; by default the narrowest that is proven to do.
        line_info: Let compilers, debuggers and profilers name lines of the C source.
        selection: Sizes that :func:`select` found before, for the same kernels and card.
        recipe: Everything that was decided before: a file of ``eatss codegen --save-recipe``, a
            folder that ``eatss codegen`` wrote, or a recipe. It stands instead of all arguments
            that choose something.
        schedule: Text of a saved schedule that replaces the scheduler's.
        dtype: Floating-point type to compute in, through the macro that names it in the source.
        objective: What is best: ``"energy"`` (the default), ``"time"``, ``"edp"``, ``"paper"``, or
            another name of ``eatss.model.OBJECTIVES``.
        model: For the paper's objective: ``"paper"`` or ``"eatss"``.
        volume: How tile volumes are counted.
        split: Share of L1 + shared memory that is shared.
        warp_fraction: Tile sizes are multiples of this fraction of a warp.
        uniform: One vector of tile sizes for the whole program.
        timeout_s: Bound on the solving of each kernel.
        shared_per_block: Bound on the shared memory of a block, for the selection and for the
            code; by default that of :func:`select`, and the card's.
        defines: Preprocessor macros.
        include_dirs: Folders searched for included files.
        parameters: Values of integer parameters of the region.
        function: Only regions of this function.
        scop: Only the region with this number.
        max_operations: Bound on isl's work for one region.

    Raises:
        InputError: the source, the profile or an option is wrong; carries all
            findings.
        NoSolutionError: no tile sizes satisfy the limits of the card.
    """
    from eatss.generation import (  # noqa: PLC0415
        analyse_for_codegen,
        check_alone,
        generated,
        recipe_for,
        written,
    )
    from eatss.recipe.recipe_json import read_recipe  # noqa: PLC0415

    profile = _profile(gpu)
    decided = read_recipe(Path(recipe)) if isinstance(recipe, str | PathLike) else recipe
    check_alone(
        decided,
        {
            "tiles": tiles,
            "block": block,
            "placements": placements,
            "strict_fp": strict_fp,
            "index_bits": index_bits,
            "line_info": line_info,
            "selection": selection,
            "objective": objective,
            "model": model,
            "volume": volume,
            "split": split != "auto",
            "warp_fraction": warp_fraction != "auto",
            "uniform": uniform,
            "shared_per_block": shared_per_block,
        },
    )
    name, goal = resolve_model(
        target="cuda",
        objective=objective,
        model=model,
        published=uniform or warp_fraction != "auto" or split != "auto" or volume is not None,
    )
    program = analyse_for_codegen(
        source,
        frontend_options(defines, include_dirs, parameters, function, scop),
        volume=VolumeKind(
            _one_of("volume", volume or default_volume(name), ("product", "footprint"))
        ),
        dtype=dtype,
        schedules=schedule,
        max_operations=max_operations,
    )
    if decided is None:
        chosen = selection or select_analysed(
            program.symbolic.program,
            gpu=profile,
            target="cuda",
            objective=goal,
            model=name,
            strict_fp=strict_fp,
            split=split,
            warp_fraction=warp_fraction,
            uniform=uniform,
            timeout_s=timeout_s,
            shared_per_block="default" if shared_per_block is None else shared_per_block,
        )
        decided = recipe_for(
            program,
            chosen,
            profile,
            tiles=tiles or {},
            block=block,
            placements=placements or {},
            strict_fp=strict_fp,
            index_bits=index_bits,
            line_info=line_info,
            shared_limit_bytes=None
            if shared_per_block is None
            else shared_limit_bytes(profile, shared_per_block),
        )
    result = generated(program, decided, profile)
    if output is not None:
        written(program, result, output, force=force)
    return result


def frontend_options(
    defines: Mapping[str, str | int] | Sequence[str],
    include_dirs: Sequence[str | PathLike[str]],
    parameters: Mapping[str, int] | None,
    function: str | None,
    scop: int | None,
) -> FrontendOptions:
    """Return the options of the front end; the arguments are those of :func:`select`."""
    return FrontendOptions(
        include_dirs=tuple(str(d) for d in include_dirs),
        defines=_define_strings(defines),
        function=function,
        scop=scop,
        parameter_values=tuple(sorted((parameters or {}).items())),
    )


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

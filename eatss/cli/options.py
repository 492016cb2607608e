"""Options that several commands share, and the groups they come in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from eatss.analysis.structure import MAX_STAGES
from eatss.cli import completion
from eatss.cli.option_groups import takes
from eatss.cli.option_values import (
    parse_blocks,
    parse_fraction,
    parse_parameters,
    parse_placements,
    parse_shared_limit,
    parse_shares,
    parse_tiles,
)
from eatss.shipped_kernels import source_path

if TYPE_CHECKING:
    from eatss.cache.options import CachingKeywords
    from eatss.frontend.options import PpcgReadingKeywords, ReadingKeywords
    from eatss.model.options import SelectKeywords
    from eatss.recipe.requests import CodeRequest

of_source = partial(typer.Option, rich_help_panel="Source")
of_model = partial(typer.Option, rich_help_panel="Model")
of_code = partial(typer.Option, rich_help_panel="Code")
of_output = partial(typer.Option, rich_help_panel="Output")

FindingsFormat: TypeAlias = Literal["text", "json"]
TableOrJson: TypeAlias = Literal["table", "json"]
DataType: TypeAlias = Literal["float", "double"]
SourceType: TypeAlias = Literal["float", "double", "half"]
TargetChoice: TypeAlias = Literal["ppcg", "cuda"]
VolumeChoice: TypeAlias = Literal["product", "footprint"]
RecomputeChoice: TypeAlias = Literal["auto", "all", "none"]

source_argument = partial(typer.Argument, parser=source_path, autocompletion=completion.sources)
SourceFile = Annotated[
    Path,
    source_argument(
        metavar="FILE|@KERNEL",
        help="C file with #pragma scop regions, or Python: FILE.py, FILE.py:FUNCTION; @gemm is the "
        "kernel of that name that comes with eatss (eatss kernels).",
    ),
]
CARD_METAVAR = "CARD|auto"
CARD_HELP = "A card by name, a TOML profile, or auto: the card in this machine."
card_option = partial(
    typer.Option, "--gpu", "-g", metavar=CARD_METAVAR, autocompletion=completion.cards
)
store_argument = partial(
    typer.Argument, metavar="STORE|@KERNEL", autocompletion=completion.recorded_sweeps
)
STORE_HELP = "of eatss sweep; @gemm is the sweep of that kernel that comes with eatss."
card_argument = partial(typer.Argument, autocompletion=completion.cards)
Card = Annotated[str, card_option(help=CARD_HELP)]
Format = Annotated[TableOrJson, of_output("--format", "-f", help="What to print.")]
Force = Annotated[
    bool, of_output("--force", help="Replace files that were edited or that eatss did not write.")
]
Diagnostics = Annotated[FindingsFormat, of_output(help="How findings are printed on stderr.")]
nvcc_option = partial(
    typer.Option, "--nvcc", metavar="PATH", help="The CUDA compiler; default: nvcc on the path."
)
Nvcc = Annotated[str | None, nvcc_option()]
CompilerChoice: TypeAlias = Literal["auto", "nvrtc", "nvcc"]
compiler_option = partial(
    typer.Option, "--compiler", help="What compiles the CUDA text; auto: NVRTC where it is there."
)
meter_option = partial(
    typer.Option,
    "--meter",
    metavar="NAME",
    autocompletion=completion.registered("eatss.meters"),
    help="What energy is read from: auto (the best the card has), counter, power, nvidia-smi, "
    "jetson, none, or a meter that a package adds.",
)
Debug = Annotated[bool, of_output("--debug", help="Show a traceback for our own faults.")]


def named_nvcc(path: str | None) -> str | None:
    """Return the path of the CUDA compiler that a user names, from any folder the same.

    Raises:
        InputError: ``EATSS-V040``, it is none.
    """
    from eatss.compilers import find_nvcc  # noqa: PLC0415 - rarely named

    return None if path is None else str(Path(find_nvcc(path).path).absolute())


def named_gcc(option: str, path: str) -> str:
    """Return the path of a GCC that a user names; ``gcc`` and ``g++`` are looked for when needed.

    Raises:
        InputError: ``EATSS-V010``, it is none.
    """
    from eatss.compilers import find_gcc  # noqa: PLC0415 - rarely named

    return path if path in ("gcc", "g++") else str(Path(find_gcc(option, path)).absolute())


def cache_options(
    *,
    no_cache: Annotated[
        bool,
        of_output("--no-cache", help="Compute anew: neither take nor keep results of before."),
    ] = False,
) -> CachingKeywords:
    """Return whether results are taken and kept, as fields of ``Caching``."""
    return {"cache": False if no_cache else None}


def reading_options(
    *,
    dtype: Annotated[
        SourceType | None, of_source(help="Floating-point type to select for; default: as written.")
    ] = None,
    defines: Annotated[
        list[str] | None,
        of_source("-D", metavar="NAME[=VALUE]", help="Define a macro, as for cc."),
    ] = None,
    include_dirs: Annotated[
        list[Path] | None, of_source("-I", metavar="DIR", help="Search DIR for headers.")
    ] = None,
    parameters: Annotated[
        list[str] | None,
        of_source(
            "--param",
            metavar="NAME=VALUE",
            help="Fix an integer parameter of the region (a size passed as an argument).",
        ),
    ] = None,
    function: Annotated[
        str | None, of_source(metavar="NAME", help="Only regions in this function.")
    ] = None,
    scop: Annotated[
        int | None, of_source("--scop", metavar="N", min=0, help="Only region N, from 0.")
    ] = None,
    max_operations: Annotated[
        int | None,
        of_source(metavar="N", min=1, help="Bound on the polyhedral work for one region."),
    ] = None,
    recompute: Annotated[
        RecomputeChoice,
        of_source(
            help="Arrays that code of eatss computes anew where it reads them: as the prediction "
            "says, all that can be, or none."
        ),
    ] = "auto",
) -> ReadingKeywords:
    """Return how C is read, as fields of ``Reading``: folders need no front end."""
    return {
        "dtype": dtype,
        "defines": defines or (),
        "include_dirs": include_dirs or (),
        "parameters": parse_parameters(parameters or ()),
        "function": function,
        "scop": scop,
        "max_operations": max_operations,
        "recompute": recompute,
    }


@takes(reading=reading_options)
def ppcg_reading_options(
    *,
    reading: ReadingKeywords,
    ppcg_schedule: Annotated[
        Path | None,
        of_source(
            "--ppcg-schedule",
            metavar="FILE",
            help="Take the kernels of a schedule that PPCG saved (ppcg --save-schedule=FILE).",
        ),
    ] = None,
) -> PpcgReadingKeywords:
    """Return how C is read where PPCG's kernels are known."""
    return {**reading, "ppcg_schedule": ppcg_schedule}


def select_options(
    *,
    objective: Annotated[
        str | None,
        of_model(
            metavar="NAME",
            autocompletion=completion.registered("eatss.objectives"),
            help="What is to be least in a run as predicted: energy (the default), time, edp "
            "(energy × time); or paper, the objective of the EATSS paper, or one that a "
            "package adds.",
        ),
    ] = None,
    model: Annotated[
        Literal["eatss", "paper"] | None,
        of_model(help="For --objective paper: as published, or with exact footprints (eatss)."),
    ] = None,
    volume: Annotated[
        VolumeChoice | None,
        of_model(
            help="Count a tile's elements as products of sizes or as exact footprints; "
            "default: product for --model paper, else footprint."
        ),
    ] = None,
    split: Annotated[
        str,
        of_model(
            metavar="auto|0..1",
            help="Share of L1 + shared memory that is shared.",
            autocompletion=completion.words("auto"),
        ),
    ] = "auto",
    warp_fraction: Annotated[
        str,
        of_model(
            metavar="auto|0..1",
            help="Sizes are multiples of this fraction of a warp.",
            autocompletion=completion.words("auto"),
        ),
    ] = "auto",
    uniform: Annotated[
        bool, of_model("--uniform", help="One vector of sizes for all kernels.")
    ] = False,
    shared_per_block: Annotated[
        str | None,
        of_model(
            metavar="default|opt-in|BYTES",
            autocompletion=completion.words("default", "opt-in"),
            help="Shared memory a block may have; default: default in the model, opt-in in code "
            "of eatss.",
        ),
    ] = None,
    tf32: Annotated[
        Literal["off", "on", "split"],
        of_model(
            help="Whether tensor cores may multiply floats in code of eatss: rounded to 11 bits "
            "(on), or as two such numbers each (split), nearly as exact as floats."
        ),
    ] = "off",
    timeout_s: Annotated[
        float | None,
        of_model(
            "--timeout", metavar="SECONDS", min=0.0, help="Bound on the solving of each kernel."
        ),
    ] = None,
) -> SelectKeywords:
    """Return what sizes are selected for, as fields of ``SelectOptions``."""
    return {
        "objective": objective,
        "model": model,
        "volume": volume,
        "split": parse_fraction("--split", split),
        "warp_fraction": parse_fraction("--warp-fraction", warp_fraction),
        "uniform": uniform,
        "shared_per_block": parse_shared_limit(shared_per_block),
        "tf32": tf32,
        "timeout_s": timeout_s,
    }


def size_options(
    *,
    tiles: Annotated[
        list[str] | None,
        of_code(
            "--tile",
            metavar="[KERNEL:]LOOP=SIZE,...",
            help="Tile sizes of your own, for all kernels or for one (k0:).",
        ),
    ] = None,
    block: Annotated[
        list[str] | None,
        of_code(
            metavar="[KERNEL:]THREADS,...",
            help="Threads of a block in the order of the loops, the last along x, or by loop "
            "(LOOP=THREADS,...).",
        ),
    ] = None,
    placements: Annotated[
        list[str] | None,
        of_code(
            "--place",
            metavar="REFERENCE=shared|l1",
            help="Memory of an array (A) or a reference ('A[i][k]') in code of eatss.",
        ),
    ] = None,
    share: Annotated[
        list[str] | None,
        of_code(
            "--share",
            metavar="LOOP=BLOCKS,...",
            help="Blocks that share the sum over a loop; 1 for none. By default as selected.",
        ),
    ] = None,
    stream: Annotated[
        list[str] | None,
        of_code(
            "--stream",
            metavar="LOOP=BLOCKS,...",
            help="Blocks that take equal shares of a loop's turns, of all tiles; 1 for none. By "
            "default as selected.",
        ),
    ] = None,
) -> CodeRequest:
    """Return sizes and placements of the user's own."""
    from eatss.recipe.requests import CodeRequest  # noqa: PLC0415 - keeps --help fast

    return CodeRequest(
        tiles=parse_tiles(tiles or ()),
        block=parse_blocks(block or ()),
        placements=parse_placements(placements or ()),
        share=parse_shares("--share", share or ()),
        stream=parse_shares("--stream", stream or ()),
    )


@takes(sizes=size_options)
def code_options(
    *,
    sizes: CodeRequest,
    strict_fp: Annotated[
        bool,
        of_code(
            "--strict-fp",
            help="Keep the order of every floating-point operation: no sum of them is split.",
        ),
    ] = False,
    index_bits: Annotated[
        Literal["auto", "32", "64"],
        of_code(
            "--index", help="Bits of index arithmetic; auto: the fewest that are proven to do."
        ),
    ] = "auto",
    line_info: Annotated[
        bool, of_code("--line-info", help="Map the code back to lines of the C file.")
    ] = False,
    transformations: Annotated[
        list[str] | None,
        of_code(
            "--transform",
            metavar="NAME",
            autocompletion=completion.registered("eatss.transformations"),
            help="Change the code: swizzle (instead of padding), or one that a package adds.",
        ),
    ] = None,
    instructions: Annotated[
        list[str] | None,
        of_code(
            "--instruction",
            metavar="NAME",
            autocompletion=completion.registered("eatss.instructions"),
            help="Use an instruction wherever it computes what a statement does: fma, or one that "
            "a package adds.",
        ),
    ] = None,
    stages: Annotated[
        int | None,
        of_code(
            metavar="N",
            min=1,
            max=MAX_STAGES,
            help="Boxes of shared memory that are in use at once: N - 1 are filled ahead "
            "(compute capability 8.0). By default as selected.",
        ),
    ] = None,
    fuse_rows: Annotated[
        bool,
        of_code(
            "--fuse-rows/--no-fuse-rows",
            help="Let kernels that share rows become one, where that is selected.",
        ),
    ] = True,
) -> CodeRequest:
    """Return what the user wants of generated code."""
    widths: dict[str, Literal[32, 64]] = {"32": 32, "64": 64}
    return replace(
        sizes,
        strict_fp=strict_fp,
        index_bits=widths.get(index_bits),
        line_info=line_info,
        transformations=tuple(transformations or ()),
        instructions=tuple(instructions or ()),
        stages=stages,
        fuse_rows=fuse_rows,
    )

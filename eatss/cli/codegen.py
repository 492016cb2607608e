"""``eatss codegen``: a C file in, a folder with CUDA out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eatss.cli.codegen_options import (
    parse_blocks,
    parse_placements,
    parse_tiles,
    read_selection,
    read_text,
    write_text,
)
from eatss.cli.common import (
    Block,
    Card,
    Debug,
    Defines,
    Diagnostics,
    DiagnosticsFormat,
    Dtype,
    Function,
    IncludeDirs,
    MaxOperations,
    Model,
    Objective,
    Parameters,
    Place,
    ScopIndex,
    SourceFile,
    Split,
    Tile,
    Timeout,
    Uniform,
    Volume,
    WarpFraction,
    parse_parameters,
    report_warnings,
    working,
)
from eatss.cli.select import parse_fraction, parse_shared_limit
from eatss.diagnostics import input_error
from eatss.files import folder_named

if TYPE_CHECKING:
    from eatss.gpu import GpuProfile
    from eatss.program import Program
    from eatss.verify.ptxas import KernelResources

EXAMPLES = """
Examples:

    eatss codegen kernels/gemm.c --gpu h200 -o build/gemm

    eatss codegen kernels/gemm.c --gpu a100 -o build/gemm --tile i=32,j=64,k=16 --block 8,32

    eatss codegen kernels/gemm.c --gpu h200 -o build/gemm --place A=shared --place 'B[k][j]=l1'

    eatss codegen kernels/3mm.c --gpu h200 -o build/3mm --tile k0:i=32 --tile k1:i=64,j=64

    eatss codegen kernels/atax.c --gpu h200 -o build/atax --dtype float --strict-fp

    eatss codegen kernels/gemm.c --gpu h200 --save-recipe gemm.json

    eatss codegen kernels/gemm.c --gpu h200 -o build/gemm --recipe gemm.json
"""


class OutputFormat(StrEnum):
    """Values of ``--format``."""

    TABLE = "table"
    JSON = "json"


class IndexWidth(StrEnum):
    """Values of ``--index``."""

    AUTO = "auto"
    BITS_32 = "32"
    BITS_64 = "64"


_INDEX: dict[IndexWidth, Literal[32, 64] | None] = {
    IndexWidth.AUTO: None,
    IndexWidth.BITS_32: 32,
    IndexWidth.BITS_64: 64,
}


def codegen(
    file: SourceFile,
    gpu: Card,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            parser=folder_named,
            help="Folder for the program; made if need be.",
        ),
    ] = None,
    tile: Tile = None,
    block: Block = None,
    place: Place = None,
    strict_fp: Annotated[
        bool,
        typer.Option(
            "--strict-fp",
            help="Keep the order of every floating-point operation: no sum is split.",
            rich_help_panel="Code",
        ),
    ] = False,
    index: Annotated[
        IndexWidth,
        typer.Option(
            help="Bits of index arithmetic; auto: the fewest that are proven to do.",
            rich_help_panel="Code",
        ),
    ] = IndexWidth.AUTO,
    line_info: Annotated[
        bool,
        typer.Option(
            "--line-info", help="Map the code back to lines of the C file.", rich_help_panel="Code"
        ),
    ] = False,
    selection_file: Annotated[
        Path | None,
        typer.Option(
            "--selection",
            metavar="FILE",
            help="Take sizes from what eatss select --format json printed; nothing is solved.",
            rich_help_panel="Code",
        ),
    ] = None,
    recipe_file: Annotated[
        Path | None,
        typer.Option(
            "--recipe",
            metavar="FILE|DIR",
            help="Carry out what was decided before: a file of --save-recipe, or a folder that "
            "this command wrote. Nothing is chosen anew.",
            rich_help_panel="Code",
        ),
    ] = None,
    save_recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save everything that is decided, as JSON to keep or edit.",
            rich_help_panel="Code",
        ),
    ] = None,
    save_schedule: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save the schedule, as JSON to edit.", rich_help_panel="Code"
        ),
    ] = None,
    load_schedule: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Use a saved schedule instead of the scheduler's, after all checks.",
            rich_help_panel="Code",
        ),
    ] = None,
    nvcc: Annotated[
        bool,
        typer.Option(
            "--nvcc",
            help="Compile with nvcc and check that every kernel can be launched.",
            rich_help_panel="Output",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace files that were edited or that eatss did not write.",
            rich_help_panel="Output",
        ),
    ] = False,
    output: Annotated[
        OutputFormat,
        typer.Option(
            "--format", "-f", help="What to print; json: the plan.", rich_help_panel="Output"
        ),
    ] = OutputFormat.TABLE,
    objective: Objective = None,
    model: Model = None,
    volume: Volume = None,
    split: Split = "auto",
    warp_fraction: WarpFraction = "auto",
    uniform: Uniform = False,
    shared_per_block: Annotated[
        str | None,
        typer.Option(
            metavar="default|opt-in|BYTES",
            help="Shared memory a block may have, in the model and in the code.",
            rich_help_panel="Model",
        ),
    ] = None,
    timeout: Timeout = None,
    dtype: Dtype = None,
    define: Defines = None,
    include: IncludeDirs = None,
    param: Parameters = None,
    function: Function = None,
    scop: ScopIndex = None,
    max_operations: MaxOperations = None,
    diagnostics: Diagnostics = DiagnosticsFormat.TEXT,
    debug: Debug = False,
) -> None:
    """Generate tiled CUDA for every kernel of a C file."""
    tiles, blocks, placements = parse_tiles(tile), parse_blocks(block), parse_placements(place)
    chosen = read_selection(selection_file)
    schedules = None if load_schedule is None else read_text("--load-schedule", load_schedule)
    shared = None if shared_per_block is None else parse_shared_limit(shared_per_block)
    splitting = parse_fraction("--split", split)
    fraction = parse_fraction("--warp-fraction", warp_fraction)
    saves = save_schedule is not None or save_recipe is not None
    if directory is None and output is OutputFormat.TABLE and not saves:
        raise input_error(
            "EATSS-C011",
            "there is no folder to write to",
            hint="name one with -o, or print the launch plan with --format json",
        )

    from eatss import api, generation  # noqa: PLC0415 - keeps --help fast
    from eatss.analysis import VolumeKind  # noqa: PLC0415
    from eatss.gpu import load_profile  # noqa: PLC0415
    from eatss.polyhedral.program_schedule_file import save_schedules  # noqa: PLC0415
    from eatss.recipe.recipe_json import read_recipe, recipe_text  # noqa: PLC0415
    from eatss.report.program import files_text, render_program  # noqa: PLC0415

    profile = load_profile(gpu)
    recipe = None if recipe_file is None else read_recipe(recipe_file)
    generation.check_alone(
        recipe,
        {
            "--tile": tile,
            "--block": block,
            "--place": place,
            "--strict-fp": strict_fp,
            "--index": _INDEX[index],
            "--line-info": line_info,
            "--selection": selection_file,
            "--objective": objective,
            "--model": model,
            "--volume": volume,
            "--split": splitting != "auto",
            "--warp-fraction": fraction != "auto",
            "--uniform": uniform,
            "--shared-per-block": shared_per_block,
        },
    )
    selecting, goal = api.resolve_model(
        target="cuda",
        objective=objective,
        model=None if model is None else model.value,
        published=uniform or volume is not None or (splitting, fraction) != ("auto", "auto"),
    )
    with working(f"analysing {file}"):
        program = generation.analyse_for_codegen(
            file,
            api.frontend_options(
                define or (), include or (), parse_parameters(param), function, scop
            ),
            volume=VolumeKind(api.default_volume(selecting) if volume is None else volume.value),
            dtype=None if dtype is None else dtype.value,
            schedules=schedules,
            max_operations=max_operations,
        )
    report_warnings(program.symbolic.warnings, diagnostics)
    if save_schedule is not None:
        scheduled = [region.scheduled for region in program.symbolic.regions]
        write_text("--save-schedule", save_schedule, save_schedules(scheduled))
    if chosen is None and recipe is None:
        with working(f"solving for {profile.title}"):
            chosen = api.select_analysed(
                program.symbolic.program,
                gpu=profile,
                target="cuda",
                objective=goal,
                model=selecting,
                strict_fp=strict_fp,
                split=splitting,
                warp_fraction=fraction,
                uniform=uniform,
                timeout_s=timeout,
                shared_per_block="default" if shared is None else shared,
            )
    with working(f"generating code for {profile.title}"):
        if recipe is None:
            assert chosen is not None
            recipe = generation.recipe_for(
                program,
                chosen,
                profile,
                tiles=tiles,
                block=blocks,
                placements=placements,
                strict_fp=strict_fp,
                index_bits=_INDEX[index],
                line_info=line_info,
                shared_limit_bytes=None
                if shared is None
                else api.shared_limit_bytes(profile, shared),
            )
        result = generation.generated(program, recipe, profile)
    if save_recipe is not None:
        write_text("--save-recipe", save_recipe, recipe_text(recipe))
    resources = _compiled(result, profile, diagnostics) if nvcc else None
    files = () if directory is None else generation.written(program, result, directory, force=force)
    typer.echo(render_program(result, output.value, resources), nl=False)
    if directory is not None and output is OutputFormat.TABLE:
        typer.echo(files_text(result, files, str(directory)), nl=False, err=True)


def _compiled(
    program: Program, profile: GpuProfile, diagnostics: DiagnosticsFormat
) -> tuple[KernelResources, ...]:
    """Compile with nvcc, and refuse kernels that the card cannot launch."""
    from eatss.forked import release  # noqa: PLC0415
    from eatss.verify.ptxas import check_launchable, compile_report  # noqa: PLC0415

    release()
    with working("compiling with nvcc"):
        resources = compile_report(program)
    warnings = check_launchable(
        program,
        resources,
        registers_per_block=profile.registers_per_block,
        threads_per_block=profile.threads_per_block,
        shared_bytes_per_block=profile.shared_per_block_optin_bytes,
    )
    report_warnings(warnings, diagnostics)
    return resources

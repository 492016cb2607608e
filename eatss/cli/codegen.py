"""``eatss codegen``: a C file in, a folder with CUDA out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eatss.base.cache import Caching
from eatss.base.diagnostics import input_error
from eatss.base.files import folder_named
from eatss.base.options import Asked, option
from eatss.base.streams import echo
from eatss.choose.options import SelectKeywords
from eatss.cli.options import (
    Card,
    Force,
    SourceFile,
    TableOrJson,
    of_code,
    of_output,
    read_selection,
    write_file,
)
from eatss.cli.talk import given_card, report_warnings, say, working
from eatss.frontend.options import ReadingKeywords
from eatss.lower.recipe import CodeRequest

if TYPE_CHECKING:
    from eatss.program import Program

EXAMPLES = {
    "codegen": """
Examples:

    eatss codegen @gemm --gpu h200 -o build/gemm

    eatss codegen @gemm -g a100 -o build --tile i=32,j=64,k=16 --block 8,32

    eatss codegen @gemm -g h200 -o build --place A=shared --place 'B[k][j]=l1'

    eatss codegen @3mm -g h200 -o build --tile k0:i=32 --tile k1:i=64,j=64

    eatss codegen @atax -g h200 -o build --dtype float --strict-fp

    eatss codegen @gemm --gpu h200 --save-recipe gemm.json

    eatss codegen @gemm --gpu h200 -o build/gemm --recipe gemm.json
"""
}


def codegen(
    *,
    file: SourceFile,
    gpu: Card,
    directory: Annotated[
        Path | None,
        option(
            "--output -o",
            metavar="DIR",
            parser=folder_named,
            help="Folder for the program; made if need be.",
        ),
    ] = None,
    code: Asked[CodeRequest],
    selection: Annotated[
        Path | None,
        of_code(
            "--selection",
            metavar="FILE",
            help="Take sizes from what eatss select --format json printed; nothing is solved.",
        ),
    ] = None,
    recipe_file: Annotated[
        Path | None,
        of_code(
            "--recipe",
            metavar="FILE|DIR",
            help="Carry out what was decided before: a file of --save-recipe, or a folder that "
            "this command wrote. Nothing is chosen anew.",
        ),
    ] = None,
    save_recipe: Annotated[
        Path | None,
        of_code(metavar="FILE", help="Save everything that is decided, as JSON to keep or edit."),
    ] = None,
    force: Force = False,
    output: Annotated[
        TableOrJson,
        of_output("--format -f", help="What to print; json: the plan, and what is expected."),
    ] = "table",
    choosing: Asked[SelectKeywords],
    reading: Asked[ReadingKeywords],
    caching: Asked[Caching],
) -> None:
    """Generate tiled CUDA for every kernel of a C file."""
    sizes = None if selection is None else read_selection(selection)
    if directory is None and output == "table" and save_recipe is None:
        raise input_error(
            "EATSS-C008",
            "there is no folder to write to",
            hint="name one with -o, or print the launch plan with --format json",
        )

    from eatss.api import Codegen, generated, write_generated  # noqa: PLC0415 - keeps --help fast
    from eatss.lower.recipe import recipe_from_dict, recipe_text  # noqa: PLC0415
    from eatss.report.selection import render_program  # noqa: PLC0415

    profile = given_card(gpu)
    with working(f"generating code for {profile.title}") as step:
        asked = Codegen(
            file,
            gpu=profile,
            output=directory,
            force=force,
            selection=sizes,
            recipe=recipe_file,
            progress=step.at,
            **code.fields,
            **choosing.fields,
            **reading.fields,
            **caching.fields,
        )
        found = generated(asked)
    report_warnings(found.warnings)
    result = found.noun
    if save_recipe is not None:
        assert result.recipe is not None
        write_file("--save-recipe", save_recipe, recipe_text(recipe_from_dict(result.recipe)))
    files = () if directory is None else write_generated(asked, result)
    echo(render_program(result, output, found.warnings), nl=False)
    if directory is not None and output == "table":
        say(_files_text(result, files, str(directory)), nl=False)


def _files_text(program: Program, files: Sequence[str], directory: str) -> str:
    """Return which files were written and what to do with them next."""
    stem = program.file.removesuffix(".cu")
    if directory.startswith("-"):
        directory = f"./{directory}"
    folder, text = shlex.quote(directory), shlex.quote(f"{directory}/{program.file}")
    flags = " ".join([f"-arch=sm_{program.compute_capability}", *program.flags])
    return (
        f"wrote {', '.join(files)} into {directory}\n"
        f"verify:  eatss verify {folder}\n"
        f"compile: nvcc -O3 {flags} -DEATSS_MAIN {text} -o {stem}\n"
    )

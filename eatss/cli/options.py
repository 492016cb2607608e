"""Options and arguments that several commands share."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from eatss.base.compilers import nvcc_option
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import read_regular, write_whole
from eatss.base.options import argument, option
from eatss.base.shipped import source_path
from eatss.base.streams import echo

if TYPE_CHECKING:
    from eatss.choose.selection import Selection


of_source = partial(option, panel="Source")
of_model = partial(option, panel="Model")
of_code = partial(option, panel="Code")
of_output = partial(option, panel="Output")

TableOrJson: TypeAlias = Literal["table", "json"]

source_argument = partial(argument, parser=source_path)
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
card_option = partial(option, "--gpu -g", metavar=CARD_METAVAR)
Card = Annotated[str, card_option(help=CARD_HELP)]
Format = Annotated[TableOrJson, of_output("--format -f", help="What to print.")]
StoreFiles = Annotated[
    list[str],
    argument(
        metavar="STORE|@KERNEL",
        help="Files of eatss sweep; @gemm is the sweep of that kernel that comes with eatss.",
    ),
]
PpcgPath = Annotated[
    str | None, of_source("--ppcg", metavar="PATH", help="PPCG; default: ppcg on the path.")
]
HiddenCard = Annotated[
    str | None,
    option("--card", metavar="MODULE:CLASS", hidden=True, help="Stands in for the card."),
]
Force = Annotated[
    bool, of_output("--force", help="Replace files that were edited or that eatss did not write.")
]
Nvcc = Annotated[str | None, nvcc_option()]


_MAX_BYTES = 64 * 1024 * 1024


def show(noun: object, output: str, **more: object) -> None:
    """Print a result as ``table`` or ``json``; a page may ask for more."""
    from eatss.report.pages import printed  # noqa: PLC0415 - Rich loads slowly

    echo(printed(noun, output, **more), nl=False)


def read_selection(file: Path) -> Selection:
    """Read what ``eatss select --format json`` printed.

    Raises:
        InputError: ``EATSS-C008`` the file cannot be read, ``EATSS-M010`` it is no selection.
    """
    from eatss.choose.selection import Selection  # noqa: PLC0415 - keeps --help fast

    try:
        document = json.loads(read_regular(file, _MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise input_error(
            "EATSS-C008",
            f"--selection: cannot read '{file}' as JSON: {error}",
            hint="write it with: eatss select FILE.c --gpu NAME --format json",
        ) from None
    return Selection.from_dict(document)


def write_file(option: str, file: Path, text: str) -> None:
    """Write the file an option names.

    Raises:
        InputError: ``EATSS-C008``.
    """
    try:
        write_whole(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _unwritable(option, file, error.strerror or str(error)) from None


def check_writable(option: str, file: Path) -> None:
    """Refuse a file that cannot be written, before what is to stand in it is made.

    Raises:
        InputError: ``EATSS-C008``.
    """
    target = Path(os.path.realpath(file))
    if target.is_dir() or not target.parent.is_dir():
        raise _unwritable(option, file, "it is a folder, or in none")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise _unwritable(option, file, "it is not permitted")


def _unwritable(option: str, file: Path, reason: str) -> InputError:
    return input_error(
        "EATSS-C008",
        f"{option}: cannot write '{file}': {reason}",
        hint="name a file in an existing folder",
    )

"""The launch plan as JSON, and a program as a folder of files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from eatss.diagnostics import input_error
from eatss.documents import Document
from eatss.files import read_regular
from eatss.program.checks import check_program
from eatss.program.plan import Program

PLAN_FILE = "plan.json"
PROGRAM_SUFFIX = ".eatss"
"""Of folders with a program that stand beside what a compiler of others wrote."""

_MOST_BYTES = 64 * 2**20

PLAN = Document(
    title="launch plan",
    kind=Program,
    other_version="EATSS-V001",
    damaged="EATSS-V002",
    hint="generate the program again with this version of eatss",
)
program_to_dict = PLAN.to_dict


def program_from_dict(document: Mapping[str, Any], text: str) -> Program:
    """Read what :func:`program_to_dict` wrote; the text is not part of it.

    Raises:
        InputError: ``EATSS-V001`` it is of another version, ``EATSS-V002`` it is damaged.
    """
    return PLAN.from_dict(document, text=text)


def save_program(program: Program, directory: Path) -> None:
    """Write text and launch plan into an existing folder."""
    (directory / program.file).write_text(program.text, encoding="utf-8")
    (directory / PLAN_FILE).write_text(PLAN.to_text(program), encoding="utf-8")


def program_folder(directory: Path) -> Path:
    """Return the folder with the program: this one, or the only ``NAME.eatss`` in it.

    Raises:
        InputError: ``EATSS-V003``, there are several.
    """
    try:
        if not directory.is_dir() or (directory / PLAN_FILE).exists():
            return directory
    except OSError:  # who reads it says why it cannot be
        return directory
    found = sorted(plan.parent for plan in directory.glob(f"*{PROGRAM_SUFFIX}/{PLAN_FILE}"))
    if len(found) > 1:
        names = ", ".join(str(folder) for folder in found)
        raise input_error(
            "EATSS-V003", f"'{directory}' holds several programs", hint=f"name one: {names}"
        )
    return found[0] if found else directory


def load_program(directory: Path) -> Program:
    """Read the program in a folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = directory / PLAN_FILE
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        text = read_regular(directory / _file_name(document), _MOST_BYTES).decode()
    except FileNotFoundError as error:
        raise input_error(
            "EATSS-V003",
            f"'{directory}' holds no generated program: there is no '{error.filename}'",
            hint=_how_to_make(directory),
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        place = (error.filename if isinstance(error, OSError) else None) or path
        raise input_error(
            "EATSS-V002",
            f"'{place}' cannot be read: {reason}",
            hint="name the folder that 'eatss codegen -o' wrote"
            if isinstance(error, OSError)
            else "generate the program again",
        ) from None
    program = program_from_dict(document, text)
    try:
        check_program(program)
    except ValueError as error:
        raise PLAN.damage(str(error)) from None
    return program


def _how_to_make(directory: Path) -> str:
    """Return how a folder comes by a program; what PPCG wrote alone lacks the C it is from."""
    if any(directory.glob("*_host.cu")):
        made = f"--generated {directory} -- FILE.c -o {directory}"
        return f"make what PPCG wrote measurable with: eatss ppcg --gpu NAME {made}"
    return "make one with: eatss codegen FILE.c --gpu NAME -o DIR"


def _file_name(document: Any) -> str:
    """Return what the text's file is called, which is in the folder of the plan."""
    name = document["file"]
    if not isinstance(name, str) or PurePath(name).name != name:
        raise ValueError(f"{name!r} is no name of a file beside it")
    return name

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
            hint="make one with: eatss codegen FILE.c --gpu NAME -o DIR",
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        place = (error.filename if isinstance(error, OSError) else None) or path
        raise input_error(
            "EATSS-V002", f"'{place}' cannot be read: {reason}", hint="generate the program again"
        ) from None
    program = program_from_dict(document, text)
    try:
        check_program(program)
    except ValueError as error:
        raise PLAN.damage(str(error)) from None
    return program


def _file_name(document: Any) -> str:
    """Return what the text's file is called, which is in the folder of the plan."""
    name = document["file"]
    if not isinstance(name, str) or PurePath(name).name != name:
        raise ValueError(f"{name!r} is no name of a file beside it")
    return name

"""Files that are written beside stores never take the place of one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from eatss.diagnostics import input_error
from eatss.store.faults import shown

_BEGINNING = b"SQLite format 3\0"


def check_no_store(output: Path, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Refuse to write to a file that is read, or that is a database of SQLite.

    Raises:
        InputError: ``EATSS-D035``.
    """
    place = os.path.realpath(output)
    what = ""
    if place in {os.path.realpath(one) for one in inputs}:
        what = "is what is read"
    elif _is_database(Path(place)):
        what = "is a store, or another database of SQLite"
    if what:
        raise input_error(
            "EATSS-D035",
            f"'{shown(output)}' {what}, and would be lost",
            hint="name another file with -o",
        )


def _is_database(path: Path) -> bool:
    with suppress(OSError, ValueError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(_BEGINNING)) == _BEGINNING
    return False

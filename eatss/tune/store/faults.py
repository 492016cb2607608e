"""What goes wrong with the file of a store, in the user's terms; none is written over."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eatss.base.diagnostics import InputError, input_error

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_MAY_NOT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

_KEPT = "all rows of before are kept; make room and go on with the same command"


@contextmanager
def faults_told(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into those of a user.

    Raises:
        InputError: ``EATSS-D002`` to ``EATSS-D008``.
    """
    try:
        yield
    except OverflowError:
        raise input_error(
            "EATSS-D008",
            f"a whole number does not fit into the store '{shown(path)}': they have 64 bits",
            hint="look at the sizes, operations and capability in what is imported",
        ) from None
    except sqlite3.DatabaseError as error:
        if not hasattr(error, "sqlite_errorcode"):
            raise  # not of the file: a fault of ours
        raise _of_sqlite(path, error) from None
    except OSError as error:
        raise _of_system(path, error) from None


def shown(path: Path) -> Path:
    """Return how a path is named in messages: from the current folder, if it is below."""
    with suppress(OSError, ValueError):
        return path.relative_to(Path.cwd())
    return path


def no_store(path: Path, why: str) -> InputError:
    """Return the error of a file that eatss did not make."""
    return input_error(
        "EATSS-D002",
        f"'{shown(path)}' is no store of eatss: {why}",
        hint="name a file that 'eatss sweep -o' made, or a new one to write to",
    )


def damaged(path: Path, why: str) -> InputError:
    """Return the error of a store that cannot be read in full."""
    return input_error(
        "EATSS-D003",
        f"the store '{shown(path)}' is damaged: {why}",
        hint="take a copy of it; 'eatss results prune STORE --damaged' removes rows that are "
        "damaged, and of a file that is, this saves what can be: sqlite3 OLD.db .recover | "
        "sqlite3 NEW.db",
    )


def unusable(path: Path, why: str) -> InputError:
    """Return the error of a store that cannot be opened, locked or written."""
    return input_error(
        "EATSS-D006",
        f"the store '{shown(path)}' cannot be used: {why}",
        hint="writing takes a folder of your own on a file system with locks; reading takes "
        "the right to read the file",
    )


def _of_sqlite(path: Path, error: sqlite3.DatabaseError) -> InputError:
    code = error.sqlite_errorcode & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        why = "" if code == sqlite3.SQLITE_FULL else ", or its disk is over quota, or fails"
        return input_error("EATSS-D007", f"there is no room for '{shown(path)}'{why}", hint=_KEPT)
    if code in _BUSY:
        return input_error(
            "EATSS-D005",
            f"another process keeps '{shown(path)}' locked",
            hint="wait for it, or end the program that has the file open",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return no_store(path, "it is no database of SQLite")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):  # ERROR: a table is not as it was
        return damaged(path, str(error))
    return unusable(path, (code in _MAY_NOT and _why_not(path)) or str(error))


def _of_system(path: Path, error: OSError) -> InputError:
    if error.errno in _NO_ROOM:
        return input_error(
            "EATSS-D007", f"there is no room for '{shown(path)}': {error.strerror}", hint=_KEPT
        )
    return unusable(path, error.strerror or str(error))


def _why_not(path: Path) -> str | None:
    """Return what is known of why a file cannot be opened; SQLite does not say."""
    if path.exists() and not os.access(path, os.R_OK):
        return "it may not be read"
    if path.exists() and not os.access(path, os.W_OK):
        return "it may not be written"
    if not os.access(path.parent, os.W_OK):
        return f"nothing can be written to the folder '{shown(path.parent)}'"
    return None


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

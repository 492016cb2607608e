"""What goes wrong with the file of a store, in the user's terms; none is written over.

One process writes to a store: a lock on a file beside it, which goes with the process.

It is a record lock (``fcntl.lockf``), as SQLite's own are. The system drops it however the process
ends. It is not inherited by processes that were forked off, as that of ``flock`` would be: a card's
process that outlives a killed sweep does not keep the store from the next one. Two things about
record locks need care. The same process is never refused its own lock, so what this one holds is
remembered. And they go as soon as the process closes *any* descriptor of the file: this module
alone opens it.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from eatss.base.diagnostics import InputError, input_error

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_MAY_NOT = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

_KEPT = "all rows of before are kept; make room and go on with the same command"


@contextmanager
def faults_told(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into those of a user.

    Raises:
        InputError: ``EATSS-D002`` to ``EATSS-D006``.
    """
    try:
        yield
    except OverflowError:
        raise input_error(
            "EATSS-D006",
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
        InputError: ``EATSS-D012``.
    """
    place = os.path.realpath(output)
    what = ""
    if place in {os.path.realpath(one) for one in inputs}:
        what = "is what is read"
    elif _is_database(Path(place)):
        what = "is a store, or another database of SQLite"
    if what:
        raise input_error(
            "EATSS-D012",
            f"'{shown(output)}' {what}, and would be lost",
            hint="name another file with -o",
        )


def _is_database(path: Path) -> bool:
    with suppress(OSError, ValueError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(_BEGINNING)) == _BEGINNING
    return False


_held_here: set[tuple[int, Path]] = set()
_guard = Lock()


@dataclass(frozen=True, slots=True)
class WriterLock:
    """A lock that is held; ``path`` is of the store."""

    path: Path
    descriptor: int

    def release(self) -> None:
        """Let others write."""
        with _guard:
            if (os.getpid(), self.path) not in _held_here:
                return  # released already, or by a process that was forked off
            _beside(self.path).unlink(missing_ok=True)
            os.close(self.descriptor)
            _held_here.discard((os.getpid(), self.path))


def lock_for_writing(path: Path) -> WriterLock:
    """Return the lock on a store, whose folder is there; ``path`` has no links.

    Raises:
        InputError: ``EATSS-D005``, another holds it; ``EATSS-D006``, it cannot be locked.
    """
    with _guard:
        if (os.getpid(), path) in _held_here:
            raise _held(path, {"process": os.getpid(), "host": socket.gethostname()})
        with faults_told(path):
            descriptor = _locked(path)
        _held_here.add((os.getpid(), path))
        return WriterLock(path, descriptor)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-lock")


def _locked(path: Path) -> int:
    """Return the descriptor of the locked file.

    Raises:
        InputError: another process holds it.
        OSError: it cannot be opened or locked.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "there are no record locks on this system")
    import fcntl  # noqa: PLC0415 - only some systems have it

    place = _beside(path)
    while True:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, place):
                _sign(descriptor)
                return descriptor
        except (BlockingIOError, PermissionError):
            holder = _read(descriptor)
            os.close(descriptor)
            raise _held(path, holder) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # of a file that its holder removed meanwhile


def _is_at(descriptor: int, place: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), place.lstat())
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    """Write who holds the lock, for those who are refused."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    text = json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": now})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _read(descriptor: int) -> Mapping[str, object]:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _held(path: Path, holder: Mapping[str, object]) -> InputError:
    who = f"process {holder['process']}" if "process" in holder else "another process"
    who += f" on {holder['host']}" if "host" in holder else ""
    who += f" since {holder['since']}" if "since" in holder else ""
    return input_error(
        "EATSS-D005",
        f"'{shown(path)}' is written by {who}",
        hint="wait until it is done, or name another file with -o; reading works meanwhile",
    )

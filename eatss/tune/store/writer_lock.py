"""One process writes to a store: a lock on a file beside it, which goes with the process.

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
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from eatss.base.diagnostics import InputError, input_error
from eatss.tune.store.faults import faults_told, shown

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

"""How the cache keeps to its limit without looking at all of its files whenever one is added.

The file ``size`` says in 16 digits how many bytes there were when all files were last looked at;
behind them stands one byte for every 4 KiB that was added since. Only where the two together are
over the limit, all files are looked at again, by one process at a time. The estimate is never too
small: a process that dies between two steps leaves it too large or unreadable, which means the
same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eatss.base.frozen import frozen

SIZE = "size"
LOCK = "lock"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_DIGITS = 16
_UNKNOWN = int("9" * _DIGITS)
_BLOCK = 4096
_MAKING_S = 3600.0
"""An unfinished file that is older is nobody's any more."""


@frozen
class Sized:
    """A file, its size, and when it was last used, in nanoseconds since 1970."""

    path: Path
    size_bytes: int
    used_ns: int


def added(folder: Path, size_bytes: int) -> int:
    """Count a file that was added; return an upper bound of what all take, in bytes.

    Raises:
        OSError: it cannot be counted.
    """
    with os.fdopen(
        os.open(folder / SIZE, os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINK, 0o600), "r+b"
    ) as file:
        digits = file.read(_DIGITS)
        if not (len(digits) == _DIGITS and digits.isdigit()):
            return _UNKNOWN
        file.seek(0, os.SEEK_END)
        file.write(b"+" * -(-size_bytes // _BLOCK))
        return int(digits) + (file.tell() - _DIGITS) * _BLOCK


def keep_limit(folder: Path, limit_bytes: int, files: Callable[[], Iterable[Sized]]) -> None:
    """Remove what was not used for longest, where there is more than the limit.

    A quarter of the limit is freed then, so that the next files find room. Where another process
    is at it, that is left to it.

    Raises:
        OSError: the folder cannot be changed.
    """
    with _alone(folder) as alone:
        if not alone:
            return
        size = folder / SIZE
        _start_counting(size)  # before looking: what is added meanwhile is counted once or twice
        known = sorted(files(), key=lambda one: (one.used_ns, one.path.name))
        total = sum(one.size_bytes for one in known)
        goal = limit_bytes * 3 // 4 if total > limit_bytes else total
        for one in known[:-1]:
            if total <= goal:
                break
            with suppress(FileNotFoundError):
                one.path.unlink()
            total -= one.size_bytes
        with size.open("r+b") as file:
            file.write(f"{min(total, _UNKNOWN):0{_DIGITS}d}".encode("ascii"))
        _remove_unfinished(folder)


def swept(folder: Path) -> None:
    """Note that files were removed: what there is will be looked at when the next is added."""
    with suppress(OSError):
        _remove_unfinished(folder)
        (folder / SIZE).unlink(missing_ok=True)


def _start_counting(size: Path) -> None:
    """Begin a new count, of unknown size until all files were looked at."""
    beside = size.with_name(f".{os.urandom(8).hex()}.making")
    try:
        beside.write_bytes(str(_UNKNOWN).encode("ascii"))
        beside.replace(size)
    finally:
        beside.unlink(missing_ok=True)


def _remove_unfinished(folder: Path) -> None:
    """Remove files that somebody began to write and did not finish."""
    before = time.time() - _MAKING_S
    for pattern in (".*.making", "*/.*.making"):
        for path in folder.glob(pattern):
            with suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Tell whether no other process is between the same lines."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock  # noqa: PLC0415 - only some systems have it
    except ImportError:
        yield True
        return
    with os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600), "r+b") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            pass
        yield True

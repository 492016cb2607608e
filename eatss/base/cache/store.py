"""The cache as a folder of files, shared by threads and processes, with a limit on its size.

An entry is a file that is written beside its place and renamed: who reads sees all of it or
nothing. Whatever cannot be trusted or read is a miss; no trouble with the disk is an error.
The package ``diskcache`` is not used: it unpickles values where its database says so, and who
changes the database would run code.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from eatss.base.cache.eviction import LOCK, SIZE, Sized, added, keep_limit, swept
from eatss.base.frozen import frozen
from eatss.base.shown import Shown

DEFAULT_LIMIT_BYTES = 1 << 30

_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}")
_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".entry"
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_ENTRY = (errno.ELOOP, errno.EMLINK, errno.EACCES, errno.EPERM, errno.ENXIO, errno.EIO)
"""Errors of a link, a socket, or a file that cannot be read; others say nothing of the file."""

_MARK = ".eatss-cache"
"""Says that a folder is a cache of eatss; nothing is written to any other that is not empty."""

_MARKED = b"eatss keeps results here, and removes what is old\n"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@frozen
class Entry:
    """What the cache holds: ``last_used_s`` is in seconds since 1970, ``about`` for people."""

    kind: str
    key: str
    size_bytes: int
    about: str
    last_used_s: float


@dataclass(frozen=True, slots=True)
class Cache:
    """Bytes by kind and key, in a folder, safe for threads and processes.

        cache = Cache(Path("build/cache"))
        cache.put("select", key_of("gemm", 32), b"...")
        cache.get("select", key_of("gemm", 32))

    It is off where the folder cannot be used (see :meth:`problem`) or the limit is 0: everything
    is a miss, and nothing is kept.

    Attributes:
        folder: where entries are, below one folder a kind; made with mode 0700 if need be.
        limit_bytes: when entries take more, those that were not used for longest are removed.
    """

    folder: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES

    def __post_init__(self) -> None:
        """Take a folder's name for the folder."""
        object.__setattr__(self, "folder", Path(self.folder))

    def file(self, kind: str, key: str) -> Path:
        """Return where an entry is, if it is there: a file with a header before the data.

        Raises:
            ValueError: the kind is no small word, or the key is not one of :func:`key_of`.
        """
        if not _KIND.fullmatch(kind) or not _KEY.fullmatch(key):
            raise ValueError(f"no kind and key of an entry: {kind!r}, {key!r}")
        return self.folder / kind / f"{key}{_SUFFIX}"

    def get(self, kind: str, key: str) -> bytes | None:
        """Return what was put, or ``None``; what is damaged is removed."""
        path = self.file(kind, key)
        if self.limit_bytes <= 0 or self._distrusted() is not None:
            return None
        try:
            data = self._read(path, kind, key)
        except (OSError, MemoryError):
            return None
        if data is not None:
            with suppress(OSError):
                os.utime(path)
        return data

    def put(self, kind: str, key: str, data: bytes, *, about: str = "") -> None:
        """Keep bytes; what was there under the key is replaced.

        Where the disk is full, the folder cannot be used or the data are larger than the limit,
        nothing happens.
        """
        path = self.file(kind, key)
        if len(data) > self.limit_bytes or not self._made():
            return
        file = packed(kind, key, data, about)
        if len(file) > self.limit_bytes:
            return
        beside = path.with_name(f".{os.urandom(8).hex()}.making")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if path.parent.is_symlink():
                return
            try:
                with os.fdopen(
                    os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
                ) as to:
                    to.write(file)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
            if added(self.folder, len(file)) > self.limit_bytes:
                keep_limit(self.folder, self.limit_bytes, self._files)
        except OSError:
            return

    def entries(self) -> tuple[Entry, ...]:
        """Return what is there, what was used last first."""
        found = []
        for one in self._files():
            with suppress(OSError):
                start = _start(one.path)
                found.append(
                    Entry(
                        kind=one.path.parent.name,
                        key=one.path.name.removesuffix(_SUFFIX),
                        size_bytes=one.size_bytes,
                        about=about(start),
                        last_used_s=one.used_ns / 1e9,
                    )
                )
        return tuple(sorted(found, key=lambda one: (-one.last_used_s, one.kind, one.key)))

    def clear(self, kind: str | None = None) -> tuple[int, int]:
        """Remove entries, all or those of a kind; return how many and how many bytes."""
        count = size_bytes = 0
        for one in self._files():
            if kind in (None, one.path.parent.name):
                with suppress(OSError):
                    one.path.unlink()
                    count, size_bytes = count + 1, size_bytes + one.size_bytes
        if self._distrusted() is None:
            swept(self.folder)
        return count, size_bytes

    def problem(self) -> str | None:
        """Return why nothing is kept, as the end of a sentence; ``None`` where all is well."""
        if self.limit_bytes <= 0:
            return "its limit is 0 bytes"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            return f"its folder cannot be made: {error.strerror}"
        distrusted = self._distrusted()
        if distrusted is not None:
            return distrusted
        try:
            import tempfile  # noqa: PLC0415 - rarely asked

            with tempfile.TemporaryFile(dir=self.folder) as trial:
                trial.write(bytes(HEADER_BYTES))
                trial.flush()
        except OSError as error:
            return f"nothing can be written to its folder: {error.strerror}"
        return None

    def _made(self) -> bool:
        """Make the folder if it is not there; tell whether it can be used."""
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._distrusted() is None
        return False

    def _distrusted(self) -> str | None:
        """Return why nothing in the folder counts: others than this user may have written it."""
        try:
            found = self.folder.stat()
        except OSError as error:
            return f"its folder cannot be read: {error.strerror}"
        if not stat.S_ISDIR(found.st_mode):
            return "it is no folder"
        if not hasattr(os, "geteuid"):
            return None
        if found.st_uid != os.geteuid():
            return "its folder belongs to another user"
        if found.st_mode & _OTHERS_WRITE:
            return "others can write to its folder (chmod go-w mends that)"
        return self._unmarked()

    def _unmarked(self) -> str | None:
        """Return why a folder is no cache of eatss; an empty one, or one of before, becomes one."""
        mark = self.folder / _MARK
        with suppress(OSError):
            if stat.S_ISREG(mark.lstat().st_mode):
                return None
        with suppress(OSError):
            if all(map(_is_of_a_cache, self.folder.iterdir())):
                with suppress(OSError), mark.open("xb") as to:
                    to.write(_MARKED)
                return None
        return f"its folder holds other files than a cache of eatss (there is no '{_MARK}' in it)"

    def _read(self, path: Path, kind: str, key: str) -> bytes | None:
        """Return the data of a file; one that is no good is removed.

        Raises:
            OSError: it is not there, or could not be removed.
        """
        try:
            with _opened(path) as file:
                read = os.fstat(file.fileno())
                if stat.S_ISREG(read.st_mode) and read.st_size > self.limit_bytes:
                    return None  # of one who has a larger limit
                data = unpacked(kind, key, file.read()) if stat.S_ISREG(read.st_mode) else None
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _NO_ENTRY:
                path.unlink()
            return None
        if data is None and os.path.samestat(path.lstat(), read):  # else it is a new one already
            path.unlink()
        return data

    def _files(self) -> Iterator[Sized]:
        """Yield the files of entries, and leave anything else alone."""
        with suppress(OSError):
            if self._distrusted() is not None:
                return
            for kind in sorted(self.folder.iterdir()):
                if _KIND.fullmatch(kind.name) and kind.is_dir() and not kind.is_symlink():
                    yield from _files_of(kind)


def _is_of_a_cache(path: Path) -> bool:
    """Tell whether a file or folder may be one that a cache made."""
    if path.name.endswith(".making") or path.is_symlink():
        return not path.is_symlink()
    if path.is_dir():
        return bool(_KIND.fullmatch(path.name)) and all(
            one.name.endswith((_SUFFIX, ".making")) for one in path.iterdir()
        )
    return path.name == LOCK or (path.name == SIZE and path.read_bytes()[:16].isdigit())


def _files_of(kind: Path) -> Iterator[Sized]:
    with os.scandir(kind) as found:
        for one in found:
            if not one.name.endswith(_SUFFIX) or not _KEY.fullmatch(one.name[: -len(_SUFFIX)]):
                continue
            with suppress(OSError):  # it has gone meanwhile
                known = one.stat(follow_symlinks=False)
                yield Sized(
                    path=Path(one.path), size_bytes=known.st_size, used_ns=known.st_mtime_ns
                )


def _opened(path: Path) -> BufferedReader:
    """Open a file, but no link, and without waiting for who writes to a pipe."""
    return open(path, "rb", opener=lambda name, _: os.open(name, _OPEN))


def _start(path: Path) -> bytes:
    """Return the first bytes of a file; none of what is no file or may not be read."""
    try:
        with _opened(path) as file:
            return file.read(HEADER_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except PermissionError:
        return b""


_MAGIC = b"eatss-cache 1 "
_DIGEST = 64
_SEAL = len(_MAGIC) + _DIGEST + 1
_MOST_ABOUT = 200

HEADER_BYTES = 4096
"""What is enough to read of a file to know what it is about."""


def packed(kind: str, key: str, data: bytes, about: str) -> bytes:
    """Return the file of an entry; ``about`` says in at most 200 characters what it is."""
    described = {"kind": kind, "key": key, "about": about[:_MOST_ABOUT], "length": len(data)}
    rest = json.dumps(described).encode("ascii") + b"\n" + data
    return _MAGIC + hashlib.sha256(rest).hexdigest().encode("ascii") + b"\n" + rest


def unpacked(kind: str, key: str, file: bytes) -> bytes | None:
    """Return the data of an entry; ``None`` if the file is not what was packed under its name."""
    rest = memoryview(file)[_SEAL:]
    if not file.startswith(_MAGIC) or file[_SEAL - 1 : _SEAL] != b"\n":
        return None
    if hashlib.sha256(rest).hexdigest().encode("ascii") != file[len(_MAGIC) : _SEAL - 1]:
        return None
    described = _described(file)
    start = file.find(b"\n", _SEAL) + 1
    data = file[start:]
    wanted = {"kind": kind, "key": key, "length": len(data)}
    if {name: described.get(name) for name in wanted} != wanted:
        return None
    return data


def about(start: bytes) -> str:
    """Return what a file is about, from its first ``HEADER_BYTES``; ``""`` if that is unknown."""
    found = _described(start).get("about")
    return found if isinstance(found, str) else ""


def _described(start: bytes) -> dict[str, object]:
    line = start[_SEAL : max(start.find(b"\n", _SEAL), 0)]
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@frozen
class Contents(Shown):
    """A cache with its entries, what was used last first.

    ``size_bytes`` are those of all entries. ``problem`` says why nothing is kept, ``None`` where
    all is well.
    """

    shown_by = "eatss.report.listings:contents_parts"

    folder: str
    limit_bytes: int
    size_bytes: int
    problem: str | None
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, cache: Cache) -> Contents:
        """Look at a cache."""
        entries = cache.entries()
        return cls(
            folder=str(cache.folder),
            limit_bytes=cache.limit_bytes,
            size_bytes=sum(one.size_bytes for one in entries),
            problem=cache.problem(),
            entries=entries,
        )

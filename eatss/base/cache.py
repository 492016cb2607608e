"""Keys of the cache: all that decides a result, the code of eatss included, as one SHA-256.

How the cache keeps to its limit without looking at all of its files whenever one is added.

The file ``size`` says in 16 digits how many bytes there were when all files were last looked at;
behind them stands one byte for every 4 KiB that was added since. Only where the two together are
over the limit, all files are looked at again, by one process at a time. The estimate is never too
small: a process that dies between two steps leaves it too large or unreadable, which means the
same.

The cache as a folder of files, shared by threads and processes, with a limit on its size.

An entry is a file that is written beside its place and renamed: who reads sees all of it or
nothing. Whatever cannot be trusted or read is a miss; no trouble with the disk is an error.
The package ``diskcache`` is not used: it unpickles values where its database says so, and who
changes the database would run code.

The cache that is used: the keyword ``cache``, and where nobody gives it a folder of the user's.

``EATSS_CACHE_DIR`` names another folder, ``EATSS_CACHE_LIMIT`` another limit (``500M``, ``2G``, a
number of bytes; 0 turns the cache off). They are read here and nowhere else.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from io import BufferedReader
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.options import option
from eatss.base.shown import Shown
from eatss.version import __version__

if TYPE_CHECKING:
    import tempfile


def key_of(*parts: object) -> str:
    """Return the key of what parts decide, in 64 hexadecimal digits.

        key_of("select", source_text, options, versions())

    Parts are text, bytes, numbers, ``None``, paths, members of enumerations, dataclasses, and
    tuples, lists, sets and mappings of such. Different parts have different keys; a list counts as
    a tuple, and the order of a mapping does not count.

    Raises:
        TypeError: a part is of another type.
    """
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


def canonical(part: object) -> str:
    """Return a part as JSON that no other part has."""
    return json.dumps(_plain(part), ensure_ascii=False, separators=(",", ":"))


def _plain(part: Any) -> Any:
    """Return a part in JSON's types; a list begins with a word that tells what it stands for."""
    if isinstance(part, Enum):
        return ["member", _type(part), part.name]
    if part is None or type(part) in (bool, int, str):
        return part
    if is_dataclass(part) and not isinstance(part, type):
        return [
            "noun",
            _type(part),
            *([f.name, _plain(getattr(part, f.name))] for f in fields(part)),
        ]
    return _PLAIN[_base(part)](part)


def _base(part: object) -> type:
    for base in _PLAIN:
        if isinstance(part, base):
            return base
    raise TypeError(f"no part of a key: {type(part).__name__}")


def _type(part: object) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"


def _pairs(part: Mapping[Any, Any]) -> list[Any]:
    pairs = [[_plain(key), _plain(value)] for key, value in part.items()]
    return ["mapping", *sorted(pairs, key=json.dumps)]


_PLAIN: dict[type, Any] = {
    float: lambda part: ["float", float.hex(part)],
    bytes: lambda part: ["bytes", len(part), hashlib.sha256(part).hexdigest()],
    tuple: lambda part: ["list", *map(_plain, part)],
    list: lambda part: ["list", *map(_plain, part)],
    frozenset: lambda part: ["set", *sorted(map(_plain, part), key=json.dumps)],
    set: lambda part: ["set", *sorted(map(_plain, part), key=json.dumps)],
    Mapping: _pairs,
    PathLike: lambda part: ["path", fspath(part)],
}


_BUILT_ON = ("islpy", "z3-solver", "libclang", "networkx", "numpy")


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Return names and versions; ``"none"`` of what is not installed. Nothing is imported.

    The code of eatss counts by the sizes and times of its files too: in a working copy it changes
    without its version.
    """
    return (
        ("eatss", f"{__version__} {_code()}"),
        ("python", ".".join(map(str, sys.version_info[:3]))),
        *_installed(),
    )


def _installed() -> tuple[tuple[str, str], ...]:
    """Return the versions of packages, as the folders of their metadata are called."""
    found: dict[str, str] = {}
    for folder in filter(os.path.isdir, sys.path):
        for one in os.listdir(folder):  # noqa: PTH208 - names are enough
            name, _, version = one.removesuffix(".dist-info").partition("-")
            if one.endswith(".dist-info"):
                found.setdefault(name.lower().replace("_", "-"), version)
    return tuple((name, found.get(name) or _version(name)) for name in _BUILT_ON)


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - loads slowly

    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _code() -> str:
    root = Path(__file__).resolve().parents[2]
    known = sorted(_files(str(root)))
    return hashlib.sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path, the size and the time of every file that is code or is read by it."""
    with os.scandir(folder) as found:
        for one in found:
            if one.is_dir(follow_symlinks=False):
                if one.name != "__pycache__":
                    yield from _files(one.path)
            elif one.name.endswith((".py", ".h", ".hpp")):
                known = one.stat()
                yield one.path, known.st_size, known.st_mtime_ns


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


_LIMIT = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def default_cache() -> Cache:
    """Return the user's cache.

    Raises:
        InputError: ``EATSS-C016``, ``EATSS_CACHE_LIMIT`` is no size.
    """
    named = os.environ.get("EATSS_CACHE_DIR", "")
    folder = Path(named).absolute() if named else _users_folder()
    return Cache(folder, _limit_bytes(os.environ.get("EATSS_CACHE_LIMIT", "")))


def _users_folder() -> Path:
    try:
        from platformdirs import user_cache_path  # noqa: PLC0415 - measuring does without
    except ModuleNotFoundError:
        return Path(_for_this_process().name)
    return user_cache_path("eatss", appauthor=False)


@cache
def _for_this_process() -> tempfile.TemporaryDirectory[str]:
    import tempfile  # noqa: PLC0415 - where there is no folder of the user's

    return tempfile.TemporaryDirectory(prefix="eatss-cache-")


def _limit_bytes(text: str) -> int:
    if not text.strip():
        return DEFAULT_LIMIT_BYTES
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        raise input_error(
            "EATSS-C016",
            f"EATSS_CACHE_LIMIT is '{text}', which is no size",
            hint="write a number of bytes, or 500M, or 2G; 0 turns the cache off",
        )
    return int(found[1]) << _UNITS[found[2].upper()]


@dataclass(frozen=True, kw_only=True)
class Caching:
    """Where results are kept, in the words of the user.

    Attributes:
        cache: Whether what was found before for the same input is taken, and what is found is
            kept: by default in the user's cache, in an ``eatss.base.cache.Cache``, or with
            ``False`` not at all.

    Raises:
        InputError: ``EATSS-C004``, it is none of these.
    """

    cache: Annotated[
        Cache | bool | None,
        option(
            "--no-cache",
            kind=bool,
            default=False,
            made=lambda off: False if off else None,
            panel="Output",
            help="Compute anew: neither take nor keep results of before.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if not isinstance(self.cache, Cache | bool | None):
            raise input_error(
                "EATSS-C004", f"cache is {self.cache!r}", hint="give True, False or a Cache"
            )

    def chosen(self) -> Cache | None:
        """Return the cache to use.

        Raises:
            InputError: ``EATSS-C016``, ``EATSS_CACHE_LIMIT`` is no size.
        """
        if isinstance(self.cache, Cache):
            return self.cache
        return None if self.cache is False else default_cache()

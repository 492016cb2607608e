"""Results as files of a folder, by kind and key, with a limit on their size.

A key is a SHA-256 of all that decides a result, the code of eatss included. An entry is written
beside its place and renamed: who reads sees all of it or nothing. What cannot be read is a miss;
no trouble with the disk is an error. (``diskcache`` unpickles what its database says: who changes
that would run code.)

``EATSS_CACHE_DIR`` names another folder than the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any

from eatss.base.diagnostics import input_error
from eatss.base.frozen import fixed
from eatss.base.options import option
from eatss.base.text import NamedTexts
from eatss.version import __version__


def key_of(*parts: object) -> str:
    """Return the key of what parts decide, in 64 hexadecimal digits.

        key_of("select", source_text, options, versions())

    Parts are text, bytes, numbers, ``None``, paths, members of enumerations, dataclasses, and
    tuples, lists, sets and mappings of such. Different parts have different keys; a list counts as
    a tuple, and the order of a mapping does not count.

    Raises:
        TypeError: a part is of another type.
    """
    return hashlib.sha256(json.dumps(parts, default=_plain, sort_keys=True).encode()).hexdigest()


def _plain(part: Any) -> Any:
    """Return what JSON has no type for in types that it has, with a word that tells what it is."""
    kind = type(part).__qualname__
    if isinstance(part, Enum):
        return [kind, part.name]
    if is_dataclass(part):
        return [kind, {one.name: getattr(part, one.name) for one in fields(part)}]
    if isinstance(part, Mapping):
        return dict(part)
    if isinstance(part, bytes):
        return [kind, hashlib.sha256(part).hexdigest()]
    if isinstance(part, set | frozenset):
        return [kind, *sorted(json.dumps(one, default=_plain, sort_keys=True) for one in part)]
    if isinstance(part, PathLike):
        return ["path", fspath(part)]
    raise TypeError(f"no part of a key: {kind}")


_BUILT_ON = ("islpy", "z3_solver", "libclang", "numpy")


@cache
def versions() -> NamedTexts:
    """Return names and versions of what results are made by. Nothing is imported.

    The code of eatss counts by the sizes and times of its files too: in a working copy it changes
    without its version.
    """
    code = repr(sorted(_code(str(Path(__file__).resolve().parents[2]))))
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
    found: dict[str, str] = {}
    for folder in filter(os.path.isdir, sys.path):
        for one in os.listdir(folder):  # noqa: PTH208 - importlib.metadata loads slowly
            name, _, version = one.removesuffix(".dist-info").partition("-")
            if one.endswith(".dist-info"):
                found.setdefault(name.lower(), version)
    return (
        ("eatss", f"{__version__} {digest}"),
        ("python", ".".join(map(str, sys.version_info[:3]))),
        *((name, found.get(name, "none")) for name in _BUILT_ON),
    )


def _code(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path, the size and the time of every file that is code or is read by it."""
    with os.scandir(folder) as found:
        for one in found:
            if one.is_dir(follow_symlinks=False):
                if one.name != "__pycache__":
                    yield from _code(one.path)
            elif one.name.endswith((".py", ".h", ".hpp")):
                known = one.stat()
                yield one.path, known.st_size, known.st_mtime_ns


DEFAULT_LIMIT_BYTES = 1 << 30

_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}")
_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".entry"
_OTHERS_WRITE = 0o022
_DIGEST_BYTES = 32


@fixed
class Cache:
    """Bytes by kind and key, in a folder, safe for threads and processes.

        cache = Cache(Path("build/cache"))
        cache.put("select", key_of("gemm", 32), b"...")
        cache.get("select", key_of("gemm", 32))

    It is off where the folder cannot be used (see :meth:`problem`): everything is a miss, and
    nothing is kept.

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
        """Return where an entry is, if it is there: the SHA-256 of the data, and the data.

        Raises:
            ValueError: the kind is no small word, or the key is not one of :func:`key_of`.
        """
        if not _KIND.fullmatch(kind) or not _KEY.fullmatch(key):
            raise ValueError(f"no kind and key of an entry: {kind!r}, {key!r}")
        return self.folder / kind / f"{key}{_SUFFIX}"

    def get(self, kind: str, key: str) -> bytes | None:
        """Return what was put, or ``None``."""
        path = self.file(kind, key)
        if self.problem() is not None:
            return None
        try:
            found = path.read_bytes()
            data = found[_DIGEST_BYTES:]
            if found[:_DIGEST_BYTES] != hashlib.sha256(data).digest():
                return None
            os.utime(path)
        except OSError:
            return None
        return data

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Keep bytes; what was there under the key is replaced.

        Where the disk is full, the folder cannot be used or the data are larger than the limit,
        nothing happens.
        """
        path = self.file(kind, key)
        if len(data) + _DIGEST_BYTES > self.limit_bytes or self.problem() is not None:
            return
        beside = path.with_name(f".{os.urandom(8).hex()}{_SUFFIX}")
        with suppress(OSError):  # another process removes files, too
            path.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                beside.write_bytes(hashlib.sha256(data).digest() + data)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
            self._keep_limit()

    def files(self, kind: str = "*") -> list[Path]:
        """Return the files of entries, of all kinds or of one, and of those being written."""
        return [*self.folder.glob(f"{kind}/*{_SUFFIX}")] if self.problem() is None else []

    def problem(self) -> str | None:
        """Return why nothing is kept, as the end of a sentence; ``None`` where all is well."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.stat()
        except OSError as error:
            return f"its folder cannot be made: {error.strerror}"
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            return "its folder belongs to another user"
        if hasattr(os, "geteuid") and found.st_mode & _OTHERS_WRITE:
            return "others can write to its folder (chmod go-w mends that)"
        return None

    def _keep_limit(self) -> None:
        """Where there is more than the limit, leave three quarters of it: what was used last."""
        known = [(path.stat(), path) for path in self.files()]
        total = sum(status.st_size for status, _ in known)
        if total > self.limit_bytes:
            for status, path in sorted(known, key=lambda one: one[0].st_mtime_ns)[:-1]:
                if total > self.limit_bytes * 3 // 4:
                    path.unlink(missing_ok=True)
                    total -= status.st_size


def default_cache() -> Cache:
    """Return the user's cache."""
    named = os.environ.get("EATSS_CACHE_DIR", "")
    usual = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not usual.is_absolute():  # then the standard has it ignored
        usual = Path.home() / ".cache"
    return Cache(Path(named).absolute() if named else usual / "eatss")


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
        """Return the cache to use."""
        if isinstance(self.cache, Cache):
            return self.cache
        return None if self.cache is False else default_cache()

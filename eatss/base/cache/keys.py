"""Keys of the cache: all that decides a result, the code of eatss included, as one SHA-256."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

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

"""Keys of the cache: everything that decides a result, as one SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from os import PathLike, fspath
from typing import Any


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

"""An entry of the cache as the bytes of one file: a line that seals the rest, what it is, the data.

    eatss-cache 1 <SHA-256 of all that follows>
    {"kind": "select", "key": "…", "about": "gemm.c for a100", "length": 1234}
    <1234 bytes>

A file that is cut, changed at any byte, of another format or under another name is no entry.
"""

from __future__ import annotations

import hashlib
import json

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

"""What besides the user's input decides a result: the code of eatss and what it is built on."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from eatss.version import __version__

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
        *((name, _version(name)) for name in _BUILT_ON),
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _code() -> str:
    root = Path(__file__).resolve().parents[1]
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

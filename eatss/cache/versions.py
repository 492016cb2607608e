"""What besides the user's input decides a result: the code of eatss and what it is built on."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
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

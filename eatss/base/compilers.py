"""What an installation may lack: nvcc, and packages that only generating needs.

:func:`find_nvcc` finds the compiler that is named, or that of this machine; in the block of
:func:`missing_packages_named` a package that is not there is a finding.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.options import option

USUAL = "/usr/local/cuda/bin/nvcc"
"""Where the CUDA toolkit puts it; looked at after the path."""

_RELEASE = re.compile(r"release [\d.]+, V([\d.]+)")
_LIMIT_S = 60


nvcc_option = partial(
    option, "--nvcc", metavar="PATH", help="The CUDA compiler; default: nvcc on the path."
)


@frozen
class Nvcc:
    """An nvcc that starts: its path, and its version as in 12.8.93."""

    path: str
    version: str


def find_nvcc(named: str | None = None) -> Nvcc:
    """Return the nvcc that is named, or the one of this machine.

    Args:
        named: a path, or a command; by default nvcc on the path, else that of the CUDA toolkit.

    Raises:
        InputError: ``EATSS-V010``, there is none, or what is named is something else.
    """
    path = shutil.which(named or "nvcc")
    if path is None and named is None and Path(USUAL).exists():
        path = USUAL
    if path is None:
        raise input_error(
            "EATSS-V010",
            f"there is no CUDA compiler '{named or 'nvcc'}'",
            hint=f"install the CUDA toolkit, or name its compiler, as in --nvcc {USUAL}",
        )
    said = " ".join(_version_of(path).split())
    found = _RELEASE.search(said)
    if found is None or "nvcc" not in said.lower():
        raise input_error(
            "EATSS-V010",
            f"'{path}' is no nvcc: asked for its version it says {said[:80] or 'nothing'}",
            hint=f"name the compiler of the CUDA toolkit, as in --nvcc {USUAL}",
        )
    return Nvcc(path=path, version=found[1])


def _version_of(path: str) -> str:
    """Return what a compiler says of its version, nothing where it does not start."""
    how: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    try:
        done = subprocess.run([path, "--version"], **how, errors="replace", timeout=_LIMIT_S)  # noqa: S603, PLW1510
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{done.stdout}{done.stderr}"


GENERATING = {"z3": "z3-solver", "islpy": "islpy", "clang": "libclang"}
"""What ``eatss-measure`` leaves out: modules, and how ``pip`` calls them."""

CARRIED_WITHOUT = frozenset({"numpy", "pydantic", "scipy"})
"""What the one file of ``eatss-measure`` leaves to the machine it is carried to."""


@contextmanager
def missing_packages_named() -> Iterator[None]:
    """Say in words in the block that a package is not there, if an installation may leave it out.

    Raises:
        InputError: ``EATSS-C030``, such a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise _in_words(error) or error from None


def _in_words(error: ModuleNotFoundError) -> InputError | None:
    needed = (error.name or "").partition(".")[0]
    if needed in CARRIED_WITHOUT:
        named = needed
        hint = f"pip install {needed}"
    elif needed in GENERATING:
        named = ", ".join(pip for name, pip in GENERATING.items() if not _installed(name))
        hint = "pip install eatss; programs are verified and measured without"
    else:
        return None
    return input_error("EATSS-C030", f"this needs {named}, not installed here", hint=hint)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False

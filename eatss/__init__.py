"""Energy-aware, polyhedral tile-size selection for GPUs.

C with affine loops in; tile sizes that save energy at full speed out::

    import eatss

    selection = eatss.select("gemm.c", gpu="a100")
    selection.kernels[0].tile_sizes  # (("i", 16), ("j", 384), ("k", 16))

Importing ``eatss`` is cheap: solver and compiler libraries load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eatss.api import codegen, inspect, select
    from eatss.diagnostics import Diagnostic, EatssError, InputError, InternalError, NoSolutionError
    from eatss.gpu import GpuProfile, list_profiles, load_profile
    from eatss.model.selection import KernelSelection, Selection
    from eatss.program import Program

__version__ = "0.1.0"

_CALLABLE = ("codegen",)
"""Packages that can be called as the function of the API that has their name."""

_HOME = {
    "Diagnostic": "eatss.diagnostics",
    "EatssError": "eatss.diagnostics",
    "GpuProfile": "eatss.gpu",
    "InputError": "eatss.diagnostics",
    "InternalError": "eatss.diagnostics",
    "KernelSelection": "eatss.model.selection",
    "NoSolutionError": "eatss.diagnostics",
    "Program": "eatss.program",
    "Selection": "eatss.model.selection",
    "inspect": "eatss.api",
    "list_profiles": "eatss.gpu",
    "load_profile": "eatss.gpu",
    "select": "eatss.api",
}

__all__ = [
    "Diagnostic",
    "EatssError",
    "GpuProfile",
    "InputError",
    "InternalError",
    "KernelSelection",
    "NoSolutionError",
    "Program",
    "Selection",
    "__version__",
    "codegen",
    "inspect",
    "list_profiles",
    "load_profile",
    "select",
]


def __getattr__(name: str) -> object:
    """Load a public name from its home on first use (PEP 562)."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    if name in _CALLABLE:
        return import_module(f"eatss.{name}")
    raise AttributeError(f"module 'eatss' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)

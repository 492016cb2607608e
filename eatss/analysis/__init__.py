"""``Kernel`` in; ``KernelFacts`` out: CMA loop, memory classes, reuse, weights, volumes.

``mapping`` says which loops go to blocks and threads, to the model and the generator alike.

Next folder: ``eatss/model``.

Importing this package is cheap: isl is loaded when something is analysed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eatss.analysis.analyse import analyse_kernel
    from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts, Volume, VolumeKind

__all__ = [
    "KernelFacts",
    "Memory",
    "ReferenceFacts",
    "Volume",
    "VolumeKind",
    "analyse_kernel",
]

_HOME = {
    "KernelFacts": "facts",
    "Memory": "facts",
    "ReferenceFacts": "facts",
    "Volume": "facts",
    "VolumeKind": "facts",
    "analyse_kernel": "analyse",
}


def __getattr__(name: str) -> object:
    """Load a name from its file on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

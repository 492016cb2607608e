"""``Kernel`` in; ``KernelFacts`` out: CMA loop, memory classes, reuse, weights, volumes.

``mapping`` says which loops go to blocks and threads, to the model and the generator alike.

Next folder: ``eatss/choose``.

Importing this package is cheap: isl is loaded when something is analysed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

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


__getattr__ = loading_names(__name__, _HOME)

"""``Kernel`` in; ``KernelFacts`` out: CMA loop, memory classes, reuse, weights, volumes.

The nouns ``KernelVariant``, how a kernel can be cut, and ``Layout``, all that is chosen for it, are
here, too. Next folder: ``eatss/choose``.

Importing this package is cheap: isl is loaded when something is analysed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts, Volume, VolumeKind

__all__ = ["KernelFacts", "Memory", "ReferenceFacts", "Volume", "VolumeKind"]

__getattr__ = loading_names(__name__, dict.fromkeys(__all__, "facts"))

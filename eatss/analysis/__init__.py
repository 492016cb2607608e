"""``Kernel`` in; ``KernelFacts`` out: CMA loop, memory classes, reuse, weights, volumes.

``mapping`` says which loops go to blocks and threads, to the model and the generator alike.

Next folder: ``eatss/model``.
"""

from eatss.analysis.analyse import analyse, analyse_kernel
from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts, Volume, VolumeKind

__all__ = [
    "KernelFacts",
    "Memory",
    "ReferenceFacts",
    "Volume",
    "VolumeKind",
    "analyse",
    "analyse_kernel",
]

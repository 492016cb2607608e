"""Which iterators are decisions by their names."""

from __future__ import annotations

import re

BY_NAME = ("tile", "threads", "points", "staged")
"""Decisions about a loop or an array, whose name follows: ``tile_i``."""

CUTS = ("warps", "stages", "host", "share", "stream", "lanes", "steps", "chunks")
"""Decisions about a kernel as a whole."""

_OF_KERNEL = re.compile(rf"([A-Za-z_]\w*\.)?(({'|'.join(BY_NAME)})_\w+|{'|'.join(CUTS)})", re.ASCII)
SELECTING = (
    "objective",
    "model",
    "volume",
    "split",
    "warp_fraction",
    "uniform",
    "shared_per_block",
)
"""Decisions about the model: sizes are selected under them."""

OF_PPCG = ("max_shared_memory", "unroll_gpu_tile")
"""Decisions about PPCG's options."""


def is_decision(name: str) -> bool:
    """Tell whether a name is that of a decision: ``tile_i``, ``k0.threads_j``, ``split``."""
    return name in (*SELECTING, *OF_PPCG) or bool(_OF_KERNEL.fullmatch(name))

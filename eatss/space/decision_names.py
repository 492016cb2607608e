"""Which iterators are decisions by their names."""

from __future__ import annotations

import re

_BY_LOOP = re.compile(r"([A-Za-z_]\w*\.)?(tile|threads|points|staged)_\w+", re.ASCII)
_BY_NAME = re.compile(
    r"([A-Za-z_]\w*\.)?(lanes|steps|chunks|host|warps|stages|share|stream)", re.ASCII
)
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
    return name in (*SELECTING, *OF_PPCG) or bool(
        _BY_LOOP.fullmatch(name) or _BY_NAME.fullmatch(name)
    )

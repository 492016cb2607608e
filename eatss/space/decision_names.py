"""Which iterators are decisions by their names."""

from __future__ import annotations

import re

_BY_LOOP = re.compile(r"([A-Za-z_]\w*\.)?(tile|threads|points|staged)_\w+", re.ASCII)
_BY_NAME = re.compile(r"([A-Za-z_]\w*\.)?(lanes|steps|chunks|host)", re.ASCII)
_OPTIONS = frozenset(
    {
        "objective",
        "model",
        "volume",
        "split",
        "warp_fraction",
        "uniform",
        "shared_per_block",
        "max_shared_memory",
    }
)


def is_decision(name: str) -> bool:
    """Tell whether a name is that of a decision: ``tile_i``, ``k0.threads_j``, ``split``."""
    return name in _OPTIONS or bool(_BY_LOOP.fullmatch(name) or _BY_NAME.fullmatch(name))

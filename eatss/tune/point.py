"""A point of a search space: what one variant decides, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, TypeAlias

from eatss.base.codec import BY_NAME

Value: TypeAlias = bool | int | float | str

Point: TypeAlias = Mapping[str, Value]
"""Values by the names of a space, such as ``{"tile_i": 64, "threads_i": 16}``."""

Configuration: TypeAlias = dict[str, Value]
"""A point that stands by itself, and may be changed."""

Values = Annotated[tuple[tuple[str, Value], ...], BY_NAME]
"""A point in a noun: pairs, in the order of the space."""


def variant_key(point: Point) -> str:
    """Return what tells a point from all others of its space, whatever the order of its names."""
    text = json.dumps(dict(point), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]

"""The sizes that PPCG says it used (``--dump-sizes``)."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from eatss.base.frozen import frozen
from eatss.polyhedral.isl_names import maps_of, points_of
from eatss.ppcg_build.run import ppcg_error


@frozen
class UsedSizes:
    """Tile and block sizes by the number of a kernel; a block's last is along x."""

    tiles: Mapping[int, tuple[int, ...]]
    blocks: Mapping[int, tuple[int, ...]]


def used_sizes(said: str) -> UsedSizes:
    """Read what PPCG said under ``--dump-sizes``; nothing is used where it says nothing.

    Raises:
        PpcgError: ``EATSS-R025``, a line begins as sizes do and has none.
    """
    found: dict[str, dict[int, tuple[int, ...]]] = {"tile": {}, "block": {}, "grid": {}}
    for line in filter(is_dump, said.splitlines()):
        try:
            for each in maps_of(isl.UnionMap(line)):
                kind = found.setdefault(each.range().get_tuple_name() or "", {})
                points = points_of(each.wrap().flatten())
                kind |= {number: tuple(sizes) for number, *sizes in points}
        except (isl.Error, ValueError, OverflowError):
            raise ppcg_error(
                "EATSS-R025",
                "PPCG printed sizes (--dump-sizes) that cannot be read",
                f"it said: {line}",
            ) from None
    return UsedSizes(tiles=found["tile"], blocks=found["block"])


def is_dump(line: str) -> bool:
    """Tell whether a line that PPCG printed has the sizes."""
    return line.startswith("{ kernel[") or line.strip() == "{  }"

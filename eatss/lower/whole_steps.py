"""Where the steps of serial loops are whole, and what of a box the edges of an array leave there.

The tile of ``C[i][j] += A[i][k] * B[k][j]`` at the last rows of ``A`` reads fewer of them than its
box has, in all of its steps alike. So where a step has all its ``k``, an element is read where
``i < N``, which no step changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from eatss.isl_names import coalesced, involved_parameters, without_parameters
from eatss.lower.bounds import guard
from eatss.lower.promotion import SharedTile
from eatss.program import IntExpr, Name
from eatss.schedule.mapping import Mapping
from eatss.schedule.names import NameTable


@dataclass(frozen=True, slots=True)
class WholeSteps:
    """``where`` steps of serial loops are whole, elements of a box are read under a ``condition``.

    The ``footprint`` is what is read, ``box`` what there is of it; places are parameters.
    """

    where: IntExpr
    condition: IntExpr
    footprint: isl.Set
    box: isl.Set


def whole_steps(
    tile: SharedTile,
    at: Sequence[str],
    footprint: isl.Set,
    box: isl.Set,
    known: isl.Set,
    mapping: Mapping,
) -> WholeSteps | None:
    """Return where steps of serial loops are whole, and what of a box is read there.

    That is the same for all steps; tiles begin at multiples of their sizes.

    Args:
        tile: the box.
        at: the names of an element's place, a parameter for each dimension.
        footprint: the elements that are read.
        box: those that there are.
        known: what is known of sizes and origins.
        mapping: the loops of the block.

    Returns:
        ``None`` where no serial loop moves the box, or where no steps of one are whole.
    """
    origins = {one.origin for one in mapping.serial}
    moving = [
        name
        for name, offset in zip(at, tile.offsets, strict=True)
        if origins & {*involved_parameters(offset)}
    ]
    if not moving or mapping.split is not None:
        return None
    tiles = {one.origin: one.tile for one in mapping.spread}
    tiles |= {one.origin: one.tile for one in mapping.serial}
    for origin, size in tiles.items():
        begins = _set(known, f"{origin} mod {size} = 0", origin)
        known, box = known.intersect(begins), box.intersect(begins)
    edge = without_parameters(footprint, moving)
    missing = without_parameters(box.intersect(edge).subtract(footprint), at)
    where = coalesced(known.subtract(missing))
    if where.is_empty():
        return None
    condition = guard(edge, without_parameters(box, moving).intersect(where))
    return WholeSteps(guard(where, known), condition, footprint, box.intersect(where))


def in_vectors(
    steps: WholeSteps,
    name: str,
    begin: isl.PwAff,
    shape: Sequence[IntExpr],
    width: int,
    names: NameTable,
) -> bool:
    """Tell whether vectors that begin where one may are read as a whole or not at all.

    Args:
        steps: what is read.
        name: the place in a row of the array.
        begin: where the box begins in it.
        shape: the extents of the array. That rows are whole vectors is tested with its address.
        width: elements of a vector.
        names: names that are free.
    """
    end = names.inner().fresh("end")
    begins = steps.box.intersect(_set(steps.box, f"{name} mod {width} = 0", name))
    offset = begin.mod_val(isl.Val.int_from_si(begin.get_ctx(), width))
    begins = begins.intersect(offset.zero_set())  # tested in front of the copy
    row = shape[-1]
    if len(shape) > 1 and isinstance(row, Name):
        begins = begins.intersect(_set(begins, f"{row.name} mod {width} = 0", row.name))
    position = steps.footprint.find_dim_by_name(isl.dim_type.param, name)
    other = steps.footprint.set_dim_name(isl.dim_type.param, position, end)
    first = begins.intersect(steps.footprint)
    for behind in range(1, width):
        there = _set(begins, f"{end} = {name} + {behind}", name, end)
        later = without_parameters(other.intersect(there), (end,))
        if not begins.intersect(later).is_equal(first):
            return False
    return True


def _set(beside: isl.Set, text: str, *names: str) -> isl.Set:
    """Return the values of parameters of which something holds."""
    return isl.Set.read_from_str(beside.get_ctx(), f"[{', '.join(names)}] -> {{ : {text} }}")

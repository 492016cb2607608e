"""Loops on the host over wavefronts, cut into tiles that are wavefronts, too.

    for (c = …)                            for (W = …)                    // W = C + I
        parallel (i): S(i, c - i)     →       parallel (I = …)            // tiles
                                                  for (c of the tile C = W - I)
                                                      parallel (i of the tile I): S(i, c - i)

A tile has so many values of the host loop's function, and of a function for each parallel loop:
the loop's own, or one skewed by others, which takes no dependence backwards. So along each of them
a dependence stays in its tile or leads to a later one, and the sum of a tile's numbers rises with
every dependence that leaves it [Wolfe, *Loops skewing: the wavefront method revisited*, 1986].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import islpy as isl

from eatss.polyhedral.isl_names import among
from eatss.polyhedral.scop import Dependences
from eatss.polyhedral.tree import alone, coincident, identity, preorder, together, with_band
from eatss.polyhedral.tree import functions as tree_functions

_SKEWS = (0, 1, 2)
"""How often another function is added to a loop's own."""


def tile_functions(
    host: isl.UnionPwAff, loops: Sequence[isl.UnionPwAff], dependences: Dependences
) -> tuple[isl.UnionPwAff, ...] | None:
    """Return the functions along which wavefronts can be cut into tiles, that of the host first.

    Args:
        host: the function of the loop on the host.
        loops: those of the parallel loops inside.
        dependences: of the region.

    Returns:
        ``None`` where some loop has none.
    """
    instances = host.domain()
    rules = among(dependences.needed, instances)
    found = [host] if _runs_forward(host, rules) else []
    for loop in loops:
        skewed = (one for one in _skewed(loop, found) if _runs_forward(one, rules))
        own = next(skewed, None) if found else None
        if own is None:
            return None
        found.append(own)
    return tuple(found) or None


def _runs_forward(function: isl.UnionPwAff, rules: isl.UnionMap) -> bool:
    return bool(rules.lex_gt_at_multi_union_pw_aff(alone(function)).is_empty())


def _skewed(loop: isl.UnionPwAff, others: Sequence[isl.UnionPwAff]) -> Iterator[isl.UnionPwAff]:
    """Yield a loop's function with others added, the host's last, least of all first."""
    every = sorted(product(_SKEWS, repeat=len(others)), key=lambda times: (times[0], sum(times)))
    for times in every:
        own = loop
        for other, number in zip(others, times, strict=True):
            for _ in range(number):
                own = own.add(other)
        yield own


def in_tiles(
    schedule: isl.Schedule,
    band: int,
    functions: Sequence[isl.UnionPwAff],
    sizes: Sequence[int],
) -> isl.Schedule:
    """Return a schedule with loops over tiles around a loop on the host, one after another.

    The parallel loops inside are those of the functions.

    Args:
        schedule: it.
        band: the band of the loop, see :func:`eatss.polyhedral.tree.identity`.
        functions: what tiles are cut along, the host's first.
        sizes: how many values of each a tile has.
    """
    node = next(one for one in preorder(schedule.get_root()) if identity(one) == band)
    inner = node.child(0)
    marks, serial = coincident(inner), tree_functions(inner)[len(functions) - 1 :]
    node = with_band(inner.delete(), (*functions[1:], *serial), marks).parent()
    context = schedule.get_ctx()
    tiles = (
        one.scale_down_val(isl.Val.int_from_si(context, size)).floor()
        for one, size in zip(functions, sizes, strict=True)
    )
    return node.insert_partial_schedule(together(tiles)).get_schedule()

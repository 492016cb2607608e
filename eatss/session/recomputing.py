"""Which producers are computed anew where they are read: those by which less is expected of a run.

Whether that pays depends on the card. Reads, writes and launches become fewer, operations more. So
the region is scheduled and sizes are selected with it and without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eatss.analysis.structure import RecomputedArray
from eatss.base.diagnostics import input_error
from eatss.choose import Selection
from eatss.choose.objectives import NEVER, OBJECTIVES, costs
from eatss.cost.demand import Column
from eatss.cost.expected import Parts
from eatss.cost.terms import Predicted
from eatss.polyhedral.recomputed_producers import recomputable_arrays, with_recomputed_producers
from eatss.polyhedral.scop import Scop

_MOST_TRIED = 6
"""Arrays that are tried alone: each takes as long as a selection."""

Arrays = tuple[RecomputedArray, ...]


def recomputable(numeric: Sequence[Scop], symbolic: Sequence[Scop]) -> Arrays:
    """Return the arrays that readers may compute anew, at the sizes of the source and at any.

    Args:
        numeric: the regions for the sizes of the source.
        symbolic: the same for any size.
    """
    found: list[RecomputedArray] = []
    for region, any_size in zip(numeric, symbolic, strict=True):
        names = recomputable_arrays(region)
        if names and with_recomputed_producers(any_size, names) is not None:
            found += [RecomputedArray(region=region.index, array=name) for name in names]
    return tuple(found)


def regions_with(scops: Sequence[Scop], arrays: Arrays) -> tuple[Scop, ...]:
    """Return regions in which the readers of some arrays compute the elements anew.

    Raises:
        InputError: ``EATSS-P026``, they cannot.
    """
    found = []
    for scop in scops:
        names = [one.array for one in arrays if one.region == scop.index]
        changed = with_recomputed_producers(scop, names) if names else scop
        if changed is None or not {*names} <= {array.name for array in scop.arrays}:
            raise input_error(
                "EATSS-P026",
                f"region {scop.index} cannot compute {', '.join(names)} anew where it is read",
                hint="select again: the source is another one",
            )
        found.append(changed)
    return tuple(found)


def best_recomputed(
    arrays: Arrays, plain: Selection, select: Callable[[Arrays], Selection | None]
) -> Selection:
    """Return the selection of which least is expected: without arrays computed anew or with some.

    First all are tried, then each is left out, or taken alone, where that is better.

    Args:
        arrays: those that may be computed anew.
        plain: what is selected without.
        select: returns what is selected with some of them, ``None`` where that cannot be.
    """
    best, least = plain, _cost(plain)
    tried: list[Arrays] = [()]
    alone = arrays if 1 < len(arrays) <= _MOST_TRIED else ()
    for changed in (arrays, *((one,) for one in alone)):
        chosen = tuple(one for one in arrays if (one in best.recomputed) != (one in changed))
        found = None if least == NEVER or chosen in tried else select(chosen)
        tried.append(chosen)
        if found is not None and _cost(found) < least:
            best, least = found, _cost(found)
    return best


def _cost(selection: Selection) -> int:
    """Return what a run is expected to cost by the objective, ``NEVER`` where that is not known.

    What runs on the host is not known.
    """
    kernels = [one.predicted for one in selection.kernels if one.predicted is not None]
    published = OBJECTIVES.get(selection.objective).cost is None
    if published or selection.host_statements or len(kernels) < len(selection.kernels):
        return NEVER
    run = Predicted(
        time_s=np.array([sum(one.time_s for one in kernels)]),
        energy_j=np.array([sum(one.energy_j for one in kernels)]),
        terms_s=_summed([one.times_s for one in kernels]),
        terms_j=_summed([one.energies_j for one in kernels]),
        resident_blocks=np.array([min((one.resident_blocks for one in kernels), default=1)]),
    )
    return int(costs(run, selection.objective)[0])


def _summed(kernels: Sequence[Parts]) -> dict[str, Column]:
    """Return the sums of terms by name, as columns of one entry."""
    names = dict.fromkeys(name for parts in kernels for name, _ in parts)
    return {
        name: np.array([sum(dict(parts).get(name, 0.0) for parts in kernels)]) for name in names
    }

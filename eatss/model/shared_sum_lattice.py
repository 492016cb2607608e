"""The layouts whose blocks share sums: those without, and how many blocks share each sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import mapped_loops
from eatss.analysis.structure import Structure
from eatss.gpu.profile import GpuProfile
from eatss.model.cuda_lattice import CudaLattice, lattices
from eatss.prediction.cuda_shape import trips_of

BLOCKS_PER_SM = (1, 2, 4, 8)
"""Blocks for each SM, so that all of them run at a time and as long."""


POINTS_OF_AN_SM = 4096
"""Points that keep an SM busy by themselves: 128 threads that have 32 each."""


def every_lattice(
    facts: KernelFacts, structures: Sequence[Structure], profile: GpuProfile
) -> list[CudaLattice]:
    """Return all layouts of a kernel, structure by structure."""
    alone = [one for one in structures if one.shared_loop is None]
    sharing = [one for one in structures if one.shared_loop is not None]
    return [*lattices(facts, alone, profile), *sharing_lattices(facts, sharing, profile)]


def sharing_lattices(
    facts: KernelFacts, structures: Sequence[Structure], profile: GpuProfile
) -> list[CudaLattice]:
    """Return the layouts of a kernel whose blocks share a sum, structure by structure.

    There are some only where the parallel loops do not have ``POINTS_OF_AN_SM`` for each SM, and
    then those with fewer tiles than SMs: with more, blocks that share nothing keep the card busy.

    Of several loops it is the outermost: all that is inside stays together.

    Args:
        facts: the kernel.
        structures: how it can be cut, all of them with a loop that blocks share, outermost first.
        profile: the card.
    """
    trips = trips_of(facts)
    points = prod(trips[loop.name] for loop in mapped_loops(facts))
    if points >= POINTS_OF_AN_SM * profile.sm_count:
        return []
    outermost = [one for one in structures if one.shared_loop == structures[0].shared_loop]
    found = (_sharing(facts, one, profile) for one in lattices(facts, outermost, profile))
    return [lattice for lattice in found if len(lattice)]


def _sharing(facts: KernelFacts, lattice: CudaLattice, profile: GpuProfile) -> CudaLattice:
    loop = lattice.structure.shared_loop
    assert loop is not None
    trips = trips_of(facts)
    along = (np.ceil(trips[one.name] / lattice.tiles[one.name]) for one in mapped_loops(facts))
    tiles = prod(along, start=np.ones(len(lattice)))
    most = np.ceil(trips[loop] / lattice.tiles[loop])
    rows, blocks = [], []
    for each in BLOCKS_PER_SM:
        chunks = np.minimum(np.floor(each * profile.sm_count / tiles), most)
        kept = np.flatnonzero((tiles < profile.sm_count) & (chunks > 1))
        rows.append(kept)
        blocks.append(chunks[kept].astype(np.int64))
    every = lattice.rows(np.concatenate(rows))
    return replace(every, chunks=np.concatenate(blocks))

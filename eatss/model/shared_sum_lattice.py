"""How many blocks share sums: those that add to the same elements, or take shares of all steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import mapped_loops
from eatss.analysis.structure import Structure
from eatss.gpu.profile import GpuProfile
from eatss.model.cuda_lattice import MOST_LAYOUTS, CudaLattice, lattices
from eatss.prediction.cuda_shape import trips_of

BLOCKS_PER_SM = (1, 2, 4, 8)
"""Blocks for each SM, so that all of them run at a time and as long."""


STREAMS_PER_SM = (1,)
"""Blocks for each SM that take equal shares of all steps."""

LEAST_IDLE = 0.05
"""Share of the card that is idle where blocks have tiles of their own, from which on they may take
equal shares of steps instead."""

POINTS_OF_AN_SM = 4096
"""Points that keep an SM busy by themselves: 128 threads that have 32 each."""


def every_lattice(
    facts: KernelFacts,
    structures: Sequence[Structure],
    profile: GpuProfile,
    most: int = MOST_LAYOUTS,
) -> list[CudaLattice]:
    """Return all layouts of a kernel, structure by structure, about ``most`` of each."""
    alone = [one for one in structures if one.shared_loop is None]
    sharing = [one for one in structures if one.shared_loop is not None]
    own = lattices(facts, alone, profile, most)
    streaming = streaming_lattices(facts, own, profile)
    return [*own, *streaming, *sharing_lattices(facts, sharing, profile, most)]


def streaming_lattices(
    facts: KernelFacts, alone: Sequence[CudaLattice], profile: GpuProfile
) -> list[CudaLattice]:
    """Return the layouts whose blocks take equal shares of the steps of all tiles.

    Args:
        facts: the kernel.
        alone: its layouts whose blocks have tiles of their own.
        profile: the card.
    """
    found = (_streaming(facts, one, profile) for one in alone)
    return [lattice for lattice in found if len(lattice)]


def _streaming(facts: KernelFacts, lattice: CudaLattice, profile: GpuProfile) -> CudaLattice:
    """Return the layouts of a structure whose blocks take shares of steps.

    There are some where as many blocks as the card runs at a time would leave much of it idle in
    the last round of tiles, and only with boxes in shared memory, another one for each step. Boxes
    that are filled once for a tile are left out, where the sum does not need them.
    """
    moving = {
        group: on if _is_in_sum(facts, lattice, group) else 0 * on
        for group, on in lattice.staged.items()
    }
    once = sum(
        (on for group, on in moving.items() if not _moves(facts, lattice, group)),
        start=np.zeros(len(lattice)),
    )
    trips = trips_of(facts)
    along = (np.ceil(trips[one.name] / lattice.tiles[one.name]) for one in mapped_loops(facts))
    tiles = prod(along, start=np.ones(len(lattice)))
    staged = sum(moving.values(), start=np.zeros(len(lattice))) > 0
    spread = lattice.structure.spreads or lattice.structure.host_loop is not None
    rows, blocks = [], []
    for each in STREAMS_PER_SM:
        count = each * profile.sm_count
        rounds = tiles / count
        idle = 1.0 - rounds / np.ceil(rounds)
        wanted = staged & (idle > LEAST_IDLE) & (lattice.structure.stream_loop is not None)
        wanted = wanted & (once == 0)
        kept = np.flatnonzero(wanted & (not spread))
        rows.append(kept)
        blocks.append(np.full(len(kept), count, dtype=np.int64))
    every = replace(lattice, staged=moving).rows(np.concatenate(rows))
    return replace(every, streams=np.concatenate(blocks))


def _is_in_sum(facts: KernelFacts, lattice: CudaLattice, group: tuple[int, ...]) -> bool:
    """Tell whether a step of the sum reads a box."""
    return any(
        access.reference in group
        for statement in facts.work.statements
        for access in statement.accesses
        if lattice.structure.stream_loop in statement.loops
    )


def _moves(facts: KernelFacts, lattice: CudaLattice, group: tuple[int, ...]) -> bool:
    """Tell whether a box is another one in each step."""
    return any(
        access.reference in group and lattice.structure.stream_loop in dict(access.strides)
        for statement in facts.work.statements
        for access in statement.accesses
    )


def sharing_lattices(
    facts: KernelFacts,
    structures: Sequence[Structure],
    profile: GpuProfile,
    most: int = MOST_LAYOUTS,
) -> list[CudaLattice]:
    """Return the layouts of a kernel whose blocks share a sum, structure by structure.

    There are some only where the parallel loops do not have ``POINTS_OF_AN_SM`` for each SM, and
    then those with fewer tiles than SMs: with more, blocks that share nothing keep the card busy.

    Of several loops it is the outermost: all that is inside stays together.

    Args:
        facts: the kernel.
        structures: how it can be cut, all of them with a loop that blocks share, outermost first.
        profile: the card.
        most: about so many of each structure.
    """
    trips = trips_of(facts)
    points = prod(trips[loop.name] for loop in mapped_loops(facts))
    if points >= POINTS_OF_AN_SM * profile.sm_count:
        return []
    outermost = [one for one in structures if one.shared_loop == structures[0].shared_loop]
    found = (_sharing(facts, one, profile) for one in lattices(facts, outermost, profile, most))
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

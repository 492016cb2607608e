"""The loops of a launch of generated code in numbers: tiles, threads, points, blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates
from eatss.analysis.structure import LaunchFacts
from eatss.prediction.demand import Column
from eatss.targets import AXES


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """One launch in numbers; what is by loop has the mapped loops, or those of the band.

    ``steps`` are tiles along a loop, ``points`` those of a thread. ``lanes`` and ``chunks`` are 1
    where no sum is spread here. ``axes`` are threads along ``x``, ``y`` and so on with the loop
    each belongs to. ``blocks`` count all of the grid. Of a loop that blocks share, ``steps`` are
    those of one block.
    """

    tile: dict[str, Column]
    threads: dict[str, Column]
    points: dict[str, Column]
    steps: dict[str, Column]
    lanes: Column
    chunks: Column
    axes: tuple[tuple[str, Column], ...]
    block_threads: Column
    blocks: Column


def trips_of(facts: KernelFacts) -> dict[str, float]:
    """Return the trips of all loops of a kernel."""
    return {name: float(trips) for name, trips in facts.work.trips}


def launch_shape(
    launch: LaunchFacts,
    trips: Mapping[str, float],
    layout: Candidates,
    most_threads: int,
) -> LaunchShape:
    """Return the numbers of one launch of a structure, as the generator lays it out.

    Launches beside one whose sums are spread have as many times the threads along ``x`` as there
    are lanes (:func:`eatss.schedule.mapping.widened`).
    """
    ones, block = np.ones(len(layout)), dict(layout.block)
    tile = {
        name: np.minimum(column, 2.0**20) for name, column in layout.tile_sizes if name in trips
    }
    threads = {name: np.minimum(block[name], tile[name]) for name in launch.mapped}
    lanes, chunks = ones, ones
    if launch.sum_loop is not None:
        lanes = layout.lanes
        room = np.maximum(1.0, np.floor(most_threads / lanes))
        for name in reversed(launch.mapped):
            threads[name] = np.minimum(threads[name], room)
            room = np.maximum(1.0, np.floor(room / threads[name]))
        tile[launch.sum_loop] = layout.sum_tile
        most = np.ceil(trips[launch.sum_loop] / layout.sum_tile)
        if len(launch.mapped) != len(AXES):  # three loops leave no axis of the grid for chunks
            chunks = np.clip(layout.chunks, 1.0, most)
    elif layout.structure.spreads and launch.mapped:
        along = launch.mapped[-1]
        own = prod(threads.values(), start=ones)
        times = np.clip(np.floor(most_threads / own), 1.0, layout.lanes)
        threads[along], tile[along] = threads[along] * times, tile[along] * times
    steps = {name: np.ceil(trips[name] / tile[name]) for name in tile}
    if launch.shared_loop is not None:
        whole = steps[launch.shared_loop]
        chunks = np.clip(layout.chunks, 1.0, whole)
        steps[launch.shared_loop] = np.ceil(whole / chunks)
    axes = [(name, threads[name]) for name in reversed(launch.mapped)]
    if launch.sum_loop is not None:
        axes.insert(0, (launch.sum_loop, lanes))
    return LaunchShape(
        tile=tile,
        threads=threads,
        points={name: np.ceil(tile[name] / threads[name]) for name in launch.mapped},
        steps=steps,
        lanes=lanes,
        chunks=chunks,
        axes=tuple(axes),
        block_threads=np.asarray(prod(threads.values(), start=ones) * lanes),
        blocks=np.asarray(prod((steps[name] for name in launch.mapped), start=ones) * chunks),
    )

"""Sums whose loop is spread over threads and blocks, where little else is parallel."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from math import prod

import islpy as isl

from eatss.analysis import KernelFacts
from eatss.analysis.mapping import AXES, MAX_THREADS_Z, Axis
from eatss.codegen.mapping import MappedLoop, Mapping, SerialTile
from eatss.codegen.names import NameTable
from eatss.codegen.options import CodegenOptions
from eatss.codegen.pieces import LoopMember, Piece
from eatss.gpu import GpuProfile
from eatss.isl_names import without_parameters
from eatss.polyhedral import Dependences

LANES = 32
"""Threads along a sum whose operands lie next to each other: a warp."""

LEAST_TRIPS = 64
"""Trips of a serial loop below which it is left as it is."""

_ROWS = 8
_ROW_POINTS = 2
_LANE_POINTS = 8
_COLUMNS = 128
_COLUMN_TRIPS = 16
_BLOCKS_PER_SM = 4
_UNKNOWN_TRIPS = 4096


def trips(facts: KernelFacts, name: str) -> int:
    """Return how many trips a loop of the source has; a guess where that is not known."""
    for loop in (*facts.loops, *facts.inner_loops):
        if loop.name == name:
            return _UNKNOWN_TRIPS if loop.trip_count is None else loop.trip_count
    return 1


def is_starved(facts: KernelFacts, mapped: Sequence[str], profile: GpuProfile) -> bool:
    """Tell whether the parallel loops have fewer points than the card runs threads at once."""
    points = prod(trips(facts, name) for name in mapped)
    return points < profile.sm_count * profile.max_threads_per_sm


def sum_loop(
    piece: Piece,
    statements: Sequence[str],
    loops: Sequence[str],
    sums: dict[str, frozenset[str]],
    facts: KernelFacts,
    dependences: Dependences,
) -> str | None:
    """Return the loop of a part to split, by C name.

    Every statement has to be a sum along it, and none may need what another computes.
    """
    if not all(name in sums for name in statements):
        return None
    sources = {loop.name: loop.source_name for loop in (*piece.band, *piece.inner)}
    common = [
        loop
        for loop in loops
        if all(loop in sums[name] for name in statements)
        and trips(facts, sources[loop]) >= LEAST_TRIPS
    ]
    if not common or _depend(piece, statements, dependences):
        return None
    return max(common, key=lambda name: _contiguous(piece, sources[name]))


def _depend(piece: Piece, statements: Sequence[str], dependences: Dependences) -> bool:
    every = dependences.flow.union(dependences.anti).union(dependences.output)
    names = [loop.name for loop in piece.band]
    tied = {
        name: isl.UnionSet.from_set(without_parameters(piece.domain_of(name), names))
        for name in statements
    }
    return any(
        not every.intersect_domain(tied[one]).intersect_range(tied[other]).is_empty()
        for one in statements
        for other in statements
        if one != other
    )


def _contiguous(piece: Piece, source_name: str) -> int:
    """Return how much is read along a loop from neighbouring places, matrices counting more."""
    return sum(
        len(reference.loops)
        for reference in piece.kernel.references
        if reference.subscripts
        and any(
            name == source_name and abs(coefficient) == 1
            for name, coefficient in reference.subscripts[-1].coefficients
        )
    )


def split_mapping(
    piece: Piece,
    facts: KernelFacts,
    mapped: Sequence[str],
    loop: str,
    profile: GpuProfile,
    options: CodegenOptions,
    names: NameTable,
    threads_given: Dictionary[str, int],
    tiles_given: Dictionary[str, int],
) -> Mapping:
    """Return the layout of a part whose loop ``loop`` is split.

    Where neighbours along the sum are neighbours in memory a warp adds up a row, else threads
    take columns and blocks take chunks of the sum.

    Args:
        piece: the piece.
        facts: its kernel, for trip counts.
        mapped: the loops that go to threads, by C name.
        loop: the loop of the sum, by C name.
        profile: the card.
        options: tile sizes the user gave, which come first.
        names: where C names come from.
        threads_given: threads along the mapped loops, where they are not this function's to choose.
        tiles_given: tile sizes likewise, by the loops' names in the source.
    """
    by_name = {item.name: item for item in (*piece.band, *piece.inner)}
    asked = {**tiles_given, **_asked(facts, options)}
    along = _contiguous(piece, by_name[loop].source_name)
    rows = not mapped or along > max(
        _contiguous(piece, by_name[name].source_name) for name in mapped
    )
    rows = rows and LANES * prod(threads_given.values()) <= profile.threads_per_block
    order = sorted(mapped, key=lambda n: _contiguous(piece, by_name[n].source_name))
    kept: list[MappedLoop] = []
    blocks = 1
    for position, name in enumerate(reversed(order)):  # the innermost first
        item = by_name[name]
        usual = (_ROWS if rows else _COLUMNS) if position == 0 else 1
        threads = threads_given.get(name, usual)
        tile = asked.get(item.source_name, threads * (_ROW_POINTS if rows and not position else 1))
        axis = AXES[min(position + 1 if rows else position, 2)]
        if axis == "z":
            threads = min(threads, MAX_THREADS_Z // prod(k.threads for k in kept if k.axis == "z"))
        threads = min(threads, tile)
        grid = _grid_axis(position, len(order))
        kept.append(_mapped(item, tile, threads, axis, grid, names, len(order) - position))
        blocks *= -(-trips(facts, item.source_name) // tile)
    item = by_name[loop]
    lanes = LANES if rows else 1
    tile = asked.get(item.source_name, LANES * _LANE_POINTS if rows else _COLUMN_TRIPS)
    free = [axis for axis in AXES if axis not in {kept_loop.grid for kept_loop in kept}]
    grid = free[0] if free else "z"
    split = _mapped(item, tile, lanes, "x" if rows else "z", grid, names, 0)
    chunks = 1
    if free:
        wanted = -(-_BLOCKS_PER_SM * profile.sm_count // blocks)
        chunks = max(1, min(wanted, -(-trips(facts, item.source_name) // tile)))
    serial = tuple(
        SerialTile(
            name=other.name,
            source_name=other.source_name,
            tile=asked.get(other.source_name, LANES),
            origin=names.fresh(f"{other.name}0"),
        )
        for other in piece.band
        if other.name not in (*mapped, loop)
    )
    in_order = sorted(kept, key=lambda k: list(mapped).index(k.name))
    return Mapping(mapped=tuple(in_order), serial=serial, split=split, chunks=chunks)


def _grid_axis(position: int, count: int) -> Axis:
    """Return the axis of the blocks of a loop, the innermost at position 0.

    More than three share x but for the outermost, so that z is left for the sum.
    """
    if count <= len(AXES):
        return AXES[position]
    return "x" if position < count - 1 else "y"


def _asked(facts: KernelFacts, options: CodegenOptions) -> dict[str, int]:
    asked: dict[str, int] = {}
    for kernel, sizes in options.tile_sizes:
        if kernel in ("", facts.name):
            asked.update(dict(sizes))
    return asked


def _mapped(
    item: LoopMember,
    tile: int,
    threads: int,
    axis: Axis,
    grid: Axis,
    names: NameTable,
    order: int,
) -> MappedLoop:
    return MappedLoop(
        name=item.name,
        source_name=item.source_name,
        tile=tile,
        threads=threads,
        axis=axis,
        grid=grid,
        order=order,
        origin=names.fresh(f"{item.name}0"),
        thread=names.fresh(f"t{item.name}"),
        point=names.fresh(f"r{item.name}"),
    )

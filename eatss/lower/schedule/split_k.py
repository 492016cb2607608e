"""Sums whose loop is spread over threads and blocks, where little else is parallel."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis import KernelFacts
from eatss.analysis.layout import SplitK
from eatss.base.targets import AXES, CUDA
from eatss.cards import GpuProfile
from eatss.lower.recipe.options import CodegenOptions
from eatss.lower.schedule.mapping import MappedLoop, Mapping, laid_out
from eatss.lower.schedule.names import NameTable
from eatss.lower.schedule.parts import edges, tied_instances
from eatss.lower.schedule.pieces import Piece
from eatss.plan.shares import chunks_of, threads_beside_lanes
from eatss.polyhedral import Dependences

LEAST_TRIPS = 64
"""Trips of a serial loop below which it is left as it is."""

SERIAL_SPREAD = SplitK(lanes=32, tile=256, chunks=64)
"""How the sums of what PPCG would leave on the host are spread, which no size is selected for."""


def trips(facts: KernelFacts, name: str) -> int:
    """Return how many trips a loop of the source has at the sizes that predictions are for."""
    return dict(facts.work.trips).get(name, 1)


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


def adds_only(
    piece: Piece,
    statements: Sequence[str],
    loop: str,
    sums: dict[str, frozenset[str]],
    dependences: Dependences,
) -> bool:
    """Tell whether statements are sums along a loop, none of which needs what another computes.

    Args:
        piece: the piece.
        statements: of a part.
        loop: by C name.
        sums: the loops that each statement sums over, by C name.
        dependences: of the region.
    """
    return all(loop in sums.get(name, ()) for name in statements) and not _depend(
        piece, statements, dependences
    )


def _depend(piece: Piece, statements: Sequence[str], dependences: Dependences) -> bool:
    tied = tied_instances(piece, ())
    return any(edges({name: tied[name] for name in statements}, dependences))


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
    whole: Mapping,
    loop: str,
    spread: SplitK,
    profile: GpuProfile,
    options: CodegenOptions,
    names: NameTable,
) -> Mapping:
    """Return the layout of a part whose loop ``loop`` is split.

    Lanes go along ``x``: neighbours along the sum are neighbours in memory. With one lane the
    mapped loops keep their axes.

    Args:
        piece: the piece.
        facts: its kernel, for trip counts.
        whole: the layout of all of the piece, whose threads and tiles are kept where they fit.
        loop: the loop of the sum, by C name.
        spread: lanes, tile and chunks.
        profile: the card.
        options: tile sizes the user gave, which come first.
        names: where C names come from.
    """
    by_name = {item.name: item for item in (*piece.band, *piece.inner)}
    asked = {
        name: size
        for kernel, sizes in options.tile_sizes
        if kernel in ("", facts.name)
        for name, size in sizes
    }
    lanes: int = spread.lanes
    kept: list[MappedLoop] = []
    in_order = sorted(whole.mapped, key=lambda mapped: mapped.order)[::-1]  # along x first
    counts = threads_beside_lanes(
        [mapped.threads for mapped in in_order],
        lanes,
        profile.threads_per_block,
        CUDA.most_threads["z"],
    )
    for position, (mapped, threads) in enumerate(zip(in_order, counts, strict=True)):
        item = by_name[mapped.name]
        axis = AXES[min(position + (lanes > 1), len(AXES) - 1)]
        grid = AXES[min(position, len(AXES) - 1)]
        if len(in_order) > len(AXES):  # all but the outermost share x, so that z is for the sum
            grid = "x" if position < len(in_order) - 1 else "y"
        kept.append(
            laid_out(item, mapped.tile, threads, axis, grid, names, len(in_order) - position)
        )
    item = by_name[loop]
    tile = asked.get(item.source_name, int(spread.tile))
    free = [axis for axis in AXES if axis not in {kept_loop.grid for kept_loop in kept}]
    split = laid_out(
        item, tile, lanes, "x" if lanes > 1 else "z", free[0] if free else "z", names, 0
    )
    chunks = 1
    if free:
        chunks = chunks_of(spread.chunks, trips(facts, item.source_name), tile)
    serial = tuple(tile for tile in whole.serial if tile.name != loop)
    ordered = sorted(kept, key=lambda k: [m.name for m in whole.mapped].index(k.name))
    return Mapping(mapped=tuple(ordered), serial=serial, split=split, chunks=chunks)

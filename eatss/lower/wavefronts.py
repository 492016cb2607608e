"""Launches of wavefronts of tiles, each tile a block that runs its own wavefronts.

for (W = …)                                  W: the sum of a tile's numbers
    kernel<<<(tiles along x, y, z)>>>(W);
kernel: X = first(W) + blockIdx.x; C = W - X;
    for (c of the tile C) { points of (c, X); __syncthreads(); }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from eatss.analysis.layout import LoopBlock
from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import Names, frozen, their_names
from eatss.base.targets import AXES, CUDA, Axis
from eatss.lower.arrays import ends_of, tests_of, union_of, value_of
from eatss.lower.assumptions import within
from eatss.lower.kernel.nodes import Let
from eatss.lower.pieces import LoopMember, Piece, own_pieces
from eatss.lower.references import BuiltKernel
from eatss.polyhedral.isl_names import (
    coalesced,
    parameter_between,
    without_parameters,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.schedule import cut_again
from eatss.polyhedral.wavefronts import in_tiles, tile_functions
from eatss.program import Constant, IntExpr, Name
from eatss.program.expression import IntExprs


def no_block(block: LoopBlock, why: str) -> InputError:
    """Return the error that a recipe asks for a block that cannot be."""
    return input_error(
        "EATSS-K011",
        f"no block of {block.threads} threads can run the loop around "
        f"{', '.join(block.kernels)}: {why}",
        hint="leave loop_block out of the recipe",
    )


def wavefront_functions(piece: Piece) -> tuple[isl.UnionPwAff, ...] | None:
    """Return what tiles of a piece's wavefronts are cut along, ``None`` where they cannot be."""
    loops = [one.member.function for one in piece.band if one.member.parallel]
    if len(piece.host) != 1 or not 1 <= len(loops) <= len(AXES):
        return None
    return tile_functions(piece.host[0].member.function, loops, piece.dependences)


def scheduled_in_tiles(
    scheduled: ScheduledScop, statements: Names, block: LoopBlock
) -> ScheduledScop:
    """Return a region with loops over tiles around the wavefronts of some statements.

    Raises:
        InputError: ``EATSS-K011``, they are no wavefronts, or have other loops.
        InternalError: ``EATSS-P901``, the order is not one of the dependences.
    """
    piece = _of(own_pieces(scheduled)[0], statements)
    functions = wavefront_functions(piece)
    if functions is None or len(functions) != len(block.tiles):
        cells = " × ".join(map(str, block.tiles))
        raise no_block(block, f"wavefronts of it have no tiles of {cells}")
    schedule = in_tiles(scheduled.schedule, piece.host[0].member.band, functions, block.tiles)
    return cut_again(scheduled, schedule)


def pieces_in_tiles(
    pieces: Sequence[Piece], before: ScheduledScop, cuts: Mapping[Names, LoopBlock]
) -> tuple[Piece, ...]:
    """Return pieces of which some, by their statements, are in loops over tiles.

    Their loops have the names that they had before: sizes are selected by those.
    """
    old = own_pieces(before)[0]
    found = []
    for piece in pieces:
        statements = their_names(piece.statements)
        block = cuts.get(statements)
        if block is not None:
            named = zip(piece.band, _of(old, statements).band, strict=True)
            band = tuple(replace(one, source_name=its.source_name) for one, its in named)
            tiles = zip((piece.host[-1], *band), piece.host, block.tiles, strict=False)
            cut = tuple((loop.name, tile.name, size) for loop, tile, size in tiles)
            found.append(replace(piece, band=band, cuts=cut))
        else:
            found.append(piece)
    return tuple(found)


def _of(pieces: Sequence[Piece], statements: Names) -> Piece:
    return next(one for one in pieces if their_names(one.statements) == statements)


@frozen
class TileLaunches:
    """How tiles are launched: as what kernel, and what a block knows of its tile first.

    Blocks are those of a box; ``tests`` tell which have a tile.
    ``limits`` are what must hold of the sizes for the grid to launch, along ``y`` and ``z``.
    """

    kernel: BuiltKernel
    front: tuple[Let, ...]
    tests: IntExprs
    limits: tuple[tuple[Axis, IntExpr], ...]


def tile_launches(built: Sequence[BuiltKernel], wave: LoopMember) -> TileLaunches:
    """Return the launches of all tiles of some kernels, those of a wavefront at a time.

    Args:
        built: what runs in a tile.
        wave: the loop over wavefronts.
    """
    piece = built[0].piece
    tiles = [tile for _, tile, _ in piece.cuts]
    inner = (*(loop for loop, *_ in piece.cuts), *piece.bound)
    placed = [domain.params() for one in built for domain in one.piece.placed]
    there = _hull(union_of([without_parameters(domain, inner) for domain in placed]))
    sizes = _hull(without_parameters(there, tiles))
    ends = {}
    for tile in tiles:
        alone = _hull(without_parameters(there, [one for one in tiles if one != tile]))
        sizes = sizes.intersect(without_parameters(alone, [tile]))
        ends[tile] = ends_of(alone, tile)
    first, *across = tiles
    front, grid, known = list[Let](), list[IntExpr](), sizes
    number: IntExpr = Name(wave.name)
    for axis, tile in zip(AXES, across, strict=False):
        lower, upper = (value_of(one, sizes) for one in ends[tile])
        known = known.intersect(parameter_between(tile, *ends[tile]))
        front.append(Let(name=tile, value=lower + Name(f"{CUDA.block}{axis}")))
        grid.append(upper - lower + 1)
        number = number - Name(tile)
    front.append(Let(name=first, value=number))
    known_first = known.intersect(parameter_between(first, *ends[first]))
    limits = [
        (axis, within([count], CUDA.most_blocks[axis]))
        for axis, count in zip(AXES[1:], grid[1:], strict=False)
    ]
    grid += [Constant(1)] * (len(AXES) - len(grid))
    x, y, z = grid
    sums = (reduce(isl.PwAff.add, along) for along in zip(*ends.values(), strict=True))
    waves = sizes.intersect(parameter_between(wave.name, *sums))
    kernel = replace(
        built[0],
        piece=replace(piece, host=(wave,), cuts=()),
        launch=coalesced(waves),
        grid=(x, y, z),
        grid_strides=(),
        most_blocks=None,
    )
    return TileLaunches(
        kernel=kernel,
        front=tuple(front),
        tests=tests_of(known_first, known) + tests_of(there, known_first),
        limits=tuple((axis, one) for axis, one in limits if one is not None),
    )


def _hull(params: isl.Set) -> isl.Set:
    """Return one convex set around parameters: bounds of it are short."""
    return isl.Set.from_basic_set(coalesced(params.remove_divs()).simple_hull())

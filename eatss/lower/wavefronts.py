"""Launches of wavefronts of tiles, each tile a block that runs its own wavefronts.

for (W = …)                                  W: the sum of a tile's numbers
    kernel<<<(tiles along x, y, z)>>>(W);
kernel: X = first(W) + blockIdx.x; C = W - X;
    for (c of the tile C) { points of (c, X); __syncthreads(); }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from eatss.analysis.layout import LoopBlock
from eatss.base.frozen import Names, frozen, their_names
from eatss.base.targets import AXES, CUDA
from eatss.lower.arrays import TRUE, condition_of, union_of, value_of
from eatss.lower.kernel.nodes import Let
from eatss.lower.pieces import NameTable, Piece, pieces_of
from eatss.lower.references import BuiltKernel
from eatss.polyhedral.isl_names import (
    coalesced,
    parameter_at_least,
    parameter_at_most,
    parameter_bound,
    parameters_set,
    without_parameters,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.schedule import cut_again
from eatss.polyhedral.wavefronts import in_tiles, tile_functions
from eatss.program import Constant, HostIf, HostLoop, HostStep, IntExpr, Launch, Name


def wavefront_functions(
    piece: Piece, scheduled: ScheduledScop
) -> tuple[isl.UnionPwAff, ...] | None:
    """Return what tiles of a piece's wavefronts are cut along, ``None`` where they cannot be."""
    loops = [one.member.function for one in piece.band if one.member.parallel]
    if len(piece.host) != 1 or not 1 <= len(loops) <= len(AXES):
        return None
    return tile_functions(piece.host[0].member.function, loops, scheduled.dependences)


def scheduled_in_tiles(
    scheduled: ScheduledScop, statements: Names, block: LoopBlock
) -> ScheduledScop:
    """Return a region with loops over tiles around the wavefronts of some statements.

    Raises:
        InternalError: ``EATSS-P901``, the order is not one of the dependences.
    """
    piece = _of(pieces_of(scheduled, NameTable()), statements)
    functions = wavefront_functions(piece, scheduled)
    assert functions is not None
    band = piece.host[0].member.band
    schedule = in_tiles(scheduled.schedule, band, functions, block.tiles)
    return cut_again(scheduled, schedule)


def named_as_before(pieces: Sequence[Piece], before: ScheduledScop) -> tuple[Piece, ...]:
    """Return pieces whose loops have the names that they had: sizes are selected by those."""
    old = {their_names(one.statements): one for one in pieces_of(before, NameTable())}
    found = []
    for piece in pieces:
        own = old[their_names(piece.statements)]
        band = (
            replace(loop, source_name=its.source_name)
            for loop, its in zip(piece.band, own.band, strict=True)
        )
        found.append(replace(piece, band=tuple(band)))
    return tuple(found)


def _of(pieces: Sequence[Piece], statements: Names) -> Piece:
    return next(one for one in pieces if their_names(one.statements) == statements)


@frozen
class TileLaunches:
    """How tiles are launched: what the host does, and what a block knows of its tile first."""

    step: HostStep
    front: tuple[Let, ...]


def tile_launches(
    kernel: str, built: Sequence[BuiltKernel], tiles: Names, wave: str, known: isl.Set
) -> TileLaunches:
    """Return the launches of all tiles of a kernel, those of a wavefront at a time.

    Args:
        kernel: its name.
        built: what it is made of.
        tiles: the loops over tiles, that of the host's function first.
        wave: how the loop over wavefronts is called.
        known: what is known of the sizes.
    """
    first, *across = tiles
    inner = [their_names(one.piece.host[len(tiles) :]) for one in built]
    launches = (without_parameters(one.launch, own) for one, own in zip(built, inner, strict=True))
    summed = f"{wave} = {' + '.join(tiles)}"
    of_wave = parameters_set(known.get_ctx(), (wave, *tiles), summed)
    there = union_of(launches).intersect(of_wave)
    there = _hull(without_parameters(there, [first]))  # a block without a tile does nothing
    waves = _hull(without_parameters(there, across))
    here = known.intersect(without_parameters(waves, [wave]))
    lower, upper = (parameter_bound(waves, wave, upper=up).coalesce() for up in (False, True))
    inside = here.intersect(parameter_at_least(wave, lower))
    inside = inside.intersect(parameter_at_most(wave, upper))
    in_wave = inside.intersect(waves)
    front, grid = list[Let](), list[IntExpr]()
    for axis, tile in zip(AXES, across, strict=False):
        own = _hull(without_parameters(there, [one for one in across if one != tile]))
        least, most = (
            value_of(parameter_bound(own, tile, upper=up).coalesce(), in_wave)
            for up in (False, True)
        )
        front.append(Let(name=tile, value=least + Name(f"{CUDA.block}{axis}")))
        grid.append(most - least + 1)
    left: IntExpr = Name(wave)
    for tile in across:
        left = left - Name(tile)
    front.append(Let(name=first, value=left))
    grid += [Constant(1)] * (len(AXES) - len(grid))
    launch: HostStep = Launch(kernel=kernel, grid=(grid[0], grid[1], grid[2]))
    condition = condition_of(coalesced(in_wave), coalesced(inside))
    launch = launch if condition == TRUE else HostIf(condition=condition, body=(launch,))
    loop: HostStep = HostLoop(
        counter=wave,
        lower=value_of(lower, here),
        upper=value_of(upper, here),
        step=1,
        body=(launch,),
    )
    condition = condition_of(coalesced(here), known)
    loop = loop if condition == TRUE else HostIf(condition=condition, body=(loop,))
    return TileLaunches(step=loop, front=tuple(front))


def _hull(params: isl.Set) -> isl.Set:
    """Return one convex set around parameters: bounds of it are short."""
    return isl.Set.from_basic_set(coalesced(params.remove_divs()).simple_hull())

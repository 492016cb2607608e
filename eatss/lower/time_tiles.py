"""Several steps of a loop over time as one launch: overlapped tiles in registers.

:mod:`eatss.plan.time_tiles` says which rows, halos and windows there are; this carries it out. Two
kernels take turns, so that none writes what it reads: one leaves fields in twins of them, the other
brings them back. What cells hold that no step writes is read from memory where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import TimeTile
from eatss.base.diagnostics import input_error, internal_error
from eatss.base.frozen import complete, frozen, their_names
from eatss.base.targets import CUDA
from eatss.lower.kernel.nodes import (
    Buffer,
    Kernel,
)
from eatss.lower.pieces import CodeSchedules, Piece, in_regions, own_pieces, their_loops
from eatss.lower.references import KernelContext
from eatss.lower.time_tile_builder import TileBuilder
from eatss.lower.time_tile_checks import tile_faults
from eatss.plan.time_tiles import (
    TimeRun,
    is_possible,
    pairs_of,
    stored_cells,
    time_tile_plan,
)
from eatss.polyhedral.isl_names import (
    counter_of,
    function_on,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Dependences
from eatss.polyhedral.time_chains import TimeChain, time_chains
from eatss.program import (
    Constant,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Temporary,
    at_least,
)
from eatss.program.expression import Grid, SizePairs


@frozen
class TiledSteps:
    """Kernels that take ``depth`` steps each, the first into ``twins``, the second back.

    Both begin at the step that the counter ``time`` names, the second ``depth`` later.
    ``cells`` are those of a tile that are stored, ``parameter_tiles`` how many cells or steps it
    has along what sizes bound.
    """

    kernels: tuple[Kernel, Kernel]
    grid: Grid
    block: tuple[int, int, int]
    depth: int
    twins: tuple[Temporary, ...]
    cells: SizePairs
    parameter_tiles: SizePairs


def tiled_steps(
    names: tuple[str, str],
    chain: TimeChain,
    tile: TimeTile,
    context: KernelContext,
    time: str,
    last: IntExpr,
    dependences: Dependences,
) -> TiledSteps:
    """Return the kernels that take several steps.

    Args:
        names: what they are called.
        chain: the loop.
        tile: how its steps are tiled.
        context: what kernels of the region are made of.
        time: the host's counter of steps.
        last: its last value.
        dependences: of the region.

    Raises:
        InputError: ``EATSS-K011``, a block would need more shared memory than it may have.
        InternalError: ``EATSS-K901``, it would compute something else than the loop.
    """
    span = chain.updates[0].statement.span
    plan = time_tile_plan(chain, tile.depth)
    for fault in tile_faults(chain, plan, tile, context.scop, dependences):
        raise internal_error("EATSS-K901", f"{names[0]}: {fault}", span=span)
    twins = {}
    for version in plan.loaded:
        own = plan.versions[version].field
        array = context.arrays[own.array]
        name = context.names.fresh(f"{array.name}_twin")
        shape = array.shape[-chain.dims :]
        twins[own] = Buffer.of("global", name, array.array.element_type, *shape)
    builders = [
        TileBuilder(chain, plan, tile, context, twins, time, last, back=bool(back))
        for back in range(len(names))
    ]
    forward, backward = (one.kernel(name) for one, name in zip(builders, names, strict=True))
    if forward.shared_bytes > context.shared_limit_bytes:
        raise input_error(
            "EATSS-K011",
            f"{tile.warps} warps of {tile.rows} lines need {forward.shared_bytes} bytes of shared "
            f"memory, and a block may have {context.shared_limit_bytes}",
            hint="give time_tile fewer warps, lines or steps",
        )
    return TiledSteps(
        kernels=(forward, backward),
        grid=(builders[0].blocks, Constant(1), Constant(1)),
        block=(CUDA.lanes, tile.warps, 1),
        depth=tile.depth,
        twins=tuple(
            Temporary(name=one.name, element_type=one.element_type.value, shape=one.layout.extents)
            for one in twins.values()
        ),
        cells=tuple(
            zip(chain.updates[0].statement.loops[1:], stored_cells(plan, tile), strict=False)
        ),
        parameter_tiles=builders[0].parameter_tiles,
    )


def chain_of(
    scheduled: ScheduledScop, tile: TimeTile, pieces: Sequence[Piece], facts: Sequence[KernelFacts]
) -> TimeChain:
    """Return the loop over time whose kernels a tile names.

    Raises:
        InputError: ``EATSS-K011``, there is none, or nothing of the tile is left beside its halo.
    """
    for chain in chains_of(scheduled, pieces):
        found = [one for one in _facts_inside(chain, pieces, facts) if one is not None]
        if (
            their_names(found) == tile.kernels
            and tile.depth % chain.period == 0
            and (chain.dims > 2 or tile.rows == tile.warps == 1)
            and is_possible(time_tile_plan(chain, tile.depth), tile)
        ):
            return chain
    raise input_error(
        "EATSS-K011",
        f"no time tile of {tile.depth} steps, {tile.cells} cells, can be of "
        f"{', '.join(tile.kernels)}: they are no loop over time, its planes come back after other "
        "steps, or halos leave nothing of the tile",
        hint="leave time_tile out of the recipe",
    )


def _facts_inside(
    chain: TimeChain, pieces: Sequence[Piece], facts: Sequence[KernelFacts]
) -> list[KernelFacts | None]:
    """Return the facts of the pieces that are steps of a chain, as far as they are selected."""
    names = set(chain.statements)
    return [one.facts_in(facts) for one in pieces if names.issuperset(one.kernel.statements)]


def chains_of(scheduled: ScheduledScop, pieces: Sequence[Piece]) -> Iterator[TimeChain]:
    """Yield the loops over time that run on the host, around nothing but their own steps."""
    scop = scheduled.scop
    if scop.written is not None or scop.products:
        return
    for chain in time_chains(scop, scheduled.dependences):
        names = set(chain.statements)
        inside = [one for one in pieces if not names.isdisjoint(one.kernel.statements)]
        covered = {name for one in inside for name in one.kernel.statements}
        hosts = {their_loops(one.host) for one in inside}
        beside = {their_loops(one.host[:1]) for one in pieces if one not in inside}
        if (
            covered == names
            and [len(one) for one in hosts] == [1]
            and hosts.isdisjoint(beside)
            and all(_is_time(one) for one in inside)
        ):
            yield chain


def _is_time(piece: Piece) -> bool:
    """Tell whether a piece's loop on the host counts the steps."""
    function = piece.host[0].member.function
    return all(
        counter_of(function_on(function, one.domain)) == one.loops[0] for one in piece.statements
    )


def taken_in_turns(loop: HostLoop, made: TiledSteps) -> tuple[HostStep, ...]:
    """Return a loop of which two kernels take as many steps as they can, and the rest of it."""
    both = 2 * made.depth
    launches = tuple(Launch(kernel=one.name, grid=made.grid) for one in made.kernels)
    tiles = replace(loop, upper=loop.upper - (both - 1), step=both, body=launches)
    pairs = at_least(pairs_of(loop.upper - loop.lower + 1, made.depth), 0)
    return tiles, replace(loop, lower=loop.lower + pairs * both)


MOST_DEPTH = 8
"""Steps of a tile, at most: by hand 4 to 6 were best, and 10 left too few warps."""


def time_runs_for(
    program: AnalysedProgram, code: CodeSchedules | None = None
) -> tuple[TimeRun, ...]:
    """Return the loops over time of a program of which several steps may be one launch.

    ``code`` gives the schedules of the regions that code is made from; it is called if there are
    such loops at the sizes of the source.
    """
    numeric = (region.scheduled for region in program.scops)
    if not any(True for one in numeric for _ in time_chains(one.scop, one.dependences)):
        return ()
    return in_regions(program, _time_runs, code)


def _time_runs(scheduled: ScheduledScop, region: AnalysedScop) -> Iterator[TimeRun]:
    """Yield the loops over time of a region of which several steps may be one launch."""
    pieces, facts = own_pieces(scheduled)[0], region.facts
    for chain in chains_of(scheduled, pieces):
        known = complete(_facts_inside(chain, pieces, facts))
        if known is None:
            continue
        launches = {one.work.launches for one in known}
        arrays = {array.name: array for one in known for array in one.work.arrays}
        plans = tuple(
            (depth, time_tile_plan(chain, depth))
            for depth in range(chain.period, MOST_DEPTH + 1, chain.period)
        )
        if not plans[0][1].loaded or _is_part(chain, known):
            continue
        trips = {name: count for one in known for name, count in one.work.trips}
        loops = [one.statement.loops[1:] for one in chain.updates]
        counts = [[trips.get(name, 0) for name in own] for own in loops if len(own) == chain.dims]
        cells = tuple(max(along) for along in zip(*counts, strict=True))
        if len(launches) > 1 or None in launches or not all(cells):
            continue
        yield TimeRun(
            kernels=their_names(known),
            loop=chain.loop,
            steps=next(iter(launches)) or 0,
            cells=cells,
            updates=chain.statements,
            far_reads=tuple(
                sum(
                    1
                    for read, access in zip(one.reads, one.statement.reads, strict=True)
                    if read is None and scheduled.scop.array(access.array).n_dims >= chain.dims
                )
                for one in chain.updates
            ),
            element_bytes=tuple((name, array.element_bytes) for name, array in arrays.items()),
            plans=plans,
        )


def _is_part(chain: TimeChain, kernels: Sequence[KernelFacts]) -> bool:
    """Tell whether arrays have many more cells than steps write: tiles would take all of them."""
    fields = {one.target.array for one in chain.updates}
    for kernel in kernels:
        trips = dict(kernel.work.trips)
        cells = prod(trips.get(loop.name, 1) for loop in kernel.loops)
        for array in kernel.work.arrays:
            planes = prod(extent or 1 for extent in array.extents[: -chain.dims])
            if array.name in fields and array.elements > _MUCH_LARGER * cells * planes:
                return True
    return False


_MUCH_LARGER = 1.5
"""So many times more cells than are computed an array may have."""

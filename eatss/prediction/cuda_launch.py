"""One launch of generated code in numbers: its loops, threads, points, blocks and statements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from eatss.analysis.banks import ALONG_X, ALONG_Y
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates
from eatss.analysis.structure import LaunchFacts, PartFacts, Structure
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.frozen import frozen
from eatss.plan.rows import (
    LoopTile,
    StagedReads,
    Tiling,
    element_words,
    interleaved,
    may_be_aligned,
    vector,
    with_neighbours,
)
from eatss.plan.split import chunks_of, threads_beside_lanes, widening
from eatss.prediction.access import lanes_of
from eatss.prediction.card import Card
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.cuda_constants import CudaConstants
from eatss.prediction.demand import Column
from eatss.prediction.uniform_references import UniformSet, uniform_sets
from eatss.targets import AXES, CUDA


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
    are lanes.
    """
    ones, block = np.ones(len(layout)), dict(layout.block)
    tile = {
        name: np.minimum(column, 2.0**20) for name, column in layout.tile_sizes if name in trips
    }
    threads = {name: np.minimum(block[name], tile[name]) for name in launch.mapped}
    lanes, chunks = ones, ones
    if launch.sum_loop is not None:
        lanes = layout.lanes
        inwards = launch.mapped[::-1]
        wanted = [threads[name] for name in inwards]
        kept = threads_beside_lanes(wanted, lanes, most_threads, CUDA.most_threads["z"])
        threads |= zip(inwards, kept, strict=True)
        tile[launch.sum_loop] = layout.sum_tile
        if len(launch.mapped) != len(AXES):  # three loops leave no axis of the grid for chunks
            chunks = chunks_of(layout.chunks, trips[launch.sum_loop], layout.sum_tile)
    elif layout.structure.spreads and launch.mapped:
        along = launch.mapped[-1]
        times = widening(prod(threads.values(), start=ones), layout.lanes, most_threads)
        threads[along], tile[along] = threads[along] * times, tile[along] * times
    steps = {name: np.ceil(trips[name] / tile[name]) for name in tile}
    if launch.shared_loop is not None:
        whole = steps[launch.shared_loop]
        chunks = chunks_of(layout.chunks, whole, 1)
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


Flags = npt.NDArray[np.bool_]


@frozen
class CudaLaunch:
    """A launch of layouts of one structure; columns have an entry a layout.

    ``facts`` are of the kernel, ``cut`` of the launch in it. ``trips`` are those of the loops that
    run on the card, ``launches`` how often the host launches it. ``uniform_sets`` are by statement.
    ``serial_band`` are the loops of the band that each thread runs itself, ``inner`` those beneath.
    ``lanes`` are those of a warp along each axis, ``x`` first; ``warps`` those of a block.
    ``fills`` is the share of the box of its loops that a statement runs at, ``active`` the blocks
    that have work. ``tiling`` and ``staging`` are what is planned for tiles in shared memory, the
    latter by stageable group; ``interleaved`` tells for two loops where lanes are interleaved.
    """

    facts: KernelFacts
    cut: LaunchFacts
    layout: Candidates
    card: Card
    constants: CodeConstants
    code: CudaConstants
    trips: Mapping[str, float]
    launches: float
    shape: LaunchShape
    statements: tuple[StatementFacts, ...]
    uniform_sets: Mapping[str, tuple[UniformSet, ...]]
    serial_band: tuple[str, ...]
    inner: tuple[str, ...]
    lanes: list[Column]
    warps: Column
    fills: Mapping[str, float]
    active: Column
    tiling: Tiling
    staging: tuple[StagedReads, ...]
    interleaved: Mapping[tuple[str, str], Flags]

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.layout)

    @property
    def structure(self) -> Structure:
        """How the kernel is cut."""
        return self.layout.structure

    @property
    def streams(self) -> Column:
        """Blocks that take equal shares of all steps, 0 where they do not."""
        return self.zeros + (0 if self.cut.stream_loop is None else self.layout.streams)

    @property
    def far_cycles(self) -> float:
        """Cycles of a load that L1 does not answer."""
        return self.code.far_wait * self.card.l2_cycles

    @property
    def zeros(self) -> Column:
        """A column of nothing."""
        return np.zeros(len(self))

    @property
    def ones(self) -> Column:
        """A column of ones."""
        return np.ones(len(self))

    @property
    def never(self) -> Flags:
        """Nowhere."""
        return np.zeros(len(self), dtype=bool)

    @property
    def any_staged(self) -> Column:
        """1 where something is staged in shared memory, else 0."""
        staged = (self.staged(at) for at in range(len(self.cut.stageable)))
        return np.asarray(np.maximum.reduce([self.zeros, *staged]))

    def neighbours(self, name: str) -> Flags:
        """Return where threads have neighbouring points along a loop."""
        return np.asarray(self.ones > (self.tiling.neighbours.get(name, False) == 0))

    @property
    def launched_warps(self) -> Column:
        """Warps of a launch that have work."""
        return self.active * self.warps

    @property
    def all_uniform_sets(self) -> Iterable[UniformSet]:
        """The uniform sets of all statements."""
        return (uniform for own in self.uniform_sets.values() for uniform in own)

    def serial(self, statement: StatementFacts) -> list[str]:
        """Return the loops that a thread runs itself around a statement, outermost first."""
        order = [*self.serial_band, *self.inner]
        return [name for name in order if name in statement.loops and name in self.trips]

    def points(self) -> Column:
        """Return the points of a thread, those of the sum left out."""
        return self.points_along(self.shape.points)

    def points_of(self, statement: StatementFacts) -> Column:
        """Return the points of a thread that a statement runs at, those of the sum left out."""
        return self.points_along(statement.loops)

    def points_along(self, loops: Collection[str]) -> Column:
        """Return the points of a thread along some loops."""
        return self.product(points for name, points in self.shape.points.items() if name in loops)

    def product(self, factors: Iterable[Column]) -> Column:
        """Return a product, ones where there is nothing to multiply."""
        return np.asarray(prod(factors, start=self.ones))

    def readers(self, group: int) -> list[UniformSet]:
        """Return the uniform sets of a stageable group."""
        return [one for one in self.all_uniform_sets if one.group == group]

    def share(self, statement: StatementFacts) -> Column:
        """Return the share of blocks that a statement runs in, and of its steps it runs there."""
        most = max(self.fills.values()) or 1.0  # nothing runs at sizes that are assumed
        share = self.ones * (self.fills[statement.name] / most)
        for name in self.cut.mapped:
            if name not in statement.loops:
                share = share / self.shape.steps[name]
        return share

    def steps(self, names: Sequence[str]) -> Column:
        """Return how often a thread runs some serial loops."""
        steps = self.product(map(self.block_trips, names))
        if self.cut.sum_loop in names:
            steps = steps / (self.shape.lanes * self.shape.chunks)
        return np.asarray(np.maximum(steps, 1.0))

    def block_trips(self, name: str) -> Column:
        """Return the trips of a serial loop, or those of a block where blocks share the loop."""
        if name != self.cut.shared_loop:
            return self.ones * self.trips[name]
        return np.asarray(
            np.minimum(self.trips[name], self.shape.steps[name] * self.shape.tile[name])
        )

    def tile_steps(self, statement: StatementFacts) -> Column:
        """Return how many tiles of serial loops a block runs for a statement."""
        steps = self.ones
        for name in self.part_of(statement).serial:
            steps = steps * self.shape.steps.get(name, self.ones)
        if self.cut.sum_loop is not None:
            whole = self.trips[self.cut.sum_loop]
            tile = self.shape.tile[self.cut.sum_loop] * self.shape.chunks
            steps = steps * np.maximum(1.0, whole / tile)
        return steps

    def cut_share(self, statement: StatementFacts) -> Column:
        """Return the share of a statement's steps in tiles that a bound cuts, as in a triangle.

        A tile of rows has steps up to its diagonal: the last of them, for so many steps as the tile
        has rows, are for some of its rows only.
        """
        along = [name for name in self.cut.mapped if name in statement.coupled]
        serial = [name for name in self.serial_band if name in statement.coupled]
        if not along or not serial:
            return self.zeros
        sizes = sum(self.shape.tile[name] for name in (*along, serial[-1]))
        steps = self.trips[serial[-1]] * self.fills[statement.name]
        return np.asarray(np.minimum(1.0, sizes / max(1.0, steps)))

    def runs_whole(self, statement: StatementFacts) -> Column:
        """Return 1 where tiles of a statement that a bound cuts run as full ones do, else 0.

        All arrays that it reads are staged there.
        """
        whole = self.ones * (statement.name in self.cut.whole_if_finite)
        for uniform in self.uniform_sets[statement.name]:
            if not uniform.held and uniform.access.subscripts:
                whole = whole * self.staged(uniform.group)
        return whole

    def steps_beside(self, statement: StatementFacts) -> Column:
        """Return how much longer a statement runs since tiles that a bound cuts run whole.

        Half of the points of such tiles are in the program.
        """
        half = self.cut_share(statement) * self.runs_whole(statement) / 2
        return np.asarray(1.0 + half)

    def is_written(self, array: str) -> bool:
        """Tell whether a statement of the launch writes an array."""
        return any(a.writes and a.array == array for s in self.statements for a in s.accesses)

    def strides(self, access: AccessFacts) -> list[float]:
        """Return the bytes between neighbouring threads along each axis."""
        moving = dict(access.strides)
        return [float(moving.get(name, 0) * access.element_bytes) for name, _ in self.shape.axes]

    def different_bytes(self, access: AccessFacts) -> Column:
        """Return the bytes that differ between the lanes of a request."""
        different = self.ones * access.element_bytes
        for lanes, step in zip(self.lanes, self.strides(access), strict=True):
            if step:
                different = different * lanes
        return different

    def staged(self, group: int | None) -> Column:
        """Return 1 where a stageable group is staged in shared memory, else 0."""
        return self.zeros if group is None else self.ones * self.staging[group].on

    def part_of(self, statement: StatementFacts) -> PartFacts:
        """Return the part of the launch that a statement is in."""
        return next(part for part in self.cut.parts if statement.name in part.statements)


def launch_of(
    facts: KernelFacts,
    cut: LaunchFacts,
    layout: Candidates,
    card: Card,
    constants: CodeConstants,
    code: CudaConstants,
) -> CudaLaunch:
    """Return one launch of the layouts of a structure."""
    trips, structure = trips_of(facts), layout.structure
    host_trips = 1.0 if structure.host_loop is None else trips.pop(structure.host_loop)
    launches = float(facts.work.launches or 1) * host_trips
    shape = launch_shape(cut, trips, layout, card.threads_per_block)
    statements = tuple(s for s in facts.work.statements if s.name in cut.statements)
    fills = {s.name: s.fill(trips, launches) for s in statements}
    sets = {s.name: uniform_sets(s, cut) for s in statements}
    serial_band = tuple(
        loop.name
        for loop in facts.loops
        if loop.name not in cut.mapped and loop.name != structure.host_loop
    )
    staging = tuple(_staged(at, facts, cut, sets, layout) for at in range(len(cut.stageable)))
    tiling = with_neighbours(
        _tiling(structure, cut, serial_band, shape, card), staging, _accesses(cut, sets)
    )
    pairs = interleaved(tiling, shape.axes, staging)
    pairs = {pair: on for pair, on in pairs.items() if np.any(on)}
    return CudaLaunch(
        facts=facts,
        cut=cut,
        layout=layout,
        card=card,
        constants=constants,
        code=code,
        trips=trips,
        launches=launches,
        shape=shape,
        statements=statements,
        uniform_sets=sets,
        serial_band=serial_band,
        inner=tuple(loop.name for loop in facts.inner_loops),
        lanes=_lanes(shape, pairs),
        warps=np.ceil(shape.block_threads / card.warp),
        fills=fills,
        active=_active(statements, cut, shape, trips, fills),
        tiling=tiling,
        staging=staging,
        interleaved=pairs,
    )


def _tiling(
    structure: Structure, cut: LaunchFacts, serial: Sequence[str], shape: LaunchShape, card: Card
) -> Tiling:
    block = np.floor(card.registers_per_block / shape.block_threads)
    return Tiling(
        mapped=tuple(
            LoopTile(
                name=name,
                tile=shape.tile[name],
                threads=shape.threads[name],
                points=shape.points[name],
            )
            for name in cut.mapped
        ),
        serial={name: shape.tile[name] for name in serial if name in shape.tile},
        threads=shape.block_threads,
        sum_words=sum(element_words(own.element_bytes) for own in cut.held),
        registers=np.minimum(card.registers_per_thread, block),
        load_vectors=structure.instruction is None and cut.sum_loop is None,
    )


def _staged(
    group: int,
    facts: KernelFacts,
    cut: LaunchFacts,
    sets: Mapping[str, Sequence[UniformSet]],
    layout: Candidates,
) -> StagedReads:
    """Return what is known of a stageable group."""
    on = layout.staged.get(cut.stageable[group], 0.0) > 0 if cut.sum_loop is None else False
    members = [one for own in sets.values() for one in own if one.group == group]
    if not members:
        return StagedReads(
            along=(None,), moving=(), across=(), element_bytes=4, aligned=True, on=on
        )
    access = members[0].access
    single = len({one.access.subscripts for one in members}) == 1
    single = single and not any(any(one.spans) for one in members)
    extents = next(one.extents for one in facts.work.arrays if one.name == access.array)
    return StagedReads(
        along=tuple(
            terms[0][0] if single and [c for _, c in terms] == [1] else None
            for terms, _ in access.subscripts
        ),
        moving={name for name, _ in access.strides},
        across={name for terms, _ in access.subscripts[:-1] for name, _ in terms},
        element_bytes=access.element_bytes,
        aligned=may_be_aligned(extents, vector(access.element_bytes)),
        on=on,
    )


def _accesses(
    cut: LaunchFacts, sets: Mapping[str, Sequence[UniformSet]]
) -> list[tuple[int | None, set[str]]]:
    """Return what is accessed elsewhere than in registers, as far as serial loops run around it."""
    serial = {name for part in cut.parts if part.serial for name in part.statements}
    return [
        (one.group, {name for name, _ in one.access.strides})
        for name, own in sets.items()
        if not serial or name in serial
        for one in own
        if not one.held
    ]


def _lanes(shape: LaunchShape, pairs: Mapping[tuple[str, str], Flags]) -> list[Column]:
    """Return the lanes of a warp along each axis."""
    found = lanes_of([count for _, count in shape.axes])
    for pair, on in pairs.items():
        counts = dict(zip(pair, (ALONG_X, ALONG_Y), strict=True))
        for at, (name, _) in enumerate(shape.axes):
            found[at] = np.where(on, counts.get(name, 1), found[at])
    return found


def _active(
    statements: Sequence[StatementFacts],
    cut: LaunchFacts,
    shape: LaunchShape,
    trips: Mapping[str, float],
    fills: Mapping[str, float],
) -> Column:
    """Return the blocks that have work: of a triangle those on its diagonal, too."""
    found = shape.blocks * 0.0
    for statement in statements:
        along = [name for name in cut.mapped if name in statement.coupled]
        own = shape.blocks * fills[statement.name]
        if len(along) > 1:
            shortest = np.minimum.reduce([shape.steps[name] for name in along])
            own = np.minimum(shape.blocks, np.rint(own * (1.0 + 1.0 / shortest)))
        found = np.maximum(found, own)
    return np.maximum(1.0, found)

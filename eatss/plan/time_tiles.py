"""Steps of time in registers: the windows, halos and order of an overlapped time tile.

A warp has ``32 * columns`` neighbouring cells of a row, and takes one row after another. At each
row it computes as many steps as the tile is deep, each of them a few rows behind the one before:

    row   7  8  9 10 11 12
    t     .  .  .  .  .  x    loaded
    t+1   .  .  .  .  x       of rows 10, 11, 12 at t
    t+2   .  .  .  x          of rows  9, 10, 11 at t+1

What a field is behind an update is a *version* of it. A version's last rows are a window in
registers. Cells beside a tile are computed again by its neighbours: the halo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm

from eatss.analysis.layout import Number, TimeTile
from eatss.analysis.variant import COPIED_BYTES
from eatss.base.frozen import Names, frozen
from eatss.base.targets import CUDA
from eatss.plan.numbers import Flag, chosen, least
from eatss.polyhedral.time_chains import Field, TimeChain
from eatss.program.expression import SizePairs


@dataclass(frozen=True, slots=True)
class Source:
    """A version at a cell ``offset`` away."""

    version: int
    offset: tuple[int, ...]


@frozen
class Version:
    """What a ``field`` is behind an update, or at first.

    Its row comes ``lag`` rows behind the newest one that is loaded. ``rows`` of it are kept, in
    ``slots`` that take turns: registers, which are only taken while something is in them.
    ``shared_slots`` are those of lines at the edges of warps in shared memory. ``halo`` are the
    cells around the stored ones, in front of them and behind them along each dimension, of which it
    is needed; ``None`` where nothing needs it.
    """

    field: Field
    lag: int
    rows: int
    slots: int
    shared_slots: int
    halo: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Level:
    """An update at a step of the tile: it makes ``version``.

    ``sources`` are its reads, ``None`` for those of what no step writes. Cells that it does not
    write keep what they had in ``before``; ``None`` says that memory has it.
    """

    step: int
    update: int
    version: int
    sources: tuple[Source | None, ...]
    before: int | None


@frozen
class TimeTilePlan:
    """What a warp does with a row, over and over.

    ``loaded`` and ``stored`` are versions of the fields that steps hand on, ``left`` those of
    fields that later steps write before they read them: the last tile stores them.
    """

    versions: tuple[Version, ...]
    levels: tuple[Level, ...]
    loaded: tuple[int, ...]
    stored: tuple[int, ...]
    left: tuple[int, ...]

    @property
    def unroll(self) -> int:
        """Rows after which all windows are where they began."""
        return lcm(*(one.slots for one in self.versions), *self._shared)

    @property
    def prefetches(self) -> tuple[int, ...]:
        """How many rows may be prefetched: their slots are known where rows unroll."""
        return tuple(one for one in range(1, _MOST_PREFETCH + 1) if self.unroll % one == 0)

    @property
    def _shared(self) -> Iterator[int]:
        return (one.shared_slots for one in self.versions if one.shared_slots)

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Cells beside a tile that are computed again, in front and behind along each dimension."""
        return _largest([one.halo for one in self.versions])

    @property
    def ahead(self) -> int:
        """Rows from the first one that is stored back to the first one that is loaded."""
        return max(one.halo[0][0] + one.lag for one in self.versions if one.halo is not None)

    def edge_lines(self, version: int, rows: Number) -> Number:
        """Return how many of a warp's lines others read of a version: those at its edges."""
        reach = max(
            abs(source.offset[1])
            for level in self.levels
            for source in level.sources
            if source is not None and source.version == version
        )
        return least(rows, 2 * reach)

    @property
    def depth(self) -> int:
        """Steps of a tile."""
        return self.levels[-1].step + 1

    def rows(self, length: Number) -> Number:
        """Return how many rows a tile goes through to store ``length`` of them."""
        return length + (self.ahead + self.behind + self.unroll // 2)

    @property
    def behind(self) -> int:
        """Rows from the last one that is stored on to the last one that is gone through."""
        return max(self.versions[one].lag for one in (*self.stored, *self.left))


def time_tile_plan(chain: TimeChain, depth: int) -> TimeTilePlan:
    """Return what a tile of ``depth`` steps does; a multiple of the chain's period.

    In cells of one dimension there are no rows: all lags are 0.
    """
    fields: list[Field] = []
    levels: list[Level] = []
    now: dict[Field, int] = {}

    def version_of(field: Field) -> int:
        if field not in now:
            now[field] = len(fields)
            fields.append(field)
        return now[field]

    for step in range(depth):
        for number, update in enumerate(chain.updates):
            sources = tuple(
                None
                if read is None
                else Source(version_of(read.field(step, chain.period)), read.offset)
                for read in update.reads
            )
            target = update.target.field(step, chain.period)
            before = now.get(target)
            if before is None and target.array not in chain.settled:
                before = version_of(target)
            now[target] = len(fields)
            fields.append(target)
            levels.append(Level(step, number, now[target], sources, before))
    made = {one.version for one in levels}
    loaded = tuple(number for number in range(len(fields)) if number not in made)
    state = {fields[number] for number in loaded}
    stored = tuple(number for field, number in now.items() if field in state)
    left = tuple(number for field, number in now.items() if field not in state)
    return _with_windows(chain, fields, levels, loaded, stored, left)


def _with_windows(
    chain: TimeChain,
    fields: Sequence[Field],
    levels: Sequence[Level],
    loaded: tuple[int, ...],
    stored: tuple[int, ...],
    left: tuple[int, ...],
) -> TimeTilePlan:
    """Return the plan with lags, windows and halos of all versions."""
    dims = chain.dims
    lags = [0] * len(fields)
    uses: dict[int, list[tuple[int, tuple[int, ...]]]] = {}  # of versions: by which, how far away
    for level in levels:
        for source in sources_of(level, dims):
            uses.setdefault(source.version, []).append((level.version, source.offset))
            lags[level.version] = max(
                lags[level.version], lags[source.version] + _later(source.offset)
            )
    for number in loaded:
        own = [lags[user] - _later(offset) for user, offset in uses.get(number, ())]
        lags[number] = min(own, default=0)
    halos: list[tuple[tuple[int, int], ...] | None] = [None] * len(fields)
    for number in (*stored, *left):
        halos[number] = ((0, 0),) * dims
    for level in reversed(levels):
        here = halos[level.version]
        if here is None:
            continue
        for source in sources_of(level, dims):
            reached = tuple(
                (front - far, back + far)
                for (front, back), far in zip(here, source.offset, strict=True)
            )
            halos[source.version] = _largest([halos[source.version], reached])

    def version(number: int) -> Version:
        ages = [
            (lags[user] - lags[number] - _row(offset), _crosses(offset))
            for user, offset in uses.get(number, ())
        ]
        most = max((age for age, _ in ages), default=0)
        shared = max((age for age, crosses in ages if crosses), default=0)
        return Version(
            field=fields[number],
            lag=lags[number],
            rows=most + 1,
            slots=most + 1,
            shared_slots=shared + 1 if shared else 0,
            halo=halos[number],
        )

    versions = [version(number) for number in range(len(fields))]
    turns = max(one.rows for one in versions)

    def in_turns(slots: int) -> int:
        """Return the slots, more if they have to be to come back with the others."""
        return slots if slots < 2 or turns % slots == 0 else turns

    return TimeTilePlan(
        versions=tuple(
            replace(one, slots=in_turns(one.slots), shared_slots=in_turns(one.shared_slots))
            for one in versions
        ),
        levels=tuple(levels),
        loaded=loaded,
        stored=stored,
        left=left,
    )


def sources_of(level: Level, dims: int) -> Iterator[Source]:
    """Yield the versions that a level reads, what cells were before among them."""
    yield from (one for one in level.sources if one is not None)
    if level.before is not None:
        yield Source(level.before, (0,) * dims)


def _row(offset: tuple[int, ...]) -> int:
    """Return how many rows away a cell is."""
    return offset[0] if len(offset) > 1 else 0


def _crosses(offset: tuple[int, ...]) -> bool:
    """Tell whether a cell may be another warp's."""
    return len(offset) > 2 and offset[1] != 0


def _later(offset: tuple[int, ...]) -> int:
    """Return how many rows behind a source what reads it comes at least."""
    return _row(offset) + _crosses(offset)


def _largest(
    halos: Sequence[tuple[tuple[int, int], ...] | None],
) -> tuple[tuple[int, int], ...]:
    """Return the least halo that has all others."""
    known = [one for one in halos if one is not None]
    return tuple(
        (max(front for front, _ in along), max(back for _, back in along))
        for along in zip(*known, strict=True)
    )


@frozen
class TimeRun:
    """Kernels that are the steps of a loop over time, and what tiles of several steps do.

    ``steps`` of the ``loop`` run, over so many ``cells`` along each dimension. ``updates`` are the
    statements of a step, ``far_reads`` how many elements each of them reads of arrays that no step
    writes. ``element_bytes`` are those of the fields, by array. ``plans`` are by depth.
    """

    kernels: Names
    loop: str
    steps: int
    cells: tuple[int, ...]
    updates: Names
    far_reads: tuple[int, ...]
    element_bytes: SizePairs
    plans: tuple[tuple[int, TimeTilePlan], ...]

    @property
    def dims(self) -> int:
        """The dimensions of a cell."""
        return len(self.cells)


def beside(plan: TimeTilePlan, tile: TimeTile) -> tuple[tuple[Number, Number], ...]:
    """Return a tile's cells beside the stored ones, in front and behind along each dimension.

    Along the last one they are all cells of some lanes, so that others can store vectors.
    """
    *others, last = plan.halo
    front, back = (-(-cells // tile.columns) * tile.columns for cells in last)
    return (*others, (front, back))


def stored_cells(plan: TimeTilePlan, tile: TimeTile) -> tuple[Number, ...]:
    """Return how many cells of a tile are stored along each dimension, halos left out."""
    halo = beside(plan, tile)
    sizes = (tile.length, tile.warps * tile.rows, CUDA.lanes * tile.columns)
    around = [(0, 0), *halo[1:]] if len(halo) > 1 else [*halo]
    own = sizes if len(halo) > 2 else (sizes[0], sizes[2])[2 - len(halo) :]
    return tuple(size - front - back for size, (front, back) in zip(own, around, strict=True))


def vector_width(element_bytes: int, columns: Number) -> Number:
    """Return how many cells of a row a thread loads or stores at a time, where rows are aligned."""
    width = COPIED_BYTES // element_bytes
    return chosen(columns % width == 0, width, 1)


_MOST_PREFETCH = 6
"""Rows that are prefetched, at most: they take registers."""

MOST_UPDATES = 1024
"""Updates that are unrolled, at most: code for more is compiled for minutes."""


def is_possible(plan: TimeTilePlan, tile: TimeTile) -> Flag:
    """Tell whether something of a tile is left between its halos, and it is not too much code."""
    points = tile.rows * tile.columns
    fine = (plan.unroll * len(plan.levels) * points <= MOST_UPDATES) & bool(plan.loaded)
    fine = fine & (plan.unroll % tile.prefetch == 0)
    for cells in stored_cells(plan, tile):
        fine = fine & (cells > 0)
    return fine


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell of a row is: so many warps and lanes on, in that thread's line and column."""

    warps: int
    lanes: int
    line: int
    column: int


def place_of(point: tuple[int, ...], source: Source, rows: int, columns: int) -> Place:
    """Return where a source is for a thread's point: its line, in three dimensions, and column."""
    lanes, column = divmod(point[-1] + source.offset[-1], columns)
    if len(point) < 2:
        return Place(0, lanes, 0, column)
    warps, line = divmod(point[0] + source.offset[1], rows)
    return Place(warps, lanes, line, column)


def points_of(dims: int, rows: int, columns: int) -> Iterator[tuple[int, ...]]:
    """Yield the cells of a row that a thread has: lines, in three dimensions, and columns."""
    return product(*([range(rows)] if dims > 2 else []), range(columns))


def shuffles_of(level: Level, dims: int, rows: int, columns: int) -> int:
    """Return how many cells of other lanes of its warp a thread asks for, each once."""
    found = _places_of(level, dims, rows, columns)
    return sum(1 for _, _, place in found if place.lanes and not place.warps)


def edge_reads_of(level: Level, dims: int, rows: int, columns: int) -> int:
    """Return how many cells of other warps a thread reads, each once."""
    return sum(1 for _, _, place in _places_of(level, dims, rows, columns) if place.warps)


def _places_of(level: Level, dims: int, rows: int, columns: int) -> set[tuple[int, int, Place]]:
    """Return the places that a thread's points ask for: of which version, how many rows away."""
    return {
        (source.version, _row(source.offset), place_of(point, source, rows, columns))
        for source, point in product(sources_of(level, dims), [*points_of(dims, rows, columns)])
    }


def pairs_of(steps: Number, depth: int) -> Number:
    """Return how often two launches, there and back, take ``depth`` steps each."""
    return steps // (2 * depth)

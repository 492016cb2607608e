"""Several steps of a loop over time as one launch: overlapped tiles in registers.

:mod:`eatss.plan.time_tiles` says which rows, halos and windows there are; this carries it out. Two
kernels take turns, so that none writes what it reads: one leaves fields in twins of them, the other
brings them back. What cells hold that no step writes is read from memory where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import islpy as isl

from eatss.analysis.analyse import AnalysedProgram
from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import TimeTile
from eatss.base.diagnostics import SourceSpan, input_error, internal_error
from eatss.base.frozen import frozen
from eatss.base.targets import CUDA
from eatss.lower.arrays import (
    affine_text,
    condition_of,
    subscripts_of,
)
from eatss.lower.instructions import OF_LANE
from eatss.lower.kernel.barriers import barrier_faults
from eatss.lower.kernel.checks import fault_in, kernel_faults
from eatss.lower.kernel.nodes import (
    Argument,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Flag,
    For,
    If,
    Init,
    Intrinsic,
    Kernel,
    Let,
    Node,
    Nodes,
    Scope,
    counted,
    over_places,
)
from eatss.lower.kernel.nodes import Source as SourceLine
from eatss.lower.kernel.uses import affine_values, buffers_of, names_of, without_unused, written
from eatss.lower.lanes import digits
from eatss.lower.pieces import NameTable, Piece, pieces_of
from eatss.lower.references import KernelContext
from eatss.lower.time_tile_checks import tile_faults
from eatss.lower.transform.chain import with_barriers
from eatss.plan.time_tiles import (
    Level,
    Source,
    TimeRun,
    TimeTilePlan,
    stored_cells,
    time_tile_plan,
)
from eatss.polyhedral.dependences import bounded_work, source_lines
from eatss.polyhedral.expression import fused_quotient, preorder
from eatss.polyhedral.isl_names import (
    coalesced,
    counter_of,
    dims_as_parameters,
    function_on,
    parameter_at_least,
    parameter_at_most,
)
from eatss.polyhedral.kernel import Dependences, ScheduledScop
from eatss.polyhedral.time_chains import CELL, TIME, CellUpdate, Field, TimeChain, time_chains
from eatss.program import (
    Apply,
    Constant,
    HostLoop,
    HostStep,
    IntExpr,
    Launch,
    Name,
    Operator,
    Temporary,
    at_least,
    equals,
    floored,
    select,
    substitute,
)
from eatss.program.expression import Environment, IntExprs
from eatss.program.linear import strict


@frozen
class TiledSteps:
    """Kernels that take ``depth`` steps each, the first into ``twins``, the second back.

    Both begin at the step that the counter ``time`` names, the second ``depth`` later.
    """

    kernels: tuple[Kernel, Kernel]
    grid: tuple[IntExpr, IntExpr, IntExpr]
    block: tuple[int, int, int]
    depth: int
    twins: tuple[Temporary, ...]


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
    kernels = [
        _Builder(name, chain, plan, tile, context, twins, time, last, span, back=back).build()
        for back, name in enumerate(names)
    ]
    ((forward, grid), (backward, _)) = kernels
    if forward.shared_bytes > context.shared_limit_bytes:
        raise input_error(
            "EATSS-K011",
            f"{tile.warps} warps of {tile.rows} lines need {forward.shared_bytes} bytes of shared "
            f"memory, and a block may have {context.shared_limit_bytes}",
            hint="give time_tile fewer warps, lines or steps",
        )
    return TiledSteps(
        kernels=(forward, backward),
        grid=grid,
        block=(CUDA.lanes, tile.warps, 1),
        depth=tile.depth,
        twins=tuple(
            Temporary(name=one.name, element_type=one.element_type.value, shape=one.layout.extents)
            for one in twins.values()
        ),
    )


def chain_of(
    scheduled: ScheduledScop, tile: TimeTile, pieces: Sequence[Piece], facts: Sequence[KernelFacts]
) -> TimeChain:
    """Return the loop over time whose kernels a tile names.

    Raises:
        InputError: ``EATSS-K011``, there is none, or nothing of the tile is left beside its halo.
    """
    for chain in chains_of(scheduled, pieces):
        own = [one for one in pieces if set(one.kernel.statements) <= set(chain.statements)]
        found = [one.facts_in(facts) for one in own]
        if (
            tuple(one.name for one in found if one is not None) == tile.kernels
            and tile.depth % chain.period == 0
            and min(stored_cells(time_tile_plan(chain, tile.depth), tile)) > 0
        ):
            return chain
    raise input_error(
        "EATSS-K011",
        f"{', '.join(tile.kernels)} are no steps of a loop over time that {tile.depth} of them "
        "can be taken of at once",
        hint="leave time_tile out of the recipe",
    )


def chains_of(scheduled: ScheduledScop, pieces: Sequence[Piece]) -> Iterator[TimeChain]:
    """Yield the loops over time that run on the host, around nothing but their own steps."""
    scop = scheduled.scop
    if scop.written is not None or scop.products:
        return
    for chain in time_chains(scop, scheduled.dependences):
        names = set(chain.statements)
        inside = [one for one in pieces if not names.isdisjoint(one.kernel.statements)]
        covered = {name for one in inside for name in one.kernel.statements}
        hosts = {one.host[0].member.key if len(one.host) == 1 else None for one in inside}
        beside = [one for one in pieces if one not in inside and one.host]
        if (
            covered == names
            and len(hosts) == 1
            and None not in hosts
            and not any(one.host[0].member.key in hosts for one in beside)
            and all(_is_time(one, chain) for one in inside)
        ):
            yield chain


def _is_time(piece: Piece, chain: TimeChain) -> bool:
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
    pairs = at_least(floored(loop.upper - loop.lower + 1, both), 0)
    return tiles, replace(loop, lower=loop.lower + pairs * both)


MOST_DEPTH = 8
"""Steps of a tile, at most: by hand 4 to 6 were best, and 10 left too few warps."""


def time_runs_for(
    program: AnalysedProgram, code: Callable[[], Sequence[ScheduledScop]] | None = None
) -> tuple[TimeRun, ...]:
    """Return the loops over time of a program of which several steps may be one launch.

    ``code`` gives the schedules of the regions that code is made from; it is called if there are
    such loops at the sizes of the source.
    """
    numeric = [region.scheduled for region in program.scops]
    if not any(True for one in numeric for _ in time_chains(one.scop, one.dependences)):
        return ()
    found: list[TimeRun] = []
    for scheduled, region in zip(code() if code else numeric, program.scops, strict=True):
        with source_lines("on what code can be made"), bounded_work(scheduled.scop):
            found += time_runs(scheduled, region.facts)
    return tuple(found)


def time_runs(scheduled: ScheduledScop, facts: Sequence[KernelFacts]) -> Iterator[TimeRun]:
    """Yield the loops over time of a region of which several steps may be one launch."""
    scop = scheduled.scop
    pieces = pieces_of(scheduled, NameTable((scop.function, *scop.parameters)))
    for chain in chains_of(scheduled, pieces):
        inside = [one for one in pieces if set(one.kernel.statements) <= set(chain.statements)]
        kernels = [one.facts_in(facts) for one in inside]
        known = [one for one in kernels if one is not None]
        launches = {one.work.launches for one in known}
        arrays = {array.name: array for one in known for array in one.work.arrays}
        trips = {name: count for one in known for name, count in one.work.trips}
        loops = [one.statement.loops[1:] for one in chain.updates]
        counts = [[trips.get(name, 0) for name in own] for own in loops if len(own) == chain.dims]
        cells = tuple(max(along) for along in zip(*counts, strict=True))
        if len(known) < len(inside) or len(launches) > 1 or None in launches or not all(cells):
            continue
        yield TimeRun(
            kernels=tuple(one.name for one in known),
            loop=chain.loop,
            steps=next(iter(launches)) or 0,
            cells=cells,
            updates=chain.statements,
            far_reads=tuple(
                sum(
                    1
                    for read, access in zip(one.reads, one.statement.reads, strict=True)
                    if read is None and scop.array(access.array).n_dims
                )
                for one in chain.updates
            ),
            element_bytes=tuple((name, array.element_bytes) for name, array in arrays.items()),
            plans=tuple(
                (depth, time_tile_plan(chain, depth))
                for depth in range(chain.period, MOST_DEPTH + 1, chain.period)
            ),
        )


@dataclass(slots=True)
class _Neighbours:
    """Registers that hold cells of other lanes and warps while a level is computed."""

    names: NameTable
    found: dict[tuple[object, ...], Buffer] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)


class _Builder:
    """Builds one of the two kernels: its names, and what of memory is where."""

    def __init__(
        self,
        name: str,
        chain: TimeChain,
        plan: TimeTilePlan,
        tile: TimeTile,
        context: KernelContext,
        twins: Mapping[Field, Buffer],
        time: str,
        last: IntExpr,
        span: SourceSpan,
        *,
        back: int,
    ) -> None:
        self._name, self._chain, self._plan, self._tile = name, chain, plan, tile
        self._context, self._twins, self._span = context, twins, span
        self._time, self._back = time, bool(back)
        own = context.names.inner()
        self._names = own
        self._first_step: IntExpr = Name(time) + (tile.depth if back else 0)
        ahead = last - (4 * tile.depth - 1)
        self._is_last = ahead < Name(time)  # no tile comes behind it
        dims = chain.dims
        self._lane, self._warp = own.fresh("lane"), own.fresh("warp")
        self._cells = tuple(own.fresh(one) for one in ("row0", "line0", "column0")[-dims:])
        if dims == 2:
            self._cells = (own.fresh("row_first"), self._cells[-1])
        self._row = own.fresh("row")
        self._end = own.fresh("row_end")
        self._turn = own.fresh("turn")
        versions = plan.versions
        self._windows = {
            number: Buffer.of(
                "register",
                own.fresh(f"{context.arrays[one.field.array].name}_{number}"),
                context.arrays[one.field.array].array.element_type,
                *self._shape(one.slots),
            )
            for number, one in enumerate(versions)
            if one.halo is not None
        }
        self._next = {
            number: Buffer.of(
                "register",
                own.fresh(f"{self._windows[number].name}_next"),
                self._windows[number].element_type,
                *self._shape(None),
            )
            for number in plan.loaded
        }
        self._edges = {
            number: Buffer.of(
                "shared",
                own.fresh(f"{self._windows[number].name}_edge"),
                self._windows[number].element_type,
                one.shared_slots,
                tile.warps * self._edge_lines(number),
                tile.columns,
                CUDA.lanes,
            )
            for number, one in enumerate(versions)
            if one.shared_slots
        }

    def _edge_lines(self, version: int) -> int:
        """Return how many lines of each warp others read: of those at its edges."""
        reach: int = max(
            abs(source.offset[1])
            for level in self._plan.levels
            for source in level.sources
            if source is not None and source.version == version
        )
        return min(int(self._tile.rows), 2 * reach)

    def _edge(self, version: int, line: int) -> int | None:
        """Return which line at an edge of a warp a line of it is, ``None`` for those between."""
        lines, rows = self._edge_lines(version), self._tile.rows
        if line < lines // 2 or lines == rows:
            return line
        return line - (rows - lines) if line >= rows - lines // 2 else None

    def _shape(self, slots: int | None) -> tuple[int, ...]:
        first = () if slots is None else (slots,)
        return (*first, *self._lines_of_a_thread, self._tile.columns)

    @property
    def _lines_of_a_thread(self) -> tuple[int, ...]:
        return (self._tile.rows,) if self._chain.dims > 2 else ()

    @property
    def _points(self) -> Iterator[tuple[int, ...]]:
        """The cells of a row that a thread has: its lines in three dimensions, its columns."""
        return product(*map(range, (*self._lines_of_a_thread, self._tile.columns)))

    # Where a thread is ------------------------------------------------------------------

    def _extents(self, one: Field) -> IntExprs:
        array = self._context.arrays[one.array]
        return array.shape[-self._chain.dims :]

    @property
    def _all_extents(self) -> IntExprs:
        """How many cells there are, of the largest array that is stored."""
        kept = [self._plan.versions[one].field for one in (*self._plan.stored, *self._plan.left)]
        along = zip(*(self._extents(one) for one in dict.fromkeys(kept)), strict=True)
        found = []
        for extents in along:
            several = tuple(dict.fromkeys(extents))
            found.append(several[0] if len(several) == 1 else Apply(Operator.MAX, several))
        return tuple(found)

    @property
    def _width(self) -> int:
        return CUDA.lanes * int(self._tile.columns)

    @property
    def _counts(self) -> IntExprs:
        """How many tiles there are along each dimension."""
        return tuple(
            floored(extent + (cells - 1), cells)
            for extent, cells in zip(
                self._all_extents, stored_cells(self._plan, self._tile), strict=True
            )
        )

    def _cell(self, row: IntExpr, point: Sequence[int]) -> IntExprs:
        """Return the place of a thread's point in a row."""
        *lines, column = (
            Name(name) + place
            for name, place in zip(self._cells[-len(point) :], point, strict=True)
        )
        return (row, *lines, column) if self._chain.dims > 1 else (column,)

    def build(self) -> tuple[Kernel, tuple[IntExpr, IntExpr, IntExpr]]:
        """Return the kernel and its grid."""
        counts, chain = self._counts, self._chain
        number = self._names.fresh("block")
        places = digits(Name(number), list(counts), self._span)
        cells = stored_cells(self._plan, self._tile)
        halo = self._plan.halo
        lets = [
            Let(name=number, value=Name(f"{CUDA.block}x")),
            Let(name=self._lane, value=Name(f"{CUDA.thread}x"), narrow=True),
            Let(name=self._warp, value=Name(f"{CUDA.thread}y"), narrow=True),
        ]
        body: list[Node] = []
        if chain.dims > 1:
            first = self._names.fresh("row_from")
            lets.append(Let(name=first, value=places[0] * cells[0]))
            end = (Name(first) + cells[0], self._all_extents[0])
            lets.append(Let(name=self._end, value=Apply(Operator.MIN, end)))
            self._from = first
        if chain.dims > 2:
            own = Name(self._warp) * self._tile.rows - halo[1][0]
            lets.append(Let(name=self._cells[1], value=places[1] * cells[1] + own))
        column = Name(self._lane) * self._tile.columns - halo[-1][0]
        lets.append(Let(name=self._cells[-1], value=places[-1] * cells[-1] + column))
        registers = (*self._windows.values(), *self._next.values())
        body += [Declare(buffer=buffer) for buffer in registers]
        for buffer in self._windows.values():
            names = self._names.inner()
            counters = [names.fresh(f"n{k}") for k in range(len(buffer.layout.extents))]
            any_value = Init(target=buffer.at(*map(Name, counters)), value=1)
            body.append(over_places(buffer, counters, any_value))
        body += self._rows()
        nodes = without_unused((*lets, *body))
        nodes = with_barriers(nodes)
        kernel = Kernel(
            name=self._name,
            threads=CUDA.lanes * self._tile.warps,
            arguments=self._arguments(nodes),
            shared=tuple(self._edges.values()),
            static_shared_bytes=self._context.static_shared_bytes,
            index_bits=self._context.index_bits,
            body=nodes,
        )
        for fault in (*kernel_faults(kernel, self._context.scop.sizes), *barrier_faults(nodes)):
            raise fault_in(kernel, fault)
        grid: IntExpr = counts[0]
        for one in counts[1:]:
            grid = grid * one
        return kernel, (grid, Constant(1), Constant(1))

    def _arguments(self, nodes: Nodes) -> tuple[Argument, ...]:
        used, passed = names_of(nodes), buffers_of(nodes)
        integers = (*self._context.parameters, self._time)
        arrays = (one.buffer for one in self._context.arrays.values())
        changed = written(nodes)
        return (
            *(Argument(name=name) for name in integers if name in used),
            *(
                Argument(name=one.name, buffer=one, read_only=one not in changed)
                for one in (*arrays, *self._twins.values())
                if one in passed and one.space != "register"
            ),
        )

    # Rows -------------------------------------------------------------------------------

    def _rows(self) -> Nodes:
        """Return the loop over rows, or what is done with the only one."""
        plan = self._plan
        if self._chain.dims == 1:
            only = Constant(0)
            loads = [
                node
                for one in plan.loaded
                for node in (*self._fetched(one, only), *self._taken(one, only))
            ]
            return (*loads, *self._levels(only, only))
        base = self._names.fresh("rows")
        first = Name(self._from) - plan.ahead
        turn, row = Name(self._turn), Name(self._row)
        ahead = [
            node
            for one in plan.loaded
            for node in self._fetched(one, first - plan.versions[one].lag)
        ]
        inside: list[Node] = [Let(name=self._row, value=Name(base) + turn)]
        for one in plan.loaded:
            inside += self._taken(one, turn)
            inside += self._fetched(one, row + (1 - plan.versions[one].lag))
        inside += self._levels(row, turn)
        inside += self._left_at_edges(turn)
        loop = For(
            counter=base,
            lower=first,
            condition=strict(Name(base) <= Name(self._end) + (plan.behind - 1)),
            step=Constant(plan.unroll),
            body=(counted(self._turn, plan.unroll, tuple(inside)),),
            unroll=1,
        )
        return (*ahead, *self._edges_filled(), loop)

    def _left_at_edges(self, turn: IntExpr) -> Iterator[Node]:
        """Yield what leaves the newest rows' lines at the edges of warps in shared memory."""
        for version in self._edges:
            stage = turn % self._plan.versions[version].shared_slots
            yield self._edge_left(version, stage, self._slot(version, turn, 0))

    def _edges_filled(self) -> Iterator[Node]:
        """Yield what gives the edges values that are there before any row is."""
        for version in self._edges:
            stage = self._names.inner().fresh("stage")
            filled = self._edge_left(version, Name(stage), (Constant(0),))
            yield counted(stage, self._plan.versions[version].shared_slots, (filled,))

    def _edge_left(self, version: int, stage: IntExpr, slot: IntExprs) -> For:
        """Return what leaves lines of a row, which a window has in a slot, at the edges."""
        lines, rows = self._edge_lines(version), self._tile.rows
        names = self._names.inner()
        number, column = Name(names.fresh("edge")), Name(names.fresh("column"))
        line = (
            number
            if lines == rows
            else select(number < lines // 2, number, number + (rows - lines))
        )
        place = Name(self._warp) * lines + number
        copy = Copy(
            target=self._edges[version].at(stage, place, column, Name(self._lane)),
            source=self._windows[version].at(*slot, line, column),
        )
        return counted(number.name, lines, (counted(column.name, self._tile.columns, (copy,)),))

    def _slot(self, version: int, turn: IntExpr, age: int) -> IntExprs:
        """Return where a window has the row that came ``age`` turns ago."""
        slots = self._plan.versions[version].slots
        if slots == 1:
            return (Constant(0),)
        return ((turn + (slots - age) % slots) % slots,)

    def _taken(self, version: int, turn: IntExpr) -> Iterator[Node]:
        window, ahead = self._windows[version], self._next[version]
        for point in self._points:
            places = tuple(map(Constant, point))
            yield Copy(
                target=window.at(*self._slot(version, turn, 0), *places), source=ahead.at(*places)
            )

    def _fetched(self, version: int, row: IntExpr) -> Iterator[Node]:
        """Yield the loads of a version's row into registers for the next turn."""
        for point in self._points:
            places = tuple(map(Constant, point))
            yield self._load(version, self._next[version].at(*places), self._cell(row, point))

    def _load(self, version: int, target: Element, cell: IntExprs) -> Copy:
        own = self._plan.versions[version].field
        source = self._twins[own].at(*cell) if self._back else self._at(own, cell)
        return Copy(target=target, source=source, condition=self._inside(own, cell), clears=True)

    def _inside(self, own: Field, cell: IntExprs) -> IntExpr:
        """Return the condition that a cell is one of an array."""
        tests: list[IntExpr] = []
        for place, extent in zip(cell, self._extents(own), strict=True):
            tests += [Constant(0) <= place, strict(place <= extent - 1)]
        return Apply(Operator.AND, tuple(tests))

    def _at(self, own: Field, cell: IntExprs) -> Element:
        """Return a cell of a field in the array of the caller."""
        array = self._context.arrays[own.array]
        turn = (self._first_step + own.turn) % self._chain.period
        plane = tuple(turn if one is None else Constant(one) for one in own.plane)
        return array.element((*plane, *cell))

    # Levels -----------------------------------------------------------------------------

    def _levels(self, row: IntExpr, turn: IntExpr) -> list[Node]:
        found: list[Node] = []
        for level in self._plan.levels:
            if level.version in self._windows:
                found += self._level(level, row, turn)
        return found

    def _level(self, level: Level, row: IntExpr, turn: IntExpr) -> Iterator[Node]:
        plan, update = self._plan, self._chain.updates[level.update]
        version = plan.versions[level.version]
        window = self._windows[level.version]
        names = self._names.inner()
        here = names.fresh(f"row_{level.version}")
        own: list[Node] = []
        if self._chain.dims > 1:
            own.append(Let(name=here, value=row - version.lag))
        own.append(SourceLine(line=update.statement.span.line, text=update.statement.text))
        values = Buffer.of(
            "register",
            names.fresh(f"value_{level.version}"),
            window.element_type,
            *self._shape(None),
        )
        own.append(Declare(buffer=values))
        neighbours = _Neighbours(names)
        parts = preorder(update.statement.value)
        flag = names.fresh(f"exact_{level.version}") if any(map(fused_quotient, parts)) else ""
        computes: list[Compute] = []
        for point in self._points:
            places = tuple(map(Constant, point))
            env = self._env(update, level, self._cell(Name(here), point))
            computes.append(
                Compute(
                    statement=update.statement,
                    target=values.at(*places),
                    reads=(
                        window.at(*self._slot(level.version, turn, 0), *places),
                        *self._reads(level, update, point, turn, env, neighbours, Name(here)),
                    ),
                    integers=tuple(
                        affine_text(one.value, env) for one in affine_values(update.statement.value)
                    ),
                    types={n: a.array.element_type for n, a in self._context.arrays.items()},
                    flag=flag,
                )
            )
        own += neighbours.nodes
        if flag:
            again = tuple(replace(one, flag="") for one in computes)
            own += [Flag(name=flag), *computes, If(conditions=(equals(Name(flag), 0),), body=again)]
        else:
            own += computes
        for point in self._points:
            places = tuple(map(Constant, point))
            cell = self._cell(Name(here), point)
            target = window.at(*self._slot(level.version, turn, 0), *places)
            writes = self._writes(update, level, cell)
            own += self._kept(level, target, values.at(*places), writes, turn, places, cell)
        if level.version in (*plan.stored, *plan.left):
            own += self._stores(level, update, window, turn, Name(here))
        yield Scope(body=tuple(own))

    def _kept(
        self,
        level: Level,
        target: Element,
        value: Element,
        writes: IntExpr,
        turn: IntExpr,
        places: IntExprs,
        cell: IntExprs,
    ) -> Iterator[Node]:
        """Yield what makes a cell its new value where the level writes it, else what it was."""
        if level.before is None:
            own = self._plan.versions[level.version].field
            beside = Apply(Operator.AND, (equals(writes, 0), self._inside(own, cell)))
            yield Copy(target=target, source=value)
            yield Copy(target=target, source=self._at(own, cell), condition=beside)
            return
        before = self._windows[level.before]
        age = self._age(level, level.before, 0)
        yield Copy(target=target, source=before.at(*self._slot(level.before, turn, age), *places))
        yield Copy(target=target, source=value, condition=writes)

    def _age(self, level: Level, version: int, row: int) -> int:
        """Return how many turns ago the row came that a level needs of a version."""
        versions = self._plan.versions
        return versions[level.version].lag - versions[version].lag - row

    def _env(self, update: CellUpdate, level: Level, cell: IntExprs) -> Environment:
        """Return a statement's counters where it writes a cell."""
        values = self._values(level, cell)
        return {name: affine_text(function, values) for name, function in update.counters}

    def _values(self, level: Level, cell: IntExprs) -> Environment:
        time = self._first_step + level.step
        return {TIME: time, **dict(zip(CELL[-self._chain.dims :], cell, strict=True))}

    def _writes(self, update: CellUpdate, level: Level, cell: IntExprs) -> IntExpr:
        """Return the condition that a level writes a cell."""
        names = (TIME, *CELL[-self._chain.dims :])
        params = dims_as_parameters(update.cells, names)
        known = isl.Set.universe(self._context.scop.context.get_space())
        known = known.intersect(parameter_at_least(TIME, self._chain.first))
        known = known.intersect(parameter_at_most(TIME, self._chain.last))
        condition = condition_of(coalesced(params), known)
        return strict(substitute(condition, self._values(level, cell)))

    def _reads(
        self,
        level: Level,
        update: CellUpdate,
        point: tuple[int, ...],
        turn: IntExpr,
        env: Environment,
        neighbours: _Neighbours,
        row: IntExpr,
    ) -> Iterator[Element]:
        for access, source in zip(update.statement.reads, level.sources, strict=True):
            if source is not None:
                yield self._of(level, source, point, turn, neighbours)
                continue
            array = self._context.arrays[access.array]
            element = array.element(subscripts_of(access, env))
            if array.by_value:
                yield element
                continue
            key = (element, point)
            if key not in neighbours.found:
                name = neighbours.names.fresh(f"{array.name}_r")
                own = Buffer.of("register", name, array.array.element_type)
                writes = self._writes(update, level, self._cell(row, point))
                neighbours.found[key] = own
                neighbours.nodes += [
                    Declare(buffer=own),
                    Copy(target=own.at(), source=element, condition=writes, clears=True),
                ]
            yield neighbours.found[key].at()

    def _of(
        self,
        level: Level,
        source: Source,
        point: tuple[int, ...],
        turn: IntExpr,
        neighbours: _Neighbours,
    ) -> Element:
        """Return the register of a cell beside a point, which other lanes may have."""
        window = self._windows[source.version]
        row = source.offset[0] if self._chain.dims > 1 else 0
        slot = self._slot(source.version, turn, self._age(level, source.version, row))
        lanes, column = divmod(point[-1] + source.offset[-1], self._tile.columns)
        lines = point[:-1]
        if self._chain.dims > 2:
            warps, line = divmod(point[0] + source.offset[1], self._tile.rows)
            lines = (line,)
            if warps:
                age = self._age(level, source.version, row)
                place = (warps, line, lanes, column)
                return self._of_warp(source.version, turn, age, place, neighbours)
        element = window.at(*slot, *map(Constant, lines), Constant(column))
        if lanes == 0:
            return element
        key = (source.version, row, lines, lanes, column)
        if key not in neighbours.found:
            name = neighbours.names.fresh(f"{window.name}_of_lane")
            own = Buffer.of("register", name, window.element_type)
            neighbours.found[key] = own
            neighbours.nodes += [
                Declare(buffer=own),
                Intrinsic(
                    instruction=OF_LANE,
                    operands=(("target", (own.at(),)), ("value", (element,))),
                    immediates=(("delta", lanes),),
                ),
            ]
        return neighbours.found[key].at()

    def _of_warp(
        self,
        version: int,
        turn: IntExpr,
        age: int,
        place: tuple[int, int, int, int],
        neighbours: _Neighbours,
    ) -> Element:
        """Return the register of a cell that another warp left at its edge."""
        edge, stages = self._edges[version], self._plan.versions[version].shared_slots
        key = ("edge", version, age, place)
        if key not in neighbours.found:
            warps, line, lanes, column = place
            own = Buffer.of("register", neighbours.names.fresh(f"{edge.name}_r"), edge.element_type)
            at_edge = self._edge(version, line)
            assert at_edge is not None
            warp, lane = Name(self._warp) + warps, Name(self._lane) + lanes
            tests = [Constant(0) <= warp, warp < self._tile.warps]
            if lanes:
                tests += [Constant(0) <= lane, lane < CUDA.lanes]
            stage = (turn + (stages - age)) % stages
            source = edge.at(
                stage, warp * self._edge_lines(version) + at_edge, Constant(column), lane
            )
            there = Apply(Operator.AND, tuple(tests))
            neighbours.found[key] = own
            neighbours.nodes += [
                Declare(buffer=own),
                Init(target=own.at(), value=0),
                Copy(target=own.at(), source=source, condition=there),
            ]
        return neighbours.found[key].at()

    def _stores(
        self, level: Level, update: CellUpdate, window: Buffer, turn: IntExpr, row: IntExpr
    ) -> Iterator[Node]:
        """Yield the stores of a version's row that is whole."""
        left = level.version in self._plan.left
        if left and not self._back:
            return
        own = self._plan.versions[level.version].field
        stores: list[Node] = []
        for point in self._points:
            cell = self._cell(row, point)
            places = (*self._slot(level.version, turn, 0), *map(Constant, point))
            tests = [self._inside(own, cell), *self._in_tile(point)]
            if left:
                tests.append(self._writes(update, level, cell))
            target = self._at(own, cell) if left or self._back else self._twins[own].at(*cell)
            stores.append(
                Copy(
                    target=target,
                    source=window.at(*places),
                    condition=Apply(Operator.AND, _flat(tests)),
                )
            )
        conditions: list[IntExpr] = [self._is_last] if left else []
        if self._chain.dims > 1:
            conditions += [Name(self._from) <= row, strict(row <= Name(self._end) - 1)]
        yield from (If(conditions=tuple(conditions), body=tuple(stores)),) if conditions else stores

    def _in_tile(self, point: tuple[int, ...]) -> Iterator[IntExpr]:
        """Yield the conditions that a point is none of the halo."""
        halo, tile = self._plan.halo, self._tile
        sizes = [(self._lane, tile.columns, self._width)]
        if self._chain.dims > 2:
            sizes.insert(0, (self._warp, tile.rows, tile.warps * tile.rows))
        beside = halo[1:] if len(halo) > 1 else halo
        for (name, each, size), place, (front, back) in zip(sizes, point, beside, strict=True):
            here = Name(name) * each + place
            yield Constant(front) <= here
            yield here < size - back


def _flat(tests: Iterable[IntExpr]) -> IntExprs:
    found: list[IntExpr] = []
    for one in tests:
        match one:
            case Apply(Operator.AND, operands):
                found += operands
            case _:
                found.append(one)
    return tuple(found)

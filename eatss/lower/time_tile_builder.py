"""The text of a time tile as nodes: what a thread does with the rows of its tile.

A thread has points: neighbouring columns of a row, of several lines in three dimensions. Of each
version its registers have a window of rows, whose slots are known when the loop over rows is
unrolled. Cells of other lanes come by shuffles, those of other warps from shared memory, where each
warp leaves the lines at its edges.

Rows are there twice: where every step writes all of their cells, without any test of them, and at
edges.

    for (rows = row_from - 4; …; rows += 3)
        if (3 <= rows && …) { three rows } else { three rows, each cell with tests }

A quotient by a literal clears a flag where it is not exact (``eatss_quotient``). Then all of a tile
is computed again, by divisions.

    bool exact = true;
    …
    const bool exact_in_all = __syncthreads_and(exact);
    if (exact_in_all == 0) { rows, each cell with tests }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce

import islpy as isl

from eatss.analysis.layout import TimeTile
from eatss.base.frozen import distinct
from eatss.base.targets import CUDA
from eatss.lower.arrays import affine_text, condition_of, subscripts_of
from eatss.lower.instructions import OF_LANE
from eatss.lower.kernel.barriers import arguments_of
from eatss.lower.kernel.nodes import (
    Agreed,
    Aligned,
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
    filled,
)
from eatss.lower.kernel.nodes import Source as SourceLine
from eatss.lower.kernel.uses import affine_values, without_unused
from eatss.lower.lanes import digits
from eatss.lower.pieces import NameTable
from eatss.lower.references import KernelContext
from eatss.lower.transform.chain import synchronised
from eatss.plan.time_tiles import (
    Level,
    Source,
    TimeTilePlan,
    beside,
    place_of,
    points_of,
    stored_cells,
    vector_width,
)
from eatss.polyhedral.expression import ElementType, fused_quotient, preorder
from eatss.polyhedral.isl_names import (
    box_between,
    coalesced,
    dims_as_parameters,
    parameter_at_least,
    parameter_at_most,
    parameter_between,
)
from eatss.polyhedral.time_chains import CELL, TIME, CellUpdate, Field, TimeChain
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    floored,
    multiplied,
    names_in,
    select,
    substitute,
)
from eatss.program.expression import Environment, IntExprs, SizePairs
from eatss.program.linear import strict

_Point = tuple[int, ...]
"""A thread's cell of a row: its line, in three dimensions, and its column."""


class TileBuilder:
    """Builds one of the two kernels: the one into twins, or the one ``back``.

    Args:
        chain: the loop.
        plan: what a tile does with a row.
        tile: its sizes.
        context: what kernels of the region are made of.
        twins: memory for the fields that steps hand on.
        time: the host's counter of steps.
        last: its last value.
        back: which of the two it is.
    """

    def __init__(
        self,
        chain: TimeChain,
        plan: TimeTilePlan,
        tile: TimeTile,
        context: KernelContext,
        twins: Mapping[Field, Buffer],
        time: str,
        last: IntExpr,
        *,
        back: bool,
    ) -> None:
        self.chain, self.plan, self.tile, self.context = chain, plan, tile, context
        self.has_rows, self.has_lines = chain.dims > 1, chain.dims > 2
        self._twins, self._time, self.back = twins, time, back
        self.names = context.names.inner()
        self.first_step: IntExpr = Name(time) + (tile.depth if back else 0)
        self._last = last
        self.is_last = last - (4 * tile.depth - 1) < Name(time)  # no tile comes behind it
        self.lane, self.warp, self._first, self._end, self._row, self._turn, *places = (
            Name(self.names.fresh(one))
            for one in ("lane", "warp", "row_from", "row_end", "row", "turn", "line0", "column0")
        )
        self.row: IntExpr = self._row
        self.turn: IntExpr = self._turn
        self.whole = self.divides = False
        self.absent = set[int]()
        quotients = (
            fused_quotient(part) for one in chain.updates for part in preorder(one.statement.value)
        )
        self.flag = self.names.fresh("exact") if any(quotients) else ""
        self._aligned: dict[Buffer, Aligned] = {}
        self._origins = places if self.has_lines else places[-1:]
        corners = (Name(self.names.fresh(one)) for one in ("line_from", "column_from"))
        self._corners = [*corners][-len(self._origins) :]
        self._lines = (int(tile.rows),) if self.has_lines else ()
        self.windows = {
            number: self.registers(
                self.names, f"{context.arrays[one.field.array].name}_{number}", one.field, one.slots
            )
            for number, one in enumerate(plan.versions)
            if one.halo is not None
        }
        self._next = {
            at: self.registers(
                self.names,
                f"{self.windows[at].name}_next",
                plan.versions[at].field,
                tile.prefetch,
            )
            for at in plan.loaded
        }
        self.edges = {
            number: Buffer.of(
                "shared",
                self.names.fresh(f"{self.windows[number].name}_edge"),
                self.windows[number].element_type,
                one.shared_slots,
                tile.warps * self._edge_lines(number),
                tile.columns,
                CUDA.lanes,
            )
            for number, one in enumerate(plan.versions)
            if one.shared_slots
        }
        self._conditions: dict[str, IntExpr] = {}

    # -- buffers and places ----------------------------------------------------------------

    def registers(self, names: NameTable, wish: str, own: Field, *slots: int) -> Buffer:
        """Return registers for a thread's cells of a row of a field, or of several rows."""
        shape = (*slots, *self._lines, self.tile.columns)
        return Buffer.of("register", names.fresh(wish), self.context.scop.types[own.array], *shape)

    @property
    def points(self) -> Iterator[_Point]:
        """The cells of a row that a thread has."""
        return points_of(self.chain.dims, int(self.tile.rows), int(self.tile.columns))

    def cell(self, row: IntExpr, point: _Point) -> IntExprs:
        """Return the place of a thread's point in a row."""
        places = (own + place for own, place in zip(self._origins, point, strict=True))
        return (row, *places) if self.has_rows else tuple(places)

    def register(self, version: int, age: int, point: _Point) -> Element:
        """Return the register of a point of the row that came ``age`` turns ago."""
        slots = self.plan.versions[version].slots
        slot = Constant(0) if slots == 1 else (self.turn + (slots - age) % slots) % slots
        return self.windows[version].at(slot, *map(Constant, point))

    def at(self, own: Field, cell: IntExprs) -> Element:
        """Return a cell of a field in the array of the caller."""
        turn = (self.first_step + own.turn) % self.chain.period
        plane = tuple(turn if one is None else Constant(one) for one in own.plane)
        return self.context.arrays[own.array].element((*plane, *cell))

    def memory(self, own: Field, cell: IntExprs, *, twin: bool) -> Element:
        """Return a cell of a field that steps hand on: in its array, or in its twin."""
        return self._twins[own].at(*cell) if twin else self.at(own, cell)

    def extents(self, own: Field) -> IntExprs:
        """Return how many cells a field has along each dimension."""
        return self.context.arrays[own.array].shape[-self.chain.dims :]

    def inside(self, own: Field, cell: IntExprs) -> IntExpr:
        """Return the condition that a cell is one of a field."""
        bounds = zip(cell, self.extents(own), strict=True)
        return _all(t for at, end in bounds for t in (Constant(0) <= at, strict(at <= end - 1)))

    def writes(self, update: CellUpdate, values: Environment) -> IntExpr:
        """Return the condition that an update writes a cell at a step."""
        name = update.statement.name
        if name not in self._conditions:
            params = dims_as_parameters(update.cells, (TIME, *CELL[-self.chain.dims :]))
            self._conditions[name] = condition_of(coalesced(params), self._known())
        return strict(substitute(self._conditions[name], values))

    # -- the kernel ------------------------------------------------------------------------

    @cached_property
    def _all_extents(self) -> IntExprs:
        """How many cells there are along each dimension, of the largest field that is stored."""
        kept = [self.plan.versions[one].field for one in (*self.plan.stored, *self.plan.left)]
        found = map(distinct, zip(*map(self.extents, kept), strict=True))
        return tuple(o[0] if len(o) == 1 else Apply(Operator.MAX, o) for o in found)

    @property
    def _stored(self) -> Iterable[tuple[IntExpr, int]]:
        """How many cells there are along each dimension, and how many of a tile are stored."""
        return zip(self._all_extents, stored_cells(self.plan, self.tile), strict=True)

    @property
    def _counts(self) -> list[IntExpr]:
        """How many tiles there are along each dimension."""
        return [floored(extent + (cells - 1), cells) for extent, cells in self._stored]

    @property
    def blocks(self) -> IntExpr:
        """Blocks of a launch."""
        return reduce(multiplied, self._counts)

    @property
    def parameter_tiles(self) -> SizePairs:
        """Cells of a tile along what sizes bound, and steps of two launches."""
        found = dict[str, int]()
        for extent, tile in (*self._stored, (self._last, 2 * self.tile.depth)):
            found |= {name: max(tile, found.get(name, 0)) for name in names_in(extent)}
        return tuple(found.items())

    def kernel(self, name: str) -> Kernel:
        """Return the kernel.

        Raises:
            InternalError: ``EATSS-K901``, it is not well formed, or threads may meet.
        """
        front, body = tuple(self._where()), self._body()
        nodes = without_unused((*front, *self._aligned.values(), *body))
        arrays = (*(one.buffer for one in self.context.arrays.values()), *self._twins.values())
        kernel = Kernel(
            name=name,
            threads=CUDA.lanes * self.tile.warps,
            arguments=arguments_of(nodes, (*self.context.parameters, self._time), arrays),
            shared=tuple(self.edges.values()),
            static_shared_bytes=self.context.static_shared_bytes,
            index_bits=self.context.index_bits,
            body=nodes,
        )
        return synchronised(kernel, self.context.macros)

    def _where(self) -> Iterator[Let]:
        """Yield where a thread is: its lane and warp, the rows of its tile, its first cell."""
        number = self.names.fresh("block")
        yield Let(name=number, value=Name(f"{CUDA.block}x"))
        yield Let(name=self.lane.name, value=Name(f"{CUDA.thread}x"), narrow=True)
        yield Let(name=self.warp.name, value=Name(f"{CUDA.thread}y"), narrow=True)
        places = digits(Name(number), self._counts)
        kept, halo = stored_cells(self.plan, self.tile), beside(self.plan, self.tile)
        if self.has_rows:
            yield Let(name=self._first.name, value=places[0] * kept[0])
            ends = (self._first + kept[0], self._all_extents[0])
            yield Let(name=self._end.name, value=Apply(Operator.MIN, ends))
        own = (self.warp * self.tile.rows, self.lane * self.tile.columns)[-len(self._origins) :]
        for at, (corner, origin, part) in enumerate(
            zip(self._corners, self._origins, own, strict=True), len(places) - len(own)
        ):
            yield Let(name=corner.name, value=places[at] * kept[at] - halo[at][0])
            yield Let(name=origin.name, value=corner + part)

    def _body(self) -> Nodes:
        """Return all that is done with rows, and that again where a quotient is not exact."""
        rows, done = self._every_row(divides=False), Name(self.names.fresh("exact_in_all"))
        if not self.flag:
            return rows
        return (
            Flag(name=self.flag),
            *rows,
            Agreed(name=done.name, flag=self.flag),
            If(conditions=(equals(done, 0),), body=self._every_row(divides=True)),
        )

    def _every_row(self, *, divides: bool) -> Nodes:
        self.divides = divides
        declared = (Declare(buffer=one) for one in (*self.windows.values(), *self._next.values()))
        return (*declared, *self._filled(), *self._rows())

    def _ways(self, rows: Callable[[], Nodes], first: IntExpr, count: int) -> Nodes:
        """Return what is done with rows with tests of cells, or without where that is the same.

        Args:
            rows: what is done.
            first: the first row whose cells are mentioned.
            count: how many there are.
        """
        with_tests, test = rows(), Constant(0) if self.divides else self._all_written(first, count)
        if test == Constant(0):
            return with_tests
        self.whole = True
        without_tests = rows()
        self.whole = False
        return (If(conditions=(test,), body=without_tests, orelse=with_tests),)

    def _all_written(self, first: IntExpr, count: int) -> IntExpr:
        """Return the condition that every step writes all of a thread block's cells in some rows.

        Updates that write at edges only are to write none of them (``absent``).
        """
        tile = self.tile
        across = (tile.warps * tile.rows, CUDA.lanes * tile.columns)[-len(self._corners) :]
        cells = [*zip(self._corners, across, strict=True)]
        along = [(self.first_step, tile.depth), *[(first, count)] * self.has_rows, *cells]
        names = [(f"from{at}", f"to{at}") for at, _ in enumerate(along)]
        box = box_between(self.chain.updates[0].cells, names, [size for _, size in along])
        known = box.params().intersect(parameter_at_least("from0", self.chain.first))
        known = known.intersect(parameter_at_most("to0", self.chain.last))
        found = known
        for number, update in enumerate(self.chain.updates):
            everywhere = known.subtract(box.subtract(update.cells).params())
            if everywhere.is_empty():
                self.absent.add(number)
                everywhere = known.subtract(box.intersect(update.cells).params())
            found = found.intersect(everywhere)
        if any(one.before is None and one.update in self.absent for one in self.plan.levels):
            return Constant(0)
        # what no update writes everywhere may have fewer cells
        updates = [one for k, one in enumerate(self.chain.updates) if k not in self.absent]
        moved = (*self.plan.loaded, *self.plan.stored, *self.plan.left)
        arrays = {self.plan.versions[number].field.array for number in moved}
        if not arrays <= {one.target.array for one in updates}:
            return Constant(0)
        values: dict[str, IntExpr] = {}
        for (begin, end), (at, size) in zip(names, along, strict=True):
            values |= {begin: at, end: at + (size - 1)}
        return strict(substitute(condition_of(coalesced(found), known), values))

    def _known(self) -> isl.Set:
        """Return what is known of a step, as a parameter."""
        known = isl.Set.universe(self.context.scop.context.get_space())
        return known.intersect(parameter_between(TIME, self.chain.first, self.chain.last))

    def _filled(self) -> Iterator[Node]:
        """Yield what gives windows values, which rows before the first ones are taken to have."""
        for buffer in self.windows.values():
            names = self.names.inner()
            counters = [names.fresh(f"n{k}") for k in range(len(buffer.layout.extents))]
            yield filled(buffer, counters, 1)

    # -- rows ------------------------------------------------------------------------------

    def rows_of_tile(self, row: IntExpr) -> list[IntExpr]:
        """Return the conditions that a row is stored by this tile."""
        return [self._first <= row, strict(row <= self._end - 1)]

    def _rows(self) -> Nodes:
        """Return the loop over rows, or what is done with the only one."""
        plan, ahead = self.plan, int(self.tile.prefetch)
        if not self.has_rows:
            self.turn = self.row = zero = Constant(0)
            return self._ways(
                lambda: (*self._fetched(zero, zero), *self._taken(), *self._levels()), zero, 1
            )
        base, first = self.names.fresh("rows"), self._first - plan.ahead

        def turns() -> Nodes:
            inside: Nodes = (
                Let(name=self._row.name, value=Name(base) + self.turn),
                *(
                    node
                    for one in plan.loaded
                    for node in (
                        *self._taken(one), *self._fetched(self.row + ahead, self._slot, one)
                    )
                ),
                *self._levels(),
                *self._left_at_edges(),
            )  # fmt: skip
            return (counted(self._turn.name, plan.unroll, inside),)

        lags = max(one.lag for one in plan.versions)
        loop = For(
            counter=base,
            lower=first,
            condition=strict(Name(base) <= self._end + (plan.behind - 1)),
            step=Constant(plan.unroll),
            body=self._ways(turns, Name(base) - lags, lags + plan.unroll + ahead),
            unroll=1,
        )
        begin = [node for at in range(ahead) for node in self._fetched(first + at, Constant(at))]
        return (*begin, *self._edges_filled(), loop)

    @property
    def _slot(self) -> IntExpr:
        """Which of the rows on their way comes now."""
        ahead = int(self.tile.prefetch)
        return Constant(0) if ahead == 1 else self.turn % ahead

    def _fetched(self, row: IntExpr, slot: IntExpr, *versions: int) -> Iterator[Node]:
        """Yield the loads of what comes when ``row`` is the newest."""
        for version in versions or self.plan.loaded:
            own = self.plan.versions[version]
            cells = {point: self.cell(row - own.lag, point) for point in self.points}
            loads = (
                Copy(
                    target=self._next[version].at(slot, *map(Constant, point)),
                    source=self.memory(own.field, cell, twin=self.back),
                    condition=None if self.whole else self.inside(own.field, cell),
                    clears=not self.whole,
                )
                for point, cell in cells.items()
            )
            yield from self.in_vectors([*loads])

    def in_vectors(self, copies: Sequence[Copy]) -> Nodes:
        """Return copies of all points, of whole tiles in vectors where memory is aligned so."""
        one = copies[0]
        memory = next(e.buffer for e in (one.target, one.source) if e.buffer.space == "global")
        width = int(vector_width(memory.element_type.size_bytes, self.tile.columns))
        known = [one.value for one in memory.layout.strides[:-1] if isinstance(one, Constant)]
        if not self.whole or width == 1 or any(one % width for one in known):
            return tuple(copies)
        if memory not in self._aligned:
            name = self.names.fresh(f"wide_{memory.name}")
            self._aligned[memory] = Aligned(name=name, buffer=memory, width=width)
        vectors = tuple(replace(copy, width=width) for copy in copies[::width])
        wide = Name(self._aligned[memory].name)
        return (If(conditions=(wide,), body=vectors, orelse=tuple(copies)),)

    def _taken(self, *versions: int) -> Iterator[Copy]:
        """Yield what takes the rows that were loaded into their windows."""
        for version in versions or self.plan.loaded:
            for point in self.points:
                own = self._next[version].at(self._slot, *map(Constant, point))
                yield Copy(target=self.register(version, 0, point), source=own)

    def _levels(self) -> Iterator[Scope]:
        for level in self.plan.levels:
            if level.version in self.windows:
                yield Scope(body=tuple(_LevelBuilder(self, level).nodes()))

    # -- edges of warps --------------------------------------------------------------------

    def _edge_lines(self, version: int) -> int:
        return int(self.plan.edge_lines(version, self.tile.rows))

    def edge(self, version: int, age: int, warp: IntExpr, line: int, places: IntExprs) -> Element:
        """Return what a warp left of a line of the row that came ``age`` turns ago."""
        lines, rows = self._edge_lines(version), self.tile.rows
        number = line if line < lines // 2 or lines == rows else line - (rows - lines)
        stages = self.plan.versions[version].shared_slots
        stage = (self.turn + (stages - age)) % stages
        return self.edges[version].at(stage, warp * lines + number, *places)

    def _left_at_edges(self) -> Iterator[For]:
        """Yield what leaves the newest rows' lines at the edges of warps in shared memory."""
        for version in self.edges:
            stage = self.turn % self.plan.versions[version].shared_slots
            yield self._edge_left(version, stage, self.register(version, 0, ()).subscripts)

    def _edges_filled(self) -> Iterator[For]:
        """Yield what gives the edges values that are there before any row is."""
        for version in self.edges:
            stage = Name(self.names.inner().fresh("stage"))
            filled = self._edge_left(version, stage, (Constant(0),))
            yield counted(stage.name, self.plan.versions[version].shared_slots, (filled,))

    def _edge_left(self, version: int, stage: IntExpr, slot: IntExprs) -> For:
        """Return what leaves lines of a row, which a window has in a slot, at the edges."""
        lines, rows, names = self._edge_lines(version), self.tile.rows, self.names.inner()
        number, column = Name(names.fresh("edge")), Name(names.fresh("column"))
        last = select(number < lines // 2, number, number + (rows - lines))
        line = number if lines == rows else last
        copy = Copy(
            target=self.edges[version].at(stage, self.warp * lines + number, column, self.lane),
            source=self.windows[version].at(*slot, line, column),
        )
        return counted(number.name, lines, (counted(column.name, self.tile.columns, (copy,)),))


class _LevelBuilder:
    """Builds what an update does with a row: cells of others, values, what is kept and stored."""

    def __init__(self, of: TileBuilder, level: Level) -> None:
        self._of, self._level, self._update = of, level, of.chain.updates[level.update]
        self._field = of.plan.versions[level.version].field
        self._names = of.names.inner()
        self._row = Name(self._names.fresh(f"row_{level.version}"))
        self._held: dict[object, Element] = {}
        self._others: list[Node] = []

    def nodes(self) -> Iterator[Node]:
        """Yield all of it."""
        of, level, statement = self._of, self._level, self._update.statement
        if of.has_rows:
            lag = of.plan.versions[level.version].lag
            yield Let(name=self._row.name, value=of.row - lag)
        yield SourceLine(line=statement.span.line, text=statement.text)
        if of.whole and level.update in of.absent:
            yield from map(self._still, of.points)
            yield from self._stores()
            return
        values = of.registers(self._names, f"value_{level.version}", self._field)
        yield Declare(buffer=values)
        quotients = any(map(fused_quotient, preorder(statement.value)))
        flag = of.flag if quotients and not of.divides else ""
        computes = [self._value(values, point, flag) for point in of.points]
        yield from self._others
        yield from computes
        for point in of.points:
            yield from self._kept(point, values.at(*map(Constant, point)))
        yield from self._stores()

    def _value(self, values: Buffer, point: _Point, flag: str) -> Compute:
        """Return what computes the value of a point; cells of others are noted."""
        of, statement = self._of, self._update.statement
        at = self._values(point)
        env = {name: affine_text(function, at) for name, function in self._update.counters}
        pairs = zip(statement.reads, self._level.sources, strict=True)
        reads = [
            self._far(access.array, subscripts_of(access, env), point)
            if source is None
            else self._near(source, point)
            for access, source in pairs
        ]
        return Compute(
            statement=statement,
            target=values.at(*map(Constant, point)),
            reads=(self._own(point), *reads),
            integers=tuple(affine_text(own.value, env) for own in affine_values(statement.value)),
            types=of.context.scop.types,
            flag=flag,
        )

    def _values(self, point: _Point) -> Environment:
        """Return the step and the cell of a point."""
        time, cell = self._of.first_step + self._level.step, self._of.cell(self._row, point)
        return {TIME: time, **dict(zip(CELL[-self._of.chain.dims :], cell, strict=True))}

    def _own(self, point: _Point) -> Element:
        """Return the register of a point of what the level makes."""
        return self._of.register(self._level.version, 0, point)

    def _writes(self, point: _Point) -> IntExpr:
        return self._of.writes(self._update, self._values(point))

    def _age(self, version: int, row: int) -> int:
        """Return how many turns ago the row came that is read of a version."""
        versions = self._of.plan.versions
        return versions[self._level.version].lag - versions[version].lag - row

    # -- operands --------------------------------------------------------------------------

    def _register(
        self, key: object, name: str, kind: ElementType, fill: Callable[[Element], Nodes]
    ) -> Element:
        """Return a register for what others have, which is filled once."""
        if key not in self._held:
            buffer = Buffer.of("register", self._names.fresh(name), kind)
            own = self._held[key] = buffer.at()
            self._others += [Declare(buffer=buffer), *fill(own)]
        return self._held[key]

    def _far(self, array: str, subscripts: IntExprs, point: _Point) -> Element:
        """Return a scalar, or the register of an element that no step writes."""
        of = self._of
        own, whole = of.context.arrays[array], of.whole
        element = own.element(subscripts)

        def loaded(register: Element) -> Nodes:
            there = None if whole else self._writes(point)
            return (Copy(target=register, source=element, condition=there, clears=not whole),)

        if own.by_value:
            return element
        return self._register((element, point), f"{own.name}_r", own.array.element_type, loaded)

    def _near(self, source: Source, point: _Point) -> Element:
        """Return the register of a cell beside a point, which other lanes or warps may have."""
        of, version = self._of, source.version
        window = of.windows[version]
        row = source.offset[0] if of.has_rows else 0
        age = self._age(version, row)
        place = place_of(point, source, int(of.tile.rows), int(of.tile.columns))
        own = of.register(version, age, (*[place.line] * of.has_lines, place.column))

        def shuffled(register: Element) -> Nodes:
            return (Intrinsic.of(OF_LANE, register, own, delta=place.lanes),)

        def from_edge(register: Element) -> Nodes:
            warp, lane = of.warp + place.warps, of.lane + place.lanes
            tests = [Constant(0) <= warp, warp < of.tile.warps]
            tests += [Constant(0) <= lane, lane < CUDA.lanes] if place.lanes else []
            left = of.edge(version, age, warp, place.line, (Constant(place.column), lane))
            there = Apply(Operator.AND, tuple(tests))
            copy = Copy(target=register, source=left, condition=there)
            return Init(target=register, value=0), copy

        key, kind = (version, row, place), window.element_type
        if place.warps:
            return self._register(key, f"{of.edges[version].name}_r", kind, from_edge)
        if place.lanes:
            return self._register(key, f"{window.name}_of_lane", kind, shuffled)
        return own

    # -- results ---------------------------------------------------------------------------

    def _kept(self, point: _Point, value: Element) -> Iterator[Copy]:
        """Yield what makes a cell its new value where the level writes it, else what it was."""
        of, before = self._of, self._level.before
        target = self._own(point)
        if of.whole:
            yield Copy(target=target, source=value)
            return
        writes = self._writes(point)
        if before is None:
            cell = of.cell(self._row, point)
            beside = Apply(Operator.AND, (equals(writes, 0), of.inside(self._field, cell)))
            yield Copy(target=target, source=value)
            yield Copy(target=target, source=of.at(self._field, cell), condition=beside)
            return
        yield self._still(point)
        yield Copy(target=target, source=value, condition=writes)

    def _still(self, point: _Point) -> Copy:
        """Return what leaves a cell as it was."""
        of, before = self._of, self._level.before
        assert before is not None
        target = self._own(point)
        return Copy(target=target, source=of.register(before, self._age(before, 0), point))

    def _stores(self) -> Iterator[Node]:
        """Yield the stores of a row of what is handed on, or left by the last tile."""
        of, version = self._of, self._level.version
        left = version in of.plan.left
        if version not in (*of.plan.stored, *(of.plan.left if of.back else ())):
            return
        groups: dict[IntExprs, list[Copy]] = {}
        for point in of.points:
            cell = of.cell(self._row, point)
            tests = [] if of.whole else [of.inside(self._field, cell)]
            tests += [self._writes(point)] if left and not of.whole else []
            store = Copy(
                target=of.memory(self._field, cell, twin=not (left or of.back)),
                source=self._own(point),
                condition=_all(tests) if tests else None,
            )
            groups.setdefault(tuple(self._in_tile(point)), []).append(store)
        where = [of.is_last] if left else []
        if of.has_rows:
            where += of.rows_of_tile(self._row)
        for inside, stores in groups.items():
            conditions = (*where, *inside)
            yield If(conditions=conditions, body=of.in_vectors(stores))

    def _in_tile(self, point: _Point) -> Iterator[IntExpr]:
        """Yield the conditions that a point is none of the halo, the same for all of a line."""
        of, tile = self._of, self._of.tile
        *around, last = beside(of.plan, tile)
        *line, _ = point
        cells = [(of.warp * tile.rows + place, tile.rows * tile.warps) for place in line]
        cells.append((of.lane * tile.columns, CUDA.lanes * tile.columns))
        for (cell, end), (front, back) in zip(cells, (*around[1:], last), strict=True):
            yield Constant(front) <= cell
            yield cell < end - back


def _all(tests: Iterable[IntExpr]) -> IntExpr:
    """Return the condition that all of some hold."""
    found: list[IntExpr] = []
    for one in tests:
        match one:
            case Apply(Operator.AND, operands):
                found += operands
            case _:
                found.append(one)
    return Apply(Operator.AND, tuple(found))

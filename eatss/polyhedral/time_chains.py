"""Loops over time whose steps update fields of cells at constant distances.

    for (t = 0; t < T; t++)
        for (i = 1; i < N - 1; i++)
            for (j = 1; j < N - 1; j++)
                A[(t + 1) % 2][i][j] = A[t % 2][i - 1][j] + A[t % 2][i][j + 1];

A *cell* is a point of the arrays' last dimensions. A *field* is what a step writes: an array, or
one of the ``period`` planes of an array whose first subscript is ``(t + c) % period``. A statement
updates its field at some cells, all at once, from fields at cells a constant distance away and from
what no step writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby

import islpy as isl

from eatss.base.frozen import Names, frozen
from eatss.polyhedral.isl_names import (
    OUT,
    PARAM,
    SET,
    among,
    big_value,
    constant_value,
    dim_names,
    dims_as_parameters,
    integer,
    map_between,
    output_affs,
    parameter_at_least,
    parameter_at_most,
    with_names,
)
from eatss.polyhedral.scop import Access, Dependences, Scop, Statement
from eatss.polyhedral.tree import follows

MOST_PERIOD = 4
"""Planes of an array that steps take turns at."""

CELL = ("cell_i", "cell_j", "cell_k")
"""Names of the dimensions of a cell, the last ones where there are fewer."""

TIME = "cell_t"


@frozen
class Field:
    """An array that steps write, or its plane ``(t + turn) % period``."""

    array: str
    plane: tuple[int | None, ...]
    turn: int


@frozen
class FieldAccess:
    """A field at a cell ``offset`` away from the one that is written.

    ``plane`` are the array's subscripts in front of the cell's; ``None`` is ``(t + turn) % period``
    at the step ``t``.
    """

    array: str
    plane: tuple[int | None, ...]
    turn: int
    offset: tuple[int, ...]

    def field(self, step: int, period: int) -> Field:
        """Return which field it is ``step`` steps later than where turns are counted from."""
        turn = (self.turn + step) % period if None in self.plane else 0
        return Field(array=self.array, plane=self.plane, turn=turn)


@frozen
class CellUpdate:
    """A statement of a step: at the step ``t`` it writes ``target`` at the ``cells``.

    ``cells`` are sets over cells whose parameters are sizes and the time. ``reads`` are those of
    the statement, ``None`` for what no step writes. ``counters`` are the statement's counters as
    functions of time and cell.
    """

    statement: Statement
    target: FieldAccess
    cells: isl.Set
    reads: tuple[FieldAccess | None, ...]
    counters: tuple[tuple[str, isl.PwAff], ...]


@frozen
class TimeChain:
    """The updates of a step, in their order, from the step ``first`` to ``last``.

    ``loop`` is the counter of steps. ``dims`` are the dimensions of a cell. All updates of an array
    in ``settled`` write the same cells at every step, so others keep what they had.
    """

    loop: str
    first: isl.PwAff
    last: isl.PwAff
    period: int
    dims: int
    settled: frozenset[str]
    updates: tuple[CellUpdate, ...]

    @property
    def statements(self) -> Names:
        """The statements of a step."""
        return tuple(one.statement.name for one in self.updates)


class _NoChainError(Exception):
    """A loop is no chain; the text says why."""


def time_chains(scop: Scop, dependences: Dependences) -> Iterator[TimeChain]:
    """Yield the loops over time of a region that are chains of updates."""
    nests = groupby(scop.statements, lambda one: _place(one.schedule) if one.loops else None)
    for place, statements in nests:
        if place is not None:
            try:
                yield _chain(scop, tuple(statements), dependences)
            except _NoChainError:
                continue


def _place(schedule: isl.Map) -> int | None:
    """Return the textual position of a statement's outermost loop."""
    return constant_value(output_affs(schedule)[0])


def _chain(scop: Scop, statements: Sequence[Statement], dependences: Dependences) -> TimeChain:
    loops = {one.loops[0] for one in statements}
    dims = max(len(one.loops) for one in statements) - 1
    written = {one.write.array for one in statements}
    if len(loops) > 1 or not 1 <= dims <= len(CELL):
        raise _NoChainError("steps are no loop over cells")
    arrays = [scop.array(name) for name in sorted(written)]
    if not all(one.element_type.is_floating and one.n_dims >= dims for one in arrays):
        raise _NoChainError("what is written has no cells of floating-point numbers")
    period = max(_period(access, dims) for one in statements for access in one.accesses
                 if access.array in written)  # fmt: skip
    steps = [
        one.domain.project_out(SET, 1, one.domain.dim(SET) - 1).reset_tuple_id()
        for one in statements
    ]
    times = reduce(isl.Set.union, steps).coalesce()
    if not all(times.intersect_params(one.params()).is_equal(one) for one in steps):
        raise _NoChainError("statements run in different steps")
    if period > 1 and times.dim_min_val(0).is_neg():
        raise _NoChainError("planes of an array have numbers from 0 on")
    first, last = times.dim_min(0).coalesce(), times.dim_max(0).coalesce()
    between = parameter_at_least(TIME, first).intersect(parameter_at_most(TIME, last))
    if not between.is_equal(dims_as_parameters(times, (TIME,))):
        raise _NoChainError("some steps between the first and the last are left out")
    _check_order(scop, statements, dependences)
    updates = _with_far_reads([_update(one, dims, period, written) for one in statements])
    return TimeChain(
        loop=next(iter(loops)),
        first=first,
        last=last,
        period=period,
        dims=dims,
        settled=frozenset(name for name in written if _is_settled(name, updates, times)),
        updates=updates,
    )


def _with_far_reads(updates: Sequence[CellUpdate]) -> tuple[CellUpdate, ...]:
    """Return updates whose reads of planes that no update writes are no fields."""
    fields = {(one.target.array, one.target.plane) for one in updates}
    turning = {name for name, plane in fields if None in plane}
    found = []
    for one in updates:
        known = [read for read in (one.target, *one.reads) if read is not None]
        if any(read.array in turning and None not in read.plane for read in known):
            raise _NoChainError("some planes of an array take turns and others do not")
        reads = (
            read if read is not None and (read.array, read.plane) in fields else None
            for read in one.reads
        )
        found.append(replace(one, reads=tuple(reads)))
    return tuple(found)


def _is_settled(array: str, updates: Sequence[CellUpdate], times: isl.Set) -> bool:
    """Tell whether all updates of an array write the same cells at every step."""
    own = [one.cells for one in updates if one.target.array == array]
    cells = own[0].project_out(SET, 0, 1)
    every = isl.Map.from_domain_and_range(times, cells).wrap().flatten()
    return all(every.is_equal(one.reset_tuple_id()) for one in own)


def _check_order(scop: Scop, statements: Sequence[Statement], dependences: Dependences) -> None:
    """Refuse statements that need more than what statements before them, or steps before, wrote."""
    time, here = scop.no_relation, scop.no_points
    for number, one in enumerate(statements):
        own = one.name, one.loops
        places = map_between(one.domain, own, ("step", [one.loops[0], str(number)]))
        time = time.union(places.to_union_map())
        here = here.union(one.domain)
    inside = among(dependences.needed, here)
    function = isl.MultiUnionPwAff.from_union_map(time.intersect_domain(here))
    if not follows(inside, function):
        raise _NoChainError("cells of one step need one another")


def _period(access: Access, dims: int) -> int:
    """Return after how many steps an access comes back to the same plane of its array."""
    leading = output_affs(access.relation)[:-dims]
    return max([_turn(access, function)[1] for function in leading], default=1)


def _turn(access: Access, function: isl.PwAff) -> tuple[int, int]:
    """Return ``c`` and ``period`` of ``(t + c) % period``; a constant has the period 1."""
    own = constant_value(function)
    if own is not None:
        return own, 1
    domain = access.relation.domain()
    for period in range(2, MOST_PERIOD + 1):
        for turn in range(period):
            expected = plane_at(domain, turn, period)
            if function.ne_set(expected).intersect(domain).is_empty():
                return turn, period
    raise _NoChainError("planes of an array do not take turns")


def plane_at(domain: isl.Set, turn: int, period: int, name: str = "") -> isl.PwAff:
    """Return ``(t + turn) % period`` on instances, ``t`` their first counter or a parameter."""
    space = isl.LocalSpace.from_space(domain.get_space())
    kind, at = (PARAM, domain.find_dim_by_name(PARAM, name)) if name else (SET, 0)
    time = isl.Aff.var_on_domain(space, kind, at)
    time = time.add_constant_val(big_value(domain.get_ctx(), turn))
    return isl.PwAff.from_aff(time.mod_val(big_value(domain.get_ctx(), period)))


def _update(statement: Statement, dims: int, period: int, written: set[str]) -> CellUpdate:
    names = CELL[-dims:]
    domain = statement.domain
    point = statement.name, statement.loops
    time = map_between(domain, point, ("", statement.loops[:1])).intersect_domain(domain)

    def cells_of(access: Access) -> isl.Map:
        relation = access.relation.intersect_domain(domain)
        return relation.project_out(OUT, 0, relation.dim(OUT) - dims).reset_tuple_id(OUT)

    here = cells_of(statement.write)
    at = with_names(time.flat_range_product(here), OUT, (TIME, *names))  # S[t, i] -> [t, cell]
    if not at.is_injective():
        raise _NoChainError("a step writes a cell twice")
    back = at.reverse()
    inverse = isl.PwMultiAff.from_map(back).gist(back.domain())
    reads: list[FieldAccess | None] = []
    for access in statement.reads:
        own = access.array in written
        reads.append(_access(access, cells_of(access), here, period) if own else None)
    counters = tuple((name, inverse.get_pw_aff(k)) for k, name in enumerate(dim_names(domain)))
    return CellUpdate(
        statement=statement,
        target=_access(statement.write, here, here, period),
        cells=at.range(),
        reads=tuple(reads),
        counters=counters,
    )


def _access(access: Access, cells: isl.Map, written: isl.Map, period: int) -> FieldAccess:
    """Return the field of an access to ``cells`` in the places of those that are ``written``."""
    leading = output_affs(access.relation)[: -cells.dim(OUT)]
    turns = [_turn(access, function) for function in leading]
    several = [turn for turn, own in turns if own > 1]
    if len(several) > 1 or any(own not in (1, period) for _, own in turns):
        raise _NoChainError("planes of an array do not take turns")
    distances = written.reverse().apply_range(cells).deltas()
    offset = tuple(_only_value(distances, k) for k in range(distances.dim(SET)))
    plane = tuple(turn if own == 1 else None for turn, own in turns)
    return FieldAccess(array=access.array, plane=plane, turn=sum(several), offset=offset)


def _only_value(points: isl.Set, position: int) -> int:
    low, high = points.dim_min_val(position), points.dim_max_val(position)
    if not low.is_int() or not low.eq(high):
        raise _NoChainError("a cell is read that is not at a constant distance")
    return integer(low)

"""Vectorised access to rows that threads keep in registers: 16 bytes at a time.

    for (rj = 0; rj < 16; ++rj) {
        const int j = j0 + tj + 256 * rj;
        if (j < M) Y[i][j] = X_k[rj] * g[j];
    }

becomes

    for (rj_vector = 0; rj_vector < 4; ++rj_vector)
        if (j0 + 4 * tj + 1024 * rj_vector + 3 < M)
            for (rj_at = 0; rj_at < 4; ++rj_at) {
                const int j = j0 + 4 * tj + 1024 * rj_vector + rj_at;
                Y[i][j] = X_k[4 * rj_vector + rj_at] * g[j];
            }
        else
            for (rj_at = 0; rj_at < 4; ++rj_at) {
                const int j = …;
                if (j < M) Y[i][j] = X_k[4 * rj_vector + rj_at] * g[j];
            }

in all phases, so that a thread has the same elements in each. Then rows of ``g`` are loaded, and
rows of ``Y`` stored, by :mod:`eatss.lower.transform.copy_ways`: a quarter of the instructions, and
as many requests to memory. What a row has besides whole vectors goes element by element.
"""

from __future__ import annotations

from dataclasses import replace

from eatss.base.frozen import Names, complete, frozen
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    For,
    If,
    Kernel,
    Let,
    Nodes,
    counted,
)
from eatss.lower.kernel.uses import every_of, mapped_of, substituted
from eatss.lower.mapping import MappedLoop
from eatss.lower.transform.copy_ways import at_worst, with_rows_in_registers
from eatss.lower.transform.point_groups import (
    asked_of_lanes,
    trips_of_points,
    values_at_points,
)
from eatss.program import Constant, IntExpr, Name, substitute
from eatss.program.expression import IntExprs
from eatss.program.linear import as_sum


@frozen
class RowVectors:
    """Loops whose iterations the lanes of a row share, in vectors of ``width`` elements.

    Of ``arrays`` threads load or store rows, not both, besides those that they keep.
    """

    lanes: tuple[MappedLoop, ...]
    width: int
    arrays: Names


def with_rows_in_vectors(
    kernel: Kernel, of: RowVectors, taken: set[str]
) -> tuple[Kernel, frozenset[Buffer]]:
    """Return a kernel whose threads have vectors of points, and the registers that are loaded so.

    It stays as it is where something besides the values of the loops depends on which points a
    thread has.

    Args:
        kernel: before barriers are put.
        of: the loops; threads have as many whole vectors of points of each.
        taken: names that are not free; those that come to be are added.
    """
    values: dict[Let, MappedLoop] = {}
    for loop in of.lanes:

        def threads(own: int, apart: int, loop: MappedLoop = loop) -> int:
            return loop.threads * ((own, apart) == (1, loop.threads))

        known = values_at_points(kernel, loop.thread, loop.point, threads, asked_of_lanes(loop))
        if known is None or not trips_of_points(kernel, loop.point) <= {loop.points}:
            return kernel, frozenset()
        values |= dict.fromkeys(known, loop)
    own_points = {loop.point: loop for loop in of.lanes}
    loops = {point: _Grouped(loop, of.width, taken) for point, loop in own_points.items()}
    changed = replace(
        kernel,
        body=mapped_of(
            kernel.body,
            For,
            lambda one: loops[one.counter].groups(one, values) if one.counter in loops else one,
        ),
    )
    rows = frozenset[Buffer]()
    for own in loops.values():
        changed, loaded = with_rows_in_registers(changed, own.at, of.arrays, taken)
        rows |= loaded
    copies = every_of(changed.body, Copy)
    kept = (one.target.buffer for one in copies if one.source.buffer.space == "global")
    return changed, rows | {one for one in kept if one.space == "register"}


class _Grouped:
    """A loop of lanes, with a counter of vectors and one of what is ``at`` a place of one."""

    def __init__(self, loop: MappedLoop, width: int, taken: set[str]) -> None:
        self.loop, self.width = loop, width
        self.vector = free_name(f"{loop.point}_vector", taken)
        self.at = free_name(f"{loop.point}_at", taken)

    def groups(self, loop: For, values: dict[Let, MappedLoop]) -> For:
        """Return a loop over points as one over vectors."""
        own, width = self.loop, self.width
        point = width * Name(self.vector) + Name(self.at)
        places = {own.thread: width * Name(own.thread), loop.counter: Constant(0)}
        vectors = width * own.threads * Name(self.vector)

        def value(one: Let) -> Let:
            if one not in values:
                return one
            first = substitute(one.value, places)
            return replace(one, value=as_sum(first + vectors + Name(self.at)))

        body = substituted(mapped_of(loop.body, Let, value), {loop.counter: point})
        vector = counted(self.vector, own.points // width, self._of_vector(body))
        return replace(vector, unroll=loop.unroll)

    def _of_vector(self, body: Nodes) -> Nodes:
        """Return what is done for a vector: with no test of its elements where all are there."""
        each = self._each(body)
        match body:
            case (Let() as own, If(orelse=()) as test):
                first, last = (self._at(own.value, place) for place in (0, self.width - 1))
                tests: IntExprs | None = complete(
                    at_worst(one, each[0], own.name, first, last) for one in test.conditions
                )
                if tests is not None:
                    whole = self._each((own, *test.body))
                    rest = tuple(replace(one, unroll=self.width) for one in each)  # no vectors
                    return (If(conditions=tests, body=whole, orelse=rest),)
        return each

    def _at(self, value: IntExpr, place: int) -> IntExpr:
        return substitute(value, {self.at: Constant(place)})

    def _each(self, body: Nodes) -> tuple[For, ...]:
        """Return a loop over the places of a vector; what is stored of registers has its own."""
        stores = [one for one in body if isinstance(one, Copy) and _is_store(one)]
        lets = tuple(one for one in body if isinstance(one, Let))
        rest = tuple(one for one in body if one not in stores)
        parts: list[Nodes] = [rest] if len(rest) > len(lets) else []
        parts += [(*lets, one) for one in stores]
        return tuple(counted(self.at, self.width, one) for one in parts)


def _is_store(one: Copy) -> bool:
    return (one.source.buffer.space, one.target.buffer.space) == ("register", "global")

"""What a region has to do at least: floating-point operations, and bytes read and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

import islpy as isl

from eatss.analysis.counts.count import Count, UncountableError, count_points
from eatss.analysis.counts.operations import KINDS, operations_of
from eatss.base.diagnostics import InputError
from eatss.polyhedral import Dependences
from eatss.polyhedral.dependences import bounded_work, first_equal, flow_by_read
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import Access, Scop
from eatss.program import IntExpr, OperationCount, Work

MAX_OPERATIONS = 600_000
"""Bound on isl's work for operations, for bytes read and for bytes written."""

_Result = TypeVar("_Result")


def work_of(scop: Scop, dependences: Dependences, outside: Collection[str]) -> Work:
    """Count what a region does at least, exactly and for all sizes.

    Args:
        scop: the region.
        dependences: its dependences.
        outside: names of the arrays and cells that outlive the region. Scalars passed by value
            and arrays local to the region move no bytes.

    Returns:
        The counts; what has no closed form is ``None``, with a note.
    """
    notes: list[str] = []

    def attempt(what: str, compute: Callable[[], _Result]) -> _Result | None:
        try:
            with bounded_work(scop, MAX_OPERATIONS):
                return compute()
        except UncountableError as error:
            reason = str(error)
        except (InputError, isl.Error):
            reason = "isl gave up on it"
        notes.append(f"{what}: no closed form was found, {reason}")
        return None

    operations = attempt("operations", lambda: _operations(scop, notes))
    read = attempt("bytes read", lambda: _bytes(scop, live_in(scop, dependences, outside)))
    written = attempt("bytes written", lambda: _bytes(scop, written_elements(scop, outside)))
    return Work(operations=operations, read_bytes=read, written_bytes=written, notes=tuple(notes))


def _operations(scop: Scop, notes: list[str]) -> tuple[OperationCount, ...]:
    """Return how often each kind of operation runs; kinds that never run miss."""
    types = {array.name: array.element_type for array in scop.arrays}
    counter = _Counter()
    totals: dict[str, Count] = {}
    for statement in scop.statements:
        found = operations_of(statement, types)
        notes.extend(f"{statement.name}: {note}" for note in found.notes)
        if not found.counts:
            continue
        instances = counter.count(statement.domain)
        for kind, factor in found.counts.items():
            totals[kind] = totals.get(kind, Count()).plus(instances, factor)
    return tuple(
        OperationCount(kind=kind, count=totals[kind].expression())
        for kind in KINDS
        if kind in totals
    )


def _bytes(scop: Scop, elements: Iterable[isl.Set]) -> IntExpr:
    """Return the size of sets of elements, one for each array."""
    counter = _Counter()
    total = Count()
    for part in elements:
        size = scop.array(part.get_tuple_name()).element_type.size_bytes
        total = total.plus(counter.count(part), size)
    return total.expression()


class _Counter:
    """Counts sets, each shape once: statements of one nest have the same domain."""

    def __init__(self) -> None:
        self._known: list[tuple[isl.Set, Count]] = []

    def count(self, points: isl.Set) -> Count:
        shape = points.reset_tuple_id() if points.has_tuple_id() else points
        for other, known in self._known:
            if other.plain_is_equal(shape):
                return known
        found = count_points(shape)
        self._known.append((shape, found))
        return found


def written_elements(scop: Scop, outside: Collection[str]) -> tuple[isl.Set, ...]:
    """Return the elements a region writes, one set for each array of ``outside``."""
    writes = ((s.write, s.domain) for s in scop.statements)
    return _elements(writes, outside)


def live_in(scop: Scop, dependences: Dependences, outside: Collection[str]) -> tuple[isl.Set, ...]:
    """Return the elements whose value from before the region is read, one set an array.

    By dataflow: an instance's read counts where no write of the region comes before it. Arrays
    outside ``outside`` are left out.
    """
    return _elements(_live_in_reads(scop, dependences), outside)


def _live_in_reads(scop: Scop, dependences: Dependences) -> Iterator[tuple[Access, isl.Set]]:
    """Yield every read with the instances for which its value is from before the region."""
    flow = flow_by_read(scop, dependences.tagged_flow)
    for statement in scop.statements:
        firsts = first_equal(statement.accesses)
        for position, access in enumerate(statement.accesses):
            if access.is_write or firsts[position] != position:
                continue
            fed = flow.get((statement.name, position))
            instances = statement.domain
            if fed is not None and not fed.is_empty():
                instances = instances.subtract(fed.range().extract_set(instances.get_space()))
            yield access, instances


def _elements(
    accesses: Iterable[tuple[Access, isl.Set]], outside: Collection[str]
) -> tuple[isl.Set, ...]:
    """Return what accesses touch in some instances, one set for each array."""
    found: dict[str, isl.Set] = {}
    for access, instances in accesses:
        if access.array in outside:
            touched = access.relation.intersect_domain(instances).range()
            before = found.get(access.array)
            found[access.array] = touched if before is None else before.union(touched)
    return tuple(coalesced(elements) for elements in found.values())

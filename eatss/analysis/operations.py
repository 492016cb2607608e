"""Floating-point operations of statements by kind, and what a region has to do at least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import islpy as isl

from eatss.analysis.count import Count, UncountableError, count_points
from eatss.base.diagnostics import InputError
from eatss.polyhedral import Dependences
from eatss.polyhedral.dependences import bounded_work, first_equal, flow_by_read
from eatss.polyhedral.expression import (
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
)
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.program import IntExpr, OperationCount, Work

Along = tuple[str, frozenset[str]]
"""A kind of operation, and the loops that its value moves along."""

KINDS = ("add", "multiply", "divide", "square root", "compare", "function")
"""Kinds of operations in the order of plans; ``add`` also subtracts."""

_ARITHMETIC = {"+": "add", "-": "add", "*": "multiply", "/": "divide"}
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGICAL = frozenset({"&&", "||"})
_SIGN_BIT = frozenset({"fabs", "copysign"})
_ON_ANY = frozenset({"abs", "labs", "llabs", "min", "max", "floord", "ceild"})
_OF_FUNCTION: Mapping[str, tuple[str, ...]] = {
    "sqrt": ("square root",),
    "fmin": ("compare",),
    "fmax": ("compare",),
    "fma": ("multiply", "add"),
}

UNEVEN_ARMS = "of the two values of '?:' the one with fewer operations is counted"
SHORT_CIRCUIT = "of '&&' and '||' only the left side, which always runs, is counted"


@dataclass(frozen=True, slots=True)
class Operations:
    """How often each kind occurs, and in sentences what was left out.

    ``counts`` are by kind. ``along`` counts them by kind and by the loops that their value moves
    along. ``integer_products`` are beside them: they are no floating-point operations.
    """

    counts: Mapping[str, int]
    along: Mapping[Along, int]
    notes: tuple[str, ...]
    integer_products: int


def operations_of(
    statement: Statement,
    types: Mapping[str, ElementType],
    moving: Sequence[frozenset[str]] | None = None,
) -> Operations:
    """Count the floating-point operations of one instance of a statement.

    Counted is what always runs: of ``?:`` the condition and the value with fewer operations,
    of ``&&`` and ``||`` the left side. Signs (``-x``, ``fabs``, ``copysign``), conversions and
    everything on integers count nothing; minima, maxima and relations of floating-point
    values are a ``compare``, ``fma`` is a ``multiply`` and an ``add``; any other call is one
    ``function``, whatever it takes inside. Equal parts of a value count once where a statement
    computes anew what it reads in the source: generated code computes them once.

    Args:
        statement: the statement.
        types: element types of arrays by name.
        moving: the loops that each access moves along; without them no loops are told apart. A
            value of counters moves along all of these.
    """
    visitor = _Visitor(statement, types, moving or [frozenset()] * len(statement.accesses))
    along, _, _ = visitor.visit(statement.value)
    counts = _by_kind(along)
    found = {kind: counts[kind] for kind in KINDS if counts[kind]}
    notes = tuple(dict.fromkeys(visitor.notes))
    return Operations(found, +along, notes, visitor.integer_products)


_Found = tuple[Counter[Along], bool, frozenset[str]]
"""Operations of an expression, whether its value is of a floating-point type, and its loops."""


class _Visitor:
    def __init__(
        self,
        statement: Statement,
        types: Mapping[str, ElementType],
        moving: Sequence[frozenset[str]],
    ) -> None:
        self._statement = statement
        self._types = types
        self._moving = moving
        self._all = frozenset[str]().union(*moving)
        self._known: dict[Expression, tuple[bool, frozenset[str]]] = {}
        self.notes: list[str] = []
        self.integer_products = 0

    def visit(self, node: Expression) -> _Found:
        if not self._statement.recomputed:
            return self._visit(node)
        if node in self._known:
            return Counter(), *self._known[node]
        found = self._visit(node)
        self._known[node] = found[1:]
        return found

    def _visit(self, node: Expression) -> _Found:  # noqa: PLR0911 - a table
        match node:
            case Literal():
                return Counter(), node.element_type.is_floating, frozenset()
            case Read(access=access):
                array = self._statement.accesses[access].array
                return Counter(), self._types[array].is_floating, self._moving[access]
            case AffineValue():
                return Counter(), False, self._all
            case Cast(operand=operand):
                counts, _, loops = self.visit(operand)
                return counts, node.element_type.is_floating, loops
            case Unary(operand=operand, operator=operator):
                counts, floating, loops = self.visit(operand)
                return counts, floating and operator in "+-", loops
            case Binary():
                return self._binary(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)

    def _binary(self, node: Binary) -> _Found:
        chain = [node]  # sums of thousands of terms nest to the left
        while isinstance(chain[-1].left, Binary):
            chain.append(chain[-1].left)
        found = self.visit(chain[-1].left)
        for binary in reversed(chain):
            found = self._joined(binary.operator, found, self.visit(binary.right))
        return found

    def _joined(self, operator: str, left: _Found, right: _Found) -> _Found:
        loops = left[2] | right[2]
        if operator in _LOGICAL:
            if right[0]:
                self.notes.append(SHORT_CIRCUIT)
            return left[0], False, loops
        floating = left[1] or right[1]
        left[0].update(right[0])
        if floating:
            kind = "compare" if operator in _COMPARISONS else _ARITHMETIC[operator]
            left[0][kind, loops] += 1
        self.integer_products += operator == "*" and not floating
        return left[0], floating and operator not in _COMPARISONS, loops

    def _select(self, node: Select) -> _Found:
        condition, _, of_condition = self.visit(node.condition)
        yes, yes_floating, of_yes = self.visit(node.if_true)
        no, no_floating, of_no = self.visit(node.if_false)
        if _by_kind(yes) != _by_kind(no):
            self.notes.append(UNEVEN_ARMS)
        fewer = min(yes, no, key=lambda counts: counts.total())
        return condition + fewer, yes_floating or no_floating, of_condition | of_yes | of_no

    def _call(self, node: Call) -> _Found:
        found = [self.visit(argument) for argument in node.arguments]
        counts: Counter[Along] = sum((part for part, _, _ in found), Counter())
        loops = frozenset[str]().union(*(own for _, _, own in found))
        if node.function in _ON_ANY:
            floating = any(floating for _, floating, _ in found)
            counts["compare", loops] += floating and node.function in ("min", "max")
            return +counts, floating, loops
        base = node.function.removesuffix("f")  # the one for float; erf is a function either way
        if base not in _SIGN_BIT:
            counts.update((kind, loops) for kind in _OF_FUNCTION.get(base, ("function",)))
        return counts, True, loops


def _by_kind(along: Counter[Along]) -> Counter[str]:
    """Return the counts of kinds, whatever loops their values move along."""
    counts: Counter[str] = Counter()
    for (kind, _), often in along.items():
        counts[kind] += often
    return counts


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

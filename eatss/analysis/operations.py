"""Floating-point operations of statements by kind, and what a region has to do at least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import islpy as isl

from eatss.analysis.count import Count, UncountableError, count_points
from eatss.base.diagnostics import InputError
from eatss.base.frozen import Names, distinct, frozen
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
    fused_quotient,
    label,
    operands,
    preorder,
)
from eatss.polyhedral.isl_names import coalesced
from eatss.polyhedral.scop import Access, Dependences, Scop, Statement
from eatss.program import IntExpr, OperationCount, Work

Along = tuple[str, frozenset[str]]
"""A kind of operation, and the loops that its value moves along."""

KINDS = ("add", "multiply", "divide", "quotient", "square root", "compare", "function")
"""Kinds of operations in the order of plans; ``add`` also subtracts. A ``quotient`` is a division
that generated code makes of a product and fused steps."""

_ARITHMETIC = {"+": "add", "-": "add", "*": "multiply", "/": "divide"}
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGICAL = frozenset({"&&", "||"})
_SIGN_BIT = frozenset({"fabs", "copysign"})
_ON_ANY = frozenset({"abs", "labs", "llabs", "min", "max", "floord", "ceild"})
_OF_FUNCTION: Mapping[str, Names] = {
    "sqrt": ("square root",),
    "fmin": ("compare",),
    "fmax": ("compare",),
    "fma": ("multiply", "add"),
}

UNEVEN_ARMS = "of the two values of '?:' the one with fewer operations is counted"
SHORT_CIRCUIT = "of '&&' and '||' only the left side, which always runs, is counted"


@frozen
class Operations:
    """How often each kind occurs, and in sentences what was left out.

    ``counts`` are by kind. ``along`` counts them by kind and by the loops that their value moves
    along. ``integer_products`` are beside them: they are no floating-point operations.
    """

    counts: Mapping[str, int]
    along: Mapping[Along, int]
    notes: Names
    integer_products: int


def operations_of(
    statement: Statement,
    types: Mapping[str, ElementType],
    moving: Sequence[frozenset[str]] | None = None,
    sizes: Collection[int] = (),
) -> Operations:
    """Count the floating-point operations of one instance of a statement.

    Counted is what always runs: of ``?:`` the condition and the value with fewer operations,
    of ``&&`` and ``||`` the left side. Signs (``-x``, ``fabs``, ``copysign``), conversions and
    everything on integers count nothing; minima, maxima and relations of floating-point
    values are a ``compare``, ``fma`` is a ``multiply`` and an ``add``; any other call is one
    ``function``, whatever it takes inside. Equal parts of a value count once where a statement
    computes anew what it reads in the source, which generated code computes once, and where loops
    are told apart: that is for code, of which compilers compute them once.

    Args:
        statement: the statement.
        types: element types of arrays by name.
        moving: the loops that each access moves along; without them no loops are told apart. A
            value of counters moves along all of these.
        sizes: numbers that are no literals in generated code, which is for any.
    """
    none = [frozenset[str]()] * len(statement.accesses)
    equal_once = bool(statement.recomputed) or moving is not None
    visitor = _Visitor(statement, types, moving or none, [*map(str, sizes)], equal_once)
    along, _, _ = visitor.visit(statement.value)
    counts = _by_kind(along)
    found = {kind: counts[kind] for kind in KINDS if counts[kind]}
    notes = distinct(visitor.notes)
    return Operations(
        counts=found, along=+along, notes=notes, integer_products=visitor.integer_products
    )


_Found = tuple[Counter[Along], bool, frozenset[str]]
"""Operations of an expression, whether its value is of a floating-point type, and its loops."""


@dataclass(slots=True)
class _Visitor:
    statement: Statement
    types: Mapping[str, ElementType]
    moving: Sequence[frozenset[str]]
    sizes: Sequence[str]
    equal_once: bool
    notes: list[str] = field(default_factory=list)
    integer_products: int = 0

    def visit(self, value: Expression) -> _Found:
        """Go through a value from left to right; sums of thousands of terms nest deeply."""
        known: dict[tuple[Expression | int, ...], tuple[int, _Found]] = {}
        firsts = first_equal(self.statement.accesses) if self.equal_once else ()
        found: list[tuple[int, _Found]] = []
        todo = [(value, False)]
        while todo:
            node, is_below_done = todo.pop()
            parts = operands(node)
            if not is_below_done and parts:
                todo += [(node, True), *((part, False) for part in reversed(parts))]
                continue
            at = len(found) - len(parts)
            name = label(node)
            if isinstance(name, Read) and self.equal_once:
                name = Read(firsts[name.access])
            key = (name, *(number for number, _ in found[at:]))
            # one look: comparing functions of isl may sort their pieces, which changes their hash
            once = known.get(key) if self.equal_once else None
            if once is not None:
                found[at:] = [once]
            else:
                joined = self._joined(node, [own for _, own in found[at:]])
                found[at:] = [(len(known), joined)]
                known[key] = len(known), (Counter(), *joined[1:])
        return found[0][1]

    def _joined(self, node: Expression, parts: Sequence[_Found]) -> _Found:  # noqa: C901 - a table
        counts = sum((part for part, _, _ in parts), Counter[Along]())
        floating = any(of_part for _, of_part, _ in parts)
        loops = frozenset[str]().union(*(of_part for _, _, of_part in parts))
        match node:
            case Literal() | Cast():
                floating = node.element_type.is_floating
            case Read(access=access):
                array = self.statement.accesses[access].array
                floating, loops = self.types[array].is_floating, self.moving[access]
            case AffineValue():
                loops = loops.union(*self.moving)
            case Unary(operator=operator):
                floating = floating and operator in "+-"
            case Binary(operator=operator) if operator in _LOGICAL:
                (counts, *_), (right, *_) = parts
                floating = False
                self.notes += [SHORT_CIRCUIT] if right else []
            case Binary(operator=operator):
                compares = operator in _COMPARISONS
                if floating:
                    kind = "compare" if compares else _ARITHMETIC[operator]
                    counts["quotient" if self._is_quotient(node) else kind, loops] += 1
                self.integer_products += operator == "*" and not floating
                floating = floating and not compares
            case Select():
                (condition, *_), (yes, of_yes, _), (no, of_no, _) = parts
                self.notes += [UNEVEN_ARMS] if _by_kind(yes) != _by_kind(no) else []
                counts = condition + min(yes, no, key=Counter.total)
                floating = of_yes or of_no
            case Call(function=function) if function in _ON_ANY:
                counts["compare", loops] += floating and function in ("min", "max")
            case Call(function=function):
                base = function.removesuffix("f")  # erf is a function either way
                kinds = () if base in _SIGN_BIT else _OF_FUNCTION.get(base, ("function",))
                counts.update((kind, loops) for kind in kinds)
                floating = True
        return counts, floating, loops

    def _is_quotient(self, node: Binary) -> bool:
        literals = (one.text for one in preorder(node.right) if isinstance(one, Literal))
        return fused_quotient(node) is not None and not any(map(self.sizes.__contains__, literals))


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
    notes = []

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
    types = scop.types
    totals: dict[str, Count] = {}
    for statement in scop.statements:
        found = operations_of(statement, types)
        notes.extend(f"{statement.name}: {note}" for note in found.notes)
        if not found.counts:
            continue
        instances = count_points(statement.domain.reset_tuple_id())
        for of_code, factor in found.counts.items():
            kind = "divide" if of_code == "quotient" else of_code
            totals[kind] = totals.get(kind, Count()).plus(instances, factor)
    return tuple(
        OperationCount(kind=kind, count=totals[kind].expression())
        for kind in KINDS
        if kind in totals
    )


def _bytes(scop: Scop, elements: Iterable[isl.Set]) -> IntExpr:
    """Return the size of sets of elements, one for each array."""
    total = Count()
    for part in elements:
        size = scop.array(part.get_tuple_name()).element_type.size_bytes
        total = total.plus(count_points(part.reset_tuple_id()), size)
    return total.expression()


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

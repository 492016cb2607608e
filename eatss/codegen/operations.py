"""Floating-point operations that a statement is certain to run, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from eatss.scop import (
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Statement,
    Unary,
)

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
    """How often each kind occurs, and in sentences what was left out."""

    counts: Mapping[str, int]
    notes: tuple[str, ...]


def operations_of(statement: Statement, types: Mapping[str, ElementType]) -> Operations:
    """Count the floating-point operations of one instance of a statement.

    Counted is what always runs: of ``?:`` the condition and the value with fewer operations,
    of ``&&`` and ``||`` the left side. Signs (``-x``, ``fabs``, ``copysign``), conversions and
    everything on integers count nothing; minima, maxima and relations of floating-point
    values are a ``compare``, ``fma`` is a ``multiply`` and an ``add``; any other call is one
    ``function``, whatever it takes inside.

    Args:
        statement: the statement.
        types: element types of arrays by name.
    """
    visitor = _Visitor(statement, types)
    counts, _ = visitor.visit(statement.value)
    found = {kind: counts[kind] for kind in KINDS if counts[kind]}
    return Operations(found, tuple(dict.fromkeys(visitor.notes)))


_Found = tuple[Counter[str], bool]
"""Operations of an expression, and whether its value is of a floating-point type."""


class _Visitor:
    def __init__(self, statement: Statement, types: Mapping[str, ElementType]) -> None:
        self._statement = statement
        self._types = types
        self.notes: list[str] = []

    def visit(self, node: Expression) -> _Found:
        if isinstance(node, Literal):
            return Counter(), node.element_type.is_floating
        if isinstance(node, Read):
            return Counter(), self._types[self._statement.accesses[node.access].array].is_floating
        if isinstance(node, AffineValue):
            return Counter(), False
        if isinstance(node, Cast):
            return self.visit(node.operand)[0], node.element_type.is_floating
        return self._operation(node)

    def _operation(self, node: Unary | Binary | Select | Call) -> _Found:
        if isinstance(node, Unary):
            counts, floating = self.visit(node.operand)
            return counts, floating and node.operator in "+-"
        if isinstance(node, Binary):
            return self._binary(node)
        return self._select(node) if isinstance(node, Select) else self._call(node)

    def _binary(self, node: Binary) -> _Found:
        chain = [node]  # sums of thousands of terms nest to the left
        while isinstance(chain[-1].left, Binary):
            chain.append(chain[-1].left)
        found = self.visit(chain[-1].left)
        for binary in reversed(chain):
            found = self._joined(binary.operator, found, self.visit(binary.right))
        return found

    def _joined(self, operator: str, left: _Found, right: _Found) -> _Found:
        if operator in _LOGICAL:
            if right[0]:
                self.notes.append(SHORT_CIRCUIT)
            return left[0], False
        floating = left[1] or right[1]
        counts = left[0] + right[0]
        if floating:
            counts["compare" if operator in _COMPARISONS else _ARITHMETIC[operator]] += 1
        return counts, floating and operator not in _COMPARISONS

    def _select(self, node: Select) -> _Found:
        condition, _ = self.visit(node.condition)
        yes, yes_floating = self.visit(node.if_true)
        no, no_floating = self.visit(node.if_false)
        if yes != no:
            self.notes.append(UNEVEN_ARMS)
        fewer = min(yes, no, key=lambda counts: counts.total())
        return condition + fewer, yes_floating or no_floating

    def _call(self, node: Call) -> _Found:
        found = [self.visit(argument) for argument in node.arguments]
        counts: Counter[str] = sum((part for part, _ in found), Counter())
        if node.function in _ON_ANY:
            floating = any(floating for _, floating in found)
            counts["compare"] += floating and node.function in ("min", "max")
            return +counts, floating
        base = node.function.removesuffix("f")  # the one for float; erf is a function either way
        if base not in _SIGN_BIT:
            counts.update(_OF_FUNCTION.get(base, ("function",)))
        return counts, True

"""Checks that a region over symbols is, at the symbols' values, the region over numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import add, mul, sub
from typing import Any

import islpy as isl

from eatss.polyhedral.isl_names import constant_value, parameters_set
from eatss.polyhedral.scops import (
    Access,
    AffineValue,
    Array,
    Binary,
    Cast,
    Expression,
    Literal,
    Scop,
    Statement,
    Unary,
    operands,
)
from eatss.polyhedral.scops.expression import label

_COMPARED: dict[type[object], tuple[str, ...]] = {
    Scop: (
        "function",
        "index",
        "span",
        "file",
        "whole_function",
        "context",
        "arrays",
        "statements",
    ),
    Array: ("name", "element_type", "n_dims", "is_local", "origin", "source_name"),
    Statement: ("name", "loops", "text", "span", "domain", "schedule", "accesses"),
    Access: ("array", "kind", "text", "span", "relation"),
}
"""What of nouns is compared besides extents and values."""


def agree(symbolic: Scop, numeric: Scop, values: Mapping[str, int]) -> bool:
    """Tell whether ``symbolic`` at ``values`` is ``numeric``.

    Both must live in one isl context. Names, texts and spans are compared as they are, sets and
    relations as sets, statement by statement; so are the values the statements store.
    """
    here = {name: value for name, value in values.items() if name in symbolic.parameters}
    if {*symbolic.parameters} - here.keys() != {*numeric.parameters}:
        return False
    condition = " and ".join(f"{name} = {value}" for name, value in here.items())
    return _Check(parameters_set(symbolic.isl_context, tuple(here), condition or "true")).same(
        symbolic, numeric
    )


@dataclass(frozen=True, slots=True)
class _Check:
    """Compares what is at some values of parameters with what is there without them."""

    at: isl.Set

    def same(self, one: Any, other: Any) -> bool:
        if isinstance(one, isl.Set | isl.Map):
            return bool(one.intersect_params(self.at).is_equal(other.intersect_params(self.at)))
        if isinstance(one, tuple):
            return len(one) == len(other) and all(map(self.same, one, other))
        if type(one) not in _COMPARED:
            return bool(one == other)
        if not all(self.same(getattr(one, n), getattr(other, n)) for n in _COMPARED[type(one)]):
            return False
        if isinstance(one, Array):  # where less is known of the sizes, less may be of the extent
            return bool(other.extent.intersect_params(self.at).is_subset(one.extent))
        return not isinstance(one, Statement) or self._same_value(one, other.value)

    def _same_value(self, statement: Statement, other: Expression) -> bool:
        """Compare two trees; what is one function of symbols may be several numbers."""
        todo = [(statement.value, other)]
        while todo:
            left, right = todo.pop()
            if isinstance(left, AffineValue):
                if not self._same_integer(left, right, statement.domain):
                    return False
                continue
            if label(left) != label(right):
                return False
            todo.extend(zip(operands(left), operands(right), strict=True))
        return True

    def _same_integer(self, one: AffineValue, other: Expression, domain: isl.Set) -> bool:
        if isinstance(other, AffineValue):
            functions = (isl.Map.from_pw_aff(each.value) for each in (one, other))
            found, expected = (function.intersect_domain(domain) for function in functions)
            return one.element_type is other.element_type and self.same(found, expected)
        number = _number(other)
        if number is None:
            return False
        here = domain.intersect_params(self.at)
        return constant_value(one.value.gist(here)) == number or here.is_empty()


def _number(node: Expression, depth: int = 0) -> int | None:
    """Return the integer a small tree of literals is, ``None`` if it is more than that."""
    if depth > _MAX_NUMBER_DEPTH:
        return None
    if isinstance(node, Literal):
        digits = node.text.rstrip("uUlL")
        return int(digits) if digits.isdecimal() else None
    if isinstance(node, Cast) and not node.element_type.is_floating:
        return _number(node.operand, depth + 1)
    if isinstance(node, Unary) and node.operator in ("+", "-"):
        value = _number(node.operand, depth + 1)
        return value if value is None or node.operator == "+" else -value
    if isinstance(node, Binary):
        left, right = _number(node.left, depth + 1), _number(node.right, depth + 1)
        if left is not None and right is not None:
            return _arithmetic(node.operator, left, right)
    return None


_MAX_NUMBER_DEPTH = 100
_EXACT: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}


def _arithmetic(operator: str, left: int, right: int) -> int | None:
    if operator in _EXACT:
        return _EXACT[operator](left, right)
    if operator in ("/", "%") and right:
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    return None

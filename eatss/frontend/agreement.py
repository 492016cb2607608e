"""Checks that a region over symbols is, at the symbols' values, the region over numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul, sub
from typing import TypeAlias

import islpy as isl

from eatss.isl_names import constant_value, parameters_set
from eatss.scops import (
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
from eatss.scops.expression import label

_Piece: TypeAlias = isl.Set | isl.Map


def agree(symbolic: Scop, numeric: Scop, values: Mapping[str, int]) -> bool:
    """Tell whether ``symbolic`` at ``values`` is ``numeric``.

    Both must live in one isl context. Names, texts and spans are compared as they are, sets and
    relations as sets, statement by statement; so are the values the statements store.
    """
    here = {name: value for name, value in values.items() if name in symbolic.parameters}
    free = tuple(name for name in symbolic.parameters if name not in here)
    if (
        sorted(free) != sorted(numeric.parameters)
        or (symbolic.function, symbolic.index, symbolic.span, symbolic.file)
        != (numeric.function, numeric.index, numeric.span, numeric.file)
        or symbolic.whole_function != numeric.whole_function
        or len(symbolic.statements) != len(numeric.statements)
        or len(symbolic.arrays) != len(numeric.arrays)
    ):
        return False
    check = _Check(symbolic, here)
    return (
        check.same(symbolic.context, numeric.context)
        and all(map(check.same_array, symbolic.arrays, numeric.arrays))
        and all(map(check.same_statement, symbolic.statements, numeric.statements))
    )


class _Check:
    def __init__(self, scop: Scop, values: Mapping[str, int]) -> None:
        condition = " and ".join(f"{name} = {value}" for name, value in values.items())
        self._at = parameters_set(scop.isl_context, tuple(values), condition or "true")

    def same(self, one: _Piece, other: _Piece) -> bool:
        fixed, expected = one.intersect_params(self._at), other.intersect_params(self._at)
        if isinstance(fixed, isl.Set) and isinstance(expected, isl.Set):
            return bool(fixed.is_equal(expected))
        assert isinstance(fixed, isl.Map)
        assert isinstance(expected, isl.Map)
        return bool(fixed.is_equal(expected))

    def same_array(self, one: Array, other: Array) -> bool:
        """Compare two arrays; where less is known of the sizes, less may be of the extent."""
        return (
            (one.name, one.element_type, one.n_dims, one.is_local, one.origin, one.source_name)
            == (
                *(other.name, other.element_type, other.n_dims),
                *(other.is_local, other.origin, other.source_name),
            )
        ) and bool(other.extent.intersect_params(self._at).is_subset(one.extent))

    def same_statement(self, one: Statement, other: Statement) -> bool:
        return (
            (one.name, one.loops, one.text, one.span, len(one.accesses))
            == (other.name, other.loops, other.text, other.span, len(other.accesses))
            and self.same(one.domain, other.domain)
            and self.same(one.schedule, other.schedule)
            and all(map(self._same_access, one.accesses, other.accesses))
            and self._same_value(one.value, other.value, one.domain)
        )

    def _same_access(self, one: Access, other: Access) -> bool:
        return (
            (one.array, one.kind, one.text, one.span)
            == (other.array, other.kind, other.text, other.span)
        ) and self.same(one.relation, other.relation)

    def _same_value(self, one: Expression, other: Expression, domain: isl.Set) -> bool:
        """Compare two trees; what is one function of symbols may be several numbers."""
        todo = [(one, other)]
        while todo:
            left, right = todo.pop()
            if isinstance(left, AffineValue):
                if not self._same_integer(left, right, domain):
                    return False
                continue
            if label(left) != label(right):
                return False
            todo.extend(zip(operands(left), operands(right), strict=True))
        return True

    def _same_integer(self, one: AffineValue, other: Expression, domain: isl.Set) -> bool:
        if isinstance(other, AffineValue):
            if one.element_type is not other.element_type:
                return False
            expected = isl.Map.from_pw_aff(other.value)
            return self.same(
                isl.Map.from_pw_aff(one.value).intersect_domain(domain),
                expected.intersect_domain(domain),
            )
        number = _number(other)
        if number is None:
            return False
        here = domain.intersect_params(self._at)
        found = constant_value(one.value.gist(here))
        return found == number or bool(here.is_empty())


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

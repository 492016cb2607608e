"""Sums and products of integer expressions, constants folded; their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eatss.program.expression import Apply, Constant, IntExpr, Name, Operator


def negated(operand: IntExpr) -> IntExpr:
    """Return ``-operand``."""
    if isinstance(operand, Constant):
        return Constant(-operand.value)
    return Apply(Operator.SUB, (operand,))


def difference(left: IntExpr, right: IntExpr) -> IntExpr:
    """Return ``left - right``, constants folded; a common operand of a sum is dropped."""
    if isinstance(right, Constant):
        return total(left, Constant(-right.value))
    if left == right:
        return Constant(0)
    if isinstance(left, Apply) and left.operator is Operator.ADD and right in left.operands:
        rest = list(left.operands)
        rest.remove(right)
        return rest[0] if len(rest) == 1 else Apply(Operator.ADD, tuple(rest))
    return Apply(Operator.SUB, (left, right))


def total(left: IntExpr, right: IntExpr) -> IntExpr:
    """Return ``left + right``, constants folded."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(left.value + right.value)
    if isinstance(left, Constant):
        if left.value < 0:
            return difference(right, Constant(-left.value))
        left, right = right, left
    if isinstance(right, Constant):
        if right.value == 0:
            return left
        folded = _folded(left, right.value)
        if folded is not None:
            return folded
        if right.value < 0:
            return Apply(Operator.SUB, (left, Constant(-right.value)))
    return Apply(Operator.ADD, (left, right))


def _folded(left: IntExpr, addend: int) -> IntExpr | None:
    """Return ``left + addend`` where ``left`` is ``x + c`` or ``x - c`` already."""
    if not isinstance(left, Apply) or len(left.operands) != 2:
        return None
    inner, constant = left.operands
    if not isinstance(constant, Constant):
        return None
    if left.operator is Operator.ADD:
        return total(inner, Constant(constant.value + addend))
    if left.operator is Operator.SUB:
        return total(inner, Constant(addend - constant.value))
    return None


def multiplied(left: IntExpr, right: IntExpr) -> IntExpr:
    """Return ``left * right``, constants folded."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(left.value * right.value)
    for one, other in ((left, right), (right, left)):
        if one == Constant(1):
            return other
        if one == Constant(0):
            return one
    return Apply(Operator.MUL, (left, right))


def minimum(value: IntExpr, most: int) -> IntExpr:
    """Return the smaller of a positive value and a constant, folded where one is known."""
    if isinstance(value, Constant):
        return Constant(min(value.value, most))
    return Constant(1) if most == 1 else Apply(Operator.MIN, (value, Constant(most)))


def at_least(value: IntExpr, least: int) -> IntExpr:
    """Return the larger of a value and a constant, folded where the value is known."""
    if isinstance(value, Constant):
        return Constant(max(value.value, least))
    return Apply(Operator.MAX, (value, Constant(least)))


def substitute(expression: IntExpr, values: Mapping[str, IntExpr]) -> IntExpr:
    """Replace names by expressions."""
    if isinstance(expression, Name):
        return values.get(expression.name, expression)
    if isinstance(expression, Apply):
        return replace(
            expression, operands=tuple(substitute(o, values) for o in expression.operands)
        )
    return expression


def names_in(expression: IntExpr) -> Iterator[str]:
    """Yield the names an expression mentions."""
    todo = [expression]
    while todo:
        one = todo.pop()
        if isinstance(one, Name):
            yield one.name
        elif isinstance(one, Apply):
            todo += reversed(one.operands)

"""What the value of a statement consists of, as far as a kernel has to know."""

from __future__ import annotations

from collections.abc import Iterator

from eatss.scop import (
    AffineValue,
    Binary,
    Call,
    Cast,
    Expression,
    Select,
    Unary,
)


def affine_values(expression: Expression) -> Iterator[AffineValue]:
    """Yield the affine functions in a value, from the left; chains of operators may be long."""
    todo = [expression]
    while todo:
        node = todo.pop()
        if isinstance(node, AffineValue):
            yield node
        else:
            todo.extend(reversed(_operands(node)))


def functions(expression: Expression) -> Iterator[str]:
    """Yield the names of the functions that a value calls."""
    todo = [expression]
    while todo:
        node = todo.pop()
        if isinstance(node, Call):
            yield node.function
        todo.extend(_operands(node))


def _operands(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Unary | Cast):
        return (node.operand,)
    if isinstance(node, Binary):
        return (node.left, node.right)
    if isinstance(node, Select):
        return (node.condition, node.if_true, node.if_false)
    return node.arguments if isinstance(node, Call) else ()

"""What the value of a statement consists of, as far as a kernel has to know."""

from __future__ import annotations

from collections.abc import Iterator

from eatss.scops import AffineValue, Call, Expression, preorder


def affine_values(expression: Expression) -> Iterator[AffineValue]:
    """Yield the affine functions in a value, from the left."""
    return (node for node in preorder(expression) if isinstance(node, AffineValue))


def functions(expression: Expression) -> Iterator[str]:
    """Yield the names of the functions that a value calls."""
    return (node.function for node in preorder(expression) if isinstance(node, Call))

"""Arithmetic of halves as that of floats: each operation is done in float and rounded to a half.

    h = a * b + c;

of ``_Float16`` is ``h = (_Float16)((float)(_Float16)((float)a * (float)b) + (float)c)``. A float
has more than twice the bits of a half, and two more: so a sum, a difference, a product or a
quotient that is rounded twice is what one rounding makes of it.
"""

from __future__ import annotations

import struct

from eatss.frontend.tree import Node
from eatss.scops import Cast, ElementType, Expression, Literal


def as_float(value: Expression, node: Node) -> Expression:
    """Return the value of a node as an operand of an operator: a half becomes a float."""
    if node.type.element is not ElementType.HALF:
        return value
    if isinstance(value, Cast) and isinstance(value.operand, Literal):
        literal = _as_float(value.operand)
        if literal is not None:
            return literal
    return Cast(element_type=ElementType.FLOAT, operand=value)


def rounded(value: Expression, node: Node) -> Expression:
    """Return what an operator makes of such operands, rounded where its node is a half."""
    if node.type.element is not ElementType.HALF:
        return value
    return Cast(element_type=ElementType.HALF, operand=value)


def _as_float(literal: Literal) -> Literal | None:
    """Return a literal as a float if a half has its value, ``None`` if none has."""
    text = literal.text.rstrip("fFuUlL")
    try:
        value = float(text)
        is_half = struct.unpack("e", struct.pack("e", value))[0] == value
    except (ValueError, OverflowError):
        return None
    if not is_half:
        return None
    if literal.element_type is ElementType.FLOAT:
        return literal
    return Literal(text=f"{value!r}f", element_type=ElementType.FLOAT)

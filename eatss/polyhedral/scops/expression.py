"""The expression tree of a statement's right-hand side.

Trees are what code generation prints and what operation counts are taken from.
A read names its access by index into ``Statement.accesses``, so that tree and
access relations cannot disagree.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from eatss.base.frozen import frozen
from eatss.base.trees import Parts
from eatss.polyhedral.scops.array import ElementType

if TYPE_CHECKING:
    import islpy as isl


@frozen
class Literal:
    """A constant, kept in its C spelling (macros expanded) with its type."""

    text: str
    element_type: ElementType


def single_text(value: float) -> str:
    """Return the shortest decimal text of a number of 32 bits, with a point or an exponent."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    text = next((t for t in texts if as_single(float(t)) == value), str(value))
    return text if any(sign in text for sign in ".en") else f"{text}.0"


def as_single(value: float) -> float:
    """Return a number rounded to 32 bits, infinity where it is too large."""
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    return float(rounded)


@frozen
class Read:
    """A read of ``Statement.accesses[access]``."""

    access: int


@frozen
class AffineValue:
    """An affine integer expression of counters and parameters used as a value (``i + 1``).

    ``value`` maps the statement's domain space to an integer.
    """

    value: isl.PwAff
    element_type: ElementType


@frozen
class Unary:
    """``operator operand``; operator one of ``+ - ! ~``."""

    operator: str
    operand: Expression


@frozen
class Binary:
    """``left operator right`` with a C binary operator that has no side effect."""

    operator: str
    left: Expression
    right: Expression


@frozen
class Select:
    """``condition ? if_true : if_false``; both arms count as read."""

    condition: Expression
    if_true: Expression
    if_false: Expression


@frozen
class Cast:
    """A conversion to ``element_type``, written or implied by C."""

    element_type: ElementType
    operand: Expression


@frozen
class Call:
    """A call of a pure function (``sqrt``, ``fmax``, …)."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Literal | Read | AffineValue | Unary | Binary | Select | Cast | Call


_OPERANDS: Parts[Expression] = Parts(("Expression",), Expression)

operands = _OPERANDS.of
"""The operands of a node from left to right, none of a leaf."""

rebuilt = _OPERANDS.rebuilt
"""A node with a change made of each operand, a leaf as it is."""

preorder = _OPERANDS.below
"""A node and all below it from left to right, without recursion."""

_NOTHING = Literal(text="", element_type=ElementType.INT32)


def label(node: Expression) -> Expression:
    """Return what a node is besides its operands: the node with nothing in their place."""
    return rebuilt(node, lambda _: _NOTHING)


SUMS = ("+", "-")
"""Operators of sums: what is subtracted is added with the other sign."""


def added_to(
    value: Expression,
    is_target: Callable[[Expression], bool],
    type_of: Callable[[int], ElementType],
) -> Expression | None:
    """Return what a value adds to a target, ``None`` if it is no sum of it and something else.

    ``t - a * b`` adds ``a * -b``, which is the same in every bit, where ``b`` is a floating-point
    number: of others conversions on the way may depend on the sign. ``t + a - b`` adds ``a - b``:
    that is another order.

    Args:
        value: of a statement.
        is_target: tells whether a part of it reads what the statement writes.
        type_of: the type of what an access reads, by its number.
    """
    chain: list[Binary] = []  # sums of thousands of terms nest to the left
    while isinstance(value, Binary) and value.operator in SUMS:
        if is_target(value.left):
            first = value.right if value.operator == "+" else _negated(value.right, type_of)
            return None if first is None else _with_left(chain, first)
        if value.operator == "+" and is_target(value.right):
            return _with_left(chain, value.left)
        chain.append(value)
        value = value.left
    return None


def terms(value: Expression, type_of: Callable[[int], ElementType]) -> list[Expression]:
    """Return what a value is the sum of; what is subtracted is negated, where that is exact."""
    found, todo = [], [value]
    while todo:
        one = todo.pop()
        if not isinstance(one, Binary) or one.operator not in SUMS:
            found.append(one)
            continue
        other = one.right if one.operator == "+" else _negated(one.right, type_of)
        if other is None:
            found.append(one)
        else:
            todo += [other, one.left]
    return found


def _negated(value: Expression, type_of: Callable[[int], ElementType]) -> Expression | None:
    """Return a floating-point value with its sign changed, ``None`` of any other."""
    chain: list[Binary] = []
    while isinstance(value, Binary) and value.operator in SUMS:
        right = _negated(value.right, type_of)
        if right is None:
            return None
        chain.append(replace(value, right=right))
        value = value.left
    if isinstance(value, Binary) and value.operator == "*":
        right = _negated(value.right, type_of)
        return None if right is None else _with_left(chain, replace(value, right=right))
    if isinstance(value, Read):
        floating = type_of(value.access).is_floating
    else:
        floating = isinstance(value, Cast | Literal) and value.element_type.is_floating
    return _with_left(chain, Unary(operator="-", operand=value)) if floating else None


def _with_left(chain: Sequence[Binary], value: Expression) -> Expression:
    """Return sums, outermost first, with a value at their left end."""
    for one in reversed(chain):
        value = replace(one, left=value)
    return value


def factors(value: Expression) -> Iterator[Expression]:
    """Yield the factors of a product, a value that is none alone.

    A product of ``int`` that becomes ``unsigned int`` is that of its factors: both wrap around.
    """
    if isinstance(value, Binary) and value.operator == "*":
        yield from factors(value.left)
        yield from factors(value.right)
        return
    if isinstance(value, Cast) and value.element_type is ElementType.UINT32:
        inner = list(factors(value.operand))
        signed = (isinstance(one, Cast) and one.element_type is ElementType.INT32 for one in inner)
        if all(signed):
            yield from inner
            return
    yield value


def addends(value: Expression) -> Iterator[Expression]:
    """Yield what a sum adds up, a value that is none alone."""
    if isinstance(value, Binary) and value.operator == "+":
        yield from addends(value.left)
        yield from addends(value.right)
    else:
        yield value


def narrow_factor(
    factor: Expression, element_type: ElementType, types: Mapping[int, ElementType]
) -> Expression | None:
    """Return the value of a type that a factor is the conversion of, ``None`` if it is none.

    Args:
        factor: of a product in a wider type.
        element_type: the narrower type.
        types: of what accesses read, by their numbers.
    """
    if not isinstance(factor, Cast):
        return None
    inner = factor.operand
    if isinstance(inner, Read):
        return inner if types.get(inner.access) is element_type else None
    return inner if isinstance(inner, Cast) and inner.element_type is element_type else None


def product_of(parts: Sequence[Expression]) -> Expression:
    """Return the product of parts, from left to right."""
    first, *others = parts
    for other in others:
        first = Binary(operator="*", left=first, right=other)
    return first


def regrouped(parts: Sequence[Expression], key: Callable[[Expression], Hashable]) -> Expression:
    """Return the product of parts, those of one key multiplied with each other first.

    Keys and parts stay in the order in which they come.
    """
    groups: dict[Hashable, list[Expression]] = {}
    for part in parts:
        groups.setdefault(key(part), []).append(part)
    return product_of([product_of(group) for group in groups.values()])

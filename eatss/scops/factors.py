"""Values of statements taken apart: what is added to their target, factors of a product."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from eatss.scops.array import ElementType
from eatss.scops.expression import Binary, Cast, Expression, Literal, Read, Unary

_SUMS = ("+", "-")


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
    if not isinstance(value, Binary) or value.operator not in _SUMS:
        return None
    if is_target(value.left):
        return value.right if value.operator == "+" else _negated(value.right, type_of)
    if value.operator == "+" and is_target(value.right):
        return value.left
    first = added_to(value.left, is_target, type_of)
    return None if first is None else replace(value, left=first)


def terms(value: Expression, type_of: Callable[[int], ElementType]) -> list[Expression]:
    """Return what a value is the sum of; what is subtracted is negated, where that is exact."""
    if not isinstance(value, Binary) or value.operator not in _SUMS:
        return [value]
    other = value.right if value.operator == "+" else _negated(value.right, type_of)
    return [value] if other is None else [*terms(value.left, type_of), *terms(other, type_of)]


def _negated(value: Expression, type_of: Callable[[int], ElementType]) -> Expression | None:
    """Return a floating-point value with its sign changed, ``None`` of any other."""
    if isinstance(value, Binary) and value.operator in _SUMS:
        left, right = _negated(value.left, type_of), _negated(value.right, type_of)
        return None if left is None or right is None else replace(value, left=left, right=right)
    if isinstance(value, Binary) and value.operator == "*":
        right = _negated(value.right, type_of)
        return None if right is None else replace(value, right=right)
    if isinstance(value, Read):
        floating = type_of(value.access).is_floating
    else:
        floating = isinstance(value, Cast | Literal) and value.element_type.is_floating
    return Unary(operator="-", operand=value) if floating else None


def factors(value: Expression) -> Iterator[Expression]:
    """Yield the factors of a product, a value that is none alone."""
    if isinstance(value, Binary) and value.operator == "*":
        yield from factors(value.left)
        yield from factors(value.right)
    else:
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

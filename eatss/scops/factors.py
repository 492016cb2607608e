"""Values of statements taken apart: what is added to their target, factors of a product."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from eatss.scops.array import ElementType
from eatss.scops.expression import Binary, Cast, Expression, Literal, Read, Unary


def added_to(
    value: Expression,
    is_target: Callable[[Expression], bool],
    type_of: Callable[[int], ElementType],
) -> Expression | None:
    """Return what a value adds to a target, ``None`` if it is no sum of it and something else.

    ``t - a * b`` adds ``a * -b``, which is the same in every bit, where ``b`` is a floating-point
    number: of others conversions on the way may depend on the sign.

    Args:
        value: of a statement.
        is_target: tells whether a part of it reads what the statement writes.
        type_of: the type of what an access reads, by its number.
    """
    if not isinstance(value, Binary):
        return None
    if value.operator == "-" and is_target(value.left):
        *others, last = factors(value.right)
        negated = Unary(operator="-", operand=last)
        return product_of([*others, negated]) if _is_floating(last, type_of) else None
    if value.operator != "+":
        return None
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if is_target(one):
            return other
    return None


def _is_floating(factor: Expression, type_of: Callable[[int], ElementType]) -> bool:
    if isinstance(factor, Read):
        return type_of(factor.access).is_floating
    return isinstance(factor, Cast | Literal) and factor.element_type.is_floating


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

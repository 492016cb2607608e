"""Sizes that nobody passes, because they are products of others: what code puts in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from eatss.polyhedral.scop import SizeProduct
from eatss.program import (
    INTEGERS,
    Apply,
    Constant,
    Entry,
    IntExpr,
    Name,
    Operator,
    Work,
    at_least,
    multiplied,
    substitute,
)


def product_values(products: Sequence[SizeProduct]) -> dict[str, IntExpr]:
    """Return what each product is, by its name.

    Loops of a negative length do not run, so two such factors make none that does.
    """
    return {one.name: reduce(multiplied, factors_of(one)) for one in products}


def factors_of(product: SizeProduct) -> list[IntExpr]:
    """Return the factors of a product, none of which is negative."""
    return [
        at_least(Name(one) if isinstance(one, str) else Constant(one), 0) for one in product.factors
    ]


def shared_tile(product: SizeProduct, tile: int) -> dict[str, int]:
    """Return a tile along each size of a product, so that together they are a tile of its loop."""
    names = [one for one in product.factors if isinstance(one, str)]
    found: dict[str, int] = {}
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        part = max(k for k in range(1, tile + 1) if tile % k == 0 and k**left <= tile)
        found[name], tile = part, tile // part
    return found


def written_out(entry: Entry, products: Sequence[SizeProduct]) -> Entry:
    """Return an entry that names the factors of products alone."""
    if not products:
        return entry
    values = product_values(products)

    def out(expression: IntExpr) -> IntExpr:
        return substitute(expression, values)

    return replace(
        entry,
        assumptions=tuple(INTEGERS.rebuilt(one, out) for one in entry.assumptions),
        body=tuple(INTEGERS.rebuilt(one, out) for one in entry.body),
    )


def work_written_out(work: Work, products: Sequence[SizeProduct]) -> Work:
    """Return counts that name the factors of products alone."""
    values = product_values(products)
    return INTEGERS.rebuilt(work, lambda count: substitute(count, values))


def multiplies_sizes(expression: IntExpr) -> bool:
    """Tell whether an expression multiplies what are no constants."""
    if not isinstance(expression, Apply):
        return False
    variable = [one for one in expression.operands if not isinstance(one, Constant)]
    if expression.operator is Operator.MUL and len(variable) > 1:
        return True
    return any(multiplies_sizes(one) for one in expression.operands)

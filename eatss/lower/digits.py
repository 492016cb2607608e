"""Several loops along one axis of a grid or a block: a number taken apart into its digits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from eatss.diagnostics import SourceSpan
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    evaluate,
    substitute,
)
from eatss.schedule.errors import internal_error_at

_NUMBER = "eatss_number"

_PRIMES = (2, 3, 5, 7)


def digits(number: IntExpr, extents: Sequence[IntExpr], span: SourceSpan) -> tuple[IntExpr, ...]:
    """Return one digit for each extent, the slowest first.

    A number from 0 to the product of the extents, that one excluded, has digits from 0 to each
    extent, and every choice of digits belongs to exactly one number.

    Args:
        number: not negative.
        extents: positive.
        span: where the statements are, for the error.

    Raises:
        InternalError: ``EATSS-K901`` the digits miss a choice.
    """
    wide = [at for at, extent in enumerate(extents) if extent != Constant(1)]
    names = [f"eatss_extent{at}" for at in wide]
    found = _digits(Name(_NUMBER), [Name(name) for name in names])
    if not _is_one_to_one(found, names):
        raise internal_error_at("EATSS-K901", "the blocks of a grid leave tiles out", span=span)
    values = {_NUMBER: number, **{name: extents[at] for name, at in zip(names, wide, strict=True)}}
    result: list[IntExpr] = [Constant(0)] * len(extents)
    for at, digit in zip(wide, found, strict=True):
        result[at] = substitute(digit, values)
    return tuple(result)


def _digits(number: IntExpr, extents: Sequence[IntExpr]) -> tuple[IntExpr, ...]:
    found: list[IntExpr] = []
    rest = number
    for extent in reversed(extents[1:]):
        found.append(rest % extent)
        rest = rest // extent
    if extents:
        found.append(rest)
    return tuple(reversed(found))


def _is_one_to_one(found: Sequence[IntExpr], names: Sequence[str]) -> bool:
    """Tell whether digits meet every choice once, at extents that differ from each other."""
    sizes = [_PRIMES[at] if at < len(_PRIMES) else 1 + at % 2 for at in range(len(names))]
    extents = dict(zip(names, sizes, strict=True))
    met = [
        tuple(evaluate(digit, {**extents, _NUMBER: number}) for digit in found)
        for number in range(prod(sizes))
    ]
    return sorted(met) == list(product(*(range(size) for size in sizes)))

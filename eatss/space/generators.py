"""Values that are neither a range nor listed: powers, divisors, multiples and primes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

MOST_VALUES = 1_000_000
_LARGEST_DIVIDED = 1 << 40
_LARGEST_PRIME = 10_000_000


class GeneratorFault(Exception):  # noqa: N818 - it becomes an error with a place in a file
    """Why arguments give no values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A generator: how its arguments are called, and the values that it yields, each once."""

    arguments: tuple[str, ...]
    values: Callable[..., tuple[int, ...]]


def _powers(base: int, first: int, last: int) -> tuple[int, ...]:
    """Return the powers of ``base`` from ``first`` to ``last``."""
    if base < 2:
        raise GeneratorFault(f"powers of {base}: a base is 2 or more")
    found, power = [], 1
    while power <= last:
        if power >= first:
            found.append(power)
        power *= base
    return tuple(found)


def _divisors(number: int) -> tuple[int, ...]:
    if not 1 <= number <= _LARGEST_DIVIDED:
        raise GeneratorFault(f"divisors of {number}: a number from 1 to 2^40 has some")
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return tuple(sorted({*small, *(number // n for n in small)}))


def _multiples(number: int, last: int) -> tuple[int, ...]:
    """Return ``number``, twice ``number`` and so on up to ``last``."""
    if number < 1:
        raise GeneratorFault(f"multiples of {number}: a number from 1 on has some")
    if last // number > MOST_VALUES:
        raise GeneratorFault(f"multiples of {number} up to {last} are over {MOST_VALUES} values")
    return tuple(range(number, last + 1, number))


def _primes(first: int, last: int) -> tuple[int, ...]:
    """Return the prime numbers from ``first`` to ``last``."""
    if last > _LARGEST_PRIME:
        raise GeneratorFault(f"primes up to {last}: at most {_LARGEST_PRIME} is looked at")
    if last < 2:
        return ()
    prime = np.ones(last + 1, dtype=np.bool_)
    prime[:2] = False
    for n in range(2, isqrt(last) + 1):
        if prime[n]:
            prime[n * n :: n] = False
    return tuple(n for n in np.flatnonzero(prime).tolist() if n >= first)


GENERATORS: dict[str, Generator] = {
    "powers": Generator(arguments=("base", "first", "last"), values=_powers),
    "divisors": Generator(arguments=("number",), values=_divisors),
    "multiples": Generator(arguments=("number", "last"), values=_multiples),
    "primes": Generator(arguments=("first", "last"), values=_primes),
}


@lru_cache(maxsize=4096)
def generated(name: str, arguments: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values of a generator, in order.

    Raises:
        GeneratorFault: the arguments give none, or too many.
    """
    return GENERATORS[name].values(*arguments)

"""The values of an iterator below each prefix: how many they are, and which.

Inside, an iterator's column has whole numbers: the values themselves, or for listed values their
positions in the list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.frozen import frozen
from eatss.tune.point import Value
from eatss.tune.space.evaluation import Column, Named, evaluate
from eatss.tune.space.expressions import LARGEST, Expression, ExpressionFault

MOST_VALUES = 1_000_000

_LARGEST_DIVIDED = 1 << 40

_LARGEST_PRIME = 10_000_000


class GeneratorFault(Exception):  # noqa: N818 - it becomes an error with a place in a file
    """Why arguments give no values."""


@frozen
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


Integers = npt.NDArray[np.int64]


@frozen
class RangeBelow:
    """Numbers in steps."""

    start: Integers
    step: Integers
    sizes: Integers

    def at(self, rows: Integers, offsets: Integers) -> Integers:
        """Return the value at an offset below a row, for each pair of them."""
        return self.start[rows] + offsets * self.step[rows]

    def has(self, values: Integers) -> npt.NDArray[np.bool_]:
        """Return for each row whether a value is among those below it."""
        offset, rest = np.divmod(values - self.start, self.step)
        return np.asarray((rest == 0) & (offset >= 0) & (offset < self.sizes))


@frozen
class TableBelow:
    """Values that stand one after the other in a table: from ``first`` on, for each row."""

    table: Integers
    first: Integers
    sizes: Integers

    def at(self, rows: Integers, offsets: Integers) -> Integers:
        """Return the value at an offset below a row, for each pair of them."""
        return np.asarray(self.table[self.first[rows] + offsets])

    def has(self, values: Integers) -> npt.NDArray[np.bool_]:
        """Return for each row whether a value is among those below it."""
        found = np.zeros(len(values), dtype=np.bool_)
        for first, size in set(zip(self.first.tolist(), self.sizes.tolist(), strict=True)):
            rows = (self.first == first) & (self.sizes == size)
            found[rows] = np.isin(values[rows], self.table[first : first + size])
        return found


Below: TypeAlias = RangeBelow | TableBelow
"""The values of an iterator below prefixes, a row each; ``sizes`` says how many of each."""


@frozen
class ListedDimension:
    """An iterator over listed values."""

    name: str
    values: tuple[Value, ...]
    column: Column
    expressions: ClassVar[tuple[Expression, ...]] = ()
    names: ClassVar[tuple[str, ...]] = ()

    def below(self, columns: Named, rows: int) -> TableBelow:
        """Return the values below prefixes."""
        count = len(self.values)
        return TableBelow(
            table=np.arange(count, dtype=np.int64),
            first=np.zeros(rows, dtype=np.int64),
            sizes=np.full(rows, count, dtype=np.int64),
        )

    def decoded(self, column: Integers) -> Column:
        """Return the column as expressions see it."""
        return np.asarray(self.column[column])

    def value(self, number: int) -> Value:
        """Return one value of a column."""
        return self.values[number]

    def number(self, value: Value) -> int | None:
        """Return the position of a value in the list; 1, 1.0 and true are three values."""
        for at, own in enumerate(self.values):
            if type(own) is type(value) and own == value:
                return at
        return None


@frozen
class _Computed:
    """What iterators over computed numbers have in common."""

    name: str
    expressions: tuple[Expression, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its values depend on."""
        return tuple(dict.fromkeys(name for one in self.expressions for name in one.names))

    def decoded(self, column: Integers) -> Column:
        """Return the column as expressions see it."""
        return column

    def value(self, number: int) -> Value:
        """Return one value of a column."""
        return number

    def number(self, value: Value) -> int | None:
        """Return the number, ``None`` for what is none."""
        return value if type(value) is int and abs(value) <= LARGEST else None

    def given(self, columns: Named, rows: int) -> list[Integers]:
        """Return the whole numbers of each expression, one a row."""
        return [_whole(one, columns, rows) for one in self.expressions]


@frozen
class RangeDimension(_Computed):
    """An iterator from a start to a stop, which is included, in steps."""

    def below(self, columns: Named, rows: int) -> RangeBelow:
        """Return the values below prefixes."""
        start, stop, step = self.given(columns, rows)
        if (step == 0).any():
            own = self.expressions[2]
            raise _at(own, "EATSS-S015", "a step of 0 goes nowhere", step == 0, columns)
        return RangeBelow(start=start, step=step, sizes=np.maximum((stop - start) // step + 1, 0))


@frozen
class GeneratedDimension(_Computed):
    """An iterator over the values of a generator."""

    generator: str

    def below(self, columns: Named, rows: int) -> TableBelow:
        """Return the values below prefixes; the table has those of each arguments once."""
        given = np.stack(self.given(columns, rows), axis=1)
        different, which = np.unique(given, axis=0, return_inverse=True)
        which = which.reshape(-1)
        tables = []
        for number, arguments in enumerate(different.tolist()):
            try:
                tables.append(generated(self.generator, tuple(arguments)))
            except GeneratorFault as fault:
                own = self.expressions[0]
                raise _at(own, "EATSS-S019", str(fault), which == number, columns) from None
        lengths = np.array([len(table) for table in tables], dtype=np.int64)
        return TableBelow(
            table=np.array([value for table in tables for value in table], dtype=np.int64),
            first=(np.cumsum(lengths) - lengths)[which],
            sizes=lengths[which],
        )


Dimension: TypeAlias = ListedDimension | RangeDimension | GeneratedDimension
"""An iterator of a space, and the names that its values depend on."""


def _whole(expression: Expression, columns: Named, rows: int) -> Integers:
    """Return the whole numbers of an expression, one a row."""
    found = evaluate(expression, columns, rows)
    if found.dtype.kind == "b":
        found = found.astype(np.int64)
    if found.dtype.kind != "i":
        words = {"f": "a number with a fraction", "U": "a text"}.get(found.dtype.kind, "no number")
        raise expression.fault(
            "EATSS-S012",
            f"the values of an iterator are whole numbers, this is {words}",
            hint="write //, floor or ceil; other values are listed: [0.25, 0.5]",
        )
    return np.broadcast_to(found, (rows,)).astype(np.int64)


def _at(
    expression: Expression,
    code: str,
    message: str,
    bad: Column,
    columns: Named,
) -> ExpressionFault:
    """Return what is wrong at the first bad row."""
    row = int(np.flatnonzero(bad)[0])
    values = [f"{n} = {columns[n][row]}" for n in expression.names if columns[n].ndim]
    return expression.fault(code, message + (f" at {', '.join(values)}" if values else ""))

"""The values of an iterator below each prefix of a point: how many they are, and which.

Inside, an iterator's column has whole numbers: the values themselves, or for listed values their
positions in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import InputError
from eatss.base.frozen import frozen
from eatss.tune.expressions import Column, Expression, Named, column_of, evaluate, evaluate_one
from eatss.tune.points import Value

_LARGEST_DIVIDED = 1 << 40

Integers = npt.NDArray[np.int64]


@frozen
class Generator:
    """A generator: how its arguments are called, and the values that it yields, each once."""

    arguments: tuple[str, ...]
    values: Callable[..., Sequence[int]]


def _powers(base: int, first: int, last: int) -> Sequence[int]:
    if base < 2:
        raise ValueError(f"powers of {base}: a base is 2 or more")
    found, power = [], 1
    while power <= last:
        if power >= first:
            found.append(power)
        power *= base
    return found


def _divisors(number: int) -> Sequence[int]:
    if not 1 <= number <= _LARGEST_DIVIDED:
        raise ValueError(f"divisors of {number}: a number from 1 to 2^40 has some")
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


GENERATORS: dict[str, Generator] = {
    "powers": Generator(arguments=("base", "first", "last"), values=_powers),
    "divisors": Generator(arguments=("number",), values=_divisors),
}


@lru_cache(maxsize=4096)
def generated(name: str, arguments: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values of a generator, in order; ``ValueError`` where the arguments give none."""
    return tuple(GENERATORS[name].values(*arguments))


@frozen
class Below:
    """The values of an iterator below prefixes, a row each.

    That at an offset is ``first + offset * step``, or stands there in the table.
    """

    first: Integers
    step: Integers
    sizes: Integers
    table: Integers | None = None

    def at(self, rows: Integers, offsets: Integers) -> Integers:
        """Return the value at an offset below a row, for each pair of them."""
        place = self.first[rows] + offsets * self.step[rows]
        return place if self.table is None else self.table[place]


Over: TypeAlias = str
"""``"range"``, or the name of a generator."""


@frozen
class Dimension:
    """An iterator: over listed values, or over numbers that a range or generator computes.

    Attributes:
        name: What it is called.
        listed: Its values, where they are listed.
        over: ``"range"`` or a generator.
        expressions: The arguments of that; start, stop and step of a range.
    """

    name: str
    listed: tuple[Value, ...] = ()
    over: Over = ""
    expressions: tuple[Expression, ...] = ()
    column: Column = field(compare=False, repr=False)

    @classmethod
    def of(
        cls, name: str, listed: Sequence[Value], over: Over, expressions: Sequence[Expression]
    ) -> Dimension:
        """Return an iterator."""
        own = tuple(listed)
        column = column_of(own)
        return cls(name=name, listed=own, over=over, expressions=tuple(expressions), column=column)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its values depend on."""
        return tuple(dict.fromkeys(name for one in self.expressions for name in one.names))

    def value(self, number: int) -> Value:
        """Return one value of a column."""
        return self.listed[number] if self.listed else number

    def decoded(self, column: Integers) -> Column:
        """Return the column as expressions see it."""
        return np.asarray(self.column[column]) if self.listed else column

    def values(self, known: Mapping[str, Value]) -> Sequence[Value]:
        """Return its values below one prefix."""
        if self.listed:
            return self.listed
        given = [
            int(_whole(one, np.asarray([evaluate_one(one, known)]))[0]) for one in self.expressions
        ]
        if self.over == "range":
            start, stop, step = given
            if step == 0:
                raise self._no_step("")
            return range(start, stop + (1 if step > 0 else -1), step)
        return self._generated(tuple(given), "")

    def below(self, columns: Named, rows: int) -> Below:
        """Return its values below prefixes."""
        one = np.ones(rows, dtype=np.int64)
        if self.listed:
            return Below(first=0 * one, step=one, sizes=len(self.listed) * one)
        given = np.stack(
            [_whole(own, evaluate(own, columns, rows)) for own in self.expressions], axis=1
        )
        if self.over == "range":
            start, stop, step = given.T
            if not step.all():
                raise self._no_step(self._at(columns, step == 0))
            return Below(first=start, step=step, sizes=np.maximum((stop - start) // step + 1, 0))
        different, which = np.unique(given, axis=0, return_inverse=True)
        which = which.reshape(-1)
        tables = [
            self._generated(tuple(own), self._at(columns, which == at))
            for at, own in enumerate(different.tolist())
        ]
        lengths = np.array([len(table) for table in tables], dtype=np.int64)
        return Below(
            first=(np.cumsum(lengths) - lengths)[which],
            step=one,
            sizes=lengths[which],
            table=np.array([value for table in tables for value in table], dtype=np.int64),
        )

    def _generated(self, given: tuple[int, ...], at: str) -> tuple[int, ...]:
        try:
            return generated(self.over, given)
        except ValueError as error:
            raise self.expressions[0].error("EATSS-S011", f"{error}{at}") from None

    def _no_step(self, at: str) -> InputError:
        return self.expressions[2].error("EATSS-S011", f"a step of 0 goes nowhere{at}")

    def _at(self, columns: Named, bad: Column) -> str:
        """Return the values of names in the first bad row, as words."""
        row = int(np.flatnonzero(bad)[0])
        own = ((name, columns[name]) for name in self.names)
        shown = [
            f"{name} = {column[row]}" for name, column in own if isinstance(column, np.ndarray)
        ]
        return f" at {', '.join(shown)}" if shown else ""


def _whole(expression: Expression, column: Column) -> Integers:
    """Return a column as whole numbers."""
    if column.dtype.kind not in "bi":
        raise expression.error(
            "EATSS-S011",
            "the values of an iterator are whole numbers",
            hint="write //, floor or ceil; other values are listed: [0.25, 0.5]",
        )
    return column.astype(np.int64)

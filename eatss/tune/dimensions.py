"""The values of an iterator below each prefix: how many they are, and which.

Inside, an iterator's column has whole numbers: the values themselves, or for listed values their
positions in the list.

The walk over a space: prefix by prefix, in blocks of columns; and exact numbers of points.

A block has a row for each prefix of points: values of the first iterators. A step adds the values
of one more iterator and drops rows that a filter removes. Blocks have at most ``CHUNK`` rows or
little more, so that memory is bounded whatever the size of the space.

Numbers of points are 64-bit columns as long as these hold them, and columns of Python's integers
beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.frozen import frozen
from eatss.tune.expressions import (
    LARGEST,
    Column,
    Expression,
    ExpressionFault,
    Named,
    evaluate,
    truth,
)
from eatss.tune.points import Value

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
            raise _at(own, "EATSS-S011", "a step of 0 goes nowhere", step == 0, columns)
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
                raise _at(own, "EATSS-S011", str(fault), which == number, columns) from None
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
            "EATSS-S011",
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


Weights = npt.NDArray[Any]
"""Whole numbers: ``int64``, or ``object`` where they are larger."""

Columns = Mapping[str, Integers]

_SAFE = float(1 << 62)


def repeated(weights: Weights, times: Weights) -> Weights:
    """Return the products, row by row."""
    if object not in (weights.dtype, times.dtype):
        if not len(weights):
            return weights
        if float(weights.max()) * float(times.max()) < _SAFE:
            return weights * times
    return np.asarray(weights.astype(object) * times.astype(object))


def total(weights: Weights) -> int:
    """Return the sum."""
    if weights.dtype != object and float(weights.sum(dtype=np.float64)) < _SAFE:
        return int(weights.sum())
    return sum(weights.tolist())


def summed(weights: Weights, group: Integers, groups: int) -> Weights:
    """Return the sum of the weights of each group; ``group`` says which each is in."""
    if weights.dtype == object or float(weights.sum(dtype=np.float64)) >= _SAFE:
        found = np.zeros(groups, dtype=object)
        np.add.at(found, group, weights.astype(object))
        return found
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, group, weights)
    return sums


def distinct(columns: Columns, rows: int) -> tuple[Integers, Integers]:
    """Return a row of each kind, in order of first appearance of the sorted values, and each row's
    kind.
    """  # noqa: D205
    if not columns or not rows:
        first = np.zeros(min(rows, 1), dtype=np.int64)
        return first, np.zeros(rows, dtype=np.int64)
    key = _keys(columns)
    if key is not None:
        _, firsts, kinds = np.unique(key, return_index=True, return_inverse=True)
    else:
        table = np.stack(list(columns.values()), axis=1)
        _, firsts, kinds = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return firsts.astype(np.int64), kinds.reshape(-1).astype(np.int64)


def grouped(columns: Columns, weights: Weights) -> tuple[dict[str, Integers], Weights]:
    """Return each distinct row once, with the sum of its weights."""
    firsts, kinds = distinct(columns, len(weights))
    sums = summed(weights, kinds, len(firsts))
    return {name: column[firsts] for name, column in columns.items()}, sums


def tuples(columns: Columns, rows: int) -> list[tuple[int, ...]]:
    """Return the rows of columns."""
    if not columns:
        return [()] * rows
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


def added(first: Weights, second: Weights) -> Weights:
    """Return the sums, row by row."""
    if object not in (first.dtype, second.dtype):
        largest = float(first.max(initial=0)) + float(second.max(initial=0))
        if largest < float(1 << 62):
            return first + second
    return np.asarray(first.astype(object) + second.astype(object))


def _keys(columns: Columns) -> Integers | None:
    """Return one number for each row that tells it from others, ``None`` if 64 bits are too few."""
    spans = [(int(c.min()), int(c.max()) - int(c.min()) + 1) for c in columns.values()]
    kinds = 1
    for _, span in spans:
        kinds *= span
    if kinds >= 1 << 62:
        return None
    key = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
    for column, (least, span) in zip(columns.values(), spans, strict=True):
        key = key * span + (column - least)
    return key


CHUNK = 1 << 17
"""Rows that are looked at together: columns of them stay in the cache of a processor."""


@frozen
class Block:
    """Prefixes, a row each: columns by name, and how many points each row stands for.

    Where prefixes are looked for, the weights say which row of others each is below.
    """

    columns: Mapping[str, Integers]
    weights: Weights

    @property
    def rows(self) -> int:
        """How many prefixes there are."""
        return len(self.weights)

    def some(self, chosen: npt.NDArray[np.bool_] | Integers) -> Block:
        """Return some of the rows."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Block(columns=columns, weights=self.weights[chosen])

    def only(self, names: Iterable[str]) -> Block:
        """Return the block with some of its columns."""
        columns = {name: self.columns[name] for name in names if name in self.columns}
        return Block(columns=columns, weights=self.weights)

    def numbered(self) -> Block:
        """Return the prefixes with their places for weights."""
        return Block(columns=self.columns, weights=np.arange(self.rows, dtype=np.int64))


@frozen
class Test:
    """A filter, and the step after which all that it names is known: -1 before the first."""

    name: str
    condition: Expression
    step: int


Removed = Callable[[Test, Block], None]
"""Told of the rows that a filter removes."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The steps of the walk: constants, iterators in order, and filters."""

    constants: Named
    dimensions: tuple[Dimension, ...]
    tests: tuple[Test, ...]

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The place of each iterator in the order."""
        return {dimension.name: at for at, dimension in enumerate(self.dimensions)}

    @cached_property
    def live(self) -> tuple[tuple[str, ...], ...]:
        """For each step the iterators up to it that later steps name."""
        found = []
        for step in range(len(self.dimensions)):
            used = {name for one in self.dimensions[step + 1 :] for name in one.names}
            used |= {n for test in self.tests if test.step > step for n in test.condition.names}
            earlier = self.dimensions[: step + 1]
            found.append(tuple(one.name for one in earlier if one.name in used))
        return tuple(found)

    def decoded(self, names: Iterable[str], columns: Mapping[str, Integers]) -> dict[str, Column]:
        """Return what expressions see of some names."""
        return {
            name: self.constants[name]
            if (at := self.position.get(name)) is None
            else self.dimensions[at].decoded(columns[name])
            for name in names
        }

    def below(self, step: int, block: Block) -> Below:
        """Return the values of the iterator of a step below each row."""
        dimension = self.dimensions[step]
        return dimension.below(self.decoded(dimension.names, block.columns), block.rows)

    def met(self, test: Test, block: Block) -> npt.NDArray[np.bool_]:
        """Return which rows meet a filter."""
        columns = self.decoded(test.condition.names, block.columns)
        found = truth(test.condition, evaluate(test.condition, columns, block.rows))
        return np.broadcast_to(found, (block.rows,))

    def passed(self, step: int, block: Block, removed: Removed | None = None) -> Block:
        """Return the rows that meet all filters of a step."""
        for test in self.tests:
            if test.step != step or not block.rows:
                continue
            met = self.met(test, block)
            if met.all():
                continue
            if removed is not None:
                removed(test, block.some(~met))
            block = block.some(met)
        return block

    def expanded(self, step: int, block: Block) -> Iterator[Block]:
        """Yield the prefixes with one more iterator, in order, about ``CHUNK`` rows at a time."""
        name = self.dimensions[step].name
        below = self.below(step, block)
        for parents, offsets in pieces(below.sizes, CHUNK):
            grown = block.some(parents)
            values = {name: below.at(parents, offsets)}
            yield Block(columns={**grown.columns, **values}, weights=grown.weights)

    def is_told_apart(self, step: int) -> bool:
        """Return whether a filter of its step or anything later names the iterator of a step."""
        name = self.dimensions[step].name
        tests = (test for test in self.tests if test.step == step)
        return name in self.live[step] or any(name in test.condition.names for test in tests)

    def walked(
        self,
        blocks: Iterable[Block],
        step: int,
        *,
        group: bool = True,
        removed: Removed | None = None,
    ) -> Iterator[Block]:
        """Yield the prefixes of one more iterator that meet the filters of its step.

        Rows come in order. Where they are grouped, rows that later steps cannot tell apart become
        one row with the sum of their weights, and values that nothing names are only counted.

        Args:
            blocks: the prefixes.
            step: which iterator is added.
            group: whether rows are grouped and columns without use are dropped.
            removed: told of what filters remove.
        """
        gathered: list[Block] = []
        for block in blocks:
            counts = group and not self.is_told_apart(step)
            for grown in self._counted(step, block) if counts else self.expanded(step, block):
                passed = self.passed(step, grown, removed)
                if not passed.rows:
                    continue
                own = passed.only(self.live[step]) if group else passed
                gathered.append(own if len(own.columns) == len(passed.columns) else _grouped(own))
                if sum(one.rows for one in gathered) >= CHUNK:
                    gathered = [_joined(gathered, group=group)]
                    if gathered[0].rows >= CHUNK // 2:
                        yield gathered.pop()
        if gathered:
            yield _joined(gathered, group=group)

    def _counted(self, step: int, block: Block) -> Iterator[Block]:
        """Yield the prefixes that have values of one more iterator, which are only counted."""
        sizes = self.below(step, block).sizes
        some = block.some(sizes > 0)
        weights = repeated(some.weights, sizes[sizes > 0])
        yield Block(columns=some.columns, weights=weights)


def root() -> Block:
    """Return the prefix that has no values yet."""
    return Block(columns={}, weights=np.ones(1, dtype=np.int64))


def pieces(sizes: Integers, chunk: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield rows and offsets below them, ``chunk`` at a time: each row as often as its size."""
    first = 0
    while first < len(sizes):
        ends = np.cumsum(np.minimum(sizes[first : first + chunk], 4 * chunk))
        last = first + max(1, int(np.searchsorted(ends, chunk, side="right")))
        if last == first + 1 and sizes[first] > chunk:
            size = int(sizes[first])
            for start in range(0, size, chunk):
                offsets = np.arange(start, min(start + chunk, size), dtype=np.int64)
                yield np.full(len(offsets), first, dtype=np.int64), offsets
        else:
            own = sizes[first:last]
            starts = np.cumsum(own) - own
            parents = np.repeat(np.arange(first, last, dtype=np.int64), own)
            offsets = np.arange(len(parents), dtype=np.int64) - np.repeat(starts, own)
            if len(parents):
                yield parents, offsets
        first = last


def _grouped(block: Block) -> Block:
    columns, weights = grouped(block.columns, block.weights)
    return Block(columns=columns, weights=weights)


def _joined(blocks: list[Block], *, group: bool) -> Block:
    """Return blocks one after the other; grouped again where their rows are."""
    if len(blocks) == 1:
        return blocks[0]
    columns = {
        name: np.concatenate([block.columns[name] for block in blocks])
        for name in blocks[0].columns
    }
    weights = np.concatenate([block.weights for block in blocks])
    joined = Block(columns=columns, weights=weights)
    return _grouped(joined) if group else joined

"""A space with its constants worked out: counted, sampled, walked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from eatss.diagnostics import Diagnostic, InputError, input_error
from eatss.gpu.findings import finding
from eatss.point import Point, Value
from eatss.space.counting import Progress, counted, drawn_ranks, emptiness, every_block, points_at
from eatss.space.decision_names import is_decision
from eatss.space.dimensions import Integers
from eatss.space.evaluation import constant_of, evaluate, evaluate_one, truth
from eatss.space.expressions import (
    LARGEST,
    Expression,
    ExpressionFault,
    expression_finding,
    origin_of,
    placed,
)
from eatss.space.levels import Block, Levels, Test, root
from eatss.space.nouns import Space, SpaceCount
from eatss.space.parsed import ParsedSpace, parsed_space

_FEW = 100_000


def bind(space: Space, constants: Mapping[str, Value]) -> BoundSpace:
    """Work out the constants of a space and check all of its expressions.

    Args:
        space: the space.
        constants: values that it may name besides its own: ``card.sm_count`` and other figures of
            a card (:func:`eatss.space.nouns.card_constants`), parameters of a program.

    Raises:
        InputError: ``EATSS-S0xx``, all findings, each with its place.
    """
    parsed = parsed_space(space)
    known = {name: value for name, value in constants.items() if name not in parsed.constants}
    findings: list[Diagnostic] = []
    values = dict(known)
    iterators = [dimension.name for dimension in parsed.dimensions]
    everything = {*known, *parsed.constants, *iterators}
    for name, expression in parsed.constants.items():
        try:
            _check_known(expression, everything)
            if all(used in values for used in expression.names):
                values[name] = evaluate_one(expression, values)
        except ExpressionFault as fault:
            findings.append(expression_finding(fault, origin_of(space)))
    if not findings:
        findings += _faults(space, parsed, values, everything)
    findings += _too_large(space, values)
    if findings:
        raise InputError(*findings)
    position = {name: at for at, name in enumerate(iterators)}
    tests = tuple(
        Test(
            name=name,
            condition=condition,
            step=max((position[used] for used in condition.names if used in position), default=-1),
        )
        for name, condition in parsed.filters
    )
    used = {n for one in parsed.expressions() for n in one.names} - position.keys()
    levels = Levels(
        constants={name: constant_of(values[name]) for name in used},
        dimensions=parsed.dimensions,
        tests=tests,
    )
    parameters = frozenset(name for name in constants if not name.startswith("card."))
    return BoundSpace(
        space=space,
        constants=values,
        levels=levels,
        variant=parsed.variant,
        parameters=parameters,
    )


@dataclass(kw_only=True)
class BoundSpace:
    """A space whose constants have values.

    Points are dictionaries of values by the names of the iterators, in their order. Nothing of it
    changes; what was counted is kept.

    Attributes:
        space: What was bound.
        constants: The values of all constants.
        levels: The steps of the walk.
        variant: What a variant decides, as expressions.
        parameters: Names of the program that an iterator may vary.
    """

    space: Space
    constants: Mapping[str, Value]
    levels: Levels = field(repr=False)
    variant: Mapping[str, Expression] = field(repr=False)
    parameters: frozenset[str] = frozenset()
    _count: SpaceCount | None = field(default=None, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The iterators, in order."""
        return tuple(dimension.name for dimension in self.levels.dimensions)

    def count(self, progress: Progress | None = None) -> SpaceCount:
        """Return how many points there are and what each filter removes; exact, counted once.

        Args:
            progress: told how many of the raw points are done, and of how many.

        Raises:
            InputError: an expression cannot be computed for some values.
        """
        if self._count is None:
            with placed(self.space):
                self._count = counted(self.space, self.levels, progress)
        return self._count

    def __len__(self) -> int:
        """Return the number of kept points; beyond ``sys.maxsize`` use ``count().kept``."""
        return min(self.count().kept, sys.maxsize)

    def require_points(self, progress: Progress | None = None) -> SpaceCount:
        """Return the count.

        Raises:
            NoSolutionError: ``EATSS-S016``, an iterator has no values, or ``EATSS-S017``, filters
                leave no point: it names the one that removed the last.
        """
        count = self.count(progress)
        error = emptiness(self.space, self.levels, count)
        if error is not None:
            raise error
        return count

    def points(self) -> Iterator[dict[str, Value]]:
        """Yield all kept points: the last iterator changes fastest, each in its own order.

        They are made by blocks of some ten thousand, when they are asked for.
        """
        with placed(self.space):
            first = self.levels.passed(-1, root())
            for block in every_block(self.levels, iter([first] if first.rows else []), -1):
                yield from self._points_of(block)

    def sample(self, count: int, seed: int) -> list[dict[str, Value]]:
        """Return distinct points, drawn: each set of ``count`` kept points is equally likely.

        That is exact, whatever the size of the space: places in the order of the points are drawn
        and their points found by counting below prefixes. It takes as long as a few counts. The
        same seed gives the same points. Where fewer are kept, all of them come, in drawn order.

        Args:
            count: how many, from 1 on.
            seed: of the random numbers.

        Raises:
            InputError: ``EATSS-S020``, the count is no number of points.
            NoSolutionError: the space has no points.
        """
        if count < 1:
            message = f"a sample of {count} points is none"
            raise input_error("EATSS-S020", message, hint="ask for 1 or more")
        kept = self.require_points().kept
        with placed(self.space):
            found = points_at(self.levels, drawn_ranks(kept, count, seed))
        return [self._named(numbers) for numbers in found]

    def allows(self, point: Point) -> str | None:
        """Return ``None`` for a point of the space, else why it is none.

        That is the name of a filter that it does not meet, or what is wrong with its values.
        """
        names = self.names
        wrong = [name for name in point if name not in names]
        if wrong:
            return f"{wrong[0]} is no iterator of the space"
        missing = [name for name in names if name not in point]
        if missing:
            return f"{missing[0]} has no value"
        numbers: dict[str, Integers] = {}
        for dimension in self.levels.dimensions:
            number = dimension.number(_plain(point[dimension.name]))
            if number is None:
                return _not_among(dimension.name, point[dimension.name])
            numbers[dimension.name] = np.array([number], dtype=np.int64)
        with placed(self.space):
            for step, name in enumerate(names):
                if not self.levels.below(step, numbers, 1).has(numbers[name])[0]:
                    return _not_among(name, point[name])
            block = Block(rows=1, columns=numbers, weights=np.ones(1, dtype=np.int64))
            for test in self.levels.tests:
                if not self.levels.met(test, block)[0]:
                    return test.name
        return None

    def neighbours(self, point: Point) -> list[dict[str, Value]]:
        """Return the kept points that differ in one value, the nearest values first.

        How near is counted in values of the iterator; equally near ones come in the order of the
        iterators, smaller before larger. The others' values stay and must still be possible.

        Raises:
            InputError: ``EATSS-S018``, that is no point of the space.
        """
        self._require(point)
        numbers = {
            dimension.name: dimension.number(_plain(point[dimension.name]))
            for dimension in self.levels.dimensions
        }
        found: list[tuple[int, int, int, tuple[int, ...]]] = []
        with placed(self.space):
            for step in range(len(self.names)):
                found += self._along(step, {n: int(v or 0) for n, v in numbers.items()})
        return [self._named(own) for *_, own in sorted(found)]

    def decisions(self, point: Point) -> dict[str, Value]:
        """Return what the variant of a point decides.

        That is what ``[variant]`` says, and iterators that are called like decisions (``tile_i``)
        or like parameters of the program.

        Raises:
            InputError: ``EATSS-S018``, the point lacks a value.
        """
        lacking = [name for name in self.names if name not in point]
        if lacking:
            raise input_error(
                "EATSS-S018", f"that is no point of the space: {lacking[0]} is missing"
            )
        values = {**self.constants, **{name: _plain(point[name]) for name in self.names}}
        own = {n: values[n] for n in self.names if is_decision(n) or n in self.parameters}
        with placed(self.space):
            said = {name: evaluate_one(one, values) for name, one in self.variant.items()}
        return {**own, **said}

    def _require(self, point: Point) -> None:
        reason = self.allows(point)
        if reason is not None:
            raise input_error("EATSS-S018", f"that is no point of the space: {reason}")

    def _along(
        self, step: int, numbers: Mapping[str, int]
    ) -> list[tuple[int, int, int, tuple[int, ...]]]:
        """Return the points with another value of one iterator, with how far that is."""
        levels, name = self.levels, self.names[step]
        one = {own: np.array([number], dtype=np.int64) for own, number in numbers.items()}
        prefix = {own: one[own] for own in self.names[:step]}
        start = Block(rows=1, columns=prefix, weights=np.ones(1, dtype=np.int64))
        found: list[tuple[int, int, int, tuple[int, ...]]] = []
        places = [block.columns[name] for block in levels.expanded(step, start)]
        values = np.concatenate(places)
        here = int(np.flatnonzero(values == numbers[name])[0])
        rows = len(values)
        columns = {own: np.full(rows, number) for own, number in numbers.items()} | {name: values}
        offsets = np.arange(rows, dtype=np.int64)
        block = Block(
            rows=rows, columns=columns | {"#": offsets}, weights=np.ones(rows, dtype=np.int64)
        ).some(offsets != here)
        for later in range(step, len(self.names)):
            if later > step and block.rows:
                own = self.names[later]
                there = levels.below(later, block.columns, block.rows).has(block.columns[own])
                block = block.some(there)
            block = levels.passed(later, block)
        for row in range(block.rows):
            offset = int(block.columns["#"][row])
            point = tuple(int(block.columns[own][row]) for own in self.names)
            found.append((abs(offset - here), step, offset, point))
        return found

    def _points_of(self, block: Block) -> Iterator[dict[str, Value]]:
        columns = [block.columns[name].tolist() for name in self.names]
        for numbers in zip(*columns, strict=True):
            yield self._named(numbers)

    def _named(self, numbers: tuple[int, ...]) -> dict[str, Value]:
        return {
            dimension.name: dimension.value(number)
            for dimension, number in zip(self.levels.dimensions, numbers, strict=True)
        }


def _check_known(expression: Expression, known: set[str]) -> None:
    for name in expression.names:
        if name not in known:
            fault = expression.unknown(name, known)
            if name.startswith("card.") and not any(one.startswith("card.") for one in known):
                fault.hint = "figures of a card are known once one is named: --gpu CARD"
            raise fault


def _faults(
    space: Space, parsed: ParsedSpace, values: Mapping[str, Value], known: set[str]
) -> list[Diagnostic]:
    """Return what is wrong with names and kinds of values, found out on no rows at all."""
    findings = []
    empty = np.empty(0, dtype=np.int64)
    columns = {name: constant_of(value) for name, value in values.items()}
    columns |= {one.name: one.decoded(empty) for one in parsed.dimensions}
    conditions = {id(condition) for _, condition in parsed.filters}
    for expression in parsed.expressions():
        try:
            _check_known(expression, known)
            found = evaluate(expression, columns, 0)
            if id(expression) in conditions:
                truth(expression, found)
        except ExpressionFault as fault:
            findings.append(expression_finding(fault, origin_of(space)))
    if findings:
        return findings
    for dimension in parsed.dimensions:
        try:
            dimension.below(columns, 0)
        except ExpressionFault as fault:
            findings.append(expression_finding(fault, origin_of(space)))
    return findings


def _too_large(space: Space, values: Mapping[str, Value]) -> list[Diagnostic]:
    """Return which given constants are beyond what expressions take."""
    return [
        finding("EATSS-S014", f"{name} = {value} is over 2^53", ("constants",), origin_of(space))
        for name, value in values.items()
        if isinstance(value, int | float) and not abs(value) <= LARGEST
    ]


def _plain(value: Value) -> Value:
    """Return a value of Python for one of NumPy."""
    if isinstance(value, np.generic):
        plain: Value = value.item()
        return plain
    return value


def _not_among(name: str, value: Value) -> str:
    return f"{name} = {value!r} is not among its values"

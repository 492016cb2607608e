"""A space with its constants worked out: counted, sampled, walked.

Of decisions whose values are names, such as ``model``, a value that nobody knows is told here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean, input_error
from eatss.cards.document import finding
from eatss.choose.options import ModelName, VolumeName
from eatss.tune.counting import Progress, counted, drawn_ranks, emptiness, every_block, points_at
from eatss.tune.dimensions import Block, Dimension, Levels, ListedDimension, Test, root
from eatss.tune.document import ParsedSpace, parsed_space
from eatss.tune.expressions import (
    LARGEST,
    Expression,
    ExpressionFault,
    Place,
    constant_of,
    evaluate,
    evaluate_one,
    expression_finding,
    noted,
    origin_of,
    placed,
    truth,
)
from eatss.tune.points import Configuration, Point, Space, SpaceCount, Value, is_decision


def bind(space: Space, constants: Mapping[str, Value]) -> BoundSpace:
    """Work out the constants of a space and check all of its expressions.

    Args:
        space: the space.
        constants: values that it may name besides its own: ``card.sm_count`` and other figures of
            a card (:func:`eatss.tune.points.card_constants`), parameters of a program.

    Raises:
        InputError: ``EATSS-S0xx``, all findings, each with its place.
    """
    parsed = parsed_space(space)
    findings: list[Diagnostic] = []
    values = {name: value for name, value in constants.items() if name not in parsed.constants}
    position = {dimension.name: at for at, dimension in enumerate(parsed.dimensions)}
    everything = {*values, *parsed.constants, *position}

    for name, expression in parsed.constants.items():
        with noted(space, findings):
            _check_known(expression, everything)
            if all(used in values for used in expression.names):
                values[name] = evaluate_one(expression, values)
    columns = {name: constant_of(value) for name, value in values.items()}
    empty = np.empty(0, dtype=np.int64)
    of_no_rows = columns | {one.name: one.decoded(empty) for one in parsed.dimensions}
    if not findings:  # kinds of values are found out on no rows at all
        conditions = {id(condition) for _, condition in parsed.filters}
        for expression in parsed.expressions():
            with noted(space, findings):
                _check_known(expression, everything)
                found = evaluate(expression, of_no_rows, 0)
                if id(expression) in conditions:
                    truth(expression, found)
    if not findings:
        for dimension in parsed.dimensions:
            with noted(space, findings):
                dimension.below(of_no_rows, 0)
    findings += (
        finding("EATSS-S014", f"{name} = {value} is over 2^53", ("constants",), origin_of(space))
        for name, value in values.items()
        if isinstance(value, int | float) and not abs(value) <= LARGEST
    )
    if findings:
        raise InputError(*findings)
    used = {n for one in parsed.expressions() for n in one.names} - position.keys()
    return BoundSpace(
        space=space,
        constants=values,
        levels=Levels(
            constants={name: columns[name] for name in used},
            dimensions=parsed.dimensions,
            tests=_tests(parsed, position),
        ),
        variant=parsed.variant,
        parameters=frozenset(name for name in constants if not name.startswith("card.")),
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
            NoSolutionError: ``EATSS-S016``, an iterator has no values, or ``EATSS-S016``, filters
                leave no point: it names the one that removed the last.
        """
        count = self.count(progress)
        error = emptiness(self.space, self.levels, count)
        if error is not None:
            raise error
        return count

    def points(self) -> Iterator[Configuration]:
        """Yield all kept points: the last iterator changes fastest, each in its own order.

        They are made by blocks of some ten thousand, when they are asked for.
        """
        with placed(self.space):
            first = self.levels.passed(-1, root())
            for block in every_block(self.levels, iter([first] if first.rows else []), -1):
                yield from self._points_of(block)

    def sample(self, count: int, seed: int) -> list[Configuration]:
        """Return distinct points, drawn: each set of ``count`` kept points is equally likely.

        That is exact, whatever the size of the space: places in the order of the points are drawn
        and their points found by counting below prefixes. It takes as long as a few counts. The
        same seed gives the same points. Where fewer are kept, all of them come, in drawn order.

        Args:
            count: how many, from 1 on.
            seed: of the random numbers.

        Raises:
            InputError: ``EATSS-S018``, the count is no number of points.
            NoSolutionError: the space has no points.
        """
        if count < 1:
            message = f"a sample of {count} points is none"
            raise input_error("EATSS-S018", message, hint="ask for 1 or more")
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
        numbers = self._numbers(point)
        strange = next((name for name, number in numbers.items() if number is None), None)
        columns = {name: np.array([number or 0]) for name, number in numbers.items()}
        block = Block(columns=columns, weights=np.ones(1, dtype=np.int64))
        with placed(self.space):
            for step, name in enumerate(numbers):
                if strange is None and not self.levels.below(step, block).has(columns[name])[0]:
                    strange = name
            if strange is not None:
                return f"{strange} = {point[strange]!r} is not among its values"
            tests = self.levels.tests
            return next((one.name for one in tests if not self.levels.met(one, block)[0]), None)

    def neighbours(self, point: Point) -> list[Configuration]:
        """Return the kept points that differ in one value, the nearest values first.

        How near is counted in values of the iterator; equally near ones come in the order of the
        iterators, smaller before larger. The others' values stay and must still be possible.

        Raises:
            InputError: ``EATSS-S018``, that is no point of the space.
        """
        reason = self.allows(point)
        if reason is not None:
            raise input_error("EATSS-S018", f"that is no point of the space: {reason}")
        numbers = {name: int(number or 0) for name, number in self._numbers(point).items()}
        with placed(self.space):
            found = [one for step in range(len(numbers)) for one in self._along(step, numbers)]
        return [self._named(own) for *_, own in sorted(found)]

    def decisions(self, point: Point) -> Configuration:
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

    def _numbers(self, point: Point) -> dict[str, int | None]:
        """Return what stands for the values of a point in columns."""
        every = self.levels.dimensions
        return {one.name: one.number(_plain(point[one.name])) for one in every}

    def _along(
        self, step: int, numbers: Mapping[str, int]
    ) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
        """Yield the points with another value of one iterator, with how far that is."""
        levels, name = self.levels, self.names[step]
        one = {own: np.array([number], dtype=np.int64) for own, number in numbers.items()}
        start = Block(
            columns={own: one[own] for own in self.names[:step]},
            weights=np.ones(1, dtype=np.int64),
        )
        values = np.concatenate([grown.columns[name] for grown in levels.expanded(step, start)])
        here = int(np.flatnonzero(values == numbers[name])[0])
        columns = {own: np.full(len(values), number) for own, number in numbers.items()}
        block = Block(columns=columns | {name: values}, weights=values).numbered()
        block = block.some(block.weights != here)
        for later, own in list(enumerate(self.names))[step:]:
            if later > step and block.rows:
                block = block.some(levels.below(later, block).has(block.columns[own]))
            block = levels.passed(later, block)
        points = zip(*(block.columns[own].tolist() for own in self.names), strict=True)
        for offset, point in zip(block.weights.tolist(), points, strict=True):
            yield abs(offset - here), step, offset, point

    def _points_of(self, block: Block) -> Iterator[Configuration]:
        columns = [block.columns[name].tolist() for name in self.names]
        for numbers in zip(*columns, strict=True):
            yield self._named(numbers)

    def _named(self, numbers: tuple[int, ...]) -> Configuration:
        return {
            dimension.name: dimension.value(number)
            for dimension, number in zip(self.levels.dimensions, numbers, strict=True)
        }


def _tests(parsed: ParsedSpace, position: Mapping[str, int]) -> tuple[Test, ...]:
    """Return the filters, each after the last iterator that it names."""
    places = [
        [position[used] for used in condition.names if used in position]
        for _, condition in parsed.filters
    ]
    return tuple(
        Test(name=name, condition=condition, step=max(own, default=-1))
        for (name, condition), own in zip(parsed.filters, places, strict=True)
    )


def _check_known(expression: Expression, known: set[str]) -> None:
    for name in expression.names:
        if name not in known:
            fault = expression.unknown(name, known)
            if name.startswith("card.") and not any(one.startswith("card.") for one in known):
                fault.hint = "figures of a card are known once one is named: --gpu CARD"
            raise fault


def _plain(value: Value) -> Value:
    """Return a value of Python for one of NumPy."""
    if isinstance(value, np.generic):
        plain: Value = value.item()
        return plain
    return value


def check_known_values(bound: BoundSpace) -> None:
    """Refuse a space of a program that gives a decision a value which it does not have.

    Values that an iterator lists are looked at, and those of ``[variant]`` that follow from
    constants and one such iterator. Where a space is only counted, an iterator may be called
    ``volume`` and mean anything.

    Raises:
        InputError: ``EATSS-S018``, a finding for each such value, with its place.
    """
    faults = tuple(_faults(parsed_space(bound.space), bound.constants))
    if faults:
        raise InputError(*(expression_finding(one, origin_of(bound.space)) for one in faults))


def _faults(parsed: ParsedSpace, constants: Mapping[str, Value]) -> Iterator[ExpressionFault]:
    from eatss.choose.objectives import OBJECTIVES  # noqa: PLC0415 - what packages add is looked up

    every: Mapping[str, Sequence[str]] = {
        "model": get_args(ModelName),
        "objective": OBJECTIVES.names(),
        "volume": get_args(VolumeName),
    }
    iterators = {one.name: one for one in parsed.dimensions}
    for name, one in iterators.items():
        if name in every and name not in parsed.variant:
            yield from _listed(one, every[name])
    for name, known in every.items():
        if name in parsed.variant:
            yield from _mapped(name, parsed.variant[name], known, iterators, constants)


def _listed(dimension: Dimension, known: Sequence[str]) -> Iterator[ExpressionFault]:
    path = ("iterators", dimension.name)
    if not isinstance(dimension, ListedDimension):
        yield _fault("a number", known, path)
        return
    for value in dimension.values:
        if value not in known:
            yield _fault(repr(value), known, path, f'"{value}"' if isinstance(value, str) else "")


def _mapped(
    name: str,
    expression: Expression,
    known: Sequence[str],
    iterators: Mapping[str, Dimension],
    constants: Mapping[str, Value],
) -> Iterator[ExpressionFault]:
    points: list[Mapping[str, Value]] = [{}]
    over = [iterators[one] for one in expression.names if one in iterators]
    if over:
        (first, *others) = over
        if others or not isinstance(first, ListedDimension):
            return  # a point of the space tells
        points = [{first.name: value} for value in first.values]
    for point in points:
        with suppress(ExpressionFault):  # a filter may leave the point out
            value = evaluate_one(expression, {**constants, **point})
            if value not in known:
                yield _fault(repr(value), known, ("variant", name), expression.text)


def _fault(value: str, known: Sequence[str], path: Place, text: str = "") -> ExpressionFault:
    return ExpressionFault(
        "EATSS-S018",
        f"{path[-1]} is {value}, which it cannot be",
        end=len(text),
        hint=did_you_mean(value.strip("'"), known, "choose one of"),
        text=text,
        path=path,
    )

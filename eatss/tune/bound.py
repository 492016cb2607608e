"""A space with its constants worked out: counted, sampled, walked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from eatss.base.diagnostics import (
    InputError,
    NoSolutionError,
    input_error,
)
from eatss.base.frozen import Names
from eatss.cards.document import finding
from eatss.program.expression import Sizes
from eatss.tune.counting import ROOT, Block, Part, Test, Walk, drawn_ranks, total
from eatss.tune.document import ParsedSpace, origin_of, parsed_space
from eatss.tune.expressions import (
    LARGEST,
    Expression,
    evaluate_one,
    holds,
)
from eatss.tune.points import (
    Configuration,
    FilterCount,
    Point,
    Space,
    SpaceCount,
    Value,
    is_decision,
    nearest,
    place_in,
)


def bind(space: Space, constants: Mapping[str, Value]) -> BoundSpace:
    """Work out the constants of a space and check the names in all of its expressions.

    Args:
        space: the space.
        constants: values that it may name besides its own: ``card.sm_count`` and other figures of
            a card (:func:`eatss.tune.points.card_constants`), parameters of a program.

    Raises:
        InputError: ``EATSS-S0xx``, all findings, each with its place.
    """
    parsed = parsed_space(space)
    values = {name: value for name, value in constants.items() if name not in parsed.constants}
    findings = [
        finding("EATSS-S011", f"{name} = {value} is over 2^53", (), origin_of(space))
        for name, value in values.items()
        if isinstance(value, int | float) and not abs(value) <= LARGEST
    ]
    names = [*parsed.constants, *(dimension.name for dimension in parsed.dimensions)]
    everything = {*values, *names}
    for name, expression in parsed.constants.items():
        faults = [*_names_at_fault(name, [expression], names, everything)]
        if not faults and values.keys() >= {*expression.names}:
            try:
                values[name] = evaluate_one(expression, values)
            except InputError as error:
                faults.append(error)
        findings += (one for error in faults for one in error.diagnostics)
    others = [(own.name, own.expressions) for own in parsed.dimensions]
    for name, own in (*others, ("", (*parsed.filters.values(), *parsed.variant.values()))):
        faults = [*_names_at_fault(name, own, names, everything)]
        findings += (one for error in faults for one in error.diagnostics)
    if findings:
        raise InputError(*findings)
    position = {dimension.name: at for at, dimension in enumerate(parsed.dimensions)}
    return BoundSpace(
        space=space,
        constants=values,
        walk=Walk(constants=values, dimensions=parsed.dimensions, tests=_tests(parsed, position)),
        variant=parsed.variant,
    )


def _names_at_fault(
    name: str, expressions: Iterable[Expression], names: Sequence[str], known: set[str]
) -> Iterator[InputError]:
    """Yield names in expressions of ``name`` that nothing has, or that come later in ``names``."""
    later = names[names.index(name) :] if name in names else ()
    for expression in expressions:
        for used in expression.names:
            if used in later:
                said = f"{name} uses {used}, which is not known there"
                yield expression.unknown(used, (), said)
            elif used not in known:
                of_card = used.startswith("card.") and "card.name" not in known
                said = f"nothing is called {used}" + ": name a card, --gpu CARD" * of_card
                yield expression.unknown(used, () if of_card else known, said)


@dataclass(kw_only=True)
class BoundSpace:
    """A space whose constants have values.

    Points are dictionaries of values by the names of the iterators, in their order. Nothing of it
    changes; what was counted is kept.

    Attributes:
        space: What was bound.
        constants: The values of all constants.
        walk: Goes through its points.
        variant: What a variant decides, as expressions.
    """

    space: Space
    constants: Mapping[str, Value]
    walk: Walk = field(repr=False)
    variant: Mapping[str, Expression] = field(repr=False)

    @property
    def names(self) -> Names:
        """The iterators, in order."""
        return tuple(dimension.name for dimension in self.walk.dimensions)

    def count(self) -> SpaceCount:
        """Return how many points there are and what each filter removes; exact, counted once.

        A filter removes what meets those that are tried before it and does not meet it.

        Raises:
            InputError: an expression cannot be computed for some values.
        """
        began = time.perf_counter()
        raw, removed, left = self.walk.counts
        return SpaceCount(
            name=self.space.name,
            raw=raw,
            kept=prod(left),
            filters=tuple(
                FilterCount(name=one.name, condition=one.condition, removed=removed[one.name])
                for one in self.space.filters
            ),
            seconds=time.perf_counter() - began,
        )

    def __len__(self) -> int:
        """Return the number of kept points; beyond ``sys.maxsize`` use ``count().kept``."""
        return min(self.count().kept, sys.maxsize)

    def require_points(self) -> SpaceCount:
        """Return the count.

        Raises:
            NoSolutionError: ``EATSS-S016``, an iterator has no values, or filters leave no point:
                it names the one that removed the last.
        """
        count = self.count()
        if count.kept:
            return count
        if count.raw:
            removed = {one.name: one.removed for one in count.filters}
            last = [test.name for test in self.walk.tests if removed[test.name]][-1]
            message = f'no point is left: "{last}" removes the last {removed[last]} of {count.raw}'
            path, hint = ("filters", last), "eatss space counts what each filter removes"
        else:
            steps = self.walk.whole.steps
            own = (Part(steps=steps[: at + 1]) for at in steps)
            empty = next(one for one in own if not total(self.walk.below(one, ROOT)))
            path, hint = ("iterators", self.names[empty.steps[-1]]), None
            message = f"{path[1]} has no values"
        raise NoSolutionError(finding("EATSS-S016", message, path, origin_of(self.space), hint))

    def points(self) -> Iterator[Configuration]:
        """Yield all kept points: the last iterator changes fastest, each in its own order.

        They are made by blocks of some ten thousand, when they are asked for.
        """
        for block in self.walk.points():
            yield from self._points_of(block)

    def sample(self, count: int, seed: int) -> list[Configuration]:
        """Return distinct points, drawn: each set of ``count`` kept points is equally likely.

        That is exact, whatever the size of the space: places in the order of the points are drawn
        and their points found by counting below prefixes. The same seed gives the same points.
        Where fewer are kept, all of them come, in drawn order.

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
        ranks = drawn_ranks(self.require_points().kept, count, seed)
        return list(self._points_of(self.walk.at(ranks)))

    def allows(self, point: Point) -> str | None:
        """Return ``None`` for a point of the space, else why it is none.

        That is the name of a filter that it does not meet, or what is wrong with its values.
        """
        wrong = [name for name in point if name not in self.names]
        if wrong:
            return f"{wrong[0]} is no iterator of the space"
        missing = [name for name in self.names if name not in point]
        if missing:
            return f"{missing[0]} has no value"
        known = self._known(point)
        for name, values in zip(self.names, self._values_along(point), strict=True):
            if place_in(values, known[name]) is None:
                return f"{name} = {known[name]!r} is not among its values"
        for test in self.walk.tests:
            if not holds(test.condition, known, 1).all():
                return test.name
        return None

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
        own = {name: _plain(point[name]) for name in self.names}
        return nearest(own, self._values_along(own), self.allows)

    def decisions(self, point: Point) -> Configuration:
        """Return what the variant of a point decides.

        That is what ``[variant]`` says, and iterators that are called like decisions (``tile_i``).

        Raises:
            InputError: ``EATSS-S018``, the point lacks a value.
        """
        lacking = [name for name in self.names if name not in point]
        if lacking:
            raise input_error(
                "EATSS-S018", f"that is no point of the space: {lacking[0]} is missing"
            )
        values = self._known(point)
        own = {n: values[n] for n in self.names if is_decision(n)}
        return {**own, **{name: evaluate_one(one, values) for name, one in self.variant.items()}}

    def _values_along(self, point: Point) -> Iterator[Sequence[Value]]:
        """Yield the values of each iterator below those that a point has before it."""
        known = self._known(point)
        for dimension in self.walk.dimensions:
            yield dimension.values(known)

    def _known(self, point: Point) -> Configuration:
        """Return the values of all constants, and of the iterators at a point."""
        return {**self.constants, **{name: _plain(point[name]) for name in self.names}}

    def _points_of(self, block: Block) -> Iterator[Configuration]:
        columns = [block.columns[name].tolist() for name in self.names]
        for values in zip(*columns, strict=True):
            yield dict(zip(self.names, values, strict=True))


def _tests(parsed: ParsedSpace, position: Sizes) -> tuple[Test, ...]:
    """Return the filters, each after the last iterator that it names, in that order."""
    found = []
    for name, condition in parsed.filters.items():
        places = [position[used] for used in condition.names if used in position]
        found.append(Test(name=name, condition=condition, step=max(places, default=-1)))
    return tuple(sorted(found, key=lambda test: test.step))


def _plain(value: Value) -> Value:
    """Return a value of Python for one of NumPy."""
    if isinstance(value, np.generic):
        plain: Value = value.item()
        return plain
    return value

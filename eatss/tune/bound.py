"""A space with its constants worked out: counted, sampled, walked."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import cast

from eatss.base.diagnostics import (
    Diagnostic,
    InputError,
    NoSolutionError,
    input_error,
)
from eatss.base.frozen import Names
from eatss.cards.document import Origin, finding
from eatss.tune.counting import ARGUMENTS, ROOT, Dimension, Part, Test, Walk, drawn_ranks
from eatss.tune.document import HOW_TO_ITERATE
from eatss.tune.expressions import (
    Expression,
    evaluate,
    holds,
    name_fault,
    parse_expression,
)
from eatss.tune.points import (
    Configuration,
    FilterCount,
    Iterates,
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
    read = _Read(space, constants)
    values = dict(constants)
    for name, text in space.constants.items():
        for expression in read.expressions([text], "constants", name):
            if not read.findings:
                with read.noting():
                    values[name] = evaluate(expression, values)
        read.add("constants", name)
    dimensions = []
    for name, given in space.iterators.items():
        dimensions.append(read.dimension(name, given))
        read.add("iterators", name)
    position = {dimension.name: at for at, dimension in enumerate(dimensions)}
    tests = [
        Test(name=name, condition=own, step=max(position.get(n, -1) for n in ("", *own.names)))
        for name, text in space.filters.items()
        for own in read.expressions([text], "filters", name)
    ]
    variant = {
        name: own
        for name, text in space.variant.items()
        for own in read.expressions([text], "variant", name)
    }
    for name in variant:
        read.add("variant", name)
    if not dimensions:
        read.note("the space has no iterators", "iterators")
    if read.findings:
        raise InputError(*read.findings)
    tests.sort(key=lambda test: test.step)
    return BoundSpace(
        space=space,
        origin=read.origin,
        constants=values,
        used=frozenset(read.used),
        walk=Walk(constants=values, dimensions=tuple(dimensions), tests=tuple(tests)),
        variant=variant,
    )


class _Read:
    """What is read of a space so far: names that are known, and findings."""

    def __init__(self, space: Space, constants: Iterable[str]) -> None:
        label = space.source or f"the space {space.name}"
        self.origin = Origin(label=label, text=space.text or None)
        self.findings: list[Diagnostic] = []
        self.used: set[str] = set()
        self._known = {*constants}
        self._own: set[str] = set()

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what is wrong, and go on."""
        try:
            yield
        except InputError as error:
            self.findings += error.diagnostics

    def note(self, message: str, *path: str) -> None:
        """Note what is wrong at a place."""
        hint = HOW_TO_ITERATE if path[0] == "iterators" else None
        self.findings.append(finding("EATSS-S004", message, path, self.origin, hint))

    def expressions(self, given: Iterable[Value], *path: str) -> Iterator[Expression]:
        """Yield the expressions that are right, and name what is known."""
        for value in given:
            with self.noting():
                text = value if isinstance(value, str) else repr(value)
                found = parse_expression(text, path, self.origin, self._known)
                self.used.update(found.names)
                yield found

    def dimension(self, name: str, given: Iterates) -> Dimension:
        """Return an iterator."""
        if not isinstance(given, Mapping):
            if not given or len({*map(repr, given)}) < len(given):
                self.note("a list has values, each once", "iterators", name)
            return Dimension(name=name, listed=given)
        keys: dict[str, tuple[Value, ...]]
        if {"start", "stop"} <= {*given} <= {"start", "stop", "step"}:
            over, ranged = "range", cast("dict[str, Value]", {"step": 1} | dict(given))
            keys = {key: (ranged[key],) for key in ("start", "stop", "step")}
        else:
            over, own = next(iter(given.items()), ("", ()))
            several = own if isinstance(own, tuple) else (own,)
            keys = {over: several}
            if len(given) != 1 or len(several) != len(ARGUMENTS.get(over, ())):
                known = ", ".join(f"{one} of {', '.join(own)}" for one, own in ARGUMENTS.items())
                said = f"{name} is no list of values, no range, and none of: {known}"
                self.note(said, "iterators", name)
        every = (self.expressions(own, "iterators", name, key) for key, own in keys.items())
        return Dimension(name=name, over=over, expressions=tuple(chain.from_iterable(every)))

    def add(self, table: str, name: str) -> None:
        """Let what comes later use a name."""
        fault = "two things are called so" if name in self._own else name_fault(name)
        if fault is not None:
            self.note(f'nothing can be called "{name}": {fault}', table, name)
        self._known.add(name)
        self._own.add(name)


@dataclass(kw_only=True)
class BoundSpace:
    """A space whose constants have values.

    Points are dictionaries of values by the names of the iterators, in their order. Nothing of it
    changes; what was counted is kept.

    Attributes:
        space: What was bound.
        constants: The values of all constants.
        used: The names that its expressions use.
        origin: What messages about it name.
        walk: Goes through its points.
        variant: What a variant decides, as expressions.
    """

    space: Space
    constants: Mapping[str, Value]
    used: frozenset[str]
    origin: Origin = field(repr=False)
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
        raw, removed, left = self.walk.counts
        return SpaceCount(
            name=self.space.name,
            raw=raw,
            kept=prod(left),
            filters=tuple(
                FilterCount(name=name, condition=str(condition), removed=removed[name])
                for name, condition in self.space.filters.items()
            ),
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
        removed = {one.name: one.removed for one in count.filters if one.removed}
        last = next((x.name for x in reversed(self.walk.tests) if x.name in removed), "")
        if count.raw:
            message = f'no point is left: "{last}" removes the last {removed[last]} of {count.raw}'
            path, hint = ("filters", last), "eatss space counts what each filter removes"
        else:
            parts = (Part(steps=tuple(range(at + 1))) for at in range(len(self.names)))
            empty = next(at for at, own in enumerate(parts) if not self.walk.raw(own, ROOT))
            path, hint = ("iterators", self.names[empty]), None
            message = f"{path[1]} has no values"
        raise NoSolutionError(finding("EATSS-S016", message, path, self.origin, hint))

    def points(self) -> Iterator[Configuration]:
        """Return all kept points: the last iterator changes fastest, each in its own order."""
        return self.walk.points()

    def sample(self, count: int, seed: int) -> list[Configuration]:
        """Return distinct points, drawn: each set of ``count`` kept points is equally likely.

        That is exact, whatever the size of the space: numbers of points are drawn, and what they
        are in each part that nothing ties to the others is found by walking it. The same seed
        gives the same points. Where fewer are kept, all of them come, in drawn order.

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
        points = self.walk.at(drawn_ranks(self.require_points().kept, count, seed))
        return [{name: point[name] for name in self.names} for point in points]

    def allows(self, point: Point) -> str | None:
        """Return ``None`` for a point of the space, else why it is none.

        That is the name of a filter that it does not meet, or what is wrong with its values.
        """
        if unlike := {*point} ^ {*self.names}:
            names = ", ".join(self.names)
            return f"it differs in {min(unlike)} from a point, which has {names}"
        known = self._known(point)
        for name, values in zip(self.names, self._values_along(point), strict=True):
            if place_in(values, known[name]) is None:
                return f"{name} = {known[name]!r} is not among its values"
        for test in self.walk.tests:
            if not holds(test.condition, known):
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
        own = {name: point[name] for name in self.names}
        return nearest(own, self._values_along(own), self.allows)

    def decisions(self, point: Point) -> Configuration:
        """Return what the variant of a point decides.

        That is what ``[variant]`` says, and iterators that are called like decisions (``tile_i``).
        """
        values = self._known(point)
        own = {n: values[n] for n in self.names if is_decision(n)}
        return {**own, **{name: evaluate(one, values) for name, one in self.variant.items()}}

    def _values_along(self, point: Point) -> Iterator[Sequence[Value]]:
        """Yield the values of each iterator below those that a point has before it."""
        known = self._known(point)
        for dimension in self.walk.dimensions:
            yield dimension.values(known)

    def _known(self, point: Point) -> Configuration:
        """Return the values of all constants, and of the iterators at a point."""
        return {**self.constants, **{name: point[name] for name in self.names}}

"""A space with its expressions parsed and its names checked: what can be said without a card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Iterator as Iterating
from dataclasses import dataclass, field
from functools import partial

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.base.frozen import frozen
from eatss.cards.findings import finding
from eatss.tune.point import Value
from eatss.tune.space.dimensions import (
    GENERATORS,
    Dimension,
    GeneratedDimension,
    ListedDimension,
    RangeDimension,
)
from eatss.tune.space.evaluation import column_of
from eatss.tune.space.expressions import (
    LARGEST,
    Expression,
    Place,
    expression_finding,
    name_fault,
    noted,
    origin_of,
    parse_expression,
)
from eatss.tune.space.nouns import Generated, Iterator, Listed, Range, Space


@frozen
class ParsedSpace:
    """What a space says, parsed; ``constants`` in an order in which they can be worked out."""

    constants: Mapping[str, Expression]
    dimensions: tuple[Dimension, ...]
    filters: tuple[tuple[str, Expression], ...]
    variant: Mapping[str, Expression]

    def expressions(self) -> Iterating[Expression]:
        """Yield all expressions but those of the constants."""
        for dimension in self.dimensions:
            yield from dimension.expressions
        yield from (condition for _, condition in self.filters)
        yield from self.variant.values()


def parsed_space(space: Space) -> ParsedSpace:
    """Parse a space and check its names.

    Raises:
        InputError: ``EATSS-S005`` to ``S012``, all findings.
    """
    reading = _Reading(space)
    reading.check_names()
    constants = reading.named("constants", space.constants)
    dimensions = [found for one in space.iterators if (found := reading.dimension(one))]
    filters = reading.named("filters", ((one.name, one.condition) for one in space.filters))
    variant = reading.named("variant", space.variant)
    reading.check_order(constants, dimensions)
    ordered = reading.in_order(constants)
    if reading.findings:
        raise InputError(*reading.findings)
    return ParsedSpace(
        constants=ordered,
        dimensions=tuple(dimensions),
        filters=tuple(filters.items()),
        variant=variant,
    )


@dataclass(slots=True)
class _Reading:
    """A space that is read, and what was found wrong so far."""

    space: Space
    findings: list[Diagnostic] = field(default_factory=list)

    def wrong(self, code: str, message: str, path: Place, hint: str | None = None) -> None:
        """Note a finding."""
        self.findings.append(finding(code, message, path, origin_of(self.space), hint))

    def expressions(self, texts: Iterable[tuple[str, tuple[str, ...]]]) -> list[Expression]:
        """Return expressions; note why one is none."""
        found = []
        for text, path in texts:
            with noted(self.space, self.findings):
                found.append(parse_expression(text, path))
        return found

    def named(self, table: str, texts: Iterable[tuple[str, str]]) -> dict[str, Expression]:
        """Return the expressions of a table by name, without those that are none."""
        found = self.expressions((text, (table, name)) for name, text in texts)
        return {one.path[1]: one for one in found}

    def check_names(self) -> None:
        """Check that each name can be one and stands for one thing."""
        space = self.space
        seen: dict[str, str] = {}
        places = (
            *(("constants", "a constant", name) for name, _ in space.constants),
            *(("iterators", "an iterator", one.name) for one in space.iterators),
            *(("variant", "a decision", name) for name, _ in space.variant),
        )
        for table, words, name in places:
            fault = name_fault(name)
            if fault is not None:
                self.wrong("EATSS-S006", f'nothing can be called "{name}": {fault}', (table, name))
            elif name in seen:
                message = f"{name} is {seen[name]} and {words}"
                self.wrong("EATSS-S006", message, (table, name), "give each a name of its own")
            seen.setdefault(name, words)
        filters = [one.name for one in space.filters]
        for name in dict.fromkeys(name for name in filters if filters.count(name) > 1):
            self.wrong("EATSS-S006", f'two filters are called "{name}"', ("filters", name))
        if not space.iterators:
            hint = "write [iterators] with a line like tile_i = [8, 16, 32]"
            self.wrong("EATSS-S005", "the space has no iterators", ("iterators",), hint)

    def dimension(self, one: Iterator) -> Dimension | None:
        """Return an iterator with its values' expressions parsed."""
        path: Place = ("iterators", one.name)
        match one.over:
            case Listed(values=values):
                return self._listed(one.name, values, path)
            case Range():
                texts = [
                    (getattr(one.over, key), (*path, key)) for key in ("start", "stop", "step")
                ]
                made: Callable[..., Dimension] = RangeDimension
            case Generated(generator=name, arguments=arguments):
                path = (*path, name)
                if not self._can_generate(name, len(arguments), path):
                    return None
                texts = [(text, path) for text in arguments]
                made = partial(GeneratedDimension, generator=name)
        parsed = tuple(self.expressions(texts))
        return made(name=one.name, expressions=parsed) if len(parsed) == len(texts) else None

    def _can_generate(self, name: str, given: int, path: Place) -> bool:
        """Note why a generator takes no such arguments, if it does not."""
        known = GENERATORS.get(name)
        if known is None:
            message, hint = f"there is no generator {name}", f"known: {', '.join(GENERATORS)}"
        elif given == len(known.arguments):
            return True
        else:
            message = f"{name} takes {len(known.arguments)}, not {given}"
            hint = f"{name} = [{', '.join(known.arguments)}]"
        self.wrong("EATSS-S008", message, path, hint)
        return False

    def _listed(self, name: str, values: tuple[Value, ...], path: Place) -> Dimension | None:
        if not values:
            self.wrong("EATSS-S016", f"{name} has no values", path, "list at least one")
            return None
        for at, value in enumerate(values):
            fault = _value_fault(value)
            if fault is None and value in values[:at]:
                fault = "EATSS-S006", f"{name} has the value {value!r} twice"
            if fault is not None:
                self.wrong(*fault, path)
                return None
        return ListedDimension(name=name, values=values, column=column_of(values))

    def check_order(self, constants: Mapping[str, Expression], dimensions: list[Dimension]) -> None:
        """Check that iterators use earlier ones only, and constants none."""
        order = [one.name for one in self.space.iterators]
        for name, expression in constants.items():
            for used in expression.names:
                if used in order:
                    message = f"the constant {name} uses the iterator {used}"
                    hint = "constants are the same for all points: write it in a filter"
                    self._misplaced(expression, used, message, hint)
        for dimension in dimensions:
            name = dimension.name
            for expression in dimension.expressions:
                for used in expression.names:
                    if used == name:
                        message = f"the values of {name} depend on {name} itself"
                        self._misplaced(expression, used, message, None)
                    elif used in order[order.index(name) :]:
                        message = f"{name} uses {used}, which comes after it"
                        self._misplaced(expression, used, message, f"write {used} before {name}")

    def _misplaced(self, expression: Expression, used: str, message: str, hint: str | None) -> None:
        fault = expression.unknown(used, ())
        fault.code, fault.message, fault.hint = "EATSS-S011", message, hint
        self.findings.append(expression_finding(fault, origin_of(self.space)))

    def in_order(self, constants: Mapping[str, Expression]) -> dict[str, Expression]:
        """Return constants so that each comes after those that it uses."""
        ordered: dict[str, Expression] = {}
        for first in constants:
            trail = {first: None}
            while trail:
                name = next(reversed(trail))
                waiting = [n for n in constants[name].names if n in constants and n not in ordered]
                if not waiting:
                    ordered.setdefault(name, constants[name])
                    trail.popitem()
                elif waiting[0] in trail:
                    names = list(trail)
                    circle = [*names[names.index(waiting[0]) :], waiting[0]]
                    message = f"constants depend on each other: {' → '.join(circle)}"
                    self.wrong("EATSS-S010", message, ("constants", waiting[0]))
                    return ordered
                else:
                    trail[waiting[0]] = None
        return ordered


def _value_fault(value: object) -> tuple[str, str] | None:
    """Return why something is no value of an iterator."""
    if isinstance(value, str):
        return None if value.isprintable() else ("EATSS-S005", f"{value!r} is not printable")
    if not isinstance(value, bool | int | float):
        return "EATSS-S005", f"{value!r} is neither a number, nor a text, nor true or false"
    if not abs(value) <= LARGEST:
        return "EATSS-S014", f"the value {value} is over 2^53"
    return None

"""A space with its expressions parsed and its names checked: what can be said without a card."""

from __future__ import annotations

from collections.abc import Iterator as Iterating
from collections.abc import Mapping
from dataclasses import dataclass, field

from eatss.diagnostics import Diagnostic, InputError
from eatss.frozen import frozen
from eatss.gpu.findings import finding
from eatss.point import Value
from eatss.space.dimensions import (
    GENERATORS,
    Dimension,
    GeneratedDimension,
    ListedDimension,
    RangeDimension,
)
from eatss.space.evaluation import column_of
from eatss.space.expressions import (
    LARGEST,
    Expression,
    ExpressionFault,
    expression_finding,
    name_fault,
    origin_of,
    parse_expression,
)
from eatss.space.nouns import Generated, Iterator, Listed, Range, Space


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
            if isinstance(dimension, RangeDimension):
                yield from (dimension.start, dimension.stop, dimension.step)
            elif isinstance(dimension, GeneratedDimension):
                yield from dimension.arguments
        yield from (condition for _, condition in self.filters)
        yield from self.variant.values()


def parsed_space(space: Space) -> ParsedSpace:
    """Parse a space and check its names.

    Raises:
        InputError: ``EATSS-S005`` to ``S012``, all findings.
    """
    reading = _Reading(space)
    reading.check_names()
    constants = {
        name: expression
        for name, text in space.constants
        if (expression := reading.expression(text, ("constants", name))) is not None
    }
    dimensions = [found for one in space.iterators if (found := reading.dimension(one))]
    filters = tuple(
        (one.name, condition)
        for one in space.filters
        if (condition := reading.expression(one.condition, ("filters", one.name))) is not None
    )
    variant = {
        name: expression
        for name, text in space.variant
        if (expression := reading.expression(text, ("variant", name))) is not None
    }
    reading.check_order(constants, dimensions)
    ordered = reading.in_order(constants)
    if reading.findings:
        raise InputError(*reading.findings)
    return ParsedSpace(
        constants=ordered, dimensions=tuple(dimensions), filters=filters, variant=variant
    )


@dataclass(slots=True)
class _Reading:
    """A space that is read, and what was found wrong so far."""

    space: Space
    findings: list[Diagnostic] = field(default_factory=list)

    def wrong(
        self, code: str, message: str, path: tuple[str, ...], hint: str | None = None
    ) -> None:
        """Note a finding."""
        self.findings.append(finding(code, message, path, origin_of(self.space), hint))

    def expression(self, text: str, path: tuple[str, ...]) -> Expression | None:
        """Return an expression, or note why it is none."""
        try:
            return parse_expression(text, path)
        except ExpressionFault as fault:
            self.findings.append(expression_finding(fault, origin_of(self.space)))
            return None

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
        path = ("iterators", one.name)
        match one.over:
            case Listed(values=values):
                return self._listed(one.name, values, path)
            case Range():
                start = self.expression(one.over.start, (*path, "start"))
                stop = self.expression(one.over.stop, (*path, "stop"))
                step = self.expression(one.over.step, (*path, "step"))
                if start is None or stop is None or step is None:
                    return None
                return RangeDimension(name=one.name, start=start, stop=stop, step=step)
            case Generated():
                return self._generated(one.name, one.over, path)

    def _generated(self, name: str, over: Generated, path: tuple[str, ...]) -> Dimension | None:
        path = (*path, over.generator)
        known = GENERATORS.get(over.generator)
        if known is None:
            hint = f"known: {', '.join(GENERATORS)}"
            self.wrong("EATSS-S008", f"there is no generator {over.generator}", path, hint)
            return None
        if len(over.arguments) != len(known.arguments):
            hint = f"{over.generator} = [{', '.join(known.arguments)}]"
            message = f"{over.generator} takes {len(known.arguments)}, not {len(over.arguments)}"
            self.wrong("EATSS-S008", message, path, hint)
            return None
        arguments = [self.expression(text, path) for text in over.arguments]
        parsed = tuple(one for one in arguments if one is not None)
        if len(parsed) < len(arguments):
            return None
        return GeneratedDimension(name=name, generator=over.generator, arguments=parsed)

    def _listed(
        self, name: str, values: tuple[Value, ...], path: tuple[str, ...]
    ) -> Dimension | None:
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
            at = order.index(dimension.name)
            for expression in _expressions(dimension):
                for used in expression.names:
                    if used in order[at:]:
                        self._later(expression, dimension.name, used)

    def _later(self, expression: Expression, name: str, used: str) -> None:
        if used == name:
            self._misplaced(expression, used, f"the values of {name} depend on {name} itself", None)
            return
        message = f"{name} uses {used}, which comes after it"
        self._misplaced(expression, used, message, f"write {used} before {name}")

    def _misplaced(self, expression: Expression, used: str, message: str, hint: str | None) -> None:
        fault = expression.unknown(used, ())
        fault.code, fault.message, fault.hint = "EATSS-S011", message, hint
        self.findings.append(expression_finding(fault, origin_of(self.space)))

    def in_order(self, constants: Mapping[str, Expression]) -> dict[str, Expression]:
        """Return constants so that each comes after those that it uses."""
        ordered: dict[str, Expression] = {}
        state: dict[str, int] = {}
        for first in constants:
            trail = [first]
            while trail:
                name = trail[-1]
                state[name] = 1
                waiting = [n for n in constants[name].names if n in constants and n not in ordered]
                if not waiting:
                    ordered.setdefault(name, constants[name])
                    state[trail.pop()] = 2
                elif state.get(waiting[0]) == 1:
                    circle = [*trail[trail.index(waiting[0]) :], waiting[0]]
                    message = f"constants depend on each other: {' → '.join(circle)}"
                    self.wrong("EATSS-S010", message, ("constants", waiting[0]))
                    return ordered
                else:
                    trail.append(waiting[0])
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


def _expressions(dimension: Dimension) -> tuple[Expression, ...]:
    if isinstance(dimension, RangeDimension):
        return dimension.start, dimension.stop, dimension.step
    return dimension.arguments if isinstance(dimension, GeneratedDimension) else ()

"""Documents of search spaces, TOML or plain mappings, to ``Space`` and back; parsed and checked.

All findings about a document come at once, each with its place in the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Iterator as Iterating
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean, input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.cards.document import Origin, finding, place_at
from eatss.cards.load import LONG_KEY, MAX_KEY_PARTS, SYNTAX_PLACE
from eatss.tune.dimensions import (
    GENERATORS,
    Dimension,
    GeneratedDimension,
    ListedDimension,
    RangeDimension,
)
from eatss.tune.expressions import (
    LARGEST,
    Expression,
    Place,
    column_of,
    expression_finding,
    name_fault,
    noted,
    origin_of,
    parse_expression,
)
from eatss.tune.points import RANGE, Filter, Generated, Iterator, Listed, Range, Space, Value


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
        InputError: ``EATSS-S004`` to ``S011``, all findings.
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
                self.wrong("EATSS-S004", f'nothing can be called "{name}": {fault}', (table, name))
            elif name in seen:
                message = f"{name} is {seen[name]} and {words}"
                self.wrong("EATSS-S004", message, (table, name), "give each a name of its own")
            seen.setdefault(name, words)
        filters = [one.name for one in space.filters]
        for name in dict.fromkeys(name for name in filters if filters.count(name) > 1):
            self.wrong("EATSS-S004", f'two filters are called "{name}"', ("filters", name))
        if not space.iterators:
            hint = "write [iterators] with a line like tile_i = [8, 16, 32]"
            self.wrong("EATSS-S004", "the space has no iterators", ("iterators",), hint)

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
        self.wrong("EATSS-S007", message, path, hint)
        return False

    def _listed(self, name: str, values: tuple[Value, ...], path: Place) -> Dimension | None:
        if not values:
            self.wrong("EATSS-S016", f"{name} has no values", path, "list at least one")
            return None
        for at, value in enumerate(values):
            fault = _value_fault(value)
            if fault is None and value in values[:at]:
                fault = "EATSS-S004", f"{name} has the value {value!r} twice"
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
                    self.wrong("EATSS-S004", message, ("constants", waiting[0]))
                    return ordered
                else:
                    trail[waiting[0]] = None
        return ordered


def _value_fault(value: object) -> tuple[str, str] | None:
    """Return why something is no value of an iterator."""
    if isinstance(value, str):
        return None if value.isprintable() else ("EATSS-S004", f"{value!r} is not printable")
    if not isinstance(value, bool | int | float):
        return "EATSS-S004", f"{value!r} is neither a number, nor a text, nor true or false"
    if not abs(value) <= LARGEST:
        return "EATSS-S014", f"the value {value} is over 2^53"
    return None


MAX_FILE_BYTES = 1 << 20
_KEYS = ("name", "constants", "iterators", "filters", "variant")
_FORMS = "[8, 16, 32], { start = 8, stop = 64, step = 8 } or { powers = [2, 8, 64] }"


def read_space(path: str | os.PathLike[str]) -> Space:
    """Return the space of a TOML file.

    Args:
        path: Of the file.

    Raises:
        InputError: ``EATSS-S001`` it cannot be read, or it is no TOML,
            ``EATSS-S004`` to ``S011`` what it says is wrong; all findings with their places.
    """
    try:
        text = read_regular(path, MAX_FILE_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise input_error("EATSS-S001", f"cannot read the space {path}: {reason}") from None
    return space_from_text(text, os.fspath(path))


def space_from_text(text: str, source: str) -> Space:
    """Return the space of a TOML text; ``source`` is what messages call it.

    Raises:
        InputError: as :func:`read_space`.
    """
    line, column = len(text.splitlines()), 1
    long_key = LONG_KEY.search(text)
    if long_key is not None:
        line = text.count("\n", 0, long_key.start()) + 1
        message = f"a key of more than {MAX_KEY_PARTS} parts is none of a space"
    else:
        try:
            return space_from_document(tomllib.loads(text), source, text=text)
        except RecursionError:
            raise input_error("EATSS-S001", f"{source} is nested too deeply for a space") from None
        except ValueError as error:
            message = f"not valid TOML: {SYNTAX_PLACE.sub('', str(error))}"
            found = SYNTAX_PLACE.search(str(error))
            if found is not None and found[1] is not None:
                line, column = int(found[1]), int(found[2])
    place = place_at(text, line, column, source)
    raise InputError(
        Diagnostic(
            code="EATSS-S001", message=message, span=place.span, source_line=place.source_line
        )
    )


def space_from_document(document: Mapping[str, Any], source: str = "", *, text: str = "") -> Space:
    """Return the space of a mapping as TOML would give it.

    Args:
        document: with ``name``, ``iterators`` and, if any, ``constants``, ``filters``, ``variant``.
        source: what messages call it.
        text: the TOML text that the mapping was read from, so that messages point into it.

    Raises:
        InputError: ``EATSS-S004`` to ``S011``, all findings.
    """
    reading = _Document(document, Origin(label=source or "space", text=text or None))
    space = Space(
        name=reading.name(),
        constants=reading.expressions("constants"),
        iterators=reading.iterators(),
        filters=tuple(
            Filter(name=name, condition=condition)
            for name, condition in reading.expressions("filters")
        ),
        variant=reading.expressions("variant"),
        source=source,
        text=text,
    )
    if reading.findings:
        raise InputError(*reading.findings)
    parsed_space(space)
    return space


def space_text(space: Space) -> str:
    """Return the TOML of a space: :func:`read_space` reads the same space from it."""
    tables = (
        ("constants", [(name, _expression(text)) for name, text in space.constants]),
        ("iterators", [(one.name, _over(one.over)) for one in space.iterators]),
        ("filters", [(one.name, _quoted(one.condition)) for one in space.filters]),
        ("variant", [(name, _expression(text)) for name, text in space.variant]),
    )
    lines = [f"name = {_quoted(space.name)}"]
    for table, rows in tables:
        if rows or table == "iterators":
            lines += ["", f"[{table}]", *(f"{_key(name)} = {text}" for name, text in rows)]
    return "\n".join(lines) + "\n"


class _Document:
    """A document that is read, and what was found wrong so far."""

    def __init__(self, document: Mapping[str, Any], origin: Origin) -> None:
        self.findings: list[Diagnostic] = []
        self.origin = origin
        self.document = document
        if not isinstance(document, Mapping):
            self.wrong("EATSS-S004", f"a space is a table, not {document!r}", ())
            self.document = {}
        for key in self.document:
            if key not in _KEYS:
                self.wrong(
                    "EATSS-S004",
                    f"unknown key {key}",
                    (str(key),),
                    did_you_mean(str(key), _KEYS, "known here"),
                )

    def wrong(self, code: str, message: str, path: Place, hint: str | None = None) -> None:
        """Note a finding."""
        self.findings.append(finding(code, message, path, self.origin, hint))

    def name(self) -> str:
        """Return what the space is called."""
        name = self.document.get("name")
        if isinstance(name, str) and name and name.isprintable():
            return name
        words = "name is missing" if name is None else f"name is {name!r}, not a text"
        self.wrong("EATSS-S004", words, ("name",), 'write name = "dgemm"')
        return "space"

    def table(self, key: str) -> Mapping[str, Any]:
        """Return a table of the document, an empty one where it is missing."""
        table = self.document.get(key, {})
        if isinstance(table, Mapping):
            return table
        self.wrong("EATSS-S004", f"{key} is no table", (key,), f"write [{key}] and a line for each")
        return {}

    def expressions(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return expressions by name."""
        table = self.table(key)
        found = {str(name): self.expression(table[name], (key, str(name))) for name in table}
        return tuple((name, text) for name, text in found.items() if text is not None)

    def expression(self, value: object, path: Place) -> str | None:
        """Return the text of an expression: a text, or a number."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return repr(value)
        message = f"{'.'.join(path)} is neither an expression nor a number"
        hint = _dotted(path, value) if isinstance(value, Mapping) else None
        self.wrong("EATSS-S004", message, path, hint)
        return None

    def all_of(self, values: Iterable[tuple[object, tuple[str, ...]]]) -> tuple[str, ...] | None:
        """Return the texts of several expressions, if all are some."""
        texts = [self.expression(value, path) for value, path in values]
        found = tuple(text for text in texts if text is not None)
        return found if len(found) == len(texts) else None

    def iterators(self) -> tuple[Iterator, ...]:
        """Return the iterators in order."""
        if "iterators" not in self.document:
            hint = "write [iterators] with a line like tile_i = [8, 16, 32]"
            self.wrong("EATSS-S004", "[iterators] is missing", ("iterators",), hint)
        found = {str(name): self._over(str(name), v) for name, v in self.table("iterators").items()}
        return tuple(
            Iterator(name=name, over=over) for name, over in found.items() if over is not None
        )

    def _over(self, name: str, value: object) -> Range | Listed | Generated | None:
        path = ("iterators", name)
        if isinstance(value, list | tuple):
            strange = [one for one in value if not isinstance(one, bool | int | float | str)]
            if not strange:
                return Listed(values=tuple(value))
            message = f"{name} lists {_shown(strange[0])}, which is no value"
            self.wrong("EATSS-S004", message, path, "list numbers, texts, true or false")
            return None
        if not isinstance(value, Mapping):
            message = f"{name} = {_shown(value)} is no list of values, no range and no generator"
            self.wrong("EATSS-S004", message, path, f"write {_FORMS}")
            return None
        generators = [key for key in value if key in GENERATORS]
        if generators and len(value) == 1:
            (key, given), *_ = value.items()
            arguments = given if isinstance(given, list | tuple) else [given]
            texts = self.all_of((one, (*path, key)) for one in arguments)
            return None if texts is None else Generated(generator=key, arguments=texts)
        if not self._is_range(value, generators, path):
            return None
        texts = self.all_of((value.get(key, 1), (*path, key)) for key in RANGE)
        return None if texts is None else Range(**dict(zip(RANGE, texts, strict=True)))

    def _is_range(self, value: Mapping[str, Any], generators: Sequence[str], path: Place) -> bool:
        """Note what keys a range has that it cannot have, or which it lacks, if any."""
        name = path[-1]
        strange = [key for key in value if key not in (generators or RANGE)]
        for key in strange:
            hint = did_you_mean(str(key), generators or (*RANGE, *GENERATORS), "known here")
            if isinstance(value[key], Mapping) and not {*value} & {*RANGE}:
                hint = _dotted(path, value)
            self.wrong("EATSS-S004", f"unknown key {name}.{key}", (*path, str(key)), hint)
        missing = [key for key in RANGE[:2] if key not in value]
        if missing and not strange:
            self.wrong("EATSS-S004", f"{name} has no {missing[0]}", path, f"write {_FORMS}")
        return not strange and not missing


def _dotted(path: Place, value: Mapping[str, Any]) -> str:
    """Return the hint of a table that stands where a value belongs."""
    inner = next(iter(value), "…")
    name = ".".join((*path[1:], str(inner)))
    return f'a name with a dot stands between quotes: "{name}" = …'


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _quoted(text: str) -> str:
    import tomlkit  # noqa: PLC0415 - only to write

    return str(tomlkit.string(text).as_string())


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").isalnum() else _quoted(name)


def _expression(text: str) -> str:
    """Return an expression as it stands in TOML: a plain number bare, all else a text."""
    return text if text.isascii() and text.isdecimal() and text == str(int(text)) else _quoted(text)


def _over(over: Range | Listed | Generated) -> str:
    match over:
        case Range():
            step = "" if over.step == "1" else f", step = {_expression(over.step)}"
            return f"{{ start = {_expression(over.start)}, stop = {_expression(over.stop)}{step} }}"
        case Listed():
            return f"[{', '.join(map(_literal, over.values))}]"
        case Generated():
            arguments = ", ".join(map(_expression, over.arguments))
            return f"{{ {over.generator} = [{arguments}] }}"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else repr(value)

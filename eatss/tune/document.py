"""Documents of search spaces, TOML or plain mappings, to ``Space`` and back; parsed and checked.

What is wrong with the shape of a document is told first; all findings about its names and
expressions come at once, each with its place in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from collections.abc import Iterator as Iterating
from dataclasses import field, replace
from typing import Any, TypeAlias

from eatss.base.codec import MisfitError
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import StrPath, read_regular
from eatss.base.frozen import frozen
from eatss.base.text import NamedTexts
from eatss.cards.document import Origin, finding, misfit, parsed_toml, shaped
from eatss.tune.counting import ARGUMENTS, GENERATORS, Dimension
from eatss.tune.expressions import LARGEST, Expression, Place, name_fault, parse_expression
from eatss.tune.points import Filter, Iterator, Space, Value


@frozen
class ParsedSpace:
    """What a space says, parsed."""

    constants: Mapping[str, Expression]
    dimensions: tuple[Dimension, ...]
    filters: Mapping[str, Expression]
    variant: Mapping[str, Expression]

    def expressions(self) -> Iterating[Expression]:
        """Yield all expressions but those of the constants."""
        for dimension in self.dimensions:
            yield from dimension.expressions
        yield from self.filters.values()
        yield from self.variant.values()


def origin_of(space: Space) -> Origin:
    """Return what the messages about a space name, and its text where it came from a file."""
    return Origin(label=space.source or f"the space {space.name}", text=space.text or None)


def parsed_space(space: Space) -> ParsedSpace:
    """Parse a space and check what it calls things, and the values that it lists.

    Raises:
        InputError: ``EATSS-S004`` to ``S016``, all findings.
    """
    origin = origin_of(space)
    faults = (*_names_at_fault(space), *_values_at_fault(space))
    findings = [finding(*one, origin) for one in faults]

    def parsed(texts: Iterable[tuple[str, Place]]) -> list[Expression]:
        found = []
        for text, path in texts:
            try:
                found.append(parse_expression(text, path, origin))
            except InputError as error:
                findings.extend(error.diagnostics)
        return found

    def named(table: str, texts: NamedTexts) -> dict[str, Expression]:
        found = parsed((text, (table, name)) for name, text in texts)
        return {one.path[1]: one for one in found}

    found = ParsedSpace(
        constants=named("constants", space.constants),
        dimensions=tuple(
            Dimension(
                name=one.name,
                listed=one.values,
                over=one.over,
                expressions=tuple(parsed(zip(one.arguments, _places(one), strict=True))),
            )
            for one in space.iterators
        ),
        filters=named("filters", tuple((one.name, one.condition) for one in space.filters)),
        variant=named("variant", space.variant),
    )
    if findings:
        raise InputError(*findings)
    return found


_Fault: TypeAlias = tuple[str, str, Place]
"""The code of a finding, its sentence and its place."""


def _names_at_fault(space: Space) -> Iterating[_Fault]:
    """Yield names that cannot be one, or stand for several things."""
    seen: dict[str, str] = {}
    places = (
        *(("constants", "a constant", name) for name, _ in space.constants),
        *(("iterators", "an iterator", one.name) for one in space.iterators),
        *(("variant", "a decision", name) for name, _ in space.variant),
    )
    for table, words, name in places:
        fault = name_fault(name)
        if fault is None and name in seen:
            fault = f"it is {seen[name]} and {words}"
        if fault is not None:
            yield "EATSS-S004", f'nothing can be called "{name}": {fault}', (table, name)
        seen.setdefault(name, words)
    if not space.iterators:
        yield "EATSS-S004", "the space has no iterators: tile_i = [8, 16, 32]", ("iterators",)


def _values_at_fault(space: Space) -> Iterating[_Fault]:
    """Yield iterators that have no values, twice the same, or too large ones."""
    for one in space.iterators:
        path: Place = ("iterators", one.name)
        if not (one.values or one.over):
            yield "EATSS-S016", f"{one.name} has no values", path
        for at, value in enumerate(one.values):
            if not isinstance(value, str) and not abs(value) <= LARGEST:
                yield "EATSS-S011", f"the value {value} is over 2^53", path
            elif value in one.values[:at]:
                yield "EATSS-S004", f"the value {value!r} twice", path
        takes, given = ARGUMENTS.get(one.over, ()), len(one.arguments)
        if given != len(takes):
            message = f"{one.over} takes {len(takes)}, not {given}: {', '.join(takes)}"
            yield "EATSS-S007", message, (*path, one.over)


def _places(one: Iterator) -> list[Place]:
    """Return where the arguments of an iterator stand."""
    keys = ARGUMENTS["range"] if one.over == "range" else [one.over] * len(one.arguments)
    return [("iterators", one.name, key) for key in keys]


MAX_FILE_BYTES = 1 << 20
_EXPRESSIONS = (
    'write expressions or numbers; a name with a dot stands between quotes: "k0.threads_i" = …'
)
_HINTS = {
    "name": 'write name = "dgemm"',
    "iterators": "write [8, 16, 32], { start = 8, stop = 64, step = 8 } or { powers = [2, 8, 64] }",
}


@frozen
class _Document:
    """What a document of a space has."""

    name: str
    iterators: Mapping[str, tuple[Value, ...] | Mapping[str, Value | tuple[Value, ...]]]
    constants: Mapping[str, Value] = field(default_factory=dict)
    filters: Mapping[str, Value] = field(default_factory=dict)
    variant: Mapping[str, Value] = field(default_factory=dict)


def read_space(path: StrPath) -> Space:
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
    return space_from_document(parsed_toml(text, source, "EATSS-S001"), source, text=text)


def space_from_document(document: Mapping[str, Any], source: str = "", *, text: str = "") -> Space:
    """Return the space of a mapping as TOML would give it.

    Args:
        document: with ``name``, ``iterators`` and, if any, ``constants``, ``filters``, ``variant``.
        source: what messages call it.
        text: the TOML text that the mapping was read from, so that messages point into it.

    Raises:
        InputError: ``EATSS-S004`` to ``S011``, all findings.
    """
    try:
        found = shaped(_Document, document)
        iterators = tuple(_iterator(*one) for one in found.iterators.items())
    except MisfitError as error:
        told = misfit("EATSS-S004", error, Origin(label=source or "space", text=text or None))
        table = re.split(r"[.\[]", error.where.strip("."))[0] or "name"
        hint = told.hint or _HINTS.get(table, _EXPRESSIONS)
        raise InputError(replace(told, hint=hint)) from None
    space = Space(
        name=found.name,
        constants=tuple((name, _text(one)) for name, one in found.constants.items()),
        iterators=iterators,
        filters=tuple(Filter(name=name, condition=_text(v)) for name, v in found.filters.items()),
        variant=tuple((name, _text(one)) for name, one in found.variant.items()),
        source=source,
        text=text,
    )
    parsed_space(space)
    return space


def _text(value: Any) -> str:
    """Return the text of an expression: what is written as a number is one, too."""
    return value if isinstance(value, str) else repr(value)


def _iterator(name: str, given: tuple[Value, ...] | Mapping[str, Any]) -> Iterator:
    """Return an iterator as a document has it."""
    if not isinstance(given, Mapping):
        return Iterator(name=name, values=given)
    of_range = ARGUMENTS["range"]
    if {*of_range[:2]} <= {*given} <= {*of_range}:
        arguments = tuple(_text(given.get(key, 1)) for key in of_range)
        return Iterator(name=name, over="range", arguments=arguments)
    over, own = next(iter(given.items()), ("", ()))
    if len(given) != 1 or over not in GENERATORS:
        why = "it is no list of values, no range and no generator"
        raise MisfitError(why, f"iterators.{name}")
    several = own if isinstance(own, tuple) else (own,)
    return Iterator(name=name, over=over, arguments=tuple(map(_text, several)))


def space_text(space: Space) -> str:
    """Return the TOML of a space: :func:`read_space` reads the same space from it."""
    import tomlkit  # noqa: PLC0415 - only to write

    def plain(text: str) -> str | int:
        """Return an expression as TOML has it: a number bare, all else a text."""
        return int(text) if text.isdecimal() and text == str(int(text)) else text

    def over(one: Iterator) -> object:
        if not one.over:
            return list(one.values)
        arguments = list(map(plain, one.arguments))
        pairs = zip(ARGUMENTS["range"], arguments, strict=True)
        table = tomlkit.inline_table()
        table.update(dict(pairs) if one.over == "range" else {one.over: arguments})
        return table

    tables = {
        "name": space.name,
        "constants": {name: plain(text) for name, text in space.constants},
        "iterators": {one.name: over(one) for one in space.iterators},
        "filters": {one.name: one.condition for one in space.filters},
        "variant": {name: plain(text) for name, text in space.variant},
    }
    return tomlkit.dumps({key: own for key, own in tables.items() if own or key == "iterators"})

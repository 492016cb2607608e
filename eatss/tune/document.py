"""Documents of search spaces, TOML or plain mappings, to ``Space`` and back; parsed and checked.

All findings about a document come at once, each with its place in the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Iterator as Iterating
from graphlib import CycleError, TopologicalSorter
from typing import Any

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean, input_error
from eatss.base.files import StrPath, read_regular
from eatss.base.frozen import frozen
from eatss.base.text import NamedTexts, Texts
from eatss.cards.document import Origin, finding, parsed_toml
from eatss.tune.counting import GENERATORS, Dimension
from eatss.tune.expressions import LARGEST, Expression, Place, name_fault, parse_expression
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


def origin_of(space: Space) -> Origin:
    """Return what the messages about a space name, and its text where it came from a file."""
    return Origin(label=space.source or f"the space {space.name}", text=space.text or None)


class _Findings:
    """What was found wrong with a document so far."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.found: list[Diagnostic] = []

    def wrong(self, code: str, message: str, path: Place, hint: str | None = None) -> None:
        """Note a finding."""
        self.found.append(finding(code, message, path, self.origin, hint))

    def parsed(self, texts: Iterable[tuple[str, Place]]) -> list[Expression]:
        """Return expressions; note why one is none."""
        found = []
        for text, path in texts:
            try:
                found.append(parse_expression(text, path, self.origin))
            except InputError as error:
                self.found += error.diagnostics
        return found

    def tell(self) -> None:
        """Raise what was found.

        Raises:
            InputError: something was.
        """
        if self.found:
            raise InputError(*self.found)


def parsed_space(space: Space) -> ParsedSpace:
    """Parse a space and check its names.

    Raises:
        InputError: ``EATSS-S004`` to ``S016``, all findings.
    """
    findings = _Findings(origin_of(space))
    _check_names(space, findings)

    def named(table: str, texts: Iterable[tuple[str, str]]) -> dict[str, Expression]:
        found = findings.parsed((text, (table, name)) for name, text in texts)
        return {one.path[1]: one for one in found}

    constants = named("constants", space.constants)
    dimensions = [found for one in space.iterators if (found := _dimension(one, findings))]
    filters = named("filters", ((one.name, one.condition) for one in space.filters))
    variant = named("variant", space.variant)
    order = [one.name for one in space.iterators]
    uses = [(name, one, order) for name, one in constants.items()]
    uses += [
        (own.name, one, order[order.index(own.name) :])
        for own in dimensions
        for one in own.expressions
    ]
    for name, expression, later in uses:
        for used in (used for used in expression.names if used in later):
            findings.found += expression.error(
                "EATSS-S011",
                f"{name} uses {used}, which is not known there",
                expression.node(used),
                hint="iterators use those before them, constants none: filters use all",
            ).diagnostics
    graph = {name: [n for n in one.names if n in constants] for name, one in constants.items()}
    ordered = []
    try:
        ordered = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = error.args[1]
        message = f"constants depend on each other: {' → '.join(circle)}"
        findings.wrong("EATSS-S004", message, ("constants", circle[0]))
    findings.tell()
    return ParsedSpace(
        constants={name: constants[name] for name in ordered},
        dimensions=tuple(dimensions),
        filters=tuple(filters.items()),
        variant=variant,
    )


def _check_names(space: Space, findings: _Findings) -> None:
    """Check that each name can be one and stands for one thing."""
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
            findings.wrong("EATSS-S004", f'nothing can be called "{name}": {fault}', (table, name))
        seen.setdefault(name, words)
    names = [one.name for one in space.filters]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        findings.wrong("EATSS-S004", f'two filters are called "{name}"', ("filters", name))
    if not space.iterators:
        hint = "write [iterators] with a line like tile_i = [8, 16, 32]"
        findings.wrong("EATSS-S004", "the space has no iterators", ("iterators",), hint)


def _dimension(one: Iterator, findings: _Findings) -> Dimension | None:
    """Return an iterator with its values' expressions parsed."""
    path: Place = ("iterators", one.name)
    match one.over:
        case Listed(values=values):
            fault = next((f for at, v in enumerate(values) if (f := _fault(v, values[:at]))), None)
            if not values:
                fault = "EATSS-S016", f"{one.name} has no values"
            if fault is not None:
                findings.wrong(*fault, path)
                return None
            return Dimension.of(one.name, values, "", ())
        case Range() as own:
            over, texts = "range", [(getattr(own, key), (*path, key)) for key in RANGE]
        case Generated(generator=over, arguments=arguments):
            wanted = GENERATORS[over].arguments if over in GENERATORS else ()
            if len(arguments) != len(wanted):
                forms = ", ".join(
                    f"{name} = [{', '.join(known.arguments)}]" for name, known in GENERATORS.items()
                )
                message = f"{over} takes {len(wanted)}, not {len(arguments)}"
                findings.wrong("EATSS-S007", message, (*path, over), f"known: {forms}")
                return None
            texts = [(text, (*path, over)) for text in arguments]
    parsed = findings.parsed(texts)
    return Dimension.of(one.name, (), over, parsed) if len(parsed) == len(texts) else None


def _fault(value: object, before: Sequence[Value]) -> tuple[str, str] | None:
    """Return why something is no value of an iterator."""
    if not isinstance(value, Value) or (isinstance(value, str) and not value.isprintable()):
        return "EATSS-S004", f"{value!r} is neither a number, nor a text, nor true or false"
    if not isinstance(value, str) and not abs(value) <= LARGEST:
        return "EATSS-S011", f"the value {value} is over 2^53"
    return ("EATSS-S004", f"the value {value!r} twice") if value in before else None


MAX_FILE_BYTES = 1 << 20
_KEYS = ("name", "constants", "iterators", "filters", "variant")
_FORMS = "[8, 16, 32], { start = 8, stop = 64, step = 8 } or { powers = [2, 8, 64] }"


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
    reading.tell()
    parsed_space(space)
    return space


def space_text(space: Space) -> str:
    """Return the TOML of a space: :func:`read_space` reads the same space from it."""
    import tomlkit  # noqa: PLC0415 - only to write

    def plain(text: str) -> str | int:
        """Return an expression as TOML has it: a number bare, all else a text."""
        is_number = text.isascii() and text.isdecimal() and text == str(int(text))
        return int(text) if is_number else text

    def over(one: Range | Listed | Generated) -> object:
        if isinstance(one, Listed):
            return list(one.values)
        table = tomlkit.inline_table()
        if isinstance(one, Generated):
            table[one.generator] = list(map(plain, one.arguments))
        else:
            keys = [key for key in RANGE if key != "step" or one.step != "1"]
            table.update({key: plain(getattr(one, key)) for key in keys})
        return table

    tables = {
        "name": space.name,
        "constants": {name: plain(text) for name, text in space.constants},
        "iterators": {one.name: over(one.over) for one in space.iterators},
        "filters": {one.name: one.condition for one in space.filters},
        "variant": {name: plain(text) for name, text in space.variant},
    }
    return tomlkit.dumps({key: own for key, own in tables.items() if own or key == "iterators"})


class _Document(_Findings):
    """A document that is read, and what was found wrong so far."""

    def __init__(self, document: Mapping[str, Any], origin: Origin) -> None:
        super().__init__(origin)
        self.document = document if isinstance(document, Mapping) else {}
        for key in self.document:
            if key not in _KEYS:
                hint = did_you_mean(str(key), _KEYS, "known here")
                self.wrong("EATSS-S004", f"unknown key {key}", (str(key),), hint)

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

    def expressions(self, key: str) -> NamedTexts:
        """Return expressions by name: texts, or numbers."""
        found = {
            str(name): self.texts([one], (key, str(name))) for name, one in self.table(key).items()
        }
        return tuple((name, texts[0]) for name, texts in found.items() if texts)

    def texts(self, values: Iterable[object], path: Place) -> Texts:
        """Return the texts of expressions, or none where one is none."""
        found = tuple(one if isinstance(one, str) else repr(one) for one in values)
        if all(isinstance(one, Value) for one in values):
            return found
        hint = 'a name with a dot stands between quotes: "k0.threads_i" = …'
        message = f"{'.'.join(path)} is neither an expression nor a number"
        self.wrong("EATSS-S004", message, path, hint)
        return ()

    def iterators(self) -> tuple[Iterator, ...]:
        """Return the iterators in order."""
        found = {str(name): self._over(str(name), v) for name, v in self.table("iterators").items()}
        return tuple(
            Iterator(name=name, over=over) for name, over in found.items() if over is not None
        )

    def _over(self, name: str, value: object) -> Range | Listed | Generated | None:
        path = ("iterators", name)
        if isinstance(value, list | tuple) and not any(isinstance(v, list | dict) for v in value):
            return Listed(values=tuple(value))
        if isinstance(value, Mapping):
            keys = {*value}
            if len(keys) == 1 and keys <= {*GENERATORS}:
                ((key, given),) = value.items()
                texts = self.texts(
                    given if isinstance(given, list | tuple) else [given], (*path, key)
                )
                return Generated(generator=key, arguments=texts) if texts else None
            if {*RANGE[:2]} <= keys <= {*RANGE}:
                texts = self.texts([value.get(key, 1) for key in RANGE], path)
                return Range(**dict(zip(RANGE, texts, strict=True))) if texts else None
        message = f"{name} is no list of values, no range and no generator"
        self.wrong("EATSS-S004", message, path, f"write {_FORMS}")
        return None

"""Documents of search spaces, TOML or plain mappings, to ``Space`` and back.

All findings about a document come at once, each with its place in the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from eatss.diagnostics import Diagnostic, InputError, did_you_mean, input_error
from eatss.files import read_regular
from eatss.gpu.findings import Origin, finding, place_at
from eatss.gpu.load import LONG_KEY, MAX_KEY_PARTS, SYNTAX_PLACE
from eatss.point import Value
from eatss.space.dimensions import GENERATORS
from eatss.space.nouns import Filter, Generated, Iterator, Listed, Range, Space
from eatss.space.parsed import parsed_space

MAX_FILE_BYTES = 1 << 20
_KEYS = ("name", "constants", "iterators", "filters", "variant")
_RANGE = ("start", "stop", "step")
_FORMS = "[8, 16, 32], { start = 8, stop = 64, step = 8 } or { powers = [2, 8, 64] }"


def read_space(path: str | os.PathLike[str]) -> Space:
    """Return the space of a TOML file.

    Args:
        path: Of the file.

    Raises:
        InputError: ``EATSS-S001`` it cannot be read, ``EATSS-S003`` it is no TOML,
            ``EATSS-S004`` to ``S012`` what it says is wrong; all findings with their places.
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
    long_key = LONG_KEY.search(text)
    if long_key is not None:
        line = text.count("\n", 0, long_key.start()) + 1
        message = f"a key of more than {MAX_KEY_PARTS} parts is none of a space"
        raise _syntax_error(text, source, line, 1, message)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise input_error("EATSS-S003", f"{source} is nested too deeply for a space") from None
    except ValueError as error:
        message = str(error)
        found = SYNTAX_PLACE.search(message)
        line, column = len(text.splitlines()), 1
        if found is not None:
            message = message[: found.start()]
            if found[1] is not None:
                line, column = int(found[1]), int(found[2])
        raise _syntax_error(text, source, line, column, f"not valid TOML: {message}") from None
    return space_from_document(document, source, text=text)


def space_from_document(document: Mapping[str, Any], source: str = "", *, text: str = "") -> Space:
    """Return the space of a mapping as TOML would give it.

    Args:
        document: with ``name``, ``iterators`` and, if any, ``constants``, ``filters``, ``variant``.
        source: what messages call it.
        text: the TOML text that the mapping was read from, so that messages point into it.

    Raises:
        InputError: ``EATSS-S004`` to ``S012``, all findings.
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
    lines = [f"name = {_quoted(space.name)}"]
    if space.constants:
        lines += ["", "[constants]", *(f"{_key(n)} = {_expression(e)}" for n, e in space.constants)]
    lines += ["", "[iterators]"]
    lines += [f"{_key(one.name)} = {_over(one.over)}" for one in space.iterators]
    if space.filters:
        lines += ["", "[filters]"]
        lines += [f"{_key(one.name)} = {_quoted(one.condition)}" for one in space.filters]
    if space.variant:
        lines += ["", "[variant]", *(f"{_key(n)} = {_expression(e)}" for n, e in space.variant)]
    return "\n".join(lines) + "\n"


class _Document:
    """A document that is read, and what was found wrong so far."""

    def __init__(self, document: Mapping[str, Any], origin: Origin) -> None:
        self.findings: list[Diagnostic] = []
        self.origin = origin
        self.document = document
        if not isinstance(document, Mapping):
            self.wrong("EATSS-S005", f"a space is a table, not {document!r}", ())
            self.document = {}
        for key in self.document:
            if key not in _KEYS:
                self.wrong(
                    "EATSS-S004",
                    f"unknown key {key}",
                    (str(key),),
                    did_you_mean(str(key), _KEYS, "known here"),
                )

    def wrong(
        self, code: str, message: str, path: tuple[str, ...], hint: str | None = None
    ) -> None:
        """Note a finding."""
        self.findings.append(finding(code, message, path, self.origin, hint))

    def name(self) -> str:
        """Return what the space is called."""
        name = self.document.get("name")
        if isinstance(name, str) and name and name.isprintable():
            return name
        words = "name is missing" if name is None else f"name is {name!r}, not a text"
        self.wrong("EATSS-S005", words, ("name",), 'write name = "dgemm"')
        return "space"

    def table(self, key: str) -> Mapping[str, Any]:
        """Return a table of the document, an empty one where it is missing."""
        table = self.document.get(key, {})
        if isinstance(table, Mapping):
            return table
        self.wrong("EATSS-S005", f"{key} is no table", (key,), f"write [{key}] and a line for each")
        return {}

    def expressions(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return expressions by name."""
        found = []
        for name, value in self.table(key).items():
            text = self.expression(value, (key, str(name)))
            if text is not None:
                found.append((str(name), text))
        return tuple(found)

    def expression(self, value: object, path: tuple[str, ...]) -> str | None:
        """Return the text of an expression: a text, or a number."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return repr(value)
        message = f"{'.'.join(path)} is neither an expression nor a number"
        hint = None
        if isinstance(value, Mapping):
            hint = f"a name with a dot stands between quotes: {_dotted(path, value)}"
        self.wrong("EATSS-S005", message, path, hint)
        return None

    def iterators(self) -> tuple[Iterator, ...]:
        """Return the iterators in order."""
        if "iterators" not in self.document:
            hint = "write [iterators] with a line like tile_i = [8, 16, 32]"
            self.wrong("EATSS-S005", "[iterators] is missing", ("iterators",), hint)
        found = []
        for name, value in self.table("iterators").items():
            over = self._over(str(name), value)
            if over is not None:
                found.append(Iterator(name=str(name), over=over))
        return tuple(found)

    def _over(self, name: str, value: object) -> Range | Listed | Generated | None:
        path = ("iterators", name)
        if isinstance(value, list | tuple):
            return self._listed(name, value, path)
        if not isinstance(value, Mapping):
            message = f"{name} = {_shown(value)} is no list of values, no range and no generator"
            self.wrong("EATSS-S005", message, path, f"write {_FORMS}")
            return None
        generators = [key for key in value if key in GENERATORS]
        if generators and len(value) == 1:
            return self._generated(generators[0], value[generators[0]], path)
        known = generators or (*_RANGE, *GENERATORS)
        strange = [key for key in value if key not in (generators or _RANGE)]
        for key in strange:
            if isinstance(value[key], Mapping) and not {*value} & {*_RANGE}:
                hint = f"a name with a dot stands between quotes: {_dotted(path, value)}"
            else:
                hint = did_you_mean(str(key), known, "known here")
            self.wrong("EATSS-S004", f"unknown key {name}.{key}", (*path, str(key)), hint)
        missing = [key for key in ("start", "stop") if key not in value]
        if strange or missing:
            if not strange:
                self.wrong("EATSS-S005", f"{name} has no {missing[0]}", path, f"write {_FORMS}")
            return None
        texts = [self.expression(value.get(key, 1), (*path, key)) for key in _RANGE]
        start, stop, step = texts
        if start is None or stop is None or step is None:
            return None
        return Range(start=start, stop=stop, step=step)

    def _listed(self, name: str, values: Sequence[Any], path: tuple[str, ...]) -> Listed | None:
        for value in values:
            if not isinstance(value, bool | int | float | str):
                message = f"{name} lists {_shown(value)}, which is no value"
                self.wrong("EATSS-S005", message, path, "list numbers, texts, true or false")
                return None
        plain: tuple[Value, ...] = tuple(values)
        return Listed(values=plain)

    def _generated(self, key: str, given: object, path: tuple[str, ...]) -> Generated | None:
        arguments = given if isinstance(given, list | tuple) else [given]
        texts = [self.expression(one, (*path, key)) for one in arguments]
        found = tuple(text for text in texts if text is not None)
        return Generated(generator=key, arguments=found) if len(found) == len(texts) else None


def _dotted(path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    inner = next(iter(value), "…")
    return f'"{".".join((*path[1:], str(inner)))}" = …'


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _syntax_error(text: str, source: str, line: int, column: int, message: str) -> InputError:
    place = place_at(text, line, column, source)
    return InputError(
        Diagnostic(
            code="EATSS-S003", message=message, span=place.span, source_line=place.source_line
        )
    )


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

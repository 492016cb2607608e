"""Documents of search spaces, TOML or plain mappings, to ``Space`` and back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from eatss.base.codec import MisfitError
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import StrPath, read_regular
from eatss.base.frozen import frozen
from eatss.cards.document import Origin, misfit, parsed_toml, shaped
from eatss.tune.counting import ARGUMENTS, GENERATORS
from eatss.tune.points import Filter, Iterator, Space, Value

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
        InputError: ``EATSS-S001`` it cannot be read, or it is no TOML, ``EATSS-S004``, it is no
            space. What its expressions say is checked by :func:`eatss.tune.bound.bind`.
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
        InputError: ``EATSS-S004``, it is no space.
    """
    try:
        found = shaped(_Document, document)
        iterators = tuple(_iterator(*one) for one in found.iterators.items())
    except MisfitError as error:
        told = misfit("EATSS-S004", error, Origin(label=source or "space", text=text or None))
        table = re.split(r"[.\[]", error.where.strip("."))[0] or "name"
        hint = told.hint or _HINTS.get(table, _EXPRESSIONS)
        raise InputError(replace(told, hint=hint)) from None
    return Space(
        name=found.name,
        constants=tuple((name, _text(one)) for name, one in found.constants.items()),
        iterators=iterators,
        filters=tuple(Filter(name=name, condition=_text(v)) for name, v in found.filters.items()),
        variant=tuple((name, _text(one)) for name, one in found.variant.items()),
        source=source,
        text=text,
    )


def _text(value: Any) -> str:
    """Return the text of an expression: what is written as a number is one, too."""
    return value if isinstance(value, str) else repr(value)


def _iterator(name: str, given: tuple[Value, ...] | Mapping[str, Any]) -> Iterator:
    """Return an iterator as a document has it."""

    def misfit(why: str) -> MisfitError:
        return MisfitError(why, f"iterators.{name}")

    if not isinstance(given, Mapping):
        if not given or len({*map(repr, given)}) < len(given):
            raise misfit("a list has values, each once")
        return Iterator(name=name, values=given)
    of_range = ARGUMENTS["range"]
    if {*of_range[:2]} <= {*given} <= {*of_range}:
        arguments = tuple(_text(given.get(key, 1)) for key in of_range)
        return Iterator(name=name, over="range", arguments=arguments)
    over, own = next(iter(given.items()), ("", ()))
    if len(given) != 1 or over not in GENERATORS:
        raise misfit("it is no list of values, no range and no generator")
    several = own if isinstance(own, tuple) else (own,)
    if len(several) != len(ARGUMENTS[over]):
        raise misfit(f"{over} takes {', '.join(ARGUMENTS[over])}")
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

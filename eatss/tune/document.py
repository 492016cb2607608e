"""Documents of search spaces, TOML or plain mappings, to ``Space`` and back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from eatss.base.codec import MisfitError
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import StrPath
from eatss.cards.document import Origin, misfit, parsed_toml, shaped
from eatss.tune.points import Iterates, Space

_EXPRESSIONS = (
    'write expressions or numbers; a name with a dot stands between quotes: "k0.threads_i" = …'
)
HOW_TO_ITERATE = "write [8, 16, 32], { start = 8, stop = 64, step = 8 } or { powers = [2, 8, 64] }"
_HINTS = {
    "name": 'write name = "dgemm"',
    "iterators": HOW_TO_ITERATE,
}


def read_space(path: StrPath) -> Space:
    """Return the space of a TOML file.

    Args:
        path: Of the file.

    Raises:
        InputError: ``EATSS-S001`` it cannot be read, or it is no TOML, ``EATSS-S004``, it is no
            space. What its expressions say is checked by :func:`eatss.tune.bound.bind`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
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
        found = shaped(Space, document)
    except MisfitError as error:
        told = misfit("EATSS-S004", error, Origin(label=source or "space", text=text or None))
        table = re.split(r"[.\[]", error.where.strip("."))[0] or "name"
        hint = told.hint or _HINTS.get(table, _EXPRESSIONS)
        raise InputError(replace(told, hint=hint)) from None
    return replace(found, source=source, text=text)


def space_text(space: Space) -> str:
    """Return the TOML of a space: :func:`read_space` reads the same space from it."""
    import tomlkit  # noqa: PLC0415 - only to write

    def iterates(given: Iterates) -> object:
        if not isinstance(given, Mapping):
            return list(given)
        table = tomlkit.inline_table()
        table.update({n: list(own) if isinstance(own, tuple) else own for n, own in given.items()})
        return table

    tables: dict[str, Mapping[str, object]] = {
        "constants": space.constants,
        "iterators": {name: iterates(given) for name, given in space.iterators.items()},
        "filters": space.filters,
        "variant": space.variant,
    }
    used = {key: dict(own) for key, own in tables.items() if own or key == "iterators"}
    return tomlkit.dumps({"name": space.name, **used})

"""C identifiers for the generated text that mean nothing else there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from eatss.program.source_names import RESERVED_FORM, is_reserved

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def identifier(text: str) -> str:
    """Return ``text`` with what no C identifier may hold replaced by underscores."""
    cleaned = re.sub(r"_{2,}", "_", re.sub(r"\W", "_", text, flags=re.ASCII))
    if cleaned[:1].isdigit():
        cleaned = f"v{cleaned}"
    if not _IDENTIFIER.fullmatch(cleaned):
        cleaned = "v"
    return cleaned


class NameTable:
    """The names taken in a scope of the text; it gives out others.

    The same requests in the same order give the same names.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._outer: NameTable | None = None

    def fresh(self, wish: str) -> str:
        """Return ``wish`` if it is free, else ``wish_1``, ``wish_2``, …, and take it."""
        stem = identifier(wish)
        numbered = f"{stem.rstrip('_')}_1"  # of eatss, which is no such form, it is one
        if any(map(RESERVED_FORM.fullmatch, (stem, numbered))):
            stem = f"v_{stem.strip('_')}"  # no number makes a reserved prefix free
        name, number = stem, 0
        while not self.is_free(name):
            number += 1
            name = f"{stem.rstrip('_') or 'v'}_{number}"
        self._taken.add(name)
        return name

    def reserve(self, *names: str) -> None:
        """Take names as they are."""
        self._taken.update(names)

    def is_free(self, name: str) -> bool:
        """Return whether a name has no meaning yet, here and in the scopes around."""
        if is_reserved(name) or name in self._taken:
            return False
        return self._outer is None or self._outer.is_free(name)

    def inner(self) -> NameTable:
        """Return a table of a scope inside this one; names it gives out are not taken here."""
        table = NameTable()
        table._outer = self
        return table

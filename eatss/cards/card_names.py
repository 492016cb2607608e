"""What the cards of eatss are called, read off the heads of their files: quick to load."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from eatss.base.diagnostics import Diagnostic, InternalError

ENTRY_POINTS = "eatss.cards"
"""The group of entry points by which packages add cards."""


@lru_cache(maxsize=4)
def shipped_names(folder: Path) -> Mapping[str, str]:
    """Map each name and alias of a card of eatss to its name, reading only the head of its file."""
    cards: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        head = path.read_text(encoding="utf-8").partition("\n[")[0]
        table = tomllib.loads(head)
        for name in (table["name"], *table.get("aliases", ())):
            if name in cards:
                message = f"{path.stem} and {cards[name]} are both called {name}"
                raise InternalError(Diagnostic(code="EATSS-G021", message=message))
            cards[name] = path.stem
    return MappingProxyType(cards)

"""What is made of nouns, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_Made = TypeVar("_Made")


class Memo:
    """What was made of nouns. They never change, and are told by identity."""

    def __init__(self) -> None:
        """Begin with nothing made."""
        self._made: dict[Hashable, tuple[object, Any]] = {}

    def __call__(self, make: Callable[[], _Made], *how: Hashable, of: object = None) -> _Made:
        """Return what is made of a noun in some way, made now if it was not before."""
        key = id(of), *how
        if key not in self._made:
            self._made[key] = of, make()  # a noun that is kept keeps its identity
        made: _Made = self._made[key][1]
        return made

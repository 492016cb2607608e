"""How long work tells how far it is: a function that it calls, and that may do nothing."""

from __future__ import annotations

from typing import Protocol


class Told(Protocol):
    """Is told what is done now, and how much of how many is done, where that is known."""

    def __call__(self, what: str, done: float = 0, total: float | None = None) -> None:
        """Take note; it must be quick."""
        ...


def nobody(what: str, done: float = 0, total: float | None = None) -> None:
    """Is told, and does nothing."""

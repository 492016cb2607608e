"""Text that is shown to people as it is: without what could steer a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text whose control characters, which could steer a terminal, are spelled out."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\t\n" else c.encode("unicode_escape").decode() for c in text
    )

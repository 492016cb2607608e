"""Text in lines, indented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    """Collects lines; blocks in braces indent what stands in them."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def add(self, *lines: str) -> None:
        """Add lines; one that starts with ``#`` is not indented unless it is a pragma."""
        for line in lines:
            flush = line.startswith("#") and not line.startswith("#pragma")
            self._lines.append(line if flush or not line else "    " * self._depth + line)

    @contextmanager
    def block(self, head: str = "", tail: str = "") -> Iterator[None]:
        """Put what is added inside braces after ``head``."""
        self.add(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}" + tail)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent what is added."""
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """Return the text, with a line break after every line."""
        return "".join(line + "\n" for line in self._lines)

"""C text in the making: every piece knows which Python it stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eatss.diagnostics import SourceSpan


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters ``start`` to ``end`` of a line stand for a stretch of Python."""

    start: int
    end: int
    span: SourceSpan


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a C line and the marks in it, offsets from its start."""

    text: str
    marks: tuple[Mark, ...] = ()

    def at(self, span: SourceSpan) -> Piece:
        """Return the piece with all of it marked besides."""
        return Piece(self.text, (*self.marks, Mark(0, len(self.text), span)))


@dataclass(frozen=True, slots=True)
class CLine:
    """A line of C; ``span`` is the Python it stands for where no mark says it better."""

    piece: Piece
    span: SourceSpan


def joined(*parts: str | Piece) -> Piece:
    """Return pieces and texts one after another."""
    texts: list[str] = []
    marks: list[Mark] = []
    length = 0
    for part in parts:
        if isinstance(part, Piece):
            marks += (
                replace(mark, start=mark.start + length, end=mark.end + length)
                for mark in part.marks
            )
            part = part.text  # noqa: PLW2901
        texts.append(part)
        length += len(part)
    return Piece("".join(texts), tuple(marks))


def listed(pieces: list[Piece], separator: str = ", ") -> Piece:
    """Return pieces with a text between each two."""
    parts: list[str | Piece] = []
    for piece in pieces:
        parts += [separator, piece] if parts else [piece]
    return joined(*parts)


def python_span(lines: tuple[CLine, ...], span: SourceSpan) -> SourceSpan:
    """Return the Python that a span of C stands for: the least mark around it, or its lines."""
    first, last = (lines[min(line, len(lines)) - 1] for line in (span.line, span.end_line))
    if first is last:
        start, end = span.column - 1, span.end_column - 1
        around = [m for m in first.piece.marks if m.start <= start and end <= m.end]
        if around:
            return min(around, key=lambda mark: mark.end - mark.start).span
        return first.span
    return replace(first.span, end_line=last.span.end_line, end_column=last.span.end_column)

"""The source text: bytes in, lines, columns and spans out."""

from __future__ import annotations

from bisect import bisect_right

from eatss.diagnostics import SourceSpan
from eatss.frozen import frozen


@frozen
class SourceText:
    """The bytes of one file with the offsets at which its lines start."""

    file: str
    data: bytes
    line_starts: tuple[int, ...]
    is_ascii: bool

    @classmethod
    def of(cls, file: str, data: bytes) -> SourceText:
        """Build from the bytes of a file."""
        starts = [0]
        position = data.find(b"\n")
        while position >= 0:
            starts.append(position + 1)
            position = data.find(b"\n", position + 1)
        return cls(file=file, data=data, line_starts=tuple(starts), is_ascii=data.isascii())

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column (in characters), both from 1, of a byte offset."""
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        if self.is_ascii:
            return line, offset - start + 1
        return line, len(self.data[start:offset].decode("utf-8", "replace")) + 1

    def span(self, start: int, end: int) -> SourceSpan:
        """Return the span of the bytes ``[start, end)``."""
        line, column = self.line_and_column(start)
        end_line, end_column = self.line_and_column(end)
        return SourceSpan(
            file=self.file, line=line, column=column, end_line=end_line, end_column=end_column
        )

    def line_text(self, line: int) -> str:
        """Return a line without its line end."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] if line < len(self.line_starts) else len(self.data)
        return self.data[start:end].rstrip(b"\r\n").decode("utf-8", "replace")

    def text(self, start: int, end: int) -> str:
        """Return the text of the bytes ``[start, end)``."""
        return self.data[start:end].decode("utf-8", "replace")

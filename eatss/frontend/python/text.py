"""The Python text: its lines, spans of its nodes, and the findings about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend.python.annotations import TypeClashError

Node = ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias


@frozen
class PythonText:
    """A file of Python, or what stands for one where a cell or a console has no file."""

    file: str
    lines: tuple[str, ...]

    def span(self, node: Node) -> SourceSpan:
        """Return where a node stands, columns in characters."""
        end_line = node.end_lineno or node.lineno
        end = node.end_col_offset or node.col_offset + 1
        return SourceSpan(
            file=self.file,
            line=node.lineno,
            column=self._column(node.lineno, node.col_offset),
            end_line=end_line,
            end_column=self._column(end_line, end),
        )

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1; nothing where there is none."""
        return self.lines[number - 1].rstrip("\r\n") if 0 < number <= len(self.lines) else ""

    def _column(self, line: int, offset: int) -> int:
        """Return the column of an offset in UTF-8 bytes, which is what ``ast`` counts in."""
        return len(self.line(line).encode("utf-8")[:offset].decode("utf-8", "replace")) + 1


class RefusedError(Exception):
    """Something was refused and recorded; unwinds to where reading goes on."""


class Findings:
    """The findings about one function, so that all are reported and not only the first."""

    def __init__(self, text: PythonText) -> None:
        self.text = text
        self._found: dict[Diagnostic, None] = {}

    def add(self, code: str, node: Node, message: str, hint: str | None = None) -> None:
        """Record a finding about a node."""
        self.add_at(code, self.text.span(node), message, hint)

    def add_at(self, code: str, span: SourceSpan, message: str, hint: str | None = None) -> None:
        """Record a finding about a stretch of text."""
        finding = Diagnostic(
            code=code,
            message=message,
            span=span,
            source_line=self.text.line(span.line),
            hint=hint,
        )
        self._found.setdefault(finding)

    def refuse(self, code: str, node: Node, message: str, hint: str | None = None) -> NoReturn:
        """Record a finding, and leave what cannot be read any further.

        Raises:
            RefusedError: always.
        """
        self.add(code, node, message, hint)
        raise RefusedError

    @contextmanager
    def clashes(self, code: str, node: Node, hint: str | None = None) -> Iterator[None]:
        """Refuse a node where types of its numbers do not go together."""
        try:
            yield
        except TypeClashError as error:
            own = error.hint if code == "EATSS-Y019" else hint
            self.refuse(code, node, str(error), own)

    def raise_errors(self) -> None:
        """Raise all findings as an :class:`InputError`, in the order of the text."""
        if self._found:
            found = list(self._found)
            found.sort(key=lambda one: (one.span.line, one.span.column) if one.span else (0, 0))
            raise InputError(*found)

"""The text of a file before libclang sees it: its bytes, spans, nesting, and findings about it."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Protocol

from eatss.base.diagnostics import Diagnostic, InputError, Severity, SourceSpan, input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen

# -- findings ----------------------------------------------------------------------------------
# The source text, and the findings of a run about it: all are reported, not only the first.


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


_MAX_ERRORS = 200


class RefusedError(Exception):
    """A construct was refused and reported; unwinds to where reading can go on."""


class Lines(Protocol):
    """A text whose lines findings show."""

    @property
    def file(self) -> str:
        """What spans call it."""

    def line_text(self, line: int) -> str:
        """Return a line, counted from 1, without its line end."""


class Findings:
    """The findings of one run, in the order of discovery, duplicates dropped."""

    def __init__(self, source: Lines | None) -> None:
        self._source = source
        self._found: dict[tuple[str, str, SourceSpan | None], Diagnostic] = {}

    def add(
        self,
        code: str,
        message: str,
        *,
        span: SourceSpan | None = None,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Record a finding."""
        line = None
        if span is not None and self._source is not None and span.file == self._source.file:
            line = self._source.line_text(span.line)
        diagnostic = Diagnostic(
            code=code,
            message=message,
            severity=severity,
            span=span,
            source_line=line,
            hint=hint,
        )
        self._found.setdefault((diagnostic.code, message, span), diagnostic)

    def warn(
        self, code: str, message: str, *, span: SourceSpan | None = None, hint: str | None = None
    ) -> None:
        """Record a warning."""
        self.add(code, message, span=span, hint=hint, severity=Severity.WARNING)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """All errors in the order of the source."""
        return self._sorted(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """All warnings in the order of the source."""
        return self._sorted(Severity.WARNING)

    def _sorted(self, severity: Severity) -> tuple[Diagnostic, ...]:
        found = (d for d in self._found.values() if d.severity is severity)
        return tuple(
            sorted(found, key=lambda d: (d.span.line, d.span.column) if d.span else (inf, 0))
        )

    def raise_errors(self) -> None:
        """Raise :class:`InputError` with all errors, if there are any."""
        errors = self.errors
        if errors:
            raise InputError(*errors[:_MAX_ERRORS])


# -- files -------------------------------------------------------------------------------------
# Reads the file and checks its bytes before libclang sees them.


MAX_BYTES = 4 * 1024 * 1024
_MAX_HEADERS = 2_000
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def read_bytes(file: str) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        InputError: If there is no such file, it is not a regular file, is too large, or
            cannot be read.
    """
    try:
        return read_regular(Path(file), MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise input_error(
            "EATSS-F001",
            f"cannot read '{file}': {reason}",
            hint=f"name a C source file of at most {MAX_BYTES >> 20} MiB that may be read",
        ) from None


def path_for_clang(file: str) -> str:
    """Return the path of a file in a form that is never taken for an option."""
    return os.path.join(os.curdir, file) if file.startswith("-") else file  # noqa: PTH118


def check_bytes(source: SourceText, findings: Findings) -> None:
    """Find what is wrong with a text before it is parsed."""
    data, nul = source.data, source.data.find(b"\0")
    if len(data) > MAX_BYTES or not data.strip():
        state = "is too large" if data.strip() else "is empty"
        hint = f"name a C source file of at most {MAX_BYTES >> 20} MiB"
        findings.add("EATSS-F001", f"'{source.file}' {state}", hint=hint)
    elif nul >= 0:
        span = source.span(nul, nul + 1)
        findings.add("EATSS-F001", "NUL byte in the source", span=span, hint="save it as UTF-8")


def check_includes(source: SourceText, include_dirs: tuple[str, ...], findings: Findings) -> None:
    """Refuse ``#include`` of devices, pipes and the like, from which libclang would read for ever.

    Headers are followed as far as they are found; macros and conditions are not looked at.
    """
    todo = [(Path(source.file).parent, source.data, True)]
    seen: set[Path] = set()
    while todo and len(seen) < _MAX_HEADERS:
        folder, data, is_main = todo.pop()
        for match in _INCLUDE.finditer(data):
            header = _find(match[1].decode("utf-8", "replace"), (folder, *map(Path, include_dirs)))
            if header is None or header in seen:
                continue
            seen.add(header)
            try:
                todo.append((header.parent, read_regular(header, MAX_BYTES), False))
            except IsADirectoryError:
                continue
            except OSError as error:
                findings.add(
                    "EATSS-F001",
                    f"header '{header}' cannot be read: {error.strerror}",
                    span=source.span(match.start(1), match.end(1)) if is_main else None,
                    hint="include C headers only",
                )


def _find(name: str, folders: tuple[Path, ...]) -> Path | None:
    for folder in folders:
        try:
            candidate = folder / name
            if candidate.exists() and os.access(candidate, os.R_OK):
                return candidate
        except (OSError, ValueError):
            continue
    return None


# -- lexical checks ----------------------------------------------------------------------------
# Looks through a text before libclang does: bad bytes in code, and nesting it could not bear.
#
# libclang recurses over expressions and statements and ends the process when its stack does. So
# the depth a statement can reach is estimated from its tokens, macros of the file expanded in
# numbers only. Ordinary texts are parsed as they are, deep ones on a large stack, absurd ones
# not at all.


MAX_BRACKETS = 250
MAX_OPERATORS = 100_000
MAX_EXPANDED = 2_000_000
_ORDINARY_OPERATORS = 1_500
_ORDINARY_BRANCHES = 500
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_TOKEN = re.compile(
    rb"//(?:\\\r?\n|[^\n])*"
    rb"|/\*.*?(?:\*/|\Z)"
    rb'|"(?:[^"\\\n]|\\.)*"'
    rb"|'(?:[^'\\\n]|\\.)*'"
    rb"|[A-Za-z_]\w*"
    rb"|[(\[{}\]);,]"
    rb"|[-+!~*&/%|^<>=?:]",
    re.DOTALL,
)
_DEFINE = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?((?:\\\r?\n|[^\n])*)", re.MULTILINE
)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_ANY_TOKEN = re.compile(rb"\w+|[^\s\w]")
_OPERATOR = re.compile(rb"[-+!~*&/%|^<>=?:(]")
_OPENING = (b"(", b"[", b"{")
_CLOSING = (b")", b"]", b"}")
_NESTING_WORDS = frozenset({b"for", b"if", b"while", b"do", b"switch", b"sizeof"})


@dataclass(frozen=True, slots=True)
class _Macro:
    """How much a macro adds: operators and tokens, and how often it repeats an argument."""

    operators: int
    tokens: int
    repeats: int


@dataclass(frozen=True, slots=True)
class _Bracket:
    """An open bracket; ``factor`` counts how often macros repeat what is inside."""

    token: bytes
    factor: int
    is_list: bool


class Guard:
    """One look through a text."""

    def __init__(self, source: SourceText, findings: Findings) -> None:
        self._source = source
        self._findings = findings
        self._macros = _macros(source.data)
        self._brackets = [_Bracket(b"{", 1, False)]  # around all
        self._previous = b""
        self._repeats = 1
        self._operators = 0
        self._most = 0
        self._branches = 0
        self._expanded = 0

    def needs_large_stack(self) -> bool:
        """Look through the text; return whether libclang needs a large stack for it.

        Records findings for bytes that are not UTF-8 outside comments and strings, and for
        nesting beyond all bounds.
        """
        data = self._source.data
        code_start = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
        has_foreign_bytes = not data.isascii()
        for match in _TOKEN.finditer(data):
            token = match[0]
            if token[:2] in (b"//", b"/*") or token[:1] in (b'"', b"'"):
                if has_foreign_bytes:
                    self._check_code(code_start, match.start())
                    code_start = match.end()
                continue
            if not self._count(token):
                self._findings.add(
                    "EATSS-F009",
                    f"brackets are nested more than {MAX_BRACKETS} deep, or one statement has more "
                    f"than {MAX_OPERATORS} operators, or macros expand to more than "
                    f"{MAX_EXPANDED} words",
                    span=self._source.span(match.start(), match.end()),
                    hint="split the expression or the block",
                )
                return False
        if has_foreign_bytes:
            self._check_code(code_start, len(data))
        return self._most > _ORDINARY_OPERATORS or self._branches > _ORDINARY_BRANCHES

    def _count(self, token: bytes) -> bool:
        """Count a token; return whether all is still within bounds."""
        factor = self._brackets[-1].factor
        if token in _OPENING:
            self._open(token, factor)
        elif token in _CLOSING:
            self._close(token)
        elif token == b"else":
            self._branches += 1
        elif self._separates(token):
            self._operators = 0
        elif token in _NESTING_WORDS or not _WORD.match(token):
            self._add(factor)
        macro = self._macros.get(token)
        self._repeats = macro.repeats if macro is not None else 1
        if macro is not None:
            self._add(factor * macro.operators)
        self._expanded += factor * (macro.tokens if macro is not None else 0)
        if factor > 1:
            self._expanded += factor
        self._previous = token
        return (
            len(self._brackets) <= MAX_BRACKETS + 1
            and self._operators <= MAX_OPERATORS
            and self._expanded <= MAX_EXPANDED
        )

    def _open(self, token: bytes, factor: int) -> None:
        if token == b"{":
            is_list = self._previous == b"=" or self._brackets[-1].is_list
            self._brackets.append(_Bracket(token, 1, is_list))
            self._operators = 0
        else:
            self._brackets.append(_Bracket(token, factor * self._repeats, False))
            self._add(factor)

    def _close(self, token: bytes) -> None:
        if len(self._brackets) > 1:
            self._brackets.pop()
        if token == b"}":
            self._operators = 0

    def _separates(self, token: bytes) -> bool:
        """Return whether what follows a token does not nest in what was before it."""
        inside = self._brackets[-1]
        return inside.token == b"{" if token == b";" else token == b"," and inside.is_list

    def _add(self, operators: int) -> None:
        self._operators += operators
        self._most = max(self._most, self._operators)

    def _check_code(self, start: int, end: int) -> None:
        try:
            self._source.data[start:end].decode("utf-8")
        except UnicodeDecodeError as error:
            at = start + error.start
            self._findings.add(
                "EATSS-F001",
                f"byte 0x{self._source.data[at]:02x} is not UTF-8",
                span=self._source.span(at, at + 1),
                hint="save the file as UTF-8",
            )


def _macros(data: bytes) -> dict[bytes, _Macro]:
    """Return what the macros of a text expand to, in numbers; the innermost first, no recursion."""
    bodies = {match[1]: (match[2] or b"", match[3]) for match in _DEFINE.finditer(data)}
    known: dict[bytes, _Macro] = {}
    seen: set[bytes] = set()
    todo = [(name, False) for name in reversed(bodies)]
    while todo:
        name, uses_are_known = todo.pop()
        parameters, body = bodies[name]
        words = _WORD.findall(body)
        if uses_are_known:
            used = [known[word] for word in words if word in known]
            operators = len(_OPERATOR.findall(body)) + sum(one.operators for one in used)
            tokens = len(_ANY_TOKEN.findall(body)) + sum(one.tokens for one in used)
            repeats = max(map(words.count, _WORD.findall(parameters)), default=1)
            known[name] = _Macro(
                min(operators, 10 * MAX_OPERATORS), min(tokens, 10 * MAX_EXPANDED), max(repeats, 1)
            )
        elif name not in seen:
            seen.add(name)
            todo.append((name, True))
            todo += [(word, False) for word in words if word in bodies and word not in seen]
    return known

"""Errors and findings: where in the source, what is wrong, what to write instead.

Every package raises :class:`EatssError`; the command line turns it into text or
JSON and into an exit code. A user's mistake never reaches the user as a
traceback.

Findings that stop nothing, as warnings of Python at the line that called eatss.

import warnings
warnings.filterwarnings("error", category=eatss.EatssWarning)
warnings.filterwarnings("ignore", message=".*EATSS-F095", category=eatss.EatssWarning)
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from eatss.base.frozen import frozen
from eatss.base.text import printable


class ExitCode(IntEnum):
    """Process exit codes of the command line."""

    OK = 0
    NO_SOLUTION = 1
    USER_INPUT = 2
    INCOMPLETE = 3
    INTERNAL = 70


class Severity(Enum):
    """How serious a finding is; only ``ERROR`` stops a run."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SourceSpan:
    """A stretch of source text.

    Lines and columns count from 1, columns in characters; the end is exclusive.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def in_line(cls, file: str, line: int, column: int, length: int = 1) -> SourceSpan:
        """Build from the place of some characters of one line."""
        end = column + length
        return cls(file=file, line=line, column=column, end_line=line, end_column=end)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class Diagnostic:
    """One finding about the user's input.

    Attributes:
        code: Stable across releases, ``EATSS-F012``.
        message: What is wrong, a sentence.
        severity: How serious it is.
        span: Where in the source, ``None`` where it has no place there.
        source_line: Text of the line the span starts on, kept here so that a diagnostic can be
            printed after the file is gone.
        hint: What to write instead, ``None`` where nothing is advised.
    """

    code: str
    message: str
    severity: Severity = Severity.ERROR
    span: SourceSpan | None = None
    source_line: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span is not None else ""
        return f"{where}{self.severity.value}: {self.message} [{self.code}]"

    def text(self) -> str:
        """Return place, message, source line, caret and hint, as the command line prints them."""
        return "".join(words for words, _ in pieces(self))


Diagnostics: TypeAlias = tuple[Diagnostic, ...]
"""Findings, in the order in which they are told."""

Piece: TypeAlias = Literal[
    "place", "severity", "message", "code", "gutter", "source", "caret", "hint", "plain"
]
"""What a stretch of a finding's text is, so that a terminal can colour it."""


def pieces(diagnostic: Diagnostic) -> Iterator[tuple[str, Piece]]:
    """Yield the text of a finding in the manner of clang, stretch by stretch."""
    if diagnostic.span is not None:
        yield printable(f"{diagnostic.span}: "), "place"
    yield f"{diagnostic.severity.value}: ", "severity"
    yield printable(diagnostic.message), "message"
    yield f" [{diagnostic.code}]", "code"
    if diagnostic.span is not None and diagnostic.source_line is not None:
        yield "\n", "plain"
        yield from _excerpt(diagnostic.source_line, diagnostic.span)
    if diagnostic.hint is not None:
        yield "\n  hint: ", "hint"
        yield printable(diagnostic.hint), "plain"


def _excerpt(source_line: str, span: SourceSpan) -> Iterator[tuple[str, Piece]]:
    """Yield the source line and a caret below."""
    line = "".join(c if c.isprintable() else " " for c in source_line.rstrip("\n"))
    start = min(span.column - 1, len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    number = f"{span.line:>5} | "
    yield number, "gutter"
    yield line, "source"
    yield "\n" + " " * (len(number) - 2) + "| ", "gutter"
    yield " " * start + "^" + "~" * (min(end, len(line)) - start - 1), "caret"


class EatssError(Exception):
    """Something eatss will not or cannot do, said in the user's terms.

    ``str(error)`` is what the command line prints: message, place in the source, and what to write
    instead. ``diagnostics`` are the findings one by one, at least one; ``code``, ``message`` and
    ``hint`` are those of the first. ``exit_code`` is what the command line returns for it.
    """

    exit_code: ExitCode = ExitCode.USER_INPUT

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("an EatssError needs at least one diagnostic")
        self.diagnostics = diagnostics
        super().__init__("\n".join(one.text() for one in diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        """Go from process to process with the findings, not with their text."""
        return type(self), self.diagnostics, self.__dict__

    @property
    def code(self) -> str:
        """The stable code of the first finding, ``"EATSS-F012"``."""
        return self.diagnostics[0].code

    @property
    def message(self) -> str:
        """The sentence of the first finding."""
        return self.diagnostics[0].message

    @property
    def hint(self) -> str | None:
        """What to do about the first finding; ``None`` where nothing is advised."""
        return self.diagnostics[0].hint


class InputError(EatssError):
    """The user's input is wrong or outside what eatss accepts (exit code 2)."""


class NoSolutionError(EatssError):
    """The input is fine but no tile sizes satisfy the limits (exit code 1)."""

    exit_code = ExitCode.NO_SOLUTION


class InternalError(EatssError):
    """A check between passes failed: a fault of eatss, not of the user (exit code 70)."""

    exit_code = ExitCode.INTERNAL


class IllegalScheduleError(InternalError):
    """A schedule that isl does not prove to compute what the program does.

    What tries schedules that may be wrong catches it and takes another; it is a fault of eatss
    where nothing does.
    """


class IslFailedError(InternalError):
    """isl failed, or ran out of what it may take: what tries several ways takes another."""


def input_error(
    code: str, message: str, *, hint: str | None = None, span: SourceSpan | None = None
) -> InputError:
    """Build an :class:`InputError`; without ``span`` it has no place in a source file."""
    return InputError(Diagnostic(code=code, message=message, span=span, hint=hint))


def internal_error(code: str, message: str, *, span: SourceSpan | None) -> InternalError:
    """Build the error for a check between passes that failed: a fault of eatss."""
    return InternalError(Diagnostic(code=code, message=f"internal error: {message}", span=span))


def did_you_mean(name: str, known: Iterable[str], others: str = "") -> str:
    """Return the known name that is like one that is not, else all, after ``others`` if given."""
    from difflib import get_close_matches  # noqa: PLC0415 - few need it

    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else others and f"{others}: {', '.join(names)}"


_OWN = str(Path(__file__).parents[1]) + os.sep


class EatssWarning(UserWarning):
    """Something about the input that eatss accepts, and that is hardly meant so.

    ``str(warning)`` is what the command line prints. ``diagnostic`` is the finding.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic)

    def __str__(self) -> str:
        return self.diagnostic.text()

    @property
    def code(self) -> str:
        """The stable code, ``"EATSS-F095"``."""
        return self.diagnostic.code


Warned: TypeAlias = Callable[[Sequence[Diagnostic]], None]
"""Is told of findings that stop nothing."""


def warn_caller(findings: Sequence[Diagnostic]) -> None:
    """Warn of findings, at the line outside of eatss from which it was called."""
    for finding in findings:
        warnings.warn(EatssWarning(finding), stacklevel=1 + _frames_of_eatss())


def _frames_of_eatss() -> int:
    """Return how many calls there are from the user's code to whoever calls this."""
    frame, count = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, count = frame.f_back, count + 1
    return count


class Progress(Protocol):
    """Hears what is done now, and how much of how many is done, where that is known."""

    def __call__(self, what: str, done: float = 0, total: float | None = None) -> None:
        """Take note; it must be quick."""
        ...


def no_progress(what: str, done: float = 0, total: float | None = None) -> None:
    """Hear it, and do nothing."""

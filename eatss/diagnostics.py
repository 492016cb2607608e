"""Errors and findings: where in the source, what is wrong, what to write instead.

Every package raises :class:`EatssError`; the command line turns it into text or
JSON and into an exit code. A user's mistake never reaches the user as a
traceback.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class ExitCode(IntEnum):
    """Process exit codes of the command line."""

    OK = 0
    NO_SOLUTION = 1
    USER_INPUT = 2
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

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding about the user's input.

    ``code`` is stable across releases (``EATSS-F012``). ``source_line`` is the
    text of the line the span starts on, kept here so that a diagnostic can be
    printed after the file is gone. ``hint`` says what to write instead.
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


class EatssError(Exception):
    """Something eatss will not or cannot do, said in the user's terms.

    Carries one or more :class:`Diagnostic`. ``exit_code`` is what the command
    line returns for it.
    """

    exit_code: ExitCode = ExitCode.USER_INPUT

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("an EatssError needs at least one diagnostic")
        self.diagnostics = diagnostics
        super().__init__("\n".join(str(d) for d in diagnostics))
        for one in diagnostics:
            if one.hint is not None:
                self.add_note(f"hint: {one.hint}")  # shown under a traceback, in Python

    def __reduce__(self) -> tuple[type[EatssError], tuple[Diagnostic, ...]]:
        """Go from process to process with the findings, not with their text."""
        return type(self), self.diagnostics

    @property
    def code(self) -> str:
        """The stable code of the first finding."""
        return self.diagnostics[0].code


class InputError(EatssError):
    """The user's input is wrong or outside what eatss accepts (exit code 2)."""


class NoSolutionError(EatssError):
    """The input is fine but no tile sizes satisfy the limits (exit code 1)."""

    exit_code = ExitCode.NO_SOLUTION


class InternalError(EatssError):
    """A check between passes failed: a fault of eatss, not of the user (exit code 70)."""

    exit_code = ExitCode.INTERNAL


def input_error(code: str, message: str, *, hint: str | None = None) -> InputError:
    """Build an :class:`InputError` that has no place in a source file."""
    return InputError(Diagnostic(code=code, message=message, hint=hint))

"""Words on stderr while a command works: what it does, warnings, errors."""

from __future__ import annotations

import errno
import sys
import traceback as traceback_module
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from eatss.cli.progress import cleared, working
from eatss.cli.talk import FromSettings, Talk, current
from eatss.diagnostics import (
    Diagnostic,
    EatssError,
    ExitCode,
    InputError,
    Severity,
    input_error,
)

if TYPE_CHECKING:
    from eatss.cli.options import FindingsFormat
    from eatss.session.session import Session

_TALK = ("--quiet", "--verbose", "--diagnostics", "--debug")
"""Options that are at fault in no error."""

_UNUSED_MACRO = "EATSS-F095"

_NOT_LET = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO),
    *(errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE),
}
"""Errors of the system that are no fault of eatss."""


def read(session: Session, diagnostics: FindingsFormat) -> None:
    """Analyse what a session is about, and print its warnings."""
    with working(f"analysing {session.file}") as step:
        step.at(f"reading {session.file}")
        assert session.parsed
        step.at(f"analysing {session.file}")
        warnings = session.warnings
    report_warnings(warnings, diagnostics)


def report_warnings(warnings: Sequence[Diagnostic], diagnostics: FindingsFormat) -> None:
    """Print warnings on stderr, if there are any and nobody asked for quiet."""
    talk = current.get()
    if not warnings or talk.quiet:
        return
    notes: Sequence[Diagnostic] = ()
    if any(one.code == _UNUSED_MACRO for one in warnings):  # nobody typed it for this file
        notes = _set_by_a_file([one for one in talk.from_settings if one.option == "-D"])
    _print_diagnostics([*warnings, *notes], as_json=diagnostics == "json")


def warn_while_working(warnings: Sequence[Diagnostic]) -> None:
    """Print warnings on stderr above the line of the step that goes on."""
    if warnings:
        cleared()
        report_warnings(warnings, "text")


def say(text: str, *, nl: bool = True) -> None:
    """Print on stderr what was done, or what to do next, unless nobody wants to know."""
    if not current.get().quiet:
        typer.echo(text, err=True, nl=nl)


def report_error(error: EatssError, talk: Talk) -> None:
    """Print an error's findings on stderr, and how many there are if several."""
    _print_diagnostics([*error.diagnostics, *_of_settings(error, talk)], as_json=talk.as_json)
    count = sum(one.severity is Severity.ERROR for one in error.diagnostics)
    if not talk.as_json and count > 1:
        print(f"{count} errors.", file=sys.stderr)  # noqa: T201


def of_the_system(error: Exception) -> InputError | None:
    """Return what is said of a file or folder that the system does not let us have, if it is one.

    Commands say it themselves of files that they name; this is of all others.
    """
    if not isinstance(error, OSError) or error.errno not in _NOT_LET or error.filename is None:
        return None
    return input_error(
        "EATSS-C041",
        f"cannot use '{error.filename}': {error.strerror}",
        hint="check the path, its permissions and the room on its disk",
    )


def internal_fault(error: Exception, talk: Talk) -> None:
    """Say that eatss itself failed, and what the user can do."""
    if talk.debug:
        traceback_module.print_exception(error)
    detail = " ".join(str(error).split()) or type(error).__name__
    diagnostic = Diagnostic(
        code="EATSS-X001",
        message=f"eatss failed: {type(error).__name__}: {detail[:300]}",
        hint="this is a fault of eatss; please report it with the output of --debug and of "
        "eatss --version --verbose",
    )
    _print_diagnostics([diagnostic], as_json=talk.as_json)


def _of_settings(error: EatssError, talk: Talk) -> Sequence[Diagnostic]:
    """Return a note of the options that nobody has typed, where the user's input is at fault.

    All are named: which of them an error is about, it does not know.
    """
    if error.exit_code is not ExitCode.USER_INPUT:
        return ()
    return _set_by_a_file([one for one in talk.from_settings if one.option not in _TALK])


def _set_by_a_file(options: Sequence[FromSettings]) -> Sequence[Diagnostic]:
    """Return a note that says in which lines of a file options are set, nothing if none is."""
    if not options:
        return ()
    places = ((one.option, one.file.place(*one.key)) for one in options)
    shown = [f"{name} (line {place.span.line})" if place else name for name, place in places]
    return (
        Diagnostic(
            code="EATSS-C034",
            message=f"{options[0].file.path} sets {', '.join(shown)}",
            severity=Severity.NOTE,
            hint="eatss --no-config leaves settings out",
        ),
    )


def _print_diagnostics(diagnostics: Sequence[Diagnostic], *, as_json: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from eatss.report.diagnostics import diagnostics_json, diagnostics_text  # noqa: PLC0415

    if as_json:
        print(diagnostics_json(diagnostics), file=sys.stderr)  # noqa: T201
    else:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(diagnostics_text(diagnostics))

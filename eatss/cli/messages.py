"""Words on stderr while a command works: what it does, warnings, errors."""

from __future__ import annotations

import re
import sys
import traceback as traceback_module
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from eatss.cli.progress import working
from eatss.cli.talk import Talk, current
from eatss.diagnostics import Diagnostic, EatssError, ExitCode, Severity

if TYPE_CHECKING:
    from eatss.cli.options import FindingsFormat
    from eatss.session.session import Session


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
    if warnings and not current.get().quiet:
        _print_diagnostics(warnings, as_json=diagnostics == "json")


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
    """Return a note of options that an error speaks of and that nobody has typed."""
    if error.exit_code is not ExitCode.USER_INPUT:
        return ()
    said = " ".join(f"{one.message} {one.hint or ''}".lower() for one in error.diagnostics)
    words = set(re.findall(r"[a-z][a-z-]*", said))
    named = [one for one in talk.defaults if one.lstrip("-") in words]
    if not named:
        return ()
    message = f"{talk.settings} sets {', '.join(named)}"
    hint = "eatss --no-config leaves it out"
    note = Severity.NOTE
    return (Diagnostic(code="EATSS-C034", message=message, severity=note, hint=hint),)


def _print_diagnostics(diagnostics: Sequence[Diagnostic], *, as_json: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from eatss.report.diagnostics import diagnostics_json, diagnostics_text  # noqa: PLC0415

    if as_json:
        print(diagnostics_json(diagnostics), file=sys.stderr)  # noqa: T201
    else:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(diagnostics_text(diagnostics))

"""Words on stderr while a command works: what it does, warnings, errors."""

from __future__ import annotations

import sys
import traceback as traceback_module
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eatss.diagnostics import Diagnostic, EatssError, Severity

if TYPE_CHECKING:
    from eatss.cli.options import FindingsFormat
    from eatss.session.session import Session


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal's stderr what takes time; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from eatss.report.render import printable  # noqa: PLC0415

    with Console(stderr=True).status(Text(printable(what))):
        yield


def read(session: Session, diagnostics: FindingsFormat) -> None:
    """Analyse what a session is about, and print its warnings."""
    with working(f"analysing {session.file}"):
        warnings = session.warnings
    report_warnings(warnings, diagnostics)


def report_warnings(warnings: Sequence[Diagnostic], diagnostics: FindingsFormat) -> None:
    """Print warnings on stderr, if there are any."""
    if warnings:
        _print_diagnostics(warnings, as_json=diagnostics == "json")


def report_error(error: EatssError, *, as_json: bool) -> None:
    """Print an error's findings on stderr, and how many there are if several."""
    _print_diagnostics(error.diagnostics, as_json=as_json)
    count = sum(one.severity is Severity.ERROR for one in error.diagnostics)
    if not as_json and count > 1:
        print(f"{count} errors.", file=sys.stderr)  # noqa: T201


def internal_fault(error: Exception, *, as_json: bool, traceback: bool) -> None:
    """Say that eatss itself failed, and what the user can do."""
    if traceback:
        traceback_module.print_exception(error)
    detail = " ".join(str(error).split()) or type(error).__name__
    diagnostic = Diagnostic(
        code="EATSS-X001",
        message=f"eatss failed: {type(error).__name__}: {detail[:300]}",
        hint="this is a fault of eatss; please report it with the output of --debug",
    )
    _print_diagnostics([diagnostic], as_json=as_json)


def _print_diagnostics(diagnostics: Sequence[Diagnostic], *, as_json: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from eatss.report.diagnostics import diagnostics_json, diagnostics_text  # noqa: PLC0415

    if as_json:
        print(diagnostics_json(diagnostics), file=sys.stderr)  # noqa: T201
    else:
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print(diagnostics_text(diagnostics))

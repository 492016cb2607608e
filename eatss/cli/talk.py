"""Words on stderr while a command works: what it does and how far it is, warnings, errors.

Every command has ``--quiet`` and ``--verbose``.

A step that takes long is one line on a terminal, which comes after two seconds, with the time since
the step began, and goes when the step ends. With ``--verbose`` there is a line for each step that
is done, with its time. ``--quiet`` says nothing at all.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from eatss.base.diagnostics import (
    Diagnostic,
    EatssError,
    EatssWarning,
    InputError,
    Severity,
    input_error,
)
from eatss.base.frozen import frozen
from eatss.base.streams import echo, telling
from eatss.base.targets import CardNumber
from eatss.base.text import printable

if TYPE_CHECKING:
    from eatss.cards import GpuProfile


@frozen
class Talk:
    """What is said on stderr besides errors.

    ``quiet``: nothing, whatever else is asked for. ``verbose``: each step with its time. ``debug``:
    our own faults have a traceback.
    """

    quiet: bool = False
    verbose: bool = False
    debug: bool = False


current: ContextVar[Talk] = ContextVar("talk", default=Talk())  # noqa: B039 - it is frozen
"""How the command of this process talks; set once its options are known."""


SHOWN_AFTER_S = 2.0
"""A step that takes less is not shown on a terminal."""

_REFRESH_S = 0.2


class Step:
    """A step under way: whoever works says here how far it is."""

    def __init__(self, what: str) -> None:
        self.state = what
        self.began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self.began

    def at(self, what: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        """Say what is done now; may be called from any thread, and often.

        Args:
            what: a few words.
            done: how much of ``total``.
            total: how much there is, ``None`` if nobody knows.
            note: what else is known, ``at most 3 s left``.
        """
        count = "" if total is None else f" {done:g} of {total:g}"
        self.state = f"{what}{count}" + (f", {note}" if note else "")


@contextmanager
def working(what: str) -> Iterator[Step]:
    """Show what takes time, and tell its time when it is done if ``--verbose`` asks for it.

    Args:
        what: the step in a few words: ``solving for NVIDIA H200``.

    Yields:
        Where to say how far it is.
    """
    talk, step, ended = current.get(), Step(what), threading.Event()
    teller = threading.Thread(target=_tell, args=(step, ended), name="progress", daemon=True)
    draws = sys.stderr.isatty() and not talk.quiet
    if draws:
        teller.start()
    try:
        yield step
    finally:
        ended.set()
        if draws:
            teller.join()
    if talk.verbose and not talk.quiet:
        echo(printable(f"{what}: {step.elapsed_s:.1f} s"), err=True)


def cleared() -> None:
    """Wipe the line of a step."""
    if sys.stderr.isatty():
        echo("\r\x1b[2K", err=True, nl=False)


def _tell(step: Step, ended: threading.Event) -> None:
    """Draw where a step is in one line that goes when it ends."""
    wait_s = SHOWN_AFTER_S
    while not ended.wait(wait_s):
        wait_s = _REFRESH_S
        line = printable(f"{step.state}, {step.elapsed_s:.1f} s")
        echo(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}", err=True, nl=False)
    if wait_s == _REFRESH_S:
        cleared()


def report_warnings(found: Sequence[Diagnostic]) -> None:
    """Print warnings on stderr, if there are any and nobody asked for quiet."""
    if found and not current.get().quiet:
        _print_diagnostics(found)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print what the API warns of in the manner of errors; warnings of others as Python does."""
    if isinstance(message, EatssWarning):
        warn_while_working((message.diagnostic,))
    else:
        _SHOWN_BY_PYTHON(message, category, filename, lineno, file, line)


_SHOWN_BY_PYTHON = warnings.showwarning


def warn_while_working(found: Sequence[Diagnostic]) -> None:
    """Print warnings on stderr above the line of the step that goes on."""
    if found:
        cleared()
        report_warnings(found)


def say(text: str, *, nl: bool = True) -> None:
    """Print on stderr what was done, or what to do next, unless nobody wants to know."""
    if not current.get().quiet:
        echo(text, err=True, nl=nl)


def report_error(error: EatssError) -> None:
    """Print an error's findings on stderr, and how many there are if several."""
    _print_diagnostics(error.diagnostics)
    count = sum(one.severity is Severity.ERROR for one in error.diagnostics)
    if count > 1:
        echo(f"{count} errors.", err=True)


def of_the_system(error: Exception) -> InputError | None:
    """Return what is said of a file or folder that the system does not let us have, if it is one.

    Commands say it themselves of files that they name; this is of all others.
    """
    if not isinstance(error, OSError) or error.filename is None:
        return None
    return input_error(
        "EATSS-C014",
        f"cannot use '{error.filename}': {error.strerror}",
        hint="check the path, its permissions and the room on its disk",
    )


def internal_fault(error: Exception, talk: Talk) -> None:
    """Say that eatss itself failed, and what the user can do."""
    if talk.debug:
        import traceback  # noqa: PLC0415 - for faults only

        traceback.print_exception(error)
    detail = " ".join(str(error).split()) or type(error).__name__
    diagnostic = Diagnostic(
        code="EATSS-X001",
        message=f"eatss failed: {type(error).__name__}: {detail[:300]}",
        hint="this is a fault of eatss; please report it with the output of --debug and of "
        "eatss doctor",
    )
    _print_diagnostics([diagnostic])


def _print_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    from eatss.report.diagnostics import print_diagnostics  # noqa: PLC0415

    with telling() as stream:
        print_diagnostics(diagnostics, stream)


def given_card(gpu: str, device: CardNumber = 0) -> GpuProfile:
    """Return the profile of a card that a command names; say on stderr which one ``auto`` is.

    Args:
        gpu: a name, a path, or ``auto``.
        device: of ``auto``: number in CUDA's order, or UUID.

    Raises:
        InputError: as ``eatss.load_profile``.
    """
    from eatss.cards.this_machine import card_here, is_auto, load_profile  # noqa: PLC0415 - slow

    if not is_auto(gpu):
        return load_profile(gpu)
    with working("asking the driver for its card"):
        found = card_here(device)
    report_warnings((found.note,))
    return found.profile

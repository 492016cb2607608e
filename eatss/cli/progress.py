"""What a command does now and how far it is, on stderr: a line that comes after two seconds.

On a terminal it is one line, with the time since the step began, that goes when the step ends.
Elsewhere, as in a log, nothing is said; with ``--verbose`` a line for each step that is done, with
its time, and every ten seconds one for the step that runs. ``--quiet`` says nothing at all.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from eatss.cli.talk import current

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER_S = 2.0
"""A step that takes less is not shown on a terminal."""

TOLD_EVERY_S = 10.0
"""Time between two lines about the same step where stderr is no terminal."""

_REFRESH_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a step is: ``done`` of ``total``, where that is known, and more in ``note``."""

    what: str
    done: float = 0
    total: float | None = None
    note: str = ""

    def __str__(self) -> str:
        count = "" if self.total is None else f" {self.done:g} of {self.total:g}"
        return f"{self.what}{count}" + (f", {self.note}" if self.note else "")


class Step:
    """A step under way: whoever works says here how far it is."""

    def __init__(self, what: str) -> None:
        self.state = State(what=what)
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
        self.state = State(what=what, done=done, total=total, note=note)

    def part(self, done: float, total: float) -> None:
        """Say how much of all is done."""
        state = self.state
        self.state = State(what=state.what, done=done, total=total, note=state.note)


@contextmanager
def working(what: str) -> Iterator[Step]:
    """Show what takes time, and tell its time when it is done if ``--verbose`` asks for it.

    Args:
        what: the step in a few words: ``solving for NVIDIA H200``.

    Yields:
        Where to say how far it is.
    """
    talk, step = current.get(), Step(what)
    shows = sys.stderr.isatty() and not talk.quiet
    if not shows and not talk.verbose:
        yield step
        return
    ended = threading.Event()
    # what draws is loaded here: a process that is forked while a thread loads a module may wait
    # for that module for good
    draw = partial(_shown, _bar()) if shows else _told
    teller = threading.Thread(target=draw, args=(step, ended), name="progress", daemon=True)
    teller.start()
    try:
        yield step
    finally:
        ended.set()
        teller.join()
    if talk.verbose:
        _say(f"{what}: {_time(step.elapsed_s)}")


def cleared() -> None:
    """Wipe the line of a process that was killed while it drew, and show the cursor again."""
    if sys.stderr.isatty():
        print("\r\x1b[2K\x1b[?25h", end="", file=sys.stderr, flush=True)  # noqa: T201


def _told(step: Step, ended: threading.Event) -> None:
    """Say now and then where a step is."""
    while not ended.wait(TOLD_EVERY_S):
        _say(f"{step.state}, {_time(step.elapsed_s)} so far")


def _shown(bar: Progress, step: Step, ended: threading.Event) -> None:
    """Draw a step from its third second until it ends."""
    if ended.wait(SHOWN_AFTER_S):
        return
    task = bar.add_task(_printable(step.state.what), total=None)
    bar.tasks[0].start_time = step.began

    def update() -> None:
        state = step.state
        bar.update(
            task,
            description=_printable(state.what),
            completed=state.done,
            total=state.total,
            note=_printable(state.note),
        )

    update()
    with bar:
        while not ended.wait(_REFRESH_S):
            update()
            bar.refresh()
        update()


def _bar() -> Progress:
    """Return one line: the step, how far it is, and its time; it goes when it ends."""
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.progress import Progress, ProgressColumn, Task  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Column  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Bar(ProgressColumn):
        def render(self, task: Task) -> ProgressBar | Text:
            if task.total is None:
                return Text("")
            return ProgressBar(total=max(task.total, 1e-9), completed=task.completed, width=12)

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            count = "" if task.total is None else f"{task.completed:g}/{task.total:g}"
            return Text("  ".join(filter(None, (count, task.fields.get("note", "")))))

    class What(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.description, overflow="ellipsis", no_wrap=True)

    class Elapsed(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_time(task.elapsed or 0.0), style="dim")

    return Progress(
        What(Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        Bar(Column(no_wrap=True)),
        Words(Column(no_wrap=True, overflow="ellipsis")),
        Elapsed(Column(no_wrap=True)),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
        get_time=time.monotonic,
        expand=True,
    )


def _say(line: str) -> None:
    print(_printable(line), file=sys.stderr, flush=True)  # noqa: T201


def _printable(text: str) -> str:
    from eatss.report.render import printable  # noqa: PLC0415 - keeps --help fast

    return printable(text)


def _time(seconds: float) -> str:
    """Return ``0.4 s``, ``12 s`` or ``3:05``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02}"

"""What a measurement does now and what is left, in the words of the step that is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eatss.cli.progress import working

if TYPE_CHECKING:
    from eatss.measurement.progress import Progress

_DOING = {
    "start": "starting",
    "compile": "compiling",
    "check": "comparing with the original",
    "first run": "running once",
    "compare": "comparing results",
    "try repeating": "seeing whether repeating drifts",
    "idle power": "reading idle power",
    "warm-up": "warming up",
    "restoring": "timing the restoring of inputs",
    "window": "window",
}


@contextmanager
def showing() -> Iterator[Callable[[Progress], None]]:
    """Yield what is to be told of progress."""
    with working("measuring") as step:

        def tell(progress: Progress) -> None:
            step.at(doing(progress), progress.variants_done, progress.variants, note=left(progress))

        yield tell


def doing(progress: Progress) -> str:
    """Return what runs now, ``selected: window 3``."""
    now = _DOING.get(progress.stage, progress.stage)
    if progress.window:
        now = f"{now} {progress.window}"
    return f"{progress.variant}: {now}" if progress.variant else now


def left(progress: Progress) -> str:
    """Return how long it takes at most."""
    from eatss.report.figures import seconds  # noqa: PLC0415 - keeps --help fast

    return f"at most {seconds(progress.left_s)} left" if progress.left_s > 0 else ""

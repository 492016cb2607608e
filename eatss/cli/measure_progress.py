"""What runs now and what is left, on a terminal's stderr; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
def showing() -> Iterator[Callable[[Progress], None] | None]:
    """Yield what is to be told of progress; ``None`` where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None, left="")

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                description=doing(progress),
                total=progress.variants,
                completed=progress.variants_done,
                left=left(progress),
            )

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

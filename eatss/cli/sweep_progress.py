"""How far a sweep is, on a terminal's stderr; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eatss.explore.nouns import Progress


@contextmanager
def sweep_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Yield what is to be told of progress; ``None`` where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - keeps --help fast
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("setting up", total=None, words="")

        def tell(progress: Progress) -> None:
            total, done = _share(progress)
            words = sweep_words(progress)
            bar.update(task, description=progress.stage, total=total, completed=done, words=words)

        yield tell


def _share(progress: Progress) -> tuple[float | None, float]:
    """Return how much of what the budget allows is done."""
    if progress.wanted is not None:
        return float(progress.wanted), float(progress.measured + progress.failed)
    return progress.budget_s, progress.spent_s


def sweep_words(progress: Progress) -> str:
    """Return what was measured, and how good the best is: ``120 measured, 3 failed; best 0.81``."""
    found = f"{progress.measured} measured"
    if progress.failed:
        found += f", {progress.failed} failed"
    if progress.best is not None and progress.default:
        found += f"; best {progress.best / progress.default:.2f} of default"
    return found

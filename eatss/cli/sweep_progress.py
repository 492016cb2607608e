"""How far a sweep is, in the words of the step that is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eatss.cli.progress import working

if TYPE_CHECKING:
    from eatss.explore.nouns import Progress


@contextmanager
def sweep_progress() -> Iterator[Callable[[Progress], None]]:
    """Yield what is to be told of progress."""
    with working("setting up") as step:

        def tell(progress: Progress) -> None:
            total, done = _share(progress)
            step.at(progress.stage, done, total, note=sweep_words(progress))

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

"""``Progress``: what a verification does now, and how many runs are done."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.program import Program
from eatss.verify.job import Entered, Job, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What runs now.

    ``launcher`` is the function that runs, at ``sizes``. ``done`` counts runs, ``total`` those
    that are planned, of which some may be left out.
    """

    launcher: str
    sizes: tuple[tuple[str, int], ...]
    stage: Stage
    done: int
    total: int


def progress_of(program: Program, job: Job, event: Entered) -> Progress:
    """Return how far a job is when a stage begins."""
    return Progress(
        launcher=program.entries[event.run.entry].launcher,
        sizes=event.run.sizes,
        stage=event.stage,
        done=event.number,
        total=len(job.runs) + len(job.further),
    )

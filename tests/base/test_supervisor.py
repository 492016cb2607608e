"""A worker process is given a job, heard out, bounded in time, and its end is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from eatss.base.diagnostics import InputError
from eatss.base.supervisor import Outcome, Worker, supervise
from tests.base.test_guard import gone, soon
from tests.refusals import refusing
from tests.supervised_worker import Behaviour, Entered, Task

pytestmark = pytest.mark.usefixtures("heeded_signals")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))


def worker(behaviour: Behaviour, limit_s: float = 30.0) -> Worker:
    return Worker(
        module="tests.supervised_worker",
        job=Task(behaviour, limit_s),
        start_limit_s=60.0,
    )


def ended(behaviour: Behaviour, limit_s: float = 30.0) -> tuple[Outcome, list[str]]:
    """Return how a worker ended and the stages it entered."""
    stages: list[str] = []

    def take(event: Entered | InputError) -> float | None:
        if isinstance(event, InputError):
            raise event
        stages.append(event.stage)
        return event.limit_s

    return supervise(worker(behaviour, limit_s), take), stages


def test_events_are_nouns_and_what_is_printed_is_none() -> None:
    outcome, stages = ended("work")
    assert stages == ["first", "second"]
    assert (outcome.in_time, outcome.exit_code) == (True, 0)
    assert outcome.said == ("printed by a library",)


@pytest.mark.parametrize(
    ("behaviour", "how"),
    [
        ("exit", "ended with exit code 3"),
        ("abort", "was ended by signal SIGABRT"),
        ("half", "was ended by signal SIGABRT"),
    ],
)
def test_an_end_is_told_in_words(behaviour: Behaviour, how: str) -> None:
    outcome, _ = ended(behaviour)
    assert outcome.in_time
    assert outcome.how == how


def test_a_stage_that_takes_too_long_ends_the_worker() -> None:
    outcome, stages = ended("hang", limit_s=0.2)
    assert (outcome.in_time, stages) == (False, ["first"])
    assert outcome.exit_code < 0


def test_a_refusal_is_the_users_mistake() -> None:
    with refusing("EATSS-X999", "not here") as caught:
        ended("refuse")
    assert caught.value.diagnostics[0].hint == "elsewhere"


def test_an_interrupt_ends_the_worker_and_what_it_started() -> None:
    started: list[int] = []

    def take(event: Entered) -> float:
        started[:] = event.processes
        if event.stage == "second":
            raise KeyboardInterrupt
        return event.limit_s

    with pytest.raises(KeyboardInterrupt):
        supervise(worker("sleep beside a child"), take)
    assert len(started) == 2
    assert all(soon(partial(gone, pid)) for pid in started)

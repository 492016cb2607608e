"""What the first pass leaves to the second one, by a clock of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.tune.campaign import Campaign, Plan
from eatss.tune.generation import measured_row
from eatss.tune.jobs import CAREFUL, FIRST, Outline, Policy, SweepOptions
from eatss.tune.processes import MeasureJob, Runner, VariantResult
from eatss.tune.rows import CardSeen, Sweep
from eatss.tune.store import Store
from eatss.tune.strategies import Budget, ListedSpace
from tests.report.measurements import measured
from tests.synthetic_sweeps import identity

CARD = CardSeen(uuid="GPU-0", name="NVIDIA H200", host="node1")
WATTS = 500.0
SECONDS = {FIRST: 0.95, CAREFUL: 6.5}
"""What a measurement took on an H200; a careful one took 4.3 to 9.9."""


class TimedRunner(Runner):
    """A lab whose card takes the seconds it is told and no time at all."""

    def __init__(self, seconds: dict[Policy, float] | None = None) -> None:
        self.now_s = 0.0
        self.waiting: deque[MeasureJob] = deque()
        self.seconds = seconds or SECONDS

    def clock(self) -> float:
        return self.now_s

    @property
    def room(self) -> int:
        return 5 - len(self.waiting)

    def submit(self, work: MeasureJob) -> None:
        self.waiting.append(work)

    def done(self, timeout_s: float) -> VariantResult | None:
        if not self.waiting:
            self.now_s += timeout_s
            return None
        work = self.waiting.popleft()
        took = self.seconds.get(replace(work.policy, checks=False), 0.0)
        self.now_s += took
        found = replace(measured(), power_w=WATTS, windows=())
        row = measured_row(work.wanted.row(), found)
        row = replace(row, stage=work.policy.stage, card="GPU-0", card_s=took, card_j=WATTS * took)
        return VariantResult(row=row, card=CARD)


def swept(path: Path, chosen: SweepOptions, runner: TimedRunner | None = None) -> Sweep:
    runner = runner or TimedRunner()
    plan = Plan(
        outline=Outline(
            space=ListedSpace(["x"], [{"x": x} for x in range(400)]),
            space_text="",
            ranked=None,
            roles=(("ours", None), ("default", None), ("paper", None)),
        ),
        options=chosen,
        identity=lambda _: identity(),
        path=path,
    )
    Campaign(plan, runner, clock=runner.clock).run()
    return Store.read(path, measurements=False)


def options(budget: str, **given: object) -> SweepOptions:
    chosen = SweepOptions(strategy="exhaustive", budget=Budget.parse(budget))
    return replace(chosen, **given)  # type: ignore[arg-type]


def count(found: Sweep, stage: str) -> int:
    return sum(one.stage == stage for one in found.rows)


def test_355_seconds_have_room_for_300_variants_and_two_contenders(tmp_path: Path) -> None:
    found = swept(tmp_path / "s.db", options("300,355s", contenders=2))
    assert count(found, "first") == 300
    assert count(found, "careful") == 2 + 3
    assert max(one.at_s for one in found.rows) <= 355


def test_a_quarter_is_kept_back_at_most(tmp_path: Path) -> None:
    found = swept(tmp_path / "s.db", options("900,40s", contenders=8))
    last = max(one.at_s for one in found.rows if one.stage == "first")
    assert last == pytest.approx(30, abs=1)
    none = swept(tmp_path / "t.db", options("900,40s", contenders=0))
    assert max(one.at_s for one in none.rows if one.stage == "first") > 38

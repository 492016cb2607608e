"""What the first pass leaves to the second one, in seconds and in joules, by a clock of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.tune.campaign import Campaign, Plan, reserve
from eatss.tune.generation import contenders
from eatss.tune.jobs import CAREFUL, FIRST, REFERENCE, Care, Made, SweepOptions, Tried
from eatss.tune.processes import REFERENCE_EVERY, Done, Lab, Work
from eatss.tune.rows import CardSeen, Row, Stage, Sweep
from eatss.tune.store import Store
from eatss.tune.strategies import Budget, ListedSpace
from tests.report.measurements import measured
from tests.synthetic_sweeps import identity, row

CARD = CardSeen(uuid="GPU-0", name="NVIDIA H200", host="node1")
WATTS = 500.0
SECONDS = {FIRST: 0.95, CAREFUL: 6.5, REFERENCE: 1.38}
"""What a measurement took on an H200; a careful one took 4.3 to 9.9."""


class TimedLab(Lab):
    """A lab whose card takes the seconds it is told and no time at all."""

    def __init__(self, seconds: dict[Care, float] | None = None) -> None:
        self.now_s = 0.0
        self.since = 0
        self.waiting: deque[Work] = deque()
        self.seconds = seconds or SECONDS

    def clock(self) -> float:
        return self.now_s

    @property
    def room(self) -> int:
        return 5 - len(self.waiting)

    def submit(self, work: Work) -> None:
        self.waiting.append(work)

    def done(self, timeout_s: float) -> Done | None:
        if not self.waiting:
            self.now_s += timeout_s
            return None
        work, care = self.waiting[0], self.waiting[0].care
        if self.since == REFERENCE_EVERY and work.reference_care is not None:
            care, self.since = work.reference_care, 0
        else:
            self.waiting.popleft()
            self.since += 1
        took = self.seconds.get(replace(care, checks=False, stage=_stage(care)), 0.0)
        self.now_s += took
        variant = work.wanted.variant
        made = Made(variant=variant, folder=None)
        found = replace(measured(), power_w=WATTS, windows=())
        tried = Tried(measurement=found, card=CARD, card_s=took, card_j=WATTS * took)
        return Done(work=work, made=made, tried=tried, care=care)


def _stage(care: Care) -> Stage:
    """Return the stage of the care that is meant: the last reference is a careful one."""
    return "careful" if care.least_windows > 1 else care.stage


def swept(path: Path, chosen: SweepOptions, lab: TimedLab | None = None) -> Sweep:
    lab = lab or TimedLab()
    plan = Plan(
        space=ListedSpace(["x"], [{"x": x} for x in range(400)]),
        decide=lambda point: point,
        ranked=None,
        roles=(("ours", None), ("default", None), ("paper", None)),
        options=chosen,
        identity=lambda _: identity(),
        path=path,
        space_text="",
    )
    Campaign(plan, lab, clock=lab.clock).run()
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


@pytest.mark.samples(1)
@pytest.mark.parametrize("contenders", [1, 4])
def test_what_is_kept_back_is_what_the_second_pass_takes(contenders: int, tmp_path: Path) -> None:
    found = swept(tmp_path / "s.db", options("900,250s", contenders=contenders))
    assert count(found, "careful") == contenders + 3
    assert found.rows[-1].stage == "reference"
    assert found.rows[-1].at_s == pytest.approx(250, abs=SECONDS[CAREFUL] + SECONDS[FIRST])


def test_a_quarter_is_kept_back_at_most(tmp_path: Path) -> None:
    found = swept(tmp_path / "s.db", options("900,40s", contenders=8))
    last = max(one.at_s for one in found.rows if one.stage == "first")
    assert last == pytest.approx(30, abs=1)


def test_joules_are_kept_back_alike(tmp_path: Path) -> None:
    budget_j = 355 * WATTS
    found = swept(tmp_path / "s.db", options(f"300,{budget_j}J", contenders=2))
    assert count(found, "first") == 300
    assert count(found, "careful") == 2 + 3
    few = swept(tmp_path / "t.db", options(f"900,{250 * WATTS}J", contenders=2))
    assert count(few, "careful") == 2 + 3
    assert sum(one.card_j or 0.0 for one in few.rows) == pytest.approx(
        250 * WATTS, abs=WATTS * (SECONDS[CAREFUL] + SECONDS[FIRST])
    )


def test_what_careful_measurements_took_counts_more_than_what_they_should(tmp_path: Path) -> None:
    lab = TimedLab(seconds={**SECONDS, CAREFUL: 2.0})
    swept(tmp_path / "s.db", options("50,200s", contenders=2), lab)
    more = options("900,200s", contenders=2)
    found = swept(tmp_path / "s.db", more, lab)
    last = max(one.at_s for one in found.rows if one.stage == "first")
    assert last == pytest.approx(200 - 6 * 2.0, abs=1)


QUICK: list[Row] = [
    replace(row(n, 0.01, 1.0), card_s=0.95, card_j=300.0, power_w=400.0) for n in range(3)
]


def test_what_is_not_asked_for_is_not_kept_back() -> None:
    none = reserve(options("300,355s,20kJ", contenders=0), 3, QUICK)
    assert (none.seconds, none.joules) == (0, 0)
    counted = reserve(options("300,355s,20kJ", contenders=1, counters=9), 3, QUICK)
    assert (counted.seconds, counted.joules) == (0.25 * 355, 0.25 * 20e3)
    unlimited = reserve(options("300"), 3, QUICK)
    assert (unlimited.seconds, unlimited.joules) == (0, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_each_size_of_the_program_has_its_contenders(count: int) -> None:
    sizes = [(("N", 500 * n),) for n in (1, 2, 3)]
    rows = [replace(one, sizes=at) for at in sizes for one in QUICK]
    chosen = contenders(rows, "energy", count)
    kept = reserve(options("300,9000s,9MJ", contenders=count), 3, rows)
    (one_s, one_j) = (kept.seconds / (3 + len(chosen) + 1), kept.joules / (3 + len(chosen) + 1))
    alone = reserve(options("300,9000s,9MJ", contenders=1), 3, QUICK)
    assert (one_s, one_j) == pytest.approx((alone.seconds / 5, alone.joules / 5))


def test_one_careful_measurement_is_expected_to_take_what_it_took_on_a_card() -> None:
    found = reserve(options("300,1000s,9MJ", contenders=2), 3, QUICK)
    assert 5.5 < found.seconds / 6 < 7.0
    assert found.joules / 6 == pytest.approx(400 * (found.seconds / 6 - 0.3), rel=0.01)


def test_without_energy_the_whole_share_of_joules_is_kept() -> None:
    blind = [replace(one, power_w=None, card_j=None) for one in QUICK]
    assert reserve(options("9kJ", contenders=2), 3, blind).joules == 0.25 * 9e3

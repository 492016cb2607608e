"""The way of a sweep: a reference, a first pass over many, a second one over the contenders."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.measurement.measurement import Measurement
from eatss.tune.generation import contenders, spread_over
from eatss.tune.jobs import (
    CAREFUL,
    OnProgress,
    Outline,
    Policy,
    Progress,
    StageName,
    SweepOptions,
    VariantJob,
)
from eatss.tune.points import Point, variant_key
from eatss.tune.processes import MeasureJob, Runner, VariantResult
from eatss.tune.rows import BESIDE, Identity, Role, Row, Stage, cost, latest_of
from eatss.tune.store import Store
from eatss.tune.strategies import StrategyJob, make

CAREFUL_S = 6.5
"""Seconds that a careful measurement takes on an H200, in the mean: 4.3 to 9.9."""


def reserve(options: SweepOptions, choices: int) -> float:
    """Return the seconds that the second pass is to have.

    At most the share ``options.second_share`` of the budget; all of the share where hardware
    counters are read afterwards, since nobody knows how long that takes.

    Args:
        options: how many contenders there are, and the budget.
        choices: how many choices are measured beside them.
    """
    if not options.contenders:
        return 0.0
    most_s = options.second_share * (options.limited.seconds or 0.0)
    return most_s if options.counters else min(most_s, CAREFUL_S * (options.contenders + choices))


WAIT_S = 0.5
"""How long the card is waited for at a time, so that Ctrl-C and clocks are heeded."""


@frozen
class Plan:
    """What a campaign needs to know.

    Attributes:
        outline: What it is of.
        options: How it goes.
        identity: Makes the identity of the store from the first variant that was measured.
        path: The file of the store.
        keeps: Whether the folders of programs stay.
    """

    outline: Outline
    options: SweepOptions
    identity: Callable[[Measurement], Identity]
    path: Path
    keeps: bool = False

    @property
    def job(self) -> StrategyJob:
        """What its strategy is made for."""
        return StrategyJob(
            space=self.outline.space, seed=self.options.seed, ranked=self.outline.ranked
        )

    def variant(self, role: Role, point: Point, strategy: str = "") -> VariantJob:
        """Return the variant of a point of the space, or of a choice, which its role decides."""
        return VariantJob(
            variant=variant_key(point),
            values=tuple(point.items()),
            decisions=() if role else tuple(self.outline.space.decisions(point).items()),
            role=role,
            strategy=strategy,
        )

    @property
    def choices(self) -> list[VariantJob]:
        """The variants of the choices."""
        return [self.variant(role, point or {"role": role}) for role, point in self.outline.roles]


class Campaign:
    """One session of a sweep, in one thread.

    Args:
        plan: what it needs to know.
        runner: makes and measures variants.
        progress: is told how far it is.
        clock: seconds since some time.
    """

    def __init__(
        self,
        plan: Plan,
        runner: Runner,
        progress: OnProgress = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._options = plan.options
        self._runner = runner
        self._progress = progress
        self._clock, self._began_s = clock, clock()
        self._rows: list[Row] = []
        self._reference: str | None = None
        self._in_flight = 0
        self._store: Store

    def run(self) -> None:
        """Sweep until the budget is spent or nothing is left.

        Raises:
            EatssError: nothing can be made or measured here, or the store cannot be used.
            KeyboardInterrupt: the user interrupted; all that was measured is kept.
        """
        first = self._first_variant()
        assert first.row.measurement is not None
        identity = self._plan.identity(first.row.measurement)
        with Store.create_or_resume(
            self._plan.path, identity, self._plan.outline.space_text
        ) as store:
            self._store = store
            self._rows = list(store.rows(measurements=False))
            self._began_s -= max((row.at_s for row in self._rows), default=0.0)
            if first.row.variant not in {row.variant for row in self._rows}:
                self._keep(first)
            self._first_pass()
            best = contenders(self._of("first"), self._options.objective, self._options.contenders)
            self._measure_again("second pass", best, CAREFUL)
            counted = replace(self._options.first, stage="counters", counters=True)
            rows = [row for row in latest_of(self._rows) if row.measured]
            rows.sort(key=lambda row: row.time_s or 0.0)
            self._measure_again("counters", spread_over(rows, self._options.counters), counted)

    def _of(self, stage: Stage) -> list[Row]:
        return [row for row in self._rows if row.stage == stage]

    def _first_variant(self) -> VariantResult:
        """Make and measure the choices that variants are set beside, until one is right."""
        policy = replace(self._options.first, checks=self._options.compares)
        reasons = []
        for wanted in self._plan.choices:
            self._submit(wanted, policy)
            while (done := self._runner.done(WAIT_S)) is None:
                self._tell("setting up")
            self._in_flight -= 1
            if done.row.status in ("ok", "unstable"):
                self._reference = done.folder
                return done
            reasons.append(f"{wanted.role}: {done.row.status}: {done.row.reason}")
        raise input_error(
            "EATSS-W003",
            f"no variant works that others could be set beside ({'; '.join(reasons)})",
            hint="eatss measure FILE.c says more",
        )

    # -- passes -------------------------------------------------------------------------------

    def _first_pass(self) -> None:
        names = {*self._plan.outline.space.names}

        def told(row: Row) -> list[tuple[Point, float]]:
            """Return the point of a row and what it costs, if it is one of the space's names."""
            point = dict(row.values)
            costs = cost(row, self._options.objective)
            return [(point, costs)] if point.keys() == names and row.stage not in BESIDE else []

        known = {row.variant for row in self._rows}
        before = [one for row in self._rows for one in told(row)]
        strategy = make(self._options.strategy, self._plan.job, before)
        choices = [wanted for wanted in self._plan.choices if wanted.variant not in known]
        for wanted in choices:
            if dict(wanted.values).keys() == names:
                strategy.expect(dict(wanted.values))

        def following() -> VariantJob | None:
            if choices:
                return choices.pop(0)
            point = strategy.ask()
            if not isinstance(point, dict):
                return None
            return self._plan.variant("", point, self._options.strategy)

        for row in self._measured("first pass", following, self._options.first):
            for point, costs in told(row):
                strategy.tell(point, costs)

    def _measure_again(self, stage: StageName, rows: Iterable[Row], policy: Policy) -> None:
        """Measure the variants of rows another time, as far as the budget goes."""
        known = {row.variant for row in self._of(policy.stage)}
        left = (row for row in rows if row.variant not in known)
        again = (self._plan.variant(row.role, dict(row.values), row.strategy) for row in left)
        for _ in self._measured(stage, lambda: next(again, None), policy):
            pass

    def _measured(
        self, stage: StageName, following: Callable[[], VariantJob | None], policy: Policy
    ) -> Iterator[Row]:
        """Measure what follows until nothing does or the budget is spent; yield rows as they come.

        Nothing may follow before a row that was yielded is looked at.
        """
        while True:
            while self._runner.room > 0 and not self._is_spent(policy):
                wanted = following()
                if wanted is None:
                    break
                self._submit(wanted, policy)
            if self._in_flight == 0:
                return
            done = self._runner.done(WAIT_S)
            if done is not None:
                self._in_flight -= 1
                yield self._keep(done)
            self._tell(stage)

    # -- results ------------------------------------------------------------------------------

    def _submit(self, wanted: VariantJob, policy: Policy) -> None:
        self._in_flight += 1
        self._runner.submit(MeasureJob(wanted=wanted, policy=policy, reference=self._reference))

    def _keep(self, done: VariantResult) -> Row:
        """Keep a row; the folder of a program that nobody needs any more is removed."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        row = replace(done.row, at_s=self._seconds, created=created)
        if done.card is not None:
            self._store.add_card(done.card)
        self._store.add(row)
        self._rows.append(replace(row, measurement=None))
        if done.folder not in (None, self._reference) and not self._plan.keeps:
            shutil.rmtree(str(done.folder), ignore_errors=True)
        return row

    def _is_spent(self, policy: Policy) -> bool:
        """Tell whether a pass has had what it may have of the budget."""
        rows, is_first = self._of("first"), policy.stage == "first"
        each_s = sum(row.card_s for row in rows) / max(1, len(rows))
        kept_s = reserve(self._options, len(self._plan.outline.roles)) if is_first else 0.0
        return (
            self._options.limited.share(
                variants=len(rows) + self._in_flight if is_first else 0,
                seconds=self._seconds + self._in_flight * each_s + kept_s,
            )
            >= 1
        )

    @property
    def _seconds(self) -> float:
        """Seconds of all sessions together."""
        return self._clock() - self._began_s

    def _tell(self, stage: StageName) -> None:
        if self._progress is None:
            return
        rows = latest_of(self._rows)
        costs = [(cost(row, self._options.objective), row.role) for row in rows]
        budget = self._options.limited
        self._progress(
            Progress(
                stage=stage,
                measured=sum(row.measured for row in rows),
                failed=sum(not row.measured for row in rows),
                wanted=budget.variants,
                spent_s=self._seconds,
                budget_s=budget.seconds,
                best=_known(own for own, _ in costs),
                default=_known(own for own, role in costs if role == "default"),
            )
        )


def _known(costs: Iterable[float]) -> float | None:
    least = min(costs, default=inf)
    return least if least < inf else None

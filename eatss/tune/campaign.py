"""The way of a sweep: a reference, a first pass over many, a second one over the contenders."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.tune.generation import contenders, row_of, spread_over
from eatss.tune.jobs import (
    CAREFUL,
    BuiltVariant,
    OnProgress,
    Policy,
    Progress,
    RolePoint,
    SweepOptions,
    VariantJob,
)
from eatss.tune.points import Configuration, Decide, Point, variant_key
from eatss.tune.processes import MeasureJob, Runner, VariantResult
from eatss.tune.rows import BESIDE, Identity, Role, Row, cost, latest_of
from eatss.tune.store import Store
from eatss.tune.strategies import Guarded, SearchSpace, StrategyJob, make

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
"""How long the lab is waited for at a time, so that Ctrl-C and clocks are heeded."""

FIRST_LIMIT_S = 600.0
"""Until the first variant is made and measured: processes start, sources are analysed."""


@frozen
class Plan:
    """What a campaign needs to know.

    Attributes:
        space: The space.
        decide: Says what the variant of a point decides.
        ranked: Points in the model's order.
        roles: The choices that variants are set beside, with their points where they have one.
        options: How it goes.
        identity: Makes the identity of the store from the first variant that was measured.
        path: The file of the store.
        space_text: The space, as the store keeps it.
        keeps: Whether the folders of programs stay.
    """

    space: SearchSpace
    decide: Decide
    ranked: tuple[Configuration, ...] | None
    roles: tuple[RolePoint, ...]
    options: SweepOptions
    identity: Callable[[VariantResult], Identity]
    path: Path
    space_text: str
    keeps: bool = False

    @property
    def job(self) -> StrategyJob:
        """What its strategy is made for."""
        return StrategyJob(space=self.space, seed=self.options.seed, ranked=self.ranked)

    @property
    def choices(self) -> list[VariantJob]:
        """The variants of the choices."""
        return [of_role(*one) for one in self.roles]


class Campaign:
    """One session of a sweep, in one thread.

    Args:
        plan: what it needs to know.
        lab: where variants are made and measured.
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
        self._runner = runner
        self._progress = progress
        self._clock, self._began_s = clock, clock()
        self._variants = 0
        self._rows: list[Row] = []
        self._wanted: dict[str, VariantJob] = {}
        self._reference: BuiltVariant | None = None
        self._in_flight = 0
        self._store: Store | None = None

    def run(self) -> None:
        """Sweep until the budget is spent or nothing is left.

        Raises:
            EatssError: nothing can be made or measured here, or the store cannot be used.
            KeyboardInterrupt: the user interrupted; all that was measured is kept.
        """
        first = self._first_variant()
        identity = self._plan.identity(first)
        with Store.create_or_resume(self._plan.path, identity, self._plan.space_text) as store:
            self._store = store
            self._resume(store)
            if first.built.variant not in {row.variant for row in self._rows}:
                self._keep(first)
                self._variants += 1
            self._first_pass()
            self._second_pass()
            self._counters_pass()

    # -- before the store is open -------------------------------------------------------------

    def _first_variant(self) -> VariantResult:
        """Make and measure the choices that variants are set beside, until one is right."""
        self._tell("setting up")
        reasons = []
        for role, point in self._plan.roles:
            wanted = of_role(role, point)
            done = self._one(
                MeasureJob(
                    wanted=wanted,
                    policy=replace(self._plan.options.first, checks=self._plan.options.compares),
                )
            )
            if done.trial is not None and done.trial.measurement.status in ("ok", "unstable"):
                self._reference = done.built
                return done
            reason = done.built.reason
            if done.trial is not None:
                reason = f"{done.trial.measurement.status}: {done.trial.measurement.reason}"
            reasons.append(f"{role}: {reason}")
        raise input_error(
            "EATSS-W003",
            f"no variant works that others could be set beside ({'; '.join(reasons)})",
            hint="eatss measure FILE.c says more",
        )

    def _one(self, work: MeasureJob) -> VariantResult:
        """Let the lab do one thing and wait for it."""
        self._runner.submit(work)
        deadline_s = time.monotonic() + FIRST_LIMIT_S
        while time.monotonic() < deadline_s:
            done = self._runner.done(WAIT_S)
            if done is not None:
                return done
        raise input_error(
            "EATSS-W003",
            f"nothing was measured within {FIRST_LIMIT_S:g} s",
            hint="eatss measure FILE.c says more",
        )

    # -- passes -------------------------------------------------------------------------------

    def _resume(self, store: Store) -> None:
        self._rows = list(store.rows(measurements=False))
        self._began_s -= max((row.at_s for row in self._rows), default=0.0)
        self._variants = sum(row.stage == "first" for row in self._rows)

    def _first_pass(self) -> None:
        options = self._plan.options
        known = {row.variant for row in self._rows}
        pending = [wanted for wanted in self._plan.choices if wanted.variant not in known]
        names = set(self._plan.space.names)
        told = [
            (dict(row.values), cost(row, options.objective))
            for row in self._rows
            if row.stage not in BESIDE and dict(row.values).keys() == names
        ]
        strategy = make(
            options.strategy,
            self._plan.job,
            told,
            decide=self._plan.decide,
            is_over=lambda: self._is_spent(first=True),
        )
        for wanted in pending:
            if dict(wanted.values).keys() == names:
                strategy.expect(dict(wanted.values))
        try:
            self._propose(strategy, pending, names)
        finally:
            strategy.close()

    def _propose(self, strategy: Guarded, pending: list[VariantJob], names: set[str]) -> None:
        """Measure what the strategy proposes until it waits for nothing or the budget is spent."""
        options = self._plan.options
        while True:
            while self._runner.room > 0 and not self._is_spent(first=True):
                if pending:
                    self._submit(pending.pop(0), options.first)
                    continue
                asked = strategy.ask()
                if not isinstance(asked, dict):
                    break
                self._submit(of_point(self._plan, asked), options.first)
            if self._in_flight == 0:
                return
            row = self._wait("first pass")
            if row is not None and dict(row.values).keys() == names:
                strategy.tell(dict(row.values), cost(row, options.objective))

    def _second_pass(self) -> None:
        options = self._plan.options
        rows = [row for row in self._rows if row.stage == "first"]
        careful = {row.variant for row in self._rows if row.stage == "careful"}
        chosen = contenders(rows, options.objective, options.contenders)
        self._measure_again([one for one in chosen if one.variant not in careful], CAREFUL)

    def _counters_pass(self) -> None:
        """Read hardware counters of variants that are spread over all, from fast to slow."""
        options = self._plan.options
        counted = {row.variant for row in self._rows if row.stage == "counters"}
        rows = [row for row in latest_of(self._rows) if row.measured]
        rows.sort(key=lambda row: row.time_s or 0.0)
        pending = [row for row in spread_over(rows, options.counters) if row.variant not in counted]
        policy = replace(options.first, stage="counters", counters=True)
        self._measure_again(pending, policy, "counters")

    def _measure_again(
        self, pending: list[Row], policy: Policy, stage: str = "second pass"
    ) -> None:
        """Measure the variants of rows another time, as far as the budget goes."""
        while pending or self._in_flight:
            while pending and self._runner.room > 0 and not self._is_spent(first=False):
                self._submit(self._again(pending.pop(0)), policy)
            if self._in_flight == 0:
                return
            self._wait(stage)

    def _again(self, row: Row) -> VariantJob:
        known = self._wanted.get(row.variant)
        if known is not None:
            return known
        if row.role:
            return of_role(row.role, dict(row.values))
        return replace(of_point(self._plan, dict(row.values)), strategy=row.strategy)

    # -- results ------------------------------------------------------------------------------

    def _submit(self, wanted: VariantJob, policy: Policy) -> None:
        self._wanted[wanted.variant] = wanted
        self._in_flight += 1
        self._variants += policy.stage == "first"
        self._runner.submit(
            MeasureJob(
                wanted=wanted,
                policy=policy,
                reference=self._reference,
            )
        )

    def _wait(self, stage: str) -> Row | None:
        """Wait a little for what is done next, and keep it."""
        done = self._runner.done(WAIT_S)
        row = None
        if done is not None:
            self._in_flight -= 1
            row = self._keep(done)
        self._tell(stage)
        return row

    def _keep(self, done: VariantResult) -> Row:
        assert self._store is not None
        row = row_of(done, done.work.policy.stage, self._seconds)
        if done.trial is not None:
            self._store.add_card(done.trial.card)
        self._store.add(row)
        self._rows.append(replace(row, measurement=None))
        self._let_go(done)
        return row

    def _let_go(self, done: VariantResult) -> None:
        """Remove the folder of a program that nobody needs any more."""
        folder = done.built.folder
        in_use = self._reference is not None and folder == self._reference.folder
        if folder is not None and not in_use and not self._plan.keeps:
            shutil.rmtree(Path(folder), ignore_errors=True)

    def _is_spent(self, *, first: bool) -> bool:
        """Tell whether a pass has had what it may have of the budget."""
        rows = [row for row in self._rows if row.stage == "first"]
        each = self._in_flight / len(rows) if rows else 0.0
        ahead_s = each * sum(row.card_s for row in rows)
        kept_s = reserve(self._plan.options, len(self._plan.roles)) if first else 0.0
        seconds = self._seconds + ahead_s + kept_s
        variants = self._variants if first else 0
        return self._plan.options.limited.share(variants, seconds) >= 1

    @property
    def _seconds(self) -> float:
        """Seconds of all sessions together."""
        return self._clock() - self._began_s

    def _tell(self, stage: str) -> None:
        if self._progress is None:
            return
        options = self._plan.options
        rows = list(latest_of(self._rows))
        costs = [cost(row, options.objective) for row in rows]
        best = min(costs, default=inf)
        default = next(
            (own for row, own in zip(rows, costs, strict=True) if row.role == "default"), inf
        )
        budget = options.limited
        self._progress(
            Progress(
                stage=stage,  # type: ignore[arg-type]
                measured=sum(row.measured for row in rows),
                failed=sum(not row.measured for row in rows),
                wanted=budget.variants,
                spent_s=self._seconds,
                budget_s=budget.seconds,
                best=None if best == inf else best,
                default=None if default == inf else default,
            )
        )


def of_role(role: Role, point: Point | None) -> VariantJob:
    """Return the variant of a choice, which its maker makes by its role."""
    values = tuple((point or {"role": role}).items())
    return VariantJob(variant=variant_key(dict(values)), values=values, decisions=(), role=role)


def of_point(plan: Plan, point: Point) -> VariantJob:
    """Return the variant of a point of the space."""
    return VariantJob(
        variant=variant_key(point),
        values=tuple(point.items()),
        decisions=tuple(plan.decide(point).items()),
        strategy=plan.options.strategy,
    )

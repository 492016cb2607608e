"""Which strategies there are.

A strategy of one's own is a function of a :class:`StrategyJob` in ``STRATEGIES``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eatss.base.diagnostics import input_error
from eatss.base.extensions import Registry
from eatss.tune.point import Point
from eatss.tune.strategies.guarded import Guarded
from eatss.tune.strategies.in_order import LocalSearch, at_random, by_model, exhaustive
from eatss.tune.strategies.strategy import MakeStrategy, Strategy, StrategyJob


def make(name: str, job: StrategyJob, known: Iterable[tuple[Point, float]] = ()) -> Guarded:
    """Return a strategy.

    Args:
        name: one of :data:`STRATEGIES`, with a choice behind a colon: ``optuna:tpe``.
        job: what it is made for; its ``choice`` is that of the name.
        known: points with their costs that were measured before; none is asked for again.

    Raises:
        InputError: ``EATSS-X005`` there is no such strategy, ``EATSS-T001`` nor such a choice,
            ``EATSS-T002`` a package is missing, ``EATSS-T003`` the model's order is.
    """
    family, _, choice = name.partition(":")
    maker = STRATEGIES.get(family)
    strategy = Guarded(name, maker(replace(job, choice=choice)), job)
    for point, cost in known:
        strategy.tell(point, cost)
    return strategy


def _plain(maker: MakeStrategy) -> MakeStrategy:
    """Return what makes a strategy that has no choices."""

    def made(job: StrategyJob) -> Strategy:
        if job.choice:
            raise input_error(
                "EATSS-T001",
                f"this strategy has no choice '{job.choice}'",
                hint="leave out the colon and what follows",
            )
        return maker(job)

    return made


def _optuna(job: StrategyJob) -> Strategy:
    from eatss.tune.strategies.optuna_bridge import optuna_strategy  # noqa: PLC0415 - an extra

    return optuna_strategy(job)


def _kernel_tuner(job: StrategyJob) -> Strategy:
    from eatss.tune.strategies.kernel_tuner_bridge import kernel_tuner_strategy  # noqa: PLC0415 - too

    return kernel_tuner_strategy(job)


STRATEGIES: Registry[MakeStrategy] = Registry(
    "eatss.strategies",
    "strategy",
    {
        "exhaustive": _plain(exhaustive),
        "random": _plain(at_random),
        "model": _plain(by_model),
        "local": _plain(LocalSearch),
        "optuna": _optuna,
        "kernel-tuner": _kernel_tuner,
    },
)
"""What ``--strategy`` can name."""

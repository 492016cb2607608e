"""Optuna's samplers as strategies, through Optuna's own ask and tell.

Numbers are given to it by their position among the values of their name, so that it knows their
order and not their distances. What it proposes outside the space, or again, goes to the nearest
point that is new; it is told of the point that was measured.
"""

from __future__ import annotations

import warnings
from typing import Any

from eatss.base.diagnostics import input_error
from eatss.tune.point import Point, variant_key
from eatss.tune.strategies.strategy import Asked, KnownPoints, Strategy, StrategyJob, needed

INSTALL = "eatss[optuna]"
SAMPLERS = {
    "tpe": ("TPESampler", ""),
    "random": ("RandomSampler", ""),
    "cmaes": ("CmaEsSampler", "cmaes"),
    "gp": ("GPSampler", "torch"),
}
"""Samplers by our names: Optuna's, and the package that it needs besides."""


def optuna_strategy(job: StrategyJob) -> Strategy:
    """Return Optuna's sampler ``job.choice``, ``tpe`` where none is named.

    Raises:
        InputError: ``EATSS-T001`` there is no such sampler, ``EATSS-T002`` Optuna or what the
            sampler needs is not installed.
    """
    choice = job.choice or "tpe"
    if choice not in SAMPLERS:
        raise input_error(
            "EATSS-T001",
            f"the strategy 'optuna' has no choice '{choice}'",
            hint=f"choose one of: {', '.join(f'optuna:{name}' for name in SAMPLERS)}",
        )
    sampler, besides = SAMPLERS[choice]
    optuna = needed("optuna", f"optuna:{choice}", INSTALL)
    if besides:
        needed(besides, f"optuna:{choice}", besides)
    return OptunaStrategy(optuna, sampler, job)


class OptunaStrategy:
    """A study of Optuna."""

    def __init__(self, optuna: Any, sampler: str, job: StrategyJob) -> None:
        self._optuna = optuna
        self._known = KnownPoints(job.space, job.seed)
        self._trials: dict[str, Any] = {}
        said = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            make = getattr(optuna.samplers, sampler)
            self._study = optuna.create_study(direction="minimize", sampler=make(seed=job.seed))
        optuna.logging.set_verbosity(said)
        self._over = {name: self._distribution(name) for name in self._known.names}

    def ask(self) -> Asked:
        """Return what Optuna proposes, or the new point that is nearest to it."""
        trial = self._study.ask(self._over)
        places = [trial.params[name] for name in self._known.names]
        values = self._known.values
        point = {n: values[n][place] for n, place in zip(self._known.names, places, strict=True)}
        if self._known.is_new(point):
            self._trials[variant_key(point)] = trial
        else:
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            nearest = self._known.nearest_new(point)
            if nearest is None:
                return None
            point = nearest
        self._known.use(point)
        return point

    def tell(self, point: Point, cost: float) -> None:
        """Let Optuna know what a point costs, whoever proposed it."""
        self._known.use(point)
        trial = self._trials.pop(variant_key(point), None)
        if trial is not None:
            self._study.tell(trial, cost)
        elif self._known.holds(point):
            places = dict(zip(self._known.names, self._known.places(point), strict=True))
            self._study.add_trial(
                self._optuna.trial.create_trial(params=places, distributions=self._over, value=cost)
            )

    def _distribution(self, name: str) -> Any:
        count = len(self._known.values[name])
        if self._known.is_number(name):
            return self._optuna.distributions.IntDistribution(0, count - 1)
        return self._optuna.distributions.CategoricalDistribution(tuple(range(count)))

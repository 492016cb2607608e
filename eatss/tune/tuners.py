"""Optuna's samplers as strategies, through Optuna's own ask and tell.

Numbers are given to it by their position among the values of their name, so that it knows their
order and not their distances. What it proposes outside the space, or again, goes to the nearest
point that is new; it is told of the point that was measured.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import input_error
from eatss.tune.points import Configuration, Point, variant_key
from eatss.tune.strategy import Asked, ListedSpace, SearchSpace, Strategy, StrategyJob

SAMPLERS = {
    "tpe": ("TPESampler", ""),
    "random": ("RandomSampler", ""),
    "cmaes": ("CmaEsSampler", "cmaes"),
    "gp": ("GPSampler", "torch"),
}
"""Samplers by our names: Optuna's, and the package that it needs besides."""


MOST = 20_000
"""Of a larger space, so many points that are drawn from it stand for all."""


class KnownPoints(ListedSpace):
    """All points of a space, or 20 000 of them; each is new until it is used."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        few = len(space) <= MOST
        super().__init__(space.names, space.points() if few else space.sample(MOST, seed))
        self._rows = {key: row for row, key in enumerate(self._points)}
        self._new = np.ones(len(self), dtype=bool)
        self._ordinal = np.array([self.is_number(name) for name in self.names])
        at = [[*self.places(point).values()] for point in self.points()]
        self._at = np.array(at, dtype=np.int64).reshape(len(self), len(self.names))
        self._widths = np.array([max(1, len(self.values[name]) - 1) for name in self.names])

    def is_number(self, name: str) -> bool:
        """Return whether a name's values are numbers, which have an order."""
        return {type(one) for one in self.values[name]} <= {int, float}

    def is_new(self, point: Point) -> bool:
        """Return whether a point is one of them, and was not used yet."""
        row = self._rows.get(variant_key(point))
        return row is not None and bool(self._new[row])

    def use(self, point: Point) -> None:
        """Mark a point as used, if it is one of them."""
        row = self._rows.get(variant_key(point))
        if row is not None:
            self._new[row] = False

    def nearest_new(self, point: Point) -> Configuration | None:
        """Return the point, of those not used yet, that differs least, if any is left.

        Numbers differ by how many values lie between them, as a share of all; others by 1.
        """
        rows = np.flatnonzero(self._new)
        if not len(rows):
            return None
        here = np.array([*self.places(point).values()])
        apart: npt.NDArray[np.float64] = np.abs(self._at[rows] - here) / self._widths
        apart[:, ~self._ordinal] = apart[:, ~self._ordinal] > 0
        nearest = int(rows[np.argmin(apart.sum(axis=1))])
        return [*self.points()][nearest]


def optuna_strategy(job: StrategyJob) -> Strategy:
    """Return Optuna's sampler ``job.choice``, ``tpe`` where none is named.

    Raises:
        InputError: ``EATSS-T001`` there is no such sampler, ``EATSS-T001`` Optuna or what the
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
    try:
        optuna = import_module("optuna")
        if besides:
            import_module(besides)
    except ImportError as error:
        raise input_error(
            "EATSS-T001",
            f"the strategy 'optuna:{choice}' needs a package that does not load: {error}",
            hint=f"pip install 'eatss[optuna]' {besides}".strip(),
        ) from None
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
        point = {name: self._known.values[name][trial.params[name]] for name in self._known.names}
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
        elif self._known.allows(point) is None:
            places = self._known.places(point)
            self._study.add_trial(
                self._optuna.trial.create_trial(params=places, distributions=self._over, value=cost)
            )

    def _distribution(self, name: str) -> Any:
        count = len(self._known.values[name])
        if self._known.is_number(name):
            return self._optuna.distributions.IntDistribution(0, count - 1)
        return self._optuna.distributions.CategoricalDistribution(tuple(range(count)))

"""The model against the measurement: does it order variants as the card does?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from eatss.evaluation.population import Floats, Population

Objective: TypeAlias = Literal["time", "energy"]

TOPS = (1, 5, 10, 20)
"""How many of the model's first are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Measured cost of the best among the model's first ``tried``, over the least, minus 1."""

    tried: int
    regret: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionCheck:
    """How ``predicted_time_s`` or ``predicted_energy_j`` does over ``samples`` variants.

    ``spearman`` is the rank correlation, with its p-value. ``ratio`` is the median of predicted
    over measured, ``low`` and ``high`` its quartiles. ``pick`` is the variant that the model
    prefers.
    """

    objective: Objective
    samples: int
    spearman: float | None
    spearman_p: float | None
    ratio: float
    low: float
    high: float
    pick: str
    regrets: tuple[Regret, ...]


def predicted(found: Population, objective: Objective) -> tuple[Floats, Floats]:
    """Return what was predicted and what was measured; NaN where either is not there."""
    if objective == "time":
        return found.column("predicted_time_s"), found.time_s
    return found.column("predicted_energy_j"), found.energy_j


def check_prediction(found: Population, objective: Objective) -> PredictionCheck | None:
    """Set the model beside the measurement; ``None`` where fewer than two have both."""
    model, measured = predicted(found, objective)
    both = np.flatnonzero(np.isfinite(model) & np.isfinite(measured) & (model > 0))
    if both.size < 2:
        return None
    x, y = model[both], measured[both]
    ranked = stats.spearmanr(x, y) if np.ptp(x) > 0 and np.ptp(y) > 0 else None
    low, middle, high = np.quantile(x / y, (0.25, 0.5, 0.75))
    order = np.argsort(x, kind="stable")
    least = y.min()
    tops = [top for top in TOPS if top <= both.size]
    return PredictionCheck(
        objective=objective,
        samples=int(both.size),
        spearman=None if ranked is None else float(ranked.statistic),
        spearman_p=None if ranked is None else float(ranked.pvalue),
        ratio=float(middle),
        low=float(low),
        high=float(high),
        pick=found.rows[both[order[0]]].variant,
        regrets=tuple(
            Regret(tried=top, regret=float(y[order[:top]].min() / least - 1)) for top in tops
        ),
    )

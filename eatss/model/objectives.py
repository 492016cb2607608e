"""Objectives that are predictions: what a candidate costs, as a whole number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eatss.model.options import ObjectiveName
from eatss.prediction.terms import Predicted

UNITS: dict[ObjectiveName, str] = {"energy": "nJ", "time": "ps", "edp": "pJ s"}
"""What a table's integers are in."""

FORMULAS: dict[ObjectiveName, str] = {
    "energy": "least energy of a run, in nJ",
    "time": "least time of a run, in ps",
    "edp": "least energy times time of a run, in pJ s",
}

NEVER = np.iinfo(np.int64).max
"""The cost of what cannot launch."""

_MOST = 2.0**60
"""Costs end here, so that a margin on top is still a whole number of 64 bits."""


def costs(expected: Predicted, objective: ObjectiveName) -> npt.NDArray[np.int64]:
    """Return the objective of each candidate as an integer, the greatest where it cannot launch."""
    value = {
        "energy": expected.energy_j * 1e9,
        "time": expected.time_s * 1e12,
        "edp": expected.energy_j * expected.time_s * 1e12,
    }[objective]
    launches = np.isfinite(value)
    whole = np.round(np.minimum(np.where(launches, value, 0.0), _MOST)).astype(np.int64)
    return np.where(launches, whole, NEVER)

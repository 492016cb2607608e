"""The prediction of one of many candidates."""

from __future__ import annotations

from eatss.plan.numbers import Number
from eatss.prediction.demand import Demand
from eatss.prediction.expected import Parts, Prediction
from eatss.prediction.terms import Predicted


def prediction_at(demand: Demand, expected: Predicted, row: int) -> Prediction | None:
    """Return one entry of the columns, ``None`` where that candidate cannot launch."""
    if not expected.resident_blocks[row]:
        return None

    def ordered(terms: dict[str, Number]) -> Parts:
        at_row = ((name, float(column[row])) for name, column in terms.items())
        return tuple(sorted(at_row, key=lambda item: -item[1]))

    counts = ("launches", "blocks", "threads", "registers", "shared_bytes")
    return Prediction(
        time_s=float(expected.time_s[row]),
        energy_j=float(expected.energy_j[row]),
        times_s=ordered(expected.terms_s),
        energies_j=ordered(expected.terms_j),
        resident_blocks=int(expected.resident_blocks[row]),
        **{name: int(getattr(demand, name)[row]) for name in counts},
    )

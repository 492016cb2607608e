"""A recorded sweep as strategies see it: its points, what each costs, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, prod

from eatss.diagnostics import input_error
from eatss.evaluation.cards import compare_cards, on_one_scale
from eatss.evaluation.population import by_sizes
from eatss.point import Value
from eatss.replay.nouns import Objective
from eatss.store.nouns import BESIDE, Row, Sizes, Sweep
from eatss.strategies.listed import ListedSpace

_WHAT: Mapping[Objective, str] = {
    "time": "a time",
    "energy": "an energy",
    "edp": "both a time and an energy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a replay needs of a sweep.

    Attributes:
        uuid: The card whose rows these are; ``None`` where no row names one.
        sizes: The problem size of these rows.
        other_sizes: How many other sizes there were.
        space: The variants that were recorded on it, failed ones too.
        rows: By variant, the row that counts.
        first: By variant, the row of its first measurement, which says what that took.
        costs: By variant; infinity for one that failed.
        ranked: Points by what was predicted of them, the best first; ``None`` without predictions.
    """

    uuid: str | None
    sizes: Sizes
    other_sizes: int
    space: ListedSpace
    rows: Mapping[str, Row]
    first: Mapping[str, Row]
    costs: Mapping[str, float]
    ranked: tuple[dict[str, Value], ...] | None


def recorded(sweep: Sweep, objective: Objective) -> Recorded:
    """Return what strategies can be tried on: the rows of one size and of one card.

    These are the size and then the card with the most measured variants. A careful row counts
    before one of the first pass. Rows of other names than most have are no points of the space:
    strategies are not offered them.

    Raises:
        InputError: ``EATSS-T007``, no variant has such a cost.
    """
    groups = by_sizes(on_one_scale(sweep, compare_cards(sweep)))
    sizes = next(iter(groups), ())
    own = [row for row in sweep.latest if row.sizes == sizes]
    cards = Counter(row.card for row in own if row.measured and row.card is not None)
    uuid = cards.most_common(1)[0][0] if cards else None
    kept = [
        one
        for one in sweep.rows
        if one.stage not in BESIDE and one.card in (uuid, None) and one.sizes == sizes
    ]
    first: dict[str, Row] = {}
    for row in kept:
        first.setdefault(row.variant, row)
    rows: dict[str, Row] = {}
    for row in replace(sweep, rows=tuple(kept)).latest:
        if row.variant not in rows or row.card is not None:
            rows[row.variant] = row
    names = Counter(tuple(sorted(dict(row.values))) for row in rows.values())
    of_space = names.most_common(1)[0][0] if names else ()
    offered = [row for row in rows.values() if tuple(sorted(dict(row.values))) == of_space]
    costs = {variant: cost_of(row, objective) for variant, row in rows.items()}
    if not any(isfinite(costs[row.variant]) for row in offered):
        raise input_error(
            "EATSS-T007",
            f"nothing to replay: no variant of '{sweep.identity.program}' was measured with "
            f"{_WHAT[objective]}",
            hint="replay a store that `eatss sweep` has filled, or choose another objective",
        )
    predicted = [row for row in offered if isfinite(predicted_of(row, objective))]
    predicted.sort(key=lambda row: predicted_of(row, objective))
    return Recorded(
        uuid=uuid,
        sizes=sizes,
        other_sizes=max(0, len(groups) - 1),
        space=ListedSpace(dict(offered[0].values), (dict(row.values) for row in offered)),
        rows=rows,
        first=first,
        costs=costs,
        ranked=tuple(dict(row.values) for row in predicted) or None,
    )


def cost_of(row: Row, objective: Objective) -> float:
    """Return what a variant costs: s, J or J s; infinity where it failed or that was not read.

    What is not over 0 was not read.
    """
    return _cost(row.time_s, row.energy_j, objective) if row.measured else inf


def predicted_of(row: Row, objective: Objective) -> float:
    """Return what the model predicted that it costs; infinity where it did not."""
    metrics = dict(row.metrics)
    return _cost(metrics.get("predicted_time_s"), metrics.get("predicted_energy_j"), objective)


def _cost(time_s: float | None, energy_j: float | None, objective: Objective) -> float:
    needed = {"time": (time_s,), "energy": (energy_j,), "edp": (time_s, energy_j)}[objective]
    return prod(one if one is not None and one > 0 else inf for one in needed)

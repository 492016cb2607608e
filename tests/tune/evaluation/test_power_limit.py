"""Windows in which a card drew more than its limit: counted where only they were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.report.sweep_tables import sentences
from eatss.tune.evaluation import evaluate
from eatss.tune.rows import Stage, Sweep
from tests.synthetic_sweeps import CARDS, of_rows, row


def swept(*powers_w: float, again: tuple[int, ...] = (), stage: Stage = "careful") -> Sweep:
    """Return a sweep on a card with a limit of 700 W; some variants are measured once more."""
    rows = [row(k, 1.0, power_w, at_s=float(k)) for k, power_w in enumerate(powers_w)]
    rows = [replace(one, power_w=one.energy_j) for one in rows]
    more = [replace(rows[k], stage=stage, energy_j=699.0, power_w=699.0) for k in again]
    return of_rows([*rows, *more], CARDS[:1])


@pytest.mark.parametrize(
    ("sweep", "variants"),
    [
        (swept(600.0, 701.0, 790.0, 700.0), 2),
        (swept(600.0, 701.0, 790.0, again=(2,)), 1),
        (swept(600.0, 701.0, again=(1,)), None),
        (swept(600.0, 701.0, again=(1,), stage="reference"), 1),
        (swept(600.0, 700.0), None),
    ],
)
def test_variants_over_the_limit_count_unless_measured_with_care(
    sweep: Sweep, variants: int | None
) -> None:
    found = evaluate(sweep).evaluation
    assert (found.over_limit and found.over_limit.variants) == variants
    told = [one for one in sentences(found) if "700 W" in one]
    assert len(told) == (variants is not None)
    assert all(f"{variants} of the variants" in one for one in told)


def test_of_a_card_without_a_known_limit_nothing_is_said() -> None:
    sweep = swept(600.0, 790.0)
    unknown = tuple(replace(card, power_limit_w=None) for card in sweep.cards)
    assert evaluate(replace(sweep, cards=unknown)).evaluation.over_limit is None

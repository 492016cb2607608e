"""``eatss sweep --replay STORE``: strategies on what was recorded; no card is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.cli.options import TableOrJson

if TYPE_CHECKING:
    from eatss.replay.nouns import Objective
    from eatss.store.nouns import Sweep


def replay_command(
    sweep: Sweep,
    strategies: str,
    seeds: int,
    budget: str | None,
    objective: Objective,
    output: TableOrJson,
) -> str:
    """Return what is to be printed.

    Args:
        sweep: what was recorded.
        strategies: names with commas between them.
        seeds: how many runs each has.
        budget: as :meth:`eatss.strategies.Budget.parse` reads it; ``None`` for all variants.
        objective: what is to be small.
        output: ``table`` or ``json``.
    """
    from eatss.replay import replayed  # noqa: PLC0415 - keeps --help fast
    from eatss.report.replay import render_replay  # noqa: PLC0415
    from eatss.strategies import Budget  # noqa: PLC0415

    names = [name.strip() for name in strategies.split(",") if name.strip()]
    limit = None if budget is None else Budget.parse(budget)
    return render_replay(replayed(sweep, names, seeds, limit, objective), output)

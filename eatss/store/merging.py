"""Sweeps of the same thing, measured on several cards of a kind, as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from eatss.store.identity import check_space, differences, differing
from eatss.store.nouns import Row, Sweep
from eatss.store.stored_rows import stored_row


def merged(sweeps: Sequence[tuple[str, Sweep]]) -> Sweep:
    """Return sweeps, each with its name, as one: the first with what the others have besides.

    Rows tell their card by its ``uuid``, so those of several cards stay apart. The same row in two
    sweeps, to its last digit, is one measurement. The space is that of the first.

    Raises:
        InputError: ``EATSS-D010``, they are of different things; ``EATSS-D011``, of spaces with
            other variables.
    """
    (first, start), *others = sweeps
    rows = list(start.rows)
    cards = {card.uuid: card for card in start.cards}
    for name, sweep in others:
        _check_alike(first, start, name, sweep)
        cards = {card.uuid: card for card in sweep.cards} | cards
        rows += _not_in(rows, sweep.rows)
    return Sweep(
        identity=start.identity, space=start.space, cards=tuple(cards.values()), rows=tuple(rows)
    )


def _check_alike(first: str, start: Sweep, name: str, sweep: Sweep) -> None:
    found = differences(start.identity, sweep.identity)
    if found:
        raise differing(
            f"'{first}' and '{name}' are sweeps of different things",
            found,
            (first, name),
            hint="only what was measured of the same thing, in the same way, goes into one store",
        )
    check_space(Path(first), start.space, sweep.space)


def _not_in(known: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are not known, in their order; equal ones are known as often."""
    left = Counter(map(stored_row, known))
    new = []
    for row in rows:
        key = stored_row(row)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(row)
    return new

"""Made-up sweeps for tests of replays."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from eatss.tune.points import variant_key
from eatss.tune.rows import Identity, Row, Sweep

IDENTITY = Identity(
    program="made up",
    source_hash="0" * 64,
    target="cuda",
    generator="0.1.0",
    dtype="double",
    defines=(),
    sizes=(("N", 1024),),
    card="Made Up 100",
    driver="1",
    compiler="none 1",
    options="0" * 64,
)


def row(tile_i: int, tile_j: int, time_s: float | None, **more: Any) -> Row:
    """Return a row of two tile sizes; without a time it did not compile."""
    values = (("tile_i", tile_i), ("tile_j", tile_j))
    fields: dict[str, Any] = {
        "variant": variant_key(dict(values)),
        "values": values,
        "status": "ok" if time_s is not None else "compile error",
        "card": "GPU-1" if time_s is not None else None,
        "time_s": time_s,
        "energy_j": None if time_s is None else 300 * time_s,
        "made_s": 2.0,
        "card_s": 1.0,
        "card_j": 100.0,
    }
    return Row(**fields | more)


def sweep(rows: Sequence[Row]) -> Sweep:
    return Sweep(identity=IDENTITY, space="", cards=(), rows=tuple(rows))


def random_sweep(side: int, seed: int, failing: float = 0.0) -> Sweep:
    """Return a square of variants with times from 1 to 2 s, some of which fail.

    What is predicted of each is its time with an error of some per cent.
    """
    dice = Random(seed)
    rows = []
    for tile_i in range(side):
        for tile_j in range(side):
            time_s = dice.uniform(1, 2)
            metrics = (
                ("predicted_time_s", time_s * dice.uniform(0.9, 1.1)),
                ("predicted_energy_j", 300 * time_s * dice.uniform(0.9, 1.1)),
            )
            fails = dice.random() < failing
            rows.append(row(tile_i, tile_j, None if fails else time_s, metrics=metrics))
    return sweep(rows)

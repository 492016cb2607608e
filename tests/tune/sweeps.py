"""Hand-made stores for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eatss.measurement.measurement import Measurement
from eatss.tune.points import Value, variant_key
from eatss.tune.rows import CardSeen, Identity, Row, Sweep
from eatss.tune.store import Store

SPACE = "[iterators]\ntile_i = [16, 32]\ntile_j = [16, 32, 64]\n"
WIDER_SPACE = "[iterators]\ntile_j = [16, 32, 64, 128]\ntile_i = [16, 32]\n"
OTHER_SPACE = "[iterators]\ntile_i = [16, 32]\nthreads_j = [16, 32, 64]\n"


def identity(**changes: Any) -> Identity:
    values: dict[str, Any] = {
        "program": "2mm",
        "source_hash": "5a" * 32,
        "target": "cuda",
        "generator": "eatss 0.1.0",
        "dtype": "double",
        "defines": ("-DLARGE",),
        "sizes": (("NI", 1000), ("NJ", 1200)),
        "card": "NVIDIA H200",
        "driver": "580.159",
        "compiler": "nvrtc 13.0",
        "options": "c0" * 32,
    }
    return Identity(**(values | changes))


def card(uuid: str = "GPU-0", **changes: Any) -> CardSeen:
    values: dict[str, Any] = {"name": "NVIDIA H200", "host": "node1", "compute_capability": 90}
    return CardSeen(uuid=uuid, **(values | changes))


def row(tile_i: Value = 16, tile_j: Value = 32, **changes: Any) -> Row:
    """Return a good row."""
    point = {"tile_i": tile_i, "tile_j": tile_j}
    values: dict[str, Any] = {
        "variant": variant_key(point),
        "values": tuple(point.items()),
        "status": "ok",
        "card": "GPU-0",
        "sizes": (("NI", 1000), ("NJ", 1200)),
        "time_s": 7.0e-3,
        "energy_j": 4.8,
        "power_w": 685.7,
        "flops": 128_000_000_000,
        "metrics": (("registers", 64.0), ("occupancy", 0.5)),
        "decided": "k0: i 16, j 32",
        "made_s": 1.5,
        "card_s": 2.5,
        "strategy": "model",
        "created": "2026-11-21T12:00:00+00:00",
    }
    return Row(**(values | changes))


def refused(tile_i: Value = 16, tile_j: Value = 32, **changes: Any) -> Row:
    """Return a row without any time."""
    nothing: dict[str, Any] = {
        "status": "compile error",
        "reason": "too many registers",
        "card": None,
        **dict.fromkeys(("time_s", "energy_j", "power_w", "flops")),
        "metrics": (),
    }
    return row(tile_i, tile_j, **(nothing | changes))


def sweep(measurement: Measurement | None = None) -> Sweep:
    """Return a sweep with one row of each kind; ``measurement`` is that of the best."""
    rows = (
        row(16, 32, role="default"),
        row(16, 64, time_s=9.0e-3, energy_j=5.2, status="ok"),
        row(32, 32, time_s=6.0e-3, energy_j=3.0, role="ours", measurement=measurement),
        refused(32, 64),
    )
    return Sweep(identity=identity(), space=SPACE, cards=(card(),), rows=rows)


def write(path: Path | str, sweep: Sweep) -> None:
    """Make a store that holds a sweep."""
    with Store.create_or_resume(path, sweep.identity, sweep.space) as store:
        for seen in sweep.cards:
            store.add_card(seen)
        for one in sweep.rows:
            store.add(one)

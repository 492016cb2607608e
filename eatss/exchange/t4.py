"""The results format T4 of the auto-tuning community, version 1.0.0, as Kernel Tuner writes it.

Times are in milliseconds. The schema names ``compilation_time``; Kernel Tuner, and who reads its
files, ``compilation`` and ``benchmark``: all three are written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from eatss.codec import encode
from eatss.exchange.kernel_tuner_cache import runtimes_ms
from eatss.measurement.measurement import Status
from eatss.store.nouns import Row, Sweep

_INVALIDITY: Mapping[Status, str] = {
    "ok": "correct",
    "unstable": "correct",
    "rejected by the model": "constraints",
    "compile error": "compile",
    "launch error": "runtime",
    "wrong result": "correctness",
    "timeout": "timeout",
}


def t4_bytes(sweep: Sweep) -> bytes:
    """Return a results file: the latest row of each variant and card."""
    document = {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds", "eatss": encode(sweep.identity)},
        "results": [_result(row) for row in sweep.latest],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _result(row: Row) -> dict[str, Any]:
    return {
        "timestamp": row.created,
        "configuration": dict(row.values),
        "objectives": ["time", "energy"],
        "times": {
            "compilation_time": row.made_s * 1e3,
            "compilation": row.made_s * 1e3,
            "benchmark": row.card_s * 1e3,
            "framework": 0.0,
            "search_algorithm": 0.0,
            "validation": 0.0,
            "runtimes": runtimes_ms(row) if row.measured else [],
        },
        "invalidity": _INVALIDITY[row.status],
        "correctness": 1 if row.measured else 0,
        "measurements": _measurements(row),
    }


def _measurements(row: Row) -> list[dict[str, Any]]:
    """Return what is known, with units; what is not known is left out."""
    known = (
        ("time", None if row.time_s is None else row.time_s * 1e3, "ms"),
        ("energy", row.energy_j, "J"),
        ("power", row.power_w, "W"),
        ("performance", row.gflops, "GFLOP/s"),
        ("efficiency", row.gflops_per_joule, "GFLOP/J"),
        *((name, value, "") for name, value in row.metrics),
        ("card", row.card, ""),
        ("status", row.status, ""),
        ("reason", row.reason or None, ""),
    )
    return [
        {"name": name, "value": value, "unit": unit}
        for name, value, unit in known
        if value is not None and (isinstance(value, str) or math.isfinite(value))
    ]

"""Formats that sweeps are exported to, and read from again, by name and by the end of a file.

The results format T4 of the auto-tuning community, version 1.0.0, as Kernel Tuner writes it.

Times are in milliseconds. The schema names ``compilation_time``; Kernel Tuner, and who reads its
files, ``compilation`` and ``benchmark``: all three are written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from eatss.codec import encode
from eatss.diagnostics import input_error
from eatss.exchange.kernel_tuner_cache import cache_bytes, runtimes_ms, sweep_of_cache
from eatss.exchange.tidy import csv_bytes, parquet_bytes
from eatss.files import read_regular
from eatss.measurement.measurement import Status
from eatss.store.nouns import Row, Sweep
from eatss.store.store import MOST_BYTES, SWEEP, read_json

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


ExportFormat: TypeAlias = Literal["csv", "parquet", "json", "t4", "kernel-tuner"]

_WRITERS: Mapping[ExportFormat, Callable[[Sweep], bytes]] = {
    "csv": csv_bytes,
    "parquet": parquet_bytes,
    "json": lambda sweep: SWEEP.to_text(sweep).encode(),
    "t4": t4_bytes,
    "kernel-tuner": cache_bytes,
}
_BY_SUFFIX: Mapping[str, ExportFormat] = {".csv": "csv", ".parquet": "parquet", ".json": "json"}


def format_of(path: Path) -> ExportFormat:
    """Return the format that a file's name tells.

    Raises:
        InputError: ``EATSS-D033``, it tells none.
    """
    found = _BY_SUFFIX.get(path.suffix.lower())
    if found is None:
        raise input_error(
            "EATSS-D033",
            f"the name '{path}' tells no format",
            hint=f"let it end in {', '.join(_BY_SUFFIX)}, or choose: --format {'|'.join(_WRITERS)}",
        )
    return found


def exported(sweep: Sweep, form: ExportFormat) -> bytes:
    """Return a sweep as a file of a format.

    Raises:
        InputError: ``EATSS-D030``, a package is missing; ``EATSS-D031``, it is of several cards.
    """
    return _WRITERS[form](sweep)


def of_card(sweep: Sweep, card: str | None) -> Sweep:
    """Return a sweep with the rows of one card, and of none; ``None`` stands for all.

    Raises:
        InputError: ``EATSS-D034``, no row is of that card.
    """
    if card is None:
        return sweep
    cards = sorted({row.card for row in sweep.rows if row.card is not None})
    if card not in cards:
        raise input_error(
            "EATSS-D034",
            f"no row is of a card '{card}'",
            hint=f"there are: {', '.join(cards)}" if cards else "no row is of any card",
        )
    return replace(
        sweep,
        cards=tuple(one for one in sweep.cards if one.uuid == card),
        rows=tuple(row for row in sweep.rows if row.card in (card, None)),
    )


def imported(path: Path) -> Sweep:
    """Return the sweep of a JSON file: a cache of Kernel Tuner, also one that was cut short, or
    what ``eatss results export`` wrote as JSON.

    Raises:
        InputError: ``EATSS-D001``, it cannot be read; ``EATSS-D020``, ``EATSS-D021`` or
            ``EATSS-D032``, it is neither.
    """  # noqa: D205
    document = _of_a_cut(path) or read_json(path)
    if isinstance(document, dict) and "identity" in document and "rows" in document:
        return SWEEP.from_dict(document)
    return sweep_of_cache(document, path)


def _of_a_cut(path: Path) -> object:
    """Return what a cache holds that Kernel Tuner has not closed, as it is while it tunes."""
    try:
        text = read_regular(path, MOST_BYTES).decode().rstrip()
        return json.loads(text.removesuffix(",") + "}}") if text.endswith((",", "}")) else None
    except (OSError, ValueError, RecursionError):
        return None

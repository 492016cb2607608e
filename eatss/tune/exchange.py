"""Sweeps as a table, also as CSV."""

from __future__ import annotations

from eatss.base.codec import JsonObject
from eatss.base.text import csv_text
from eatss.tune.rows import Sweep

_BEFORE = ("variant", "role", "stage", "status", "reason", "card")
_AFTER = (
    *("time_s", "energy_j", "power_w", "time_error", "energy_error", "flops"),
    *("gflops", "gflops_per_joule"),
    *("made_s", "card_s", "card_j", "at_s", "decided", "strategy", "created"),
)
_OF_ALL = ("program", "target", "dtype", "gpu")


def sweep_rows(sweep: Sweep) -> list[JsonObject]:
    """Return a row a measurement, all with the same columns: what a row does not have is ``None``.

    These are what the sweep is of, status, values, figures, sizes and metrics. A value with the
    name of another column is called ``value.NAME``, a metric ``metric.NAME``; the size of a
    parameter that is no variable of the space is ``size.NAME``.
    """
    identity = sweep.identity
    about = (identity.program, identity.target, identity.dtype, identity.card)
    of_all = dict(zip(_OF_ALL, about, strict=True))
    fixed = {*_OF_ALL, *_BEFORE, *_AFTER}
    variables = {name for row in sweep.rows for name, _ in row.values}
    rows = []
    for row in sweep.rows:
        own: JsonObject = of_all | {name: getattr(row, name) for name in _BEFORE}
        own |= {f"value.{n}" if n in fixed else n: value for n, value in row.values}
        own |= {name: getattr(row, name) for name in _AFTER}
        own |= {f"size.{n}": size for n, size in row.sizes if n not in variables}
        taken = fixed | variables
        own |= {f"metric.{n}" if n in taken else n: value for n, value in row.metrics}
        rows.append(own)
    columns = dict.fromkeys(name for own in rows for name in own)
    return [columns | own for own in rows]


def sweep_csv(*sweeps: Sweep) -> str:
    """Return the tables of sweeps as one in CSV; what is not known is empty."""
    rows = [row for sweep in sweeps for row in sweep_rows(sweep)]
    columns = dict.fromkeys(name for row in rows for name in row)
    return csv_text(columns or (*_OF_ALL, *_BEFORE, *_AFTER), rows)

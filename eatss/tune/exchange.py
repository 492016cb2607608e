"""Sweeps as tables (CSV, Parquet) and as JSON, by name and by the end of a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Literal, TypeAlias

from eatss.base.codec import encode
from eatss.base.diagnostics import input_error
from eatss.tune.points import Value
from eatss.tune.rows import Row, Sweep
from eatss.tune.store import SWEEP

Cell: TypeAlias = Value | None

_BEFORE = ("variant", "role", "stage", "status", "reason", "card")
_FIGURES = (
    *("time_s", "energy_j", "power_w", "time_error", "energy_error", "flops"),
    *("gflops", "gflops_per_joule"),
)
_AFTER = ("made_s", "card_s", "card_j", "at_s", "decided", "strategy", "created")
_OF_ALL = ("program", "target", "dtype", "gpu")


def columns_of(sweep: Sweep) -> dict[str, list[Cell]]:
    """Return the columns by name: what the sweep is of, values, status, figures, metrics, the rest.

    A value or metric with the name of another column is called ``value.NAME`` or ``metric.NAME``,
    the value of a parameter that is no variable of the space ``size.NAME``. What a row does not
    have is ``None``.
    """
    rows = sweep.rows
    identity = sweep.identity
    of_all = (identity.program, identity.target, identity.dtype, identity.card)
    found: dict[str, list[Cell]] = {
        name: [value] * len(rows) for name, value in zip(_OF_ALL, of_all, strict=True)
    }
    fixed = {*_OF_ALL, *_BEFORE, *_FIGURES, *_AFTER}
    found |= {name: _field(rows, name) for name in _BEFORE}
    variables = _columns(row.values for row in rows)
    found |= {_apart("value", name, fixed): column for name, column in variables.items()}
    sizes = _columns(row.sizes for row in rows)
    found |= {f"size.{name}": sizes[name] for name in sizes if name not in variables}
    found |= {name: _field(rows, name) for name in _FIGURES}
    taken = fixed | set(found)
    metrics = _columns(row.metrics for row in rows)
    found |= {_apart("metric", name, taken): column for name, column in metrics.items()}
    return found | {name: _field(rows, name) for name in _AFTER}


def sweep_rows(sweep: Sweep) -> list[dict[str, Cell]]:
    """Return a row a measurement, with the same columns."""
    columns = columns_of(sweep)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def csv_bytes(sweep: Sweep) -> bytes:
    """Return the table as CSV in UTF-8; what is not known is empty."""
    columns = columns_of(sweep)
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue().encode("utf-8", "backslashreplace")


def parquet_bytes(sweep: Sweep) -> bytes:
    """Return the table as Parquet; its metadata have the identity and the space.

    A variable whose values are of several types is text.

    Raises:
        InputError: ``EATSS-D030``, pyarrow is not installed.
    """
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise input_error(
            "EATSS-D030",
            "Parquet needs pyarrow, which is not installed",
            hint="install it with: pip install 'eatss[parquet]'",
        ) from None
    columns = {name: _of_one_type(column) for name, column in columns_of(sweep).items()}
    about = {"eatss.identity": json.dumps(encode(sweep.identity)), "eatss.space": sweep.space}
    table = pyarrow.table(columns).replace_schema_metadata(about)
    buffer = BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _field(rows: Iterable[Row], name: str) -> list[Cell]:
    return [getattr(row, name) for row in rows]


def _columns(pairs: Iterable[Iterable[tuple[str, Value]]]) -> Mapping[str, list[Cell]]:
    named = [dict(one) for one in pairs]
    names = dict.fromkeys(name for one in named for name in one)
    return {name: [one.get(name) for one in named] for name in names}


def _apart(kind: str, name: str, taken: set[str]) -> str:
    return f"{kind}.{name}" if name in taken else name


def _of_one_type(column: list[Cell]) -> list[Cell]:
    kinds = {type(one) for one in column if one is not None}
    if len(kinds) < 2:
        return column
    if kinds == {int, float}:
        return [None if one is None else float(one) for one in column]
    return [None if one is None else str(one) for one in column]


ExportFormat: TypeAlias = Literal["csv", "parquet", "json"]

_WRITERS: Mapping[ExportFormat, Callable[[Sweep], bytes]] = {
    "csv": csv_bytes,
    "parquet": parquet_bytes,
    "json": lambda sweep: SWEEP.to_text(sweep).encode(),
}
_BY_SUFFIX: Mapping[str, ExportFormat] = {".csv": "csv", ".parquet": "parquet", ".json": "json"}


def format_of(path: Path) -> ExportFormat:
    """Return the format that a file's name tells.

    Raises:
        InputError: ``EATSS-D013``, it tells none.
    """
    found = _BY_SUFFIX.get(path.suffix.lower())
    if found is None:
        raise input_error(
            "EATSS-D013",
            f"the name '{path}' tells no format",
            hint=f"let it end in {', '.join(_BY_SUFFIX)}, or choose: --format {'|'.join(_WRITERS)}",
        )
    return found


def exported(sweep: Sweep, form: ExportFormat) -> bytes:
    """Return a sweep as a file of a format.

    Raises:
        InputError: ``EATSS-D030``, pyarrow is not installed.
    """
    return _WRITERS[form](sweep)


def of_card(sweep: Sweep, card: str | None) -> Sweep:
    """Return a sweep with the rows of one card, and of none; ``None`` stands for all.

    Raises:
        InputError: ``EATSS-D013``, no row is of that card.
    """
    if card is None:
        return sweep
    cards = sorted({row.card for row in sweep.rows if row.card is not None})
    if card not in cards:
        raise input_error(
            "EATSS-D013",
            f"no row is of a card '{card}'",
            hint=f"there are: {', '.join(cards)}" if cards else "no row is of any card",
        )
    return replace(
        sweep,
        cards=tuple(one for one in sweep.cards if one.uuid == card),
        rows=tuple(row for row in sweep.rows if row.card in (card, None)),
    )

"""Measurements and comparisons as CSV: a line a variant, units in the names of the columns."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO

from eatss.measurement.comparison import Comparison
from eatss.measurement.measurement import Measurement
from eatss.measurement.rows import Cell, comparison_rows, measurement_rows


def measurements_csv(measurements: Sequence[Measurement]) -> str:
    """Return measurements; what was not measured is empty and stands in ``missing``."""
    return _csv([row for measurement in measurements for row in measurement_rows(measurement)])


def comparison_csv(comparison: Comparison) -> str:
    """Return the rows of a comparison with their ratios."""
    return _csv(comparison_rows(comparison))


def _csv(rows: Sequence[Mapping[str, Cell]]) -> str:
    buffer = StringIO()
    if rows:
        writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()

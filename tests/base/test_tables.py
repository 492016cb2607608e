"""Results as rows of plain values."""

from __future__ import annotations

import csv
import io

import pytest

from eatss.base.shown import Tabular
from eatss.report.measurement import render_comparison
from eatss.tune.exchange import sweep_csv
from tests.base.test_shown import expected, selected, selected_for_ppcg
from tests.report.measurements import comparison
from tests.report.measurements import measured as measurement
from tests.synthetic_sweeps import sweep


@pytest.fixture(scope="module")
def found() -> list[Tabular]:
    several = [selected(), selected_for_ppcg(), expected(), measurement(), comparison()]
    return [*several, sweep(variants=30)]


def test_rows_have_the_same_columns_and_plain_values(found: list[Tabular]) -> None:
    for table in found:
        rows = table.to_rows()
        assert rows, table
        assert {tuple(row) for row in rows} == {tuple(rows[0])}
        plain = (str, int, float, bool, type(None))
        assert all(isinstance(value, plain) for row in rows for value in row.values())


def test_a_selection_has_a_row_a_kernel() -> None:
    selection = selected()
    rows = selection.to_rows()
    assert [row["kernel"] for row in rows] == [kernel.name for kernel in selection.kernels]
    for row, kernel in zip(rows, selection.kernels, strict=True):
        assert {f"tile_{loop}": size for loop, size in kernel.tile_sizes}.items() <= row.items()
        assert kernel.predicted is not None
        assert row["predicted_energy_j"] == kernel.predicted.energy_j


def test_the_columns_are_those_of_csv() -> None:
    table = comparison()
    (head, *lines) = csv.reader(io.StringIO(render_comparison(table, "csv")))
    assert head == list(table.to_rows()[0])
    assert len(lines) == len(table.to_rows())
    kept = sweep(variants=10)
    assert next(csv.reader(io.StringIO(sweep_csv(kept)))) == list(kept.to_rows()[0])

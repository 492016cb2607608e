"""Whatever stands in a store, a report of it can be made, and warns of nothing."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.codec import encode
from eatss.measurement.measurement import Status
from eatss.report.render import cell_text
from eatss.report.sweep_figures import sweep_figures
from eatss.report.sweep_tables import all_tables, report_text
from eatss.tune.evaluation import evaluate, summed_up
from eatss.tune.points import Value, variant_key
from eatss.tune.rows import Role, Row, Stage
from tests.synthetic_sweeps import CARDS, of_rows

AMOUNT = st.one_of(
    st.sampled_from([None, 0.0, 1.0, 1.0 + 1e-15]), st.floats(1e-9, 1e6), st.floats(1.0, 2.0)
)
VALUE: st.SearchStrategy[Value] = st.one_of(
    st.integers(-4, 64), st.integers(-4, 64), st.booleans(), st.sampled_from([0.5, "a"])
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    values = tuple((name, draw(VALUE)) for name in draw(st.sampled_from(["i", "ij", "ijk"])))
    size = draw(st.sampled_from([(), (), (), (("N", 1),), (("N", 0),), (("N", 7), ("M", 2))]))
    return Row(
        variant=variant_key({**dict(values), **dict(size)}),
        values=values,
        status=draw(st.sampled_from(["ok", "ok", "ok", *get_args(Status)])),
        role=draw(st.sampled_from(get_args(Role))),
        stage=draw(st.sampled_from(get_args(Stage))),
        card=draw(st.sampled_from([None, CARDS[0], CARDS[0], CARDS[0]])),
        reason=draw(st.sampled_from(["", "too much: 7"])),
        sizes=size,
        time_s=draw(AMOUNT),
        energy_j=draw(AMOUNT),
        power_w=draw(AMOUNT),
        flops=draw(st.sampled_from([None, 0, 10, 10])),
        metrics=tuple(
            (name, draw(st.sampled_from([0.0, 1.0, 2.5, float("inf"), float("nan")])))
            for name in draw(st.sampled_from([[], ["m"], ["m", "predicted_time_s"]]))
        ),
        at_s=draw(st.floats(0, 9)),
    )


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(st.lists(rows(), max_size=16))
def test_every_store_has_a_report(made: list[Row]) -> None:
    found = evaluate(of_rows(made, CARDS))
    report = summed_up([found, found])
    json.dumps(encode(report), allow_nan=False)
    assert report_text(report)
    for table in all_tables(found):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert "nan" not in {cell_text(cell) for row in table.rows for cell in row}
    for figure in sweep_figures(found):
        assert figure.csv

"""Tables are tidy."""

from __future__ import annotations

import csv
from io import StringIO

from eatss.tune.exchange import sweep_csv, sweep_rows
from eatss.tune.rows import Sweep
from tests.report.measurements import measured
from tests.tune.sweeps import SPACE, card, identity, refused, row

ROWS = (
    row(role="ours", measurement=measured()),
    refused(32, 16, reason='too "many" registers, it\nsays'),
    row(True, 0.5, metrics=(("status", 1.0), ("occupancy", 0.25))),
    row("a", 64, sizes=(("NI", 5),), card="GPU-1"),
)
SWEEP_OF_ALL = Sweep(identity=identity(), space=SPACE, cards=(card(), card("GPU-1")), rows=ROWS)


def test_a_table_has_a_line_a_measurement() -> None:
    lines = list(csv.DictReader(StringIO(sweep_csv(SWEEP_OF_ALL), newline="")))
    assert [line["tile_i"] for line in lines] == ["16", "32", "True", "a"]
    assert [line["status"] for line in lines] == ["ok", "compile error", "ok", "ok"]
    assert [line["metric.status"] for line in lines] == ["", "", "1.0", ""]
    assert [line["size.NJ"] for line in lines] == ["1200", "1200", "1200", ""]
    assert float(lines[0]["gflops_per_joule"]) == ROWS[0].gflops_per_joule
    assert lines[1]["time_s"] == ""
    assert lines[1]["reason"] == ROWS[1].reason
    assert {line["gpu"] for line in lines} == {"NVIDIA H200"}


def test_no_column_hides_another() -> None:
    point = (("status", 1), ("gpu", 2), ("time_s", 3), ("NI", 4), ("occupancy", 5))
    sizes, metrics = (("NI", 6), ("N", 7)), (("occupancy", 8.0), ("M", 9.0))
    one = row(values=point, sizes=sizes, metrics=metrics)
    (found,) = sweep_rows(Sweep(identity=identity(), space=SPACE, cards=(), rows=(one,)))
    wanted: dict[str, float] = {
        "value.status": 1,
        "value.gpu": 2,
        "value.time_s": 3,
        "NI": 4,
        "occupancy": 5,
    }
    wanted |= {"size.N": 7, "metric.occupancy": 8.0, "M": 9.0}
    assert {name: found[name] for name in wanted} == wanted
    assert found["status"] == "ok"


def test_an_empty_sweep_is_a_table_without_lines() -> None:
    none = Sweep(identity=identity(), space=SPACE, cards=(), rows=())
    assert sweep_csv(none).startswith("program,target,dtype,gpu,variant,")

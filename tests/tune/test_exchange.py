"""Tables are tidy, JSON comes back."""

from __future__ import annotations

import csv
import json
from io import BytesIO, StringIO
from pathlib import Path

import pytest

from eatss.base.diagnostics import InputError
from eatss.tune.exchange import columns_of, exported, format_of
from eatss.tune.rows import Sweep
from eatss.tune.store import SWEEP, Store, read_sweep
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
    lines = list(csv.DictReader(StringIO(exported(SWEEP_OF_ALL, "csv").decode(), newline="")))
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
    sizes, metrics = (("NI", 6), ("N", 7)), (("occupancy", 8.0), ("N", 9.0), ("size.N", 10.0))
    one = row(values=point, sizes=sizes, metrics=metrics)
    columns = columns_of(Sweep(identity=identity(), space=SPACE, cards=(), rows=(one,)))
    wanted: dict[str, float] = {
        "value.status": 1,
        "value.gpu": 2,
        "value.time_s": 3,
        "NI": 4,
        "occupancy": 5,
    }
    wanted |= {"size.N": 7, "metric.occupancy": 8.0, "N": 9.0, "metric.size.N": 10.0}
    assert {name: columns[name] for name in wanted} == {k: [v] for k, v in wanted.items()}
    assert columns["status"] == ["ok"]


def test_an_empty_sweep_is_a_table_without_lines() -> None:
    none = Sweep(identity=identity(), space=SPACE, cards=(), rows=())
    assert exported(none, "csv").decode().startswith("program,target,dtype,gpu,variant,")
    assert json.loads(exported(none, "json"))["rows"] == []


def test_parquet_has_the_same_table() -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = parquet.read_table(BytesIO(exported(SWEEP_OF_ALL, "parquet")))
    columns = columns_of(SWEEP_OF_ALL)
    assert table.column_names == [*columns]
    assert table["time_s"].to_pylist() == columns["time_s"]
    assert table["tile_j"].to_pylist() == [32.0, 16.0, 0.5, 64.0]
    assert table["tile_i"].to_pylist() == ["16", "32", "True", "a"]
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert json.loads(about["eatss.identity"])["driver"] == identity().driver
    assert about["eatss.space"] == SPACE


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError) as refusal:
        exported(SWEEP_OF_ALL, "parquet")
    assert refusal.value.code == "EATSS-D030"
    assert "eatss[parquet]" in str(refusal.value.diagnostics[0].hint)


def test_json_comes_back_whole_and_keeps_to_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "2mm.json"
    path.write_bytes(exported(SWEEP_OF_ALL, "json"))
    assert read_sweep(path) == SWEEP_OF_ALL
    document = json.loads(path.read_text())
    with pytest.raises(InputError) as refusal:
        SWEEP.from_dict(document | {"schema_version": 2})
    assert refusal.value.code == "EATSS-D020"
    document["rows"][1]["status"] = "fine"
    with pytest.raises(InputError, match=r"rows\[1\].status") as refusal:
        SWEEP.from_dict(document)
    assert refusal.value.code == "EATSS-D020"


def test_a_number_that_no_store_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "2mm.json"
    document = json.loads(exported(SWEEP_OF_ALL, "json"))
    document["rows"][0]["flops"] = 10**30
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as refusal:
        Store.write_new(tmp_path / "2mm.db", read_sweep(path))
    assert refusal.value.code == "EATSS-D006"
    assert not (tmp_path / "2mm.db").exists()


@pytest.mark.parametrize(
    ("name", "form"), [("a.csv", "csv"), ("a.PARQUET", "parquet"), ("a.json", "json")]
)
def test_the_name_of_a_file_tells_its_format(name: str, form: str) -> None:
    assert format_of(Path(name)) == form


def test_a_name_that_tells_no_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"'a\.xlsx' tells no format") as refusal:
        format_of(Path("a.xlsx"))
    assert refusal.value.code == "EATSS-D013"

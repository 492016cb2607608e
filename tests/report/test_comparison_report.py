"""What ``eatss compare`` prints and draws of hand-made comparisons."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement.measurement import Counter, KernelCounters, comparison_from_dict
from eatss.measurement.requirement import judge, parse_requirements
from eatss.report.measurement import render_comparison
from eatss.report.plots import plot_comparisons
from tests.report.measurements import comparison, failed_row, method, row

SIDES = comparison(
    row("selected", 2.0, 0.5),
    row("32,64,16", 1.004, 1.02),
    failed_row("i=32,j=64"),
    failed_row("1024", "rejected by the model", "kernel0 needs 2 MiB of shared memory"),
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_fit_the_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = render_comparison(SIDES, "table").splitlines()
    assert max(map(len, lines)) <= width
    assert "selected  ok       7.000 ±0.1% 4.800 ±0.6% 686   18286    26.7       5" in lines
    assert "selected    2.000 [1.980, 2.020]   0.500 [0.495, 0.505]  2.000 [1.980, 2.020]" in lines


def test_the_baseline_has_figures_but_no_ratios_to_itself() -> None:
    figures, ratios = render_comparison(SIDES, "table").split("against 32")
    assert "\n32        ok" in figures
    assert "\n32 " not in ratios.split("\n\n")[0]


def test_failures_stand_in_both_tables_with_their_reasons() -> None:
    text = render_comparison(SIDES, "table")
    assert "i=32,j=64 failed " in text
    assert "i=32,j=64   wrong result\n" in text
    assert "wrong result: C differs" in text
    assert "1024      rejected " in text
    assert "rejected by the model: kernel0 needs 2 MiB of shared memory" in text


def test_what_holds_for_all_is_said_once() -> None:
    text = render_comparison(SIDES, "table")
    assert text.count("the original at NI=37") == 1
    assert "all measured" in text


def test_the_best_of_each_column_is_highlighted_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    text = render_comparison(SIDES, "table")
    assert "\x1b[1;32m7.000\x1b[0m" in text
    assert "\x1b[1;32m14.00\x1b[0m" not in text


def test_json_can_be_read_back_and_holds_the_verdicts() -> None:
    verdicts = judge(SIDES, parse_requirements(["energy<=1", "time<=0.1"]))
    document = json.loads(render_comparison(SIDES, "json", verdicts))
    assert [verdict["met"] for verdict in document["requirements"]] == [True, False]
    assert document["requirements"][1]["text"] == "time<=0.1"
    assert document["requirements"][1]["ratio"]["value"] == 0.5
    assert comparison_from_dict(document) == SIDES


def test_csv_has_ratios_with_intervals_and_blanks_for_failures() -> None:
    rows = list(csv.DictReader(StringIO(render_comparison(SIDES, "csv"))))
    assert [line["variant"] for line in rows][:2] == ["selected", "32,64,16"]
    assert (rows[0]["speedup"], rows[0]["energy_ratio_high"]) == ("2.0", "0.505")
    assert {line["baseline"] for line in rows} == {"32"}
    assert rows[2]["ppw_ratio"] == ""


def test_counters_of_variants_stand_side_by_side() -> None:
    one, other = row(), row("64")
    counted = [
        replace(
            side,
            measurement=replace(
                side.measurement,
                counters=(
                    KernelCounters(
                        kernel="gemm_k0",
                        launches=1,
                        counters=(Counter(name="smsp__inst_executed.sum", value=n, unit="inst"),),
                    ),
                ),
            ),
        )
        for side, n in ((one, 1e9), (other, 2e9))
    ]
    lines = [line.split() for line in render_comparison(comparison(*counted), "table").splitlines()]
    assert ["warp", "instructions", "1.000", "G", "2.000", "G"] in lines


def test_an_interrupted_variant_says_so() -> None:
    side = row()
    short = replace(side, measurement=replace(side.measurement, method=method(ended="interrupted")))
    assert "; interrupted" in render_comparison(comparison(short), "table")


@pytest.mark.samples(1)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_plot_is_written(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"plot{suffix}"
    plot_comparisons([SIDES], file)
    assert file.stat().st_size > 1000


def test_the_plot_names_programs_variants_panels_and_failures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").rcParams["svg.fonttype"] = "none"
    file = tmp_path / "plot.svg"
    programs = [
        comparison(row("selected", speedup, energy), program=name)
        for name, speedup, energy in (("gemm", 8.0, 0.1), ("atax", 1.1, 0.9), ("mvt", 0.9, 1.2))
    ]
    plot_comparisons([*programs, comparison(failed_row("selected"), program="lu")], file)
    text = file.read_text()
    for word in ("gemm", "atax", "lu", "geo. mean", "selected", "32", "failed or not measured"):
        assert f">{word}<" in text
    for word in ("performance", "energy", "PPW, GFLOP/J", "(lower is better)", "ratio to 32"):
        assert word in text


def test_one_program_gets_no_mean(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").rcParams["svg.fonttype"] = "none"
    plot_comparisons([comparison(row())], tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert "geo. mean" not in text
    assert "failed" not in text


def test_a_plot_without_matplotlib_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eatss.report.plots.find_spec", lambda _: None)
    with pytest.raises(InputError) as caught:
        plot_comparisons([SIDES], tmp_path / "plot.png")
    assert caught.value.code == "EATSS-E052"
    assert caught.value.diagnostics[0].hint == "install it with: pip install 'eatss[plot]'"


@pytest.mark.parametrize("name", ["plot.txt", "plot", "nowhere/plot.png"])
def test_a_plot_that_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        plot_comparisons([SIDES], tmp_path / name)
    assert caught.value.code == "EATSS-E053"

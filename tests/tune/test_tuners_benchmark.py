"""The comparison with Kernel Tuner, on a card that is made up."""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tuners
from eatss.tune.store import Store
from tests.tune.recorded import IDENTITY, row

pytestmark = pytest.mark.skipif(
    find_spec("kernel_tuner") is None, reason="Kernel Tuner is not installed"
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuners.Bundle:
    folder = tmp_path_factory.mktemp("bundle")
    tuners.main(["prepare", str(folder), "--size", "64", "--most", "9"])
    return tuners.Bundle.read(folder)


class MadeUpCard:
    """Kernel Tuner's backend for CuPy without a card: a variant runs as long as its tile is small.

    It checks what it is given: the text of the very variant, its block and grid.
    """

    name = "made up"
    max_threads = 1024
    units = {"time": "ms"}  # noqa: RUF012
    env: dict[str, str] = {}  # noqa: RUF012
    launches: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        self.observers = [*(options["observers"] or []), Clock(self)]
        self.block: tuple[int, ...] = ()
        self.text = ""

    def ready_argument_list(self, arguments: list[Any]) -> list[Any]:
        return arguments

    def get_environment(self) -> dict[str, Any]:
        return {}

    def compile(self, instance: Any) -> Any:
        self.text = instance.kernel_string
        assert "#define NI 64" in self.text
        assert f"{instance.name}(" in self.text
        return instance.name

    def run_kernel(self, _: Any, arguments: list[Any], threads: Any, grid: Any) -> None:
        found = re.search(r"__launch_bounds__\((\d+)\)", self.text)
        assert found is not None
        assert threads[0] * threads[1] * threads[2] == int(found[1])
        assert f"threadIdx.x + {threads[0]} * threadIdx.y" in self.text
        assert [getattr(one, "shape", None) for one in arguments] == [
            (64, 64), (), (), (64, 64), (64, 64),
        ]  # fmt: skip
        MadeUpCard.launches.append((tuple(threads), tuple(grid)))
        self.block = tuple(threads)

    def kernel_finished(self) -> bool:
        return True

    def synchronize(self) -> None: ...

    def start_event(self) -> None: ...

    def stop_event(self) -> None: ...


class Clock:
    """Says how long a kernel ran, and what it drew."""

    def __init__(self, card: MadeUpCard) -> None:
        self.card = card

    def register_configuration(self, params: Any) -> None: ...

    def before_start(self) -> None: ...

    def after_start(self) -> None: ...

    def during(self) -> None: ...

    def after_finish(self) -> None: ...

    def get_results(self) -> dict[str, Any]:
        time_ms = 1e3 / (self.card.block[0] * self.card.block[1])
        return {"time": time_ms, "times": [time_ms], "nvml_energy": 2 * time_ms}


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = import_module("kernel_tuner.backends.cupy")
    base = import_module("kernel_tuner.backends.backend").GPUBackend
    methods = {
        name: lambda *_, **__: None
        for name in base.__abstractmethods__
        if name not in vars(MadeUpCard)
    }
    fake = type("CupyFunctions", (MadeUpCard, base), methods)
    monkeypatch.setattr(backend, "CupyFunctions", fake)
    monkeypatch.setattr(tuners, "observers_for", lambda _: [])
    MadeUpCard.launches.clear()


@pytest.mark.usefixtures("card")
def test_all_strategies_are_run_on_the_same_variants(
    bundle: tuners.Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tuners.json"
    strategies = "eatss:model,eatss:local,random_sample,mls"
    within = ["--seconds", "20", "--seeds", "2", "--strategies", strategies]
    tuners.main(["run", str(bundle.folder), "-o", str(output), *within])
    runs = json.loads(output.read_text())["runs"]
    assert [run.get("error") for run in runs] == [None] * 16
    blocks = {tuple(one["block"]): tuple(one["grid"]) for one in bundle.document["points"]}
    assert {threads for threads, _ in MadeUpCard.launches} == set(blocks)
    grids = {(tuple(one["block"]), tuple(one["grid"])) for one in bundle.document["points"]}
    assert set(MadeUpCard.launches) == grids
    for run in runs:
        scale = {"time": 1e3, "energy": 2e3}[run["objective"]]
        for step in run["steps"]:
            threads = step["values"]["threads_i"] * step["values"]["threads_j"]
            assert step["cost"] == scale / threads
        spent = [step["spent_s"] for step in run["steps"]]
        assert spent == sorted(spent)
        assert 0 < spent[-1] <= run["lasted_s"]
    for run in (one for one in runs if one["strategy"].startswith("eatss")):
        assert len(run["steps"]) == 9
        first = run["steps"][0]["values"]
        assert first == dict(bundle.ranked(run["objective"])[0])
    tuners.main(["show", str(output)])
    shown = capsys.readouterr().out
    assert "time: least" in shown
    assert re.search(r"eatss:model .* 0.0 +0.0 +0.0 +9\b", shown)


def test_a_sweep_of_eatss_stands_beside_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(0, 0, 0.004, at_s=3.0), row(0, 1, None, at_s=7.0), row(0, 2, 0.002, at_s=40.0)]
    with Store.create_or_resume(tmp_path / "s.db", IDENTITY, "") as store:
        for one in rows:
            store.add(one)
    theirs = {"strategy": "mls", "seed": 0, "objective": "time", "seconds": 60.0}
    steps = [{"best": 5.0, "spent_s": 5.0}, {"best": 4.0, "spent_s": 50.0}]
    (tmp_path / "r.json").write_text(json.dumps({"runs": [{**theirs, "steps": steps}]}))
    tuners.main(["show", str(tmp_path / "r.json"), "--sweep", str(tmp_path / "s.db")])
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:4]] == [
        ["mls", "150.0", "150.0", "150.0", "100.0", "100.0", "100.0", "2"],
        ["eatss", "sweep", "100.0", "100.0", "100.0", "0.0", "0.0", "0.0", "3"],
    ]


def test_of_two_runs_the_mean_is_shown_and_both_ends() -> None:
    def run(best: float | None) -> dict[str, object]:
        steps = [{"best": best, "spent_s": 5.0}]
        named = {"strategy": "mls", "seed": 0, "objective": "energy", "seconds": 10.0}
        return {**named, "steps": steps}

    (*_, line, _) = tuners.table({"runs": [run(1.0), run(1.5)]}).split("\n")
    assert line.split() == ["mls", "-", "-", "25.0", "25.0", "0.0", "50.0", "1"]
    (*_, line, _) = tuners.table({"runs": [run(1.0), run(None)]}).split("\n")
    assert line.split() == ["mls", "-", "-", "-", "-", "0.0", "-", "1"]


def test_the_texts_are_of_the_points(bundle: tuners.Bundle) -> None:
    for one in bundle.document["points"]:
        text = (bundle.folder / one["file"]).read_text()
        tile_i = one["values"]["threads_i"] * one["values"]["points_i"]
        assert f"{tile_i} * (int)blockIdx.y" in text
        assert one["grid"][1] == -(-64 // tile_i)

"""Caches of Kernel Tuner go both ways; where it is installed it reads ours."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.measurement.measurement import Status
from eatss.tune.exchange.formats import exported, imported, of_card
from eatss.tune.exchange.kernel_tuner_cache import sweep_of_cache
from eatss.tune.point import variant_key
from eatss.tune.store.nouns import Row, Sweep
from eatss.tune.store.store import Store
from tests.tune.store.sweeps import SPACE, card, identity, refused, row

CACHE: dict[str, Any] = {
    "device_name": "NVIDIA A100",
    "kernel_name": "vector_add",
    "problem_size": [1000, 20],
    "tune_params_keys": ["block_size_x", "layout"],
    "tune_params": {"block_size_x": [32, 64], "layout": ["row", 'a "column"']},
    "objective": "time",
    "cache": {
        "32,row": {
            "block_size_x": 32,
            "layout": "row",
            "time": 2.5,
            "times": [2.0, 3.0],
            "nvml_energy": 0.75,
            "nvml_power": 300.0,
            "core_freq": 1410.0,
            "GFLOP/s": 4.0,
            "compile_time": 400.0,
            "verification_time": 20.0,
            "benchmark_time": 80.0,
            "strategy_time": 1.0,
            "framework_time": 9.0,
            "timestamp": "2026-11-21 12:00:00+00:00",
        },
        "64,row": {"block_size_x": 64, "layout": "row", "time": "CompilationFailedConfig"},
        "64,column": {
            "block_size_x": 64,
            "layout": 'a "column"',
            "__error__": "RuntimeFailedConfig",
            "compile_time": 500.0,
        },
        "32,column": {"block_size_x": 32, "layout": 'a "column"', "time": 1e20},
    },
}


def test_units_and_errors_are_those_of_kernel_tuner() -> None:
    sweep = sweep_of_cache(CACHE, Path("cache.json"))
    good, uncompiled, failed, old = sweep.rows
    assert (good.time_s, good.energy_j, good.power_w) == (2.5e-3, 0.75, 300.0)
    assert (good.flops, good.metrics) == (10_000_000, (("core_freq", 1410.0),))
    assert (good.made_s, good.card_s) == (0.4, 0.1)
    assert good.at_s == pytest.approx(0.51)
    assert good.values == (("block_size_x", 32), ("layout", "row"))
    assert good.variant == variant_key({"layout": "row", "block_size_x": 32})
    assert good.sizes == (("size_x", 1000), ("size_y", 20))
    assert [one.status for one in (uncompiled, failed, old)] == [
        "compile error",
        "launch error",
        "launch error",
    ]
    assert all(one.time_s is None and one.reason for one in (uncompiled, failed, old))
    assert failed.at_s == pytest.approx(1.01)
    assert (sweep.identity.program, sweep.identity.card) == ("vector_add", "NVIDIA A100")
    assert sweep.space == (
        'name = "vector_add"\n\n[iterators]\nblock_size_x = [32, 64]\n'
        'layout = ["row", "a \\"column\\""]\n'
    )


@pytest.mark.parametrize("cut", ["", "}", "}\n}", ","])
def test_a_cache_that_is_not_closed_is_read(tmp_path: Path, cut: str) -> None:
    whole = json.dumps(CACHE, indent="")
    assert whole.endswith("}\n}\n}")
    path = tmp_path / "cache.json"
    path.write_text(whole[: -len("\n}\n}")] + ("," if cut == "," else ""))
    if cut == "}\n}":
        path.write_text(whole)
    assert len(imported(path).rows) == 4


VALUES = st.booleans() | st.integers(-9, 99) | st.floats(-1, 1) | st.sampled_from(["row", "ä"])
ROUNDED = ("time_s", "made_s", "card_s")
"""They go to milliseconds and back."""

TIMES = st.floats(1e-7, 1e2)
STATUSES: list[Status] = [
    *("ok", "unstable", "rejected by the model", "compile error", "launch error"),
    *("wrong result", "timeout"),
]


@st.composite
def sweeps(draw: st.DrawFn) -> Sweep:
    pairs = draw(st.lists(st.tuples(VALUES, VALUES), unique_by=repr, max_size=6))
    points = [dict(zip(("tile_i", "k0.lanes"), pair, strict=True)) for pair in pairs]
    rows = []
    for point in points:
        status = draw(st.sampled_from(STATUSES))
        good = status in ("ok", "unstable")
        rows.append(
            Row(
                variant=variant_key(point),
                values=tuple(point.items()),
                status=status,
                reason="" if status == "ok" else "a reason",
                sizes=identity().sizes,
                time_s=draw(TIMES) if good else None,
                energy_j=draw(st.none() | TIMES) if good else None,
                power_w=draw(st.none() | TIMES) if good else None,
                flops=draw(st.none() | st.integers(1, 1 << 48)) if good else None,
                metrics=draw(
                    st.just(()) | st.tuples(st.tuples(st.just("registers"), st.floats(0, 255)))
                ),
                made_s=draw(st.floats(0, 100)),
                card_s=draw(st.floats(0, 100)),
                strategy="kernel-tuner",
                created=draw(st.sampled_from(["", "2026-11-21T12:00:00+00:00"])),
            )
        )
    return Sweep(identity=identity(), space=SPACE, cards=(), rows=tuple(rows))


@settings(max_examples=40)
@given(sweeps())
def test_what_a_cache_has_a_place_for_comes_back(sweep: Sweep) -> None:
    document = json.loads(exported(sweep, "kernel-tuner"))
    found = sweep_of_cache(document, Path("cache.json"))
    assert (found.identity, found.space) == (sweep.identity, sweep.space)
    for one, other in zip(found.rows, sweep.rows, strict=True):
        for name in ROUNDED:
            back, there = getattr(one, name), getattr(other, name)
            assert back == there or math.isclose(back, there, rel_tol=4e-16)
        same = {name: getattr(other, name) for name in ROUNDED}
        assert replace(one, **same, at_s=0.0) == other


def test_a_cache_is_of_one_card() -> None:
    rows = (row(), row(card="GPU-1", time_s=1.0), refused(32))
    sweep = Sweep(identity=identity(), space=SPACE, cards=(card(), card("GPU-1")), rows=rows)
    with pytest.raises(InputError, match="of one card, the sweep is of 2") as refusal:
        exported(sweep, "kernel-tuner")
    assert refusal.value.code == "EATSS-D031"
    cache = json.loads(exported(of_card(sweep, "GPU-1"), "kernel-tuner"))["cache"]
    assert {key: entry["time"] for key, entry in cache.items()} == {
        "16,32": 1000.0,
        "32,32": "CompilationFailedConfig",
    }
    with pytest.raises(InputError, match="no row is of a card 'GPU-2'"):
        of_card(sweep, "GPU-2")


def test_the_careful_time_stands_in_the_cache() -> None:
    rows = (row(), row(stage="careful", time_s=0.5), row(stage="reference", time_s=9.0))
    sweep = Sweep(identity=identity(), space=SPACE, cards=(card(),), rows=rows)
    assert json.loads(exported(sweep, "kernel-tuner"))["cache"]["16,32"]["time"] == 500.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cache": []}, "no 'tune_params_keys' or no 'cache'"),
        ({"cache": {"1,2": 5}}, "'1,2' is no object"),
        ({"cache": {"1,2": {"block_size_x": 1}}}, "'1,2' has no value of 'layout'"),
        ({"eatss": {"space": "", "identity": {}}}, "eatss.identity: there is no 'program'"),
    ],
)
def test_what_is_no_cache_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as refusal:
        sweep_of_cache(CACHE | change, Path("cache.json"))
    assert refusal.value.code == "EATSS-D032"


def test_kernel_tuner_reads_our_cache(tmp_path: Path) -> None:
    util = pytest.importorskip("kernel_tuner.util", reason="Kernel Tuner is not installed")
    kernel_tuner = pytest.importorskip("kernel_tuner")
    rows = (row(), row(32, 16, time_s=1e-3), row(32, 32, time_s=5e-3), refused(16, 16))
    sweep = Sweep(identity=identity(), space=SPACE, cards=(card(),), rows=rows)
    path = tmp_path / "cache.json"
    path.write_bytes(exported(sweep, "kernel-tuner"))
    read = util.read_cache(path, open_cache=False)
    assert [one["time"] for one in read["cache"].values() if "__error__" not in one] == [7, 1, 5]
    results, _ = kernel_tuner.tune_kernel(
        kernel_name="2mm",
        kernel_source="",
        problem_size=read["problem_size"],
        arguments=[],
        tune_params=read["tune_params"],
        cache=str(path),
        simulation_mode=True,
        quiet=True,
    )
    assert min(one["time"] for one in results if isinstance(one["time"], float)) == 1.0
    util.read_cache(path, open_cache=True)  # opened to append
    util.store_cache("64,64", {"tile_i": 64, "tile_j": 64, "time": 0.5}, path, {})
    assert [one.time_s for one in imported(path).rows][-1] == 5e-4
    util.close_cache(path)
    assert len(imported(path).rows) == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"tune_params_keys": [1, None]},
        {"kernel_name": "\ud800"},
        {"cache": {"a": {"block_size_x": math.inf, "layout": "row"}}},
        {"cache": {"a": {"block_size_x": 10**400, "layout": "row"}}},
        {"cache": {"a": {"block_size_x": None, "layout": "row"}}},
    ],
)
def test_what_no_store_can_hold_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is no cache file"):
        sweep_of_cache(CACHE | changes, Path("cache.json"))


@pytest.mark.parametrize("odd", [0, -1.0, math.inf, -math.inf, math.nan, 10**400, None, "x"])
def test_odd_times_are_failures_and_odd_energies_unknown(odd: Any, tmp_path: Path) -> None:
    point = {"block_size_x": 32, "layout": "row"}
    entries = {
        "a": point | {"time": odd},
        "b": point | {"block_size_x": 64, "time": 2.0, "nvml_energy": odd, "GFLOP/s": odd},
    }
    found = sweep_of_cache(
        CACHE | {"cache": entries, "tune_params": {"layout": [None, odd]}, "problem_size": odd},
        Path("cache.json"),
    )
    failed, good = found.rows
    assert (failed.measured, failed.time_s, failed.status) == (False, None, "launch error")
    assert (good.measured, good.energy_j, good.flops) == (True, None, None)
    Store.write_new(tmp_path / "made.db", found)


def test_rows_with_only_a_role_are_left_out_and_roles_and_cards_come_back() -> None:
    only = row(values=(("role", "default"),), variant=variant_key({"role": "default"}))
    made = Sweep(
        identity=identity(),
        space=SPACE,
        cards=(card(),),
        rows=(row(16, 32, role="ours"), only, row(32, 32)),
    )
    found = sweep_of_cache(json.loads(exported(made, "kernel-tuner")), Path("cache.json"))
    assert [(one.variant, one.role, one.card) for one in found.rows] == [
        (one.variant, one.role, one.card) for one in (made.rows[0], made.rows[2])
    ]

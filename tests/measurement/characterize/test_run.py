"""Running benchmarks on a scripted card: what is kept, what is measured again, what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.cards import load_profile
from eatss.measurement.characterize.benchmark import (
    Benchmark,
    Record,
    read_record,
    result_line,
    subject_line,
)
from eatss.measurement.characterize.run import (
    IDLE,
    Characterised,
    Chip,
    Step,
    run_bench,
    suite,
)
from tests.measurement.characterize.scripted_bench import ScriptedBench, Truth
from tests.measurement.scripted_card import CardScript, ScriptedCard

RECORDED = Path(__file__).parents[3] / "benchmarks" / "results" / "h200"
NAMES = (
    "active idle",
    "L1 load latency",
    "launch overhead",
    "fp32 fma",
    "DRAM read",
    "3 conflicts",
)
"""One of each kind: idle, latency, launch, a coefficient, memory, a curve."""

TRUTH = Truth(prices={"fp32": 4e-10, "dram_read_bytes": 7e-11}, constant_w=120.0)


@cache
def h200() -> Record:
    return read_record(RECORDED / "characterize-1.jsonl")


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    return tuple(one for one in suite(Chip.of(load_profile("h200"))) if one.name in NAMES)


def bench(
    *,
    failing: dict[str, bool] | None = None,
    wrong_code: frozenset[str] = frozenset(),
    script: CardScript | None = None,
) -> ScriptedBench:
    return ScriptedBench(
        truth=TRUTH,
        record=h200(),
        scripted=ScriptedCard(script=script or CardScript()),
        failing=failing or {},
        wrong_code=wrong_code,
    )


def run(
    path: Path,
    on: ScriptedBench | None = None,
    *,
    fresh: bool = False,
    force: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> Characterised:
    return run_bench(
        on or bench(),
        benchmarks(),
        path,
        sm_count=132,
        profile="h200",
        fresh=fresh,
        force=force,
        progress=progress,
    )


def names(record: Record) -> list[str]:
    return [one.name for one in record.results]


def finding(path: Path, on: ScriptedBench | None = None) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        run(path, on)
    (found,) = caught.value.diagnostics
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


# what is measured


def test_energies_are_those_of_the_card_s_prices(path: Path) -> None:
    on = bench()
    record = run(path, on).record
    for name in ("fp32 fma", "DRAM read", "3 conflicts", "active idle"):
        one, true = record.named(name), h200().named(name)
        assert one is not None
        assert true is not None
        each_s, power_w, _ = on.loaded(true)
        assert one.time_s == pytest.approx(each_s)
        assert one.power_w == pytest.approx(power_w, rel=1e-6)
        assert one.energy_j == pytest.approx(power_w * each_s, rel=1e-6)
        assert one.sm_clock_mhz == 1980
        assert one.updates is not None
    window = record.named("DRAM read"), record.named("3 conflicts")
    lengths = [one.window_s or 0 for one in window if one is not None]
    assert lengths == [pytest.approx(2.05, abs=0.06), pytest.approx(0.83, abs=0.06)]


def test_latencies_and_launches_have_times_and_no_energy(path: Path) -> None:
    record = run(path).record
    load, launch = record.named("L1 load latency"), record.named("launch overhead")
    true_load, true_launch = h200().named("L1 load latency"), h200().named("launch overhead")
    assert load is not None
    assert launch is not None
    assert true_load is not None
    assert true_launch is not None
    assert load.cycles == pytest.approx(true_load.cycles)
    assert launch.time_s == pytest.approx(true_launch.time_s)
    assert launch.cycles is None
    for one in (load, launch):
        assert (one.power_w, one.energy_j, one.window_s) == (None, None, None)


def test_a_benchmark_without_energy_is_warned_of_and_measured_again(path: Path) -> None:
    slow = run(path, bench(script=CardScript(period_s=1.5)))
    without = [one.name for one in slow.record.results if one.missing]
    assert "fp32 fma" in without
    said = [warning.message for warning in slow.warnings if warning.code == "EATSS-B014"]
    assert len(said) == len([name for name in without if name != IDLE])
    again = run(path)
    assert sorted(names(again.record)) == sorted([IDLE, *NAMES])
    assert not any(one.missing for one in again.record.results)


# what is kept


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_last_line_that_was_cut_off_is_measured_again(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "record.jsonl"
    whole = run(path).record
    lines = path.read_text().splitlines(keepends=True)
    last = data.draw(st.integers(1, len(lines) - 1))
    cut = data.draw(st.integers(1, len(lines[last]) - 1))
    path.write_text("".join(lines[:last]) + lines[last][:cut])
    assert names(read_record(path)) == names(whole)[: last - 1]
    on = bench()
    found = run(path, on).record
    assert set(on.compiled) == set(names(whole)[last - 1 :]) - {IDLE}
    assert names(found) == names(whole)
    assert read_record(path) == found


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("card", "another", "card"),
        ("driver", "580.1", "driver"),
        ("driver", None, "driver"),
        ("toolkit", "NVRTC 12.9", "compiler"),
        ("power_limit_w", 350.0, "power limit"),
    ],
)
def test_a_record_of_another_card_or_other_software_is_left_alone(
    path: Path, key: str, value: object, what: str
) -> None:
    run(path)
    lines = path.read_text().splitlines(keepends=True)
    subject = json.loads(lines[0]) | {key: value}
    text = json.dumps(subject) + "\n" + "".join(lines[1:])
    path.write_text(text)
    found = finding(path)
    assert found.code == "EATSS-B005"
    assert f"another {what}" in found.message
    assert "--fresh" in (found.hint or "")
    assert path.read_text() == text


# what goes wrong


def test_a_busy_card_is_refused_with_what_computes_on_it_unless_forced(path: Path) -> None:
    busy = CardScript(others=("python (4711)", "train (42)"))
    found = finding(path, bench(script=busy))
    assert found.code == "EATSS-B004"
    assert "python (4711), train (42)" in found.message
    assert "--force" in (found.hint or "")
    assert not path.exists()
    assert names(run(path, bench(script=busy), force=True).record) == [IDLE, *NAMES]


# groups


# damage


def lines_of_a_record() -> list[str]:
    return [subject_line(h200().subject), *map(result_line, h200().results[:2])]


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (1, "{}"),
        (1, "[]"),
        (1, "null"),
        (1, "{"),
        (1, '{"schema_version": 2}'),
        (1, '{"schema_version": 1}'),
        (2, "{}"),
        (2, "{"),
        (2, "[1, 2]"),
        (2, "7"),
        (2, "null"),
        (2, '"text"'),
        (3, "not JSON"),
        (3, '{"name": "x", "time_s": "fast"}'),
        (3, "[" * 100_000),
    ],
)
def test_a_damaged_record_is_refused_with_the_line(path: Path, number: int, line: str) -> None:
    lines = lines_of_a_record()
    lines[number - 1] = line + "\n"
    path.write_text("".join(lines))
    found = finding(path)
    assert found.code == "EATSS-B002"
    assert found.message.startswith(f"{path}:{number} ")
    assert path.read_text() == "".join(lines)

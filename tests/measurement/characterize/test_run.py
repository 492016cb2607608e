"""Running benchmarks on a scripted card: what is kept, what is measured again, what goes wrong."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.cards import load_profile
from eatss.measurement.characterize.bench import CupyBench
from eatss.measurement.characterize.benchmark import (
    Benchmark,
    Record,
    Result,
    read_record,
    result_line,
    subject_line,
)
from eatss.measurement.characterize.run import (
    IDLE,
    Characterised,
    run_bench,
    suite,
)
from tests.measurement.characterize.scripted_bench import ScriptedBench, Truth, chip_of
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
    return tuple(one for one in suite(chip_of(load_profile("h200"))) if one.name in NAMES)


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
    force: bool = False,
) -> Characterised:
    return run_bench(
        cast("CupyBench", on or bench()),
        benchmarks(),
        path,
        132,
        "h200",
        force=force,
    )


def names(record: Record) -> list[str]:
    return [one.name for one in record.results]


def named(record: Record, name: str) -> Result:
    found = record.named(name)
    assert found is not None
    return found


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
        one, true = named(record, name), named(h200(), name)
        each_s, power_w, _ = on.loaded(true)
        assert one.time_s == pytest.approx(each_s)
        assert one.power_w == pytest.approx(power_w, rel=1e-6)
        assert one.energy_j == pytest.approx(power_w * each_s, rel=1e-6)
        assert one.sm_clock_mhz == 1980
        assert one.updates is not None
    lengths = [named(record, name).window_s for name in ("DRAM read", "3 conflicts")]
    assert lengths == [pytest.approx(2.05, abs=0.06), pytest.approx(0.83, abs=0.06)]


def test_latencies_and_launches_have_times_and_no_energy(path: Path) -> None:
    record = run(path).record
    load, launch = named(record, "L1 load latency"), named(record, "launch overhead")
    assert load.cycles == pytest.approx(named(h200(), "L1 load latency").cycles)
    assert launch.time_s == pytest.approx(named(h200(), "launch overhead").time_s)
    assert launch.cycles is None
    for one in (load, launch):
        assert (one.power_w, one.energy_j, one.window_s) == (None, None, None)


def test_a_benchmark_without_energy_is_warned_of(path: Path) -> None:
    slow = run(path, bench(script=CardScript(period_s=1.5)))
    without = [one.name for one in slow.record.results if one.missing]
    assert "fp32 fma" in without
    said = [one.message for one in slow.warnings if "has no energy" in one.message]
    assert len(said) == len([name for name in without if name != IDLE])
    assert read_record(path) == slow.record


def test_a_compressed_record_is_read_where_its_name_says_so(path: Path) -> None:
    plain = run(path).record
    small = path.with_name("sent.jsonl.xz")
    small.write_bytes(lzma.compress(path.read_bytes()))
    assert read_record(small) == plain


# what goes wrong


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_a_compressed_record_that_is_damaged_is_refused(path: Path, kept: float) -> None:
    whole = lzma.compress(b"no record\n" * 1000)
    small = path.with_name("sent.jsonl.xz")
    small.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(InputError, match="EATSS-B001"):
        read_record(small)
    small.write_bytes(b"no xz")
    with pytest.raises(InputError, match="EATSS-B001"):
        read_record(small)


def test_a_busy_card_is_refused_with_what_computes_on_it_unless_forced(path: Path) -> None:
    busy = CardScript(others=("python (4711)", "train (42)"))
    found = finding(path, bench(script=busy))
    assert found.code == "EATSS-B003"
    assert "python (4711), train (42)" in found.message
    assert "--force" in (found.hint or "")
    assert not path.exists()
    assert names(run(path, bench(script=busy), force=True).record) == [IDLE, *NAMES]


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
    with pytest.raises(InputError, match="EATSS-B001") as caught:
        read_record(path)
    assert caught.value.diagnostics[0].message.startswith(f"{path}:{number} ")

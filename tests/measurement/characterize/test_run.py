"""Running benchmarks on a scripted card: what is kept, what is measured again, what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import Diagnostic, InputError, Severity
from eatss.cards import load_profile
from eatss.measurement.card import LaunchError
from eatss.measurement.characterize.benchmark import (
    Benchmark,
    Record,
    hashed,
    read_record,
    result_line,
    subject_line,
    write_record,
)
from eatss.measurement.characterize.run import (
    IDLE,
    Characterised,
    Chip,
    Step,
    chosen,
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


def interrupted_before(name: str) -> Callable[[Step], None]:
    def tell(step: Step) -> None:
        if step.name == name:
            raise KeyboardInterrupt

    return tell


# what is measured


def test_every_benchmark_gives_a_result_that_is_in_the_record(path: Path) -> None:
    found = run(path)
    assert names(found.record) == [IDLE, *NAMES]
    assert found.warnings == ()
    assert read_record(path) == found.record
    assert path.read_text() == write_record(found.record)


def test_a_record_says_which_card_and_names_it_by_a_hash(path: Path) -> None:
    subject = run(path).record.subject
    assert subject.card == hashed("GPU-0")
    assert "GPU-0" not in path.read_text()
    assert (subject.name, subject.profile, subject.sm_count) == ("Scripted", "h200", 132)
    assert (subject.driver, subject.toolkit, subject.power_limit_w) == ("1", "13.0", 700.0)
    assert subject.meter == "scripted counter"


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


def test_the_clock_that_the_sms_count_goes_before_what_nvml_samples(path: Path) -> None:
    on = bench()
    on.counted_mhz = 1814.5
    one = run(path, on).record.named("fp32 fma")
    assert one is not None
    assert (one.sm_clock_mhz, one.lowest_sm_clock_mhz) == (1814.5, 1980)


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


def test_idling_is_the_power_of_a_card_that_does_nothing(path: Path) -> None:
    idle = run(path, bench(script=CardScript(idle_w=77.0))).record.named(IDLE)
    assert idle is not None
    assert idle.power_w == pytest.approx(77.0)
    assert idle.energy_j == idle.power_w


def test_a_power_that_the_meter_does_not_tell_is_none_and_the_record_says_why(path: Path) -> None:
    """Every other result has its power: once a load has run, the scripted meter moves again."""
    idle = run(path, bench(script=CardScript(frozen_meter=True))).record.named(IDLE)
    assert idle is not None
    assert (idle.power_w, idle.energy_j) == (None, None)
    assert idle.missing


def test_a_benchmark_without_energy_is_warned_of_and_measured_again(path: Path) -> None:
    slow = run(path, bench(script=CardScript(period_s=1.5)))
    without = [one.name for one in slow.record.results if one.missing]
    assert "fp32 fma" in without
    said = [warning.message for warning in slow.warnings if warning.code == "EATSS-B014"]
    assert len(said) == len([name for name in without if name != IDLE])
    again = run(path)
    assert sorted(names(again.record)) == sorted([IDLE, *NAMES])
    assert not any(one.missing for one in again.record.results)


def test_progress_names_what_runs_next_and_counts_to_the_last(path: Path) -> None:
    steps: list[Step] = []
    run(path, progress=steps.append)
    total = len(NAMES) + 1
    assert [step.name for step in steps] == [IDLE, "compiling", *NAMES]
    assert [step.done for step in steps] == [0, 1, *range(1, total)]
    assert {step.total for step in steps} == {total}


def test_progress_goes_on_where_an_earlier_run_ended(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(path, progress=interrupted_before("fp32 fma"))
    steps: list[Step] = []
    run(path, progress=steps.append)
    assert [(step.name, step.done) for step in steps] == [
        ("compiling", 4),
        ("fp32 fma", 4),
        ("DRAM read", 5),
        ("3 conflicts", 6),
    ]


# what is kept


@pytest.mark.parametrize("name", [IDLE, "compiling", *NAMES])
def test_an_interrupted_run_keeps_what_it_finished_and_another_runs_the_rest(
    path: Path, name: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(path, progress=interrupted_before(name))
    kept = names(read_record(path))
    order = [IDLE, *NAMES]
    assert kept == ([IDLE] if name == "compiling" else order[: order.index(name)])
    on = bench()
    found = run(path, on)
    assert on.compiled == [one for one in NAMES if one not in kept]
    assert names(found.record) == order
    assert read_record(path) == found.record


def test_each_result_is_in_the_file_before_the_next_benchmark_begins(path: Path) -> None:
    seen: list[int] = []
    run(path, progress=lambda step: seen.append(len(path.read_text().splitlines()) - 1))
    assert seen == [0, 1, *range(1, len(NAMES) + 1)]


def test_a_finished_record_is_not_measured_again(path: Path) -> None:
    first = run(path).record
    on = bench()
    again = run(path, on).record
    assert on.compiled == []
    assert on.scripted.log == []
    assert again.results == first.results


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


def test_a_run_of_some_benchmarks_adds_to_a_record_of_others(path: Path) -> None:
    some, others = benchmarks()[:2], benchmarks()[2:]
    run_bench(bench(), others, path, sm_count=132)
    found = run_bench(bench(), some, path, sm_count=132)
    assert sorted(names(found.record)) == sorted([IDLE, *NAMES])
    assert read_record(path) == found.record


def test_fresh_begins_a_new_record(path: Path) -> None:
    run(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0].replace(hashed("GPU-0"), "another") + "".join(lines[1:3]))
    on = bench()
    found = run(path, on, fresh=True)
    assert set(on.compiled) == set(NAMES)
    assert names(found.record) == [IDLE, *NAMES]
    assert read_record(path).subject.card == hashed("GPU-0")


def test_fresh_does_not_even_read_what_is_there(path: Path) -> None:
    path.write_text("no record at all\n" * 1000)
    found = run(path, fresh=True)
    assert read_record(path) == found.record


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


def test_machine_code_without_its_instruction_is_skipped_with_a_warning(path: Path) -> None:
    found = run(path, bench(wrong_code=frozenset({"fp32 fma"})))
    (warning,) = found.warnings
    assert (warning.code, warning.severity) == ("EATSS-B010", Severity.WARNING)
    assert "'fp32 fma' has 0 instead of 512 instructions FFMA" in warning.message
    assert names(read_record(path)) == [IDLE, *(one for one in NAMES if one != "fp32 fma")]
    again = run(path)  # with a compiler that does better
    assert again.warnings == ()
    assert set(names(again.record)) == {IDLE, *NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_that_fails_is_skipped_and_the_others_go_on(path: Path, name: str) -> None:
    found = run(path, bench(failing={name: False}))
    (warning,) = found.warnings
    assert (warning.code, warning.severity) == ("EATSS-B011", Severity.WARNING)
    assert warning.message == f"'{name}' failed: out of luck"
    assert names(found.record) == [IDLE, *(one for one in NAMES if one != name)]
    assert read_record(path) == found.record


def test_a_lost_card_ends_the_run_and_the_record_stays(path: Path) -> None:
    with pytest.raises(LaunchError) as caught:
        run(path, bench(failing={"DRAM read": True}))
    assert caught.value.lost
    assert names(read_record(path)) == [IDLE, *NAMES[:4]]
    assert names(run(path).record) == [IDLE, *NAMES]


def test_a_busy_card_is_refused_with_what_computes_on_it_unless_forced(path: Path) -> None:
    busy = CardScript(others=("python (4711)", "train (42)"))
    found = finding(path, bench(script=busy))
    assert found.code == "EATSS-B004"
    assert "python (4711), train (42)" in found.message
    assert "--force" in (found.hint or "")
    assert not path.exists()
    assert names(run(path, bench(script=busy), force=True).record) == [IDLE, *NAMES]


def test_a_card_that_does_not_tell_its_processes_is_not_busy(path: Path) -> None:
    assert run(path, bench(script=CardScript(others=None))).warnings == ()


def test_a_card_without_a_meter_is_refused(path: Path) -> None:
    found = finding(path, bench(script=CardScript(meters=())))
    assert found.code == "EATSS-B003"
    assert "tells no energy" in found.message
    assert found.hint is not None
    assert not path.exists()


def test_a_refused_run_leaves_the_record_as_it_is(path: Path) -> None:
    run(path)
    text = path.read_text()
    for script in (CardScript(meters=()), CardScript(others=("x",))):
        finding(path, bench(script=script))
        assert path.read_text() == text


# groups


def test_groups_choose_benchmarks_in_their_order() -> None:
    every = suite(Chip.of(load_profile("h200")))
    assert chosen(every, ()) == every
    found = chosen(every, ("launch", "idle"))
    assert [one.name for one in found] == ["active idle", "launch overhead"]
    groups = {one.group for one in every}
    assert sorted(one.name for group in groups for one in chosen(every, (group,))) == sorted(
        one.name for one in every
    )


@pytest.mark.parametrize("group", ["memories", "", "Idle", "idle "])
def test_an_unknown_group_is_refused_with_those_there_are(group: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen(benchmarks(), ("idle", group))
    (found,) = caught.value.diagnostics
    assert found.code == "EATSS-B006"
    assert f"'{group}'" in found.message
    assert "bank conflicts" in (found.hint or "")


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


def test_a_record_whose_only_line_was_cut_off_is_begun_anew(path: Path) -> None:
    path.write_text(lines_of_a_record()[0][:-1])
    assert names(run(path).record) == [IDLE, *NAMES]
    assert names(read_record(path)) == [IDLE, *NAMES]


def test_an_empty_file_is_where_a_record_goes(path: Path) -> None:
    path.touch()
    assert names(run(path).record) == [IDLE, *NAMES]


def test_a_record_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    for path in (tmp_path, tmp_path / "bytes", Path("/dev/zero")):
        with pytest.raises(InputError) as caught:
            read_record(path)
        (found,) = caught.value.diagnostics
        assert found.code == "EATSS-B001"
        assert str(path) in found.message


def test_a_record_is_read_as_it_was_written(path: Path) -> None:
    for run_ in ("1", "2", "3"):
        text = (RECORDED / f"characterize-{run_}.jsonl").read_text()
        record = read_record(RECORDED / f"characterize-{run_}.jsonl")
        path.write_text(write_record(record))
        assert read_record(path) == record
        assert len(path.read_text().splitlines()) == len(text.splitlines())

"""Recordings: kept, given back in order, refused when they are not what they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eatss.measurement.meters import (
    MeterError,
    ReplayMeter,
    Sample,
    Trace,
    load_traces,
    save_traces,
)

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import VirtualTime

FIRST = Trace(
    meter="NVML energy counter",
    kind="energy",
    samples=tuple(Sample(time_s=5 + k / 10, value=70.0 * k) for k in range(20)),
)
HEAT = '{"meter": "m", "kind": "heat", "samples": []}'
NO_PAIRS = '{"meter": "m", "kind": "power", "samples": [1]}'
SECOND = Trace(meter="NVML power", kind="power", samples=(Sample(time_s=1.5, value=700.25),))


def test_traces_survive_a_file(tmp_path: Path) -> None:
    save_traces(tmp_path / "traces.json", [FIRST, SECOND])
    assert load_traces(tmp_path / "traces.json") == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "holds no traces"),
        ("[]", "holds no traces"),
        ('{"schema_version": 99, "traces": []}', "version 99"),
        ('{"schema_version": 1}', "holds no traces"),
        (f'{{"schema_version": 1, "traces": [{HEAT}]}}', "unknown kind 'heat'"),
        (f'{{"schema_version": 1, "traces": [{NO_PAIRS}]}}', "holds no traces"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "traces.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MeterError, match=message):
        load_traces(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="cannot be read"):
        load_traces(tmp_path / "nowhere.json")


def test_the_form_has_a_version(tmp_path: Path) -> None:
    save_traces(tmp_path / "traces.json", [])
    assert json.loads((tmp_path / "traces.json").read_text())["schema_version"] == 1


def test_traces_come_back_in_order_and_then_end() -> None:
    meter = ReplayMeter([FIRST, SECOND])
    for expected in (FIRST, SECOND):
        assert meter.name == expected.meter
        meter.start()
        with pytest.raises(MeterError, match="recording already"):
            meter.start()
        assert meter.stop() == expected
    with pytest.raises(MeterError, match="ends after 2 traces"):
        meter.start()
    with pytest.raises(MeterError, match="was not recording"):
        meter.stop()


def test_with_a_clock_a_trace_is_told_as_if_it_happened_now(make_time: type[VirtualTime]) -> None:
    clock = make_time()
    meter = ReplayMeter([FIRST], clock=clock.now, name="replay")
    clock.sleep(23.0)
    meter.start()
    clock.sleep(1.05)
    trace = meter.stop()
    assert trace.meter == "replay"
    assert trace.samples[0].time_s == pytest.approx(123)
    assert len(trace.samples) == 11

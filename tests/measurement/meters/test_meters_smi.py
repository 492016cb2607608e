"""``nvidia-smi`` as a meter: what drivers print, and what goes wrong with programs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eatss.measurement.meters import MeterError, read
from eatss.measurement.meters.background import SubprocessMeter
from eatss.measurement.meters.meter import Sample
from eatss.measurement.meters.nvml import SmiMeter, smi_power_w, smi_time_s


@pytest.mark.parametrize(
    ("line", "power_w"),
    [
        ("92.41 W, 2026/11/21 16:20:51.123", 92.41),
        ("92.41, 2026/11/21 16:20:51.123", 92.41),
        ("700 W", 700.0),
        ("[N/A], 2026/11/21 16:20:51.123", None),
        ("N/A", None),
        ("[Not Supported], 2026/11/21 16:20:51.123", None),
        ("[Unknown Error], 2026/11/21 16:20:51.123", None),
        ("[GPU is lost], 2026/11/21 16:20:51.123", None),
        ("power.draw [W], timestamp", None),
        ("Unable to determine the device handle for GPU 0000:01:00.0", None),
        ("", None),
    ],
)
def test_only_a_number_of_watts_is_a_power(line: str, power_w: float | None) -> None:
    assert smi_power_w(line) == power_w


def test_time_stamps_are_local_time_with_or_without_milliseconds() -> None:
    whole, parts = (
        smi_time_s("1 W, 2026/11/21 16:20:51"),
        smi_time_s("1 W, 2026/11/21 16:20:51.250"),
    )
    assert whole is not None
    assert parts is not None
    assert parts - whole == pytest.approx(0.25)
    assert smi_time_s("1 W") is None
    assert smi_time_s("1 W, soon") is None


def program(folder: Path, text: str) -> str:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


STREAM = """
case "$*" in
  *power.draw.average*) echo 'Field "power.draw.average" is not a valid field to query.'; exit 2;;
  *-lms*) while :; do echo "350.00 W, $(date '+%Y/%m/%d %H:%M:%S.%3N')"; sleep 0.02; done;;
  *) echo "350.00 W, $(date '+%Y/%m/%d %H:%M:%S.%3N')";;
esac
"""


def test_an_old_driver_without_the_mean_is_asked_for_plain_power(tmp_path: Path) -> None:
    meter = SmiMeter("GPU-0", command=program(tmp_path, STREAM))
    assert meter.probe() == "power.draw"
    begin_s = time.perf_counter()
    meter.start()
    while len(meter._samples) < 3 and time.perf_counter() < begin_s + 5:
        time.sleep(0.01)
    trace = meter.stop()
    end_s = time.perf_counter()
    assert (trace.meter, trace.kind) == ("nvidia-smi", "power")
    assert len(trace.samples) >= 3
    assert all(begin_s - 0.01 <= sample.time_s <= end_s for sample in trace.samples)
    reading = read(trace, begin_s, end_s, settle_s=0.0, least_intervals=1)
    assert not isinstance(reading, str)
    assert reading.power_w == pytest.approx(350)


def test_a_card_that_tells_no_power_is_refused_in_its_own_words(tmp_path: Path) -> None:
    meter = SmiMeter(0, command=program(tmp_path, "echo '[N/A], 2026/11/21 16:20:51.123'"))
    with pytest.raises(MeterError, match=r"tells no power of card 0: \[N/A\]"):
        meter.probe()


def test_a_missing_program_is_said_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(MeterError, match="not on the path") as caught:
        SmiMeter(0, command=str(tmp_path / "nowhere")).start()
    assert "driver" in caught.value.remedy


def test_a_program_that_ends_by_itself_is_reported_with_its_last_words(tmp_path: Path) -> None:
    command = program(tmp_path, "echo 'GPU is lost' >&2; exit 15")
    meter = SubprocessMeter("nvidia-smi", [command], lambda line, t: None, "remedy")
    meter.start()
    time.sleep(0.1)
    with pytest.raises(MeterError, match="ended by itself with status 15: GPU is lost"):
        meter.stop()


def test_a_program_that_gives_no_value_is_reported(tmp_path: Path) -> None:
    command = program(tmp_path, "echo nothing; exec sleep 5")
    meter = SubprocessMeter("nvidia-smi", [command], lambda line, t: None, "remedy")
    meter.start()
    time.sleep(0.1)
    with pytest.raises(MeterError, match="gave no value: nothing"):
        meter.stop()


def test_a_recording_too_short_for_a_value_is_empty_and_no_failure(tmp_path: Path) -> None:
    meter = SubprocessMeter("tool", [program(tmp_path, "exec sleep 5")], lambda line, t: None, "")
    meter.start()
    assert meter.stop().samples == ()


def test_a_line_meter_records_once_at_a_time(tmp_path: Path) -> None:
    command = program(tmp_path, "echo 5; exec sleep 5")
    meter = SubprocessMeter(
        "tool", [command], lambda line, t: Sample(time_s=t, value=float(line)), ""
    )
    with pytest.raises(MeterError, match="was not recording"):
        meter.stop()
    meter.start()
    with pytest.raises(MeterError, match="recording already"):
        meter.start()
    time.sleep(0.1)
    assert [sample.value for sample in meter.stop().samples] == [5]

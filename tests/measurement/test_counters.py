"""Hardware counters from tables as Nsight Compute prints them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.base.codec import decode
from eatss.measurement.counters import (
    METRICS,
    OCCUPANCY,
    find_ncu,
    kernel_counters,
    ncu_command,
    with_counters,
)
from eatss.measurement.measurement import Measurement
from eatss.measurement.options import MeasureOptions
from eatss.program import save_program
from tests.measurement.scripted_card import Folders, matmul
from tests.refusals import refusing
from tests.report.measurements import measured

_LEAD = '"ID","Process ID","Process Name","Host Name","Kernel Name","Block Size","CC"'
HEAD = ",".join([_LEAD, *(f'"{name}"' for name in METRICS)])
UNITS = '"","","","","","","","byte","byte","sector","%","inst","ns"'


def line(kernel: str, *values: str) -> str:
    cells = ["0", "4242", "python3.11", "127.0.0.1", kernel, "(16, 16, 1)", "9.0", *values]
    return ",".join(f'"{cell}"' for cell in cells)


def printed(*rows: str, units: str = UNITS) -> str:
    talk = "==PROF== Connected to process 4242 (/usr/bin/python3.11)\n"
    talk += '==PROF== Profiling "matmul_k0" - 0: 0%....50%....100% - 3 passes\n'
    return talk + "\n".join([HEAD, units, *rows]) + "\n==PROF== Disconnected from process 4242\n"


GOOD = line("matmul_k0", "1,024", "512", "2,000,000", "25.5", "1,000", "3,000")


def values(text: str) -> dict[str, float]:
    (kernel,) = kernel_counters(text, ["matmul_k0"])
    return {counter.name: counter.value for counter in kernel.counters}


def test_launches_add_up_and_occupancy_is_the_mean_over_time() -> None:
    other = line("matmul_k0", "1000", "488", "0", "75.5", "500", "1000")
    (kernel,) = kernel_counters(printed(GOOD, other), ["matmul_k0"])
    found = {counter.name: counter for counter in kernel.counters}
    assert kernel.launches == 2
    assert found["dram__bytes_read.sum"].value == 2024
    assert found[OCCUPANCY].value == pytest.approx((25.5 * 3 + 75.5 * 1) / 4)
    assert found[OCCUPANCY].unit == "%"


def test_a_counter_that_the_card_does_not_have_is_no_zero() -> None:
    found = values(printed(line("matmul_k0", "n/a", "2", "nan", "4", "5", "6")))
    assert "dram__bytes_read.sum" not in found
    assert "lts__t_sectors_srcunit_tex_op_read.sum" not in found
    assert found["dram__bytes_write.sum"] == 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = Folders(tmp_path).variant("matmul").directory
    assert directory is not None
    return directory


@pytest.fixture
def result() -> Measurement:
    return measured(program="matmul", sizes=(("N", 1000),))


def ncu(tmp_path: Path, out: str, err: str = "", code: int = 0) -> str:
    """Return a program that says what ncu would."""
    script = tmp_path / "ncu"
    body = (
        f"#!{sys.executable}\nimport sys\nsys.stdout.write({out!r})\nsys.stderr.write({err!r})\n"
        f"sys.exit({code})\n"
    )
    script.write_text(body)
    script.chmod(0o755)
    return str(script)


def counted(measurement: Measurement, folder: Path, ncu: str, limit: int = 200) -> Measurement:
    return with_counters(measurement, folder, MeasureOptions(), ncu=ncu, limit=limit)


@pytest.mark.parametrize(
    ("out", "err", "code", "words"),
    [
        ("", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", 1, "run as root"),
        ("", "CompileError: line 3", 9, "exit code 9: ncu says: CompileError: line 3"),
        ("==WARNING== No kernels were profiled.\n", "", 0, "no kernel was counted"),
        (printed(), "", 0, "ncu counted 0 launches of 1"),
    ],
)
def test_trouble_is_a_reason_and_the_measurement_stays(
    out: str, err: str, code: int, words: str, folder: Path, result: Measurement, tmp_path: Path
) -> None:
    found = counted(result, folder, ncu(tmp_path, out, err, code))
    assert found.counters is None
    (gap,) = found.missing
    assert gap.what == "counters"
    assert words in gap.reason
    assert found.time_s == result.time_s


def test_only_the_first_launches_are_counted_and_it_says_so(
    result: Measurement, tmp_path: Path
) -> None:
    program = matmul()
    (entry,) = program.entries
    directory = Folders(tmp_path).variant("many").directory
    assert directory is not None
    save_program(replace(program, entries=(replace(entry, body=entry.body * 5),)), directory)
    found = counted(result, directory, ncu(tmp_path, printed(GOOD, GOOD)), limit=2)
    assert found.counters is not None
    assert found.counters[0].launches == 2
    assert found.missing[0].reason == "only the first 2 launches of the run were counted"


def test_clocks_are_left_alone_and_only_our_kernels_are_counted(folder: Path) -> None:
    options = MeasureOptions(seed=7, device=1, compiler="nvcc")
    command = ncu_command("ncu", folder, options, {"N": 10}, ["a", "b"], 50)
    text = " ".join(command)
    assert "--clock-control none" in text
    assert "--kernel-name regex:^(a|b)$" in text
    assert "--launch-count 50" in text
    assert "lts__t_sectors_srcunit_tex_op_read.sum" in text
    assert f"eatss.measurement.profiled_run {folder} " in text
    told = decode(MeasureOptions, json.loads(command[-1]))
    assert told == MeasureOptions(seed=7, device=1, compiler="nvcc", sizes={"N": 10})


def test_without_ncu_the_user_is_told_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr("eatss.measurement.counters._USUAL", os.devnull)
    with refusing("EATSS-E050") as caught:
        find_ncu()
    assert "measure without --counters" in str(caught.value.diagnostics[0].hint)

"""Commands and calls in processes of their own: what they say, how they end, what they leave."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import eatss
from eatss.base import forked
from eatss.cli import main
from tests.end_to_end.in_process import eatss as in_process
from tests.refusals import refusing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
SELECT = ("select", str(KERNELS / "gemm.c"), "--gpu", "a100", "--format", "ppcg-args")


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    monkeypatch.setattr(sys, "argv", ["eatss", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_a_command_says_what_it_says_in_one_process(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, *SELECT) == 0
    said = capfd.readouterr()
    alone = in_process(*SELECT)
    assert (said.out, said.err) == (alone.stdout, alone.stderr)
    assert "--sizes" in said.out


def test_a_mistake_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "select", "nothing.c", "--gpu", "a100") == 2
    assert "EATSS-F001" in capfd.readouterr().err


def test_a_command_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(forked, "READING_S", 0.01)
    assert ended(monkeypatch, *SELECT) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert "EATSS-P001" in said.err


def test_what_ends_the_process_of_libclang_is_refused(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = tmp_path / "deep.c"
    value = "+".join("s" for _ in range(200_000))
    source.write_text(
        f"void f(double *A, double s) {{\n#pragma scop\nA[0] = {value};\n#pragma endscop\n}}\n"
    )
    assert ended(monkeypatch, "select", str(source), "--gpu", "a100") == 2
    assert "EATSS-P001" in capfd.readouterr().err
    with refusing("EATSS-P001"):
        eatss.inspect(source)


def test_what_takes_isl_forever_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "loops.c"
    loops = "".join(f"for (int i{k} = 0; i{k} < 2; i{k}++)\n" for k in range(40))
    source.write_text(
        f"void f(double *A) {{\n#pragma scop\n{loops}A[0] += 1;\n#pragma endscop\n}}\n"
    )
    with refusing("EATSS-P001"):
        eatss.inspect(source)


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("number", [signal.SIGINT])
def test_a_command_that_is_ended_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    words = ("codegen", str(KERNELS / "fdtd-apml.c"), "--gpu", "a100", "-o", str(tmp_path / "out"))
    command = subprocess.Popen([sys.executable, "-m", "eatss", *words])
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    deadline = time.monotonic() + 20
    while not (found := children.read_text().split()) and time.monotonic() < deadline:
        time.sleep(0.01)
    (child,) = map(int, found)
    command.send_signal(number)
    assert command.wait(20) == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_selects_again_and_again_does_not_grow() -> None:
    def resident_kib() -> int:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") // 1024

    eatss.select(KERNELS / "mvt.c", gpu="a100", gap=0.9)
    before = resident_kib()
    for _ in range(4):
        eatss.select(KERNELS / "mvt.c", gpu="a100", gap=0.9)
    assert resident_kib() - before < 1500  # once it was half a MiB for each

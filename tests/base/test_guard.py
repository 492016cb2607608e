"""Children end with their parents, however those end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.base.streams import ended_as_interrupted
from eatss.base.supervisor import run_bounded

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's word"),
    pytest.mark.usefixtures("heeded_signals"),
]

ROOT = Path(__file__).resolve().parents[2]
STARTED_S = 10.0


def written(file: Path) -> list[int]:
    """Return the numbers in a file once a whole line is there."""
    return [int(word) for word in text.split()] if (text := _text(file)).endswith("\n") else []


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def soon(condition: Callable[[], object]) -> bool:
    deadline_s = time.monotonic() + STARTED_S
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return bool(condition())


def gone(pid: int) -> bool:
    """Return whether a process has ended; one that nobody has waited for has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def parent(file: Path) -> list[str]:
    """Return a process that starts a shell that sleeps and waits for it."""
    program = (
        "import sys; from eatss.base.supervisor import run_bounded; "
        "run_bounded(['sh', '-c', sys.argv[1]], '.', 60)"
    )
    return [sys.executable, "-c", program, f"echo $$ > {file}; exec sleep 60"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_parent_started_ends_with_it(tmp_path: Path, how: signal.Signals) -> None:
    file = tmp_path / "pids"
    with subprocess.Popen(parent(file)) as process:
        assert soon(lambda: written(file))
        process.send_signal(how)
    assert soon(lambda: all(gone(pid) for pid in written(file)))


@pytest.mark.parametrize(
    ("words", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", -signal.SIGSEGV), ("kill -9 $$", -9)],
)
def test_a_command_ends_as_it_would_alone(words: str, code: int) -> None:
    assert run_bounded(["sh", "-c", words], ".", 10)[0] == code


def test_a_command_that_takes_too_long_ends_with_what_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    with pytest.raises(subprocess.TimeoutExpired):
        run_bounded(["sh", "-c", f"sleep 60 & echo $$ $! > {file}; wait"], ".", 0.5)
    assert soon(lambda: all(gone(pid) for pid in written(file)))


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_end_is_an_interrupt(asked: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), ended_as_interrupted():
        os.kill(os.getpid(), asked)
    assert signal.getsignal(asked) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_as_interrupted():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

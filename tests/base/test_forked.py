"""Work in a process of its own: its result comes back, and however it ends, this one goes on."""

from __future__ import annotations

import gc
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eatss.base import forked as module
from eatss.base.diagnostics import Diagnostic, NoSolutionError
from eatss.base.forked import (
    ForkEndedError,
    Limits,
    allow,
    anew,
    bounded,
    in_bounds,
    run_forked,
)
from tests.refusals import refusing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")

AMPLE = Limits(seconds=5.0)


def spin() -> None:
    while True:
        pass


TIME, MEMORY, CRASH = "more processor time", "MiB of memory", "its process ended"


def ends(work: Callable[[], object], limits: Limits, why: str) -> None:
    with pytest.raises(ForkEndedError, match=why):
        run_forked(work, limits)


def children() -> set[str]:
    """Return the processes that this one has started and not waited for, dead ones too."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for one in lists for pid in one.read_text().split()}


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    before = sorted(Path("/proc/self/fd").iterdir()), children()
    yield
    assert (sorted(Path("/proc/self/fd").iterdir()), children()) == before


def test_a_result_comes_back_and_nothing_else_changes() -> None:
    seen: list[int] = []

    def work() -> tuple[int, bytes]:
        seen.append(1)
        return os.getpid(), b"x" * 5_000_000

    process, data = run_forked(work, AMPLE)
    assert process != os.getpid()
    assert len(data) == 5_000_000
    assert seen == []


def test_findings_come_back_whole() -> None:
    first, second = (Diagnostic(code=f"EATSS-F00{k}", message="no", hint="yes") for k in (1, 2))

    def refuse() -> None:
        raise NoSolutionError(first, second)

    with pytest.raises(NoSolutionError) as caught:
        run_forked(refuse, AMPLE)
    assert caught.value.diagnostics == (first, second)


def test_an_error_says_where_it_came_from() -> None:
    def fail() -> None:
        raise KeyError("it")

    with pytest.raises(KeyError, match="it") as caught:
        run_forked(fail, AMPLE)
    assert "in fail" in caught.value.__notes__[0]


def test_endless_work_is_ended() -> None:
    began = time.monotonic()
    ends(spin, Limits(seconds=0.2), TIME)
    assert time.monotonic() - began < 5


def test_too_much_memory_is_refused() -> None:
    limits = Limits(seconds=5, memory_bytes=64 << 20)
    ends(lambda: bytearray(1 << 30), limits, MEMORY)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_process_that_dies_is_an_error_here(number: signal.Signals) -> None:
    ends(lambda: os.kill(os.getpid(), number), AMPLE, CRASH)


def test_a_result_that_cannot_travel_is_an_error() -> None:
    ends(threading.Lock, AMPLE, CRASH)


def test_a_first_call_in_many_threads_ends() -> None:
    """Seen: a process forked while a thread loaded modules waited for them for ever."""
    text = (
        "import threading, eatss\n"
        "done = []\n"
        "def call():\n"
        "    done.append(eatss.select('kernels/atax.c', gpu='a100'))\n"
        "threads = [threading.Thread(target=call) for _ in range(4)]\n"
        "[t.start() for t in threads]\n"
        "[t.join() for t in threads]\n"
        "print(len(done))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=Path(__file__).parents[2],
        timeout=120,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"4\n"


def test_the_end_of_a_process_is_not_awaited_through_its_own_children() -> None:
    def nested() -> None:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        run_forked(lambda: time.sleep(5), AMPLE)

    began = time.monotonic()
    ends(nested, AMPLE, CRASH)
    assert time.monotonic() - began < 4


def test_without_room_for_another_process_it_runs_in_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no room")

    monkeypatch.setattr(os, "fork", refuse)
    assert run_forked(os.getpid, AMPLE) == os.getpid()


def test_ctrl_c_here_ends_it_there(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def work() -> None:
        note.write_text(str(os.getpid()))
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it has to be killed
        spin()

    def interrupt() -> None:
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            run_forked(work, AMPLE)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, usual)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_work_that_goes_on_is_allowed_more() -> None:
    def work() -> str:
        allow(5)
        end = time.process_time() + 0.4
        while time.process_time() < end:
            pass
        return "done"

    assert run_forked(work, Limits(seconds=0.2)) == "done"


def busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_another_try_has_the_same_time_again() -> None:
    def tries(begins: Callable[[], None]) -> None:
        for _ in range(3):
            begins()
            allow(0.5)
            run_forked(lambda: busy(0.3), AMPLE)

    run_forked(lambda: tries(anew), Limits(seconds=0.5))
    ends(lambda: tries(lambda: None), Limits(seconds=0.5), TIME)


def test_a_try_has_no_more_than_others() -> None:
    def work() -> None:
        anew()
        busy(1.0)

    ends(work, Limits(seconds=0.5), TIME)


def test_what_it_forks_counts_for_it() -> None:
    def work() -> None:
        for _ in range(5):
            run_forked(lambda: busy(0.2), AMPLE)

    ends(work, Limits(seconds=0.5), TIME)
    run_forked(work, Limits(seconds=2.0))


def test_what_is_bounded_runs_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    process = bounded(lambda: (os.getpid(), bounded(os.getpid)))
    assert process[0] == process[1] != os.getpid()
    monkeypatch.setattr(module, "READING_S", 0.2)
    with refusing("EATSS-P001") as caught:
        in_bounds(spin)()
    assert "more processor time" in str(caught.value)


class Finalised:
    """Garbage that says which process got rid of it."""

    def __init__(self, said: Path) -> None:
        self.said = said
        self.itself = self

    def __del__(self) -> None:
        with self.said.open("a") as file:
            file.write(f"{os.getpid()}\n")


def test_garbage_of_this_process_is_not_finalised_in_another(tmp_path: Path) -> None:
    gc.disable()
    try:
        Finalised(tmp_path / "said")
        assert run_forked(gc.collect, AMPLE) >= 0
        assert not (tmp_path / "said").exists()
    finally:
        gc.enable()
    gc.collect()
    assert (tmp_path / "said").read_text() == f"{os.getpid()}\n"


def test_addresses_that_are_reserved_are_no_memory() -> None:
    """CUDA reserves more than a bounded process may use."""

    def reserving() -> str:
        with mmap.mmap(-1, 2 << 30, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
            return "reserved"

    assert bounded(reserving) == "reserved"

"""How long machine code, memory and graphs of calls last, and who shares them."""

from __future__ import annotations

import gc
import threading

import eatss
from tests.session.jit.fake_cupy import FakeCupy
from tests.session.jit.sources import STEPS, random


def test_a_callable_that_goes_waits_for_its_calls(cupy: FakeCupy) -> None:
    eatss.jit(STEPS, gpu="h200")(A=cupy.array(random(20)), COUNT=2, stream=0x11)
    gc.collect()
    assert ("all done", 0) in cupy.log


def test_threads_do_not_share_the_memory_of_their_own_default_streams(cupy: FakeCupy) -> None:
    steps = eatss.jit(STEPS, gpu="h200")
    given = cupy.array(random(20))
    steps.prepare(A=given, COUNT=2)
    before = len(cupy.allocated)
    barrier = threading.Barrier(2)

    def call() -> None:
        barrier.wait()
        steps(A=given, COUNT=2, stream=2)
        barrier.wait()

    threads = [threading.Thread(target=call) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(cupy.allocated) == before + 2


def test_info_is_told_while_graphs_come_and_go(cupy: FakeCupy) -> None:
    steps = eatss.jit(STEPS, gpu="h200")
    given = [cupy.array(random(20)) for _ in range(12)]
    failed: list[BaseException] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            try:
                steps.info()
            except RuntimeError as error:
                failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(300):
        steps(A=given[number % 12], COUNT=6)
    ended.set()
    asking.join()
    assert not failed

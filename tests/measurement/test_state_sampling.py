from __future__ import annotations

import threading
import time

from eatss.measurement.cupy_card import other_processes
from eatss.measurement.measurement import CardState
from eatss.measurement.meters.background import sampled_states
from eatss.measurement.meters.nvml import GpuProcess


def test_a_card_is_looked_at_while_a_block_runs_and_no_longer() -> None:
    looks = []

    def state() -> CardState:
        looks.append(threading.current_thread())
        return CardState(sm_clock_mhz=1000 + len(looks))

    with sampled_states(state, 0.01) as seen:
        assert not seen
        time.sleep(0.1)
    assert 2 <= len(seen) <= len(looks)
    assert threading.current_thread() not in looks
    assert not any(thread.is_alive() for thread in looks)
    assert seen[0].sm_clock_mhz == 1001


def test_in_a_container_one_unknown_process_is_this_one() -> None:
    first, second = (GpuProcess(pid=pid, memory_bytes=None) for pid in (70, 71))
    assert other_processes([first], 5) == ()
    assert other_processes([first, second], 5) == (
        "all but one, which is this measurement, of process 70, process 71",
    )

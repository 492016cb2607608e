from __future__ import annotations

import threading
import time

from eatss.measurement.cupy_card import other_processes
from eatss.measurement.measurement import CardState, LoadState
from eatss.measurement.metering import load_state, sampled_states
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


def test_what_was_seen_is_told_as_one() -> None:
    seen = [
        CardState(sm_clock_mhz=1980, memory_clock_mhz=3201, temperature_c=50, throttle=()),
        CardState(sm_clock_mhz=1545, temperature_c=61, throttle=("software power cap",)),
        CardState(sm_clock_mhz=1560, throttle=("software power cap", "sync boost")),
        CardState(),
    ]
    assert load_state(seen) == LoadState(
        samples=4,
        sm_clock_lowest_mhz=1545,
        sm_clock_mean_mhz=1695.0,
        sm_clock_highest_mhz=1980,
        memory_clock_mhz=3201,
        temperature_c=61,
        throttle=("software power cap", "sync boost"),
    )
    assert load_state([]) == LoadState()
    assert load_state([CardState()]).throttle is None


def test_this_process_is_not_another_one() -> None:
    own, other = (GpuProcess(pid=pid, memory_bytes=300 << 20) for pid in (5, 7))
    assert other_processes([own], 5) == ()
    assert other_processes([own, other], 5) == ("process 7 (300 MiB)",)


def test_in_a_container_one_unknown_process_is_this_one() -> None:
    first, second = (GpuProcess(pid=pid, memory_bytes=None) for pid in (70, 71))
    assert other_processes([first], 5) == ()
    assert other_processes([first, second], 5) == (
        "all but one, which is this measurement, of process 70, process 71",
    )

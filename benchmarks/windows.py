"""Seconds and joules of a run, from windows in which the card never waits."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any


def window(torch: Any, run: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Return seconds and joules of a run, from a window in which the card never waits.

    Runs are queued ahead of it. Their time is that between events on the card, their power that
    between two moves of its energy counter.
    """
    queue = _Queue(torch, run)
    queue.keep_busy(LEAD_S)
    begin_s, begin_j = queue.next_value()
    first = queue.done
    while time.perf_counter() < begin_s + seconds or queue.done is first:
        queue.turn()
    end_s, end_j = queue.next_value()
    time_s = queue.seconds_since(first)
    torch.cuda.synchronize()
    return time_s, time_s * (end_j - begin_j) / (end_s - begin_s)


LEAD_S = 0.2
"""Seconds in front of a window. At the limit of its power a card swings: an H100 ran one product of
matrices in 2.8 to 3.2 ms, up and down in 1.1 s. So windows are to be about as long as that."""


class _Queue:
    """Runs in bursts with an event after each, several of them ahead of the card.

    Attributes:
        done: The last event that the card has passed, and the runs before it.
    """

    AHEAD = 8
    BURST_S = 0.002

    def __init__(self, torch: Any, run: Callable[[], object]) -> None:
        self._torch, self._run = torch, run
        run()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        self._burst = max(1, int(self.BURST_S / (time.perf_counter() - begin)))
        self._queued: deque[tuple[Any, int]] = deque()
        self._runs = 0
        self.done = (self._event(), 0)

    def _event(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def turn(self) -> None:
        """Queue bursts until enough are ahead; note what is done."""
        while len(self._queued) < self.AHEAD:
            for _ in range(self._burst):
                self._run()
            self._runs += self._burst
            self._queued.append((self._event(), self._runs))
        while self._queued and self._queued[0][0].query():
            self.done = self._queued.popleft()
        time.sleep(0.0002)

    def keep_busy(self, seconds: float) -> None:
        """Run for some seconds."""
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            self.turn()

    def next_value(self) -> tuple[float, float]:
        """Run until the energy counter moves; return when it did, and its joules."""
        before = now = energy_j()
        while now == before:
            self.turn()
            now = energy_j()
        return time.perf_counter(), now

    def seconds_since(self, first: tuple[Any, int]) -> float:
        """Return seconds of a run between an event and the last one that is done."""
        (begin, before), (end, runs) = first, self.done
        return float(begin.elapsed_time(end)) / 1e3 / (runs - before)


def energy_j() -> float:
    """Return the joules of the card that the process sees first, since its driver was loaded."""
    import pynvml  # noqa: PLC0415 - as above

    if not hasattr(energy_j, "card"):
        pynvml.nvmlInit()
        first, *_ = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
        energy_j.card = pynvml.nvmlDeviceGetHandleByIndex(int(first))  # type: ignore[attr-defined]
    millijoules = pynvml.nvmlDeviceGetTotalEnergyConsumption(energy_j.card)  # type: ignore[attr-defined]
    return float(millijoules) / 1e3

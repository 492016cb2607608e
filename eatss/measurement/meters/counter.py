"""The meter that results rest on: NVML's counter of energy, cut at its own updates.

On an H200 the counter moves every 100 ms and a call takes about 4 ms, so it is asked nothing until
shortly before the next update is due, and then without pause until it moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from eatss.measurement.meters.background import BackgroundMeter, Ticker
from eatss.measurement.meters.meter import Sample

COUNTER_NAME = "NVML energy counter"

POLL_S = 0.001
"""Pause between two calls while an update is due."""

EARLY = 0.2
LEAST_EARLY_S = 0.008
"""How long before the expected update polling begins: a share of the period, and at least this."""

SHARP_S = 0.02
"""An update is recorded if the call before it was no longer ago than this; else nobody knows when
it happened (the thread was not scheduled, or slept too long), and it is left out."""

_REMEMBERED = 8


class CounterMeter(BackgroundMeter):
    """A counter of energy, NVML's for one; the trace holds the moments at which it moved."""

    def __init__(self, read_j: Callable[[], float], *, name: str = COUNTER_NAME) -> None:
        super().__init__(
            name, "energy", lambda ticker, record: follow_counter(read_j, ticker, record)
        )


def follow_counter(
    read_j: Callable[[], float], ticker: Ticker, record: Callable[[Sample], None]
) -> None:
    """Record the first reading after each update, stamped in the middle of the call.

    The update lies between that moment and the middle of the call before, at most
    ``max(SHARP_S, 2 calls)`` earlier.
    """
    periods: deque[float] = deque(maxlen=_REMEMBERED)
    last_j: float | None = None
    last_call_s = ticker.now()
    sharp_s: float | None = None
    rested = False
    while not ticker.ended():
        asked_s = ticker.now()
        value_j = read_j()
        answered_s = ticker.now()
        now_s = (asked_s + answered_s) / 2
        if last_j is None or value_j == last_j:
            last_j, last_call_s, rested = value_j, now_s, False
            ticker.sleep(POLL_S)
            continue
        if now_s - last_call_s <= max(SHARP_S, 2 * (answered_s - asked_s)):
            record(Sample(time_s=now_s, value=value_j))
            if sharp_s is not None:
                periods.append(now_s - sharp_s)
            sharp_s = now_s
        else:
            sharp_s = None
            if rested and periods:
                # Overslept: the updates come faster than they did.
                periods.append(min(periods) / 2)
        last_j, last_call_s = value_j, now_s
        rest_s = _rest_s(periods) - (ticker.now() - now_s)
        rested = rest_s > 0
        ticker.sleep(rest_s if rested else POLL_S)


def _rest_s(periods: deque[float]) -> float:
    """Return how long after an update nothing needs to be asked."""
    if len(periods) < 3:
        return 0.0
    period_s = min(periods)
    return period_s - max(LEAST_EARLY_S, EARLY * period_s)

"""Power samples from a thread, to be integrated: a second opinion, or all that a card offers."""

from __future__ import annotations

from collections.abc import Callable

from eatss.measurement.meters.background import BackgroundMeter, Ticker
from eatss.measurement.meters.meter import Sample

POWER_NAME = "NVML power"

POLL_S = 0.005
"""Time between two questions: a call takes microseconds, a new value comes every 20 to 100 ms."""

CONFIRM_S = 0.2
"""A value that stays is recorded again after this time: the sensor answered, power was equal."""


class PowerMeter(BackgroundMeter):
    """A sensor of power, NVML's for one; the trace holds the first reading of each new value."""

    def __init__(
        self, read_w: Callable[[], float], *, name: str = POWER_NAME, poll_s: float = POLL_S
    ) -> None:
        super().__init__(
            name,
            "power",
            lambda ticker, record: follow_power(read_w, ticker, record, poll_s=poll_s),
        )


def follow_power(
    read_w: Callable[[], float],
    ticker: Ticker,
    record: Callable[[Sample], None],
    *,
    poll_s: float = POLL_S,
) -> None:
    """Record each new value when it is first seen, and one that stays every ``CONFIRM_S``."""
    last: Sample | None = None
    while not ticker.ended():
        value_w = read_w()
        now_s = ticker.now()
        if last is None or value_w != last.value or now_s - last.time_s >= CONFIRM_S:
            last = Sample(time_s=now_s, value=value_w)
            record(last)
        ticker.sleep(poll_s)

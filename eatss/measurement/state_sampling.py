"""Looks at a card while a load runs on it: clocks, temperature, what holds the clocks back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from eatss.measurement.measurement import CardState, LoadState


@contextmanager
def sampled_states(
    state: Callable[[], CardState], period_s: float
) -> Iterator[Sequence[CardState]]:
    """Call ``state`` every ``period_s`` in a thread while the block runs.

    Yields:
        What it returned, complete after the block. A look that ends after the block is left out,
        since it may be of a card at rest.
    """
    seen: list[CardState] = []
    failed: list[Exception] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(period_s):
            try:
                found = state()
            except Exception as error:  # raised where the block ends
                failed.append(error)
                return
            if not over.is_set():
                seen.append(found)

    thread = threading.Thread(target=watch, name="card state", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def load_state(seen: Sequence[CardState]) -> LoadState:
    """Return what was seen of a load as one."""
    clocks = [state.sm_clock_mhz for state in seen if state.sm_clock_mhz is not None]
    memory = [state.memory_clock_mhz for state in seen if state.memory_clock_mhz is not None]
    warmth = [state.temperature_c for state in seen if state.temperature_c is not None]
    reasons = [state.throttle for state in seen if state.throttle is not None]
    return LoadState(
        samples=len(seen),
        sm_clock_lowest_mhz=min(clocks, default=None),
        sm_clock_mean_mhz=float(np.mean(clocks)) if clocks else None,
        sm_clock_highest_mhz=max(clocks, default=None),
        memory_clock_mhz=min(memory, default=None),
        temperature_c=max(warmth, default=None),
        throttle=tuple(dict.fromkeys(sum(reasons, ()))) if reasons else None,
    )

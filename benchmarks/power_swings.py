"""How long a run takes from one twentieth of a second to the next, ours and the library's in turn.

    python benchmarks/library.py prepare DIR --only symm --dtypes double       # where eatss is
    python benchmarks/power_swings.py DIR/symm-double/selected                 # where the card is

At the limit of its power a card changes its clocks up and down. A window has to be about as long as
such a swing, or what it measures depends on when it began. Each row is a phase of 1.5 s behind the
one above, each number the mean time of runs in 50 ms, in ms.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.library import fresh_arrays, our_call
from benchmarks.library_unseen import every_workload

PHASE_S = 1.5
BIN_MS = 50.0
AHEAD = 6
"""Runs that are queued, so that the card never waits."""


def phase(torch: Any, run: Callable[[], object], seconds: float) -> list[Any]:
    """Run for some seconds; return an event in front of each run, and one behind the last."""
    events = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        events.append(_event(torch))
        run()
        if len(events) > AHEAD:
            events[-AHEAD].synchronize()
    return [*events, _event(torch)]


def _event(torch: Any) -> Any:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def means(times_ms: list[float], length_ms: float) -> list[float]:
    """Return the mean of the times that fall into each stretch of so many milliseconds."""
    found: list[list[float]] = []
    passed = 0.0
    for one in times_ms:
        at = int(passed / length_ms)
        found += [[] for _ in range(at + 1 - len(found))]
        found[at].append(one)
        passed += one
    return [sum(own) / len(own) for own in found if own]


def main(place: Path) -> None:
    """Run ours and the library's by turns, and print the rows."""
    import torch  # noqa: PLC0415 - only where the card is

    name, _, dtype = place.parent.name.rpartition("-")
    of = every_workload()[name]
    arrays = fresh_arrays(torch, of, dtype)
    theirs = {key: array.clone() for key, array in arrays.items()}
    call = our_call(place, of)
    runs = {
        "ours": lambda: call(arrays),
        "library": lambda: of.call(torch, **theirs, **of.scalars),
    }
    phase(torch, runs["library"], 2.0)
    phases = [(key, phase(torch, run, PHASE_S)) for _ in range(2) for key, run in runs.items()]
    torch.cuda.synchronize()
    for key, events in phases:
        times = [one.elapsed_time(other) for one, other in pairwise(events)]
        print(key.ljust(8), " ".join(f"{one:.2f}" for one in means(times, BIN_MS)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

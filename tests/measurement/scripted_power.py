"""Power over virtual time, and meters that tell of it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Literal

import numpy as np

from eatss.measurement.meters.meter import Sample, Trace

if TYPE_CHECKING:
    from tests.measurement.scripted_card import ScriptedCard


class Timeline:
    """Power over virtual time: stretches of constant power."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self._begins = [self.now_s]
        self._powers = [0.0]
        self._energies = [0.0]

    def spend(self, seconds: float, power_w: float) -> None:
        if seconds <= 0:
            return
        if power_w != self._powers[-1]:
            self._energies.append(self.energy_j(self.now_s))
            self._begins.append(self.now_s)
            self._powers.append(power_w)
        self.now_s += seconds

    def energy_j(self, at_s: float) -> float:
        n = bisect_right(self._begins, at_s) - 1
        return self._energies[n] + self._powers[n] * (at_s - self._begins[n])


class ScriptedMeter:
    """A counter that moves every ``period_s``, or the mean power of the last second."""

    def __init__(self, kind: str, card: ScriptedCard) -> None:
        self._kind = kind
        self._card = card
        self._begin_s = 0.0

    @property
    def name(self) -> str:
        return f"scripted {self._kind}"

    def start(self) -> None:
        self._begin_s = self._card.now()

    def stop(self) -> Trace:
        period_s, timeline = self._card.script.period_s, self._card.timeline
        first = int(np.ceil(self._begin_s / period_s))
        times = np.arange(first, int(self._card.now() / period_s) + 1) * period_s
        if self._kind == "counter":
            values = [timeline.energy_j(t) for t in times]
        else:
            values = [timeline.energy_j(t) - timeline.energy_j(t - 1) for t in times]
        samples = tuple(
            Sample(time_s=float(t), value=float(v)) for t, v in zip(times, values, strict=True)
        )
        kind: Literal["energy", "power"] = "energy" if self._kind == "counter" else "power"
        return Trace(meter=self.name, kind=kind, samples=samples)

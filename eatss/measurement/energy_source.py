"""Cards while their energy is recorded, and the result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from eatss.base.diagnostics import EatssError
from eatss.base.text import class_and_line, one_line
from eatss.measurement.energy_measurement import (
    CardEnergy,
    EnergyMeasurement,
    WindowEnergy,
    WindowRun,
)
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import (
    Course,
    IntervalEnergy,
    Span,
    energy_of_spans,
    joined,
    resolved,
)
from eatss.measurement.meters.meter import Meter, MeterError, power_samples
from eatss.measurement.meters.nvml import NvmlDevice, card_state

OVERSHOOT = 2.0
"""A card is taken never to draw more than so many times its power limit, however briefly."""


@dataclass(slots=True)
class Source:
    """What records one card; its meters in the order in which results rest on them.

    Attributes:
        name: ``card 0``.
        meters: Those that record it.
        card: The card, open in NVML.
        info: Which card it is.
        missing: What is not known of it, and why.
    """

    name: str
    meters: Sequence[Meter] = ()
    card: NvmlDevice | None = None
    info: DeviceInfo | None = None
    missing: list[Missing] = field(default_factory=list)
    _before: CardState | None = None
    _after: CardState | None = None
    _recording: list[Meter] = field(default_factory=list)
    _courses: list[Course] = field(default_factory=list)

    def start(self) -> None:
        """Begin to record."""
        if self.card is not None:
            self._before = card_state(self.card)
        for meter in self.meters:
            with guarded(f"energy by {meter.name}", self.missing):
                meter.start()
                self._recording.append(meter)

    @property
    def recording(self) -> bool:
        """Whether a meter records."""
        return bool(self._recording)

    def close(self) -> None:
        """Stop what records, and give the card back; nothing happens the second time."""
        recording, self._recording = self._recording, []
        limit_w = self.info and self.info.power_limit_w
        ceiling_w = OVERSHOOT * limit_w if limit_w else math.inf
        for meter in recording:
            with guarded(f"energy by {meter.name}", self.missing):
                self._courses.append(Course.of(meter.stop(), ceiling_w=ceiling_w))
        card, self.card = self.card, None
        if card is not None:
            self._after = card_state(card)
            with guarded("device", self.missing):
                card.close()

    def energies(self, spans: Sequence[Span]) -> tuple[list[IntervalEnergy], list[Missing]]:
        """Return what each meter tells of some spans, and why others tell nothing."""
        time_s = sum(end_s - begin_s for begin_s, end_s in spans)
        told: list[IntervalEnergy] = []
        missing: list[Missing] = []
        for course in self._courses:
            energy = resolved(energy_of_spans(course, spans), time_s, course.period_s)
            if isinstance(energy, str):
                missing.append(Missing(what=f"energy by {course.trace.meter}", reason=energy))
            else:
                told.append(energy)
        if not told and not any(one.what.startswith("energy") for one in self.missing + missing):
            missing.append(Missing(what="energy", reason="no meter was given"))
        return told, missing

    def result(self, begin_s: float, end_s: float) -> CardEnergy:
        """Return what was drawn between two moments, after :meth:`close`."""
        told, missing = self.energies(((begin_s, end_s),))
        trace = power_samples([one.trace for one in self._courses], begin_s, end_s)
        idle = [one.power_w for one in trace if one.time_s < 0]
        found = CardEnergy(
            name=self.name,
            peak_power_w=max((one.power_w for one in trace if one.time_s >= 0), default=None),
            idle_power_w=sum(idle) / len(idle) if idle else None,
            device=self.info,
            before=self._before,
            after=self._after,
            missing=(*self.missing, *missing),
            trace=trace,
        )
        if not told:
            return found
        best, *checks = told
        return replace(
            found,
            energy_j=best.energy_j,
            uncertainty_j=best.uncertainty_j,
            power_w=best.energy_j / (end_s - begin_s),
            meter=best.meter,
            updates=best.updates,
            checks=tuple(checks),
        )


@contextmanager
def guarded(what: str, missing: list[Missing]) -> Iterator[None]:
    """Make a reason of what a sensor raises: the block that it records goes on.

    Meters come from packages as well, and theirs may raise anything.

    Args:
        what: is missing then.
        missing: gets the reason.
    """
    try:
        yield
    except MeterError as error:
        missing.append(Missing(what=what, reason=error.whole))
    except EatssError as error:
        missing.append(Missing(what=what, reason=one_line(error, 400)))
    except Exception as error:  # of the meter's own making
        missing.append(Missing(what=what, reason=f"it failed: {class_and_line(error, 400)}"))


@dataclass(slots=True, kw_only=True)
class OpenedWindow:
    """A window while it is open; ``end_s`` is ``None`` until it ends."""

    name: str
    begin_s: float
    end_s: float | None = None

    @property
    def span(self) -> Span:
        """Begin and end."""
        return self.begin_s, self.begin_s if self.end_s is None else self.end_s


def energy_result(
    sources: Sequence[Source], windows: Sequence[OpenedWindow], begin_s: float, end_s: float
) -> EnergyMeasurement:
    """Return what cards drew in a block, after they have been closed.

    Args:
        sources: all that were recorded.
        windows: of the block, in the order in which they began.
        begin_s: when the block began, by the clock of the traces.
        end_s: when it ended.
    """
    cards = tuple(source.result(begin_s, end_s) for source in sources)
    energy_j, uncertainty_j = _sums([(one.energy_j, one.uncertainty_j) for one in cards])
    named: dict[str, list[Span]] = {}
    for window in windows:
        named.setdefault(window.name, []).append(window.span)
    return EnergyMeasurement(
        time_s=end_s - begin_s,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        power_w=None if energy_j is None else energy_j / (end_s - begin_s),
        cards=cards,
        windows=tuple(_window(name, spans, sources, begin_s) for name, spans in named.items()),
        missing=tuple(one for card in cards for one in _placed(card.name, card.missing, cards)),
    )


def _placed(card: str, missing: Sequence[Missing], every: Sequence[object]) -> Iterator[Missing]:
    """Yield what is missing of a card, which is named where there are several."""
    several = len(every) > 1
    return (replace(one, reason=f"{card}: {one.reason}") if several else one for one in missing)


def _window(
    name: str, spans: Sequence[Span], sources: Sequence[Source], begin_s: float
) -> WindowEnergy:
    whole = joined(spans)
    time_s = sum(end_s - start_s for start_s, end_s in whole)
    drawn: list[tuple[float | None, float | None]] = []
    missing: list[Missing] = []
    for source in sources:
        told, why = source.energies(whole)
        drawn.append((told[0].energy_j, told[0].uncertainty_j) if told else (None, None))
        if not told:
            missing += _placed(source.name, why or source.missing, sources)
    if not sources:
        missing.append(Missing(what="energy", reason="no card records it"))
    energy_j, uncertainty_j = _sums(drawn)
    return WindowEnergy(
        name=name,
        count=len(spans),
        time_s=time_s,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        power_w=energy_j / time_s if energy_j is not None else None,
        runs=tuple(
            WindowRun(begin_s=first - begin_s, time_s=last - first) for first, last in spans
        ),
        missing=tuple(missing),
    )


def _sums(drawn: Sequence[tuple[float | None, float | None]]) -> tuple[float | None, float | None]:
    """Return the energy of all cards, and how far it may be off; ``None`` if one is not known."""
    known = [(one, off) for one, off in drawn if one is not None and off is not None]
    if not known or len(known) < len(drawn):
        return None, None
    return sum(one for one, _ in known), sum(off for _, off in known)

"""One source of energy while it is recorded: a card, a CPU package, a user's meter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eatss.measurement.energy_measurement import SourceEnergy, SourceKind
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import (
    Course,
    IntervalEnergy,
    Span,
    energy_of_spans,
    resolved,
)
from eatss.measurement.meters.meter import Meter, MeterError, Trace
from eatss.measurement.meters.nvml import NvmlDevice, card_state
from eatss.measurement.meters.rapl import (
    RAPL_NAME,
    Package,
    RaplMeter,
    RaplPackage,
    package_title,
    rapl_packages,
)
from eatss.measurement.power_trace import power_samples

OVERSHOOT = 2.0
"""A card is taken never to draw more than so many times its power limit, however briefly."""


@dataclass(slots=True)
class Source:
    """What records one source; its meters in the order in which results rest on them.

    Attributes:
        name: ``card 0``, ``CPU package 0``, or the name of a user's meter.
        kind: Which of these it is.
        meters: Those that record it.
        card: The card, open in NVML, ``None`` for other sources.
        info: Which card it is.
        tracer: Records power for its trace alone; without it, that of ``meters`` is taken.
        missing: What is not known of it, and why.
    """

    name: str
    kind: SourceKind
    meters: Sequence[Meter] = ()
    card: NvmlDevice | None = None
    info: DeviceInfo | None = None
    tracer: Meter | None = None
    missing: list[Missing] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    _before: CardState | None = None
    _after: CardState | None = None
    _recording: list[Meter] = field(default_factory=list)
    _courses: list[Course] = field(default_factory=list)
    _power: list[Trace] = field(default_factory=list)

    def start(self) -> None:
        """Begin to record."""
        if self.card is not None:
            self._before = card_state(self.card)
        for meter in (*self.meters, *((self.tracer,) if self.tracer is not None else ())):
            try:
                meter.start()
            except MeterError as error:
                self.missing.append(self._missing(meter, error))
            except Exception as error:  # a user's meter may raise anything
                if self.kind != "own":
                    raise
                self.missing.append(missing_energy(self.name, _failed(error)))
            else:
                self._recording.append(meter)

    @property
    def recording(self) -> bool:
        """Whether a meter records."""
        return bool(self._recording)

    def stop(self) -> None:
        """End recording; nothing happens the second time."""
        recording, self._recording = self._recording, []
        if self.card is not None and self._after is None:
            self._after = card_state(self.card)
        for meter in recording:
            try:
                trace = meter.stop()
            except MeterError as error:
                self.missing.append(self._missing(meter, error))
            except Exception as error:  # likewise
                if self.kind != "own":
                    raise
                self.missing.append(missing_energy(self.name, _failed(error)))
            else:
                (self._power if meter is self.tracer else self.traces).append(trace)
        limit_w = None if self.info is None else self.info.power_limit_w
        ceiling_w = math.inf if limit_w is None else OVERSHOOT * limit_w
        self._courses = [
            Course.of(trace, ceiling_w=ceiling_w if self.kind == "card" else math.inf)
            for trace in self.traces
        ]

    def close(self) -> None:
        """Stop what records, and give the card back."""
        self.stop()
        if self.card is not None:
            try:
                self.card.close()
            except MeterError as error:
                self.missing.append(missing_of("device", error))

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

    def _missing(self, meter: Meter, error: MeterError) -> Missing:
        if meter is self.tracer:
            return missing_of(meter.name, error)
        return missing_energy(meter.name, error)

    def result(self, begin_s: float, end_s: float) -> SourceEnergy:
        """Return what was drawn between two moments, after :meth:`stop`."""
        told, missing = self.energies(((begin_s, end_s),))
        best = told[0] if told else None
        trace = power_samples(self._power or self.traces, begin_s, end_s)
        during = [sample.power_w for sample in trace if sample.time_s >= 0]
        return SourceEnergy(
            name=self.name,
            kind=self.kind,
            energy_j=None if best is None else best.energy_j,
            uncertainty_j=None if best is None else best.uncertainty_j,
            power_w=None if best is None else best.energy_j / (end_s - begin_s),
            peak_power_w=max(during, default=None),
            meter=None if best is None else best.meter,
            updates=0 if best is None else best.updates,
            checks=tuple(told[1:]),
            device=self.info,
            before=self._before,
            after=self._after,
            missing=(*self.missing, *missing),
            trace=trace,
        )


def cpu_sources(root: Path = Path("/")) -> tuple[Source, ...]:
    """Return the CPU packages of this machine; one that only says why where there are none."""
    try:
        return tuple(map(_package_source, rapl_packages(root)))
    except MeterError as error:
        return (Source("CPU", "cpu", missing=[missing_energy(RAPL_NAME, error)]),)


def _package_source(package: Package) -> Source:
    if isinstance(package, RaplPackage):
        return Source(package_title(package), "cpu", (RaplMeter(package),))
    refused = missing_energy(RAPL_NAME, package.error)
    return Source(package_title(package), "cpu", missing=[refused])


def missing_of(what: str, error: MeterError) -> Missing:
    """Return what is missing because a sensor does not work, and what to do about it."""
    return Missing(what=what, reason=f"{error} ({error.remedy})" if error.remedy else str(error))


def missing_energy(meter: str, error: MeterError) -> Missing:
    """Return the energy that one meter does not tell."""
    return missing_of(f"energy by {meter}", error)


def _failed(error: Exception) -> MeterError:
    said = " ".join(str(error).split())[:200]
    return MeterError(f"it failed: {type(error).__name__}: {said}".removesuffix(": "))

"""Sources of energy while they are recorded (a card, a CPU package), and the result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from eatss.base.diagnostics import EatssError
from eatss.base.text import class_and_line, one_line
from eatss.measurement.energy_measurement import (
    EnergyMeasurement,
    SourceEnergy,
    SourceKind,
    WindowEnergy,
    WindowRun,
    WindowShare,
)
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.choose import ChosenMeters
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
from eatss.measurement.meters.rapl import (
    RAPL_NAME,
    RaplMeter,
    RaplPackage,
    package_title,
    rapl_packages,
)

OVERSHOOT = 2.0
"""A card is taken never to draw more than so many times its power limit, however briefly."""


@dataclass(slots=True)
class Source:
    """What records one source; its meters in the order in which results rest on them.

    Attributes:
        name: ``card 0``, or ``CPU package 0``.
        kind: Which of these it is.
        meters: Those that record it.
        card: The card, open in NVML, ``None`` for other sources.
        info: Which card it is.
        missing: What is not known of it, and why.
    """

    name: str
    kind: SourceKind
    meters: Sequence[Meter] = ()
    card: NvmlDevice | None = None
    info: DeviceInfo | None = None
    missing: list[Missing] = field(default_factory=list)
    _before: CardState | None = None
    _after: CardState | None = None
    _recording: list[Meter] = field(default_factory=list)
    _courses: list[Course] = field(default_factory=list)

    def take(self, chosen: ChosenMeters) -> None:
        """Take the meters that were chosen for it."""
        self.meters = tuple(chosen.meters)
        self.missing.extend(chosen.missing)

    def start(self) -> None:
        """Begin to record."""
        if self.card is not None:
            self._before = card_state(self.card)
        for meter in self.meters:
            with self._guarded(meter):
                meter.start()
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
        limit_w = self.info and self.info.power_limit_w
        ceiling_w = OVERSHOOT * limit_w if limit_w else math.inf
        for meter in recording:
            with self._guarded(meter):
                self._courses.append(Course.of(meter.stop(), ceiling_w=ceiling_w))

    def close(self) -> None:
        """Stop what records, and give the card back."""
        self.stop()
        if self.card is not None:
            with guarded("device", self.missing):
                self.card.close()

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

    def _guarded(self, meter: Meter) -> AbstractContextManager[None]:
        return guarded(f"energy by {getattr(meter, 'name', self.name)}", self.missing)

    def result(self, begin_s: float, end_s: float) -> SourceEnergy:
        """Return what was drawn between two moments, after :meth:`stop`."""
        told, missing = self.energies(((begin_s, end_s),))
        trace = power_samples([one.trace for one in self._courses], begin_s, end_s)
        idle = [one.power_w for one in trace if one.time_s < 0]
        found = SourceEnergy(
            name=self.name,
            kind=self.kind,
            energy_j=None,
            uncertainty_j=None,
            power_w=None,
            peak_power_w=max((one.power_w for one in trace if one.time_s >= 0), default=None),
            meter=None,
            updates=0,
            device=self.info,
            before=self._before,
            after=self._after,
            missing=(*self.missing, *missing),
            trace=trace,
            idle_power_w=sum(idle) / len(idle) if idle else None,
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


def cpu_sources(root: Path = Path("/")) -> tuple[Source, ...]:
    """Return the CPU packages of this machine; one that only says why where there are none."""
    try:
        packages = rapl_packages(root)
    except MeterError as error:
        return (Source("CPU", "cpu", missing=[_no_rapl(error)]),)
    return tuple(
        Source(package_title(one), "cpu", (RaplMeter(one),))
        if isinstance(one, RaplPackage)
        else Source(package_title(one), "cpu", missing=[_no_rapl(one.error)])
        for one in packages
    )


def _no_rapl(error: MeterError) -> Missing:
    return Missing(what=f"energy by {RAPL_NAME}", reason=reason_of(error))


@contextmanager
def guarded(what: str, missing: list[Missing]) -> Iterator[None]:
    """Make a reason of what a sensor raises: the block that it records goes on.

    Meters come from users and packages as well, and theirs may raise anything.

    Args:
        what: is missing then.
        missing: gets the reason.
    """
    try:
        yield
    except Exception as error:  # of the meter's own making
        missing.append(Missing(what=what, reason=reason_of(error)))


def reason_of(error: Exception) -> str:
    """Return why a sensor does not work, and what to do about it."""
    if isinstance(error, MeterError):
        return error.whole
    if isinstance(error, EatssError):
        return one_line(error, 400)
    return f"it failed: {class_and_line(error, 400)}"


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
    """Return what sources tell of a block, after they have stopped.

    Args:
        sources: all that were recorded.
        windows: of the block, in the order in which they began.
        begin_s: when the block began, by the clock of the traces.
        end_s: when it ended.
    """
    results = tuple(source.result(begin_s, end_s) for source in sources)
    several, time_s = len(results) > 1, end_s - begin_s
    energy_j, uncertainty_j = _sums(results, "card")
    cpu_energy_j, cpu_uncertainty_j = _sums(results, "cpu")
    first = next((one for one in results if one.kind == "card"), _NO_CARD)
    named: dict[str, list[Span]] = {}
    for window in windows:
        named.setdefault(window.name, []).append(window.span)
    return EnergyMeasurement(
        time_s=time_s,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        power_w=None if energy_j is None else energy_j / time_s,
        meter=first.meter,
        updates=first.updates,
        checks=first.checks,
        device=first.device,
        before=first.before,
        after=first.after,
        error="",
        missing=tuple(
            one for source in results for one in _placed(source.name, source.missing, several)
        ),
        cpu_energy_j=cpu_energy_j,
        cpu_uncertainty_j=cpu_uncertainty_j,
        sources=results,
        windows=tuple(_window(name, spans, sources, begin_s) for name, spans in named.items()),
    )


_NO_CARD = SourceEnergy(
    name="", kind="card", energy_j=None, uncertainty_j=None, power_w=None, peak_power_w=None,
    meter=None, updates=0,
)  # fmt: skip


def _placed(source: str, missing: Sequence[Missing], several: bool) -> Iterator[Missing]:
    """Yield what is missing of a source, which is named where there are several."""
    return (replace(one, reason=f"{source}: {one.reason}") if several else one for one in missing)


def _window(
    name: str, spans: Sequence[Span], sources: Sequence[Source], begin_s: float
) -> WindowEnergy:
    whole = joined(spans)
    time_s = sum(end_s - start_s for start_s, end_s in whole)
    told = [source.energies(whole) for source in sources]
    shares = tuple(map(_share, sources, (energies for energies, _ in told)))
    missing: list[Missing] = []
    for source, (energies, why) in zip(sources, told, strict=True):
        if not energies:
            missing += _placed(source.name, why or source.missing, len(sources) > 1)
    if not sources:
        missing.append(Missing(what="energy", reason="no card, CPU or meter records it"))
    energy_j, uncertainty_j = _sums(shares, "card")
    cpu_energy_j, cpu_uncertainty_j = _sums(shares, "cpu")
    return WindowEnergy(
        name=name,
        count=len(spans),
        time_s=time_s,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        cpu_energy_j=cpu_energy_j,
        cpu_uncertainty_j=cpu_uncertainty_j,
        power_w=energy_j / time_s if energy_j is not None else None,
        sources=shares,
        runs=tuple(
            WindowRun(begin_s=span[0] - begin_s, time_s=span[1] - span[0]) for span in spans
        ),
        missing=tuple(missing),
    )


def _share(source: Source, told: Sequence[IntervalEnergy]) -> WindowShare:
    return WindowShare(
        source=source.name,
        kind=source.kind,
        energy_j=told[0].energy_j if told else None,
        uncertainty_j=told[0].uncertainty_j if told else None,
    )


def _sums(
    drawn: Sequence[WindowShare | SourceEnergy], kind: SourceKind
) -> tuple[float | None, float | None]:
    """Return the energy of all sources of a kind, and how far it may be off.

    ``None`` if that of one is not known, or there is none.
    """
    own = [one for one in drawn if one.kind == kind]
    known = [
        (one.energy_j, one.uncertainty_j)
        for one in own
        if one.energy_j is not None and one.uncertainty_j is not None
    ]
    if not known or len(known) < len(own):
        return None, None
    return sum(one for one, _ in known), sum(one for _, one in known)

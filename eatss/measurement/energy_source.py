"""Cards while their energy is recorded, and the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from eatss.base.diagnostics import EatssError
from eatss.base.text import class_and_line, one_line
from eatss.measurement.energy_measurement import CardEnergy, EnergyMeasurement
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.interval_energy import IntervalEnergy, interval_energy
from eatss.measurement.meters.meter import Meter, MeterError, Trace, power_samples
from eatss.measurement.meters.nvml import NvmlDevice, card_state


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
    _traces: list[Trace] = field(default_factory=list)

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
        for meter in recording:
            with guarded(f"energy by {meter.name}", self.missing):
                self._traces.append(meter.stop())
        card, self.card = self.card, None
        if card is not None:
            self._after = card_state(card)
            with guarded("device", self.missing):
                card.close()

    def energies(self, begin_s: float, end_s: float) -> tuple[list[IntervalEnergy], list[Missing]]:
        """Return what each meter tells of a block, and why others tell nothing."""
        told: list[IntervalEnergy] = []
        missing: list[Missing] = []
        for trace in self._traces:
            energy = interval_energy(trace, begin_s, end_s)
            if isinstance(energy, str):
                missing.append(Missing(what=f"energy by {trace.meter}", reason=energy))
            else:
                told.append(energy)
        if not told and not any(one.what.startswith("energy") for one in self.missing + missing):
            missing.append(Missing(what="energy", reason="no meter was given"))
        return told, missing

    def result(self, begin_s: float, end_s: float) -> CardEnergy:
        """Return what was drawn between two moments, after :meth:`close`."""
        told, missing = self.energies(begin_s, end_s)
        trace = power_samples(self._traces, begin_s, end_s)
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


def energy_result(sources: Sequence[Source], begin_s: float, end_s: float) -> EnergyMeasurement:
    """Return what cards drew in a block, after they have been closed.

    Args:
        sources: all that were recorded.
        begin_s: when the block began, by the clock of the traces.
        end_s: when it ended.
    """
    cards = tuple(source.result(begin_s, end_s) for source in sources)
    known = [
        (one.energy_j, one.uncertainty_j)
        for one in cards
        if one.energy_j is not None and one.uncertainty_j is not None
    ]
    whole = bool(cards) and len(known) == len(cards)
    energy_j = sum(one for one, _ in known)
    return EnergyMeasurement(
        time_s=end_s - begin_s,
        energy_j=energy_j if whole else None,
        uncertainty_j=sum(off for _, off in known) if whole else None,
        power_w=energy_j / (end_s - begin_s) if whole else None,
        cards=cards,
        missing=tuple(
            replace(one, reason=f"{card.name}: {one.reason}") if len(cards) > 1 else one
            for card in cards
            for one in card.missing
        ),
    )

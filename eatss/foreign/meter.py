"""Meters beside a program: what its cards drew from its start to its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from eatss.diagnostics import InputError, input_error
from eatss.foreign.child import Child
from eatss.foreign.program_energy import CardEnergy, PowerSample, ProgramEnergy
from eatss.measurement.energy_meter import MARGIN_S
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.choose import METERS, choose_meters
from eatss.measurement.meters.interval_energy import IntervalEnergy, interval_energy
from eatss.measurement.meters.meter import Meter, MeterError, Trace
from eatss.measurement.meters.nvml import NvmlDevice, device_info
from eatss.measurement.meters.power import POLL_S, PowerMeter

IDLE_S = 1.0
"""Recorded before a program begins: a second, which is what most drivers average power over."""

LEAST_INTERVAL_S, MOST_S = 0.001, 3600.0
"""Bounds of the times of :class:`MeterOptions`."""

_TRACE = "power trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterOptions:
    """How a program is metered.

    Attributes:
        devices: Cards, by their numbers as ``nvidia-smi -L`` lists them, or by their UUIDs.
        meter: Which sensor energy is read from, a name of ``eatss.measurement.meters.METERS``.
        repeat: How often the program is run, one run after the other.
        interval_s: Seconds between two looks at a card's power.
        idle_s: Seconds recorded before the program begins.

    Raises:
        InputError: ``EATSS-E092``: a time is not one, or is more than an hour.
    """

    devices: tuple[int | str, ...] = (0,)
    meter: str = "auto"
    repeat: int = 1
    interval_s: float = POLL_S
    idle_s: float = IDLE_S

    def __post_init__(self) -> None:
        for option, value_s, least_s in (
            ("--idle", self.idle_s, 0.0),
            ("--interval", self.interval_s, LEAST_INTERVAL_S),
        ):
            if not least_s <= value_s <= MOST_S:
                raise input_error(
                    "EATSS-E092",
                    f"{option} is {value_s:g} seconds",
                    hint=f"give it a time from {least_s:g} to {MOST_S:g} seconds",
                )


def meter_program(
    command: Sequence[str],
    options: MeterOptions | None = None,
    *,
    module: Any = None,
    now: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> ProgramEnergy:
    """Run a program and tell what its cards drew.

    The program has this process's standard streams; signals that come meanwhile are its.

    Args:
        command: the program and its arguments.
        options: which cards, and how; the first card by default. One that is named
            twice is metered once.
        module: what stands in for ``pynvml``.
        now: the clock that samples are stamped with.
        sleep: lets time pass on it.

    Raises:
        InputError: ``EATSS-E090``, there is no such card; ``EATSS-X005``, no such meter.
        NotStartedError: ``EATSS-E091``, the program cannot be started.
    """
    options = options or MeterOptions()
    METERS.get(options.meter)
    child = Child(command)
    with ExitStack() as closing:
        cards: dict[str, NvmlDevice] = {}
        for device in options.devices:
            card = _opened(device, module)
            closing.callback(card.close)
            cards.setdefault(card.uuid, card)
        recorders = [_Recorder.of(card, options) for card in cards.values()]
        for recorder in recorders:
            closing.callback(recorder.stop)
            recorder.start()
        with child.taking_signals():
            sleep(options.idle_s)
            begin_s, runs, code = now(), 0, 0
            while runs < options.repeat and not code and not (runs and child.ended_by_signal):
                code = child.run()
                runs += 1
            end_s = now()
            sleep(MARGIN_S)
        found = tuple(recorder.energy(begin_s, end_s) for recorder in recorders)
    return ProgramEnergy(
        command=tuple(map(_readable, command)),
        runs=runs,
        exit_code=code,
        time_s=end_s - begin_s,
        cards=found,
    )


def _readable(word: str) -> str:
    """Return a word of a command line as text; bytes that are none get a backslash."""
    return os.fsencode(word).decode("utf-8", "backslashreplace")


def _opened(device: int | str, module: Any) -> NvmlDevice:
    try:
        return NvmlDevice(device, module=module)
    except MeterError as error:
        raise no_card(error) from None


def no_card(error: MeterError) -> InputError:
    """Return the error of a card that cannot be metered."""
    hint = f"{error.remedy}; " if error.remedy else ""
    return input_error(
        "EATSS-E090",
        f"there is no card to meter: {error}",
        hint=f"{hint}for time alone: time -p PROGRAM",
    )


@dataclass(slots=True)
class _Recorder:
    """What records one card: the meters that energy is read from, and one for the power trace."""

    card: NvmlDevice
    meters: Sequence[Meter]
    tracer: PowerMeter
    missing: list[Missing] = field(default_factory=list)
    recording: list[Meter] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    @classmethod
    def of(cls, card: NvmlDevice, options: MeterOptions) -> _Recorder:
        """Return what records a card; a meter that was asked for and does not work is an error."""
        try:
            chosen = choose_meters(options.meter, card.uuid, nvml=card)
        except MeterError as error:
            raise input_error(
                "EATSS-E074",
                f"the meter '{options.meter}' does not work here: {error}",
                hint=error.remedy or "take --meter auto",
            ) from None
        tracer = PowerMeter(card.power_w, name=_TRACE, poll_s=options.interval_s)
        return cls(card=card, meters=chosen.meters, tracer=tracer, missing=list(chosen.missing))

    def start(self) -> None:
        """Begin to record."""
        for meter in (*self.meters, self.tracer):
            try:
                meter.start()
            except MeterError as error:
                self.missing.append(_missing(meter.name, error))
            else:
                self.recording.append(meter)

    def stop(self) -> None:
        """End recording; nothing happens the second time."""
        recording, self.recording = self.recording, []
        for meter in recording:
            try:
                self.traces.append(meter.stop())
            except MeterError as error:
                self.missing.append(_missing(meter.name, error))

    def energy(self, begin_s: float, end_s: float) -> CardEnergy:
        """Return what the card drew between two moments."""
        self.stop()
        told: list[IntervalEnergy] = []
        power: tuple[PowerSample, ...] = ()
        for trace in self.traces:
            if trace.meter == _TRACE:
                power = tuple(_samples(trace, begin_s, end_s))
                continue
            energy = _known(interval_energy(trace, begin_s, end_s))
            if isinstance(energy, str):
                self.missing.append(Missing(what=f"energy by {trace.meter}", reason=energy))
            else:
                told.append(energy)
        best = told[0] if told else None
        seconds = end_s - begin_s
        during = [sample.power_w for sample in power if sample.time_s >= 0]
        idle = [sample.power_w for sample in power if sample.time_s < 0]
        if not told and not any(one.what.startswith("energy") for one in self.missing):
            self.missing.append(Missing(what="energy", reason="no meter was asked for"))
        return CardEnergy(
            device=device_info(self.card),
            energy_j=None if best is None else best.energy_j,
            uncertainty_j=None if best is None else best.uncertainty_j,
            power_w=None if best is None else best.energy_j / seconds,
            peak_power_w=max(during, default=None),
            idle_power_w=sum(idle) / len(idle) if idle else None,
            meter=None if best is None else best.meter,
            updates=0 if best is None else best.updates,
            missing=tuple(self.missing),
            trace=power,
        )


def _known(energy: IntervalEnergy | str) -> IntervalEnergy | str:
    """Return an energy that is more than its uncertainty, else why there is none."""
    if isinstance(energy, str) or energy.uncertainty_j < energy.energy_j:
        return energy
    times = "once" if energy.updates == 1 else f"{energy.updates} times"
    moved = f"moved {times} while it ran" if energy.updates else "did not move"
    return f"{energy.meter} {moved}, which tells an energy below {energy.uncertainty_j:.2g} J only"


def _samples(trace: Trace, begin_s: float, end_s: float) -> Iterator[PowerSample]:
    """Yield the samples to the end of a program, by the time since it began."""
    for sample in trace.samples:
        if sample.time_s <= end_s:
            yield PowerSample(time_s=sample.time_s - begin_s, power_w=sample.value)


def _missing(name: str, error: MeterError) -> Missing:
    what = name if name == _TRACE else f"energy by {name}"
    reason = f"{error} ({error.remedy})" if error.remedy else str(error)
    return Missing(what=what, reason=reason)


def all_devices(module: Any = None) -> tuple[str, ...]:
    """Return the UUIDs of all cards of this machine.

    Raises:
        InputError: ``EATSS-E090``, there is none.
    """
    found: list[str] = []
    while True:
        try:
            card = NvmlDevice(len(found), module=module)
        except MeterError as error:
            if not found:
                raise no_card(error) from None
            return tuple(found)
        try:
            found.append(card.uuid)
        finally:
            card.close()


def without_trace(found: ProgramEnergy) -> ProgramEnergy:
    """Return the same without power samples."""
    return replace(found, cards=tuple(replace(card, trace=()) for card in found.cards))

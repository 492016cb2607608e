"""The meters and the state of a card around a stretch of load: start, stop, cut at its edges.

What the energy sensors of this machine do, also under a load: lines of ``eatss doctor``.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields
from itertools import chain
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from eatss.base.compilers import in_container
from eatss.base.diagnostics import InputError
from eatss.base.frozen import frozen
from eatss.base.text import class_and_line
from eatss.cards.detect import cuda_uuid
from eatss.cards.environment import Check
from eatss.measurement.card import MeteredCard
from eatss.measurement.cupy_module import cuda_card, import_cupy
from eatss.measurement.job import CardOpened
from eatss.measurement.measurement import CardState, LoadState, Missing, Reading
from eatss.measurement.meters.background import CounterMeter, PowerMeter
from eatss.measurement.meters.choose import choose_meters
from eatss.measurement.meters.meter import (
    POWER_SETTLE_S,
    Meter,
    MeterError,
    Trace,
    read,
    update_period_s,
)
from eatss.measurement.meters.nvml import NvmlDevice


@frozen
class Span:
    """A stretch of steady load: it began at ``load_begin_s``, what is measured at ``begin_s``."""

    load_begin_s: float
    begin_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Seconds of what is measured."""
        return self.end_s - self.begin_s

    @property
    def settled_s(self) -> float:
        """From when on a sensor of power tells of nothing but the load.

        It tells of a time that is past: of a load's first ``POWER_SETTLE_S`` that before it, too.
        """
        return max(self.load_begin_s + POWER_SETTLE_S, self.begin_s)


@runtime_checkable
class ExplainsMissingMeters(Protocol):
    """A card that knows why it does not offer some meters; not every card does."""

    def missing_meters(self) -> tuple[Missing, ...]:
        """Return what ``meters`` left out the last time it was asked, and why."""
        ...


class Metering:
    """The meters of a card. One that fails is left out from then on.

    Results rest on the first meter that starts (``primary``) and on no other: where it fails
    later, ``failure`` says why, and no other meter takes its place.
    """

    def __init__(self, card: MeteredCard, choice: str, *, keep: str | None = None) -> None:
        """Get the meters and start each once, to learn which ones work.

        Args:
            card: whose meters.
            choice: as the user put it.
            keep: name of the meter that earlier windows of the measurement rest on. Later ones
                rest on it too, or have no energy: two meters' values have no common mean.

        Raises:
            MeterError: the meter that was asked for by name does not work here.
        """
        self.card = card
        self.primary: str | None = None
        self.failure = ""
        self._live: list[Meter] = []
        try:
            self._live.extend(card.meters(choice))
        except MeterError as error:
            if keep is None:
                raise
            self.failure = str(error)
        with self.recording():
            pass
        if keep is not None:
            self.primary = keep
            why = f": {self.failure}" if self.failure else ""
            gone = f"the meter of earlier windows, {keep}, is gone{why}"
            self.failure = "" if self.works else gone
        elif self._live:
            self.primary, self.failure = self._live[0].name, ""
        elif choice == "none":
            self.failure = "no meter was asked for"
        elif not self.failure:
            reasons = "; ".join(f"{one.what}: {one.reason}" for one in self.missing_meters)
            self.failure = "no sensor of energy or power answers here" + (
                f": {reasons}" if reasons else "; eatss doctor says more"
            )

    @property
    def works(self) -> bool:
        """Whether the meter that results rest on still answers."""
        return any(meter.name == self.primary for meter in self._live)

    @property
    def missing_meters(self) -> tuple[Missing, ...]:
        """Why the card does not offer some meters, as far as it tells."""
        card = self.card
        return card.missing_meters() if isinstance(card, ExplainsMissingMeters) else ()

    @contextmanager
    def recording(self) -> Iterator[list[Trace]]:
        """Record while the block runs; the traces are in the list after it."""
        traces: list[Trace] = []
        started: list[Meter] = []
        for meter in tuple(self._live):
            with self._guarded(meter):
                meter.start()
                started.append(meter)
        try:
            yield traces
        finally:
            for meter in started:
                with self._guarded(meter):
                    traces.append(meter.stop())

    @contextmanager
    def _guarded(self, meter: Meter) -> Iterator[None]:
        """Leave a meter out from now on if it fails in the block."""
        try:
            yield
        except MeterError as error:
            self._live.remove(meter)
            if self.primary is None or meter.name == self.primary:
                self.failure = error.whole

    def readings(self, traces: Sequence[Trace], span: Span) -> tuple[tuple[Reading, ...], str]:
        """Return what the meters say of a span, the primary first, and why that one says nothing.

        A trace of power is cut from when on it is of the load alone.
        """
        found: list[Reading] = []
        why = self.failure
        for trace in traces:
            settle_s = None if trace.kind == "energy" else span.settled_s - span.begin_s
            reading = read(trace, span.begin_s, span.end_s, settle_s=settle_s)
            if isinstance(reading, Reading):
                found.append(reading)
            if trace.meter == self.primary:
                why = reading if isinstance(reading, str) else ""
        found.sort(key=lambda reading: reading.meter != self.primary)
        return tuple(found), why

    def power_w(self, settle: Callable[[], object], load: Callable[[], object]) -> float | str:
        """Return the mean power of a load after it has settled, or why it is not known."""
        now = self.card.now
        with self.recording() as traces:
            load_begin_s = now()
            settle()
            begin_s = now()
            load()
            span = Span(load_begin_s=load_begin_s, begin_s=begin_s, end_s=now())
        readings, why = self.readings(traces, span)
        return why or readings[0].power_w

    def period_s(self, traces: Sequence[Trace]) -> float | None:
        """Return the seconds between updates of the primary meter, ``None`` if not known."""
        trace = self.primary_trace(traces)
        period = "" if trace is None else update_period_s(trace)
        return None if isinstance(period, str) else period.median_s

    def primary_trace(self, traces: Sequence[Trace]) -> Trace | None:
        """Return the trace of the primary meter, ``None`` if it gave none."""
        return next((trace for trace in traces if trace.meter == self.primary), None)

    def opened(self) -> CardOpened:
        """Return what is to be told of a card that works and of its meters."""
        return CardOpened(
            device=self.card.info,
            meter=self.primary,
            no_meter=self.failure,
            missing_meters=self.missing_meters,
        )


def most_power_w(traces: Sequence[Trace], span: Span) -> float | None:
    """Return the highest value of a sensor of power in a span, ``None`` if there is none."""
    return max(
        (
            sample.value
            for trace in traces
            if trace.kind == "power"
            for sample in trace.samples
            if span.settled_s <= sample.time_s <= span.end_s
        ),
        default=None,
    )


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
    clocks, memory, warmth, reasons = (
        [value for state in seen if (value := getattr(state, field.name)) is not None]
        for field in fields(CardState)
    )
    return LoadState(
        samples=len(seen),
        sm_clock_lowest_mhz=min(clocks, default=None),
        sm_clock_mean_mhz=float(np.mean(clocks)) if clocks else None,
        sm_clock_highest_mhz=max(clocks, default=None),
        memory_clock_mhz=min(memory, default=None),
        temperature_c=max(warmth, default=None),
        throttle=tuple(dict.fromkeys(chain(*reasons))) if reasons else None,
    )


_ELEMENTS = 1 << 22
_IN_FLIGHT = 4
_CHAINS = """
    float a = x, b = x + 0.1f, c = x + 0.2f, d = x + 0.3f;
    for (int step = 0; step < 4096; ++step) {
        a = fmaf(a, 0.999f, x);
        b = fmaf(b, 0.998f, x);
        c = fmaf(c, 0.997f, x);
        d = fmaf(d, 0.996f, x);
    }
    y = a + b + c + d;
"""


def steady_load(uuid: str | None, *, cupy: Any = None) -> Callable[[float], None]:
    """Return a function that keeps a card busy for some seconds and waits for the end.

    Args:
        uuid: the card's UUID as NVML tells it; CUDA may count the cards otherwise.
        cupy: what stands in for the module ``cupy``.

    Raises:
        MeterError: CuPy does not work here or does not see the card.
    """
    with _told():
        module = cupy if cupy is not None else importlib.import_module("cupy")
        index = _cuda_index(module, uuid)
        with module.cuda.Device(index):
            values = module.random.default_rng(0).random(_ELEMENTS, dtype=module.float32)
            kernel = module.ElementwiseKernel(
                "float32 x", "float32 y", _CHAINS, "eatss_steady_load"
            )
            out = module.empty_like(values)
            kernel(values, out)
            module.cuda.runtime.deviceSynchronize()

    def run(seconds: float) -> None:
        end_s = time.perf_counter() + seconds
        with _told(), module.cuda.Device(index):
            while time.perf_counter() < end_s:
                for _ in range(_IN_FLIGHT):
                    kernel(values, out)
                module.cuda.runtime.deviceSynchronize()

    return run


def _cuda_index(cupy: Any, uuid: str | None) -> int:
    runtime = cupy.cuda.runtime
    for index in range(1 if uuid is None else runtime.getDeviceCount()):
        if uuid is None or cuda_uuid(runtime.getDeviceProperties(index)) == uuid:
            return index
    raise MeterError(
        f"CUDA does not see the card {uuid}", "look at CUDA_VISIBLE_DEVICES, which may hide it"
    )


@contextmanager
def _told() -> Iterator[None]:
    """Say that no load can be made where CuPy or CUDA fail, which have errors of their own."""
    try:
        yield
    except MeterError:
        raise
    except Exception as error:  # a broken installation raises anything
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise MeterError(
                "no load can be made: CuPy is not installed", "pip install 'eatss[gpu]'"
            ) from None
        raise MeterError(
            f"no load can be made: {class_and_line(error)}",
            "look at the line of CuPy in `eatss doctor`",
        ) from error


IDLE_S = 1.5
LOAD_S = 3.0
AGREE = 0.05
"""Counter and integrated power that differ by more than this share are worth a word."""

_ENERGY = "measuring energy"
_TRUST = "trusting energy"


@frozen
class SensorTrial:
    """How sensors are tried: how long, and with what load and clock."""

    idle_s: float = IDLE_S
    load_s: float = LOAD_S
    settle_s: float = POWER_SETTLE_S
    load: Callable[[float], None] | None = None
    sleep: Callable[[float], None] = time.sleep


def examine_sensors(
    device: int | str = 0,
    *,
    with_load: bool = False,
    module: Any = None,
    trial: SensorTrial | None = None,
    find: Callable[[int | str], str | None] | None = None,
) -> tuple[Check, ...]:
    """Look at the energy sensors of a card; takes two seconds, with a load some more.

    Args:
        device: the card's number as CUDA counts those it sees, or its UUID, as for measuring.
        with_load: make the card work for some seconds, to compare its two sensors.
        module: what stands in for ``pynvml``.
        trial: how long to look, and with what load.
        find: what turns the number into a UUID; asks CUDA if not given.
    """
    tried = trial or SensorTrial()
    named, numbering = _named(device, find or _told_by_cupy)
    if named is None:
        return numbering
    try:
        card = NvmlDevice(named, module=module)
    except MeterError as error:
        reason = error
        return (_checked("energy meter", _ENERGY, lambda: _meters(named, None, reason)), *numbering)
    with closing(card):
        return (
            _checked("energy meter", _ENERGY, lambda: _meters(named, card, None)),
            _checked("other programs", _TRUST, lambda: _other_processes(card)),
            _checked("energy counter", _ENERGY, lambda: _period(card, tried)),
            _checked(
                "counter against power",
                _TRUST,
                lambda: _agreement(card, tried) if with_load else _NO_LOAD,
            ),
            *numbering,
        )


_Found: TypeAlias = tuple[bool | None, str, str]
"""Whether all is well, what was found, and what to do."""

_NO_LOAD: _Found = (
    None,
    "not tried; eatss doctor --sensors tells their ratio, and makes the card work for some seconds",
    "eatss doctor --sensors",
)


def _checked(name: str, needed_for: str, look: Callable[[], _Found]) -> Check:
    try:
        ok, found, remedy = look()
    except MeterError as error:
        ok, found, remedy = None, str(error), error.remedy or "try again"
    return Check(name=name, ok=ok, found=found, needed_for=needed_for, remedy=remedy)


def _meters(device: int | str, card: NvmlDevice | None, reason: MeterError | None) -> _Found:
    """Say which meters work, or why none does."""
    chosen = choose_meters("auto", device, nvml=card)
    if chosen.meters:
        place = ", in a container" if in_container() else ""
        return True, ", ".join(meter.name for meter in chosen.meters) + place, ""
    if reason is not None:
        raise reason
    remedy = "time is measured all the same; energy needs a card that tells it"
    return None, chosen.missing[0].reason, remedy


def _other_processes(card: NvmlDevice) -> _Found:
    processes = card.other_processes()
    if not processes:
        return True, "none uses the card", ""
    listed = ", ".join(map(str, processes[:4]))
    more = f" and {len(processes) - 4} more" if len(processes) > 4 else ""
    return (
        None,
        f"{listed}{more} {'uses' if len(processes) == 1 else 'use'} the card",
        "wait for them or choose another card (--device): what they draw would be counted",
    )


def _period(card: NvmlDevice, trial: SensorTrial) -> _Found:
    meter = CounterMeter(card.total_energy_j)
    card.total_energy_j()
    meter.start()
    trial.sleep(trial.idle_s)
    period = update_period_s(meter.stop())
    if isinstance(period, str):
        raise MeterError(period, "choose another meter (`--meter power`)")
    longest_ms = period.longest_s * 1e3
    return (
        True,
        f"moves every {period.median_s * 1e3:.1f} ms, {longest_ms:.1f} ms at most"
        f" ({period.count} intervals)",
        "",
    )


def _agreement(card: NvmlDevice, trial: SensorTrial) -> _Found:
    """Say how counter and power agree on the same seconds of load."""
    load = trial.load or steady_load(card.uuid)
    meters: tuple[Meter, ...] = (CounterMeter(card.total_energy_j), PowerMeter(card.power_w))
    card.total_energy_j()
    card.power_w()
    traces: list[Trace] = []

    def stopped(meter: Meter) -> None:
        traces.insert(0, meter.stop())

    with ExitStack() as recording:  # one meter's failure leaves no other running
        for meter in meters:
            meter.start()
            recording.callback(stopped, meter)
        begin_s = time.perf_counter()
        load(trial.settle_s + trial.load_s)
        end_s = time.perf_counter()
    readings: list[Reading] = []
    for trace in traces:
        reading = read(trace, begin_s, end_s, settle_s=trial.settle_s)
        if isinstance(reading, str):
            raise MeterError(reading, "try again; look at the line of the energy counter")
        readings.append(reading)
    counted, integrated = readings
    ratio = counted.power_w / integrated.power_w
    agree = abs(ratio - 1) <= AGREE
    return (
        True if agree else None,
        f"ratio {ratio:.3f} under a steady load: {counted.power_w:.0f} W by the counter,"
        f" {integrated.power_w:.0f} W integrated, over {counted.span_s:.1f} s",
        ""
        if agree
        else "the sensors differ: compare only results of the same meter, and try again when idle",
    )


def _told_by_cupy(device: int | str) -> str | None:
    """Return the UUID of a card that CUDA sees, by its number or UUID; ``None`` if not told.

    Raises:
        InputError: ``EATSS-E021`` there is no CuPy, ``EATSS-E022`` CUDA finds no card,
            ``EATSS-E023`` none of this number or UUID.
    """
    return cuda_card(import_cupy(), device).uuid


def _named(
    device: int | str, find: Callable[[int | str], str | None]
) -> tuple[int | str | None, tuple[Check, ...]]:
    """Return the card as NVML is to be asked for it, and a line if its number may mislead.

    Where CUDA cannot be asked, a number is the driver's; where CUDA sees no such card, it is
    ``None``.
    """
    if isinstance(device, str):
        return device, ()
    try:
        uuid = find(device)
    except InputError as error:
        said = error.diagnostics[0]
        if error.code == "EATSS-E023":
            hint = said.hint or "try again"
            return None, (_checked("energy meter", _ENERGY, lambda: (None, said.message, hint)),)
        return device, _guessed(device, said.message)
    except Exception as error:  # a broken CuPy raises anything; its own line says more
        return device, _guessed(device, f"{type(error).__name__}: {error}")
    return (uuid, ()) if uuid else (device, _guessed(device, "CUDA tells no UUID of it"))


def _guessed(device: int, why: str) -> tuple[Check, ...]:
    """Return a line where the number could be another card's."""
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        return ()
    return (
        Check(
            name="numbers of cards",
            ok=None,
            found=f"card {device} is counted as the driver does, since CUDA cannot be asked "
            f"({why}); CUDA_VISIBLE_DEVICES is {os.environ['CUDA_VISIBLE_DEVICES']!r}",
            needed_for="measuring the card that computes",
            remedy="name the card by its UUID, which no variable changes (nvidia-smi -L)",
        ),
    )

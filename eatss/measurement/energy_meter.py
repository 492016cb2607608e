"""``energy_meter``: time and energy of any block of Python code.

::

    with eatss.energy_meter(gpus="all") as meter:
        launch()
    meter.result  # EnergyMeasurement

Codes: E061 the meter measures already, or there is no result yet, E048
``gpus`` are none.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from eatss.base.codec import JsonForm, JsonObject, encode
from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.text import class_and_line
from eatss.measurement.card import Gpus, NamedCard, checked_gpus, named_cards
from eatss.measurement.measurement import DeviceInfo, Missing
from eatss.measurement.meters.choose import METERS, choose_meters
from eatss.measurement.meters.meter import (
    IntervalEnergy,
    Meter,
    MeterError,
    PowerSample,
    Recorder,
    Trace,
    interval_energy,
    power_samples,
    reason_of,
)
from eatss.measurement.meters.nvml import NvmlDevice, device_info

ENERGY_SCHEMA = 3
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@frozen
class CardEnergy:
    """What one card drew during a block.

    Attributes:
        name: ``"card 0"`` as CUDA counts.
        energy_j: Joules, gross; ``None`` with a reason in ``missing``.
        uncertainty_j: Joules that ``energy_j`` may be off, as far as the sensor is right.
        power_w: Mean watts.
        peak_power_w: Largest watts that the sensor told, itself a mean over some time.
        idle_power_w: Mean watts before the block.
        meter: The sensor that ``energy_j`` rests on.
        updates: How many values it gave during the block.
        checks: What other sensors of the card said.
        device: Which card it is.
        missing: What is not known, and why.
        trace: Power over time, from before the block to its end.
    """

    json_layout = JsonForm(apart=("trace",))

    name: str
    energy_j: float | None = None
    uncertainty_j: float | None = None
    power_w: float | None = None
    peak_power_w: float | None = None
    idle_power_w: float | None = None
    meter: str | None = None
    updates: int = 0
    checks: tuple[IntervalEnergy, ...] = ()
    device: DeviceInfo | None = None
    missing: tuple[Missing, ...] = ()
    trace: tuple[PowerSample, ...] = ()

    def __repr__(self) -> str:
        return f"<CardEnergy {self.name}: {_joules(self.energy_j, self.uncertainty_j)}>"


@frozen
class EnergyMeasurement:
    """Time and energy of one block of code.

    Energy is gross: all that was drawn, idle power and other programs' work included. The true
    energy lies within ``energy_j ± uncertainty_j``, as far as the sensor is right: one that moves
    every 100 ms says nothing of a shorter block. What is ``None`` stands in ``missing`` with the
    reason; it is never 0.

    Attributes:
        time_s: Seconds that the block took.
        energy_j: Joules of all cards together; ``None`` if one of them is not known.
        uncertainty_j: Joules that ``energy_j`` may be off, of all cards together.
        power_w: Mean watts of all cards together.
        cards: Each card by itself: sensors, clocks, temperature, power over time.
        error: Names the exception that ended the block, ``""`` if none did.
        missing: What is not known, and why.
        schema_version: Of the JSON form.
    """

    time_s: float
    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    cards: tuple[CardEnergy, ...]
    error: str = ""
    missing: tuple[Missing, ...] = ()
    schema_version: int = ENERGY_SCHEMA

    def to_dict(self) -> JsonObject:
        """Return it as plain JSON types, without the traces of power."""
        plain: JsonObject = encode(self)
        return plain

    def __repr__(self) -> str:
        return f"<EnergyMeasurement {self}>"

    def __str__(self) -> str:
        told = f"{self.time_s:.4g} s, {_joules(self.energy_j, self.uncertainty_j)}"
        if self.power_w is not None:
            by = self.cards[0].meter if len(self.cards) == 1 else f"{len(self.cards)} cards"
            return f"{told}, {self.power_w:.4g} W ({by})"
        reasons = (one.reason for one in self.missing if one.what.startswith("energy"))
        return ": ".join((told, *list(reasons)[:1]))


def _joules(energy_j: float | None, uncertainty_j: float | None) -> str:
    if energy_j is None or uncertainty_j is None:
        return "energy unknown"
    return f"{energy_j:.4g} ± {uncertainty_j:.2g} J"


def wait_for_cards(cuda: Any = None) -> None:
    """Wait for all work that this process gave to cards.

    A card on which it has no context is left alone: waiting for it would begin to use it.

    Args:
        cuda: what stands in for the driver's library.
    """
    count, device, flags, active = (ctypes.c_int() for _ in range(4))
    context, byref = ctypes.c_void_p(), ctypes.byref
    try:
        library = cuda or ctypes.CDLL("libcuda.so.1")
        if library.cuDeviceGetCount(byref(count)):  # nothing here has begun to use CUDA
            return
        for number in range(count.value):
            unknown = library.cuDeviceGet(byref(device), number)
            unknown |= library.cuDevicePrimaryCtxGetState(device, byref(flags), byref(active))
            if unknown or not active.value:
                continue
            if library.cuDevicePrimaryCtxRetain(byref(context), device):
                continue
            if not library.cuCtxPushCurrent_v2(context):
                library.cuCtxSynchronize()  # of work that failed its own program hears
                library.cuCtxPopCurrent_v2(byref(context))
            library.cuDevicePrimaryCtxRelease_v2(device)
    except (OSError, AttributeError):
        pass  # there is no CUDA


MARGIN_S = 0.15
"""Recorded before and after a block, so that updates of the sensor lie on both sides of it."""


def energy_meter(
    gpus: Gpus = 0,
    meter: str = "auto",
    *,
    synchronize: Callable[[], object] | None = None,
    margin_s: float = MARGIN_S,
) -> EnergyMeter:
    """Return a context manager that measures time and energy of its block.

        with eatss.energy_meter(gpus=[0, 1]) as meter:
            forward()
        print(meter.result)

    Work that a GPU was given but has not finished when the block ends is not in the result. So
    what was launched is waited for before time begins and before it ends: by ``synchronize``, or
    without it for every card that this process uses.

    Blocks nest and may run in several threads, each with a meter of its own; the sensor tells of
    the whole card, so overlapping blocks each count all that it drew. A block that raises
    is measured up to there. If no meter works the block runs all the same, and the result says why
    it has no energy. Energy that the sensor is too slow to tell is ``None`` with a reason.

    Args:
        gpus: the number of a card as CUDA counts, so that ``CUDA_VISIBLE_DEVICES`` and
            ``CUDA_DEVICE_ORDER`` hold; its UUID; a list of them; ``"all"`` that CUDA sees; ``[]``
            for none.
        meter: which sensor of the cards to use; ``auto`` takes the best that works.
        synchronize: called before time begins and ends to count.
        margin_s: seconds recorded before and after the block (they are waited).

    Raises:
        InputError: ``EATSS-X005``: there is no such meter; ``EATSS-E048``: ``gpus`` names no
            cards.
    """
    METERS.get(meter)
    return EnergyMeter(
        gpus=checked_gpus(gpus),
        choice=meter,
        synchronize=synchronize,
        margin_s=max(0.0, margin_s),
    )


@dataclass(slots=True)
class _Source:
    """A card while it is recorded."""

    name: str
    recorder: Recorder = field(default_factory=lambda: Recorder(()))
    info: DeviceInfo | None = None
    missing: list[Missing] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Make a reason of what a sensor raises: the block that it records goes on."""
        try:
            yield
        except Exception as error:  # of any package's meter
            self.missing.append(Missing(what=what, reason=reason_of(error)))

    def result(self, begin_s: float, end_s: float) -> CardEnergy:
        """Return what was drawn between two moments by the clock of the traces."""
        told = list[IntervalEnergy]()
        reasons = {**self.recorder.failures}
        for trace in self.traces:
            energy = interval_energy(trace, begin_s, end_s)
            if isinstance(energy, str):
                reasons[trace.meter] = energy
            else:
                told.append(energy)
        self.missing += (
            Missing(what=f"energy by {meter}", reason=reason) for meter, reason in reasons.items()
        )
        if not told and not any(one.what.startswith("energy") for one in self.missing):
            self.missing.append(Missing(what="energy", reason="no meter was given"))
        powers = power_samples(self.traces, begin_s, end_s)
        idle = [one.power_w for one in powers if one.time_s < 0]
        found = CardEnergy(
            name=self.name,
            peak_power_w=max((one.power_w for one in powers if one.time_s >= 0), default=None),
            idle_power_w=sum(idle) / len(idle) if idle else None,
            checks=tuple(told[1:]),
            device=self.info,
            missing=tuple(self.missing),
            trace=powers,
        )
        if not told:
            return found
        best = told[0]
        return replace(
            found,
            energy_j=best.energy_j,
            uncertainty_j=best.uncertainty_j,
            power_w=best.energy_j / (end_s - begin_s),
            meter=best.meter,
            updates=best.updates,
        )


def _joint(
    cards: Sequence[CardEnergy], time_s: float, error: BaseException | None
) -> EnergyMeasurement:
    """Return what all cards drew together; nothing, if of one it is not known."""
    known = [one for one in cards if one.energy_j is not None]
    found = EnergyMeasurement(
        time_s=time_s,
        energy_j=None,
        uncertainty_j=None,
        power_w=None,
        cards=tuple(cards),
        error="" if error is None else class_and_line(error),
        missing=tuple(
            replace(one, reason=f"{card.name}: {one.reason}") if len(cards) > 1 else one
            for card in cards
            for one in card.missing
        ),
    )
    if not cards or len(known) < len(cards):
        return found
    energy_j = sum(one.energy_j or 0.0 for one in known)
    return replace(
        found,
        energy_j=energy_j,
        uncertainty_j=sum(one.uncertainty_j or 0.0 for one in known),
        power_w=energy_j / time_s,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class EnergyMeter:
    """Measures one block after the other; see :func:`energy_meter`.

    Nothing is asked of the card before the block begins.

    Attributes:
        gpus: as of :func:`energy_meter`.
        choice: likewise ``meter``.
        synchronize: likewise.
        margin_s: likewise; after the block no more than ``MARGIN_S``.
        strict: whether a card or a meter of it that does not work is an error.
        meters: of each card use these instead of choosing.
        module: what stands in for ``pynvml``.
        now: the clock that the meters' samples are stamped with.
        sleep: lets time pass on it.
    """

    gpus: Gpus = 0
    choice: str = "auto"
    synchronize: Callable[[], object] | None = None
    margin_s: float = MARGIN_S
    strict: bool = False
    meters: Sequence[Meter] | None = None
    module: object | None = None
    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    _open: ExitStack | None = field(default=None, init=False)
    _result: EnergyMeasurement | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<EnergyMeter: {self._state() if self._result is None else self._result}>"

    def _state(self) -> str:
        return "it has had no block" if self._open is None else "its block has not ended"

    @property
    def result(self) -> EnergyMeasurement:
        """What the last block took; of one that did not begin there is none.

        Raises:
            InputError: ``EATSS-E061``: no block has ended yet.
        """
        if self._result is None:
            raise input_error(
                "EATSS-E061",
                f"the energy meter has no result: {self._state()}",
                hint="read `meter.result` after the block of `with energy_meter() as meter:`",
            )
        return self._result

    def __enter__(self) -> Self:
        if self._open is not None:
            raise input_error(
                "EATSS-E061",
                "this energy meter is measuring a block already",
                hint="make one for each block: `with energy_meter() as inner:`",
            )
        self._result = None
        self._sources: list[_Source] = []
        with ExitStack() as stack:
            for number, card in enumerate(named_cards(self.gpus, module=self.module)):
                self._sources.append(self._opened(card, stack, first=number == 0))
            for source in self._sources:
                source.traces = stack.enter_context(source.recorder.recording())
            self._rest(self.margin_s)
            self._wait()
            self._open = stack.pop_all()
        self._begin_s = self.now()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        stack, self._open = self._open, None
        assert stack is not None
        try:
            # A block that failed is not waited for: the wait could raise, and hide why it failed.
            if error is None:
                self._wait()
        except BaseException as failure:
            error = failure
            raise
        finally:
            end_s = self.now()
            try:
                self._rest(min(MARGIN_S, self.margin_s))
            finally:
                stack.close()
                cards = [one.result(self._begin_s, end_s) for one in self._sources]
                self._result = _joint(cards, end_s - self._begin_s, error)

    def _opened(self, card: NamedCard, stack: ExitStack, *, first: bool) -> _Source:
        source, opened = _Source(card.name), None
        with source.guarded("energy" if card.reason else "device"):
            if card.reason:
                raise MeterError(card.reason)
            opened = NvmlDevice(card.device, module=self.module)
            stack.callback(opened.close)
            source.info = device_info(opened)
        if self.meters is not None:
            source.recorder = Recorder(self.meters if first else ())
        elif not card.reason:
            with source.guarded("energy"):
                chosen = choose_meters(self.choice, card.device, nvml=opened)
                source.recorder = Recorder(chosen.meters)
                source.missing += chosen.missing
        if self.strict and not source.recorder.live and (self.choice != "none" or opened is None):
            reasons = "; ".join(dict.fromkeys(one.reason for one in source.missing))
            raise input_error(
                "EATSS-E074",
                f"{source.name} cannot be metered: {reasons}",
                hint="--gpus none leaves cards out, --meter none tells time alone",
            )
        return source

    def _rest(self, seconds: float) -> None:
        """Record what comes before the block or after it."""
        if any(source.recorder.live for source in self._sources):
            self.sleep(seconds)

    def _wait(self) -> None:
        (self.synchronize or wait_for_cards)()

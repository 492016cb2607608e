"""What the energy sensors of this machine do, also under a load: lines of ``eatss doctor``."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, TypeAlias

from eatss.base.containers import in_container
from eatss.base.diagnostics import InputError
from eatss.base.frozen import frozen
from eatss.base.text import class_and_line
from eatss.cards.cuda_order import cuda_uuid
from eatss.cards.machine.environment import Check
from eatss.measurement.cupy_module import cuda_card, import_cupy
from eatss.measurement.measurement import Reading
from eatss.measurement.meters.background import CounterMeter, PowerMeter
from eatss.measurement.meters.choose import choose_meters
from eatss.measurement.meters.meter import Meter, MeterError, Trace
from eatss.measurement.meters.nvml import NvmlDevice
from eatss.measurement.meters.reading import POWER_SETTLE_S, read, update_period_s

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

"""What the energy sensors of this machine do, also under a load: lines of ``eatss doctor``."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from eatss.containers import in_container
from eatss.diagnostics import InputError
from eatss.frozen import frozen
from eatss.gpu.cuda_order import cuda_uuid
from eatss.machine.environment import Check
from eatss.measurement.cupy_module import cuda_card, import_cupy
from eatss.measurement.measurement import Reading
from eatss.measurement.meters.background import CounterMeter, PowerMeter
from eatss.measurement.meters.choose import choose_meters
from eatss.measurement.meters.meter import Meter, MeterError, Trace
from eatss.measurement.meters.nvml import GpuProcess, NvmlDevice
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
    module = cupy if cupy is not None else _cupy_for_load()
    try:
        index = _cuda_index(module, uuid)
        with module.cuda.Device(index):
            values = module.random.default_rng(0).random(_ELEMENTS, dtype=module.float32)
            kernel = module.ElementwiseKernel(
                "float32 x", "float32 y", _CHAINS, "eatss_steady_load"
            )
            out = module.empty_like(values)
            kernel(values, out)
            module.cuda.runtime.deviceSynchronize()
    except MeterError:
        raise
    except Exception as error:  # CuPy and CUDA have errors of their own
        raise _broken(error) from error

    def run(seconds: float) -> None:
        end_s = time.perf_counter() + seconds
        try:
            with module.cuda.Device(index):
                while time.perf_counter() < end_s:
                    for _ in range(_IN_FLIGHT):
                        kernel(values, out)
                    module.cuda.runtime.deviceSynchronize()
        except Exception as error:  # likewise
            raise _broken(error) from error

    return run


def _cuda_index(cupy: Any, uuid: str | None) -> int:
    runtime = cupy.cuda.runtime
    if uuid is None:
        return 0
    for index in range(runtime.getDeviceCount()):
        if cuda_uuid(runtime.getDeviceProperties(index)) == uuid:
            return index
    raise MeterError(
        f"CUDA does not see the card {uuid}", "look at CUDA_VISIBLE_DEVICES, which may hide it"
    )


def _cupy_for_load() -> Any:
    try:
        return importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise _broken(error) from error
        raise MeterError(
            "no load can be made: CuPy is not installed", "pip install 'eatss[gpu]'"
        ) from None
    except Exception as error:  # a broken installation raises anything
        raise _broken(error) from error


def _broken(error: Exception) -> MeterError:
    detail = " ".join(str(error).split())[:200]
    return MeterError(
        f"no load can be made: {type(error).__name__}: {detail}",
        "look at the line of CuPy in `eatss doctor`",
    )


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
    trial = trial or SensorTrial()
    named, numbering = _named(device, find or _told_by_cupy)
    if named is None:
        return numbering
    device = named
    try:
        card = NvmlDevice(device, module=module)
    except MeterError as error:
        return (_meters(device, None, error), *numbering)
    with closing(card):
        return (
            _meters(device, card, None),
            _other_processes(card),
            _period(card, trial),
            _agreement(card, trial) if with_load else _no_load(),
            *numbering,
        )


def _meters(device: int | str, card: NvmlDevice | None, reason: MeterError | None) -> Check:
    """Say which meters work, or why none does."""
    place = ", in a container" if in_container() else ""
    try:
        chosen = choose_meters("auto", device, nvml=card)
    except MeterError as error:
        return _not("energy meter", error, _ENERGY)
    if chosen.meters:
        names = ", ".join(meter.name for meter in chosen.meters)
        return Check(name="energy meter", ok=True, found=f"{names}{place}", needed_for=_ENERGY)
    if reason is not None:
        return _not("energy meter", reason, _ENERGY)
    return Check(
        name="energy meter",
        ok=None,
        found=chosen.missing[0].reason,
        needed_for=_ENERGY,
        remedy="time is measured all the same; energy needs a card that tells it",
    )


def _other_processes(card: NvmlDevice) -> Check:
    name = "other programs"
    try:
        processes = card.other_processes()
    except MeterError as error:
        return _not(name, error, _TRUST)
    if not processes:
        return Check(name=name, ok=True, found="none uses the card", needed_for=_TRUST)
    listed = ", ".join(_process(process) for process in processes[:4])
    more = f" and {len(processes) - 4} more" if len(processes) > 4 else ""
    verb = "uses" if len(processes) == 1 else "use"
    return Check(
        name=name,
        ok=None,
        found=f"{listed}{more} {verb} the card",
        needed_for=_TRUST,
        remedy="wait for them or choose another card (--device): what they draw would be counted",
    )


def _process(process: GpuProcess) -> str:
    if process.memory_bytes is None:
        return f"process {process.pid}"
    return f"process {process.pid} ({process.memory_bytes / 2**20:.0f} MiB)"


def _period(card: NvmlDevice, trial: SensorTrial) -> Check:
    name = "energy counter"
    meter = CounterMeter(card.total_energy_j)
    try:
        card.total_energy_j()
        meter.start()
        trial.sleep(trial.idle_s)
        period = update_period_s(meter.stop())
    except MeterError as error:
        return _not(name, error, _ENERGY)
    if isinstance(period, str):
        return _not(name, MeterError(period, "choose another meter (`--meter power`)"), _ENERGY)
    return Check(
        name=name,
        ok=True,
        found=(
            f"moves every {period.median_s * 1e3:.1f} ms, {period.longest_s * 1e3:.1f} ms at most"
            f" ({period.count} intervals)"
        ),
        needed_for=_ENERGY,
    )


def _no_load() -> Check:
    return Check(
        name="counter against power",
        ok=None,
        found="not tried; eatss doctor --sensors tells their ratio, and makes the card work for "
        "some seconds",
        needed_for=_TRUST,
        remedy="eatss doctor --sensors",
    )


def _agreement(card: NvmlDevice, trial: SensorTrial) -> Check:
    name = "counter against power"
    try:
        load = trial.load or steady_load(card.uuid)
        counted, integrated = _both(card, load, trial)
    except MeterError as error:
        return _not(name, error, _TRUST)
    ratio = counted.power_w / integrated.power_w
    agree = abs(ratio - 1) <= AGREE
    return Check(
        name=name,
        ok=True if agree else None,
        found=(
            f"ratio {ratio:.3f} under a steady load: {counted.power_w:.0f} W by the counter,"
            f" {integrated.power_w:.0f} W integrated, over {counted.span_s:.1f} s"
        ),
        needed_for=_TRUST,
        remedy=""
        if agree
        else "the sensors differ: compare only results of the same meter, and try again when idle",
    )


def _both(
    card: NvmlDevice, load: Callable[[float], None], trial: SensorTrial
) -> tuple[Reading, Reading]:
    """Return what counter and power say of the same seconds of load.

    Raises:
        MeterError: one of them says nothing.
    """
    meters: tuple[Meter, ...] = (CounterMeter(card.total_energy_j), PowerMeter(card.power_w))
    card.total_energy_j()
    card.power_w()
    for meter in meters:
        meter.start()
    try:
        begin_s = time.perf_counter()
        load(trial.settle_s + trial.load_s)
        end_s = time.perf_counter()
    finally:
        traces = [_stopped(meter) for meter in meters]
    counted, integrated = (_reading_of(trace, begin_s, end_s, trial.settle_s) for trace in traces)
    return counted, integrated


def _stopped(meter: Meter) -> Trace | MeterError:
    """Return the trace, or the error: one meter's failure must not leave the other running."""
    try:
        return meter.stop()
    except MeterError as error:
        return error


def _reading_of(
    trace: Trace | MeterError, begin_s: float, end_s: float, settle_s: float
) -> Reading:
    if isinstance(trace, MeterError):
        raise trace
    reading = read(trace, begin_s, end_s, settle_s=settle_s)
    if isinstance(reading, str):
        raise MeterError(reading, "try again; look at the line of the energy counter")
    return reading


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
            return None, (_not("energy meter", MeterError(said.message, said.hint or ""), _ENERGY),)
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


def _not(name: str, error: MeterError, needed_for: str) -> Check:
    return Check(
        name=name,
        ok=None,
        found=str(error),
        needed_for=needed_for,
        remedy=error.remedy or "try again",
    )

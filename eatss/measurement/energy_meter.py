"""``energy_meter``: time and energy of any block of Python code.

::

    with eatss.energy_meter() as meter:
        launch()
    meter.result  # EnergyMeasurement

Codes: E061 the meter measures already, E062 there is no result yet.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from eatss.diagnostics import input_error
from eatss.measurement.energy_measurement import EnergyMeasurement
from eatss.measurement.measurement import CardState, DeviceInfo, Missing
from eatss.measurement.meters.choose import METERS, choose_meters
from eatss.measurement.meters.interval_energy import IntervalEnergy, interval_energy
from eatss.measurement.meters.meter import Meter, MeterError, Trace
from eatss.measurement.meters.nvml import NvmlDevice, card_state, device_info

MARGIN_S = 0.15
"""Recorded before and after a block, so that updates of the sensor lie on both sides of it."""


def energy_meter(
    device: int | str = 0,
    meter: str = "auto",
    *,
    synchronize: Callable[[], object] | None = None,
    margin_s: float = MARGIN_S,
) -> EnergyMeter:
    """Return a context manager that measures time and energy of its block.

    Work that a GPU was given but has not finished when the block ends is not in the result. So
    wait for it at the end of the block, or pass ``synchronize``. Without it, the current device
    of CuPy, and of PyTorch once it uses CUDA, are waited for if the program has imported them.

    Blocks nest and may run in several threads, each with a meter of its own; the sensor tells of
    the whole card, so overlapping blocks each count all that it drew. A block that raises
    is measured up to there. If no meter works the block runs all the same, and the result says why
    it has no energy.

    Args:
        device: the card's number as the driver and ``nvidia-smi -L`` list it, or its UUID;
            ``CUDA_VISIBLE_DEVICES`` does not change it.
        meter: which sensor to use; ``auto`` takes the best that works.
        synchronize: called before time begins and ends to count.
        margin_s: seconds recorded before and after the block (they are waited).

    Raises:
        InputError: ``EATSS-X005``: there is no such meter.
    """
    METERS.get(meter)
    return EnergyMeter(
        device=device, choice=meter, synchronize=synchronize, margin_s=max(0.0, margin_s)
    )


@dataclass(slots=True)
class _Run:
    """What is open while a block runs."""

    card: NvmlDevice | None = None
    info: DeviceInfo | None = None
    before: CardState | None = None
    recording: list[Meter] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    begin_s: float = 0.0


class EnergyMeter:
    """Measures one block after the other; see :func:`energy_meter`."""

    def __init__(
        self,
        *,
        device: int | str = 0,
        choice: str = "auto",
        synchronize: Callable[[], object] | None = None,
        margin_s: float = MARGIN_S,
        meters: Sequence[Meter] | None = None,
        module: object | None = None,
        now: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare; nothing is asked of the card before the block begins.

        Args:
            device: see :func:`energy_meter`.
            choice: likewise ``meter``.
            synchronize: likewise.
            margin_s: likewise.
            meters: use these instead of choosing.
            module: what stands in for ``pynvml``.
            now: the clock that the meters' samples are stamped with.
            sleep: lets time pass on it.
        """
        self._device = device
        self._choice = choice
        self._synchronize = synchronize
        self._margin_s = margin_s
        self._meters = meters
        self._module = module
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._run: _Run | None = None
        self._result: EnergyMeasurement | None = None

    @property
    def result(self) -> EnergyMeasurement:
        """What the last block took.

        Raises:
            InputError: ``EATSS-E062``: no block has ended yet.
        """
        if self._run is not None or self._result is None:
            state = "its block has not ended" if self._run is not None else "it has had no block"
            raise input_error(
                "EATSS-E062",
                f"the energy meter has no result: {state}",
                hint="read `meter.result` after the block of `with energy_meter() as meter:`",
            )
        return self._result

    def __enter__(self) -> Self:
        run = _Run()
        with self._lock:
            if self._run is not None:
                raise input_error(
                    "EATSS-E061",
                    "this energy meter is measuring a block already",
                    hint="make one for each block: `with energy_meter() as inner:`",
                )
            self._run = run
        try:
            self._begin(run)
        except BaseException:
            try:
                self._end(run)
            finally:
                self._run = None
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run = self._run
        if run is None:
            return
        try:
            # A block that failed is not waited for: the wait could raise, and hide why it failed.
            if error is None:
                self._wait(run)
        except BaseException as failure:
            error = failure
            raise
        finally:
            end_s = self._now()
            try:
                if run.recording:
                    self._sleep(self._margin_s)
            finally:
                try:
                    self._finish(run, end_s, error)
                finally:
                    self._run = None

    def _begin(self, run: _Run) -> None:
        self._open(run)
        for meter in self._choose(run):
            try:
                meter.start()
            except MeterError as error:
                run.missing.append(_missing(f"energy by {meter.name}", error))
            else:
                run.recording.append(meter)
        if run.recording:
            self._sleep(self._margin_s)
        self._wait(run)
        run.begin_s = self._now()

    def _open(self, run: _Run) -> None:
        try:
            run.card = NvmlDevice(self._device, module=self._module)
        except MeterError as error:
            run.missing.append(_missing("device", error))
            return
        run.info = device_info(run.card)
        run.before = card_state(run.card)

    def _choose(self, run: _Run) -> Sequence[Meter]:
        if self._meters is not None:
            return self._meters
        try:
            chosen = choose_meters(self._choice, self._device, nvml=run.card)
        except MeterError as error:
            run.missing.append(_missing("energy", error))
            return ()
        run.missing.extend(chosen.missing)
        return chosen.meters

    def _wait(self, run: _Run) -> None:
        if self._synchronize is not None:
            self._synchronize()
            return
        for name, wait in (("cupy", _wait_for_cupy), ("torch", _wait_for_torch)):
            try:
                wait()
            except Exception as error:  # of the framework's own making
                reason = f"{name} could not be waited for: {' '.join(str(error).split())[:200]}"
                if all(reason != known.reason for known in run.missing):
                    run.missing.append(Missing(what="synchronisation", reason=reason))

    def _end(self, run: _Run) -> list[Trace]:
        """Stop what records and close the card; return the traces."""
        traces = []
        for meter in run.recording:
            try:
                traces.append(meter.stop())
            except MeterError as error:
                run.missing.append(_missing(f"energy by {meter.name}", error))
        run.recording = []
        if run.card is not None:
            try:
                run.card.close()
            except MeterError as error:
                run.missing.append(_missing("device", error))
        return traces

    def _finish(self, run: _Run, end_s: float, error: BaseException | None) -> None:
        after = None if run.card is None else card_state(run.card)
        told: list[IntervalEnergy] = []
        for trace in self._end(run):
            energy = interval_energy(trace, run.begin_s, end_s)
            if isinstance(energy, str):
                run.missing.append(Missing(what=f"energy by {trace.meter}", reason=energy))
            else:
                told.append(energy)
        best = told[0] if told else None
        time_s = end_s - run.begin_s
        if best is None and not any(m.what.startswith("energy") for m in run.missing):
            run.missing.append(Missing(what="energy", reason="no meter was given"))
        self._result = EnergyMeasurement(
            time_s=time_s,
            energy_j=None if best is None else best.energy_j,
            uncertainty_j=None if best is None else best.uncertainty_j,
            power_w=None if best is None else best.energy_j / time_s,
            meter=None if best is None else best.meter,
            updates=0 if best is None else best.updates,
            checks=tuple(told[1:]),
            device=run.info,
            before=run.before,
            after=after,
            error="" if error is None else _sentence(error),
            missing=tuple(run.missing),
        )


def _wait_for_cupy() -> None:
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        cupy.cuda.runtime.deviceSynchronize()


def _wait_for_torch() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _missing(what: str, error: MeterError) -> Missing:
    return Missing(what=what, reason=f"{error} ({error.remedy})" if error.remedy else str(error))


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")

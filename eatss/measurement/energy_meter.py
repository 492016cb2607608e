"""``energy_meter``: time and energy of any block of Python code.

::

    with eatss.energy_meter(gpus="all") as meter:
        launch()
    meter.result  # EnergyMeasurement

Codes: E061 the meter measures already, or there is no result yet, E064
``gpus`` are none.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.text import class_and_line, one_line
from eatss.measurement.card import Gpus, NamedCard, checked_gpus, named_cards
from eatss.measurement.energy_measurement import EnergyMeasurement
from eatss.measurement.energy_source import (
    Source,
    energy_result,
    guarded,
)
from eatss.measurement.measurement import Missing
from eatss.measurement.meters.choose import METERS, choose_meters
from eatss.measurement.meters.meter import Meter
from eatss.measurement.meters.nvml import NvmlDevice, device_info

Numbers = tuple[int, ...]


@frozen
class Waited:
    """What was waited for, in words, and why something could not be."""

    by: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def wait_for_frameworks(in_use: Callable[[], Numbers | None] | None = None) -> Waited:
    """Wait for the cards that CuPy and PyTorch use, if the program has imported them.

    A card that the program has not touched is left alone: waiting for it would begin to use it.
    Where CUDA does not tell which cards are in use, each framework waits for its current card.

    Args:
        in_use: tells which cards this process uses, as :func:`cards_in_use`.
    """
    by: list[str] = []
    failures: list[str] = []
    for name, (current, wait) in _FRAMEWORKS.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            used = (in_use or cards_in_use)()
            first = None if used == () else current(module)
            if first is None:
                continue
            cards = sorted(used or (first,), key=lambda number: (number != first, number))
            for number in cards:
                wait(module, number)
        except Exception as error:  # of the framework's own making
            failures.append(f"{name} could not be waited for: {one_line(error)}")
        else:
            by.append(f"{name}: card{'s' * (len(cards) > 1)} {', '.join(map(str, cards))}")
    return Waited(by=tuple(by), failures=tuple(failures))


def _wait_for_cupy(cupy: Any, number: int) -> None:
    with cupy.cuda.Device(number):
        cupy.cuda.runtime.deviceSynchronize()


_FRAMEWORKS: Mapping[str, tuple[Callable[[Any], int | None], Callable[[Any, int], object]]] = {
    "cupy": (lambda cupy: int(cupy.cuda.runtime.getDevice()), _wait_for_cupy),
    "torch": (
        lambda torch: int(torch.cuda.current_device()) if torch.cuda.is_initialized() else None,
        lambda torch, number: torch.cuda.synchronize(number),
    ),
}
"""Of a framework: its current card, ``None`` if it uses none, and what waits for a card."""


def cards_in_use(cuda: Any = None) -> Numbers | None:
    """Return the cards that this process uses: where it has a CUDA context.

    Args:
        cuda: what stands in for the driver's library.

    Returns:
        Their numbers; none if the process has not begun to use CUDA; ``None`` if it is not known.
    """
    count, flags, active, device = (ctypes.c_int() for _ in range(4))
    found: list[int] = []
    try:
        library = cuda if cuda is not None else ctypes.CDLL("libcuda.so.1")
        if library.cuDeviceGetCount(ctypes.byref(count)):
            return ()
        for number in range(count.value):
            failed = library.cuDeviceGet(ctypes.byref(device), number)
            failed = failed or library.cuDevicePrimaryCtxGetState(
                device, ctypes.byref(flags), ctypes.byref(active)
            )
            if not failed and active.value:
                found.append(number)
    except (OSError, AttributeError):
        return None
    return tuple(found)


MARGIN_S = 0.15
"""Recorded before and after a block, so that updates of the sensor lie on both sides of it."""


def energy_meter(
    device: int | str = 0,
    meter: str = "auto",
    *,
    gpus: Gpus | None = None,
    synchronize: Callable[[], object] | None = None,
    margin_s: float = MARGIN_S,
) -> EnergyMeter:
    """Return a context manager that measures time and energy of its block.

        with eatss.energy_meter(gpus=[0, 1]) as meter:
            forward()
        print(meter.result)

    Work that a GPU was given but has not finished when the block ends is not in the result. So
    what was launched is waited for before time begins and before it ends: by ``synchronize``, or
    without it by CuPy and PyTorch for the cards they use, if the program has imported them. Other
    frameworks need ``synchronize``. ``waited_for`` of the result says what was waited for.

    Blocks nest and may run in several threads, each with a meter of its own; the sensor tells of
    the whole card, so overlapping blocks each count all that it drew. A block that raises
    is measured up to there. If no meter works the block runs all the same, and the result says why
    it has no energy. Energy that the sensor is too slow to tell is ``None`` with a reason.

    Args:
        device: one card, as ``gpus`` names it.
        meter: which sensor of the cards to use; ``auto`` takes the best that works.
        gpus: cards in the place of ``device``: the number of one as CUDA counts, so that
            ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` hold; its UUID; a list of them;
            ``"all"`` that CUDA sees; ``[]`` for none.
        synchronize: called before time begins and ends to count.
        margin_s: seconds recorded before and after the block (they are waited).

    Raises:
        InputError: ``EATSS-X005``: there is no such meter; ``EATSS-E064``: ``gpus`` or ``device``
            names no cards.
    """
    METERS.get(meter)
    return EnergyMeter(
        device=checked_gpus(device, "device") if gpus is None else checked_gpus(gpus),
        choice=meter,
        synchronize=synchronize,
        margin_s=max(0.0, margin_s),
    )


@dataclass(slots=True)
class _Run:
    """What is open while a block runs."""

    sources: list[Source] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    waited_for: list[str] = field(default_factory=list)
    begin_s: float = 0.0

    def note(self, what: str, reason: str) -> None:
        if all(reason != known.reason for known in self.missing):
            self.missing.append(Missing(what=what, reason=reason))


@dataclass(kw_only=True, eq=False, repr=False)
class EnergyMeter:
    """Measures one block after the other; see :func:`energy_meter`.

    Nothing is asked of the card before the block begins.

    Attributes:
        device: ``gpus`` of :func:`energy_meter`.
        choice: likewise ``meter``.
        synchronize: likewise.
        margin_s: likewise; after the block no more than ``MARGIN_S``.
        strict: whether a card or a meter of it that does not work is an error.
        meters: of each card use these instead of choosing.
        module: what stands in for ``pynvml``.
        root: where ``/sys`` is looked for.
        now: the clock that the meters' samples are stamped with.
        sleep: lets time pass on it.
    """

    device: Gpus = 0
    choice: str = "auto"
    synchronize: Callable[[], object] | None = None
    margin_s: float = MARGIN_S
    strict: bool = False
    meters: Sequence[Meter] | None = None
    module: object | None = None
    root: Path = Path("/")
    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _run: _Run | None = field(default=None, init=False)
    _result: EnergyMeasurement | None = field(default=None, init=False)

    def __repr__(self) -> str:
        measured = None if self._run is not None else self._result
        return f"<EnergyMeter: {self._state() if measured is None else measured}>"

    def _state(self) -> str:
        return "its block has not ended" if self._run is not None else "it has had no block"

    @property
    def result(self) -> EnergyMeasurement:
        """What the last block took; of one that did not begin there is none.

        Raises:
            InputError: ``EATSS-E061``: no block has ended yet.
        """
        if self._run is not None or self._result is None:
            raise input_error(
                "EATSS-E061",
                f"the energy meter has no result: {self._state()}",
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
            self._run, self._result = run, None
        try:
            self._begin(run)
        except BaseException:
            _close(run)
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
            end_s = self.now()
            try:
                if any(source.recording for source in run.sources):
                    self.sleep(min(MARGIN_S, self.margin_s))
            finally:
                self._finish(run, end_s, error)
                self._run = None

    def _begin(self, run: _Run) -> None:
        for number, card in enumerate(named_cards(self.device, module=self.module)):
            self._open(run, card, first=number == 0)
        for source in run.sources:
            source.start()
        if any(source.recording for source in run.sources):
            self.sleep(self.margin_s)
        self._wait(run)
        run.begin_s = self.now()

    def _open(self, run: _Run, card: NamedCard, *, first: bool) -> None:
        source = Source(card.name)
        run.sources.append(source)
        if card.reason:
            source.missing.append(Missing(what="energy", reason=card.reason))
        elif self.meters is not None:
            self._look_up(source, card)
            source.meters = self.meters if first else ()
        else:
            self._look_up(source, card)
            with guarded("energy", source.missing):
                chosen = choose_meters(self.choice, card.device, nvml=source.card, root=self.root)
                source.meters = chosen.meters
                source.missing.extend(chosen.missing)
        if self.strict and not source.meters and (self.choice != "none" or source.card is None):
            reasons = "; ".join(dict.fromkeys(one.reason for one in source.missing))
            raise input_error(
                "EATSS-E074",
                f"{source.name} cannot be metered: {reasons}",
                hint="--gpus none leaves cards out, --meter none tells time alone",
            )

    def _look_up(self, source: Source, card: NamedCard) -> None:
        with guarded("device", source.missing):
            source.card = NvmlDevice(card.device, module=self.module)
            source.info = device_info(source.card)

    def _wait(self, run: _Run) -> None:
        if self.synchronize is not None:
            self.synchronize()
            if "synchronize()" not in run.waited_for:
                run.waited_for.append("synchronize()")
            return
        waited = wait_for_frameworks()
        run.waited_for += (one for one in waited.by if one not in run.waited_for)
        for failure in waited.failures:
            run.note("synchronisation", failure)

    def _finish(self, run: _Run, end_s: float, error: BaseException | None) -> None:
        _close(run)
        found = energy_result(run.sources, run.begin_s, end_s)
        self._result = replace(
            found,
            error="" if error is None else class_and_line(error),
            missing=(*found.missing, *run.missing),
            waited_for=tuple(run.waited_for),
        )


def _close(run: _Run) -> None:
    for source in reversed(run.sources):
        source.close()

"""Any program in, its time, energy and power on the cards out: ``eatss meter``.

Meters run beside it, from its start to its end. It runs as a shell runs it: streams, signals and
exit code are its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, fields, replace
from pathlib import Path
from types import FrameType
from typing import Any

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.measurement.card import NamedCard, named_cards
from eatss.measurement.energy_measurement import SourceEnergy
from eatss.measurement.energy_meter import MARGIN_S
from eatss.measurement.energy_source import Source, cpu_sources, reason_of
from eatss.measurement.measurement import DeviceInfo, Missing
from eatss.measurement.meters.background import PowerMeter
from eatss.measurement.meters.choose import METERS, choose_meters
from eatss.measurement.meters.interval_energy import IntervalEnergy
from eatss.measurement.meters.meter import MeterError, PowerSample
from eatss.measurement.meters.nvml import NvmlDevice, device_info
from eatss.measurement.options import MeterOptions

NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes, as of a shell, where a program is not there or cannot be started."""

_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT)
"""Reach the program as well, where they come from a terminal."""

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class NotStartedError(InputError):
    """A program that cannot be started (``EATSS-E091``); ``status`` is what a shell returns."""

    status: int = NOT_FOUND


class Child:
    """Runs a program once or several times; signals to this process go to the one that runs."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self.ended_by_signal = False

    def run(self) -> int:
        """Run it to its end and return its exit code, 128 + N where signal N ended it.

        Raises:
            NotStartedError: it cannot be started.
        """
        try:
            self._process = subprocess.Popen(self._command)  # noqa: S603
        except OSError as error:
            raise _not_started(self._command[0], error) from None
        code = self._process.wait()
        self._process = None
        return code if code >= 0 else 128 - code

    @contextmanager
    def taking_signals(self) -> Iterator[None]:
        """Hand on signals in the block, in the main thread; elsewhere they stay as they are.

        One that comes while nothing runs ends this process as Ctrl-C does. Signals that are
        ignored, as ``nohup`` makes them, stay so.
        """
        main = threading.current_thread() is threading.main_thread()
        taken = [
            number
            for number in (*_OF_TERMINALS, *_FORWARDED)
            if main and signal.getsignal(number) not in (signal.SIG_IGN, None)
        ]
        before = {number: signal.signal(number, self._hand_on) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        ends = number not in (signal.SIGUSR1, signal.SIGUSR2)
        self.ended_by_signal |= ends
        if self._process is None:
            if ends:
                raise KeyboardInterrupt
        elif number in _FORWARDED:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def _not_started(name: str, error: OSError) -> NotStartedError:
    found = input_error(
        "EATSS-E091",
        f"'{name}' cannot be started: {error.strerror or error}",
        hint="give the program after --, as in: eatss meter -- ./gemm 4000",
    )
    failure = NotStartedError(*found.diagnostics)
    failure.status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
    return failure


PROGRAM_ENERGY_SCHEMA = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@frozen
class Drawn:
    """What a card or a CPU package drew while a program ran, all of it: idle power, other programs.

    The true energy lies within ``energy_j ± uncertainty_j``, as far as the sensor is right.
    ``energy_j`` is of all runs together. ``power_w`` is the mean, ``peak_power_w`` the largest
    value that the driver told, which on most cards is a mean over some time itself;
    ``idle_power_w`` the mean before the program began. ``updates`` counts the values of ``meter``.
    ``checks`` are what other sensors tell; ``contradiction`` says where one differs by more than
    both leave open. What is ``None`` stands in ``missing`` with the reason.
    """

    energy_j: float | None
    uncertainty_j: float | None
    power_w: float | None
    peak_power_w: float | None
    idle_power_w: float | None
    meter: str | None
    updates: int
    missing: tuple[Missing, ...]
    checks: tuple[IntervalEnergy, ...] = ()
    contradiction: str = ""
    trace: tuple[PowerSample, ...] = field(default=(), repr=False)


@frozen
class CardEnergy(Drawn):
    """What one card drew while a program ran."""

    device: DeviceInfo


@frozen
class CpuEnergy(Drawn):
    """What one CPU package drew; ``name`` is ``CPU package 0``, ``CPU`` where none can be read."""

    name: str


@frozen
class ProgramEnergy(Shown):
    """What a program took, start-up and all.

    It was run ``runs`` times, one after the other, and ``command`` is its command line. ``cards``
    are those that were metered, ``cpus`` the CPU packages if these were asked for. ``time_s`` is
    that of all runs together. ``exit_code`` is the last run's; a run that fails is the last.
    """

    shown_by = "eatss.report.measurement:program_energy_parts"

    command: tuple[str, ...]
    runs: int
    exit_code: int
    time_s: float
    cards: tuple[CardEnergy, ...]
    cpus: tuple[CpuEnergy, ...] = ()
    schema_version: int = PROGRAM_ENERGY_SCHEMA


_TRACE = "power trace"


def meter_program(
    command: Sequence[str],
    options: MeterOptions | None = None,
    *,
    module: Any = None,
    root: Path = Path("/"),
    now: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> ProgramEnergy:
    """Run a program and tell what its cards and CPUs drew.

    The program has this process's standard streams; signals that come meanwhile are its.

    Args:
        command: the program and its arguments.
        options: which cards, and how; the first card by default. One that is named
            twice is metered once.
        module: what stands in for ``pynvml``.
        root: where ``/sys`` is looked for.
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
        named = named_cards(options.devices, module=module)
        if not named.cards and options.devices:
            reasons = "; ".join(one.reason for one in named.missing)
            raise no_card(MeterError(reasons), cpu=options.cpu)
        cards = [_card(card, options, closing, module) for card in named.cards]
        cpus = list(cpu_sources(root)) if options.cpu else []
        for source in (*cards, *cpus):
            closing.callback(source.stop)
            source.start()
        with child.taking_signals():
            sleep(options.idle_s)
            begin_s, runs, code = now(), 0, 0
            while runs < options.repeat and not code and not (runs and child.ended_by_signal):
                code = child.run()
                runs += 1
            end_s = now()
            sleep(MARGIN_S)
        for source in (*cards, *cpus):
            source.stop()
    return ProgramEnergy(
        # bytes that are no text get a backslash
        command=tuple(os.fsencode(one).decode("utf-8", "backslashreplace") for one in command),
        runs=runs,
        exit_code=code,
        time_s=end_s - begin_s,
        cards=tuple(
            CardEnergy(device=source.info, **_drawn(source.result(begin_s, end_s)))
            for source in cards
            if source.info is not None
        ),
        cpus=tuple(
            CpuEnergy(name=source.name, **_drawn(source.result(begin_s, end_s))) for source in cpus
        ),
    )


def no_card(error: MeterError, *, cpu: bool = False) -> InputError:
    """Return the error of a card that cannot be metered, maybe beside CPUs."""
    alone = "for the CPUs alone: --gpus none" if cpu else "for time alone: time -p PROGRAM"
    hint = f"{error.remedy}; " if error.remedy else ""
    told = str(error).startswith("there is no card")
    return input_error(
        "EATSS-E090",
        str(error) if told else f"there is no card to meter: {error}",
        hint=f"{hint}{alone}",
    )


def _card(named: NamedCard, options: MeterOptions, closing: ExitStack, module: Any) -> Source:
    """Return what records a card; a meter that was asked for and does not work is an error."""
    if named.reason:
        raise no_card(MeterError(named.reason), cpu=options.cpu)
    try:
        card = NvmlDevice(named.device, module=module)
    except MeterError as error:
        raise no_card(error, cpu=options.cpu) from None
    closing.callback(card.close)
    source = Source(named.name, "card", info=device_info(card))
    try:
        source.take(choose_meters(options.meter, card.uuid, nvml=card))
    except Exception as error:  # a meter that was registered may raise anything
        remedy = error.remedy if isinstance(error, MeterError) else ""
        said = error if isinstance(error, MeterError) else reason_of(error)
        raise input_error(
            "EATSS-E074",
            f"the meter '{options.meter}' does not work here: {said}",
            hint=remedy or "take --meter auto",
        ) from None
    source.tracer = PowerMeter(card.power_w, name=_TRACE, poll_s=options.interval_s)
    return source


def _drawn(found: SourceEnergy) -> dict[str, Any]:
    """Return the fields of :class:`Drawn`; the idle power is that before the program began."""
    idle = [sample.power_w for sample in found.trace if sample.time_s < 0]
    own = {one.name: getattr(found, one.name, None) for one in fields(Drawn)}
    return own | {"idle_power_w": sum(idle) / len(idle) if idle else None}


def without_trace(found: ProgramEnergy) -> ProgramEnergy:
    """Return the same without power samples."""
    return replace(
        found,
        cards=tuple(replace(card, trace=()) for card in found.cards),
        cpus=tuple(replace(cpu, trace=()) for cpu in found.cpus),
    )

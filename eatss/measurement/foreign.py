"""Any program in, its time, energy and power on the cards out: ``eatss meter``.

Meters run beside it, from its start to its end. It runs as a shell runs it: streams, signals and
exit code are its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.shown import Shown
from eatss.base.text import Texts
from eatss.measurement.energy_meter import CardEnergy, EnergyMeter
from eatss.measurement.meters.choose import METERS
from eatss.measurement.options import MeterOptions

NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes, as of a shell, where a program is not there or cannot be started."""


class NotStartedError(InputError):
    """A program that cannot be started (``EATSS-E091``); ``status`` is what a shell returns."""

    status: int = NOT_FOUND


def _run(command: Sequence[str], times: int) -> tuple[int, int]:
    """Run a program some times, or until one fails or is signalled; return runs and exit code.

    The exit code is 128 + N where signal N ended it. Ctrl-C reaches it from its terminal, SIGTERM
    and SIGHUP are handed on to it; signals that are ignored, as ``nohup`` makes them, stay so.

    Raises:
        NotStartedError: it cannot be started.
    """
    process: subprocess.Popen[bytes] | None = None
    signalled = False

    def hand_on(number: int, _: FrameType | None) -> None:
        nonlocal signalled
        signalled = True
        if process is None:
            raise KeyboardInterrupt
        if number != signal.SIGINT:
            process.send_signal(number)

    main = threading.current_thread() is threading.main_thread()
    before = {
        number: signal.signal(number, hand_on)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if main and signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    runs = code = 0
    try:
        while runs < times and not code and not signalled:
            try:
                process = subprocess.Popen(command)  # noqa: S603
            except OSError as error:
                raise _not_started(command[0], error) from None
            code = process.wait()
            process = None
            runs += 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return runs, code if code >= 0 else 128 - code


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
class ProgramEnergy(Shown):
    """What a program took, start-up and all.

    It was run ``runs`` times, one after the other, and ``command`` is its command line. ``cards``
    are those that were metered; energies are of all runs together, idle power and other programs
    included. ``time_s`` is that of all runs. ``exit_code`` is the last run's; a run that fails is
    the last.
    """

    shown_by = "program_energy"

    command: Texts
    runs: int
    exit_code: int
    time_s: float
    cards: tuple[CardEnergy, ...]
    schema_version: int = PROGRAM_ENERGY_SCHEMA


IDLE_S = 1.0
"""Seconds recorded before the program begins: what most drivers average power over."""


def meter_program(
    command: Sequence[str],
    options: MeterOptions | None = None,
    *,
    margin_s: float = IDLE_S,
    **of_meter: Any,
) -> ProgramEnergy:
    """Run a program and tell what its cards drew.

    The program has this process's standard streams; signals that come meanwhile are its.

    Args:
        command: the program and its arguments.
        options: which cards, and how; the first card by default. One that is named
            twice is metered once.
        margin_s: seconds recorded before the program begins, idle.
        of_meter: more fields of :class:`~eatss.measurement.energy_meter.EnergyMeter`.

    Raises:
        InputError: ``EATSS-E074``, there is no such card, or its meter does not work;
            ``EATSS-X005``, no such meter.
        NotStartedError: ``EATSS-E091``, the program cannot be started.
    """
    options = options or MeterOptions()
    METERS.get(options.meter)
    meter = EnergyMeter(
        gpus=options.devices,
        choice=options.meter,
        synchronize=lambda: None,
        margin_s=margin_s,
        strict=True,
        **of_meter,
    )
    with meter:
        runs, code = _run(command, options.repeat)
    found = meter.result
    return ProgramEnergy(
        # bytes that are no text get a backslash
        command=tuple(os.fsencode(one).decode("utf-8", "backslashreplace") for one in command),
        runs=runs,
        exit_code=code,
        time_s=found.time_s,
        cards=found.cards,
    )

"""Meters that are programs: one that prints a line of text for each value."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from eatss.measurement.meters.meter import MeterError, Sample, Trace

END_S = 2.0
"""How long the program may take to end when asked to."""

FIRST_VALUE_S = 5.0
"""How long the program may take to its first value; a shorter recording may be empty."""


class SubprocessMeter:
    """Runs a program and turns the lines it prints into samples of power.

    ``parse`` gets a line and the moment at which it was read, and returns a sample or ``None``
    for a line without a value.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        parse: Callable[[str, float], Sample | None],
        remedy: str,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._parse = parse
        self._remedy = remedy
        self._process: subprocess.Popen[str] | None = None
        self._threads: tuple[threading.Thread, ...] = ()
        self._samples: list[Sample] = []
        self._said: list[str] = []
        self._begin_s = 0.0

    @property
    def name(self) -> str:
        """Name for results."""
        return self._name

    @property
    def ended(self) -> bool:
        """Whether the program has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Start the program.

        Raises:
            MeterError: it is not there or may not be run.
        """
        if self._process is not None:
            raise MeterError(
                f"{self._name} is recording already", "make a meter for each thread that measures"
            )
        self._samples, self._said = [], []
        self._begin_s = time.perf_counter()
        try:
            process = subprocess.Popen(  # noqa: S603  (a fixed program, no shell)
                self._command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                bufsize=1,
            )
        except OSError as error:
            raise MeterError(
                f"{self._command[0]} does not start: {error.strerror or error}", self._remedy
            ) from None
        self._process = process
        self._threads = tuple(
            threading.Thread(target=target, args=(process,), name=self._name, daemon=True)
            for target in (self._follow, self._listen)
        )
        for thread in self._threads:
            thread.start()

    def _follow(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            sample = self._parse(line.strip(), time.perf_counter())
            if sample is not None:
                self._samples.append(sample)
            elif line.strip():
                self._said.append(line.strip())

    def _listen(self, process: subprocess.Popen[str]) -> None:
        for line in process.stderr or ():
            if line.strip():
                self._said.append(line.strip())

    def stop(self) -> Trace:
        """End the program and return what it told.

        Raises:
            MeterError: the program ended by itself, or printed something else than values.
        """
        process = self._process
        if process is None:
            raise MeterError(f"{self._name} was not recording")
        self._process = None
        status = process.poll()
        if status is None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._threads:
            thread.join(END_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        said = f": {self._said[-1][:200]}" if self._said else ""
        if status is not None:
            raise MeterError(
                f"{self._name} ended by itself with status {status}{said}", self._remedy
            )
        silent = time.perf_counter() - self._begin_s > FIRST_VALUE_S
        if not self._samples and (self._said or silent):
            raise MeterError(f"{self._name} gave no value{said}", self._remedy)
        return Trace(meter=self._name, kind="power", samples=tuple(self._samples))

"""Power by ``nvidia-smi``, for machines whose NVML Python cannot reach, and as a second witness."""

from __future__ import annotations

import csv
import re
import subprocess
import time
from datetime import datetime

from eatss.measurement.meters.background import SubprocessMeter
from eatss.measurement.meters.meter import MeterError, Sample

SMI_NAME = "nvidia-smi"
SMI_PERIOD_MS = 50
SMI_ANSWER_S = 20.0

_FIELDS = ("power.draw.average", "power.draw", "power.draw.instant")
"""Best first: the mean of the last second can be integrated, a momentary value swings."""

_REMEDY = "install the NVIDIA driver, which brings nvidia-smi: https://www.nvidia.com/drivers"
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_CLOCKS_AGREE_S = 1.0


class SmiMeter(SubprocessMeter):
    """``nvidia-smi`` in a process of its own, printing the power every 50 ms."""

    def __init__(self, device: int | str = 0, *, command: str = "nvidia-smi") -> None:
        super().__init__(SMI_NAME, [command], self._sample, _REMEDY)
        self._program = command
        self._device = str(device)
        self._field = ""

    def probe(self) -> str:
        """Return the field of power that this driver and card answer.

        Raises:
            MeterError: nvidia-smi is not there, fails, or tells no power.
        """
        said = ""
        for field in _FIELDS:
            answer = self._once(field)
            if answer.returncode == 0 and smi_power_w(answer.stdout.strip()) is not None:
                self._field = field
                return field
            said = " ".join((answer.stdout.strip() or answer.stderr.strip()).split())[:200]
        raise MeterError(
            f"nvidia-smi tells no power of card {self._device}: {said or 'it says nothing'}",
            "look at `nvidia-smi -q -d POWER`; choose another meter (`--meter`)",
        )

    def _once(self, field: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603  (a fixed program, no shell)
                [self._program, *self._query(field)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SMI_ANSWER_S,
                check=False,
            )
        except FileNotFoundError:
            raise MeterError("nvidia-smi is not on the path", _REMEDY) from None
        except OSError as error:
            raise MeterError(f"nvidia-smi does not start: {error.strerror}", _REMEDY) from None
        except subprocess.TimeoutExpired:
            raise MeterError(
                f"nvidia-smi did not answer in {SMI_ANSWER_S:g} s",
                "look for errors of the driver with `dmesg | grep -i nvrm`",
            ) from None

    def _query(self, field: str) -> list[str]:
        return [f"--query-gpu={field},timestamp", "--format=csv,noheader", "-i", self._device]

    def _begin(self) -> None:
        query = self._query(self._field or self.probe())
        self.command = [self._program, *query, "-lms", str(SMI_PERIOD_MS)]
        self._earliest_s = time.perf_counter() - _CLOCKS_AGREE_S
        self._offset_s = time.time() - time.perf_counter()
        super()._begin()

    def _sample(self, line: str, read_s: float) -> Sample | None:
        """Take the line's own time where it fits that of reading: pipes may hold lines back."""
        power_w = smi_power_w(line)
        if power_w is None:
            return None
        wall_s = smi_time_s(line)
        time_s = read_s if wall_s is None else wall_s - self._offset_s
        if not self._earliest_s <= time_s <= read_s + _CLOCKS_AGREE_S:
            time_s = read_s
        return Sample(time_s=min(time_s, read_s), value=power_w)


def smi_power_w(line: str) -> float | None:
    """Return the watts of a line like ``92.41 W, 2026/11/21 16:20:51.123``; else ``None``.

    ``[N/A]``, ``[Not Supported]``, ``[Unknown Error]`` and the line of a header give ``None``.
    """
    cell = _cells(line)[0] if line else ""
    number, _, unit = cell.partition(" ")
    if not _NUMBER.fullmatch(number) or unit not in {"", "W"}:
        return None
    return float(number)


def smi_time_s(line: str) -> float | None:
    """Return the seconds since 1970 of the line's time stamp, which is local; ``None`` without."""
    for cell in _cells(line)[1:]:
        for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
            try:
                return datetime.strptime(cell, form).timestamp()
            except ValueError:
                continue
    return None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line]), [""])]

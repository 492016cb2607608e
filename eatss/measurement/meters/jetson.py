"""Power of a Jetson's GPU rail: the INA3221 monitor in sysfs, or the tool ``tegrastats``.

Jetsons have no counter of energy, and NVML tells no power of them. The paper measured a Xavier
this way [EATSS, Sec. V].
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from pathlib import Path

from eatss.base.frozen import frozen
from eatss.measurement.meters.background import PowerMeter, SubprocessMeter
from eatss.measurement.meters.meter import Meter, MeterError, Sample

SYSFS_POLL_S = 0.02
"""The monitor converts its three channels in some milliseconds."""

TEGRASTATS_PERIOD_MS = 50
TEGRASTATS_ANSWER_S = 3.0

_RAIL = re.compile(r"(?<![\w/])([A-Z][A-Z0-9_]*) (\d+)(?:mW)?/(\d+)(?:mW)?(?![\w/])")
_REMEDY = "run on a Jetson, as a user who may read its power monitor (`sudo tegrastats`)"


@frozen
class Rail:
    """A supply of the board: a file of milliwatts, or two of millivolts and milliamperes."""

    name: str
    files: tuple[Path, ...]

    def power_w(self) -> float:
        """Return the power now.

        Raises:
            MeterError: the monitor does not answer.
        """
        try:
            values = [int(file.read_text(encoding="ascii")) for file in self.files]
        except (OSError, ValueError) as error:
            raise MeterError(f"the power monitor of {self.name} fails: {error}", _REMEDY) from None
        return values[0] / 1e3 if len(values) == 1 else values[0] * values[1] / 1e6


def jetson_meter(*, root: Path = Path("/")) -> Meter:
    """Return a meter on the GPU's rail, named after the rail.

    Raises:
        MeterError: this is no Jetson, or its monitor cannot be read.
    """
    rails = ina3221_rails(root)
    rail_name = gpu_rail(tuple(rail.name for rail in rails))
    if rail_name is not None:
        rail = next(rail for rail in rails if rail.name == rail_name)
        rail.power_w()
        return rail_meter(rail)
    if shutil.which("tegrastats"):
        return tegrastats_meter()
    if rails:
        names = ", ".join(rail.name for rail in rails)
        raise MeterError(f"the power monitor has no rail of the GPU (only {names})", _REMEDY)
    raise MeterError("this machine has no INA3221 power monitor and no tegrastats", _REMEDY)


def rail_meter(rail: Rail) -> PowerMeter:
    """Return a meter that samples one rail in sysfs."""
    return PowerMeter(rail.power_w, name=f"INA3221 rail {rail.name}", poll_s=SYSFS_POLL_S)


def ina3221_rails(root: Path = Path("/")) -> tuple[Rail, ...]:
    """Return the rails of all INA3221 monitors, as old (iio) and new (hwmon) kernels list them."""
    drivers = root / "sys/bus/i2c/drivers"
    rails = []
    for label in sorted(drivers.glob("ina3221x/*/iio:device*/rail_name_*")):
        channel = label.name.removeprefix("rail_name_")
        power = label.with_name(f"in_power{channel}_input")
        name = _line(label)
        if name and power.exists():
            rails.append(Rail(name=name, files=(power,)))
    for label in _hwmon_labels(root):
        channel = label.name.removeprefix("in").removesuffix("_label")
        files = (label.with_name(f"in{channel}_input"), label.with_name(f"curr{channel}_input"))
        name = _line(label)
        # The fourth and later channels are sums of shunt voltages and have no current.
        if name and all(file.exists() for file in files):
            rails.append(Rail(name=name, files=files))
    return tuple(rails)


def _hwmon_labels(root: Path) -> list[Path]:
    direct = root.glob("sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*/in*_label")
    by_class = (
        label
        for name in sorted(root.glob("sys/class/hwmon/hwmon*/name"))
        if _line(name) == "ina3221"
        for label in name.parent.glob("in*_label")
    )
    unique = {label.resolve(): label for label in (*sorted(direct), *sorted(by_class))}
    return list(unique.values())


def gpu_rail(names: tuple[str, ...]) -> str | None:
    """Return the rail of the GPU, the one that feeds least besides it; ``None`` without one.

    Boards name it ``GPU`` (Xavier), ``VDD_GPU_SOC`` (Orin), ``VDD_CPU_GPU_CV`` (Orin Nano),
    ``VDD_SYS_GPU`` (TX2) or ``POM_5V_GPU`` (Nano).
    """
    of_gpu = [name for name in names if "GPU" in name.upper().split("_")]
    shared = ("CPU", "CV", "SOC")
    return min(
        of_gpu,
        key=lambda name: (sum(part in name.upper().split("_") for part in shared), len(name)),
        default=None,
    )


def tegrastats_meter(command: str = "tegrastats") -> SubprocessMeter:
    """Return a meter that runs ``tegrastats``, named after the GPU's rail.

    Raises:
        MeterError: the tool does not run or tells of no such rail.
    """
    call = [command, "--interval", str(TEGRASTATS_PERIOD_MS)]
    rail = _reported_rail(call)

    def sample(line: str, read_s: float) -> Sample | None:
        power_w = tegrastats_rails(line).get(rail)
        return None if power_w is None else Sample(time_s=read_s, value=power_w)

    return SubprocessMeter(f"tegrastats rail {rail}", call, sample, _REMEDY)


def _reported_rail(call: list[str]) -> str:
    """Run the tool until it has named the GPU's rail."""
    named = threading.Event()
    found: list[str] = []

    def sample(line: str, read_s: float) -> Sample | None:
        rail = gpu_rail(tuple(tegrastats_rails(line)))
        if rail is None:
            return None
        found.append(rail)
        named.set()
        return Sample(time_s=read_s, value=tegrastats_rails(line)[rail])

    probe = SubprocessMeter("tegrastats", call, sample, _REMEDY)
    probe.start()
    deadline_s = time.monotonic() + TEGRASTATS_ANSWER_S
    while not named.wait(0.02) and not probe.ended and time.monotonic() < deadline_s:
        pass
    probe.stop()
    if not found:
        raise MeterError("tegrastats names no rail of the GPU", _REMEDY)
    return found[0]


def tegrastats_rails(line: str) -> dict[str, float]:
    """Return the momentary watts of each rail in a line of tegrastats.

    Old releases print ``GPU 310/295``, newer ones ``VDD_GPU_SOC 1234mW/1230mW``: now/mean, in
    milliwatts.
    """
    return {name: int(now) / 1e3 for name, now, _ in _RAIL.findall(line)}


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

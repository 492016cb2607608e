"""Energy of CPU packages: the counters of RAPL, which Linux shows under ``/sys/class/powercap``.

Intel's and AMD's processors have them; Linux calls the folder ``intel-rapl`` for both. A counter
moves about every millisecond, counts microjoules, and begins anew at ``max_energy_range_uj``.
Reading it costs microseconds. Since 2020 most kernels let only root read it, because quick
readings can tell secrets of other programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from eatss.measurement.meters.background import BackgroundMeter, Ticker, follow
from eatss.measurement.meters.meter import MeterError, Sample

RAPL_NAME = "RAPL"

POLL_S = 0.01
"""Time between two readings; a sample is as good as an update, which is a millisecond old."""

UPDATE_S = 0.002
"""How old a counter's value may be when it is read: it moves about every millisecond."""

_FOLDER = "sys/class/powercap"
_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
_READABLE = (
    "ask the administrator to let you read it: sudo chmod a+r "
    "/sys/class/powercap/intel-rapl:*/energy_uj, until the next boot"
)


@dataclass(frozen=True, slots=True)
class RaplPackage:
    """A CPU package whose counter can be read.

    Attributes:
        name: ``package-0``, as the kernel calls it.
        folder: Where its counter lies.
        range_j: Joules after which the counter begins anew.
    """

    name: str
    folder: Path
    range_j: float

    @contextmanager
    def counter(self) -> Iterator[Callable[[], float]]:
        """Hold the counter open, and give what reads it.

        That returns joules, with what the counter lost whenever it began anew between two readings.

        Raises:
            MeterError: it cannot be opened; likewise each reading.
        """
        file = self.folder / "energy_uj"
        with _told(file):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        last_j, rounds = 0.0, 0

        def read_j() -> float:
            nonlocal last_j, rounds
            raw_j = _microjoules(descriptor, file) / 1e6
            rounds += raw_j < last_j
            last_j = raw_j
            return raw_j + rounds * self.range_j

        try:
            yield read_j
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class RefusedPackage:
    """A CPU package that the kernel shows and whose energy cannot be read.

    Attributes:
        name: ``package-0``, as the kernel calls it.
        error: Why.
    """

    name: str
    error: MeterError


Package: TypeAlias = RaplPackage | RefusedPackage


def package_title(package: Package) -> str:
    """Return its name for people: ``CPU package 0``."""
    return f"CPU {package.name.replace('-', ' ')}"


class RaplMeter(BackgroundMeter):
    """A meter of one package."""

    def __init__(self, package: RaplPackage) -> None:
        def sample(ticker: Ticker, record: Callable[[Sample], None]) -> None:
            with package.counter() as read_j:
                follow(read_j, ticker, record, poll_s=POLL_S, update_s=UPDATE_S)

        super().__init__(RAPL_NAME, "energy", sample)


def rapl_packages(root: Path = Path("/")) -> tuple[Package, ...]:
    """Return the CPU packages of this machine, each once; those that cannot be read say why.

    Args:
        root: where ``/sys`` is looked for.

    Raises:
        MeterError: there are none.
    """
    found: dict[str, Package] = {}
    # intel-rapl-mmio:0 tells of a package that intel-rapl:0 tells of as well: the first that can
    # be read counts.
    for folder in sorted((root / _FOLDER).glob("intel-rapl*:*"), key=_place):
        try:
            name = (folder / "name").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if not _PACKAGE.fullmatch(name) or isinstance(found.get(name), RaplPackage):
            continue
        try:
            package = RaplPackage(name, folder, _range_j(folder))
            with package.counter() as read_j:
                read_j()
        except MeterError as error:
            found.setdefault(name, RefusedPackage(name, error))
        else:
            found[name] = package
    if found:
        return tuple(found.values())
    raise MeterError(
        f"the kernel shows no energy of CPUs: no package under {root / _FOLDER}",
        "virtual machines and containers mostly have none; on the machine itself: "
        "sudo modprobe intel_rapl_msr",
    )


def _place(folder: Path) -> tuple[str, list[int]]:
    family, _, place = folder.name.partition(":")
    return family, [int(part) if part.isdigit() else -1 for part in place.split(":")]


def _range_j(folder: Path) -> float:
    file = folder / "max_energy_range_uj"
    with _told(file):
        return _number(file.read_bytes(), file) / 1e6


def _microjoules(descriptor: int, file: Path) -> int:
    """Return what a counter tells; the interpreter's lock is given away once."""
    with _told(file):
        return _number(os.pread(descriptor, 64, 0), file)


def _number(told: bytes, file: Path) -> int:
    try:
        return int(told)
    except ValueError:
        text = told.decode("ascii", "replace").strip()[:40]
        raise MeterError(f"{file} holds no number: {text!r}") from None


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Turn what the system says against reading a file into a reason."""
    try:
        yield
    except PermissionError:
        raise MeterError(f"{file} may be read by root only", _READABLE) from None
    except OSError as error:
        raise MeterError(f"{file} cannot be read: {error.strerror or error}") from None

"""Energy of CPU packages: the counters of RAPL, which Linux shows under ``/sys/class/powercap``.

Intel's and AMD's processors have them; Linux calls the folder ``intel-rapl`` for both. A counter
moves about every millisecond, counts microjoules, and begins anew at ``max_energy_range_uj``.
Reading it costs microseconds. Since 2020 most kernels let only root read it, because quick
readings can tell secrets of other programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from eatss.measurement.meters.background import BackgroundMeter, Ticker
from eatss.measurement.meters.meter import MeterError, Sample

RAPL_NAME = "RAPL"

POLL_S = 0.01
"""Time between two readings; a sample is as good as an update, which is a millisecond old."""

READ_S = 0.002
"""A reading that took longer is left out: this thread was not scheduled, and nobody knows when
the counter had that value."""

LATE_S = READ_S + 0.002
"""How old the value of a counter may be when it is stamped: it moves about every millisecond."""

_FOLDER = "sys/class/powercap"
_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
_READABLE = (
    "ask the administrator to let you read it: sudo chmod a+r "
    "/sys/class/powercap/intel-rapl:*/energy_uj, until the next boot"
)


@dataclass(slots=True)
class RaplPackage:
    """A CPU package, and the joules that it has drawn since it was first asked.

    Attributes:
        name: ``package-0``, as the kernel calls it.
        folder: Where its counter lies.
        range_j: Joules after which the counter begins anew.
    """

    name: str
    folder: Path
    range_j: float
    _last_j: float | None = field(default=None, init=False)
    _rounds: int = field(default=0, init=False)

    @property
    def title(self) -> str:
        """Name for people: ``CPU package 0``."""
        return f"CPU {self.name.replace('-', ' ')}"

    def energy_j(self) -> float:
        """Return the counter, with what it lost whenever it began anew between two readings.

        Raises:
            MeterError: it cannot be read.
        """
        raw_j = _number(self.folder / "energy_uj") / 1e6
        if self._last_j is not None and raw_j < self._last_j:
            self._rounds += 1
        self._last_j = raw_j
        return raw_j + self._rounds * self.range_j


class RaplMeter(BackgroundMeter):
    """A meter of one package."""

    def __init__(self, package: RaplPackage, *, poll_s: float = POLL_S) -> None:
        super().__init__(
            RAPL_NAME,
            "energy",
            lambda ticker, record: follow_quick_counter(package.energy_j, ticker, record, poll_s),
            late_s=LATE_S,
        )


def follow_quick_counter(
    read_j: Callable[[], float],
    ticker: Ticker,
    record: Callable[[Sample], None],
    poll_s: float = POLL_S,
) -> None:
    """Record a counter that moves faster than it is asked, where it has moved."""
    last_j: float | None = None
    while not ticker.ended():
        asked_s = ticker.now()
        value_j = read_j()
        answered_s = ticker.now()
        if value_j != last_j and answered_s - asked_s <= READ_S:
            record(Sample(time_s=answered_s, value=value_j))
            last_j = value_j
        ticker.sleep(max(0.0, poll_s - (ticker.now() - asked_s)))


def rapl_packages(root: Path = Path("/")) -> tuple[RaplPackage, ...]:
    """Return the CPU packages of this machine whose counters can be read, each once.

    Args:
        root: where ``/sys`` is looked for.

    Raises:
        MeterError: there are none, or they may not be read.
    """
    found: dict[str, RaplPackage] = {}
    refused: MeterError | None = None
    # intel-rapl-mmio:0 tells of a package that intel-rapl:0 tells of as well: the first counts.
    for folder in sorted((root / _FOLDER).glob("intel-rapl*:*"), key=_place):
        try:
            name = (folder / "name").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if name in found or not _PACKAGE.fullmatch(name):
            continue
        try:
            package = RaplPackage(name, folder, _number(folder / "max_energy_range_uj") / 1e6)
            package.energy_j()
        except MeterError as error:
            refused = refused or error
        else:
            found[name] = package
    if found:
        return tuple(found.values())
    raise refused or MeterError(
        f"the kernel shows no energy of CPUs: no package under {root / _FOLDER}",
        "virtual machines and containers mostly have none; on the machine itself: "
        "sudo modprobe intel_rapl_msr",
    )


def _place(folder: Path) -> tuple[str, list[int]]:
    family, _, place = folder.name.partition(":")
    return family, [int(part) if part.isdigit() else -1 for part in place.split(":")]


def _number(file: Path) -> int:
    try:
        text = file.read_text(encoding="ascii")
    except PermissionError:
        raise MeterError(f"{file} may be read by root only", _READABLE) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MeterError(f"{file} cannot be read: {reason}") from None
    try:
        return int(text)
    except ValueError:
        raise MeterError(f"{file} holds no number: {text.strip()[:40]!r}") from None

"""What a benchmark took on a card, and the record of all of them as lines of JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from eatss.base.codec import decode, encode
from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import Group

SCHEMA_VERSION = 1
MOST_BYTES = 64 << 20


@frozen
class Subject:
    """The card that was characterised, and what it ran under.

    ``card`` is the first half of the SHA-256 of its UUID: it tells cards apart and names none.
    """

    name: str
    card: str
    profile: str
    compute_capability: int
    sm_count: int
    driver: str | None
    toolkit: str | None
    power_limit_w: float | None
    revision: str | None
    created: str
    meter: str | None = None


@frozen
class Occupancy:
    """Warps on an SM over the most it can hold: what the limits allow, and the mean of a launch."""

    theoretical: float
    achieved: float | None


@frozen
class Result:
    """One benchmark on one card; times and energies are of one repeat of its work.

    ``power_w`` is the mean over a window of steady load, ``most_power_w`` the highest sample in it
    (NVML averages each over a second). ``energy_j`` is ``power_w`` times ``time_s``. Clocks are
    means over the window, ``sm_clock_mhz`` as the SMs counted it where they did
    (:mod:`eatss.measurement.characterize.bench`) and ``lowest_sm_clock_mhz`` the lowest that the
    driver told; ``throttle`` says what held them back. ``opcodes`` are those of the loop in machine
    code with their counts, ``loops`` how often warps went round it. ``cycles`` is the latency of
    one operation. A reading that could not be taken is ``None``, and ``missing`` says why.
    """

    name: str
    group: Group
    parameters: tuple[tuple[str, float], ...]
    operations: float
    flops: float
    useful_bytes: float
    amounts: tuple[tuple[str, float], ...]
    loops: float
    time_s: float
    power_w: float | None = None
    most_power_w: float | None = None
    energy_j: float | None = None
    window_s: float | None = None
    updates: int | None = None
    sm_clock_mhz: float | None = None
    lowest_sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] | None = None
    opcodes: tuple[tuple[str, int], ...] = ()
    cycles: float | None = None
    occupancy: Occupancy | None = None
    missing: str = ""

    @property
    def capped(self) -> bool:
        """Whether the power limit held the clocks back."""
        return bool(self.throttle) and any("power" in reason for reason in self.throttle or ())

    @property
    def instructions(self) -> float:
        """Instructions of warps in one repeat that do something."""
        return self.loops * sum(count for opcode, count in self.opcodes if opcode != "NOP")

    def amount(self, feature: str) -> float:
        """Return how much of a feature one repeat has."""
        return dict(self.amounts).get(feature, 0.0)

    def parameter(self, name: str) -> float | None:
        """Return where on its curve the benchmark stands."""
        return dict(self.parameters).get(name)


@frozen
class Record:
    """Everything that was measured of one card."""

    subject: Subject
    results: tuple[Result, ...]

    def of(self, group: Group) -> tuple[Result, ...]:
        """Return the results of a group in their order."""
        return tuple(result for result in self.results if result.group == group)

    def named(self, name: str) -> Result | None:
        """Return the result of a benchmark, ``None`` if it was not measured."""
        return next((result for result in self.results if result.name == name), None)


def hashed(uuid: str | None) -> str:
    """Return what stands for a card: a hash of its UUID."""
    return hashlib.sha256((uuid or "unknown").encode()).hexdigest()[:32]


def subject_line(subject: Subject) -> str:
    """Return the first line of a record."""
    return _line({"schema_version": SCHEMA_VERSION} | encode(subject))


def result_line(result: Result) -> str:
    """Return the line of a result."""
    return _line(encode(result))


def _line(plain: dict[str, Any]) -> str:
    return json.dumps(plain, separators=(",", ":"), allow_nan=False) + "\n"


def write_record(record: Record) -> str:
    """Return a record as lines of JSON."""
    return subject_line(record.subject) + "".join(map(result_line, record.results))


def read_record(path: Path) -> Record:
    """Read what a characterisation wrote; a last line that was cut off is left out.

    Raises:
        InputError: ``EATSS-B001`` it cannot be read, ``EATSS-B002`` it is none or damaged.
    """
    try:
        text = read_regular(path, MOST_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise input_error("EATSS-B001", f"cannot read the record {path}: {reason}") from None
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    subject: Subject | None = None
    results: list[Result] = []
    try:
        if not lines:
            raise ValueError("it is empty")
        plain = json.loads(lines[0])
        version = plain.pop("schema_version")
        if version != SCHEMA_VERSION:
            raise ValueError(f"it has schema version {version}, not {SCHEMA_VERSION}")
        subject = decode(Subject, plain)
        results += (decode(Result, json.loads(line)) for line in lines[1:])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        number = 1 if subject is None else len(results) + 2
        raise input_error(
            "EATSS-B002",
            f"{path}:{number} is no record of a characterisation: {error}",
            hint="characterise again into another file, or take the record from where it was "
            "copied",
        ) from None
    return Record(subject=subject, results=tuple(results))

"""The nouns of a microbenchmark: what is launched, what it does, what its machine code holds.

What a benchmark took on a card, and the record of all of them as lines of JSON.

What a compiler made of a microbenchmark: its machine code, disassembled and checked.

Code: B010 the machine code does not hold the instruction that is to be timed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import lzma
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.base.codec import JsonObject, decode, encode
from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.base.frozen import Names, frozen, frozen_part
from eatss.base.text import Texts

Group: TypeAlias = Literal[
    "idle",
    "arithmetic",
    "tensor",
    "memory",
    "coalescing",
    "access size",
    "bank conflicts",
    "stride",
    "block size",
    "intensity",
    "chase",
    "latency",
    "launch",
]

Amounts: TypeAlias = Mapping[str, float]
"""Features of the fit, each with how much of it."""

Pairs: TypeAlias = tuple[tuple[str, float], ...]
"""The same of a noun, or where on its curve a benchmark stands."""

Opcodes: TypeAlias = tuple[tuple[str, int], ...]
"""How often each opcode stands in a loop, the most frequent first."""

Fill: TypeAlias = Literal["bits", "fp32", "fp64", "ring", "chain", "nothing"]
"""What a buffer holds. ``bits`` are random, ``fp32`` and ``fp64`` random numbers from 1 to 2. In a
``ring`` each word holds the number of one beside it in its line, in a ``chain`` that of the next in
a random cycle through the whole buffer. ``nothing`` is there to be written."""

Width: TypeAlias = Literal["fp32", "fp64"]

WARP = 32
LINE_BYTES = 128
SECTOR_BYTES = 32

KERNEL = "timed"
"""Name of the kernel of every benchmark."""

STREAM_BYTES = 1 << 30
"""A buffer that is many times L2, and small enough for most cards."""

COEFFICIENT_WINDOW_S = 2.0
"""Seconds of a window whose energy a coefficient is fitted to: 20 updates of the counter."""

CURVE_WINDOW_S = 0.8
"""Seconds of a window that is one point of a curve: 8 updates of the counter."""


@frozen
class Buffer:
    """Device memory that a kernel is given.

    ``stride`` is that of a chain, in elements of 4 bytes: the cycle visits every ``stride``-th one.
    """

    size_bytes: int
    fill: Fill = "bits"
    stride: int = 1


Argument: TypeAlias = Buffer | int | Literal["repeat", "recording", "activity"]
"""What a kernel is given: device memory, a number, or what stands for a number of each launch: how
often it repeats its work, and whether it is to record when its warps came and went, 0 or 1.
``activity`` is the buffer for that: busy, begun and ended cycles of each SM."""


@frozen
class Chip:
    """What the benchmarks have to know of a card."""

    sms: int
    l2_bytes: int
    capability: int


@frozen_part
class Repeat:
    """What a benchmark is called, and what it does on the whole card when it repeats once.

    ``parameters`` say which point of a curve it is. ``operations`` are what its name counts:
    instructions of a thread, or accesses of a warp. ``flops`` are floating-point operations,
    ``useful_bytes`` what the accesses ask for. ``amounts`` says of features of the fit how much it
    has of them: wavefronts, bytes, sequences of instructions; single instructions are counted in
    the machine code. ``loops`` says how often warps go round its loop, all together.
    """

    name: str
    group: Group
    parameters: Pairs = ()
    operations: float = 0.0
    flops: float = 0.0
    useful_bytes: float = 0.0
    amounts: Pairs = ()
    loops: float = 0.0


@frozen
class Benchmark(Repeat):
    """One microbenchmark, and what one launch of it does.

    ``text`` is CUDA with one kernel, called ``KERNEL``. Arguments are given in their order; a
    latency brings back the cycles of each thread in the first.

    ``expected`` says how many instructions its loop must hold, the longest that holds no other, by
    regular expressions for the whole opcode, as in ``FADD|FMUL``.

    ``window_s`` is how long it runs for its energy, ``None`` where only its time counts.
    ``repeats`` is how often a launch repeats its work, ``None`` for as often as fills some
    milliseconds.
    """

    text: str
    blocks: int
    threads: int
    arguments: tuple[Argument, ...]
    expected: Mapping[str, int] = field(default_factory=dict)
    window_s: float | None = COEFFICIENT_WINDOW_S
    repeats: int | None = None
    shared_bytes: int = 0


def output(size_bytes: int) -> Buffer:
    """Return memory to be written."""
    return Buffer(size_bytes=size_bytes, fill="nothing")


def even_elements(count: int, shares: int) -> int:
    """Return the most elements, up to ``count``, that so many threads and loads share evenly."""
    return count - count % shares


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
class Result(Repeat):
    """One benchmark on one card; times and energies are of one repeat of its work.

    ``power_w`` is the mean over a window of steady load, ``most_power_w`` the highest sample in it
    (NVML averages each over a second). ``energy_j`` is ``power_w`` times ``time_s``. Clocks are
    means over the window, ``sm_clock_mhz`` as the SMs counted it where they did
    (:mod:`eatss.measurement.characterize.bench`) and ``lowest_sm_clock_mhz`` the lowest that the
    driver told; ``throttle`` says what held them back. ``opcodes`` are those of the loop in machine
    code with their counts, ``loops`` how often warps went round it. ``cycles`` is the latency of
    one operation. A reading that could not be taken is ``None``, and ``missing`` says why.
    """

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
    throttle: Texts | None = None
    opcodes: Opcodes = ()
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


def _line(plain: JsonObject) -> str:
    return json.dumps(plain, separators=(",", ":"), allow_nan=False) + "\n"


_DAMAGED = (
    AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError, lzma.LZMAError,
)  # fmt: skip


def read_record(path: Path) -> Record:
    """Read what a characterisation wrote; a last line that was cut off is left out.

    One whose name ends with ``.xz`` is compressed.

    Raises:
        InputError: ``EATSS-B001``, it cannot be read, is none or damaged.
    """
    number, results = 1, list[Result]()
    try:
        data = read_regular(path, MOST_BYTES)
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        plain = json.loads(lines[0])
        version = plain.pop("schema_version")
        if version != SCHEMA_VERSION:
            raise ValueError(f"it has schema version {version}, not {SCHEMA_VERSION}")
        subject = decode(Subject, plain)
        for number, line in enumerate(lines[1:], 2):  # noqa: B007 - told below
            results.append(decode(Result, json.loads(line)))
    except OSError as error:
        why = f"cannot read the record {path}: {error.strerror}"
        raise input_error("EATSS-B001", why) from None
    except _DAMAGED as error:
        raise input_error(
            "EATSS-B001",
            f"{path}:{number} is no record of a characterisation: {error}",
            hint="characterise again, or take the record from where it was copied",
        ) from None
    return Record(subject=subject, results=tuple(results))


_LIMIT_S = 120.0
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_BRANCH = re.compile(r"\bBRA(?:\.\w+)*\s+(?:!?U?P\w+,\s*)?`\((\.L_x_\d+)\)")


def find_disassembler() -> Path | None:
    """Return nvdisasm: of PATH, of the CUDA toolkit, or of the package nvidia-cuda-nvdisasm."""
    package = importlib.util.find_spec("nvidia")
    roots = (package and package.submodule_search_locations) or ()
    places = [place for root in roots for place in sorted(Path(root).glob("*/bin"))]
    path = os.pathsep.join(map(str, (os.environ.get("PATH", ""), "/usr/local/cuda/bin", *places)))
    found = shutil.which("nvdisasm", path=path)
    return None if found is None else Path(found)


def disassembled(disassembler: Path, cubin: Path) -> str:
    """Return the text of nvdisasm for a cubin.

    Raises:
        OSError: it does not start.
        subprocess.SubprocessError: it refuses the cubin, or takes too long.
    """
    return subprocess.run(  # noqa: S603 - a tool of the CUDA toolkit
        [str(disassembler), "-c", str(cubin)],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=True,
    ).stdout


def machine_code(text: str, kernel: str) -> Opcodes:
    """Return the longest loop that holds no other, of a kernel in a text of nvdisasm.

    A kernel without a loop counts as one.
    """
    own = re.search(rf"^\.text\.{kernel}:?$(.*?)(?=^\.text\.|\Z)", text, re.MULTILINE | re.DOTALL)
    opcodes: list[str] = []
    labels: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for line in own[1].splitlines() if own else ():
        if label := _LABEL.match(line):
            labels[label[1]] = len(opcodes)
        elif found := _INSTRUCTION.match(line):
            branch = _BRANCH.search(line)
            if branch and branch[1] in labels:  # back
                loops.append((labels[branch[1]], len(opcodes)))
            opcodes.append(found[1])
    inner = [
        (first, last)
        for first, last in loops
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in loops)
    ]
    first, last = max(inner, key=lambda loop: loop[1] - loop[0], default=(0, len(opcodes) - 1))
    inside = Counter(opcodes[first : last + 1])
    return tuple(sorted(inside.items(), key=lambda item: (-item[1], item[0])))


def missing(benchmark: Benchmark, opcodes: Opcodes) -> Names:
    """Return in words what of a benchmark's instructions its machine code does not hold."""
    found = {
        form: sum(n for opcode, n in opcodes if re.fullmatch(form, opcode))
        for form in benchmark.expected
    }
    return tuple(
        f"{found[form]} instead of {count} instructions {form}"
        for form, count in benchmark.expected.items()
        if found[form] != count
    )

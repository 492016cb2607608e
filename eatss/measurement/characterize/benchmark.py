"""The nouns of a microbenchmark: what is launched, what it does, what its machine code holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from eatss.base.frozen import frozen

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

Fill: TypeAlias = Literal["bits", "fp32", "fp64", "ring", "chain", "nothing"]
"""What a buffer holds. ``bits`` are random, ``fp32`` and ``fp64`` random numbers from 1 to 2. In a
``ring`` each word holds the number of one beside it in its line, in a ``chain`` that of the next in
a random cycle through the whole buffer. ``nothing`` is there to be written."""

WARP = 32
LINE_BYTES = 128

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
class Benchmark:
    """One microbenchmark, and what one launch of it does on the whole card when it repeats once.

    ``text`` is CUDA with one kernel, ``kernel`` its name. Arguments are given in their order.

    ``operations`` are what its name counts: instructions of a thread, or accesses of a warp.
    ``flops`` are floating-point operations, ``useful_bytes`` what the accesses ask for. ``loops``
    says how often warps go round the loop of the machine code, all together. ``amounts`` says of
    features of the fit how much it has of them: wavefronts, bytes, sequences of instructions.
    Single instructions are counted in the machine code. ``expected`` says how many instructions
    its loop must hold, the longest that holds no other, by regular expressions for the whole
    opcode, as in ``FADD|FMUL``.

    ``window_s`` is how long it runs for its energy, ``None`` where only its time counts.
    ``repeats`` is how often a launch repeats its work, ``None`` for as often as fills some
    milliseconds.
    ``reports_cycles`` says that the first buffer comes back with the cycles of each thread.
    ``parameters`` say which point of a curve it is.
    """

    name: str
    group: Group
    text: str
    blocks: int
    threads: int
    arguments: tuple[Argument, ...]
    operations: float
    loops: float
    flops: float = 0.0
    useful_bytes: float = 0.0
    amounts: Amounts = field(default_factory=dict)
    expected: Mapping[str, int] = field(default_factory=dict)
    kernel: str = "timed"
    window_s: float | None = COEFFICIENT_WINDOW_S
    repeats: int | None = None
    shared_bytes: int = 0
    reports_cycles: bool = False
    parameters: Amounts = field(default_factory=dict)


def streamed_amounts(bytes_: float, *, dram: str = "dram_read_bytes") -> Amounts:
    """Return the amounts of streaming: each line passes L1, L2 and memory once."""
    return {
        "l1_wavefronts": bytes_ / LINE_BYTES,
        "l1_bytes": bytes_,
        "l2_bytes": bytes_,
        dram: bytes_,
    }


def out_and_in(threads: int, given: Buffer) -> tuple[Argument, ...]:
    """Return the usual arguments: a word for each thread to write, and what it reads."""
    return (Buffer(size_bytes=4 * threads, fill="nothing"), given, "repeat")

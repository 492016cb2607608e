"""Microbenchmarks of arithmetic: long chains of one instruction [MIPP, Fig. 2 and Fig. 3].

Each thread keeps several chains, so that the unit under test and not the latency of a result
decides. What a chain computes never settles: a unit that sees the same bits again draws less. So
multiply-adds turn a point about a circle, divisions and reciprocals go to and fro, integers run
through sums and products of themselves. Where that needs a second instruction, it is counted too.

The intensity sweep [Choi and Vuduc, section 4.2] does multiply-adds for each byte that is streamed:
a large array is read, and with each element some independent multiply-adds are done; how many says
where between memory and arithmetic the kernel stands.

:func:`peak_per_cycle` is what NVIDIA specifies: results per clock cycle and SM, from the CUDA C++
Programming Guide, table *Throughput of Native Arithmetic Instructions*.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eatss.base.frozen import Numbers
from eatss.measurement.characterize.benchmark import (
    LINE_BYTES,
    STREAM_BYTES,
    WARP,
    Benchmark,
    Buffer,
    Chip,
    Group,
    Width,
    even_elements,
    output,
)

THREADS = 512
BLOCKS_PER_SM = 2
PAIRS = 4
"""Pairs of chains a thread; with 32 warps on an SM enough for every unit."""


TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""What is timed."""

OPERATIONS: Mapping[str, Mapping[str, Any]] = TABLES["operations"]
"""Every instruction of scalar arithmetic that is timed, in the order of MIPP's Fig. 2."""

CAPABILITIES = (70, 75, 80, 86, 89, 90)
"""Compute capabilities of ``peak``, as in 90 for 9.0."""

WORDS = 32
"""Random words of 4 bytes that a thread begins with."""

_TEXT = r"""
extern "C" __global__ void __launch_bounds__(%(threads)d)
timed(unsigned *out, const unsigned *in, int repeat)
{
    const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    auto word = [&](unsigned k) { return in[id * %(words)d + k]; };
    %(type)s x[%(pairs)d], y[%(pairs)d], s = %(s)s, t = %(t)s;
    %(prepare)s
#pragma unroll
    for (unsigned c = 0; c < %(pairs)d; ++c) {
        x[c] = %(x)s;
        y[c] = %(y)s;
    }
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn) {
#pragma unroll
        for (int step = 0; step < %(steps)d; ++step) {
#pragma unroll
            for (int c = 0; c < %(pairs)d; ++c)
                asm volatile("%(ptx)s" : "+%(letter)s"(x[c]), "+%(letter)s"(y[c])
                             : "%(letter)s"(s), "%(letter)s"(t));
        }
    }
    double sum = 0;
#pragma unroll
    for (int c = 0; c < %(pairs)d; ++c) sum += (double)x[c] + (double)y[c];
    out[id] = (unsigned)__double2loint(sum);
}
"""


def arithmetic_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield the benchmarks of scalar arithmetic, and those of tensor cores that a card has."""
    for name, operation in OPERATIONS.items():
        yield _scalar(chip, name, **operation)
    for product in TABLES["products"]:
        least, most = product.get("least_capability", 80), product.get("most_capability", 1000)
        if least <= chip.capability <= most:
            yield _product(chip, product)


def _chains(
    chip: Chip, name: str, group: Group, text: str, *, threads: int, blocks: int, **others: Any
) -> Benchmark:
    """Return a benchmark whose threads each begin with random words, ``blocks`` on each SM."""
    launched = chip.sms * blocks * threads
    return Benchmark(
        name=name,
        group=group,
        text=text,
        blocks=chip.sms * blocks,
        threads=threads,
        arguments=(output(4 * launched), Buffer(size_bytes=4 * WORDS * launched), "repeat"),
        loops=launched / WARP,
        **others,
    )


def _scalar(
    chip: Chip,
    name: str,
    *,
    step: str,
    opcodes: str,
    flops: int = 0,
    each: int = 2,
    unroll: int = 64,
    prepare: str = "",
    sequence: str = "",
    peak: Sequence[float] = (),
) -> Benchmark:
    """Return a benchmark of an instruction; its name begins with the type.

    Args:
        chip: the card.
        name: of the benchmark.
        step: PTX for one step of a pair of chains: ``%0`` and ``%1`` are the chains, ``%2`` and
            ``%3`` constants of the thread.
        opcodes: regular expressions of machine code, as many of each in a step.
        flops: floating-point operations of a thread by each of the instruction.
        each: how many of it a step holds.
        unroll: steps of a turn.
        prepare: what is done with the constants first.
        sequence: the feature of the fit that one of it is, where it is compiled to many
            instructions of other kinds.
        peak: what an SM does in a cycle by the guide, at each of ``CAPABILITIES``.
    """
    del peak
    c_type, letter, load = TABLES["types"][name.split(maxsplit=1)[0]]
    times = PAIRS * unroll
    operations = each * times * chip.sms * BLOCKS_PER_SM * THREADS
    filled = {
        "threads": THREADS,
        "words": WORDS,
        "type": c_type,
        "pairs": PAIRS,
        "s": load.format("14u"),
        "t": load.format("15u"),
        "prepare": prepare,
        "x": load.format("c"),
        "y": load.format(f"c + {PAIRS}u"),
        "steps": unroll,
        "ptx": step,
        "letter": letter,
    }
    return _chains(
        chip,
        name,
        "arithmetic",
        _TEXT % filled,
        threads=THREADS,
        blocks=BLOCKS_PER_SM,
        operations=operations,
        flops=float(flops * operations),
        amounts=((sequence, operations / WARP),) if sequence else (),
        expected={one: n * each * times for one, n in Counter(opcodes.split()).items()},
    )


_TENSOR_SUMS = 4
_TENSOR_UNROLL = 16
_TENSOR_THREADS = 256
_TENSOR_BLOCKS = 4
_TENSOR_TEXT = r"""
extern "C" __global__ void __launch_bounds__(%(threads)d)
timed(unsigned *out, const unsigned *in, int repeat)
{
    const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    auto word = [&](unsigned k) { return in[id * %(words)d + k]; };
    %(operand)s a[%(na)d], minus[%(na)d], b[%(nb)d];
    %(sum)s c[%(sums)d][%(nc)d];
#pragma unroll
    for (unsigned k = 0; k < %(na)d; ++k) { a[k] = %(a)s; minus[k] = %(minus)s; }
#pragma unroll
    for (unsigned k = 0; k < %(nb)d; ++k) b[k] = %(b)s;
#pragma unroll
    for (unsigned n = 0; n < %(sums)d; ++n)
#pragma unroll
        for (unsigned k = 0; k < %(nc)d; ++k) c[n][k] = 1 + word(n) * 1e-9f;
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn) {
#pragma unroll
        for (int step = 0; step < %(steps)d; ++step)
#pragma unroll
            for (int n = 0; n < %(sums)d; ++n) {
                %(plus)s
                %(less)s
            }
    }
    double sum = 0;
#pragma unroll
    for (int n = 0; n < %(sums)d; ++n)
#pragma unroll
        for (int k = 0; k < %(nc)d; ++k) sum += c[n][k];
    out[id] = (unsigned)__double2loint(sum);
}
"""


def _product(chip: Chip, product: Mapping[str, Any]) -> Benchmark:
    na, nb, nc = product["registers"]
    instructions = 2 * _TENSOR_SUMS * _TENSOR_UNROLL
    operations = instructions * chip.sms * _TENSOR_BLOCKS * _TENSOR_THREADS / WARP
    filled = {
        "sum": "float",
        **product,
        "threads": _TENSOR_THREADS,
        "words": WORDS,
        "na": na,
        "nb": nb,
        "nc": nc,
        "sums": _TENSOR_SUMS,
        "steps": _TENSOR_UNROLL,
        "a": product["bits"].format("k"),
        "b": product["bits"].format(f"k + {na}u"),
        "plus": product["mma"].replace("FACTOR", "a"),
        "less": product["mma"].replace("FACTOR", "minus"),
    }
    return _chains(
        chip,
        product["name"],
        "tensor",
        _TENSOR_TEXT % filled,
        threads=_TENSOR_THREADS,
        blocks=_TENSOR_BLOCKS,
        operations=operations,
        flops=float(product["flops"] * operations),
        expected={product["machine"]: instructions},
    )


_SWEEP_THREADS = 256
_SWEEP_BLOCKS = 8
VECTORS = 4
"""Loads of 16 bytes that a thread has under way."""

STEPS: Numbers = (0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 96, 128, 256)
"""Multiply-adds for each number of a vector."""

UNROLLED = 32
"""Steps in a row; more are a loop around them, so that the instruction cache holds it."""

_SWEEP = r"""
extern "C" __global__ void __launch_bounds__(%(threads)d)
timed(unsigned *out, const %(vector)s *__restrict__ in, int repeat)
{
    const unsigned long long id = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long all = gridDim.x * (unsigned long long)blockDim.x;
    const %(number)s s = %(number)s(0.5) + %(number)s(threadIdx.x) / 4096, t = -s;
    unsigned sum = 0;
#pragma unroll 1
    for (int turn = 0; turn < repeat; ++turn)
#pragma unroll 1
        for (unsigned long long at = id; at < %(count)dull; at += %(loads)d * all) {
            %(vector)s v[%(loads)d];
#pragma unroll
            for (int k = 0; k < %(loads)d; ++k) v[k] = in[at + k * all];
#pragma unroll 1
            for (int part = 0; part < %(parts)d; ++part)
#pragma unroll
                for (int step = 0; step < %(part)d; ++step)
#pragma unroll
                    for (int k = 0; k < %(loads)d; ++k) { %(both)s }
#pragma unroll
            for (int k = 0; k < %(loads)d; ++k) { %(fold)s }
        }
    out[id] = sum;
}
"""


def intensity_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield the sweep in single and double precision, from far below to far above balance."""
    for width in ("fp32", "fp64"):
        for steps in STEPS:
            yield _of_intensity(chip, width, steps)


def _of_intensity(chip: Chip, width: Width, steps: int) -> Benchmark:
    of_width = TABLES["widths"][width]
    size, part = of_width["size"], min(steps, UNROLLED)
    parts = steps // part if part else 0
    numbers = 16 // size
    threads = chip.sms * _SWEEP_BLOCKS * _SWEEP_THREADS
    count = even_elements(STREAM_BYTES // 16, threads * VECTORS)
    fmas, moved = float(steps * numbers * count), 16.0 * count
    intensity = 2 * steps / size
    loads = {} if parts > 1 else {r"LDG\.E\.128(\.CONSTANT)?": VECTORS}
    filled = {
        **of_width,
        "threads": _SWEEP_THREADS,
        "count": count,
        "loads": VECTORS,
        "parts": parts,
        "part": part,
    }
    return Benchmark(
        name=f"{width}, {intensity:g} flop/byte",
        group="intensity",
        text=_SWEEP % filled,
        blocks=chip.sms * _SWEEP_BLOCKS,
        threads=_SWEEP_THREADS,
        arguments=(output(4 * threads), Buffer(size_bytes=16 * count, fill=width), "repeat"),
        operations=fmas,
        loops=count / VECTORS / WARP * max(1, parts),
        flops=2 * fmas,
        useful_bytes=moved,
        amounts=(
            ("l1_wavefronts", moved / LINE_BYTES),
            ("l1_bytes", moved),
            ("l2_bytes", moved),
            ("dram_read_bytes", moved),
        ),
        expected=loads | {of_width["opcode"]: part * numbers * VECTORS},
        parameters=(("flops_per_byte", intensity),),
    )


def peak_per_cycle(benchmark: str, capability: int) -> float | None:
    """Return the instructions of threads that an SM is specified to do in a cycle.

    Args:
        benchmark: a name of the group ``arithmetic``, as ``fp32 fma``.
        capability: the compute capability, as 90 for 9.0.

    ``None``: the guide says nothing, as of divisions and of 64-bit integers, which are sequences.
    """
    peaks = OPERATIONS.get(benchmark, {}).get("peak", ())
    return dict(zip(CAPABILITIES, peaks, strict=False)).get(capability)

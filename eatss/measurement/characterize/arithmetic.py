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
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from eatss.base.frozen import Numbers
from eatss.measurement.characterize.benchmark import (
    STREAM_BYTES,
    WARP,
    Benchmark,
    Buffer,
    Chip,
    Width,
    even_elements,
    output,
    streamed_amounts,
)

THREADS = 512
BLOCKS_PER_SM = 2
PAIRS = 4
"""Pairs of chains a thread; with 32 warps on an SM enough for every unit."""


class Operation(NamedTuple):
    """An instruction to time; its name begins with the type.

    ``step`` is PTX for one step of a pair of chains: ``%0`` and ``%1`` are the chains, ``%2`` and
    ``%3`` constants of the thread. It holds ``each`` of the instruction, of which each does
    ``flops`` floating-point operations a thread. ``opcodes`` are regular expressions of machine
    code, as many of each in a step. ``sequence`` names the feature of the fit that one of it
    is, where it is compiled to many instructions of other kinds. ``peak`` is what an SM does in a
    cycle by the guide, at each of ``CAPABILITIES``.
    """

    name: str
    step: str
    opcodes: str
    flops: int = 0
    each: int = 2
    unroll: int = 64
    prepare: str = ""
    sequence: str = ""
    peak: Sequence[float] = ()


TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""What is timed."""

OPERATIONS = tuple(Operation(name, **rest) for name, rest in TABLES["operations"].items())
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
    for operation in OPERATIONS:
        yield _scalar(operation, chip)
    for product in PRODUCTS:
        if product.least_capability <= chip.capability <= product.most_capability:
            yield _product(product, chip)


def _scalar(operation: Operation, chip: Chip) -> Benchmark:
    c_type, letter, load = TABLES["types"][operation.name.split()[0]]
    times = PAIRS * operation.unroll
    threads = chip.sms * BLOCKS_PER_SM * THREADS
    operations = operation.each * times * threads
    opcodes = Counter(operation.opcodes.split())
    return Benchmark(
        name=operation.name,
        group="arithmetic",
        text=_TEXT
        % {
            "threads": THREADS,
            "words": WORDS,
            "type": c_type,
            "pairs": PAIRS,
            "s": load.format("14u"),
            "t": load.format("15u"),
            "prepare": operation.prepare,
            "x": load.format("c"),
            "y": load.format(f"c + {PAIRS}u"),
            "steps": operation.unroll,
            "ptx": operation.step,
            "letter": letter,
        },
        blocks=chip.sms * BLOCKS_PER_SM,
        threads=THREADS,
        arguments=(output(4 * threads), Buffer(size_bytes=4 * WORDS * threads), "repeat"),
        operations=operations,
        flops=float(operation.flops * operations),
        loops=threads / WARP,
        amounts=((operation.sequence, operations / WARP),) if operation.sequence else (),
        expected={opcode: n * operation.each * times for opcode, n in opcodes.items()},
    )


class Product(NamedTuple):
    """A product of tensor cores through ``mma.sync``: m, n and k, types of operands and sums.

    ``registers`` are those of A, B and C that a thread of a warp holds, ``operand`` is CUDA of one
    with random bits, and ``negate`` flips the signs of what is in it.
    """

    name: str
    shape: tuple[int, int, int]
    types: tuple[str, str]
    machine: str
    operand: str
    registers: tuple[int, int, int]
    negate: str = "0x80000000u"
    least_capability: int = 80
    most_capability: int = 1000


PRODUCTS = tuple(Product(**row) for row in TABLES["products"])
"""Products of tensor cores. On Hopper ``wgmma`` reaches more with 16 bits."""

_TENSOR_SUMS = 4
_TENSOR_UNROLL = 16
_TENSOR_THREADS = 256
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


def _product(product: Product, chip: Chip) -> Benchmark:
    na, nb, nc = product.registers
    double = product.types[1] == "f64"
    warps = chip.sms * 4 * _TENSOR_THREADS / WARP
    instructions = 2 * _TENSOR_SUMS * _TENSOR_UNROLL
    operations = instructions * warps
    threads = chip.sms * 4 * _TENSOR_THREADS
    return Benchmark(
        name=product.name,
        group="tensor",
        text=_TENSOR_TEXT
        % {
            "threads": _TENSOR_THREADS,
            "words": WORDS,
            "operand": "double" if double else "unsigned",
            "sum": "double" if double else "float",
            "na": na,
            "nb": nb,
            "nc": nc,
            "sums": _TENSOR_SUMS,
            "steps": _TENSOR_UNROLL,
            "a": product.operand.format("k"),
            "minus": "-a[k]" if double else f"a[k] ^ {product.negate}",
            "b": product.operand.format(f"k + {na}u"),
            "plus": _mma(product, "a"),
            "less": _mma(product, "minus"),
        },
        blocks=chip.sms * 4,
        threads=_TENSOR_THREADS,
        arguments=(output(4 * threads), Buffer(size_bytes=4 * WORDS * threads), "repeat"),
        operations=operations,
        flops=2.0 * prod(product.shape) * operations,
        loops=warps,
        expected={product.machine: instructions},
    )


def _mma(product: Product, a: str) -> str:
    """Return inline PTX of ``c[n] += a × b``."""
    na, nb, nc = product.registers
    (m, n, k), (type_, sum_) = product.shape, product.types
    letter, total = ("d", "d") if sum_ == "f64" else ("r", "f")
    places = [f"%{place}" for place in range(nc + na + nb)]
    sums, first, second = (
        f"{{{', '.join(places[slice(*ends)])}}}"
        for ends in ((0, nc), (nc, nc + na), (nc + na, None))
    )
    outputs = ", ".join(f'"+{total}"(c[n][{place}])' for place in range(nc))
    inputs = ", ".join(
        f'"{letter}"({name}[{place}])'
        for name, many in ((a, na), ("b", nb))
        for place in range(many)
    )
    opcode = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{sum_}.{type_}.{type_}.{sum_}"
    return f'asm volatile("{opcode} {sums}, {first}, {second}, {sums};" : {outputs} : {inputs});'


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
    const %(type)s s = %(type)s(0.5) + %(type)s(threadIdx.x) / 4096, t = -s;
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
_FIRST = (
    'asm volatile("fma.rn.{0} %0, %1, %2, %0;" : "+{1}"(v[k].{2}) : "{1}"(v[k].{3}), "{1}"(s));'
)
_SECOND = _FIRST.replace("(s)", "(t)")


def intensity_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield the sweep in single and double precision, from far below to far above balance."""
    for width in ("fp32", "fp64"):
        for steps in STEPS:
            yield _of_intensity(chip, width, steps)


def _of_intensity(chip: Chip, width: Width, steps: int) -> Benchmark:
    opcode, type_, vector, size, kind, letter, pairs, fold = TABLES["widths"][width]
    part = min(steps, UNROLLED)
    parts = steps // part if part else 0
    numbers = 16 // size
    threads = chip.sms * _SWEEP_BLOCKS * _SWEEP_THREADS
    count = even_elements(STREAM_BYTES // 16, threads * VECTORS)
    first = [_FIRST.format(kind, letter, a, b) for a, b in pairs]
    second = [_SECOND.format(kind, letter, b, a) for a, b in pairs]
    fmas, moved = float(steps * numbers * count), 16.0 * count
    intensity = 2 * steps / size
    loads = {} if parts > 1 else {r"LDG\.E\.128(\.CONSTANT)?": VECTORS}
    return Benchmark(
        name=f"{width}, {intensity:g} flop/byte",
        group="intensity",
        text=_SWEEP
        % {
            "threads": _SWEEP_THREADS,
            "vector": vector,
            "type": type_,
            "count": count,
            "loads": VECTORS,
            "parts": parts,
            "part": part,
            "both": " ".join(first + second),
            "fold": fold,
        },
        blocks=chip.sms * _SWEEP_BLOCKS,
        threads=_SWEEP_THREADS,
        arguments=(output(4 * threads), Buffer(size_bytes=16 * count, fill=width), "repeat"),
        operations=fmas,
        loops=count / VECTORS / WARP * max(1, parts),
        flops=2 * fmas,
        useful_bytes=moved,
        amounts=tuple(streamed_amounts(moved).items()),
        expected=loads | {opcode: part * numbers * VECTORS},
        parameters=(("flops_per_byte", intensity),),
    )


def peak_per_cycle(benchmark: str, capability: int) -> float | None:
    """Return the instructions of threads that an SM is specified to do in a cycle.

    Args:
        benchmark: a name of the group ``arithmetic``, as ``fp32 fma``.
        capability: the compute capability, as 90 for 9.0.

    ``None``: the guide says nothing, as of divisions and of 64-bit integers, which are sequences.
    """
    peaks = {one.name: dict(zip(CAPABILITIES, one.peak, strict=False)) for one in OPERATIONS}
    return peaks.get(benchmark, {}).get(capability)

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

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

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
    """An instruction to time; its name begins with the type, a key of ``_TYPES``.

    ``step`` is PTX for one step of a pair of chains: ``%0`` and ``%1`` are the chains, ``%2`` and
    ``%3`` constants of the thread. It holds ``each`` of the instruction, of which each does
    ``flops`` floating-point operations a thread. ``opcodes`` are regular expressions of machine
    code, as many of each in a step. ``sequence`` names the feature of the fit that one of it
    is, where it is compiled to many instructions of other kinds.
    """

    name: str
    step: str
    opcodes: str
    flops: int = 0
    each: int = 2
    unroll: int = 64
    prepare: str = ""
    sequence: str = ""


def _chain(opcode: str, first: str = "%0, %1", second: str = "%1, %0") -> str:
    return f"{opcode} %0, {first}; {opcode} %1, {second};"


def _mapped(opcode: str, kind: str, then: str, absolute: str = "") -> str:
    """Return PTX of ``x = then(opcode(x))`` for both chains."""
    lines = []
    for chain in ("%0", "%1"):
        lines += [f"{absolute} t, {chain};"] if absolute else []
        lines.append(f"{opcode} t, {'t' if absolute else chain};")
        lines.append(f"{then} {chain}, {'t, %2, %3' if kind == 'f32' else f'{chain}, %2, t'};")
    return f"{{ .reg .{kind} t; {' '.join(lines)} }}"


_SHIFT = "shf.l.wrap.b32 %0, %0, %1, %2; shf.l.wrap.b32 %1, %1, %0, %2;"
_BITS = "lop3.b32 %0, %0, %1, %2, 0x78; lop3.b32 %1, %1, %0, %2, 0x78;"
_COMPARE = (
    "{ .reg .pred p; setp.lt.u32 p, %0, 0x60000000; selp.b32 %0, %2, %3, p;"
    " setp.lt.u32 p, %1, 0x60000000; selp.b32 %1, %2, %3, p; }"
)
_REVERSE = "{ .reg .u32 t; brev.b32 t, %0; xor.b32 %0, t, %1; brev.b32 t, %1; xor.b32 %1, t, %0; }"
_TURN = "fma.rn.{0} %0, %1, %2, %0; fma.rn.{0} %1, %0, %3, %1;"
_SUM = "add.{0} %0, %0, %1; sub.{0} %1, %1, %0;"
_TO_AND_FRO = "mul.{0} %0, %0, %2; mul.{0} %0, %0, %3; mul.{0} %1, %1, %2; mul.{0} %1, %1, %3;"


def _of_floats(width: str, type_: str, letter: str) -> Iterator[Operation]:
    """Yield sums, products and multiply-adds of a width, as ``FADD`` or ``DADD``."""
    yield Operation(f"{width} add", _SUM.format(type_), f"{letter}ADD", 1)
    mul = _TO_AND_FRO.format(type_)
    yield Operation(f"{width} mul", mul, f"{letter}MUL", 1, 4, 32, prepare="t = 1 / s;")
    yield Operation(f"{width} fma", _TURN.format(type_), f"{letter}FMA", 2, prepare="t = -s;")


def _quotient(name: str, opcode: str, unroll: int, of: str = "") -> Operation:
    chain = _chain(opcode, "%2, %0", "%2, %1")
    return Operation(
        name, chain, rf"MUFU\.RCP{of}", 1, unroll=unroll, sequence=name.replace(" ", "_")
    )


_COMPARED = r"ISETP\.(GE|LT)\.U32\.AND SEL"
_ADD_64 = r"IADD3(\.X)?|IMAD\.X|IMAD\.IADD|IADD\.64"
_FMUL = r" FMUL(\.(FTZ|RZ))*"

OPERATIONS: tuple[Operation, ...] = (
    Operation("int32 add", _chain("add.u32"), r"IADD3|IMAD\.IADD|IADD"),
    Operation("int32 mul", _chain("mul.lo.u32"), "IMAD"),
    Operation("int32 popc", _mapped("popc.b32", "u32", "mad.lo.u32"), "POPC IMAD"),
    Operation("int32 find", _mapped("bfind.u32", "u32", "mad.lo.u32"), r"FLO\.U32 IMAD"),
    Operation("int32 reverse", _REVERSE, r"BREV LOP3\.LUT"),
    Operation("int32 shift", _SHIFT, r"SHF\.L\.W\.U32(\.HI)?|SHF\.L\.W\..*"),
    Operation("int32 bits", _BITS, r"LOP3\.LUT"),
    Operation("int32 compare", _COMPARE, _COMPARED, prepare="s |= 0x80000000u; t &= 0x3fffffffu;"),
    Operation("int64 add", _chain("add.u64"), f"{_ADD_64} {_ADD_64}", sequence="int64_add"),
    *_of_floats("fp32", "f32", "F"),
    _quotient("fp32 div", "div.rn.f32", 8),
    _quotient("fp32 div ftz", "div.rn.ftz.f32", 8),
    _quotient("fp32 div approx", "div.approx.f32", 8),
    _quotient("fp32 div approx ftz", "div.approx.ftz.f32", 8),
    *(
        Operation(
            f"fp32 {name}",
            _mapped(f"{opcode}.approx.ftz.f32", "f32", "fma.rn.ftz.f32", absolute),
            rf"MUFU\.{sass} FFMA(\.FTZ)?{extra}",
            flops=1,
            unroll=32,
            prepare=prepare,
        )
        for name, opcode, sass, absolute, extra, prepare in (
            ("sin", "sin", "SIN", "", _FMUL, "s *= 2;"),
            ("cos", "cos", "COS", "", _FMUL, "s *= 2;"),
            ("exp", "ex2", "EX2", "", "", "s = -s;"),
            ("log", "lg2", "LG2", "abs.ftz.f32", r" FADD\.FTZ", "s *= 2;"),
            ("rsqrt", "rsqrt", "RSQ", "abs.ftz.f32", r" FADD\.FTZ", "s *= -2; t += 1;"),
            ("rcp", "rcp", "RCP", "", "", "s *= -2;"),
        )
    ),
    *_of_floats("fp64", "f64", "D"),
    _quotient("fp64 div", "div.rn.f64", 4, of="64H"),
    Operation(
        "fp16x2 fma", _TURN.format("f16x2"), r"HFMA2(\.MMA)?", 4, prepare="t = s ^ 0x80008000u;"
    ),
)
"""Every instruction of scalar arithmetic that is timed, in the order of MIPP's Fig. 2."""

_TYPES = {
    "int32": ("unsigned", "r", "word({0}) | 1u"),
    "int64": ("unsigned long long", "l", "(unsigned long long)word({0}) << 32 | word({0} + 16)"),
    "fp32": ("float", "f", "__uint_as_float(word({0}) >> 9 | 0x3f800000u)"),
    "fp64": ("double", "d", "__hiloint2double(word({0}) >> 12 | 0x3ff00000u, word({0} + 16))"),
    "fp16x2": ("unsigned", "r", "(word({0}) & 0x03ff03ffu) | 0x3c003c00u"),
}
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
    c_type, letter, load = _TYPES[operation.name.split()[0]]
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
        amounts={operation.sequence: operations / WARP} if operation.sequence else {},
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


_HALVES = "(word({0}) & 0x83ff83ffu) | 0x38003800u"
_BFLOATS = "(word({0}) & 0x807f807fu) | 0x3f003f00u"
_FLOATS = "(word({0}) & 0x807fe000u) | 0x3f000000u"
_DOUBLES = "__hiloint2double((word({0}) & 0x800fffffu) | 0x3fe00000u, word({0} + 16))"
_BOTH = "0x80008000u"

PRODUCTS: tuple[Product, ...] = (
    Product(
        "fp16 mma", (16, 8, 16), ("f16", "f32"), r"HMMA\.16816\.F32", _HALVES, (4, 2, 4), _BOTH
    ),
    Product(
        "bf16 mma", (16, 8, 16), ("bf16", "f32"), r"HMMA\.16816\.F32\.BF16", _BFLOATS, (4, 2, 4),
        _BOTH,
    ),
    Product("tf32 mma", (16, 8, 8), ("tf32", "f32"), r"HMMA\.1688\.F32\.TF32", _FLOATS, (4, 2, 4)),
    Product(
        "fp64 mma", (8, 8, 4), ("f64", "f64"), r"DMMA\.884|DMMA\.8x8x4", _DOUBLES, (1, 1, 2),
        most_capability=89,
    ),
    Product(
        "fp64 mma", (16, 8, 16), ("f64", "f64"), r"DMMA\.16816|DMMA\.16x8x16", _DOUBLES, (8, 4, 4),
        least_capability=90,
    ),
)  # fmt: skip
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

STEPS: tuple[int, ...] = (0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 96, 128, 256)
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


_WIDTHS: Mapping[Width, tuple[str, str, str, int, str, str, tuple[tuple[str, str], ...], str]] = {
    "fp32": (
        "FFMA", "float", "float4", 4, "f32", "f", (("x", "y"), ("z", "w")),
        "sum ^= __float_as_uint(v[k].x) ^ __float_as_uint(v[k].y)"
        " ^ __float_as_uint(v[k].z) ^ __float_as_uint(v[k].w);",
    ),
    "fp64": (
        "DFMA", "double", "double2", 8, "f64", "d", (("x", "y"),),
        "sum ^= __double2loint(v[k].x) ^ __double2hiint(v[k].x)"
        " ^ __double2loint(v[k].y) ^ __double2hiint(v[k].y);",
    ),
}  # fmt: skip


def _of_intensity(chip: Chip, width: Width, steps: int) -> Benchmark:
    opcode, type_, vector, size, kind, letter, pairs, fold = _WIDTHS[width]
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
        amounts=streamed_amounts(moved),
        expected=loads | {opcode: part * numbers * VECTORS},
        parameters={"flops_per_byte": intensity},
    )


CAPABILITIES = (70, 75, 80, 86, 89, 90)
"""Compute capabilities of the table, as in 90 for 9.0."""

_ROWS: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("fp32", "add mul fma", (64, 64, 64, 128, 128, 128)),
    ("fp64", "add mul fma", (32, 2, 32, 2, 2, 64)),
    ("fp16x2", "fma", (64, 64, 128, 64, 64, 128)),  # the guide counts results: two of each
    ("fp32", "sin cos exp log rsqrt rcp", (16,) * 6),
    ("int32", "add mul shift bits compare", (64,) * 6),
    ("int32", "popc find reverse", (16,) * 6),
)

_TABLE: Mapping[tuple[str, int], float] = {
    (f"{type_} {name}", capability): float(rate)
    for type_, names, rates in _ROWS
    for name in names.split()
    for capability, rate in zip(CAPABILITIES, rates, strict=True)
}


def peak_per_cycle(benchmark: str, capability: int) -> float | None:
    """Return the instructions of threads that an SM is specified to do in a cycle.

    Args:
        benchmark: a name of the group ``arithmetic``, as ``fp32 fma``.
        capability: the compute capability, as 90 for 9.0.

    ``None``: the guide says nothing, as of divisions and of 64-bit integers, which are sequences.
    """
    return _TABLE.get((benchmark, capability))

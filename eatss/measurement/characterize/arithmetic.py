"""Microbenchmarks of arithmetic: long chains of one instruction [MIPP, Fig. 2 and Fig. 3].

Each thread keeps several chains, so that the unit under test and not the latency of a result
decides. What a chain computes never settles: a unit that sees the same bits again draws less. So
multiply-adds turn a point about a circle, divisions and reciprocals go to and fro, integers run
through sums and products of themselves. Where that needs a second instruction, it is counted too.

What NVIDIA specifies of arithmetic: results per clock cycle and SM.

From the CUDA C++ Programming Guide, *Arithmetic Instructions*, table *Throughput of Native
Arithmetic Instructions*.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from eatss.base.frozen import frozen
from eatss.measurement.characterize.benchmark import WARP, Benchmark, Buffer, out_and_in

THREADS = 512
BLOCKS_PER_SM = 2
PAIRS = 4
"""Pairs of chains a thread; with 32 warps on an SM enough for every unit."""


@frozen
class Operation:
    """An instruction to time; its name begins with the type, a key of ``_TYPES``.

    ``step`` is PTX for one step of a pair of chains: ``%0`` and ``%1`` are the chains, ``%2`` and
    ``%3`` constants of the thread. It holds ``count`` of the instruction, of which each does
    ``flops`` floating-point operations a thread. ``opcodes`` maps regular expressions of machine
    code to how many a step has. ``sequence`` names the feature of the fit that one of it is, where
    it is compiled to many instructions of other kinds.
    """

    name: str
    step: str
    opcodes: Mapping[str, int]
    count: int = 2
    flops: int = 0
    unroll: int = 64
    prepare: str = ""
    sequence: str = ""


_BOTH = "{0} %0, {1}; {0} %1, {2};"


def _chain(opcode: str, first: str, second: str) -> str:
    return _BOTH.format(opcode, first, second)


def _mapped(opcode: str, kind: str, then: str, absolute: str = "") -> str:
    """Return PTX of ``x = then(opcode(x))`` for both chains."""
    lines = []
    for chain in ("%0", "%1"):
        lines += [f"{absolute} t, {chain};"] if absolute else []
        lines.append(f"{opcode} t, {'t' if absolute else chain};")
        lines.append(f"{then} {chain}, {'t, %2, %3' if kind == 'f32' else f'{chain}, %2, t'};")
    return f"{{ .reg .{kind} t; {' '.join(lines)} }}"


_COMPARE = "{ .reg .pred p; " + " ".join(
    f"setp.lt.u32 p, {chain}, 0x60000000; selp.b32 {chain}, %2, %3, p;" for chain in ("%0", "%1")
) + " }"  # fmt: skip
_REVERSE = "{ .reg .u32 t; brev.b32 t, %0; xor.b32 %0, t, %1; brev.b32 t, %1; xor.b32 %1, t, %0; }"
_TURN = "fma.rn.{0} %0, %1, %2, %0; fma.rn.{0} %1, %0, %3, %1;"
_SUM = "add.{0} %0, %0, %1; sub.{0} %1, %1, %0;"
_TO_AND_FRO = "mul.{0} %0, %0, %2; mul.{0} %0, %0, %3; mul.{0} %1, %1, %2; mul.{0} %1, %1, %3;"
_TURNING = "t = -s;"
_INVERSE = "t = 1 / s;"


def _of_floats(width: str, type_: str, letter: str) -> tuple[Operation, ...]:
    """Return sums, products and multiply-adds of a width, as ``FADD`` or ``DADD``."""
    return (
        Operation(
            name=f"{width} add", step=_SUM.format(type_), flops=1,
            opcodes={f"{letter}ADD": 2},
        ),
        Operation(
            name=f"{width} mul", step=_TO_AND_FRO.format(type_), flops=1, count=4,
            opcodes={f"{letter}MUL": 4}, prepare=_INVERSE, unroll=32,
        ),
        Operation(
            name=f"{width} fma", step=_TURN.format(type_), flops=2,
            opcodes={f"{letter}FMA": 2}, prepare=_TURNING,
        ),
    )  # fmt: skip


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="int32 add", step=_chain("add.u32", "%0, %1", "%1, %0"),
        opcodes={r"IADD3|IMAD\.IADD|IADD": 2},
    ),
    Operation(
        name="int32 mul", step=_chain("mul.lo.u32", "%0, %1", "%1, %0"),
        opcodes={r"IMAD": 2},
    ),
    Operation(
        name="int32 popc", step=_mapped("popc.b32", "u32", "mad.lo.u32"),
        opcodes={r"POPC": 2, r"IMAD": 2},
    ),
    Operation(
        name="int32 find", step=_mapped("bfind.u32", "u32", "mad.lo.u32"),
        opcodes={r"FLO\.U32": 2, r"IMAD": 2},
    ),
    Operation(
        name="int32 reverse", step=_REVERSE,
        opcodes={r"BREV": 2, r"LOP3\.LUT": 2},
    ),
    Operation(
        name="int32 shift",
        step="shf.l.wrap.b32 %0, %0, %1, %2; shf.l.wrap.b32 %1, %1, %0, %2;",
        opcodes={r"SHF\.L\.W\.U32(\.HI)?|SHF\.L\.W\..*": 2},
    ),
    Operation(
        name="int32 bits",
        step="lop3.b32 %0, %0, %1, %2, 0x78; lop3.b32 %1, %1, %0, %2, 0x78;",
        opcodes={r"LOP3\.LUT": 2},
    ),
    Operation(
        name="int32 compare", step=_COMPARE,
        opcodes={r"ISETP\.(GE|LT)\.U32\.AND": 2, r"SEL": 2},
        prepare="s |= 0x80000000u; t &= 0x3fffffffu;",
    ),
    Operation(
        name="int64 add", step=_chain("add.u64", "%0, %1", "%1, %0"),
        opcodes={r"IADD3(\.X)?|IMAD\.X|IMAD\.IADD|IADD\.64": 4}, sequence="int64_add",
    ),
    *_of_floats("fp32", "f32", "F"),
    *(
        Operation(
            name=f"fp32 {name}", step=_chain(opcode, "%2, %0", "%2, %1"), flops=1,
            opcodes={r"MUFU\.RCP": 2}, sequence=key, unroll=8,
        )
        for name, opcode, key in (
            ("div", "div.rn.f32", "fp32_div"),
            ("div ftz", "div.rn.ftz.f32", "fp32_div_ftz"),
            ("div approx", "div.approx.f32", "fp32_div_approx"),
            ("div approx ftz", "div.approx.ftz.f32", "fp32_div_approx_ftz"),
        )
    ),
    *(
        Operation(
            name=f"fp32 {name}", flops=1, unroll=32,
            step=_mapped(f"{opcode}.approx.ftz.f32", "f32", "fma.rn.ftz.f32", absolute),
            opcodes={rf"MUFU\.{sass}": 2, r"FFMA(\.FTZ)?": 2} | extra,
            prepare=prepare,
        )
        for name, opcode, sass, absolute, extra, prepare in (
            ("sin", "sin", "SIN", "", {r"FMUL(\.(FTZ|RZ))*": 2}, "s *= 2;"),
            ("cos", "cos", "COS", "", {r"FMUL(\.(FTZ|RZ))*": 2}, "s *= 2;"),
            ("exp", "ex2", "EX2", "", {}, "s = -s;"),
            ("log", "lg2", "LG2", "abs.ftz.f32", {r"FADD\.FTZ": 2}, "s *= 2;"),
            ("rsqrt", "rsqrt", "RSQ", "abs.ftz.f32", {r"FADD\.FTZ": 2}, "s *= -2; t += 1;"),
            ("rcp", "rcp", "RCP", "", {}, "s *= -2;"),
        )
    ),
    *_of_floats("fp64", "f64", "D"),
    Operation(
        name="fp64 div", step=_chain("div.rn.f64", "%2, %0", "%2, %1"), flops=1,
        opcodes={r"MUFU\.RCP64H": 2}, sequence="fp64_div", unroll=4,
    ),
    Operation(
        name="fp16x2 fma", step=_TURN.format("f16x2"), flops=4,
        opcodes={r"HFMA2(\.MMA)?": 2},
        prepare="t = s ^ 0x80008000u;",
    ),
)  # fmt: skip
"""Every instruction of scalar arithmetic that is timed, in the order of MIPP's Fig. 2."""

_TYPES = {
    "int32": ("unsigned", "r", "word({0}) | 1u"),
    "int64": ("unsigned long long", "l", "(unsigned long long)word({0}) << 32 | word({0} + 16)"),
    "fp32": ("float", "f", "__uint_as_float(word({0}) >> 9 | 0x3f800000u)"),
    "fp64": (
        "double",
        "d",
        "__hiloint2double(word({0}) >> 12 | 0x3ff00000u, word({0} + 16))",
    ),
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


def scalar_benchmarks(sms: int) -> tuple[Benchmark, ...]:
    """Return the benchmarks of scalar arithmetic for a card of so many SMs."""
    return tuple(_benchmark(operation, sms) for operation in OPERATIONS)


def _benchmark(operation: Operation, sms: int) -> Benchmark:
    c_type, letter, load = _TYPES[operation.name.split()[0]]
    times = PAIRS * operation.unroll
    threads = sms * BLOCKS_PER_SM * THREADS
    operations = operation.count * times * threads
    of_sequence = {operation.sequence: operations / WARP} if operation.sequence else {}
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
        blocks=sms * BLOCKS_PER_SM,
        threads=THREADS,
        arguments=out_and_in(threads, Buffer(size_bytes=4 * WORDS * threads)),
        operations=operations,
        flops=float(operation.flops * operations),
        loops=threads / WARP,
        amounts=of_sequence,
        expected={opcode: n * times for opcode, n in operation.opcodes.items()},
    )


@frozen
class TensorOperation:
    """A product of tensor cores; ``registers`` of A, B and C, as a warp's thread holds them."""

    name: str
    shape: tuple[int, int, int]
    opcode: str
    machine: str
    operand: str
    sum: str
    registers: tuple[int, int, int]
    least_capability: int
    negate: str = "0x80000000u"
    most_capability: int = 1000

    @property
    def flops(self) -> int:
        """Floating-point operations of one instruction of a warp."""
        return 2 * prod(self.shape)


_HALVES = "(word({0}) & 0x83ff83ffu) | 0x38003800u"
_BFLOATS = "(word({0}) & 0x807f807fu) | 0x3f003f00u"
_FLOATS = "(word({0}) & 0x807fe000u) | 0x3f000000u"
_DOUBLES = "__hiloint2double((word({0}) & 0x800fffffu) | 0x3fe00000u, word({0} + 16))"

TENSOR_OPERATIONS: tuple[TensorOperation, ...] = (
    TensorOperation(
        name="fp16 mma", shape=(16, 8, 16), machine=r"HMMA\.16816\.F32",
        opcode="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", operand=_HALVES, sum="f32",
        registers=(4, 2, 4), least_capability=80, negate="0x80008000u",
    ),
    TensorOperation(
        name="bf16 mma", shape=(16, 8, 16), machine=r"HMMA\.16816\.F32\.BF16",
        opcode="mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", operand=_BFLOATS, sum="f32",
        registers=(4, 2, 4), least_capability=80, negate="0x80008000u",
    ),
    TensorOperation(
        name="tf32 mma", shape=(16, 8, 8), machine=r"HMMA\.1688\.F32\.TF32",
        opcode="mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", operand=_FLOATS, sum="f32",
        registers=(4, 2, 4), least_capability=80,
    ),
    TensorOperation(
        name="fp64 mma", shape=(8, 8, 4), machine=r"DMMA\.884|DMMA\.8x8x4",
        opcode="mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", operand=_DOUBLES, sum="f64",
        registers=(1, 1, 2), least_capability=80, most_capability=89,
    ),
    TensorOperation(
        name="fp64 mma", shape=(16, 8, 16), machine=r"DMMA\.16816|DMMA\.16x8x16",
        opcode="mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", operand=_DOUBLES, sum="f64",
        registers=(8, 4, 4), least_capability=90,
    ),
)  # fmt: skip
"""Products of tensor cores through ``mma.sync``. On Hopper ``wgmma`` reaches more with 16 bits."""

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


def tensor_benchmarks(sms: int, capability: int) -> tuple[Benchmark, ...]:
    """Return the benchmarks of tensor cores that a card of this compute capability has."""
    return tuple(
        _tensor_benchmark(operation, sms)
        for operation in TENSOR_OPERATIONS
        if operation.least_capability <= capability <= operation.most_capability
    )


def _tensor_benchmark(operation: TensorOperation, sms: int) -> Benchmark:
    na, nb, nc = operation.registers
    double = operation.sum == "f64"
    threads = sms * 4 * _TENSOR_THREADS
    instructions = 2 * _TENSOR_SUMS * _TENSOR_UNROLL
    warps = threads / WARP
    return Benchmark(
        name=operation.name,
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
            "a": operation.operand.format("k"),
            "minus": "-a[k]" if double else f"a[k] ^ {operation.negate}",
            "b": operation.operand.format(f"k + {na}u"),
            "plus": _mma(operation, "a"),
            "less": _mma(operation, "minus"),
        },
        blocks=sms * 4,
        threads=_TENSOR_THREADS,
        arguments=out_and_in(threads, Buffer(size_bytes=4 * WORDS * threads)),
        operations=instructions * warps,
        flops=float(operation.flops) * instructions * warps,
        loops=warps,
        expected={operation.machine: instructions},
    )


def _mma(operation: TensorOperation, a: str) -> str:
    """Return inline PTX of ``c[n] += a × b``."""
    na, nb, nc = operation.registers
    letter, total = ("d", "d") if operation.sum == "f64" else ("r", "f")
    places = [f"%{k}" for k in range(nc + na + nb)]
    sums, first, second = (
        f"{{{', '.join(places[slice(*ends)])}}}"
        for ends in ((0, nc), (nc, nc + na), (nc + na, None))
    )
    outputs = ", ".join(f'"+{total}"(c[n][{k}])' for k in range(nc))
    inputs = ", ".join(
        f'"{letter}"({name}[{k}])' for name, many in ((a, na), ("b", nb)) for k in range(many)
    )
    ptx = f"{operation.opcode} {sums}, {first}, {second}, {sums};"
    return f'asm volatile("{ptx}" : {outputs} : {inputs});'


SOURCE = "CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions"

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

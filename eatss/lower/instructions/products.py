"""Products: of one thread, and of small matrices on tensor cores.

The lanes of a warp are eight rows of four: lane ``4 * row + quad``. Which of them has which element
is as in PTX ISA, "Matrix Fragments for mma", but for the names of the steps of a sum: where a lane
has some that follow each other, it can load them at a time.
"""

from collections.abc import Mapping, Sequence
from itertools import product

from eatss.lower.instructions.product_texts import (
    BYTES,
    DOUBLES,
    FEW_DOUBLES,
    HALVES,
    SPLIT_TF32,
    TF32,
    Shape,
    Texts,
)
from eatss.lower.kernel.instruction import (
    Capability,
    Coordinate,
    Distribution,
    Instruction,
    Multiplying,
    Operand,
    Rounding,
)
from eatss.polyhedral.expression import ElementType
from eatss.program.linear import Linear

ROWS, QUADS = Coordinate("row", 8), Coordinate("quad", 4)
LANES_OF_A_BOX = (ROWS, QUADS)


def held_by_lanes(*points: Mapping[str, int], slots: Sequence[Coordinate]) -> Distribution:
    """Return which lane has which element of a matrix, in which slot: an index a dimension."""
    return Distribution(
        coordinates=(*LANES_OF_A_BOX, *slots), points=tuple(Linear(terms, 0) for terms in points)
    )


FMA = Instruction(
    name="fma",
    what="fused multiply-add",
    operands=(Operand(name="d", role="inout"), Operand(name="a"), Operand(name="b")),
    target="d",
    value="a * b",
    adds=True,
    cuda="{d} = eatss_fma({a}, {b}, {d});",
    definitions="""\

// a * b + c, rounded once whatever the compiler is told.
__device__ __forceinline__ float eatss_fma(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}
__device__ __forceinline__ double eatss_fma(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}
""",
    cpu_definitions="""\

// a * b + c, rounded once.
inline float eatss_fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
inline double eatss_fma(double a, double b, double c)
{
    return fma(a, b, c);
}
""",
)
"""``d = a * b + d`` with one rounding; compilers contract products and sums to it by themselves,
unless they are told not to.
"""

_HALF_ULP = 2.0**-11
"""Of itself, how far a number is from the nearest one with 11 significant bits, at most."""

_SPLIT = 2.0**-23
"""Of itself, how far a float is from the sum of its two numbers in TF32: the rest is a whole number
of units of its last bit, up to 4096, of which an odd one above 2048 loses one."""

_LEAST = 2.0**-136
"""The same of subnormal numbers, which are cut off: the distance of two of them in TF32."""

_CUTS = 3
_SUM_ROUNDINGS = 2.0 * _CUTS
"""Roundings of a sum for each of its products.

Tensor cores add a few exact products and the sum before at once: all are shifted to the exponent of
the largest, cut off behind the last bit that a float has there, or later, and added; what comes out
is cut off once more [Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor
cores", 2021; Khattak and Mikaitis, "Accurate models of NVIDIA tensor cores", 2025]. So m products
that are not zero take m + 2 cuts, at most three for each, and a cut is as wrong as two roundings.
How many products are added at once, which depends on the card, changes nothing of that.
"""

_EXACT, _ALONE = Rounding(), Multiplying()


def _mma(
    name: str,
    shape: Shape,
    of: Texts,
    element_types: Sequence[ElementType],
    *,
    what: str = "tensor cores",
    factors: Sequence[ElementType | None] = (None, None),
    least: tuple[int, int] = (8, 0),
    rounding: Rounding = _EXACT,
    multiplying: Multiplying = _ALONE,
) -> Instruction:
    """Return ``d += a b``; ``factors`` are their types where these are not those of sums."""
    texts = shape.texts(of)
    half = {"half": 8} if shape.m > 8 else {}
    slots = [Coordinate(*one) for one in shape.slots.items()]
    sums = [Coordinate(one, 2) for one in (*half, "pair")]
    held = {
        "d": held_by_lanes({"row": 1, **half}, {"quad": 2, "pair": 1}, slots=sums),
        "a": held_by_lanes({"row": 1, **half}, shape.steps, slots=slots),
        "b": held_by_lanes(
            shape.steps, {"row": 1}, slots=[one for one in slots if one.name != "half"]
        ),
    }
    return Instruction(
        name=f"mma_{name}",
        what=what,
        operands=(
            Operand(name="d", role="inout", held=held["d"]),
            *(
                Operand(name=one, held=held[one], element_type=kind)
                for one, kind in zip("ab", factors, strict=True)
            ),
        ),
        instances=(("i", shape.m), ("j", 8), ("k", shape.k)),
        lanes=LANES_OF_A_BOX,
        target="d[i, j]",
        value="a[i, k] * b[k, j]",
        adds=True,
        element_types=tuple(element_types),
        exact=not any(one.is_floating for one in element_types),
        rounding=rounding,
        multiplying=multiplying,
        together=True,
        cuda=f"{texts.function}({{d}}, {{a}}, {{b}});",
        helpers=texts.helpers,
        definitions=texts.definitions,
        cpu_definitions=texts.for_cpu,
        capabilities=(Capability(least=least),),
    )


def _doubles(
    k: int, steps: Mapping[str, int], slots: Mapping[str, int], m: int = 16
) -> Instruction:
    shape = Shape(
        m=m, k=k, ptx="f64.f64.f64", steps=steps, slots=slots, c_types=("double", "double")
    )
    least, of = ((9, 0), DOUBLES) if m > 8 else ((8, 0), FEW_DOUBLES)
    return _mma(f"f64_{m}x8x{k}", shape, of, (ElementType.DOUBLE,), least=least)


MMA_F64_16X8X16 = _doubles(16, {"quad": 1, "step": 4}, {"step": 4, "half": 2})
"""``d += a b`` of doubles on sm_90 and later."""

MMA_F64_16X8X4 = _doubles(4, {"quad": 1}, {"half": 2})
"""The same in four steps, whose elements take few registers: those of the next fit beside them."""

MMA_F64_8X8X4 = _doubles(4, {"quad": 1}, {}, m=8)
"""``d += a b`` of doubles on sm_80 and later."""

_TF32 = Shape(
    k=8,
    ptx="f32.tf32.tf32",
    steps={"quad": 2, "step": 1},  # in PTX ISA quad and quad + 4
    slots={"step": 2, "half": 2},
    c_types=("float", "float"),
)
"""TF32 has the exponents of a float, and 10 bits behind the leading one. Products are exact."""

MMA_TF32_16X8X8 = _mma(
    "tf32_16x8x8",
    _TF32,
    TF32,
    (ElementType.FLOAT,),
    what="tensor cores with TF32",
    # (1 + e) (1 + f) - 1, where both are up to half a unit
    rounding=Rounding(
        product_error=2 * _HALF_ULP + _HALF_ULP**2, sum_roundings=_SUM_ROUNDINGS, least=_LEAST
    ),
    multiplying=Multiplying(format="tf32", conversions=2),
)
"""``d += a b`` of floats on sm_80 and later, factors rounded to TF32."""

MMA_3XTF32_16X8X8 = _mma(
    "3xtf32_16x8x8",
    _TF32,
    SPLIT_TF32,
    (ElementType.FLOAT,),
    what="tensor cores with split TF32",
    # a is a_hi + a_lo but for 2^-23 of itself: what is left has 13 bits, of which 11 stay. What is
    # not added, a_lo b_lo, is up to 2^-11 times 2^-11.
    rounding=Rounding(
        product_error=2 * _SPLIT + _SPLIT**2 + _HALF_ULP**2,
        sum_roundings=3 * _SUM_ROUNDINGS,
        least=_LEAST,
    ),
    multiplying=Multiplying(format="tf32", products=3, parts=2, conversions=4),
)
"""The same where each factor is two numbers in TF32, the rounded one and what is left: nearly as
exact as floats. It adds ``a_lo * b_hi``, ``a_hi * b_lo`` and ``a_hi * b_hi`` [CUTLASS, "3xTF32";
Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022].
"""

_HALVES = Shape(
    k=16,
    ptx="f32.f16.f16",
    steps={"quad": 2, "step": 1, "later": 8},
    slots={"later": 2, "half": 2, "step": 2},
    c_types=("float", "eatss_half"),
    share=2,
)
MMA_F16_16X8X16 = _mma(
    "f16_16x8x16",
    _HALVES,
    HALVES,
    (ElementType.FLOAT,),
    what="tensor cores with halves",
    factors=(ElementType.HALF, ElementType.HALF),
    rounding=Rounding(sum_roundings=_SUM_ROUNDINGS),
    multiplying=Multiplying(format="fp16"),
)
"""``d += a b`` on sm_80 and later: factors are halves, sums are floats.

Products of two halves are exact in floats. A register has two halves that follow each other along
the steps of a sum, so lanes can load whole matrices of 8 x 8 together
[:mod:`eatss.lower.instructions.matrix_loads`], into words that hold two halves each.
"""

_BYTES = {ElementType.INT8: "s8", ElementType.UINT8: "u8"}


def _of_bytes(first: ElementType, second: ElementType) -> Instruction:
    ptx = f"{_BYTES[first]}.{_BYTES[second]}"
    name = f"{ptx.replace('.', '_')}_16x8x32"
    shape = Shape(
        k=32,
        ptx=f"s32.{ptx}",
        steps={"quad": 4, "byte": 1, "later": 16},
        slots={"later": 2, "half": 2, "byte": 4},
        c_types=("Sum", "int"),
        share=4,
    )
    return _mma(
        name,
        shape,
        BYTES,
        (ElementType.INT32, ElementType.UINT32),
        what="tensor cores with bytes",
        factors=(first, second),
        multiplying=Multiplying(format="int8"),
    )


MMAS_OF_BYTES = tuple(_of_bytes(*factors) for factors in product(_BYTES, repeat=2))
"""``d += a b`` on sm_80 and later: factors are signed or unsigned bytes, sums are integers.

Sums wrap around, so they are the same in any order. A register has four bytes that follow each
other along the steps of a sum.
"""

PRODUCTS = (
    FMA,
    MMA_F64_8X8X4,
    MMA_F64_16X8X4,
    MMA_F64_16X8X16,
    MMA_TF32_16X8X8,
    MMA_3XTF32_16X8X8,
    MMA_F16_16X8X16,
    *MMAS_OF_BYTES,
)
"""All of them, in the order in which they are tried."""

"""Products of small matrices of floats on tensor cores, which multiply TF32: 11 significant bits.

TF32 has the exponents of a float, and 10 bits behind the leading one. Products of two are exact.
``mma_tf32_16x8x8`` rounds both factors to it. ``mma_3xtf32_16x8x8`` makes two numbers of a factor,
the rounded one and what is left: ``a = a_hi + a_lo``. It adds ``a_lo * b_hi``,
``a_hi * b_lo`` and ``a_hi * b_hi`` [CUTLASS, "3xTF32"; Ootomo and Yokota, "Recovering single
precision accuracy from Tensor Cores", 2022].

A lane has two steps that follow each other, ``2 * quad`` and the next one. PTX ISA calls them
``quad`` and ``quad + 4``; which step of a sum is called which changes nothing but what a lane can
load at a time.
"""

from eatss.instructions.matrices import HALF, LANES_OF_A_BOX, SUMS_OF_16X8, held_by_lanes
from eatss.kernel.distribution import Coordinate
from eatss.kernel.instruction import Capability, Instruction, Multiplying, Operand, Rounding
from eatss.scops import ElementType

_STEPS = 8
_STEP = Coordinate("step", 2)

_HALF_ULP = 2.0**-11
"""Of itself, how far a number is from the nearest one with 11 significant bits, at most."""

_SPLIT = 2.0**-23
"""Of itself, how far a float is from the sum of its two numbers in TF32: the rest is a whole number
of units of its last bit, up to 4096, of which an odd one above 2048 loses one."""

_LEAST = 2.0**-136
"""The same of subnormal numbers, which are cut off: the distance of two of them in TF32."""

_CUTS = 3
SUM_ROUNDINGS = 2.0 * _CUTS
"""Roundings of a sum for each of its products.

Tensor cores add a few exact products and the sum before at once: all are shifted to the exponent of
the largest, cut off behind the last bit that a float has there, or later, and added; what comes out
is cut off once more [Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor
cores", 2021; Khattak and Mikaitis, "Accurate models of NVIDIA tensor cores", 2025]. So m products
that are not zero take m + 2 cuts, at most three for each, and a cut is as wrong as two roundings.
How many products are added at once, which depends on the card, changes nothing of that.
"""

_OPERANDS = (
    SUMS_OF_16X8,
    Operand(
        name="a",
        held=held_by_lanes({"row": 1, "half": 8}, {"quad": 2, "step": 1}, slots=(_STEP, HALF)),
    ),
    Operand(name="b", held=held_by_lanes({"quad": 2, "step": 1}, {"row": 1}, slots=(_STEP,))),
)

_TF32 = """\

// Tensor cores cut a float off behind 11 significant bits. With half a unit of the last of them
// added that is the nearest such number, of two the one further from zero, as cvt.rna.tf32 makes
// it. Infinities and NaN stay what they are.
__device__ __forceinline__ float eatss_tf32(float value)
{
    const float sign_and_power = __uint_as_float(__float_as_uint(value) & 0xff800000u);
    return __fmaf_rn(sign_and_power, 0.00048828125f, value);
}
__device__ __forceinline__ void eatss_mma_tf32(
    float &d0, float &d1, float &d2, float &d3, float a0, float a1, float a2, float a3, float b0,
    float b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
                   "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}
"""

_TF32_REST = """\
// The same cut off, and what is left of a value: at most 12 bits, of which tensor cores have 11.
__device__ __forceinline__ float eatss_tf32_cut(float value)
{
    return __uint_as_float(__float_as_uint(eatss_tf32(value)) & 0xffffe000u);
}
__device__ __forceinline__ float eatss_tf32_rest(float value)
{
    return value - eatss_tf32_cut(value);
}
"""

_CPU_DEFINITIONS = """\

// The same, the lanes' values passed on as by shuffles.
inline float eatss_tf32_bits(float value, unsigned bits)
{
    unsigned all;
    memcpy(&all, &value, sizeof all);
    all &= bits;
    memcpy(&value, &all, sizeof all);
    return value;
}
inline float eatss_tf32(float value)
{
    const float sign_and_power = eatss_tf32_bits(value, 0xff800000u);
    return eatss_tf32_bits(fmaf(sign_and_power, 0.00048828125f, value), 0xffffe000u);
}
inline float eatss_tf32_rest(float value)
{
    return eatss_tf32_bits(value - eatss_tf32(value), 0xffffe000u);
}
#define eatss_mma_tf32_16x8x8(...) eatss_mma_tf32_at(__LINE__, false, __VA_ARGS__)
#define eatss_mma_3xtf32_16x8x8(...) eatss_mma_tf32_at(__LINE__, true, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_tf32_at(
    int line, bool rests, float &d0, float &d1, float &d2, float &d3, float a0, float a1, float a2,
    float a3, float b0, float b1)
{
    const float own[6] = {a0, a1, a2, a3, b0, b1};
    const eatss::Passed<float, 6> all(own, line);
    eatss::changes(d0, d1, d2, d3);
    const int row = all.lane / 4, quad = all.lane % 4;
    float *d[4] = {&d0, &d1, &d2, &d3};
    for (int part = rests ? 0 : 2; part < 3; part++)
        for (int k = 0; k < 8; k++)
            for (int slot = 0; slot < 4; slot++) {
                const float a = all.of(4 * row + k / 2)[2 * (k % 2) + slot / 2];
                const float b = all.of(4 * (2 * quad + slot % 2) + k / 2)[4 + k % 2];
                *d[slot] = fmaf(part == 0 ? eatss_tf32_rest(a) : eatss_tf32(a),
                                part == 1 ? eatss_tf32_rest(b) : eatss_tf32(b), *d[slot]);
            }
}
"""

MMA_TF32_16X8X8 = Instruction(
    name="mma_tf32_16x8x8",
    what="tensor cores with TF32",
    operands=_OPERANDS,
    instances=(("i", 16), ("j", 8), ("k", _STEPS)),
    lanes=LANES_OF_A_BOX,
    target="d[i, j]",
    value="a[i, k] * b[k, j]",
    adds=True,
    element_types=(ElementType.FLOAT,),
    # (1 + e) (1 + f) - 1, where both are up to half a unit
    rounding=Rounding(
        product_error=2 * _HALF_ULP + _HALF_ULP**2, sum_roundings=SUM_ROUNDINGS, least=_LEAST
    ),
    multiplying=Multiplying(format="tf32", conversions=2),
    together=True,
    cuda="eatss_mma_tf32_16x8x8({d}, {a}, {b});",
    helpers=(_TF32,),
    definitions="""\

// d += a b for 16 x 8 and 8 x 8 matrices that a warp holds, of factors that are rounded to TF32.
__device__ __forceinline__ void eatss_mma_tf32_16x8x8(
    float &d0, float &d1, float &d2, float &d3, float a0, float a1, float a2, float a3, float b0,
    float b1)
{
    eatss_mma_tf32(d0, d1, d2, d3, eatss_tf32(a0), eatss_tf32(a1), eatss_tf32(a2), eatss_tf32(a3),
                   eatss_tf32(b0), eatss_tf32(b1));
}
""",
    cpu_definitions=_CPU_DEFINITIONS,
    capabilities=(Capability(least=(8, 0)),),
)
"""``d += a b`` of floats on sm_80 and later, factors rounded to TF32."""

MMA_3XTF32_16X8X8 = Instruction(
    name="mma_3xtf32_16x8x8",
    what="tensor cores with split TF32",
    operands=_OPERANDS,
    instances=(("i", 16), ("j", 8), ("k", _STEPS)),
    lanes=LANES_OF_A_BOX,
    target="d[i, j]",
    value="a[i, k] * b[k, j]",
    adds=True,
    element_types=(ElementType.FLOAT,),
    # a is a_hi + a_lo but for 2^-23 of itself: what is left has 13 bits, of which 11 stay. What is
    # not added, a_lo b_lo, is up to 2^-11 times 2^-11.
    rounding=Rounding(
        product_error=2 * _SPLIT + _SPLIT**2 + _HALF_ULP**2,
        sum_roundings=3 * SUM_ROUNDINGS,
        least=_LEAST,
    ),
    multiplying=Multiplying(format="tf32", products=3, parts=2, conversions=4),
    together=True,
    cuda="eatss_mma_3xtf32_16x8x8({d}, {a}, {b});",
    helpers=(_TF32, _TF32_REST),
    definitions="""\

// d += a b for 16 x 8 and 8 x 8 matrices that a warp holds. A factor is the sum of two numbers in
// TF32; the product of what is left of both is not added.
__device__ __forceinline__ void eatss_mma_3xtf32_16x8x8(
    float &d0, float &d1, float &d2, float &d3, float a0, float a1, float a2, float a3, float b0,
    float b1)
{
    const float a[4] = {eatss_tf32_cut(a0), eatss_tf32_cut(a1), eatss_tf32_cut(a2),
                        eatss_tf32_cut(a3)};
    const float b[2] = {eatss_tf32_cut(b0), eatss_tf32_cut(b1)};
    eatss_mma_tf32(d0, d1, d2, d3, eatss_tf32_rest(a0), eatss_tf32_rest(a1), eatss_tf32_rest(a2),
                   eatss_tf32_rest(a3), b[0], b[1]);
    eatss_mma_tf32(d0, d1, d2, d3, a[0], a[1], a[2], a[3], eatss_tf32_rest(b0),
                   eatss_tf32_rest(b1));
    eatss_mma_tf32(d0, d1, d2, d3, a[0], a[1], a[2], a[3], b[0], b[1]);
}
""",
    cpu_definitions=_CPU_DEFINITIONS,
    capabilities=(Capability(least=(8, 0)),),
)
"""The same where each factor is two numbers in TF32: nearly as exact as floats."""

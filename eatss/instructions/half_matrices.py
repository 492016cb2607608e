"""Products of small matrices of halves on tensor cores, added up in floats.

Products of two halves are exact in floats. A register has two halves that follow each other along
the steps of a sum: a lane has the steps ``2 * quad`` and the next one, and both 8 later, as in PTX
ISA. So lanes can load whole matrices of 8 x 8 together [:mod:`eatss.instructions.matrix_loads`],
into words that hold two halves each.
"""

from eatss.instructions.matrices import HALF, LANES_OF_A_BOX, SUMS_OF_16X8, held_by_lanes
from eatss.instructions.narrow_matrices import SUM_ROUNDINGS
from eatss.kernel.distribution import Coordinate
from eatss.kernel.instruction import Capability, Instruction, Multiplying, Operand, Rounding
from eatss.scops import ElementType

_STEP, _LATER = Coordinate("step", 2), Coordinate("later", 2)

MMA_F16_16X8X16 = Instruction(
    name="mma_f16_16x8x16",
    what="tensor cores with halves",
    operands=(
        SUMS_OF_16X8,
        Operand(
            name="a",
            held=held_by_lanes(
                {"row": 1, "half": 8},
                {"quad": 2, "step": 1, "later": 8},
                slots=(_LATER, HALF, _STEP),
            ),
            element_type=ElementType.HALF,
        ),
        Operand(
            name="b",
            held=held_by_lanes(
                {"quad": 2, "step": 1, "later": 8}, {"row": 1}, slots=(_LATER, _STEP)
            ),
            element_type=ElementType.HALF,
        ),
    ),
    instances=(("i", 16), ("j", 8), ("k", 16)),
    lanes=LANES_OF_A_BOX,
    target="d[i, j]",
    value="a[i, k] * b[k, j]",
    adds=True,
    element_types=(ElementType.FLOAT,),
    rounding=Rounding(sum_roundings=SUM_ROUNDINGS),
    multiplying=Multiplying(format="fp16"),
    together=True,
    cuda="eatss_mma_f16_16x8x16({d}, {a}, {b});",
    definitions="""\

// Two halves in a register, the first one in its lower half.
__device__ __forceinline__ unsigned int eatss_pair(eatss_half first, eatss_half second)
{
    return first.bits | (unsigned int)second.bits << 16;
}
// d += a b for 16 x 16 and 16 x 8 matrices that a warp holds, of halves whose products are floats.
__device__ __forceinline__ void eatss_mma_f16_16x8x16(
    float &d0, float &d1, float &d2, float &d3, unsigned int a0, unsigned int a1, unsigned int a2,
    unsigned int a3, unsigned int b0, unsigned int b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void eatss_mma_f16_16x8x16(
    float &d0, float &d1, float &d2, float &d3, eatss_half a0, eatss_half a1, eatss_half a2,
    eatss_half a3, eatss_half a4, eatss_half a5, eatss_half a6, eatss_half a7, eatss_half b0,
    eatss_half b1, eatss_half b2, eatss_half b3)
{
    eatss_mma_f16_16x8x16(d0, d1, d2, d3, eatss_pair(a0, a1), eatss_pair(a2, a3),
                          eatss_pair(a4, a5), eatss_pair(a6, a7), eatss_pair(b0, b1),
                          eatss_pair(b2, b3));
}
""",
    cpu_definitions="""\

// The same, the lanes' values passed on as by shuffles.
#define eatss_mma_f16_16x8x16(...) eatss_mma_f16_16x8x16_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_f16_16x8x16_at(
    int line, float &d0, float &d1, float &d2, float &d3, eatss_half a0, eatss_half a1,
    eatss_half a2, eatss_half a3, eatss_half a4, eatss_half a5, eatss_half a6, eatss_half a7,
    eatss_half b0, eatss_half b1, eatss_half b2, eatss_half b3)
{
    const eatss_half own[12] = {a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3};
    const eatss::Passed<eatss_half, 12> all(own, line);
    eatss::changes(d0, d1, d2, d3);
    const int row = all.lane / 4, quad = all.lane % 4;
    float *d[4] = {&d0, &d1, &d2, &d3};
    for (int k = 0; k < 16; k++)
        for (int slot = 0; slot < 4; slot++)
            *d[slot] = fmaf(
                (float)all.of(4 * row + k % 8 / 2)[4 * (k / 8) + 2 * (slot / 2) + k % 2],
                (float)all.of(4 * (2 * quad + slot % 2) + k % 8 / 2)[8 + 2 * (k / 8) + k % 2],
                *d[slot]);
}
inline eatss_half eatss_of_pair(unsigned int pair, int which)
{
    eatss_half half;
    half.bits = (unsigned short)(pair >> 16 * which);
    return half;
}
EATSS_UNSEEN inline void eatss_mma_f16_16x8x16_at(
    int line, float &d0, float &d1, float &d2, float &d3, unsigned int a0, unsigned int a1,
    unsigned int a2, unsigned int a3, unsigned int b0, unsigned int b1)
{
    eatss_mma_f16_16x8x16_at(
        line, d0, d1, d2, d3, eatss_of_pair(a0, 0), eatss_of_pair(a0, 1), eatss_of_pair(a1, 0),
        eatss_of_pair(a1, 1), eatss_of_pair(a2, 0), eatss_of_pair(a2, 1), eatss_of_pair(a3, 0),
        eatss_of_pair(a3, 1), eatss_of_pair(b0, 0), eatss_of_pair(b0, 1), eatss_of_pair(b1, 0),
        eatss_of_pair(b1, 1));
}
""",
    capabilities=(Capability(least=(8, 0)),),
)
"""``d += a b`` on sm_80 and later: factors are halves, sums are floats."""

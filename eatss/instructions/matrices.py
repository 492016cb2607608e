"""Products of small matrices of doubles that lanes of a warp hold together: tensor cores.

The lanes are eight rows of four: lane ``4 * row + quad``. PTX ISA, "Matrix Fragments for mma".
"""

from eatss.kernel.distribution import Coordinate, Distribution
from eatss.kernel.instruction import Capability, Instruction, Operand
from eatss.program.linear import Linear
from eatss.scops import ElementType

ROWS, QUADS = Coordinate("row", 8), Coordinate("quad", 4)
LANES_OF_A_BOX = (ROWS, QUADS)


def held_by_lanes(*points: dict[str, int], slots: tuple[Coordinate, ...]) -> Distribution:
    """Return which lane has which element of a matrix, in which slot: an index a dimension."""
    return Distribution(
        coordinates=(*LANES_OF_A_BOX, *slots), points=tuple(Linear(terms, 0) for terms in points)
    )


HALF, PAIR = Coordinate("half", 2), Coordinate("pair", 2)

SUMS_OF_16X8 = Operand(
    name="d",
    role="inout",
    held=held_by_lanes({"row": 1, "half": 8}, {"quad": 2, "pair": 1}, slots=(HALF, PAIR)),
)
"""A matrix of 16 x 8 that products are added to: a lane has two neighbours in each of two rows."""


def _steps(count: int) -> Coordinate:
    return Coordinate("step", count)


MMA_F64_16X8X16 = Instruction(
    name="mma_f64_16x8x16",
    what="tensor cores",
    operands=(
        SUMS_OF_16X8,
        Operand(
            name="a",
            held=held_by_lanes(
                {"row": 1, "half": 8}, {"quad": 1, "step": 4}, slots=(_steps(4), HALF)
            ),
        ),
        Operand(
            name="b", held=held_by_lanes({"quad": 1, "step": 4}, {"row": 1}, slots=(_steps(4),))
        ),
    ),
    instances=(("i", 16), ("j", 8), ("k", 16)),
    lanes=LANES_OF_A_BOX,
    target="d[i, j]",
    value="a[i, k] * b[k, j]",
    adds=True,
    element_types=(ElementType.DOUBLE,),
    together=True,
    cuda="eatss_mma_16x8x16({d}, {a}, {b});",
    definitions="""\

// d += a b for 16 x 16 and 16 x 8 matrices that a warp holds; products are added in the order of k.
__device__ __forceinline__ void eatss_mma_16x8x16(
    double &d0, double &d1, double &d2, double &d3, double a0, double a1, double a2, double a3,
    double a4, double a5, double a6, double a7, double b0, double b1, double b2, double b3)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(d0), "+d"(d1), "+d"(d2), "+d"(d3)
                 : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(a4), "d"(a5), "d"(a6), "d"(a7),
                   "d"(b0), "d"(b1), "d"(b2), "d"(b3));
}
""",
    cpu_definitions="""\

// The same, the lanes' values passed on as by shuffles.
#define eatss_mma_16x8x16(...) eatss_mma_16x8x16_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_16x8x16_at(
    int line, double &d0, double &d1, double &d2, double &d3, double a0, double a1, double a2,
    double a3, double a4, double a5, double a6, double a7, double b0, double b1, double b2,
    double b3)
{
    const double own[12] = {a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3};
    const eatss::Passed<double, 12> all(own, line);
    eatss::changes(d0, d1, d2, d3);
    const int row = all.lane / 4, quad = all.lane % 4;
    double *d[4] = {&d0, &d1, &d2, &d3};
    for (int k = 0; k < 16; k++)
        for (int slot = 0; slot < 4; slot++)
            *d[slot] = fma(all.of(4 * row + k % 4)[2 * (k / 4) + slot / 2],
                           all.of(4 * (2 * quad + slot % 2) + k % 4)[8 + k / 4], *d[slot]);
}
""",
    capabilities=(Capability(least=(9, 0)),),
)
"""``d += a b`` of doubles on sm_90 and later."""

MMA_F64_16X8X4 = Instruction(
    name="mma_f64_16x8x4",
    what="tensor cores",
    operands=(
        SUMS_OF_16X8,
        Operand(name="a", held=held_by_lanes({"row": 1, "half": 8}, {"quad": 1}, slots=(HALF,))),
        Operand(name="b", held=held_by_lanes({"quad": 1}, {"row": 1}, slots=())),
    ),
    instances=(("i", 16), ("j", 8), ("k", 4)),
    lanes=LANES_OF_A_BOX,
    target="d[i, j]",
    value="a[i, k] * b[k, j]",
    adds=True,
    element_types=(ElementType.DOUBLE,),
    together=True,
    cuda="eatss_mma_16x8x4({d}, {a}, {b});",
    definitions="""\

// d += a b for 16 x 4 and 4 x 8 matrices that a warp holds; products are added in the order of k.
__device__ __forceinline__ void eatss_mma_16x8x4(
    double &d0, double &d1, double &d2, double &d3, double a0, double a1, double b)
{
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(d0), "+d"(d1), "+d"(d2), "+d"(d3)
                 : "d"(a0), "d"(a1), "d"(b));
}
""",
    cpu_definitions="""\

// The same, the lanes' values passed on as by shuffles.
#define eatss_mma_16x8x4(...) eatss_mma_16x8x4_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_16x8x4_at(
    int line, double &d0, double &d1, double &d2, double &d3, double a0, double a1, double b)
{
    const double own[3] = {a0, a1, b};
    const eatss::Passed<double, 3> all(own, line);
    eatss::changes(d0, d1, d2, d3);
    const int row = all.lane / 4, quad = all.lane % 4;
    double *d[4] = {&d0, &d1, &d2, &d3};
    for (int k = 0; k < 4; k++)
        for (int slot = 0; slot < 4; slot++)
            *d[slot] = fma(all.of(4 * row + k)[slot / 2],
                           all.of(4 * (2 * quad + slot % 2) + k)[2], *d[slot]);
}
""",
    capabilities=(Capability(least=(9, 0)),),
)
"""The same in four steps, whose elements take few registers: those of the next fit beside them."""

MMA_F64_8X8X4 = Instruction(
    name="mma_f64_8x8x4",
    what="tensor cores",
    operands=(
        Operand(
            name="d",
            role="inout",
            held=held_by_lanes({"row": 1}, {"quad": 2, "pair": 1}, slots=(PAIR,)),
        ),
        Operand(name="a", held=held_by_lanes({"row": 1}, {"quad": 1}, slots=())),
        Operand(name="b", held=held_by_lanes({"quad": 1}, {"row": 1}, slots=())),
    ),
    instances=(("i", 8), ("j", 8), ("k", 4)),
    lanes=LANES_OF_A_BOX,
    target="d[i, j]",
    value="a[i, k] * b[k, j]",
    adds=True,
    element_types=(ElementType.DOUBLE,),
    together=True,
    cuda="eatss_mma_8x8x4({d}, {a}, {b});",
    definitions="""\

// d += a b for 8 x 4 and 4 x 8 matrices that a warp holds; products are added in the order of k.
__device__ __forceinline__ void eatss_mma_8x8x4(double &d0, double &d1, double a, double b)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d0), "+d"(d1)
                 : "d"(a), "d"(b));
}
""",
    cpu_definitions="""\

// The same, the lanes' values passed on as by shuffles.
#define eatss_mma_8x8x4(...) eatss_mma_8x8x4_at(__LINE__, __VA_ARGS__)
EATSS_UNSEEN inline void eatss_mma_8x8x4_at(int line, double &d0, double &d1, double a, double b)
{
    const double own[2] = {a, b};
    const eatss::Passed<double, 2> all(own, line);
    eatss::changes(d0, d1);
    const int row = all.lane / 4, quad = all.lane % 4;
    for (int k = 0; k < 4; k++) {
        d0 = fma(all.of(4 * row + k)[0], all.of(8 * quad + k)[1], d0);
        d1 = fma(all.of(4 * row + k)[0], all.of(8 * quad + 4 + k)[1], d1);
    }
}
""",
    capabilities=(Capability(least=(8, 0)),),
)
"""``d += a b`` of doubles on sm_80 and later."""

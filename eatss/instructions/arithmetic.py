"""Arithmetic of one thread."""

from eatss.kernel.instruction import Instruction, Operand

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

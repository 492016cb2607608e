"""Sums that threads of all blocks add to."""

from eatss.kernel.instruction import Capability, Instruction, Operand
from eatss.scops import ElementType

ATOMIC_ADD = Instruction(
    name="atomic_add",
    what="atomicAdd",
    operands=(Operand(name="target", role="inout"), Operand(name="value")),
    target="target",
    value="value",
    adds=True,
    exact=True,
    element_types=(
        ElementType.FLOAT,
        ElementType.DOUBLE,
        ElementType.INT32,
        ElementType.UINT32,
        ElementType.INT64,
        ElementType.UINT64,
    ),
    atomic=True,
    cuda="eatss_atomic_add(&{target}, {value});",
    definitions="""\

// *pointer += value as one step; the cast is to the same bits, for which addition is the same.
__device__ __forceinline__ void eatss_atomic_add(float *pointer, float value)
{
    atomicAdd(pointer, value);
}
__device__ __forceinline__ void eatss_atomic_add(double *pointer, double value)
{
    atomicAdd(pointer, value);
}
__device__ __forceinline__ void eatss_atomic_add(int *pointer, int value)
{
    atomicAdd(pointer, value);
}
__device__ __forceinline__ void eatss_atomic_add(unsigned int *pointer, unsigned int value)
{
    atomicAdd(pointer, value);
}
__device__ __forceinline__ void eatss_atomic_add(unsigned long *pointer, unsigned long value)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(pointer), (unsigned long long)value);
}
__device__ __forceinline__ void eatss_atomic_add(long *pointer, long value)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(pointer), (unsigned long long)value);
}
""",
    capabilities=(Capability(least=(6, 0), element_type=ElementType.DOUBLE),),
)
"""``target += value`` as one step, whatever other threads add to it."""

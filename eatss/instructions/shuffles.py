"""Values that lanes of a warp pass to each other."""

from eatss.kernel.distribution import LANES, ONE_A_LANE
from eatss.kernel.instruction import Capability, Instruction, Operand
from eatss.scops import ElementType

SHUFFLE_DOWN_ADD = Instruction(
    name="shuffle_down_add",
    what="shuffles between threads",
    operands=(Operand(name="sum", role="inout", held=ONE_A_LANE),),
    immediates=("delta", "width"),
    instances=(("lane", LANES),),
    target="sum[lane]",
    value="sum[lane + delta] if lane % width + delta < width else sum[lane]",
    adds=True,
    exact=True,
    element_types=tuple(ElementType),
    together=True,
    cuda="{sum} += eatss_shuffle_down({sum}, {delta}, {width});",
    definitions="""\

// The value of the thread `delta` lanes up, within groups of `width`; all of the warp call it.
template <typename Value>
__device__ __forceinline__ Value eatss_shuffle_down(Value value, unsigned int delta, int width)
{
    return __shfl_down_sync(0xffffffffu, value, delta, width);
}
""",
    capabilities=(Capability(least=(3, 0)),),
)
"""``sum +=`` that of the lane ``delta`` up, within groups of ``width`` lanes."""

"""Values that lanes of a warp pass to each other."""

from eatss.instructions.combining import combined_into, helpers_of, value_of
from eatss.kernel.distribution import LANES, ONE_A_LANE
from eatss.kernel.instruction import Capability, Instruction, Operand
from eatss.scops import ElementType
from eatss.scops.combiners import ADD, COMBINERS, Combiner

_DEFINITIONS = """\

// The value of the thread `delta` lanes up, within groups of `width`; all of the warp call it.
template <typename Value>
__device__ __forceinline__ Value eatss_shuffle_down(Value value, unsigned int delta, int width)
{
    return __shfl_down_sync(0xffffffffu, value, delta, width);
}
"""


def _shuffle_down(combiner: Combiner) -> Instruction:
    adds = combiner is ADD
    own = "sum[lane]"
    other = f"sum[lane + delta] if lane % width + delta < width else {own}"
    return Instruction(
        name=f"shuffle_down_{combiner.name}",
        what="shuffles between threads",
        operands=(Operand(name="sum", role="inout", held=ONE_A_LANE),),
        immediates=("delta", "width"),
        instances=(("lane", LANES),),
        target=own,
        value=other if adds else value_of(combiner, own, f"({other})"),
        adds=adds,
        exact=True,
        element_types=tuple(ElementType) if adds else combiner.element_types,
        together=True,
        cuda=combined_into(combiner, "{sum}", "eatss_shuffle_down({sum}, {delta}, {width})"),
        helpers=helpers_of(combiner),
        definitions=_DEFINITIONS,
        capabilities=(Capability(least=(3, 0)),),
    )


SHUFFLES = {one.name: _shuffle_down(one) for one in COMBINERS}
"""``sum`` is combined with that of the lane ``delta`` up, within groups of ``width`` lanes.

They are found by the name of what combines them.
"""

SHUFFLE_DOWN_ADD = SHUFFLES[ADD.name]

"""Parts of a reduction that become one: what a thread does by itself."""

from eatss.kernel.instruction import Instruction, Operand
from eatss.scops.combiners import COMBINERS, Combiner

_CHOICES = {
    "max": """\

// The larger of two values, the first where one is NaN.
template <typename Value>
__device__ __forceinline__ Value eatss_larger(Value one, Value other)
{
    return other > one ? other : one;
}
""",
    "min": """\

// The smaller of two values, the first where one is NaN.
template <typename Value>
__device__ __forceinline__ Value eatss_smaller(Value one, Value other)
{
    return other < one ? other : one;
}
""",
    "fmax": """\

// The larger of two numbers, the other one where one is NaN.
__device__ __forceinline__ float eatss_fmax(float one, float other) { return fmaxf(one, other); }
__device__ __forceinline__ double eatss_fmax(double one, double other) { return fmax(one, other); }
""",
    "fmin": """\

// The smaller of two numbers, the other one where one is NaN.
__device__ __forceinline__ float eatss_fmin(float one, float other) { return fminf(one, other); }
__device__ __forceinline__ double eatss_fmin(double one, double other) { return fmin(one, other); }
""",
}
_FUNCTIONS = {
    "max": "eatss_larger", "min": "eatss_smaller", "fmax": "eatss_fmax", "fmin": "eatss_fmin",
}  # fmt: skip
_SIGNS = {"add": "+", "multiply": "*", "and": "&", "or": "|", "xor": "^"}


def helpers_of(combiner: Combiner) -> tuple[str, ...]:
    """Return the definitions that the text of a combination uses."""
    return (_CHOICES[combiner.name],) if combiner.name in _CHOICES else ()


def combined(combiner: Combiner, one: str, other: str) -> str:
    """Return two values combined, as an expression of CUDA."""
    if combiner.name in _FUNCTIONS:
        return f"{_FUNCTIONS[combiner.name]}({one}, {other})"
    return f"{one} {_SIGNS[combiner.name]} {other}"


def combined_into(combiner: Combiner, target: str, value: str) -> str:
    """Return the statement of CUDA that combines a value with a target."""
    if combiner.name in _FUNCTIONS:
        return f"{target} = {combined(combiner, target, value)};"
    return f"{target} {_SIGNS[combiner.name]}= {value};"


def value_of(combiner: Combiner, target: str, value: str) -> str:
    """Return what a combination is in the language of instructions."""
    words = {"target": target, "value": value}
    return " ".join(words.get(word, word) for word in combiner.value.split())


COMBINES = {
    one.name: Instruction(
        name=f"combine_{one.name}",
        what="a combination",
        operands=(Operand(name="target", role="inout"), Operand(name="value")),
        target="target",
        value=one.value,
        exact=True,
        element_types=one.element_types,
        helpers=helpers_of(one),
        cuda=combined_into(one, "{target}", "{value}"),
    )
    for one in COMBINERS
}
"""``target`` becomes what it and ``value`` make, by the name of what combines them."""

"""Parts of a reduction that become one: by a thread, between lanes of a warp, and in memory."""

import tomllib
from dataclasses import replace
from pathlib import Path

from eatss.base.frozen import Names
from eatss.base.targets import CUDA
from eatss.lower.kernel.instruction import ONE_A_LANE, Capability, Instruction, Operand
from eatss.polyhedral.expression import ADD, COMBINERS, FLOATING, Combiner, ElementType

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


def _helpers_of(combiner: Combiner) -> Names:
    """Return the definitions that the text of a combination uses."""
    return (_CHOICES[combiner.name],) if combiner.name in _CHOICES else ()


def combined(combiner: Combiner, one: str, other: str) -> str:
    """Return two values combined, as an expression of CUDA."""
    if combiner.name in _FUNCTIONS:
        return f"{_FUNCTIONS[combiner.name]}({one}, {other})"
    return f"{one} {_SIGNS[combiner.name]} {other}"


def _combined_into(combiner: Combiner, target: str, value: str) -> str:
    """Return the statement of CUDA that combines a value with a target."""
    if combiner.name in _FUNCTIONS:
        return f"{target} = {combined(combiner, target, value)};"
    return f"{target} {_SIGNS[combiner.name]}= {value};"


def _value_of(combiner: Combiner, target: str, value: str) -> str:
    """Return what a combination is in the language of instructions."""
    words = {"target": target, "value": value}
    return " ".join(words.get(word, word) for word in combiner.value.split())


_UPDATED = (Operand(name="target", role="inout"), Operand(name="value"))

COMBINES = {
    one.name: Instruction(
        name=f"combine_{one.name}",
        what="a combination",
        operands=_UPDATED,
        target="target",
        value=one.value,
        exact=True,
        element_types=one.element_types,
        helpers=_helpers_of(one),
        cuda=_combined_into(one, "{target}", "{value}"),
    )
    for one in COMBINERS
}
"""``target`` becomes what it and ``value`` make, by the name of what combines them."""

_SHUFFLE = """\

// The value of the thread `delta` lanes up, within groups of `width`; all of the warp call it.
template <typename Value>
__device__ __forceinline__ Value eatss_shuffle_down(Value value, unsigned int delta, int width)
{
    return __shfl_down_sync(0xffffffffu, value, delta, width);
}
"""

_LANES = (("lane", CUDA.lanes),)
_SHUFFLED = (Capability(least=(3, 0)),)


def _shuffle(
    combiner: Combiner, name: str, other: str, found: str, definitions: str
) -> Instruction:
    """Return what combines the ``sum`` of each lane with that of another, ``found`` in CUDA."""
    own, adds = "sum[lane]", combiner is ADD
    return Instruction(
        name=f"{name}_{combiner.name}",
        what="shuffles between threads",
        operands=(Operand(name="sum", role="inout", held=ONE_A_LANE),),
        immediates=("delta", "width"),
        instances=_LANES,
        target=own,
        value=other if adds else _value_of(combiner, own, f"({other})"),
        adds=adds,
        exact=True,
        element_types=combiner.element_types,
        together=True,
        cuda=_combined_into(combiner, "{sum}", found),
        helpers=_helpers_of(combiner),
        definitions=definitions,
        capabilities=_SHUFFLED,
    )


def _shuffle_down(combiner: Combiner) -> Instruction:
    other = "sum[lane + delta] if lane % width + delta < width else sum[lane]"
    found = "eatss_shuffle_down({sum}, {delta}, {width})"
    own = _shuffle(combiner, "shuffle_down", other, found, _SHUFFLE)
    return replace(own, element_types=tuple(ElementType)) if combiner is ADD else own


SHUFFLES = {one.name: _shuffle_down(one) for one in COMBINERS}
"""``sum`` is combined with that of the lane ``delta`` up, within groups of ``width`` lanes.

They are found by the name of what combines them.
"""

_BELOW = """\

// The value of the thread `delta` lanes down, `other` where a group of `width` has none there; all
// of the warp call it, and lanes are threads along x.
template <typename Value, typename Other>
__device__ __forceinline__ Value eatss_lane_below(
    Value value, unsigned int delta, int width, Other other)
{
    const Value below = __shfl_up_sync(0xffffffffu, value, delta, width);
    return threadIdx.x % width < delta ? (Value)other : below;
}
"""
_OTHERS = {"add": "0", "xor": "0", "multiply": "1"}


def _scan_step(combiner: Combiner) -> Instruction:
    other = _OTHERS.get(combiner.name)
    below = f"sum[lane - delta] if lane % width >= delta else {other or 'sum[lane]'}"
    found = f"eatss_lane_below({{sum}}, {{delta}}, {{width}}, {other or '{sum}'})"
    return _shuffle(combiner, "scan_step", below, found, _BELOW)


SCAN_STEPS = {one.name: _scan_step(one) for one in COMBINERS}
"""``sum`` is combined with that of the lane ``delta`` down, within groups of ``width`` lanes."""


def _from_lane(name: str, immediate: str, value: str, definitions: str) -> Instruction:
    """Return what gives each ``lane`` the value of another one."""
    return Instruction(
        name=name,
        what="shuffles between threads",
        operands=(
            Operand(name="target", role="out", held=ONE_A_LANE),
            Operand(name="value", held=ONE_A_LANE),
        ),
        immediates=(immediate,),
        instances=_LANES,
        target="target[lane]",
        value=value,
        exact=True,
        element_types=tuple(ElementType),
        together=True,
        cuda=f"{{target}} = eatss_{name}({{value}}, {{{immediate}}});",
        definitions=definitions,
        capabilities=_SHUFFLED,
    )


OF_LANE = _from_lane(
    "of_lane",
    "delta",
    f"value[lane + delta] if 0 <= lane + delta < {CUDA.lanes} else value[lane]",
    """\

// The value of the thread `delta` lanes up, its own beyond the warp; all of the warp call it.
template <typename Value>
__device__ __forceinline__ Value eatss_of_lane(Value value, int delta)
{
    return delta < 0 ? __shfl_up_sync(0xffffffffu, value, -delta)
                     : __shfl_down_sync(0xffffffffu, value, delta);
}
""",
)
"""``target`` is the ``value`` of the lane ``delta`` up, its own where there is none."""

FROM_LANE = _from_lane(
    "from_lane",
    "source",
    "value[source]",
    """\

// The value of a lane; all of the warp call it.
template <typename Value>
__device__ __forceinline__ Value eatss_from_lane(Value value, int lane)
{
    return __shfl_sync(0xffffffffu, value, lane);
}
""",
)
"""``target`` is the ``value`` of one lane."""

FROM_BELOW = replace(
    _from_lane("lane_below", "width", "value[lane - 1] if lane % width else target[lane]", _BELOW),
    operands=(
        Operand(name="target", role="inout", held=ONE_A_LANE),
        Operand(name="value", held=ONE_A_LANE),
    ),
    cuda="{target} = eatss_lane_below({value}, 1, {width}, {target});",
)
"""``target`` is the ``value`` of the lane below; the first of ``width`` lanes keeps its own."""

_UPDATE = """\

// *pointer becomes what it and a value make, as one step. Bits are compared, so no value is lost
// that another thread stores in between; where nothing changes, nothing is stored.
template <typename Bits, typename Value, typename Combine>
__device__ __forceinline__ void eatss_atomic_update(Value *pointer, Value value, Combine combine)
{
    union Word {
        Value value;
        Bits bits;
    };
    Bits *const place = reinterpret_cast<Bits *>(pointer);
    Word before, after;
    before.bits = *const_cast<volatile Bits *>(place);
    while (true) {
        after.value = combine(before.value, value);
        if (after.bits == before.bits) return;
        const Bits found = atomicCAS(place, before.bits, after.bits);
        if (found == before.bits) return;
        before.bits = found;
    }
}
"""
_CUDA = {"max": "atomicMax", "min": "atomicMin", "and": "atomicAnd", "or": "atomicOr",
         "xor": "atomicXor", "add": "atomicAdd"}  # fmt: skip
_WIDE = (ElementType.INT64, ElementType.UINT64)
_TEXTS = tomllib.loads(Path(__file__).with_name("reductions.toml").read_text(encoding="utf-8"))


def _capabilities(combiner: Combiner) -> tuple[Capability, ...]:
    if combiner is ADD:
        return (Capability(least=(6, 0), element_type=ElementType.DOUBLE),)
    return tuple(
        Capability(least=(5, 0), element_type=kind) for kind in combiner.single if kind in _WIDE
    )


def _atomic(combiner: Combiner) -> Instruction:
    updates = any(kind not in combiner.single for kind in combiner.element_types)
    adds = combiner is ADD
    return Instruction(
        name=f"atomic_{combiner.name}",
        what=_CUDA.get(combiner.name, "atomicCAS"),
        operands=_UPDATED,
        target="target",
        value="value" if adds else combiner.value,
        adds=adds,
        exact=True,
        element_types=combiner.element_types,
        atomic=True,
        cuda=f"eatss_atomic_{combiner.name}(&{{target}}, {{value}});",
        helpers=(*_helpers_of(combiner), *((_UPDATE,) if updates else ())),
        definitions=_TEXTS["atomics"][combiner.name],
        capabilities=_capabilities(combiner),
    )


ATOMICS = {one.name: _atomic(one) for one in COMBINERS}
"""``target`` becomes what it and ``value`` make, as one step, whatever other threads do to it.

They are found by the name of what combines them.
"""

_PEEK = """\

// A value that others may change meanwhile.
template <typename Value>
__device__ __forceinline__ Value eatss_peek(const Value *from)
{
    return __ldcg(from);
}
"""

PEEK = Instruction(
    name="peek",
    what="a load",
    operands=(Operand(name="target", role="out"), Operand(name="value")),
    target="target",
    value="value",
    exact=True,
    atomic=True,
    cuda="{target} = eatss_peek(&{value});",
    definitions=_PEEK,
)
"""``target`` gets a ``value`` that other threads may change by atomic operations."""


def _improvement(combiner: Combiner) -> Instruction:
    atomic = ATOMICS[combiner.name]
    after = _value_of(combiner, "seen", "value")
    return replace(
        atomic,
        name=f"improve_{combiner.name}",
        operands=(*_UPDATED, Operand(name="seen")),
        value=f"target if ({after}) == seen else ({combiner.value})",
        element_types=FLOATING,
        cuda=f"eatss_atomic_{combiner.name}(&{{target}}, {{value}}, {{seen}});",
        helpers=(*atomic.helpers, atomic.definitions),
        definitions=_TEXTS["improvements"][combiner.name],
    )


IMPROVEMENTS = {
    one.name: _improvement(one) for one in COMBINERS if one.what in ("maximum", "minimum")
}
"""What :data:`ATOMICS` do for minima and maxima of floats, which are compared and exchanged: no
more than a comparison where ``seen``, a value of the target before, is no worse."""

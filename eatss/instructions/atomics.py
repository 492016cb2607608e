"""Reductions of which threads of all blocks have parts."""

from collections.abc import Iterator

from eatss.instructions.combining import combined, helpers_of
from eatss.kernel.instruction import Capability, Instruction, Operand
from eatss.scops import ElementType
from eatss.scops.combiners import ADD, COMBINERS, Combiner

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
_SAME = "the cast is to the same bits, for which {} is the same"
_ADD = f"// *pointer += value as one step; {_SAME.format('addition')}."
_WIDE = {ElementType.INT64: "long long", ElementType.UINT64: "unsigned long long"}
_BITS = {4: "unsigned int", 8: "unsigned long long"}
_CUDA = {"max": "atomicMax", "min": "atomicMin", "and": "atomicAnd", "or": "atomicOr",
         "xor": "atomicXor", "add": "atomicAdd"}  # fmt: skip
_ONE_WIDTH = frozenset({"add", "and", "or", "xor"})
"""Of what does not depend on the sign, cards have the unsigned version of 64 bits only."""


def _name(combiner: Combiner) -> str:
    return f"eatss_atomic_{combiner.name}"


def _body(combiner: Combiner, kind: ElementType) -> Iterator[str]:
    """Yield the statements of the version for a type."""
    wide = _WIDE.get(kind)
    if kind not in combiner.single:
        c_type, made = kind.value, combined(combiner, "a", "b")
        yield f"const auto combine = []({c_type} a, {c_type} b) {{ return {made}; }};"
        yield f"eatss_atomic_update<{_BITS[kind.size_bytes]}>(pointer, value, combine);"
    elif wide is None:
        yield f"{_CUDA[combiner.name]}(pointer, value);"
    else:
        if combiner.name in _ONE_WIDTH:
            wide = _WIDE[ElementType.UINT64]
        yield f"{_CUDA[combiner.name]}(reinterpret_cast<{wide} *>(pointer), ({wide})value);"


def _definitions(combiner: Combiner) -> Iterator[str]:
    yield ""
    head = f"// *pointer becomes what it and value make by '{combiner.operators[0]}', as one step."
    yield _ADD if combiner is ADD else head
    for kind in combiner.element_types:
        parameters = f"{kind.value} *pointer, {kind.value} value"
        yield f"__device__ __forceinline__ void {_name(combiner)}({parameters})"
        yield "{"
        yield from (f"    {line}" for line in _body(combiner, kind))
        yield "}"
    yield ""


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
        operands=(Operand(name="target", role="inout"), Operand(name="value")),
        target="target",
        value="value" if adds else combiner.value,
        adds=adds,
        exact=True,
        element_types=combiner.element_types,
        atomic=True,
        cuda=f"{_name(combiner)}(&{{target}}, {{value}});",
        helpers=(*helpers_of(combiner), *((_UPDATE,) if updates else ())),
        definitions="\n".join(_definitions(combiner)),
        capabilities=_capabilities(combiner),
    )


ATOMICS = {one.name: _atomic(one) for one in COMBINERS}
"""``target`` becomes what it and ``value`` make, as one step, whatever other threads do to it.

They are found by the name of what combines them.
"""

ATOMIC_ADD = ATOMICS[ADD.name]

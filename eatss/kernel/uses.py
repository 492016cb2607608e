"""What a kernel's nodes mention: names, buffers, and what they need of the card and the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from eatss.analysis.mapping import AXES, Axis
from eatss.kernel.nodes import (
    AtomicAdd,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Fill,
    For,
    If,
    Kernel,
    Let,
    Node,
    Scope,
    ShuffleAdd,
)
from eatss.kernel.values import functions
from eatss.program import Apply, IntExpr, Operator, names_in
from eatss.scop import ElementType

_OPERATORS_OF_FUNCTIONS = {
    "min": Operator.MIN,
    "max": Operator.MAX,
    "floord": Operator.FLOORDIV,
    "ceild": Operator.FLOORDIV,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What code needs besides C: of a card, and of the definitions at the top of its file.

    ``atomics`` are the types of what it adds to atomically, ``operators`` those of its integer
    expressions.
    """

    shared: bool = False
    dynamic_shared: bool = False
    shuffles: bool = False
    atomics: frozenset[ElementType] = frozenset()
    operators: frozenset[Operator] = frozenset()

    def joined(self, other: Needs) -> Needs:
        """Return what both need."""
        return Needs(
            shared=self.shared or other.shared,
            dynamic_shared=self.dynamic_shared or other.dynamic_shared,
            shuffles=self.shuffles or other.shuffles,
            atomics=self.atomics | other.atomics,
            operators=self.operators | other.operators,
        )


def inside(node: Node) -> tuple[tuple[Node, ...], ...]:
    """Return the bodies of a node."""
    if isinstance(node, For | Scope):
        return (node.body,)
    return (node.body, node.orelse) if isinstance(node, If) else ()


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes and all that stand in them, in their order."""
    for node in nodes:
        yield node
        for body in inside(node):
            yield from every(body)


def elements(node: Node) -> tuple[Element, ...]:
    """Return the elements that a node itself names."""
    if isinstance(node, Copy | AtomicAdd):
        return (node.target, node.source)
    if isinstance(node, Fill):
        return (node.target,)
    if isinstance(node, ShuffleAdd):
        return (node.register,)
    return (node.target, *node.reads) if isinstance(node, Compute) else ()


def expressions(node: Node) -> Iterator[IntExpr]:
    """Yield the integer expressions that a node itself computes, places of elements among them."""
    if isinstance(node, Let):
        yield node.value
    elif isinstance(node, For):
        yield from (node.lower, node.condition, node.step)
    elif isinstance(node, If):
        yield from node.conditions
    elif isinstance(node, Copy) and node.condition is not None:
        yield node.condition
    elif isinstance(node, Compute):
        yield from node.integers
    for element in elements(node):
        if element.buffer.space == "global":
            yield element.buffer.address(element.subscripts)
        else:
            yield from element.subscripts


def names_of(nodes: Iterable[Node]) -> set[str]:
    """Return the names that expressions in nodes mention."""
    return {name for node in every(nodes) for one in expressions(node) for name in names_in(one)}


def buffers_of(nodes: Iterable[Node]) -> set[Buffer]:
    """Return the buffers of which nodes name an element."""
    return {element.buffer for node in every(nodes) for element in elements(node)}


def without_unused(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Leave out constants that nothing mentions."""
    used = names_of(nodes)
    declared = Counter(node.name for node in every(nodes) if isinstance(node, Let))

    def kept(body: Sequence[Node]) -> tuple[Node, ...]:
        found: list[Node] = []
        for node in body:
            if isinstance(node, Let) and node.name not in used and declared[node.name] == 1:
                continue
            if isinstance(node, For | Scope):
                found.append(replace(node, body=kept(node.body)))
            elif isinstance(node, If):
                found.append(replace(node, body=kept(node.body), orelse=kept(node.orelse)))
            else:
                found.append(node)
        return tuple(found)

    return kept(nodes)


def grid_strides(kernel: Kernel) -> tuple[Axis, ...]:
    """Return the axes of the grid along which loops take a block from tile to tile."""
    steps = [node.step for node in every(kernel.body) if isinstance(node, For)]
    names = {name for step in steps for name in names_in(step)}
    return tuple(axis for axis in AXES if f"gridDim.{axis}" in names)


def needs_of(kernel: Kernel) -> Needs:
    """Return what a kernel needs of a card and of the definitions at the top of its file."""
    nodes = list(every(kernel.body))
    operators = {one for node in nodes for e in expressions(node) for one in operators_in(e)}
    for node in nodes:
        if isinstance(node, Compute):
            called = functions(node.statement.value)
            operators |= {
                _OPERATORS_OF_FUNCTIONS[one] for one in called if one in _OPERATORS_OF_FUNCTIONS
            }
    return Needs(
        shared=bool(kernel.shared) and not kernel.dynamic_shared,
        dynamic_shared=bool(kernel.shared) and kernel.dynamic_shared,
        shuffles=any(isinstance(node, ShuffleAdd) for node in nodes),
        atomics=frozenset(
            node.target.buffer.element_type for node in nodes if isinstance(node, AtomicAdd)
        ),
        operators=frozenset(operators),
    )


def operators_in(expression: IntExpr) -> Iterator[Operator]:
    """Yield the operators of an expression."""
    if isinstance(expression, Apply):
        yield expression.operator
        for operand in expression.operands:
            yield from operators_in(operand)


def registers_of(nodes: Iterable[Node]) -> tuple[Buffer, ...]:
    """Return the registers that nodes declare."""
    return tuple(node.buffer for node in every(nodes) if isinstance(node, Declare))

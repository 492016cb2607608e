"""What a kernel's nodes mention: names, buffers, instructions; walks and rewriters of them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from eatss.base.frozen import Names, distinct, their_names
from eatss.base.quotients import FORMATS
from eatss.base.targets import AXES, CUDA, Axis
from eatss.base.trees import Parts
from eatss.lower.kernel.instruction import Instruction, Rounding
from eatss.lower.kernel.nodes import (
    Agreed,
    Aligned,
    AllFinite,
    Buffer,
    Compute,
    Copy,
    Cycle,
    Declare,
    Element,
    Fixup,
    Flag,
    For,
    If,
    Intrinsic,
    Kernel,
    Let,
    Load,
    LookBack,
    Loop,
    NextTile,
    Node,
    Nodes,
    PartialSum,
    Scope,
    Share,
    Source,
    Staging,
    Steps,
    Way,
)
from eatss.polyhedral.expression import (
    AffineValue,
    ElementType,
    Expression,
    preorder,
    reads_in,
)
from eatss.program import Apply, Constant, IntExpr, Name, Operator, names_in, substitute
from eatss.program.expression import IntExprs
from eatss.program.linear import linear
from eatss.program.plan import RoundedSums

NAMED = Let | Flag | Aligned | AllFinite | Agreed | Fixup | NextTile
"""Nodes by whose name something is called behind them."""


_MET = (Share, PartialSum)
"""What all threads of a block do together has these, which have elements."""

_ELEMENTS: Parts[Element] = Parts(("Element", "Share", "PartialSum"), Element, _MET)
_INTEGERS: Parts[IntExpr] = Parts(("IntExpr",), IntExpr)
_BODIES = {
    For: ("body",),
    Scope: ("body",),
    If: ("body", "orelse"),
    Staging: ("ways",),
    Way: ("elements", "vectors"),
    Steps: ("loads", "products"),
    Loop: ("body",),
}

_Node = TypeVar("_Node", bound=Node)
_Env = TypeVar("_Env")
_Owner = TypeVar("_Owner", Element, Declare)


def inside(node: Node) -> tuple[Nodes, ...]:
    """Return the bodies of a node."""
    names = _BODIES.get(type(node))
    return () if names is None else tuple(getattr(node, name) for name in names)


def with_bodies(node: _Node, change: Callable[[Nodes], Iterable[Node]]) -> _Node:
    """Return a node with ``change`` made of each of its bodies; the same one where none changes."""
    own: Any = node
    bodies = inside(node)
    found = [tuple(change(body)) for body in bodies]
    if all(map(_same, bodies, found)):
        return node
    changed: _Node = replace(own, **dict(zip(_BODIES[type(own)], found, strict=True)))
    return changed


def _same(one: Nodes, other: Nodes) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


def walked(
    nodes: Iterable[Node], env: _Env, known: Callable[[_Env, Node], tuple[_Env, _Env]]
) -> Iterator[tuple[Node, _Env]]:
    """Yield nodes and all that stand in them, each with what is known where it stands.

    Args:
        nodes: a sequence of nodes.
        env: what is known in front of them.
        known: returns what is known inside a node and behind it.
    """
    for node in nodes:
        yield node, env
        here, env = known(env, node)
        for body in inside(node):
            yield from walked(body, here, known)


def rewritten(
    nodes: Iterable[Node],
    env: _Env,
    known: Callable[[_Env, Node], tuple[_Env, _Env]],
    change: Callable[[Node, _Env], Iterable[Node]],
) -> Nodes:
    """Return nodes with ``change`` in place of each, that of its bodies first; see ``walked``."""
    found: list[Node] = []
    for node in nodes:
        here, behind = known(env, node)
        inner = with_bodies(node, partial(rewritten, env=here, known=known, change=change))
        found += change(inner, env)
        env = behind
    return tuple(found)


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes and all that stand in them, in their order."""
    todo = [*nodes][::-1]
    while todo:
        node = todo.pop()
        yield node
        for body in reversed(inside(node)):
            todo += reversed(body)


def every_of(nodes: Iterable[Node], kind: type[_Node]) -> Iterator[_Node]:
    """Yield those of a kind among nodes and all that stand in them, in their order."""
    return (node for node in every(nodes) if isinstance(node, kind))


def mapped(nodes: Iterable[Node], change: Callable[[Node], Iterable[Node]]) -> Nodes:
    """Return nodes with ``change`` in place of each, that of its bodies first, in their order."""
    return tuple(
        found
        for node in nodes
        for found in change(with_bodies(node, lambda body: mapped(body, change)))
    )


def mapped_of(
    nodes: Iterable[Node], kind: type[_Node], change: Callable[[_Node], Node | Nodes]
) -> Nodes:
    """Return nodes with ``change`` in place of each of a kind: a node, or some."""

    def changed(node: Node) -> Nodes:
        found = change(node) if isinstance(node, kind) else node
        return found if isinstance(found, tuple) else (found,)

    return mapped(nodes, changed)


def outermost(nodes: Iterable[Node], change: Callable[[Node], Nodes]) -> Nodes:
    """Return nodes with ``change`` in place of the outermost that it makes something of."""

    def changed(nodes: Iterable[Node]) -> Nodes:
        return tuple(new for one in nodes for new in change(one) or (with_bodies(one, changed),))

    return changed(nodes)


def sent(nodes: Iterable[Node]) -> Nodes:
    """Return copies that do not pass through registers where they need not."""
    return mapped_of(nodes, Copy, lambda one: replace(one, ahead=one.kind.asynchronous))


def elements(node: Node) -> tuple[Element, ...]:
    """Return the elements that a node itself names."""
    if isinstance(node, Load):
        return (node.target, *(node.reads[number] for number in reads_in(node.part)))
    return _ELEMENTS.of(node)


def accesses(node: Node) -> tuple[tuple[Element, ...], tuple[Element, ...]]:
    """Return what a node itself writes and what it reads."""
    if isinstance(node, Intrinsic):
        return node.named(node.instruction.written), node.named(node.instruction.read)
    named = elements(node)
    if isinstance(node, AllFinite):
        return (), named
    return (
        (named, named) if isinstance(node, Fixup | NextTile | LookBack) else (named[:1], named[1:])
    )


def written(nodes: Iterable[Node]) -> set[Buffer]:
    """Return the buffers of which nodes, and those in them, write an element."""
    return {element.buffer for node in every(nodes) for element in accesses(node)[0]}


def divides_alike(loop: Node) -> Callable[[Element], bool]:
    """Return what tells whether all rounds of a loop divide by one register.

    Its reciprocal may stand in front of the loop then.
    """
    inside = {name for one in every((loop,)) for name in own_names(one)}
    changing = written((loop,))

    def alike(divisor: Element) -> bool:
        own = divisor.buffer
        stays = own not in changing and inside.isdisjoint(names_in(*divisor.subscripts))
        return own.space == "register" and stays and own.element_type.value in FORMATS

    return alike


def read(nodes: Iterable[Node]) -> set[Buffer]:
    """Return the buffers of which nodes, and those in them, read an element."""
    return {element.buffer for node in every(nodes) for element in accesses(node)[1]}


def own_expressions(node: Node) -> Iterator[IntExpr]:
    """Yield the integer expressions of a node itself, subscripts of its elements among them."""
    yield from node.strides if isinstance(node, Aligned) else _INTEGERS.of(node)
    for element in elements(node):
        yield from element.subscripts


def expressions(node: Node) -> Iterator[IntExpr]:
    """Yield the integer expressions that a node computes, the places of its elements included."""
    yield from own_expressions(node)
    for element in elements(node):
        if element.buffer.space == "global":
            yield element.buffer.layout.address(element.subscripts)


def with_buffers(nodes: Iterable[Node], other: Mapping[Buffer, Buffer]) -> Nodes:
    """Return nodes whose elements are of other buffers."""

    def owned(one: _Owner) -> _Owner:
        return replace(one, buffer=other.get(one.buffer, one.buffer))

    return mapped_of(with_elements(nodes, owned), Declare, owned)


def with_elements(nodes: Iterable[Node], element: Callable[[Element], Element]) -> Nodes:
    """Return nodes with other elements in the places of theirs."""
    return mapped(nodes, lambda node: (_ELEMENTS.rebuilt(node, element),))


def with_expressions(nodes: Iterable[Node], change: Callable[[IntExpr], IntExpr]) -> Nodes:
    """Return nodes with other integer expressions in the places of theirs."""

    def element(one: Element) -> Element:
        return _INTEGERS.rebuilt(one, change)

    return mapped(
        nodes, lambda node: (_ELEMENTS.rebuilt(_INTEGERS.rebuilt(node, change), element),)
    )


def substituted(nodes: Iterable[Node], values: Mapping[str, IntExpr]) -> Nodes:
    """Return nodes with expressions in the places of names."""
    return with_expressions(nodes, lambda one: substitute(one, values))


def in_slot(nodes: Iterable[Node], slots: Mapping[Buffer, Buffer], slot: IntExpr) -> Nodes:
    """Return nodes with elements of one slot of others in the places of those of buffers."""

    def element(one: Element) -> Element:
        other = slots.get(one.buffer)
        return one if other is None else other.at(slot, *one.subscripts)

    return with_elements(nodes, element)


def names_of(nodes: Iterable[Node]) -> set[str]:
    """Return the names that expressions in nodes mention."""
    return {name for node in every(nodes) for one in expressions(node) for name in names_in(one)}


def depends_on(names: Iterable[str], values: Mapping[str, Sequence[IntExpr]]) -> set[str]:
    """Return names and all that they stand for, directly or not, by the values of some."""
    found = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += names_in(*values.get(name, ()))
    return found


def own_names(node: Node) -> Names:
    """Return the names that a node gives: of what it counts, and what it is called behind it."""
    return (*counters_of(node), node.name) if isinstance(node, NAMED) else counters_of(node)


def counters_of(node: Node) -> Names:
    """Return the names that count something in a node."""
    match node:
        case For(cycle=Cycle() as cycle):
            return (node.counter, cycle.name)
        case For() | Steps() | AllFinite():
            return (node.counter,)
        case NextTile():
            return (node.run,)
        case Fixup():
            return (node.part, *(name for one in node.sums for name in one.counters))
    return ()


def taken_names(kernel: Kernel, sizes: Iterable[str] = ()) -> set[str]:
    """Return all names that something in a kernel has, or that are known without being passed."""
    nodes = list(every(kernel.body))
    found = {*sizes, *names_of(kernel.body), *their_names(kernel.arguments)}
    found |= {one.name for one in (*buffers_of(kernel.body), *kernel.shared)}
    return found | {name for one in nodes for name in own_names(one)}


def buffers_of(nodes: Iterable[Node]) -> set[Buffer]:
    """Return the buffers of which nodes name an element."""
    return {element.buffer for node in every(nodes) for element in elements(node)}


def without_unused(nodes: Sequence[Node]) -> Nodes:
    """Leave out constants that nothing mentions."""
    used = names_of(nodes)
    declared = Counter(their_names(every_of(nodes, Let)))

    def kept(node: Node) -> Nodes:
        if isinstance(node, Aligned) and node.name not in used:
            return ()
        goes = isinstance(node, Let) and node.name not in used and declared[node.name] == 1
        return () if goes else (node,)

    return mapped(nodes, kept)


def with_homes(nodes: Nodes, homes: Mapping[Element, Element]) -> Nodes:
    """Return nodes whose statements read registers in the place of elements."""

    def from_home(one: Compute) -> Node:
        return replace(one, reads=(one.target, *(homes.get(own, own) for own in one.reads[1:])))

    return without_unused(mapped_of(nodes, Compute, from_home))


def loads_along(
    nodes: Nodes,
    along: IntExprs,
    homes: Mapping[Element, Element],
    lets: Mapping[str, Sequence[IntExpr]],
) -> Nodes:
    """Return the loads of registers that have places along some loops, in these.

    Args:
        nodes: loops over points, with nothing but statements, whose names are ``lets``.
        along: the counters of the loops.
        homes: registers, by the elements that statements read.
        lets: values of names by name.
    """
    left = {own: home for own, home in homes.items() if home.subscripts == along}
    others = {one.counter for one in every_of(nodes, For)}.difference(names_in(*along))

    def change(node: Node) -> Nodes:
        match node:
            case Compute():
                first = [own for own in dict.fromkeys(node.reads[1:]) if own in left]
                return tuple(Copy(target=left.pop(own), source=own) for own in first)
            case For() if node.counter in others:
                return node.body
            case Source():
                return ()
            case Let() if not others.isdisjoint(depends_on([node.name], lets)):
                return ()
        return (node,)

    return without_unused(mapped(nodes, change))


def inexact_instructions(kernel: Kernel) -> Names:
    """Return the instructions that may round floating-point values otherwise than C does."""
    used = instructions_in(kernel)
    return tuple(sorted({one.name for one, kind in used if kind.is_floating and not one.exact}))


def rounded_sums(kernel: Kernel) -> tuple[RoundedSums, ...]:
    """Return the sums whose products or additions an instruction rounds more than C does."""
    used = dict(instructions_in(kernel))
    return tuple(
        RoundedSums(
            instruction=one.name,
            statements=computed_by(kernel, one.name),
            element_type=kind.value,
            product_error=one.rounding.product_error,
            sum_roundings=one.rounding.sum_roundings,
            least=one.rounding.least,
        )
        for one, kind in sorted(used.items(), key=lambda pair: pair[0].name)
        if one.rounding != Rounding()
    )


def computed_by(kernel: Kernel, name: str) -> Names:
    """Return the statements that an instruction computes."""
    performed = every_of(kernel.body, Intrinsic)
    own = (one.computes for one in performed if one.computes and one.instruction.name == name)
    return distinct(own)


def instruction_notes(kernel: Kernel, names: Sequence[str]) -> Iterator[str]:
    """Yield for each instruction which statements it computes, in words."""
    for name in names:
        statements = computed_by(kernel, name)
        what = f"computes {', '.join(statements)}" if statements else "fits no statement"
        yield f"{name}: {what}"


def grid_strides(kernel: Kernel) -> tuple[Axis, ...]:
    """Return the axes of the grid along which loops take a block from tile to tile."""
    names = set(names_in(*[node.step for node in every_of(kernel.body, For)]))
    return tuple(axis for axis in AXES if CUDA.blocks + axis in names)


def instructions_in(kernel: Kernel) -> Iterator[tuple[Instruction, ElementType]]:
    """Yield the instructions of a kernel, each with the type of what it writes."""
    for node in every_of(kernel.body, Intrinsic):
        (written, *_) = node.named(node.instruction.written)
        yield node.instruction, written.buffer.element_type


def affine_values(expression: Expression) -> Iterator[AffineValue]:
    """Yield the affine functions in a value, from the left."""
    return (node for node in preorder(expression) if isinstance(node, AffineValue))


def constant_trips(loop: For) -> int | None:
    """Return how often a loop runs, ``None`` where that is not constant or it goes by other steps.

    Args:
        loop: ``for (k = lower; k < last; k += 1)``, or with ``<=``.
    """
    last = bound_of(loop) if loop.step == Constant(1) else None
    form = None if last is None else linear(last - loop.lower)
    return None if form is None or form.terms else form.constant


def bound_of(loop: For) -> IntExpr | None:
    """Return what the counter of a loop stays below, if its condition is one bound."""
    match loop.condition:
        case Apply(Operator.LT | Operator.LE as kind, (Name(name), last)):
            if name == loop.counter and name not in names_in(last):
                return last if kind is Operator.LT else last + 1
    return None


def trips_from_zero(loop: For) -> int | None:
    """Return how often a loop runs whose counter numbers its iterations from 0."""
    return constant_trips(loop) if loop.lower == Constant(0) else None

"""What a kernel's nodes mention: names, buffers, and what they need of the card and the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eatss.analysis.mapping import AXES, Axis
from eatss.kernel.instruction import Instruction, Rounding
from eatss.kernel.nodes import (
    Aligned,
    AllFinite,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Evaluate,
    Fill,
    For,
    If,
    Kernel,
    Let,
    Node,
    Perform,
    PutTogether,
    Scope,
)
from eatss.kernel.values import functions
from eatss.program import Apply, IntExpr, Operator, names_in
from eatss.program.plan import RoundedSums
from eatss.scops import Cast, ElementType, Expression, Read, preorder

_OPERATORS_OF_FUNCTIONS = {
    "min": Operator.MIN,
    "max": Operator.MAX,
    "floord": Operator.FLOORDIV,
    "ceild": Operator.FLOORDIV,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What code needs besides C: of a card, and of the definitions at the top of its file.

    ``instructions`` are those it names, each with a type it is for; ``operators`` are those of its
    integer expressions. ``halves`` says that there are such numbers, ``overlaid`` that boxes lie in
    the same memory, ``copies_ahead`` that copies do not pass through registers, ``wide_copies``
    that some are of several elements, ``wide_rows`` that rows of registers are, ``wide_lines`` that
    registers are loaded so, ``finite`` that elements are tested for infinities, ``together`` that
    blocks put parts of sums together. ``wide_clears`` are those that clear what they do not read:
    ``"ahead"``, ``"load"``.
    """

    shared: bool = False
    dynamic_shared: bool = False
    overlaid: bool = False
    copies_ahead: bool = False
    halves: bool = False
    wide_copies: bool = False
    wide_rows: bool = False
    wide_lines: bool = False
    wide_clears: frozenset[str] = frozenset()
    finite: bool = False
    together: bool = False
    instructions: frozenset[tuple[Instruction, ElementType]] = frozenset()
    operators: frozenset[Operator] = frozenset()

    def joined(self, other: Needs) -> Needs:
        """Return what both need."""
        return Needs(
            shared=self.shared or other.shared,
            dynamic_shared=self.dynamic_shared or other.dynamic_shared,
            overlaid=self.overlaid or other.overlaid,
            copies_ahead=self.copies_ahead or other.copies_ahead,
            halves=self.halves or other.halves,
            wide_copies=self.wide_copies or other.wide_copies,
            wide_rows=self.wide_rows or other.wide_rows,
            wide_lines=self.wide_lines or other.wide_lines,
            wide_clears=self.wide_clears | other.wide_clears,
            finite=self.finite or other.finite,
            together=self.together or other.together,
            instructions=self.instructions | other.instructions,
            operators=self.operators | other.operators,
        )


NAMED = Let | Aligned | AllFinite | PutTogether
"""Nodes by whose name something is called behind them."""


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


def mapped(nodes: Iterable[Node], change: Callable[[Node], tuple[Node, ...]]) -> tuple[Node, ...]:
    """Return nodes with ``change`` in place of each, that of its bodies first, in their order."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, For | Scope):
            node = replace(node, body=mapped(node.body, change))  # noqa: PLW2901 - what is inside
        elif isinstance(node, If):
            body, orelse = mapped(node.body, change), mapped(node.orelse, change)
            node = replace(node, body=body, orelse=orelse)  # noqa: PLW2901
        found += change(node)
    return tuple(found)


def elements(node: Node) -> tuple[Element, ...]:
    """Return the elements that a node itself names."""
    if isinstance(node, Copy):
        return (node.target, node.source)
    if isinstance(node, Fill):
        return (node.target,)
    if isinstance(node, AllFinite | PutTogether):
        return _met(node)
    if isinstance(node, Perform):
        return tuple(one for _, several in node.operands for one in several)
    if isinstance(node, Evaluate):
        return (node.target, *(node.reads[read.access] for read in _reads(node.part)))
    return (node.target, *node.reads) if isinstance(node, Compute) else ()


def _met(node: AllFinite | PutTogether) -> tuple[Element, ...]:
    """Return the elements of what all threads of a block do together."""
    if isinstance(node, AllFinite):
        return tuple(one.element for one in node.shares)
    sums = (element for one in node.sums for element in (one.sum, one.left, one.found))
    return (node.arrived, *sums)


def _reads(part: Expression) -> Iterator[Read]:
    return (one for one in preorder(part) if isinstance(one, Read))


def accesses(node: Node) -> tuple[tuple[Element, ...], tuple[Element, ...]]:
    """Return what a node itself writes and what it reads."""
    if isinstance(node, Perform):
        return node.named(node.instruction.written), node.named(node.instruction.read)
    if isinstance(node, AllFinite):
        return (), elements(node)
    if isinstance(node, PutTogether):
        return elements(node), elements(node)
    if not elements(node):
        return (), ()
    target, *sources = elements(node)
    return (target,), tuple(sources)


def own_expressions(node: Node) -> Iterator[IntExpr]:
    """Yield the integer expressions of a node itself, subscripts of its elements among them."""
    if isinstance(node, Let):
        yield node.value
    elif isinstance(node, Aligned):
        yield from node.strides
    elif isinstance(node, AllFinite):
        yield from (node.unless, node.thread)
    elif isinstance(node, PutTogether):
        yield from (node.number, node.own, node.thread)
    elif isinstance(node, For):
        yield from (node.lower, node.condition, node.step)
    elif isinstance(node, If):
        yield from node.conditions
    elif isinstance(node, Copy) and node.condition is not None:
        yield node.condition
    elif isinstance(node, Compute):
        yield from node.integers
    for element in elements(node):
        yield from element.subscripts


def expressions(node: Node) -> Iterator[IntExpr]:
    """Yield the integer expressions that a node computes, the places of its elements included."""
    yield from own_expressions(node)
    for element in elements(node):
        layout = element.buffer.layout
        if element.buffer.space == "global":
            yield layout.address(element.subscripts)
        elif layout.swizzle:
            yield from layout.place(element.subscripts)


def with_buffers(nodes: Iterable[Node], other: Mapping[Buffer, Buffer]) -> tuple[Node, ...]:
    """Return nodes whose elements are of other buffers."""

    def element(one: Element) -> Element:
        return replace(one, buffer=other.get(one.buffer, one.buffer))

    def declared(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Declare):
            return (replace(node, buffer=other.get(node.buffer, node.buffer)),)
        return (node,)

    return mapped(with_elements(nodes, element), declared)


def with_elements(nodes: Iterable[Node], element: Callable[[Element], Element]) -> tuple[Node, ...]:
    """Return nodes with other elements in the places of theirs."""

    def changed(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Fill):
            return (replace(node, target=element(node.target)),)
        if isinstance(node, Copy):
            return (replace(node, target=element(node.target), source=element(node.source)),)
        if isinstance(node, AllFinite | PutTogether):
            return (_with_met(node, element),)
        if isinstance(node, Compute | Evaluate):
            reads = tuple(map(element, node.reads))
            return (replace(node, target=element(node.target), reads=reads),)
        if isinstance(node, Perform):
            operands = tuple((name, tuple(map(element, own))) for name, own in node.operands)
            return (replace(node, operands=operands),)
        return (node,)

    return mapped(nodes, changed)


def _with_met(
    node: AllFinite | PutTogether, element: Callable[[Element], Element]
) -> AllFinite | PutTogether:
    if isinstance(node, AllFinite):
        shares = tuple(replace(one, element=element(one.element)) for one in node.shares)
        return replace(node, shares=shares)
    sums = tuple(
        replace(one, sum=element(one.sum), left=element(one.left), found=element(one.found))
        for one in node.sums
    )
    return replace(node, arrived=element(node.arrived), sums=sums)


def with_expressions(
    nodes: Iterable[Node], change: Callable[[IntExpr], IntExpr]
) -> tuple[Node, ...]:
    """Return nodes with other integer expressions in the places of theirs."""

    def element(one: Element) -> Element:
        return replace(one, subscripts=tuple(map(change, one.subscripts)))

    def changed(node: Node) -> tuple[Node, ...]:
        if isinstance(node, For | If | Let | AllFinite | PutTogether):
            return (_with_own_expressions(node, change),)
        if isinstance(node, Copy) and node.condition is not None:
            return (replace(node, condition=change(node.condition)),)
        if isinstance(node, Compute):
            return (replace(node, integers=tuple(map(change, node.integers))),)
        return (node,)

    return mapped(with_elements(nodes, element), changed)


def _with_own_expressions(
    node: For | If | Let | AllFinite | PutTogether, change: Callable[[IntExpr], IntExpr]
) -> Node:
    if isinstance(node, Let):
        return replace(node, value=change(node.value))
    if isinstance(node, If):
        return replace(node, conditions=tuple(map(change, node.conditions)))
    if isinstance(node, AllFinite):
        return replace(node, unless=change(node.unless), thread=change(node.thread))
    if isinstance(node, PutTogether):
        number, own, thread = map(change, (node.number, node.own, node.thread))
        return replace(node, number=number, own=own, thread=thread)
    lower, condition, step = map(change, (node.lower, node.condition, node.step))
    return replace(node, lower=lower, condition=condition, step=step)


def names_of(nodes: Iterable[Node]) -> set[str]:
    """Return the names that expressions in nodes mention."""
    return {name for node in every(nodes) for one in expressions(node) for name in names_in(one)}


def taken_names(kernel: Kernel, sizes: Iterable[str] = ()) -> set[str]:
    """Return all names that something in a kernel has, or that are known without being passed."""
    nodes = list(every(kernel.body))
    found = {*sizes, *names_of(kernel.body), *(one.name for one in kernel.arguments)}
    found |= {one.name for one in (*buffers_of(kernel.body), *kernel.shared)}
    found |= {name for one in nodes if isinstance(one, For) for name in one.counters}
    found |= {one.counter for one in nodes if isinstance(one, AllFinite)}
    found |= {name for one in nodes if isinstance(one, PutTogether) for name in one.counters}
    return found | {one.name for one in nodes if isinstance(one, NAMED)}


def buffers_of(nodes: Iterable[Node]) -> set[Buffer]:
    """Return the buffers of which nodes name an element."""
    return {element.buffer for node in every(nodes) for element in elements(node)}


def without_unused(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Leave out constants that nothing mentions."""
    used = names_of(nodes)
    declared = Counter(node.name for node in every(nodes) if isinstance(node, Let))

    def kept(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Aligned) and node.name not in used:
            return ()
        goes = isinstance(node, Let) and node.name not in used and declared[node.name] == 1
        return () if goes else (node,)

    return mapped(nodes, kept)


def inexact_instructions(kernel: Kernel) -> tuple[str, ...]:
    """Return the instructions that may round floating-point values otherwise than C does."""
    used = (one for node in every(kernel.body) for one in instructions_of(node))
    return tuple(sorted({one.name for one, kind in used if kind.is_floating and not one.exact}))


def rounded_sums(kernel: Kernel) -> tuple[RoundedSums, ...]:
    """Return the sums whose products or additions an instruction rounds more than C does."""
    used = {one: kind for node in every(kernel.body) for one, kind in instructions_of(node)}
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


def computed_by(kernel: Kernel, name: str) -> tuple[str, ...]:
    """Return the statements that an instruction computes."""
    statements = {
        node.statement.name: None
        for node in every(kernel.body)
        if isinstance(node, Compute) and node.by is not None and node.by[0].name == name
    }
    statements |= {
        node.computes: None
        for node in every(kernel.body)
        if isinstance(node, Perform) and node.computes and node.instruction.name == name
    }
    return tuple(statements)


def instruction_notes(kernel: Kernel, names: Sequence[str]) -> Iterator[str]:
    """Yield for each instruction which statements it computes, in words."""
    for name in names:
        statements = computed_by(kernel, name)
        what = f"computes {', '.join(statements)}" if statements else "fits no statement"
        yield f"{name}: {what}"


def grid_strides(kernel: Kernel) -> tuple[Axis, ...]:
    """Return the axes of the grid along which loops take a block from tile to tile."""
    steps = [node.step for node in every(kernel.body) if isinstance(node, For)]
    names = {name for step in steps for name in names_in(step)}
    return tuple(axis for axis in AXES if f"gridDim.{axis}" in names)


def needs_of(kernel: Kernel) -> Needs:
    """Return what a kernel needs of a card and of the definitions at the top of its file."""
    nodes = list(every(kernel.body))
    operators = {one for node in nodes for e in expressions(node) for one in operators_in(e)}
    copies = [node for node in nodes if isinstance(node, Copy)]
    buffers = [*kernel.shared, *(one.buffer for one in kernel.arguments if one.buffer)]
    widely = {one.target.buffer.space for one in copies if one.width > 1}
    for node in nodes:
        if isinstance(node, Compute):
            called = functions(node.statement.value)
            operators |= {
                _OPERATORS_OF_FUNCTIONS[one] for one in called if one in _OPERATORS_OF_FUNCTIONS
            }
    return Needs(
        shared=bool(kernel.shared) and not kernel.dynamic_shared,
        dynamic_shared=bool(kernel.shared) and kernel.dynamic_shared,
        overlaid=bool(kernel.overlaid),
        copies_ahead=any(one.ahead for one in copies),
        halves=any(_has_halves(node) for node in nodes) or any(_is_half(b) for b in buffers),
        wide_copies="shared" in widely,
        wide_rows="global" in widely,
        wide_lines="register" in widely,
        wide_clears=frozenset(_way(one) for one in copies if one.width > 1 and one.clears),
        finite=any(isinstance(node, AllFinite) for node in nodes),
        together=any(isinstance(node, PutTogether) for node in nodes),
        instructions=frozenset(one for node in nodes for one in instructions_of(node)),
        operators=frozenset(operators),
    )


def _is_half(buffer: Buffer) -> bool:
    return buffer.element_type is ElementType.HALF


def _has_halves(node: Node) -> bool:
    """Tell whether a node itself names a half, or makes one on the way."""
    if isinstance(node, Declare):
        return _is_half(node.buffer)
    value = None
    if isinstance(node, Compute):
        value = node.statement.value
    elif isinstance(node, Evaluate):
        value = node.part
    half = ElementType.HALF
    return value is not None and any(
        isinstance(one, Cast) and one.element_type is half for one in preorder(value)
    )


def _way(copy: Copy) -> str:
    return "ahead" if copy.ahead else "load"


def instructions_of(node: Node) -> Iterator[tuple[Instruction, ElementType]]:
    """Yield the instruction that a node itself names, with the type of what it writes."""
    if isinstance(node, Perform):
        (written, *_) = node.named(node.instruction.written)
        yield node.instruction, written.buffer.element_type
    elif isinstance(node, Compute) and node.by is not None:
        yield node.by[0], node.target.buffer.element_type


def operators_in(expression: IntExpr) -> Iterator[Operator]:
    """Yield the operators of an expression."""
    if isinstance(expression, Apply):
        yield expression.operator
        for operand in expression.operands:
            yield from operators_in(operand)

"""Which tiles may be computed in parts: a loop over steps, sums that it adds to, nothing else.

i0 = …; j0 = …;                         before: names of the tile, registers
sum_r = 0;
for (k0 = 0; k0 < NK; k0 += 32)         steps, as many in each tile
…sum_r += A[i][k] * B[k][j];
…C = beta * C + alpha * sum_r;          behind: once the sums are whole
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eatss.kernel.nodes import (
    Aligned,
    Buffer,
    Compute,
    Declare,
    Element,
    Fill,
    For,
    If,
    Let,
    Node,
    Perform,
)
from eatss.kernel.uses import accesses, every, every_of, own_expressions, written
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    at_least,
    names_in,
)
from eatss.scops import Cast, ElementType, Literal, Read, preorder
from eatss.targets import CUDA
from eatss.transform.use_instruction import added_to_target

_PLACES = (CUDA.block, CUDA.blocks)
_NOTHING = re.compile(r"[0.]+[fFlLuU]*")
_STORED = frozenset({ElementType.FLOAT, ElementType.DOUBLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOfSteps:
    """What a block does: ``head`` for all tiles, then for a tile nodes ``before``, a loop, others.

    ``tests`` stand around the loop.
    """

    head: tuple[Node, ...]
    before: tuple[Node, ...]
    tests: tuple[IntExpr, ...]
    loop: For
    behind: tuple[Node, ...]

    @classmethod
    def of(cls, nodes: Sequence[Node], counter: str) -> TileOfSteps | None:
        """Return what a block does with a tile, if one loop has this counter."""
        own = [at for at, one in enumerate(nodes) if _loop_in(one, counter) is not None]
        loops = [one for one in every_of(nodes, For) if one.counter == counter]
        if len(own) != 1 or len(loops) != 1:
            return None
        (at,) = own
        tests, loop = _loop_in(nodes[at], counter) or ((), None)
        assert loop is not None
        head, before = _parted(nodes[:at])
        return cls(head=head, before=before, tests=tests, loop=loop, behind=tuple(nodes[at + 1 :]))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names that are the same for all tiles."""
        return tuple(one.name for one in self.head if isinstance(one, Let))

    @property
    def sums(self) -> tuple[Buffer, ...]:
        """The registers that the loop changes, and that are known behind it."""
        declared = {one.buffer for one in every_of((self.loop,), Declare)}
        changed = {
            element.buffer: None
            for node in every((self.loop,))
            for element in accesses(node)[0]
            if element.buffer.space == "register"
        }
        return tuple(one for one in changed if one not in declared)

    def steps(self, sizes: set[str]) -> IntExpr | None:
        """Return the number of the loop's turns, one at least, if it is that for all tiles."""
        loop = self.loop
        last = bound_of(loop)
        known = [loop.lower, loop.condition, *self.tests]
        names = set(names_in(*known)) - {loop.counter}
        if last is None or not isinstance(loop.step, Constant) or not names <= sizes:
            return None
        if any(one.startswith((CUDA.thread, *_PLACES)) for one in names):
            return None
        length = last - loop.lower
        turns = (length + (loop.step.value - 1)) // loop.step
        if isinstance(length, Constant):
            return Constant(max(1, -(-length.value // loop.step.value)))
        return at_least(turns, 1)

    def is_alone(self) -> bool:
        """Tell whether the loop leaves nothing behind but sums that begin with zero."""
        before = [node for one in self.before for node in every((one,))]
        loop = list(every((self.loop,)))
        boxes = written(self.before)
        spaces = {one.space for one in boxes | written((self.loop,))}
        if "global" in spaces or any(one.space == "shared" for one in boxes):
            return False
        kinds = {one.element_type for one in self.sums}
        return len(kinds) == 1 and all(
            one.element_type in _STORED
            and one.layout.elements is not None
            and _begins_with_zero(before, one)
            and _is_added_to(loop, one)
            for one in self.sums
        )


def _loop_in(node: Node, counter: str) -> tuple[tuple[IntExpr, ...], For] | None:
    """Return the loop that a node is, and the tests around it."""
    if isinstance(node, For) and node.counter == counter:
        return (), node
    if isinstance(node, If) and not node.orelse and len(node.body) == 1:
        found = _loop_in(node.body[0], counter)
        return None if found is None else ((*node.conditions, *found[0]), found[1])
    return None


def _parted(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return the first nodes that name things the same for all tiles, and the others."""
    head: list[Node] = []
    rest: list[Node] = []
    of_tile: set[str] = set()
    for at, node in enumerate(nodes):
        if not isinstance(node, Let | Aligned):
            return tuple(head), (*rest, *nodes[at:])
        names = {name for one in own_expressions(node) for name in names_in(one)}
        depends = any(one in of_tile or one.startswith(_PLACES) for one in names)
        if depends:
            of_tile.add(node.name)
        (rest if depends else head).append(node)
    return tuple(head), tuple(rest)


def bound_of(loop: For) -> IntExpr | None:
    """Return what the counter of a loop stays below."""
    condition = loop.condition
    if not isinstance(condition, Apply) or condition.operands[0] != Name(loop.counter):
        return None
    if loop.counter in names_in(condition.operands[1]):
        return None
    if condition.operator is Operator.LT:
        return condition.operands[1]
    more = condition.operator is Operator.LE
    return condition.operands[1] + 1 if more else None


def _begins_with_zero(nodes: Sequence[Node], buffer: Buffer) -> bool:
    """Tell whether registers get zeros, and nothing else; no place of them gets another value."""
    uses = [one for one in nodes if any(element.buffer == buffer for element in _all(one))]
    return bool(uses) and all(is_zero(one) for one in uses)


def is_zero(node: Node) -> bool:
    """Tell whether a node gives its target the value zero."""
    if isinstance(node, Compute):
        value = node.statement.value
        while isinstance(value, Cast):
            value = value.operand
        return isinstance(value, Literal) and _NOTHING.fullmatch(value.text) is not None
    return isinstance(node, Fill) and node.value == 0


def _all(node: Node) -> tuple[Element, ...]:
    written, read = accesses(node)
    return (*written, *read)


def _is_added_to(nodes: Sequence[Node], buffer: Buffer) -> bool:
    """Tell whether something is added to registers, and nothing else is done with them."""
    return all(
        _adds(one, buffer)
        for one in nodes
        if any(element.buffer == buffer for element in _all(one))
    )


def _adds(node: Node, buffer: Buffer) -> bool:
    if isinstance(node, Perform):
        given = [name for name, own in node.operands if any(e.buffer == buffer for e in own)]
        return node.instruction.adds and given == [*node.instruction.written]
    if not isinstance(node, Compute) or node.target.buffer != buffer:
        return False
    added = added_to_target(node, node.statement.value)
    return added is not None and not any(
        isinstance(one, Read) and node.reads[one.access].buffer == buffer for one in preorder(added)
    )

"""Blocks take equal shares of the steps of tiles, however few tiles there are.

    i0 = 96 * blockIdx.y; j0 = 128 * blockIdx.x;
    sum_r = 0;
    for (k0 = 0; k0 < NK; k0 += 32)
        …sum_r += A[i][k] * B[k][j];
    …C = beta * C + alpha * sum_r;

becomes

    for (turn = 0; turn < turns; ++turn) {
        tile = turn < waves ? turn * blocks + block : the next one of which this block has steps;
        begin, end = the steps of the tile that are of this block;
        i0 = 96 * (tile / columns); j0 = 128 * (tile % columns);
        sum_r = 0;
        for (k0 = 32 * begin; k0 < min(NK, 32 * end); k0 += 32)
            …sum_r += A[i][k] * B[k][j];
        put sum_r together, where other blocks have steps of the tile, too;
        if (this block is the last of them)
            …C = beta * C + alpha * sum_r;
    }

There are as many blocks as the card runs at a time. They take whole tiles, one each, as long as
there are twice as many left as blocks: tiles that are computed at a time are near each other. Of
the steps of all that are left then each block takes an equal share, so that all of them end
together. A block has a part of at most two tiles, its first and its last one of these. This is
known as stream-K, with waves of whole tiles before it [Osama et al., PPoPP 2023]. Results are
rounded otherwise, and the same in every run with so many blocks: parts are added up in the order of
the blocks.

Which tiles may be computed in parts: a loop over steps, sums that it adds to, nothing else.

    i0 = …; j0 = …;                         before: names of the tile, registers
    sum_r = 0;
    for (k0 = 0; k0 < NK; k0 += 32)         steps, as many in each tile
        …sum_r += A[i][k] * B[k][j];
    …C = beta * C + alpha * sum_r;          behind: once the sums are whole
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from eatss.free_names import free_name
from eatss.frozen import frozen
from eatss.kernel.nodes import (
    Aligned,
    Argument,
    Buffer,
    Compute,
    Declare,
    Element,
    Fill,
    For,
    If,
    Kernel,
    Layout,
    Let,
    Node,
    PartialSum,
    Perform,
    PutTogether,
    Streamed,
)
from eatss.kernel.uses import accesses, every, every_of, own_expressions, with_expressions, written
from eatss.plan.stream import MOST_WAVES, rounded_up, shared_steps, whole_waves
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    at_least,
    names_in,
    select,
    substitute,
)
from eatss.scops import Cast, ElementType, Literal, Read, preorder
from eatss.targets import AXES, CUDA
from eatss.transform.block_order import in_groups_of_rows
from eatss.transform.use_instruction import added_to_target

_BLOCK, _BLOCKS = Name(f"{CUDA.block}x"), Name(f"{CUDA.blocks}x")

_NAMES = (
    *("steps", "waves", "left", "share", "first", "last", "begun", "turns", "turn", "streamed"),
    *("tile", "begin", "end", "owner", "number", "own", "whole", "part"),
)


@frozen
class Stream:
    """How many ``blocks`` are to take steps of a kernel's tiles, and what is known of them.

    ``loop`` counts the steps, by the name of its tiles' origin. ``tiles`` are those of blocks along
    x, y and z, ``thread`` is the number of a thread in its block.
    """

    blocks: int
    loop: str
    tiles: tuple[IntExpr, IntExpr, IntExpr]
    thread: IntExpr


def with_steps_streamed(
    kernel: Kernel, stream: Stream, sizes: Collection[str], taken: set[str]
) -> Kernel:
    """Return a kernel whose blocks take equal shares of all steps.

    It stays as it is unless sums in registers, which begin with zero, are all that a loop over
    steps leaves behind, and each tile has as many steps [:mod:`eatss.transform.stream_k`].

    Args:
        kernel: without barriers, nothing copied ahead.
        stream: the blocks, and the loop whose turns are steps.
        sizes: names that kernels know without being passed them.
        taken: names that stay what they are; more are added.
    """
    kernel = kernel if kernel.warps else in_groups_of_rows(kernel, taken)
    found = TileOfSteps.of(_without_strides(kernel.body), stream.loop)
    if found is None:
        return kernel
    steps = found.steps({*sizes, *(one.name for one in kernel.arguments), *found.sizes})
    if steps is None or not found.is_alone():
        return kernel
    return _Streaming(kernel, stream, found, steps, taken).kernel()


def _without_strides(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with the first turn only of loops that take a block from tile to tile."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, For) and any(
            one.startswith(CUDA.blocks) for one in names_in(node.step)
        ):
            found += (Let(name=node.counter, value=node.lower), *_without_strides(node.body))
        else:
            found.append(node)
    return tuple(found)


class _Streaming:
    """Makes a kernel whose blocks take shares of all steps."""

    def __init__(
        self, kernel: Kernel, stream: Stream, tile: TileOfSteps, steps: IntExpr, taken: set[str]
    ) -> None:
        self._kernel, self._stream, self._tile, self._steps = kernel, stream, tile, steps
        self._taken = taken
        self._names = {one: free_name(one, taken) for one in _NAMES}
        self._thread = free_name("thread", taken)

    def _name(self, name: str) -> Name:
        return Name(self._names[name])

    def kernel(self) -> Kernel:
        """Return the kernel, with memory for parts of sums as arguments."""
        kernel, tile, stream = self._kernel, self._tile, self._stream
        x, y, z = stream.tiles
        tiles = x * y * z
        streamed = Streamed(
            blocks=stream.blocks,
            parts=self._parts(),
            arrived=self._arrived(),
            counts=(x, y, z, self._steps),
        )
        named = self._name
        loop = For(
            counter=named("turn").name,
            lower=Constant(0),
            condition=named("turn") < named("turns"),
            step=Constant(1),
            body=self._of_a_tile(streamed),
        )
        passed = [
            Argument(name=one.name, buffer=one, passed_on=True)
            for one in (streamed.parts, streamed.arrived)
        ]
        return replace(
            kernel,
            body=(*tile.head, *self._shares(tiles), loop),
            arguments=(*kernel.arguments, *passed),
            regroups=True,
            streamed=streamed,
        )

    def _shares(self, tiles: IntExpr) -> tuple[Let, ...]:
        """Name what a block takes: whole tiles, then steps ``first`` to ``last`` of those left."""
        named, blocks = self._name, _BLOCKS
        steps = named("steps")
        first, last = named("first"), named("last")
        return (
            self._let("steps", self._steps),
            self._let("waves", whole_waves(tiles, blocks)),
            self._let("left", shared_steps(tiles, named("waves"), blocks, steps)),
            self._let("share", rounded_up(named("left"), blocks)),
            self._let("first", _least(named("share") * _BLOCK, named("left"))),
            self._let("last", _least(first + named("share"), named("left"))),
            self._let("begun", first // steps),
            self._let(
                "turns",
                named("waves") + (rounded_up(last, steps) - named("begun")),
            ),
            Let(name=self._thread, value=self._stream.thread, narrow=True),
        )

    def _let(self, name: str, value: IntExpr) -> Let:
        return Let(name=self._names[name], value=value)

    def _of_a_tile(self, streamed: Streamed) -> tuple[Node, ...]:
        named, steps = self._name, self._name("steps")
        whole = named("turn") < named("waves")
        before_it = named("streamed") * steps

        def chosen(of_whole: IntExpr, otherwise: IntExpr) -> IntExpr:
            return select(whole, of_whole, otherwise)

        begin = Apply(Operator.MAX, (named("first") - before_it, Constant(0)))
        end = _least(named("last") - before_it, steps)
        number = named("turn") - named("waves")
        own_tile = named("turn") * _BLOCKS + _BLOCK
        of_all = named("waves") * _BLOCKS + named("streamed")
        found: list[Node] = [
            self._let("streamed", named("begun") + number),
            self._let("tile", chosen(own_tile, of_all)),
            self._let("begin", chosen(Constant(0), begin)),
            self._let("end", chosen(steps, end)),
        ]
        tile, loop = self._tile, self._tile.loop
        last = bound_of(loop)
        assert last is not None
        origin = loop.lower + loop.step * named("begin")
        stop = _least(last, loop.lower + loop.step * named("end"))
        stops = free_name("stop", self._taken)
        inner: Node = replace(loop, lower=origin, condition=Name(loop.counter) < Name(stops))
        if tile.tests:
            inner = If(conditions=tile.tests, body=(inner,))
        places = self._places()
        own = [
            *with_expressions(tile.before, lambda one: substitute(one, places)),
            Let(name=stops, value=stop),
            inner,
        ]
        behind = with_expressions(tile.behind, lambda one: substitute(one, places))
        together = self._together(streamed, whole)
        return (*found, *own, *together, If(conditions=(named("whole"),), body=behind))

    def _places(self) -> Mapping[str, IntExpr]:
        """Return where a tile lies, as blocks had it."""
        x, y, z = self._stream.tiles
        tile = self._name("tile")
        rows = tile // x
        own = (
            tile % x,
            rows if z == Constant(1) else rows % y,
            rows // y,
        )
        return {
            begin + axis: place
            for begin, places in ((CUDA.block, own), (CUDA.blocks, self._stream.tiles))
            for axis, place in zip(AXES, places, strict=True)
        }

    def _together(self, streamed: Streamed, whole: IntExpr) -> tuple[Node, ...]:
        """Return what puts the sums of a tile together, where it is no ``whole`` one."""
        named, steps = self._name, self._name("steps")
        before_it = named("streamed") * steps
        behind_it = before_it + (steps - 1)
        several = behind_it // named("share") - named("owner")
        number = select(whole, 1, several + 1)
        return (
            self._let("owner", before_it // named("share")),
            self._let("number", number),
            self._let("own", _BLOCK - named("owner")),
            PutTogether(
                name=self._names["whole"],
                number=named("number"),
                own=named("own"),
                part=self._names["part"],
                thread=Name(self._thread),
                arrived=Element(
                    buffer=streamed.arrived,
                    subscripts=(2 * named("streamed"),),
                ),
                sums=tuple(self._sums(streamed.parts)),
            ),
        )

    def _sums(self, parts: Buffer) -> list[PartialSum]:
        found: list[PartialSum] = []
        at = 0
        for one in self._tile.sums:
            counters = tuple(free_name("s", self._taken) for _ in one.layout.extents)
            place: IntExpr = Constant(0)
            extents = tuple(_number(extent) for extent in one.layout.extents)
            for name, extent in zip(counters, extents, strict=True):
                place = place * extent + Name(name)
            register = place + at
            left, others = (
                Element(buffer=parts, subscripts=(self._slot(number), register, Name(self._thread)))
                for number in (self._name("own"), self._name("part"))
            )
            found.append(
                PartialSum(
                    counters=counters,
                    extents=extents,
                    sum=Element(buffer=one, subscripts=tuple(Name(name) for name in counters)),
                    left=left,
                    found=others,
                )
            )
            at += _registers(one)
        return found

    def _slot(self, number: IntExpr) -> IntExpr:
        """Return where a block leaves a part: that of its last tile, which it begins, or the other.

        Number 0 of the blocks of a tile begins it.
        """
        block = self._name("owner") + number
        return 2 * block + _least(number, Constant(1))

    def _parts(self) -> Buffer:
        registers = sum(map(_registers, self._tile.sums))
        first = self._tile.sums[0]
        return Buffer(
            name=free_name(f"{self._kernel.name}_parts", self._taken),
            space="global",
            element_type=first.element_type,
            layout=Layout(
                (
                    Constant(2 * self._stream.blocks),
                    Constant(registers),
                    Constant(self._kernel.threads),
                )
            ),
        )

    def _arrived(self) -> Buffer:
        return Buffer(
            name=free_name(f"{self._kernel.name}_arrived", self._taken),
            space="global",
            element_type=ElementType.INT32,
            layout=Layout((Constant(2 * MOST_WAVES * self._stream.blocks),)),
        )


def _least(one: IntExpr, other: IntExpr) -> IntExpr:
    if isinstance(one, Constant) and isinstance(other, Constant):
        return Constant(min(one.value, other.value))
    return Apply(Operator.MIN, (one, other))


def _number(extent: IntExpr) -> int:
    assert isinstance(extent, Constant)
    return extent.value


def _registers(buffer: Buffer) -> int:
    """Return the places of registers; their extents are constant."""
    assert buffer.layout.elements is not None
    return buffer.layout.elements


_PLACES = (CUDA.block, CUDA.blocks)
_NOTHING = re.compile(r"[0.]+[fFlLuU]*")
_STORED = frozenset({ElementType.FLOAT, ElementType.DOUBLE})


@frozen
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

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
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from eatss.free_names import free_name
from eatss.kernel.nodes import (
    Argument,
    Buffer,
    Element,
    For,
    If,
    Kernel,
    Layout,
    Let,
    Node,
    PartialSum,
    PutTogether,
    Streamed,
)
from eatss.kernel.uses import with_expressions
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
from eatss.scops import ElementType
from eatss.targets import AXES, CUDA
from eatss.transform.block_order import in_groups_of_rows
from eatss.transform.tiles_of_steps import TileOfSteps, bound_of

_BLOCK, _BLOCKS = Name(f"{CUDA.block}x"), Name(f"{CUDA.blocks}x")

_MOST_WAVES = 2
"""Times as many tiles as blocks of which blocks share the steps: less than that."""

_NAMES = (
    *("steps", "waves", "left", "share", "first", "last", "begun", "turns", "turn", "streamed"),
    *("tile", "begin", "end", "owner", "number", "own", "whole", "part"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    steps leaves behind, and each tile has as many steps [:mod:`eatss.transform.tiles_of_steps`].

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
        waves = tiles // blocks + -1
        left = tiles - named("waves") * blocks
        steps = named("steps")
        first, last = named("first"), named("last")
        return (
            self._let("steps", self._steps),
            self._let("waves", at_least(waves, 0)),
            self._let("left", left * steps),
            self._let("share", _rounded_up(named("left"), blocks)),
            self._let("first", _least(named("share") * _BLOCK, named("left"))),
            self._let("last", _least(first + named("share"), named("left"))),
            self._let("begun", first // steps),
            self._let(
                "turns",
                named("waves") + (_rounded_up(last, steps) - named("begun")),
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
            layout=Layout((Constant(2 * _MOST_WAVES * self._stream.blocks),)),
        )


def _rounded_up(value: IntExpr, divisor: IntExpr) -> IntExpr:
    """Return a quotient rounded up."""
    return (value + (divisor - 1)) // divisor


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

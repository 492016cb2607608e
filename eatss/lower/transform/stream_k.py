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

Tiles are computed in parts where :mod:`eatss.lower.variants` says so: a loop over steps, sums
that it adds to, nothing else.

    i0 = …; j0 = …;                         before: names of the tile, registers
    sum_r = 0;
    for (k0 = 0; k0 < NK; k0 += 32)         steps, as many in each tile
        …sum_r += A[i][k] * B[k][j];
    …C = beta * C + alpha * sum_r;          behind: once the sums are whole
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from eatss.base.frozen import frozen, their_names
from eatss.base.targets import AXES, CUDA
from eatss.base.trees import free_name
from eatss.lower.kernel.checks import fault_in
from eatss.lower.kernel.nodes import (
    Aligned,
    Argument,
    Buffer,
    Compute,
    Declare,
    Fixup,
    For,
    If,
    Init,
    Intrinsic,
    Kernel,
    Let,
    Node,
    Nodes,
    PartialSum,
    Streamed,
)
from eatss.lower.kernel.uses import (
    accesses,
    bound_of,
    every,
    every_of,
    own_expressions,
    substituted,
    written,
)
from eatss.lower.transform.point_groups import with_threadblock_swizzle
from eatss.lower.transform.use_instruction import added_to_target
from eatss.plan.shares import MOST_WAVES, rounded_up, shared_steps, whole_waves
from eatss.polyhedral.expression import Cast, ElementType, Literal
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    at_least,
    names_in,
    select,
)
from eatss.program.expression import Grid, IntExprs

_BLOCK, _BLOCKS = Name(f"{CUDA.block}x"), Name(f"{CUDA.blocks}x")
_PLACES = (CUDA.block, CUDA.blocks)
_NOTHING = re.compile(r"[0.]+[fFlLuU]*")

_NAMES = (
    *("steps", "waves", "left", "share", "first", "last", "begun", "turns", "turn", "streamed"),
    *("tile", "begin", "end", "owner", "number", "own", "whole", "part", "thread"),
)


@frozen
class Stream:
    """How many ``blocks`` are to take steps of a kernel's tiles, and what is known of them.

    ``loop`` counts the steps, by the name of its tiles' origin. ``tiles`` are those of blocks along
    x, y and z, ``thread`` is the number of a thread in its block.
    """

    blocks: int
    loop: str
    tiles: Grid
    thread: IntExpr


def with_steps_streamed(
    kernel: Kernel, stream: Stream, sizes: Collection[str], taken: set[str]
) -> Kernel:
    """Return a kernel whose blocks take equal shares of all steps.

    Args:
        kernel: without barriers, nothing copied ahead.
        stream: the blocks, and the loop whose iterations are steps.
        sizes: names that kernels know without being passed them.
        taken: names that stay what they are; more are added.

    Raises:
        InternalError: ``EATSS-K901``, more than sums in registers, which begin with zero, is what
            a loop over steps leaves behind, or tiles have no known number of steps.
    """
    kernel = kernel if kernel.warps else with_threadblock_swizzle(kernel, taken)
    nodes = _without_strides(kernel.body)
    loops = ((at, found) for at, one in enumerate(nodes) for found in _loops(one, stream.loop))
    at, (tests, loop) = next(loops)
    head, before = _parted(nodes[:at])
    known = {*sizes, *their_names(kernel.arguments)}
    known |= {one.name for one in every_of(head, Let)}
    last, sums = bound_of(loop), _sums(loop)
    if last is None or not _is_alone(before, loop, sums) or not _are_known(loop, tests, known):
        raise fault_in(kernel, f"the steps of {stream.loop} cannot be streamed")
    length = last - loop.lower
    each = at_least(rounded_up(length, loop.step), 1)
    if isinstance(length, Constant) and isinstance(loop.step, Constant):
        each = Constant(max(1, -(-length.value // loop.step.value)))

    named = (Name(free_name(one, taken)) for one in _NAMES)
    steps, waves, left, share, first, end_of_all, begun, turns, *others = named
    turn, streamed, tile, begin, end, owner, number, own, whole, part, thread = others

    def let(name: Name, value: IntExpr, *, narrow: bool = False) -> Let:
        return Let(name=name.name, value=value, narrow=narrow)

    # what a block takes: whole tiles, then steps from the first to the last one of those left
    x, y, z = stream.tiles
    tiles = x * y * z
    shares = (
        let(steps, each),
        let(waves, whole_waves(tiles, _BLOCKS)),
        let(left, shared_steps(tiles, waves, _BLOCKS, steps)),
        let(share, rounded_up(left, _BLOCKS)),
        let(first, _least(share * _BLOCK, left)),
        let(end_of_all, _least(first + share, left)),
        let(begun, first // steps),
        let(turns, waves + (rounded_up(end_of_all, steps) - begun)),
        let(thread, stream.thread, narrow=True),
    )
    counts = [one.layout.elements or 0 for one in sums]
    part_slots, threads = 2 * stream.blocks, kernel.threads
    parts = Buffer.of(
        "global",
        free_name(f"{kernel.name}_parts", taken),
        sums[0].element_type,
        *(part_slots, sum(counts), threads),
    )
    arrived = Buffer.of(
        "global",
        free_name(f"{kernel.name}_arrived", taken),
        ElementType.INT32,
        MOST_WAVES * part_slots,
    )

    # where a tile lies, as blocks had it
    rows, is_whole, before_it = tile // x, turn < waves, streamed * steps
    places = (tile % x, rows if z == Constant(1) else rows % y, rows // y)
    change = {
        coordinate + axis: place
        for coordinate, own_places in zip(_PLACES, (places, stream.tiles), strict=True)
        for axis, place in zip(AXES, own_places, strict=True)
    }

    def placed(nodes: Sequence[Node]) -> Nodes:
        return substituted(nodes, change)

    stop = Name(free_name("stop", taken))
    inner: Node = replace(
        loop,
        lower=loop.lower + loop.step * begin,
        condition=Name(loop.counter) < stop,
    )
    if tests:
        inner = If(conditions=tests, body=(inner,))
    own_tile, of_all = turn * _BLOCKS + _BLOCK, waves * _BLOCKS + streamed
    begins = Apply(Operator.MAX, (first - before_it, Constant(0)))
    several = (before_it + (steps - 1)) // share - owner
    body = (
        let(streamed, begun + (turn - waves)),
        let(tile, select(is_whole, own_tile, of_all)),
        let(begin, select(is_whole, Constant(0), begins)),
        let(end, select(is_whole, steps, _least(end_of_all - before_it, steps))),
        *placed(before),
        let(stop, _least(last, loop.lower + loop.step * end)),
        inner,
        let(owner, before_it // share),
        let(number, select(is_whole, 1, several + 1)),
        let(own, _BLOCK - owner),
        Fixup(
            name=whole.name,
            number=number,
            own=own,
            part=part.name,
            thread=thread,
            arrived=arrived.at(2 * streamed),
            sums=tuple(
                _partial_sum(one, sum(counts[:at]), parts, (owner, own, part, thread), taken)
                for at, one in enumerate(sums)
            ),
        ),
        If(conditions=(whole,), body=placed(nodes[at + 1 :])),
    )
    over_tiles = For(
        counter=turn.name, lower=Constant(0), condition=turn < turns, step=Constant(1), body=body
    )
    passed = (Argument(name=one.name, buffer=one, passed_on=True) for one in (parts, arrived))
    return replace(
        kernel,
        body=(*head, *shares, over_tiles),
        arguments=(*kernel.arguments, *passed),
        regroups=True,
        streamed=Streamed(
            blocks=stream.blocks, parts=parts, arrived=arrived, counts=(x, y, z, each)
        ),
    )


def _without_strides(nodes: Sequence[Node]) -> Nodes:
    """Return nodes with the first iteration only of loops that take a block from tile to tile."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, For) and any(
            one.startswith(CUDA.blocks) for one in names_in(node.step)
        ):
            found += (Let(name=node.counter, value=node.lower), *_without_strides(node.body))
        else:
            found.append(node)
    return tuple(found)


def _partial_sum(
    registers: Buffer, first: int, parts: Buffer, names: Sequence[Name], taken: set[str]
) -> PartialSum:
    """Return where a block leaves its part of a sum, and finds that of another one.

    A part is that of its last tile, which it begins, or the other. Number 0 of the blocks of a tile
    begins it.
    """
    owner, own, part, thread = names
    counters = tuple(free_name("s", taken) for _ in registers.layout.extents)
    place: IntExpr = Constant(0)
    for name, extent in zip(counters, registers.layout.extents, strict=True):
        place = place * extent + Name(name)
    left, found = (
        parts.at(2 * (owner + one) + _least(one, Constant(1)), place + first, thread)
        for one in (own, part)
    )
    return PartialSum(
        counters=counters,
        extents=tuple(one.value for one in registers.layout.extents if isinstance(one, Constant)),
        sum=registers.at(*map(Name, counters)),
        left=left,
        found=found,
    )


def _least(one: IntExpr, other: IntExpr) -> IntExpr:
    if isinstance(one, Constant) and isinstance(other, Constant):
        return Constant(min(one.value, other.value))
    return Apply(Operator.MIN, (one, other))


def _sums(loop: For) -> tuple[Buffer, ...]:
    """Return the registers that a loop changes, and that are known behind it."""
    declared = {one.buffer for one in every_of((loop,), Declare)}
    changed = (one.buffer for node in every((loop,)) for one in accesses(node)[0])
    return tuple(
        dict.fromkeys(one for one in changed if one.space == "register" and one not in declared)
    )


def _are_known(loop: For, tests: Sequence[IntExpr], sizes: set[str]) -> bool:
    """Tell whether a loop has the same iterations in all tiles."""
    names = set(names_in(loop.lower, loop.condition, *tests)) - {loop.counter}
    return isinstance(loop.step, Constant) and names <= sizes


def _is_alone(before: Sequence[Node], loop: For, sums: Sequence[Buffer]) -> bool:
    """Tell whether a loop leaves nothing behind but sums of one type that begin with zero."""
    spaces = {one.space for one in written(before)} - {"register"}
    if spaces or any(one.space == "global" for one in written((loop,))):
        return False
    uses = ((node, {one.buffer for own in accesses(node) for one in own}) for node in every(before))
    begun = (is_zero(node) for node, used in uses if used & {*sums})
    kinds = {one.element_type for one in sums}
    added = all(_adds(node, sums) for node in every((loop,)))
    return len(kinds) == 1 and {*sums} <= written(before) and all(begun) and added


def _loops(node: Node, counter: str) -> Iterator[tuple[IntExprs, For]]:
    """Yield the loop that a node is, with the tests around it."""
    match node:
        case For() if node.counter == counter:
            yield (), node
        case If(orelse=(), body=(inner,)):
            for tests, loop in _loops(inner, counter):
                yield (*node.conditions, *tests), loop


def _parted(nodes: Sequence[Node]) -> tuple[Nodes, Nodes]:
    """Return the first nodes that name things the same for all tiles, and the others."""
    head: list[Node] = []
    rest: list[Node] = []
    of_tile = set()
    for at, node in enumerate(nodes):
        if not isinstance(node, Let | Aligned):
            return tuple(head), (*rest, *nodes[at:])
        names = {name for one in own_expressions(node) for name in names_in(one)}
        depends = any(one in of_tile or one.startswith(_PLACES) for one in names)
        if depends:
            of_tile.add(node.name)
        (rest if depends else head).append(node)
    return tuple(head), tuple(rest)


def is_zero(node: Node) -> bool:
    """Tell whether a node gives its target the value zero."""
    match node:
        case Init():
            return node.value == 0
        case Compute():
            value = node.statement.value
            while isinstance(value, Cast):
                value = value.operand
            return isinstance(value, Literal) and _NOTHING.fullmatch(value.text) is not None
    return False


def _adds(node: Node, sums: Sequence[Buffer]) -> bool:
    """Tell whether a node adds to registers what it reads elsewhere, or does nothing with them."""
    written, read = ([one for one in own if one.buffer in sums] for own in accesses(node))
    if isinstance(node, Intrinsic):
        return node.instruction.adds and {*read} <= {*written}
    if not isinstance(node, Compute):
        return not written and not read
    own = [one for one in node.reads[1:] if one.buffer in sums]  # the first is what is written
    return not written or (len(own) == 1 and added_to_target(node) is not None)

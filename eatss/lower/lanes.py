"""Lanes of a warp: how they end the sums that they share, and the order in which they are threads.

    const int lane = thread % 32;
    const int warp = thread / 32;
    const int tj = lane % 2 + 2 * (lane / 8) + 8 * (warp % 2);
    const int ti = lane / 2 % 4 + 4 * (warp / 2);

for 16 threads along ``j`` where lanes are interleaved; :mod:`eatss.analysis.variant` says why.
"""

from __future__ import annotations

from collections.abc import Mapping as Values
from collections.abc import Sequence
from itertools import product
from math import prod

from eatss.analysis.variant import ALONG_X, ALONG_Y
from eatss.base.diagnostics import internal_error
from eatss.base.frozen import Names
from eatss.base.targets import CUDA
from eatss.lower.instructions import COMBINES, FROM_BELOW, FROM_LANE, SCAN_STEPS, SHUFFLES
from eatss.lower.kernel.nodes import (
    Buffer,
    Copy,
    Declare,
    Element,
    If,
    Intrinsic,
    LookBack,
    Node,
    Nodes,
    counted,
)
from eatss.lower.mapping import MappedLoop, Mapping
from eatss.lower.pieces import NameTable
from eatss.plan.shares import lanes_of_warp, rounds_across, takers_of_parts
from eatss.polyhedral.expression import Combiner
from eatss.program import Constant, IntExpr, Name, equals, evaluate, substitute
from eatss.program.expression import IntExprs

_NUMBER = "eatss_number"

_PRIMES = (2, 3, 5, 7)


def digits(number: IntExpr, extents: Sequence[IntExpr]) -> IntExprs:
    """Return one digit for each extent, the slowest first.

    A number from 0 to the product of the extents, that one excluded, has digits from 0 to each
    extent, and every choice of digits belongs to exactly one number.

    Args:
        number: not negative.
        extents: positive.

    Raises:
        InternalError: ``EATSS-K901`` the digits miss a choice.
    """
    wide = [at for at, extent in enumerate(extents) if extent != Constant(1)]
    names = [f"eatss_extent{at}" for at in wide]
    found = _digits(Name(_NUMBER), names)
    # at extents that differ from each other
    sizes = [_PRIMES[at] if at < len(_PRIMES) else 1 + at % 2 for at in range(len(names))]
    _check_met(found, dict(zip(names, sizes, strict=True)), sizes, "a grid leaves tiles out")
    values = {_NUMBER: number, **{name: extents[at] for name, at in zip(names, wide, strict=True)}}
    result: list[IntExpr] = [Constant(0)] * len(extents)
    for at, digit in zip(wide, found, strict=True):
        result[at] = substitute(digit, values)
    return tuple(result)


def _digits(number: IntExpr, extents: Sequence[str]) -> list[IntExpr]:
    found: list[IntExpr] = []
    for extent in extents[:0:-1]:
        found.append(number % Name(extent))
        number = number // Name(extent)
    return [number, *found[::-1]] if extents else []


def _check_met(
    places: Sequence[IntExpr],
    known: Values[str, int],
    extents: Sequence[int],
    what: str,
) -> None:
    """Refuse places of a number that do not meet every choice within extents once."""
    numbers = ({**known, _NUMBER: number} for number in range(prod(extents)))
    met = sorted(tuple(evaluate(one, values) for one in places) for values in numbers)
    if met != list(product(*map(range, extents))):
        raise internal_error("EATSS-K901", what, span=None)


Parts = Sequence[tuple[Element, Combiner]]
"""Registers that have parts of sums, and what makes one value of two parts."""


def shuffles(parts: Parts, width: int, beside: int = 1) -> Nodes:
    """Return what makes the first of ``width`` lanes have what all of them add up.

    They are ``beside`` threads apart, between which others do the same.
    """
    return tuple(
        Intrinsic(
            instruction=SHUFFLES[combiner.name],
            operands=(("sum", (register,)),),
            immediates=(("delta", (width >> step) * beside), ("width", width * beside)),
        )
        for register, combiner in parts
        for step in range(1, width.bit_length())
    )


def groups_across(mapping: Mapping, loops: Names) -> tuple[list[tuple[int, int]], list[IntExpr]]:
    """Return the lanes that make parts of threads along some loops one, and who then has it.

    Returns:
        How many lanes of a warp do, and how far they are apart, in turn; and the conditions of the
        threads that are left.
    """
    groups: list[tuple[int, int]] = []
    first: list[IntExpr] = []
    before = 1
    for at, loop in enumerate(mapping.with_threads):
        if mapping.interleaved:
            own = [[(ALONG_X // 2, ALONG_X), (2, 1)], [(ALONG_Y, 2)], []][min(at, 2)]
        else:
            own = [(2 ** int(rounds_across(before, loop.threads)), before)]
        before *= loop.threads
        if loop.name in loops:
            own = [one for one in own if one[0] > 1 and mapping.threads % CUDA.lanes == 0]
            groups += own
            first += [is_first(loop.thread, prod(lanes for lanes, _ in own))] if own else []
    return groups, first


def is_first(thread: str, lanes: int) -> IntExpr:
    """Return whether a thread is the first of so many lanes."""
    return equals(Name(thread) % lanes, 0)


def running_sums(
    values: Element,
    carried: Element,
    combiner: Combiner,
    loop: MappedLoop,
    width: int,
    look_back: LookBack | None,
    names: NameTable,
    earlier: Element | None = None,
) -> Nodes:
    """Return what gives each lane at its steps what those up to them come to, and passes it on.

    A lane goes through its vectors of steps, and lanes make running sums of what these come to:

        for (rv) { for (e) y_r[4 * rv + e] += those before; y_r_ends[rv] = the last; scan steps; }
        for (rv) y_r_ends[rv] = what is in front of the vector of the lane, all vectors before, too;
        for (rv) for (e) y_r[4 * rv + e] = y_r_ends[rv] + y_r[4 * rv + e];

    Args:
        values: what each lane has of a step, and what comes of it.
        carried: what all steps before came to, and then those with these.
        combiner: what makes one value of two.
        loop: of the steps.
        width: steps of a vector, of which a lane's follow each other.
        look_back: how a tile gets what all before it came to, ``None`` where no other warp has any.
        names: gives out names of registers and counters.
        earlier: what is to get what all steps before a lane's come to, if anything is.
    """
    stem, vectors = values.buffer.name, loop.points // width
    at, inside = names.fresh("rv"), names.fresh("e")

    def register(what: str, *extents: int) -> Buffer:
        return values.buffer.registers(names.fresh(f"{stem}_{what}"), *extents)

    def step(place: IntExpr, own: Element = values) -> Element:
        places = (*own.subscripts[:-1], width * Name(at) + place)
        return own.buffer.at(*places) if loop.points > 1 else own

    def in_front(value: Element, one: Element) -> Nodes:
        added = Intrinsic.of(COMBINES[combiner.name], front, one)
        return (Copy(target=front, source=value), added, Copy(target=one, source=front))

    ends, front = register("ends", vectors), register("front").at()
    end = ends.at(Name(at))
    added = Intrinsic.of(COMBINES[combiner.name], front, step(Name(inside) + 1))
    to_end: Nodes = (added, Copy(target=step(Name(inside) + 1), source=front))
    of_lanes = (
        Intrinsic(
            instruction=SCAN_STEPS[combiner.name],
            operands=(("sum", (end,)),),
            immediates=(("delta", 1 << step), ("width", loop.threads)),
        )
        for step in range(loop.threads.bit_length() - 1)
    )
    summed: Nodes = (
        Copy(target=front, source=step(Constant(0))),
        *([counted(inside, width - 1, to_end)] if width > 1 else ()),
        Copy(target=end, source=front),
        *of_lanes,
    )
    before: Nodes = (
        *in_front(carried, end),
        Copy(target=front, source=carried),
        Intrinsic.of(FROM_BELOW, front, end, width=loop.threads),
        Intrinsic.of(FROM_LANE, carried, end, source=loop.threads - 1),
        Copy(target=end, source=front),
    )
    last: Nodes = (counted(inside, width, in_front(end, step(Name(inside)))),)
    tiles = (look_back,) if look_back else ()
    if look_back:
        last = (*in_front(look_back.value, end), *last)
    if earlier is not None:
        shifted = Copy(target=step(Name(inside) + 1, earlier), source=step(Name(inside)))
        last = (*last, Copy(target=step(Constant(0), earlier), source=end))
        last += (counted(inside, width - 1, (shifted,)),) if width > 1 else ()
    return (
        Declare(buffer=ends),
        Declare(buffer=front.buffer),
        counted(at, vectors, summed),
        counted(at, vectors, before),
        *tiles,
        counted(at, vectors, last),
    )


def passed_to_all(
    parts: Parts, loop: MappedLoop, mapping: Mapping, names: NameTable
) -> tuple[list[Buffer], If, Nodes]:
    """Return what makes all threads of a sum have it, at a point of the other loops.

    Args:
        parts: what the first lanes of warps have.
        loop: the loop of the sum.
        mapping: the layout of the kernel.
        names: gives out the names of tiles.

    Returns:
        Tiles, what first lanes leave of their warps' parts there, and how all threads add them up.
        Where sums are side by side, warps have few lanes of each: one warp adds them up for all.
    """
    _, is_first, warp = of_lanes(Name(loop.thread), loop.threads, mapping.beside)
    lanes = int(lanes_of_warp(loop.threads, mapping.beside))
    warps = loop.threads // lanes
    several = [m for m in mapping.mapped if m.threads > 1]
    points = [m for m in mapping.mapped if m.points > 1]
    own = [*(Name(m.thread) for m in several), *(Name(m.point) for m in points)]
    extents = [*(m.threads for m in several), *(m.points for m in points)]
    # sums side by side in a warp are in banks side by side
    turned = mapping.beside > 1
    takers = int(takers_of_parts(warps, lanes)) if turned else 1
    own_part: IntExpr = Name(loop.thread) if turned else Constant(0)

    def part(tile: Buffer, at: IntExpr) -> Element:
        return tile.at(at, *own) if turned else tile.at(*own, at)

    tiles = []
    put: list[Node] = []
    taken: list[Node] = []
    for register, combiner in parts:
        name, kind = names.fresh(f"{register.buffer.name}_warps"), register.buffer.element_type
        tile = Buffer.of(
            "shared", name, kind, *([warps, *extents] if turned else [*extents, warps])
        )
        tiles.append(tile)
        put.append(Copy(target=part(tile, warp), source=register))
        first, *others = (part(tile, own_part + at) for at in range(0, warps, takers))
        taken.append(Copy(target=register, source=first))
        taken += (Intrinsic.of(COMBINES[combiner.name], register, other) for other in others)
    if turned:
        names_of = [names.fresh(f"{register.buffer.name}_all") for register, _ in parts]
        sums = [
            Buffer.of("shared", name, register.buffer.element_type, *extents)
            for name, (register, _) in zip(names_of, parts, strict=True)
        ]
        whole = [(one.at(*own), register) for one, (register, _) in zip(sums, parts, strict=True)]
        left = tuple(Copy(target=one, source=register) for one, register in whole)
        alone = (Name(loop.thread) < 1,)
        # all warps pass on what they have, as a warp does as one
        own_sum = If(conditions=(Name(loop.thread) < takers,), body=tuple(taken))
        passed = shuffles(parts, takers, mapping.beside)
        taken = [own_sum, *passed, If(conditions=alone, body=left)]
        taken += (Copy(target=register, source=one) for one, register in whole)
        tiles += sums
    return tiles, If(conditions=(is_first,), body=tuple(put)), tuple(taken)


def of_lanes(thread: IntExpr, threads: int, beside: int = 1) -> IntExprs:
    """Return what code asks of a thread that shares a sum: whether it is first, and its warp.

    In a warp so many sums are side by side.
    """
    lanes = int(lanes_of_warp(threads, beside))
    return equals(thread, 0), equals(thread % lanes, 0), thread // lanes


def lane_and_warp(thread: IntExpr) -> tuple[IntExpr, IntExpr]:
    """Return the lane of a thread in its warp, and its warp in the block."""
    return thread % CUDA.lanes, thread // CUDA.lanes


def interleaved_places(lane: str, warp: str, threads: Sequence[int]) -> IntExprs:
    """Return the place of a thread along each loop, the fastest first.

    Args:
        lane: the name of a thread's lane in its warp.
        warp: the name of its warp in the block.
        threads: along each loop, the fastest first. Warps are boxes of lanes along the first two;
            along others they follow each other, along the last one slowest.

    Raises:
        InternalError: ``EATSS-K901`` some place has no thread.
    """
    along_x, along_y, *others = threads
    counts = [*reversed(others), along_y // ALONG_Y, along_x // ALONG_X]
    *outer, warp_y, warp_x = digits(Name(warp), [Constant(count) for count in counts])
    lane_y = Name(lane) // 2 % ALONG_Y
    lane_x = Name(lane) % 2 + 2 * (Name(lane) // (2 * ALONG_Y))
    places = (
        lane_x + ALONG_X * warp_x,
        lane_y + ALONG_Y * warp_y,
        *reversed(outer),
    )
    of_thread = dict(zip((lane, warp), lane_and_warp(Name(_NUMBER)), strict=True))
    met = [substitute(place, of_thread) for place in places]
    _check_met(met, {}, threads, "the threads of a block leave points out")
    return places

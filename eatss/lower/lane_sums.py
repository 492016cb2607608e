"""Ends of sums that threads share: parts that lanes of a warp and warps of a block put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eatss.instructions import COMBINES, SHUFFLES
from eatss.kernel.nodes import Buffer, Copy, Element, Layout, Node, Perform
from eatss.program import Constant, IntExpr, Name, equals
from eatss.schedule.mapping import MappedLoop, Mapping
from eatss.schedule.names import NameTable
from eatss.scops.combiners import Combiner
from eatss.targets import CUDA

Parts = Sequence[tuple[Element, Combiner]]
"""Registers that have parts of sums, and what makes one value of two parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """How all threads of a sum come to have it.

    Where ``first`` holds, a thread ``put``s the part of its warp into ``boxes``; all have ``taken``
    every part from there.
    """

    boxes: tuple[Buffer, ...]
    first: IntExpr
    put: tuple[Node, ...]
    taken: tuple[Node, ...]


def shuffles(parts: Parts, width: int) -> tuple[Node, ...]:
    """Return what makes the first of ``width`` lanes have what all of them add up."""
    return tuple(
        Perform(
            instruction=SHUFFLES[combiner.name],
            operands=(("sum", (register,)),),
            immediates=(("delta", width >> step), ("width", width)),
        )
        for register, combiner in parts
        for step in range(1, width.bit_length())
    )


def passed_to_all(parts: Parts, loop: MappedLoop, mapping: Mapping, names: NameTable) -> Passed:
    """Return what makes all threads of a sum have it, at a point of the other loops.

    Args:
        parts: what the first lanes of warps have.
        loop: the loop of the sum, along ``x``.
        mapping: the layout of the kernel.
        names: gives out the names of boxes.
    """
    lanes = min(loop.threads, CUDA.lanes)
    warps = loop.threads // lanes
    several = [m for m in mapping.mapped if m.threads > 1]
    points = [m for m in mapping.mapped if m.points > 1]
    own = [*(Name(m.thread) for m in several), *(Name(m.point) for m in points)]
    extents = [*(m.threads for m in several), *(m.points for m in points), warps]
    boxes: list[Buffer] = []
    put: list[Node] = []
    taken: list[Node] = []
    for register, combiner in parts:
        box = Buffer(
            name=names.fresh(f"{register.buffer.name}_warps"),
            space="shared",
            element_type=register.buffer.element_type,
            layout=Layout(tuple(map(Constant, extents))),
        )
        boxes.append(box)
        warp = Name(loop.thread) // lanes
        put.append(Copy(target=Element(buffer=box, subscripts=(*own, warp)), source=register))
        found = [Element(buffer=box, subscripts=(*own, Constant(at))) for at in range(warps)]
        taken.append(Copy(target=register, source=found[0]))
        taken += [
            Perform(
                instruction=COMBINES[combiner.name],
                operands=(("target", (register,)), ("value", (part,))),
            )
            for part in found[1:]
        ]
    inside = Name(loop.thread) % lanes
    return Passed(
        boxes=tuple(boxes),
        first=equals(inside, 0),
        put=tuple(put),
        taken=tuple(taken),
    )

"""Which stage of a box an element is in, as far as its first subscript says.

    for (k0 = 0, stage = 0; k0 < NK; k0 += 32, stage = stage == 2 ? 0 : stage + 1)
        … A[stage][…] … A[stage == 0 ? 2 : stage - 1][…] …

In the first the stage is the number of the turn modulo 3, in the second that of the turn before,
which is that of two turns later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eatss.kernel.nodes import Cycle, Element
from eatss.program import Apply, Constant, IntExpr, Name, Operator, difference, total


@dataclass(frozen=True, slots=True)
class Stage:
    """``(turn + later) % count`` for the number of the turn of a loop, told by its counter.

    Without a loop it is ``later`` itself; with no ``count`` it may be any.
    """

    count: int = 0
    later: int = 0
    loop: str = ""

    def a_turn_on(self, loop: str) -> Stage:
        """Return what it is by the number of the next turn of a loop."""
        if self.loop != loop:
            return self
        return replace(self, later=(self.later - 1) % self.count)

    def in_turns(self, loop: str, cycle: Cycle | None) -> Stage:
        """Return what it is by the number of the first turn of a loop."""
        if cycle is None or self.loop or self.count != cycle.count:
            return self
        return replace(self, loop=loop)

    def behind(self, loop: str) -> Stage:
        """Return what it is where the turns of a loop are over."""
        return ANY if self.loop == loop else self


ANY = Stage()


def turn_before(cycle: Cycle) -> IntExpr:
    """Return the stage of the turn before, and of ``count - 1`` turns later."""
    name = Name(cycle.name)
    first = Apply(Operator.EQ, (name, Constant(0)))
    return Apply(Operator.SELECT, (first, Constant(cycle.count - 1), difference(name, Constant(1))))


def turn_after(cycle: Cycle) -> IntExpr:
    """Return the stage of the next turn."""
    name = Name(cycle.name)
    last = Apply(Operator.EQ, (name, Constant(cycle.count - 1)))
    return Apply(Operator.SELECT, (last, Constant(0), total(name, Constant(1))))


def may_meet(one: Stage, other: Stage) -> bool:
    """Tell whether two stages may be the same."""
    if not one.count or not other.count or one.loop != other.loop:
        return True
    return one.count != other.count or one.later == other.later


def stage_of(element: Element, cycles: Mapping[str, Cycle]) -> Stage:
    """Return the stage of an element; ``cycles`` are those of loops around, by their counters."""
    if not element.subscripts:
        return ANY
    first, extent = element.subscripts[0], element.buffer.layout.extents[0]
    if not isinstance(extent, Constant):
        return ANY
    if isinstance(first, Constant):
        return Stage(extent.value, first.value)
    for loop, cycle in cycles.items():
        places = (Name(cycle.name), turn_after(cycle), turn_before(cycle))
        if cycle.count == extent.value and first in places:
            later = (0, 1, cycle.count - 1)
            return Stage(cycle.count, later[places.index(first)], loop)
    return ANY

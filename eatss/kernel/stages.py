"""Which stage of a box an element is in, as far as its first subscript says.

    for (k0 = 0; k0 < NK; k0 += 32) {
        const int stage = k0 / 32 % 3;
        … A[stage][…] … A[(stage + 2) % 3][…] …
    }

The first is 0 stages behind the number of the turn, the second 2. A turn later they are -1 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eatss.kernel.nodes import Element, For, Let
from eatss.program import Apply, Constant, IntExpr, Name, Operator, difference

_OF_A_LOOP = 3
"""What defines the counter of a loop: its first value, its condition, its step."""


@dataclass(frozen=True, slots=True)
class Stage:
    """``(turn + behind) % count`` for the number of the turn of a loop, told by its counter.

    Without a loop it is ``behind`` itself; with no ``count`` it may be any.
    """

    count: int = 0
    behind: int = 0
    loop: str = ""

    def a_turn_later(self, loop: str) -> Stage:
        """Return what it is by the number of the next turn of a loop."""
        if self.loop != loop:
            return self
        return replace(self, behind=(self.behind - 1) % self.count)

    def in_turns(self, loop: str, count: int) -> Stage:
        """Return what it is by the number of the first turn of a loop."""
        if not count or self.loop or self.count != count:
            return self
        return replace(self, loop=loop)

    def behind_loop(self, loop: str) -> Stage:
        """Return what it is where the turns of a loop are over."""
        return ANY if self.loop == loop else self


ANY = Stage()


def may_meet(one: Stage, other: Stage) -> bool:
    """Tell whether two stages may be the same."""
    if not one.count or not other.count or one.loop != other.loop:
        return True
    return one.count != other.count or one.behind == other.behind


def stage_of(element: Element, defined: Mapping[str, tuple[IntExpr, ...]]) -> Stage:
    """Return the stage of an element.

    Args:
        element: of a box.
        defined: the value of each constant, and the first value, condition and step of each
            counter.
    """
    if len(element.subscripts) < 2:
        return ANY
    first, extent = element.subscripts[0], element.buffer.layout.extents[0]
    if not isinstance(extent, Constant):
        return ANY
    if isinstance(first, Constant):
        return Stage(extent.value, first.value)
    found = _by_turn(first, defined)
    return found if found.count == extent.value else ANY


def stages_of(loop: For) -> int:
    """Return how many stages the turns of a loop go through, 0 if it has none."""
    known = {loop.counter: (loop.lower, loop.condition, loop.step)}
    found = (_by_turn(one.value, known) for one in loop.body if isinstance(one, Let))
    return max((one.count for one in found if one.loop == loop.counter), default=0)


def _by_turn(value: IntExpr, defined: Mapping[str, tuple[IntExpr, ...]]) -> Stage:
    if isinstance(value, Name):
        known = defined.get(value.name, ())
        return _by_turn(known[0], defined) if len(known) == 1 else ANY
    if not isinstance(value, Apply) or value.operator is not Operator.REMAINDER:
        return ANY
    number, count = value.operands
    if not isinstance(number, Apply) or not isinstance(count, Constant):
        return ANY
    if number.operator is Operator.QUOTIENT:
        loop = _loop_of(number, defined)
        return Stage(count.value, 0, loop) if loop else ANY
    if number.operator is Operator.ADD and len(number.operands) == len(("stage", "more")):
        stage, more = number.operands
        own = _by_turn(stage, defined)
        if isinstance(more, Constant) and more.value >= 0 and own.count == count.value:
            return replace(own, behind=(own.behind + more.value) % own.count)
    return ANY


def _loop_of(turn: Apply, defined: Mapping[str, tuple[IntExpr, ...]]) -> str:
    """Return the counter of the loop whose turns a quotient numbers, if it does."""
    for name, known in defined.items():
        if len(known) == _OF_A_LOOP and isinstance(known[2], Constant) and known[2].value > 0:
            passed = difference(Name(name), known[0])
            if turn.operands == (passed, known[2]):
                return name
    return ""

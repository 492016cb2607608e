"""Are the barriers of a kernel enough, and is each of them needed?

Threads of a block write boxes of shared memory together and read what others wrote. Between a
write and a read, and between a read and the next write, every thread has to have met a barrier.
All nodes are followed in every order that they may run in: branches apart, loops twice and not at
all. What is copied to the same places of a box again, by equal loops, is copied by the same
threads, and needs no barrier in between. That one copy has different places for different threads
is up to who made it. In global memory threads of a block meet between phases only: what one phase
wrote is there for another behind a barrier.

That threads meet in a vote (:class:`AllFinite`) or where blocks put sums together counts for
nothing, since they do so only at times.

What is copied ahead is on its way until the thread that sent it has waited for it; only then does
a barrier make it seen. Boxes of several stages are told apart by their first subscript:

    for (k0 = 0, stage = 0; k0 < NK; k0 += 32, stage = stage == 2 ? 0 : stage + 1)
        … A[stage][…] … A[stage == 0 ? 2 : stage - 1][…] …

In the first the stage is the number of the turn modulo 3, in the second that of the turn before,
which is that of two turns later.

Boxes of groups that are overlaid are the same memory: what is done to one of them is done to some
places of each box of another group, whatever their stages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from eatss.base.targets import CUDA
from eatss.lower.kernel.nodes import (
    AllFinite,
    Barrier,
    Buffer,
    Commit,
    Copy,
    Cycle,
    Element,
    Fixup,
    For,
    If,
    Intrinsic,
    Let,
    Node,
    Nodes,
    Scope,
    Wait,
)
from eatss.lower.kernel.uses import accesses, every, every_of, mapped, read, written
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    equals,
    names_in,
    select,
)

_Definition: TypeAlias = tuple[str, tuple[IntExpr, ...]]

_Places: TypeAlias = tuple[tuple[IntExpr, ...], frozenset[_Definition]]
"""Subscripts, and what the names in them stand for."""


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
    first = equals(name, 0)
    return select(first, cycle.count - 1, name - 1)


def turn_after(cycle: Cycle) -> IntExpr:
    """Return the stage of the next turn."""
    name = Name(cycle.name)
    last = equals(name, cycle.count - 1)
    return select(last, 0, name + 1)


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


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """A box, and which of its stages; an array, and the phase that touches it.

    A box that is overlaid has a ``group``. A follower has one object for each, compared as such.
    """

    buffer: Buffer
    stage: Stage
    phase: str
    group: int | None


class _Through:
    """The places that a copy goes through. A follower has one object for each."""

    __slots__ = ()


_Write: TypeAlias = tuple[_Box, _Through | None]
"""A box and the places that a copy goes through; ``None`` for what no other write is like."""

Overlaid: TypeAlias = Sequence[Sequence[str]]
"""Groups of boxes, by name, that lie in the same memory [``Kernel.overlaid``]."""

_Access: TypeAlias = tuple[frozenset[_Write], frozenset[_Box]]
"""What is written and what is read."""

_MOST_GROUPS = 64
"""Groups of copies behind one of which it does not matter how many more there are."""


@dataclass(frozen=True, slots=True)
class SharedUses:
    """Boxes in shared memory that some thread may have used since it last met a barrier.

    ``sent`` are copies that a thread may not have waited for, barrier or not, each with the number
    of groups that it has closed since, at least. What a :class:`Follower` finds is for it alone.
    """

    written: frozenset[_Write] = frozenset()
    read: frozenset[_Box] = frozenset()
    sent: frozenset[tuple[_Write, int]] = frozenset()

    def joined(self, other: SharedUses) -> SharedUses:
        """Return what either has."""
        if not self.sent and not other.sent:
            return SharedUses(self.written | other.written, self.read | other.read)
        sent: dict[_Write, int] = {}
        for write, groups in (*self.sent, *other.sent):
            sent[write] = min(groups, sent.get(write, groups))
        return SharedUses(
            self.written | other.written, self.read | other.read, frozenset(sent.items())
        )

    def behind_barrier(self) -> SharedUses:
        """Return what a barrier leaves."""
        return SharedUses(sent=self.sent)

    def committed(self) -> SharedUses:
        """Return what it is when a group of copies is closed."""
        sent = ((write, min(groups + 1, _MOST_GROUPS)) for write, groups in self.sent)
        return replace(self, sent=frozenset(sent))

    def waited(self, pending: int) -> SharedUses:
        """Return what it is when all groups but the last few are there."""
        there = {one for one in self.sent if one[1] > pending}
        return replace(
            self, written=self.written | {write for write, _ in there}, sent=self.sent - there
        )

    def with_boxes(self, other: Callable[[_Box], _Box]) -> SharedUses:
        """Return it with other boxes in the places of its."""
        boxes = {*self.read, *(one for one, _ in self.written), *(one for (one, _), _ in self.sent)}
        changed = {one: other(one) for one in boxes}
        if all(one is new for one, new in changed.items()):
            return self
        return SharedUses(
            frozenset((changed[one], places) for one, places in self.written),
            frozenset(changed[one] for one in self.read),
            frozenset(((changed[one], places), groups) for (one, places), groups in self.sent),
        ).joined(_NOTHING)


_NOTHING = SharedUses()


def barrier_faults(body: Sequence[Node], overlaid: Overlaid = ()) -> tuple[str, ...]:
    """Return what threads of a block may do to each other's shared memory, in words.

    Args:
        body: nodes of a kernel.
        overlaid: groups of its boxes that are the same memory.

    Returns:
        Nothing if the barriers are enough and every thread meets each of them.
    """
    return _faults(body, varying_names(body), overlaid)


def _faults(body: Sequence[Node], varying: frozenset[str], overlaid: Overlaid) -> tuple[str, ...]:
    return Follower(varying, overlaid).followed(body, SharedUses())[1]


def passed_on(body: Sequence[Node]) -> frozenset[Buffer]:
    """Return the arrays that one phase writes and another one writes or reads."""
    phases = [node for node in every_of(body, Scope) if node.phase]
    users: defaultdict[Buffer, set[str]] = defaultdict(set)
    for node in phases:
        for buffer in written(node.body) | read(node.body):
            users[buffer].add(node.phase)
    made = {buffer for node in phases for buffer in written(node.body)}
    return frozenset(one for one in made if one.space == "global" and len(users[one]) > 1)


def needed_barriers_only(body: Sequence[Node], overlaid: Overlaid = ()) -> Nodes:
    """Return nodes without the barriers that can be left out, the last ones first.

    Of what has faults nothing is left out.
    """
    found, varying = tuple(body), varying_names(body)
    if _faults(found, varying, overlaid):
        return found
    for at in reversed(range(barriers_in(found))):
        fewer = without_barrier(found, at)
        if not _faults(fewer, varying, overlaid):
            found = fewer
    return found


def barriers_in(body: Sequence[Node]) -> int:
    """Return the number of barriers."""
    return len(list(every_of(body, Barrier)))


def without_barrier(body: Sequence[Node], at: int) -> Nodes:
    """Return nodes without one of their barriers, counted from 0 in their order."""
    numbers = count()

    def kept(node: Node) -> Nodes:
        return () if isinstance(node, Barrier) and next(numbers) == at else (node,)

    return mapped(body, kept)


class Follower:
    """Follows what threads do.

    Args:
        varying: names that differ between threads, see :func:`varying_names`.
        overlaid: groups of boxes that are the same memory.
    """

    def __init__(self, varying: frozenset[str], overlaid: Overlaid = ()) -> None:
        self._varying = varying
        self._groups = {name: at for at, group in enumerate(overlaid) for name in group}
        self._boxes: dict[tuple[Buffer, Stage, str], _Box] = {}
        self._phase = ""
        self._through: dict[_Places, _Through] = {}
        self._defined: dict[str, tuple[IntExpr, ...]] = {}
        self._cycles: dict[str, Cycle] = {}
        self._accesses: dict[int, _Access] = {}
        self._faults: list[str] = []

    def followed(
        self, nodes: Sequence[Node], before: SharedUses
    ) -> tuple[SharedUses, tuple[str, ...]]:
        """Return what is pending behind nodes that all threads get to, and the faults in words.

        Args:
            nodes: what threads do.
            before: what they may have done since they last met a barrier.
        """
        self._defined, self._cycles, self._accesses, self._faults = {}, {}, {}, []
        pending = self._follow(nodes, before, uniform=True)
        return pending, tuple(dict.fromkeys(self._faults))

    def _follow(self, nodes: Sequence[Node], before: SharedUses, *, uniform: bool) -> SharedUses:
        """Return what is pending behind nodes; ``uniform`` says that all threads get to them."""
        state = before
        for node in nodes:
            state = self._step(node, state, uniform=uniform)
        return state

    def _step(self, node: Node, before: SharedUses, *, uniform: bool) -> SharedUses:
        if isinstance(node, Barrier | Commit | Wait):
            return self._waited(node, before, uniform=uniform)
        if isinstance(node, Scope):
            outside, self._phase = self._phase, node.phase or self._phase
            behind = self._follow(node.body, before, uniform=uniform)
            self._phase = outside
            return behind
        if isinstance(node, If):
            inside = uniform and not self._varies(node.conditions)
            first = self._follow(node.body, before, uniform=inside)
            return first.joined(self._follow(node.orelse, before, uniform=inside))
        if isinstance(node, Let):
            self._define(node.name, (node.value,))
        if isinstance(node, For):
            self._define(node.counter, (node.lower, node.condition, node.step))
            inside = uniform and not self._varies((node.lower, node.condition, node.step))
            return self._turns(node, before, uniform=inside)
        if isinstance(node, AllFinite) and (not uniform or self._varies((node.unless,))):
            self._faults.append("a vote stands where not all threads of a block get to")
        if isinstance(node, Fixup) and (not uniform or self._varies((node.number, node.own))):
            self._faults.append("sums are put together where not all threads of a block get to")
        if isinstance(node, Intrinsic) and node.instruction.together and not uniform:
            self._faults.append(
                f"{node.instruction.name} stands where not all threads of a warp get to"
            )
        return self._access(node, before)

    def _waited(
        self, node: Barrier | Commit | Wait, before: SharedUses, *, uniform: bool
    ) -> SharedUses:
        if isinstance(node, Commit):
            return before.committed()
        if isinstance(node, Wait):
            return before.waited(node.pending)
        if not uniform:
            self._faults.append("a barrier stands where not all threads of a block get to")
        return before.behind_barrier()

    def _turns(self, loop: For, before: SharedUses, *, uniform: bool) -> SharedUses:
        """Return what is pending behind a loop, whatever the number of its turns."""
        if loop.cycle is not None:
            self._cycles[loop.counter] = loop.cycle
            self._accesses = {}
        state = self._with_stages(before, lambda one: one.in_turns(loop.counter, loop.cycle))
        while True:
            turn = self._follow(loop.body, state, uniform=uniform)
            more = state.joined(self._with_stages(turn, lambda one: one.a_turn_on(loop.counter)))
            if more == state:
                break
            state = more
        if self._cycles.pop(loop.counter, None) is not None:
            self._accesses = {}
        return self._with_stages(state, lambda one: one.behind(loop.counter))

    def _with_stages(self, uses: SharedUses, change: Callable[[Stage], Stage]) -> SharedUses:
        def box(one: _Box) -> _Box:
            stage = change(one.stage)
            return one if stage is one.stage else self._box(one.buffer, stage, one.phase)

        return uses.with_boxes(box)

    def _define(self, name: str, values: tuple[IntExpr, ...]) -> None:
        if self._defined.get(name) != values:
            self._defined[name] = values
            self._accesses = {}

    def _places(self, subscripts: tuple[IntExpr, ...]) -> _Through:
        """Return subscripts with what the names in them stand for, directly or not."""
        found: dict[str, tuple[IntExpr, ...]] = {}
        todo = list(subscripts)
        while todo:
            for name in names_in(todo.pop()):
                if name in self._defined and name not in found:
                    found[name] = self._defined[name]
                    todo += found[name]
        return self._through.setdefault((subscripts, frozenset(found.items())), _Through())

    def _accessed(self, node: Node) -> _Access:
        """Return what a node writes and reads where threads of the block meet."""
        known = self._accesses.get(id(node))
        if known is not None:
            return known
        written, read = accesses(node)
        same = isinstance(node, Copy)
        wrote = frozenset(
            (
                self._box_of(one),
                self._places(one.subscripts) if same and one.buffer.space == "shared" else None,
            )
            for one in written
            if self._is_met(one.buffer)
        )
        reads = frozenset(self._box_of(one) for one in read if self._is_met(one.buffer))
        self._accesses[id(node)] = wrote, reads
        return wrote, reads

    def _access(self, node: Node, before: SharedUses) -> SharedUses:
        wrote, reads = self._accessed(node)
        if not wrote and not reads:
            return before
        there = before.written | {write for write, _ in before.sent}
        self._faults += [
            f"{one.buffer.name} is read before all threads have written their part of it"
            for one in reads
            if any(_meet(one, other) for other, _ in there)
        ]
        for box, places in wrote:
            if any(_meet(box, other) for other in before.read):
                self._faults.append(
                    f"{box.buffer.name} is written while other threads may still read it"
                )
            others = {
                own if other.buffer == box.buffer else None
                for other, own in there
                if _meet(box, other)
            }
            if others and (places is None or others != {places}):
                self._faults.append(f"{box.buffer.name} is written by several threads at a time")
        if isinstance(node, Copy) and node.ahead:
            own = SharedUses(read=reads, sent=frozenset((one, 0) for one in wrote))
        else:
            own = SharedUses(wrote, reads)
        return before.joined(own)

    def _is_met(self, buffer: Buffer) -> bool:
        return buffer.space == "shared" or (buffer.space == "global" and self._phase != "")

    def _box_of(self, element: Element) -> _Box:
        phase = self._phase if element.buffer.space == "global" else ""
        return self._box(element.buffer, stage_of(element, self._cycles), phase)

    def _box(self, buffer: Buffer, stage: Stage, phase: str) -> _Box:
        group = self._groups.get(buffer.name) if buffer.space == "shared" else None
        return self._boxes.setdefault((buffer, stage, phase), _Box(buffer, stage, phase, group))

    def _varies(self, expressions: Iterable[IntExpr]) -> bool:
        return any(varies(expression, self._varying) for expression in expressions)


def _meet(one: _Box, other: _Box) -> bool:
    """Tell whether two boxes may be the same memory, or an array of two phases.

    They are the same stage of the same box, or of boxes that are overlaid.
    """
    if one.buffer.space == "global":
        return one.buffer == other.buffer and one.phase != other.phase
    if one.group is not None and other.group is not None and one.group != other.group:
        return True
    return one.buffer == other.buffer and may_meet(one.stage, other.stage)


def varying_names(body: Sequence[Node]) -> frozenset[str]:
    """Return the names of constants and counters that differ between the threads of a block."""
    found: set[str] = set()
    named = [(name, set(names_in(*values))) for name, values in _named(body)]
    while True:
        more = {name for name, known in named if _vary(known, found)}
        if more <= found:
            return frozenset(found)
        found |= more


def _named(body: Sequence[Node]) -> Iterator[tuple[str, tuple[IntExpr, ...]]]:
    for node in every(body):
        if isinstance(node, Let):
            yield node.name, (node.value,)
        elif isinstance(node, For):
            for counter in node.counters:
                yield counter, (node.lower, node.step)


def varies(expression: IntExpr, names: Collection[str]) -> bool:
    """Tell whether an expression differs between threads where these names do."""
    return _vary(names_in(expression), names)


def _vary(mentioned: Iterable[str], names: Collection[str]) -> bool:
    return any(name in names or name.startswith(CUDA.thread) for name in mentioned)

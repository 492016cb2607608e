"""Are the barriers of a kernel enough, and is each of them needed?

Threads of a block write tiles in shared memory together and read what others wrote. Between a
write and a read, and between a read and the next write, every thread has to have met a barrier.
All nodes are followed in every order that they may run in: branches apart, loops twice and not at
all. What is copied to the same places of a tile again, by equal loops, is copied by the same
threads, and needs no barrier in between. That one copy has different places for different threads
is up to who made it. In global memory threads of a block meet between phases only: what one phase
wrote is there for another behind a barrier. Of scopes that are apart the same holds in shared
memory; from one turn of a loop around them to the next threads meet.

That threads meet in a vote (:class:`AllFinite`, :class:`Agreed`) or in a fixup counts for nothing:
of most of these they do so only at times.

What is copied ahead is on its way until the thread that sent it has waited for it; only then does
a barrier make it seen. Buffers of several stages are known by their first subscript:

    for (k0 = 0, stage = 0; k0 < NK; k0 += 32, stage = stage == 2 ? 0 : stage + 1)
        … A[stage][…] … A[stage == 0 ? 2 : stage - 1][…] …

In the first the stage is the number of the iteration modulo 3, in the second that of the one
before, which is that of two iterations later. It may be said as ``(k + 2) % 3``, too, where the
counter ``k`` numbers the iterations from 0.

Tiles of groups that are overlaid are the same memory: what is done to one of them is done to some
places of each tile of another group, whatever their stages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from eatss.base.frozen import Names, distinct, their_names
from eatss.base.targets import CUDA
from eatss.lower.kernel.nodes import (
    AllFinite,
    Argument,
    Barrier,
    Buffer,
    Commit,
    Copy,
    Cycle,
    Element,
    Fixup,
    Flag,
    For,
    If,
    Intrinsic,
    Kernel,
    Let,
    LookBack,
    Meeting,
    Node,
    Nodes,
    Scope,
    Wait,
)
from eatss.lower.kernel.uses import (
    accesses,
    buffers_of,
    counters_of,
    depends_on,
    every,
    every_of,
    mapped_of,
    names_of,
    read,
    written,
)
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    names_in,
    select,
)
from eatss.program.expression import IntExprs
from eatss.program.linear import linear

_Definition: TypeAlias = tuple[str, IntExprs]

_Places: TypeAlias = tuple[IntExprs, frozenset[_Definition]]
"""Subscripts, and what the names in them stand for."""


class Stage(NamedTuple):
    """``(iteration + later) % stages`` for the number of an iteration, by the loop's counter.

    Without a loop it is ``later`` itself; with no ``stages`` it may be any.
    """

    stages: int = 0
    later: int = 0
    loop: str = ""

    def a_turn_on(self, loop: str) -> Stage:
        """Return what it is by the number of the next iteration of a loop."""
        if self.loop != loop:
            return self
        return self._replace(later=(self.later - 1) % self.stages)

    def in_turns(self, loop: str, cycle: Cycle | None) -> Stage:
        """Return what it is by the number of the first iteration of a loop."""
        if cycle is None or self.loop or self.stages != cycle.count:
            return self
        return self._replace(loop=loop)

    def behind(self, loop: str) -> Stage:
        """Return what it is where the iterations of a loop are over."""
        return ANY if self.loop == loop else self


ANY = Stage()


def turn_before(cycle: Cycle) -> IntExpr:
    """Return the stage of the iteration before, and of ``count - 1`` iterations later."""
    name = Name(cycle.name)
    return select(equals(name, 0), cycle.count - 1, name - 1)


def turn_after(cycle: Cycle) -> IntExpr:
    """Return the stage of the next iteration."""
    name = Name(cycle.name)
    return select(equals(name, cycle.count - 1), 0, name + 1)


def may_meet(one: Stage, other: Stage) -> bool:
    """Tell whether two stages may be the same."""
    if not one.stages or not other.stages or one.loop != other.loop:
        return True
    return one.stages != other.stages or one.later == other.later


def stage_of(
    element: Element, cycles: Mapping[str, Cycle], numbered: Collection[str] = ()
) -> Stage:
    """Return the stage of an element.

    ``cycles`` are those of loops around, by their counters; those of ``numbered`` loops count from
    0.
    """
    if not element.subscripts:
        return ANY
    first, extent = element.subscripts[0], element.buffer.layout.extents[0]
    if not isinstance(extent, Constant):
        return ANY
    if isinstance(first, Constant):
        return Stage(stages=extent.value, later=first.value)
    for loop, cycle in cycles.items():
        places = (Name(cycle.name), turn_after(cycle), turn_before(cycle))
        if cycle.count == extent.value and first in places:
            later = (0, 1, cycle.count - 1)
            return Stage(stages=cycle.count, later=later[places.index(first)], loop=loop)
    match first:
        case Apply(Operator.REMAINDER, (number, Constant(turns))) if turns == extent.value:
            form = linear(number)
            terms = () if form is None else tuple(form.terms.items())
            for loop in numbered:
                if form is not None and terms == ((loop, 1),):
                    return Stage(stages=turns, later=form.constant % turns, loop=loop)
    return ANY


class Use(NamedTuple):
    """What some thread may have done to a tile in shared memory since it last met a barrier.

    ``stage`` says which buffer of a pipeline it was. An array in global memory has the ``phase``
    that touches it, a tile the scope that is ``apart``. What a copy writes goes ``through`` places,
    which have a number; ``None`` is for what no other write is like. A copy that a thread has sent,
    and may not have waited for, has the ``groups`` that were closed since, at least. An array that
    is ``in_global`` memory may be called as a tile is.
    """

    name: str
    stage: Stage
    phase: str
    writes: bool
    apart: str = ""
    through: int | None = None
    groups: int | None = None
    in_global: bool = False


Pending: TypeAlias = frozenset[Use]
"""All of it. A barrier leaves what is still on its way."""

NOTHING: Pending = frozenset()

Overlaid: TypeAlias = Sequence[Sequence[str]]
"""Groups of tiles, by name, that lie in the same memory [``Kernel.overlaid``]."""

_MOST_GROUPS = 64
"""Groups of copies behind one of which it does not matter how many more there are."""


def behind_barrier(pending: Pending) -> Pending:
    """Return what a barrier leaves."""
    return frozenset(one for one in pending if one.groups is not None)


def _behind_wait(node: Node, before: Pending) -> Pending:
    """Return what a barrier, the end of a group or a wait for groups leaves."""
    if isinstance(node, Barrier):
        return behind_barrier(before)
    sent = {one: one.groups for one in before if one.groups is not None}
    if isinstance(node, Wait):
        there = {one for one, groups in sent.items() if groups > node.pending}
        return before - there | {one._replace(groups=None) for one in there}
    closed = {o._replace(groups=min(n + 1, _MOST_GROUPS)) for o, n in sent.items()}
    return before - {*sent} | closed


def barrier_faults(body: Sequence[Node], overlaid: Overlaid = ()) -> Names:
    """Return what threads of a block may do to each other's shared memory, in words.

    Args:
        body: nodes of a kernel.
        overlaid: groups of its buffers that are the same memory.

    Returns:
        Nothing if the barriers are enough and every thread meets each of them.
    """
    return Follower(varying_names(body), overlaid).followed(body, NOTHING)[1]


def passed_on(body: Sequence[Node]) -> set[Buffer]:
    """Return the arrays that one phase writes and another one writes or reads.

    In a loop the next iteration of a phase is another one. Blocks pass on what tiles come to.
    """
    phases = [node for node in every_of(body, Scope) if node.phase]
    again = {one.phase for loop in every_of(body, For) for one in every_of(loop.body, Scope)}
    users = defaultdict(set)
    for node in phases:
        for buffer in written(node.body) | read(node.body):
            users[buffer].add(node.phase)
            if node.phase in again:
                users[buffer].add(_before(node.phase))
    made = {buffer for node in phases for buffer in written(node.body)}
    tiles = {node.found.buffer for node in every_of(body, LookBack)}
    return tiles.union(one for one in made if one.space == "global" and len(users[one]) > 1)


def arguments_of(
    body: Sequence[Node], integers: Iterable[str], arrays: Iterable[Buffer]
) -> tuple[Argument, ...]:
    """Return what a body uses of sizes and counters, and of arrays: what is passed to a kernel."""
    names, buffers, made, met = names_of(body), buffers_of(body), written(body), passed_on(body)
    return (
        *(Argument(name=name) for name in integers if name in names),
        *(
            Argument(name=o.name, buffer=o, read_only=o not in made, passed_on=o in met)
            for o in arrays
            if o in buffers
        ),
    )


def passed_to(kernels: Iterable[Kernel]) -> Iterable[Buffer]:
    """Return the arrays that some kernels are passed, each once."""
    passed = (one.buffer for kernel in kernels for one in kernel.arguments)
    return distinct(one for one in passed if one is not None)


def with_integers(kernel: Kernel, integers: Iterable[str]) -> Kernel:
    """Return a kernel that is passed all of some sizes and counters that it mentions by now."""
    needed = {*names_of(kernel.body), *their_names(kernel.arguments)}
    own = (Argument(name=name) for name in integers if name in needed)
    arrays = (one for one in kernel.arguments if one.buffer is not None)
    return replace(kernel, arguments=(*own, *arrays))


def needed_barriers_only(body: Sequence[Node], overlaid: Overlaid = ()) -> Nodes:
    """Return nodes without the barriers that can be left out, the last ones first.

    Of what has faults nothing is left out.
    """
    found, follower = tuple(body), Follower(varying_names(body), overlaid)
    if follower.followed(found, NOTHING)[1]:
        return found
    for at in reversed(range(barriers_in(found))):
        fewer = without_barrier(found, at)
        if not follower.followed(fewer, NOTHING)[1]:
            found = fewer
    return found


def barriers_in(body: Sequence[Node]) -> int:
    """Return the number of barriers."""
    return len(list(every_of(body, Barrier)))


def without_barrier(body: Sequence[Node], at: int) -> Nodes:
    """Return nodes without one of their barriers, counted from 0 in their order."""
    numbers = count()

    return mapped_of(body, Barrier, lambda one: () if next(numbers) == at else one)


class Follower:
    """Follows what threads do.

    Args:
        varying: names that differ between threads, see :func:`varying_names`.
        overlaid: groups of tiles that are the same memory.
    """

    def __init__(self, varying: frozenset[str], overlaid: Overlaid = ()) -> None:
        self._varying = varying
        self._groups = {name: at for at, group in enumerate(overlaid) for name in group}
        self._phase, self._apart_in = "", ""
        self._through: dict[_Places, int] = {}
        self._defined: dict[str, IntExprs] = {}
        self._cycles: dict[str, Cycle] = {}
        self._numbered: set[str] = set()
        self._faults: list[str] = []

    def followed(self, nodes: Sequence[Node], before: Pending) -> tuple[Pending, Names]:
        """Return what is pending behind nodes that all threads get to, and the faults in words.

        Args:
            nodes: what threads do.
            before: what they may have done since they last met a barrier.
        """
        self._defined, self._cycles, self._numbered, self._faults = {}, {}, set(), []
        return self._follow(nodes, before, uniform=True), distinct(self._faults)

    def _follow(self, nodes: Sequence[Node], before: Pending, *, uniform: bool) -> Pending:
        """Return what is pending behind nodes; ``uniform`` says that all threads get to them."""
        state = before
        for node in nodes:
            state = self._step(node, state, uniform=uniform)
        return state

    def _step(self, node: Node, before: Pending, *, uniform: bool) -> Pending:
        match node:
            case Scope():
                outside = self._phase, self._apart_in
                self._phase = node.phase or self._phase
                self._apart_in = node.apart or self._apart_in
                behind = self._follow(node.body, before, uniform=uniform)
                self._phase, self._apart_in = outside
                # what comes next, the scope itself in another turn of a loop, may meet it
                return _changed(behind, "apart", lambda one: self._apart_in)
            case If():
                inside = uniform and not self._varies(*node.conditions)
                bodies = (node.body, node.orelse)
                first, second = (self._follow(one, before, uniform=inside) for one in bodies)
                return first | second
            case For():
                asked = (node.lower, node.condition, node.step)
                self._defined[node.counter] = asked
                return self._turns(node, before, uniform=uniform and not self._varies(*asked))
            case Let():
                self._defined[node.name] = (node.value,)
        self._faults += self._apart(node, uniform=uniform)
        waits = isinstance(node, Barrier | Commit | Wait)
        return _behind_wait(node, before) if waits else self._access(node, before)

    def _apart(self, node: Node, *, uniform: bool) -> Iterator[str]:
        """Yield what stands where not all threads get to, of what all of them have to do."""
        match node:
            case AllFinite():
                uniform = uniform and not self._varies(node.unless)
            case Fixup():
                uniform = uniform and not self._varies(node.number, node.own)
            case Intrinsic() if node.instruction.together and not uniform:
                yield f"{node.instruction.name} stands where not all threads of a warp get to"
        if not uniform and isinstance(node, Meeting):
            yield f"{type(node).__name__} stands where not all threads of a block get to"

    def _turns(self, loop: For, before: Pending, *, uniform: bool) -> Pending:
        """Return what is pending behind a loop, whatever the number of its iterations."""
        if loop.cycle is not None:
            self._cycles[loop.counter] = loop.cycle
        if loop.lower == Constant(0) and loop.step == Constant(1):
            self._numbered.add(loop.counter)
        state = _in_stages(before, lambda one: one.in_turns(loop.counter, loop.cycle))
        while True:
            turn = self._follow(loop.body, state, uniform=uniform)
            turn = turn if self._phase else behind_turn(turn)
            more = state | _in_stages(turn, lambda one: one.a_turn_on(loop.counter))
            if more == state:
                break
            state = more
        self._cycles.pop(loop.counter, None)
        self._numbered.discard(loop.counter)
        return _in_stages(state, lambda one: one.behind(loop.counter))

    def _places(self, subscripts: IntExprs) -> int:
        """Return the number of subscripts with what the names in them stand for."""
        names = depends_on(names_in(*subscripts), self._defined)
        found = {name: self._defined[name] for name in names if name in self._defined}
        return self._through.setdefault((subscripts, frozenset(found.items())), len(self._through))

    def _uses_of(self, node: Node) -> Iterator[Use]:
        """Yield what a node reads and writes where threads of the block meet."""
        written, read = accesses(node)
        copies, sent = isinstance(node, Copy), isinstance(node, Copy) and node.ahead
        for one, writes in [(one, False) for one in read] + [(one, True) for one in written]:
            shared = one.buffer.space == "shared" and not one.buffer.of_phases
            if shared or (one.buffer.space in ("global", "shared") and self._phase):
                yield Use(
                    name=one.buffer.name,
                    stage=stage_of(one, self._cycles, self._numbered),
                    phase="" if shared else self._phase,
                    writes=writes,
                    apart=self._apart_in if shared else "",
                    through=self._places(one.subscripts) if shared and writes and copies else None,
                    groups=0 if sent and writes else None,
                    in_global=one.buffer.space == "global",
                )

    def _access(self, node: Node, before: Pending) -> Pending:
        uses = [*self._uses_of(node)]
        for use in uses:
            met = [one for one in before if self._meet(use, one)]
            written = {one.through if one.name == use.name else None for one in met if one.writes}
            if written and not use.writes:
                self._faults.append(
                    f"{use.name} is read before all threads have written their part of it"
                )
            if use.writes and not all(one.writes for one in met):
                self._faults.append(f"{use.name} is written while other threads may still read it")
            if use.writes and written and (use.through is None or written != {use.through}):
                self._faults.append(f"{use.name} is written by several threads at a time")
        return before.union(uses)

    def _meet(self, one: Use, other: Use) -> bool:
        """Tell whether two uses may be of the same memory, or of an array in two phases.

        They are of the same stage of a tile, or of tiles that are overlaid.
        """
        same = one.name == other.name
        if one.in_global != other.in_global or (one.in_global and not same):
            return False
        if one.apart and one.apart == other.apart:
            return False
        if same and (one.phase or other.phase):
            apart = not one.in_global and not may_meet(one.stage, other.stage)
            return "" != one.phase != other.phase != "" and not apart
        groups = self._groups.get(one.name), self._groups.get(other.name)
        if not same:
            return None not in groups and groups[0] != groups[1]
        return may_meet(one.stage, other.stage)

    def _varies(self, *expressions: IntExpr) -> bool:
        return any(varies(expression, self._varying) for expression in expressions)


def behind_turn(pending: Pending) -> Pending:
    """Return what an iteration leaves for the next one: there its phases are others."""
    return _changed(pending, "phase", lambda one: _before(one.phase))


def _before(phase: str) -> str:
    """Return the name of a phase in iterations before, the same for all of them."""
    return phase and f"{phase.removesuffix(_EARLIER)}{_EARLIER}"


_EARLIER = ", before"


def _in_stages(pending: Pending, change: Callable[[Stage], Stage]) -> Pending:
    return _changed(pending, "stage", lambda one: change(one.stage))


def _changed(pending: Pending, field: str, value: Callable[[Use], Any]) -> Pending:
    """Return uses with another value of a field; most have it already."""
    others = {
        one: one._replace(**{field: new})
        for one in pending
        if (new := value(one)) != getattr(one, field)
    }
    return pending.difference(others).union(others.values()) if others else pending


def varying_names(body: Sequence[Node]) -> frozenset[str]:
    """Return the names of constants and counters that differ between the threads of a block."""
    found: set[str] = set()
    named = [(name, set(names_in(*values))) for name, values in _named(body)]
    while True:
        more = {name for name, known in named if _vary(known, found)}
        if more <= found:
            return frozenset(found)
        found |= more


def _named(body: Sequence[Node]) -> Iterator[tuple[str, IntExprs]]:
    for node in every(body):
        if isinstance(node, Let):
            yield node.name, (node.value,)
        elif isinstance(node, Flag):
            yield node.name, (Name(CUDA.thread),)
        elif isinstance(node, For):
            for counter in counters_of(node):
                yield counter, (node.lower, node.step)


def varies(expression: IntExpr, names: Collection[str]) -> bool:
    """Tell whether an expression differs between threads where these names do."""
    return _vary(names_in(expression), names)


def _vary(mentioned: Iterable[str], names: Collection[str]) -> bool:
    return any(name in names or name.startswith(CUDA.thread) for name in mentioned)

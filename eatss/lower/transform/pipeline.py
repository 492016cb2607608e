"""Multistage pipelines: tiles are copied some iterations ahead, while others are computed with.

    for (k0 = 0; k0 < NK; k0 += 16) { copy A, B; compute; }

becomes, with three stages: copies of the first two iterations; then in each iteration a wait for
its own copies, a barrier, the start of those of two iterations later into the buffers that are
free, and what is computed. Behind the barrier nobody reads what was computed with in the iteration
before, and everybody has waited, so it is the only one of an iteration. Copies do not pass through
registers (``cp.async``), so they go on while threads compute. Those of single halves and bytes do:
there are none of so few bytes that do not. Where warps multiply, such copies are loaded in front of
an iteration's products and stored behind them [:mod:`eatss.lower.transform.copy_ways`]; where all
are so, nothing else runs ahead, and two buffers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from eatss.base.frozen import frozen
from eatss.base.trees import free_name
from eatss.lower.kernel.barriers import turn_after, turn_before, varies, varying_names
from eatss.lower.kernel.nodes import (
    Barrier,
    Buffer,
    Commit,
    Cycle,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Node,
    Nodes,
    Scope,
    Staging,
    Steps,
    Wait,
)
from eatss.lower.kernel.uses import (
    every_of,
    in_slot,
    mapped,
    mapped_of,
    sent,
    substituted,
    with_bodies,
    written,
)
from eatss.lower.transform.copy_ways import (
    Copying,
    RegisterStagedCopies,
    all_of,
    is_line_store,
    is_register_staged,
)
from eatss.lower.transform.operands_ahead import plain_steps
from eatss.lower.transform.register_prefetch import (
    PrefetchedSteps,
    Shares,
    words_of,
)
from eatss.plan.stage import FEWEST_AHEAD, are_many_transposed, buffers
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    names_in,
    substitute,
)
from eatss.program.expression import IntExprs

_SELDOM = 4
"""How often loops over copies are unrolled that run at the edges only. As a whole, they take the
registers of 64 x 128 x 32 products, which then spill."""


def pipelined(
    kernel: Kernel, stages: int, most_shared_bytes: int, taken: set[str], registers: int
) -> Kernel:
    """Return a kernel whose copying loops run ahead by ``stages - 1`` iterations, all carried out.

    Where fewer stages fit into shared memory, there are fewer; with less than two a loop stays as
    it is. Names that are ``taken`` stay what they are. A thread may have so many ``registers``.
    """
    found = kernel
    around = _Around(
        stage=free_name("stage", taken),
        plain=free_name("plain", taken),
        varying=varying_names(kernel.body),
        registers=registers,
        threads=kernel.threads,
        taken=taken,
    )
    for loop in every_of(kernel.body, For):
        ahead = _Ahead.of(loop, around)
        for number in range(0 if ahead is None else ahead.most(stages), 1, -1):
            assert ahead is not None
            turns = replace(ahead, count=number)
            shared = tuple(turns.staged.get(one, one) for one in found.shared)
            changed = replace(found, shared=shared)
            if changed.shared_bytes <= most_shared_bytes:
                nodes = turns.nodes()
                body = mapped(found.body, lambda one: nodes if one is loop else (one,))  # noqa: B023
                found = replace(changed, body=body)
                # loops may be neighbours
                around = replace(around, plain=free_name("plain", taken))
                break
    return replace(found, body=Copying().nodes(_started_in_front(found.body)))


def _started_in_front(nodes: Sequence[Node]) -> Nodes:
    """Return nodes in which copies in front of a loop that copies ahead start as its own do.

    They are of the group that the first iteration waits for.
    """
    found = [with_bodies(node, _started_in_front) for node in nodes]
    last = next((at for at, one in enumerate(found) if isinstance(one, Commit)), 0)
    front = takewhile(
        lambda one: isinstance(one, Staging) and not is_register_staged(one), found[:last]
    )
    started = sent(list(front))
    return (*started, *found[len(started) :])


@frozen
class _Around:
    """What loops that copy ahead know of their kernel.

    ``stage`` and ``plain`` are names for the stage of an iteration, and for whether copies need no
    tests. ``varying`` differs between the ``threads`` of a block, and each of them has
    ``registers``. Names that are ``taken`` are not free.
    """

    stage: str
    plain: str
    varying: frozenset[str]
    registers: int
    threads: int
    taken: set[str]


@frozen
class _Ahead:
    """A loop that copies tiles, and then computes with them; of each there are ``count`` buffers.

    Some copies ``start`` without registers.
    """

    loop: For
    around: _Around
    copies: Nodes
    rest: Nodes
    starts: bool
    count: int = 1

    @classmethod
    def of(cls, loop: For, around: _Around) -> _Ahead | None:
        """Return a loop as one that can copy ahead: without registers, or while warps multiply."""
        stages = tuple(one for one in loop.body if _fills_ahead(one))
        if not stages:
            return None
        rest = tuple(one for one in loop.body if one not in stages)
        starts = not all(map(is_register_staged, every_of(stages, Staging)))
        found = cls(loop=loop, around=around, copies=stages, rest=rest, starts=starts)
        return found if starts or found.lines(set()) is not None else None

    @property
    def stages(self) -> tuple[Staging, ...]:
        """The copies, in phases of their own or in none."""
        return tuple(every_of(self.copies, Staging))

    def most(self, stages: int) -> int:
        """Return the most buffers of each tile."""
        return int(buffers(stages, asynchronous=self.starts))

    @property
    def staged(self) -> dict[Buffer, Buffer]:
        """All buffers of each tile by the one that it has."""
        return {
            one: replace(one, layout=replace(one.layout, extents=(count, *one.layout.extents)))
            for count in (Constant(self.count),)
            for one in written(self.stages)
            if one.space == "shared"
        }

    def lines(self, taken: set[str]) -> RegisterStagedCopies | None:
        """Return copies whose halves come through registers while warps multiply, if any do."""
        return (
            RegisterStagedCopies.of(self.stages, taken) if any(every_of(self.rest, Steps)) else None
        )

    def nodes(self) -> Nodes:
        """Return what takes the place of the loop."""
        loop, around, count = self.loop, self.around, self.count
        steps, lines = self._steps(), self.lines(around.taken)
        prefetches = steps is not None and (
            lines is None or steps.fits(around.registers - lines.words)
        )
        copying = Copying(steps=steps is not None)
        first: Nodes = ()
        for number in range(count - 1):
            place = loop.lower + _times(loop.step, number)
            own = self._at(self.copies, place, Constant(number))
            first += self._copied(copying.nodes(own), place)
        later, slot = Name(loop.counter) + _times(loop.step, count - 1), turn_before(self.cycle)
        turn: tuple[Nodes, Nodes] | None = None
        stored: Nodes = ()
        if lines is not None:
            loads, stored = (
                self._copied(copying.nodes(self._at(own, later, slot)), later)
                for own in (lines.loads, lines.stores)
            )
            copies = (*(Declare(buffer=one, filled=True) for one in lines.declared), *loads)
            if steps is not None and prefetches:
                turn = self._prefetched(steps, copies, None, stored[:1])
        else:
            own = self._at(self.copies, later, slot)
            copies = self._copied(copying.nodes(own), later)
            if steps is not None:
                plain = self._plain(own, self._through_lines(steps, copying), later)
                turn = self._prefetched(steps, copies, plain)
        if turn is not None or lines is not None:
            first = _less_unrolled(first)
        plainly = (*self._there(count), *copies, *self._here(self.rest), *stored[:1])
        front, body = turn or ((), plainly)
        end = self._there(FEWEST_AHEAD)[:-1]
        cycle = replace(self.cycle, prefetches=prefetches)
        return (*first, *front, replace(loop, body=body, cycle=cycle), *end)

    @property
    def cycle(self) -> Cycle:
        """The number of an iteration's buffers."""
        return Cycle(name=self.around.stage, count=self.count)

    def _steps(self) -> PrefetchedSteps | None:
        """Return steps of products that can be loaded for ahead.

        All threads of a block wait for the next iteration where the last products are.
        """
        around, boxes = self.around, frozenset(self.staged)
        plain = partial(plain_steps, boxes=boxes, threads=around.threads, taken=around.taken)
        steps = PrefetchedSteps.of(self.rest, around.registers, plain)
        if steps is None or any(varies(one, around.varying) for one in steps.tests):
            return None
        return steps.in_parts(around.threads, around.taken)

    def _at(self, nodes: Sequence[Node], place: IntExpr, slot: IntExpr) -> Nodes:
        """Return nodes of the iteration at a place, with the buffers of a slot."""
        return in_slot(substituted(nodes, {self.loop.counter: place}), self.staged, slot)

    def _here(self, nodes: Sequence[Node]) -> Nodes:
        """Return nodes with the buffers of this iteration."""
        return in_slot(nodes, self.staged, Name(self.around.stage))

    def _is_turn(self, place: IntExpr) -> IntExpr:
        return substitute(self.loop.condition, {self.loop.counter: place})

    def _copied(self, copies: Sequence[Node], place: IntExpr) -> Nodes:
        """Return the copies of an iteration, if there is such an iteration."""
        there = If(conditions=(self._is_turn(place),), body=sent(copies))
        return (there, Commit()) if self.starts else (there,)

    def _plain(self, own: Sequence[Node], copying: Copying, place: IntExpr) -> _Plain:
        """Return the copies of an iteration without tests, and where that is right."""
        tests, copies = copying.plain([*every_of(own, Staging)])
        end = (Commit(),) if self.starts else ()
        return all_of((self._is_turn(place), *tests)), (*sent(copies), *end)

    def _through_lines(self, steps: PrefetchedSteps, copying: Copying) -> Copying:
        """Return how copies without tests are made: through lines, if there is room."""
        ways = [way for stage in self.stages for way in copying.ways(stage) if way.vectors]
        lines = [way.line for way in ways if way.line is not None]
        beside = are_many_transposed(sum(one.layout.elements or 0 for one in lines))
        boxes = {box for one in ways if one.line or beside for box in written(one.vectors)}
        room = steps.fits(self.around.registers - words_of(lines))
        return replace(copying, lines=room and self.staged.keys() <= boxes)

    def _prefetched(
        self,
        steps: PrefetchedSteps,
        copies: Nodes,
        plain: _Plain | None,
        stored: Nodes = (),
    ) -> tuple[Nodes, Nodes]:
        """Return what stands in front, and iterations that load each step ahead of the one before.

        What is ``stored`` behind products has been loaded with the copies.
        """
        loop, there = self.loop, self._there(self.count)
        later = Name(loop.counter) + loop.step

        def loads(place: IntExpr, slot: IntExpr, *, tested: bool) -> Nodes:
            own = self._at(steps.first(), place, slot)
            change = {loop.counter: place}
            tests = (self._is_turn(place), *(substitute(one, change) for one in steps.known_tests))
            return (If(conditions=tests, body=own),) if tested else own

        def turn(*, tested: bool, shares: Shares | None = None, stores: Nodes = ()) -> Nodes:
            behind = (*stores, *there, *loads(later, turn_after(self.cycle), tested=tested))
            return self._here(steps.turn(behind) if tested else steps.whole_turn(behind, shares))

        front = (*steps.declarations(), *there, *loads(loop.lower, Constant(0), tested=True))
        if plain is None:
            return front, (*copies, *turn(tested=True, stores=stored))
        # where there is something to copy there is an iteration to load for
        change = {loop.counter: later}
        known = [*steps.whole, *(substitute(one, change) for one in steps.known_tests)]
        tests, nodes = plain
        lines = tuple(one for one in nodes if is_line_store(one))
        nodes = tuple(one for one in nodes if one not in lines)
        shares = steps.shares(nodes[:-1], self.count, self.around.registers)
        in_front = nodes if shares is None else ()
        among = (*in_front, *turn(tested=False, shares=shares, stores=lines))
        found = self._parted(all_of((*tests, *known)), among, copies, turn(tested=True))
        return (*front, *found[0]), found[1]

    def _there(self, count: int) -> Nodes:
        """Return what all threads do for the buffer of an iteration to be there."""
        return (Wait(pending=count - 2), Barrier()) if self.starts else (Barrier(),)

    def _parted(
        self,
        conditions: Sequence[IntExpr],
        among: Nodes,
        copies: Nodes,
        rest: Nodes,
    ) -> tuple[Nodes, Nodes]:
        """Return the tests in front of the loop, and an iteration with and without plain copies."""
        always = tuple(one for one in conditions if self.loop.counter not in names_in(one))
        own = tuple(one for one in conditions if one not in always)
        others = (*_less_unrolled(copies), *rest)
        if not always:
            return (), (If(conditions=own, body=among, orelse=others),)
        name = self.around.plain
        value = always[0] if len(always) == 1 else Apply(Operator.AND, always)
        turn = If(conditions=(Name(name), *own), body=among, orelse=others)
        return (Let(name=name, value=value, narrow=True),), (turn,)


def _fills_ahead(node: Node) -> bool:
    """Tell whether a node copies what iterations later use, in a phase of its own or in none."""
    if isinstance(node, Scope):
        return all(map(_fills_ahead, node.body))
    return isinstance(node, Staging) and node.ahead


_Plain = tuple[IntExprs, Nodes]
"""Copies without tests, and where they are right."""


def _less_unrolled(copies: Sequence[Node]) -> Nodes:
    """Return copies that are seldom: their places are not to be kept in registers meanwhile."""
    return mapped_of(copies, For, lambda one: replace(one, unroll=one.unroll and _SELDOM))


def _times(step: IntExpr, count: int) -> IntExpr:
    """Return several steps of a loop."""
    if isinstance(step, Apply) and step.operator is Operator.MUL:  # a block's iteration
        first, other = step.operands
        return (count * first) * other
    return count * step

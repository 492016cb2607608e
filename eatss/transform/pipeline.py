"""Boxes in shared memory are copied some turns of a loop ahead, while others are computed with.

    for (k0 = 0; k0 < NK; k0 += 16) { copy A, B; compute; }

becomes, with three stages: copies of the first two turns; then in each turn a wait for its own
copies, a barrier, the start of those of two turns later into the boxes that are free, and what is
computed. Behind the barrier nobody reads what was computed with in the turn before, and everybody
has waited, so it is the only one of a turn.
Copies do not pass through registers (``cp.async``), so they go on while threads compute. Those of
single halves and bytes do: there are none of so few bytes that do not. Where warps multiply, such
copies are loaded in front of a turn's products and stored behind them
[:mod:`eatss.transform.copy_ways`]; where all are so, nothing else runs ahead, and two boxes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from eatss.analysis.structure import WORD_BYTES
from eatss.free_names import free_name
from eatss.kernel.barriers import turn_after, turn_before, varies, varying_names
from eatss.kernel.nodes import (
    Barrier,
    Buffer,
    Commit,
    Copy,
    Cycle,
    Element,
    For,
    If,
    Kernel,
    Layout,
    Let,
    Node,
    Wait,
)
from eatss.kernel.uses import (
    accesses,
    every,
    every_of,
    mapped,
    read,
    with_bodies,
    with_elements,
    with_expressions,
    written,
)
from eatss.plan.rows import is_asynchronous
from eatss.plan.stage import FEWEST_AHEAD, buffers
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    names_in,
    substitute,
)
from eatss.transform.copy_ways import (
    NarrowLines,
    all_in_lines,
    line_words,
    lines_parted,
    with_tests,
    without_lines,
    without_tests,
)
from eatss.transform.interleaved_copies import (
    PlainCopies,
    Shares,
    apart,
    copies_among_products,
    multiplies,
    plain_copies,
)
from eatss.transform.operands_ahead import plain_steps
from eatss.transform.register_prefetch import StepsAhead

_SELDOM = 4
"""How often loops over copies are unrolled that run at the edges only. As a whole, they take the
registers of 64 x 128 x 32 products, which then spill."""


def pipelined(
    kernel: Kernel, stages: int, most_shared_bytes: int, taken: set[str], registers: int
) -> Kernel:
    """Return a kernel whose innermost copying loops run ahead by ``stages - 1`` turns.

    Where fewer stages fit into shared memory, there are fewer; with less than two, or where a loop
    does more with its boxes than to fill and to read them, it stays as it is. Names that are
    ``taken`` stay what they are. A thread may have so many ``registers``.
    """
    found, around = kernel, _Around.of(kernel, taken, registers)
    for loop in list(every_of(kernel.body, For)):
        ahead = _Ahead.of(loop, found)
        if ahead is None:
            continue
        for number in range(buffers(stages, asynchronous=ahead.starts), 1, -1):
            changed = ahead.with_stages(found, number, around)
            if changed.shared_bytes <= most_shared_bytes:
                found = changed
                around = replace(around, plain=free_name("plain", taken))  # loops may be neighbours
                break
    return replace(found, body=_started_in_front(without_lines(without_tests(found.body))))


def _started_in_front(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes in which copies in front of a loop that copies ahead start as its own do.

    They are of the group that the first turn waits for.
    """
    found = [with_bodies(node, _started_in_front) for node in nodes]
    last = next((at for at, one in enumerate(found) if isinstance(one, Commit)), 0)
    front = len(list(takewhile(_copies_plainly, found[:last])))
    return (*_ahead(found[:front]), *found[front:])


def _copies_plainly(node: Node) -> bool:
    """Tell whether a node only fills boxes from memory, so that registers need not take part."""
    return _written([node]) != set() and all(
        isinstance(one, For | If | Let)
        or (isinstance(one, Copy) and _may_start(one) and not _read([one]))
        for one in every((node,))
    )


def _may_start(copy: Copy) -> bool:
    """Tell whether a copy need not pass through registers."""
    return _fills(copy) and is_asynchronous(_bytes(copy))


def _is_narrow(copy: Copy) -> bool:
    """Tell whether a copy is one of single halves or bytes, which pass through registers."""
    return _fills(copy) and _bytes(copy) < WORD_BYTES


def _bytes(copy: Copy) -> int:
    return copy.target.buffer.element_type.size_bytes * copy.width


def _fills(copy: Copy) -> bool:
    return (copy.source.buffer.space, copy.target.buffer.space) == ("global", "shared")


def _ahead(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return copies that do not pass through registers."""

    def started(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Copy) and _may_start(node):
            return (replace(node, ahead=True),)
        return (node,)

    return mapped(nodes, started)


@dataclass(frozen=True, slots=True)
class _Around:
    """What loops that copy ahead know of their kernel.

    ``stage`` and ``plain`` are names for the stage of a turn, and for whether copies need no tests.
    ``varying`` differs between the ``threads`` of a block, and each of them has ``registers``.
    Names that are ``taken`` are not free.
    """

    stage: str
    plain: str
    varying: frozenset[str]
    registers: int
    threads: int
    taken: set[str]

    @classmethod
    def of(cls, kernel: Kernel, taken: set[str], registers: int) -> _Around:
        """Return it for a kernel, with names that are free."""
        return cls(
            free_name("stage", taken),
            free_name("plain", taken),
            varying_names(kernel.body),
            registers,
            kernel.threads,
            taken,
        )


class _Ahead:
    """A loop that copies boxes, and then computes with them.

    ``tested`` are the copies for steps of products, ``in_lines`` the same through registers
    [:mod:`eatss.transform.copy_ways`].
    """

    def __init__(self, loop: For, copies: Sequence[Node], rest: Sequence[Node]) -> None:
        self.loop, self.rest = loop, tuple(rest)
        self.copies = without_lines(without_tests(copies))
        self.in_lines = with_tests(copies)
        self.tested = without_lines(self.in_lines)
        self.buffers = frozenset(_written(copies))
        copied = list(every_of(self.copies, Copy))
        self.starts = any(map(_may_start, copied))

    @classmethod
    def of(cls, loop: For, kernel: Kernel) -> _Ahead | None:
        """Return a loop as one that can copy ahead."""
        at = 0
        while at < len(loop.body) and _written([loop.body[at]]):
            at += 1
        found = cls(loop, loop.body[:at], loop.body[at:])
        if not found.buffers:
            return None
        inside = {id(node) for node in every(loop.body)}
        for node in every(kernel.body):
            written, read = accesses(node)
            used = {one.buffer for one in (*written, *read)} & found.buffers
            if used and id(node) not in inside:
                return None
        if _written(found.rest) & found.buffers or _read(found.copies) & found.buffers:
            return None
        copied = list(every_of(found.copies, Copy))
        others = (one for one in copied if not _may_start(one))
        if not all(map(_is_narrow, others)):
            return None
        through = found.starts or (found.multiplies and found.lines(found.copies, set()))
        return found if through else None

    @property
    def multiplies(self) -> bool:
        """Whether warps multiply what is copied."""
        return any(map(multiplies, self.rest))

    def lines(self, own: Sequence[Node], taken: set[str]) -> NarrowLines | None:
        """Return copies whose halves come through registers, if there are such."""
        return NarrowLines.of(own, _is_narrow, taken) if self.multiplies else None

    def with_stages(self, kernel: Kernel, stages: int, around: _Around) -> Kernel:
        """Return a kernel in which the loop copies ahead."""
        staged = {one: _with_stages(one, stages) for one in self.buffers}

        def changed(node: Node) -> tuple[Node, ...]:
            return self._loop(staged, stages, around) if node == self.loop else (node,)

        return replace(
            kernel,
            shared=tuple(staged.get(one, one) for one in kernel.shared),
            body=mapped(kernel.body, changed),
        )

    def _loop(self, staged: dict[Buffer, Buffer], stages: int, around: _Around) -> tuple[Node, ...]:
        loop = self.loop
        cycle = Cycle(name=around.stage, count=stages)
        steps = self._steps(around)
        own = self.copies if steps is None else self.tested
        first = [
            self._copies(own, staged, loop.lower + _times(loop.step, turn), Constant(turn))
            for turn in range(stages - 1)
        ]
        later = Name(loop.counter) + _times(loop.step, stages - 1)
        narrow = self.lines(own, around.taken)
        if narrow is not None:
            room = steps is not None and steps.fits(around.registers - narrow.words)
            return self._with_lines(narrow, steps if room else None, staged, first, around)
        copies = self._copies(own, staged, later, turn_before(cycle))
        if steps is not None:
            plain = plain_copies(copies, around.varying)
            room = steps.fits(around.registers - line_words(self.in_lines))
            if room and all_in_lines(self.in_lines, self.buffers):
                lines = self._copies(self.in_lines, staged, later, turn_before(cycle))
                plain = plain_copies(lines, around.varying)
            return self._with_steps_ahead(steps, staged, copies, plain, first, around)
        rest = _in_stage(self.rest, staged, Name(around.stage))
        tests, then = self._turn(copies, rest, around, last=stages > FEWEST_AHEAD)
        body = (Wait(pending=stages - 2), Barrier(), *then)
        prologue = tuple(node for some in first for node in some)
        if then != (*copies, *rest):
            prologue = _less_unrolled(prologue)
        return (*prologue, *tests, replace(loop, body=body, cycle=cycle), Wait(pending=0))

    def _steps(self, around: _Around) -> StepsAhead | None:
        """Return steps of products that can be loaded for ahead.

        All threads of a block wait for the next turn where the last products are.
        """
        steps = StepsAhead.of(self.rest, around.registers)
        if steps is None:
            own = partial(
                plain_steps, boxes=self.buffers, threads=around.threads, taken=around.taken
            )
            steps = StepsAhead.of(self.rest, around.registers, own)
        if steps is None or any(varies(one, around.varying) for one in steps.tests):
            return None
        return steps.in_parts(around.threads, around.taken)

    def _with_steps_ahead(
        self,
        steps: StepsAhead,
        staged: dict[Buffer, Buffer],
        copies: tuple[Node, ...],
        plain: PlainCopies | None,
        first: Sequence[tuple[Node, ...]],
        around: _Around,
        stored: tuple[Node, ...] = (),
    ) -> tuple[Node, ...]:
        """Return the loop with the loads of each step of products in front of those before it.

        What is ``stored`` behind products has been loaded with the copies.
        """
        loop, stages = self.loop, len(first) + 1
        cycle = Cycle(name=around.stage, count=stages)
        there = self._there(stages)

        def loads(counter: IntExpr, slot: IntExpr, *, tested: bool) -> tuple[Node, ...]:
            change = {loop.counter: counter}
            nodes = with_expressions(steps.first(), lambda one: substitute(one, change))
            own = _in_stage(nodes, staged, slot)
            conditions = [substitute(one, change) for one in (loop.condition, *steps.known_tests)]
            return (If(conditions=tuple(conditions), body=own),) if tested else own

        def turn(
            *, tested: bool, shares: Shares | None = None, stores: tuple[Node, ...] = ()
        ) -> tuple[Node, ...]:
            later = Name(loop.counter) + loop.step
            behind = (*stores, *there, *loads(later, turn_after(cycle), tested=tested))
            nodes = steps.turn(behind) if tested else steps.whole_turn(behind, shares)
            return _in_stage(nodes, staged, Name(around.stage))

        tests: tuple[Node, ...] = ()
        then = (*copies, *turn(tested=True, stores=stored))
        if plain is not None:  # where there is something to copy there is a turn to load for
            later = {loop.counter: Name(loop.counter) + loop.step}
            known = [*steps.whole, *(substitute(one, later) for one in steps.known_tests)]
            conditions = dict.fromkeys((*plain.conditions, *apart(known)))
            whole = replace(plain, conditions=tuple(conditions))
            nodes, stores = lines_parted(plain.nodes)
            shares = steps.shares(nodes, stages, around.registers)
            in_front = nodes if shares is None else ()
            among = (*in_front, *turn(tested=False, shares=shares, stores=stores))
            tests, then = self._parted(whole, among, copies, turn(tested=True), around)
        return (
            *_less_unrolled([node for some in first for node in some]),
            *steps.declarations(),
            *there,
            *loads(loop.lower, Constant(0), tested=True),
            *tests,
            replace(loop, body=then, cycle=cycle),
            *self._there(FEWEST_AHEAD)[:-1],
        )

    def _with_lines(
        self,
        lines: NarrowLines,
        steps: StepsAhead | None,
        staged: dict[Buffer, Buffer],
        first: Sequence[tuple[Node, ...]],
        around: _Around,
    ) -> tuple[Node, ...]:
        """Return the loop with halves loaded in front of a turn's products, and stored behind."""
        loop, stages = self.loop, len(first) + 1
        cycle = Cycle(name=around.stage, count=stages)
        later = Name(loop.counter) + _times(loop.step, stages - 1)
        loads = self._copies(lines.loads, staged, later, turn_before(cycle))
        stores = self._copies(lines.stores, staged, later, turn_before(cycle))[:1]
        copies = (*lines.declarations(), *loads)
        if steps is not None:
            return self._with_steps_ahead(steps, staged, copies, None, first, around, stores)
        rest = _in_stage(self.rest, staged, Name(around.stage))
        body = (*self._there(stages), *copies, *rest, *stores)
        prologue = _less_unrolled([node for some in first for node in some])
        return (*prologue, replace(loop, body=body, cycle=cycle), *self._there(FEWEST_AHEAD)[:-1])

    def _there(self, stages: int) -> tuple[Node, ...]:
        """Return what all threads do for the box of a turn to be there."""
        return (Wait(pending=stages - 2), Barrier()) if self.starts else (Barrier(),)

    def _turn(
        self, copies: tuple[Node, ...], rest: tuple[Node, ...], around: _Around, *, last: bool
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Return what stands in front of the loop, and what a turn copies and computes."""
        found = plain_copies(copies, around.varying)
        if found is None:
            return (), (*copies, *rest)
        among = copies_among_products(found.nodes, rest, last=last, registers=around.registers)
        if among is None:
            return (), (*copies, *rest)
        return self._parted(found, among, copies, rest, around)

    def _parted(
        self,
        found: PlainCopies,
        among: tuple[Node, ...],
        copies: tuple[Node, ...],
        rest: tuple[Node, ...],
        around: _Around,
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Return the tests in front of the loop, and a turn with and without plain copies."""
        inside = {self.loop.counter}
        always = [one for one in found.conditions if not inside & set(names_in(one))]
        own = [one for one in found.conditions if one not in always]
        known = (Name(around.plain),) if always else ()
        others = (*_less_unrolled(copies), *rest)
        return _tests(around.plain, always), (
            If(conditions=(*known, *own), body=among, orelse=others),
        )

    def _copies(
        self,
        own: Sequence[Node],
        staged: dict[Buffer, Buffer],
        counter: IntExpr,
        slot: IntExpr,
    ) -> tuple[Node, ...]:
        """Return the copies of a turn, if there is such a turn."""
        change = {self.loop.counter: counter}
        nodes = with_expressions(own, lambda one: substitute(one, change))
        copies = _ahead(_in_stage(nodes, staged, slot))
        condition = substitute(self.loop.condition, change)
        there = If(conditions=(condition,), body=copies)
        return (there, Commit()) if self.starts else (there,)


def _less_unrolled(copies: Sequence[Node]) -> tuple[Node, ...]:
    """Return copies that are seldom: their places are not to be kept in registers meanwhile."""

    def changed(node: Node) -> tuple[Node, ...]:
        return (replace(node, unroll=_SELDOM) if isinstance(node, For) and node.unroll else node,)

    return mapped(copies, changed)


def _tests(name: str, conditions: Sequence[IntExpr]) -> tuple[Node, ...]:
    """Return the definition of what holds where all conditions do."""
    if not conditions:
        return ()
    value = conditions[0] if len(conditions) == 1 else Apply(Operator.AND, tuple(conditions))
    return (Let(name=name, value=value, narrow=True),)


def _times(step: IntExpr, count: int) -> IntExpr:
    """Return several steps of a loop."""
    if isinstance(step, Apply) and step.operator is Operator.MUL:  # a block's turn
        first, *others = step.operands
        return Apply(Operator.MUL, (count * first, *others))
    return count * step


def _with_stages(buffer: Buffer, stages: int) -> Buffer:
    layout = buffer.layout
    return replace(
        buffer, layout=Layout((Constant(stages), *layout.extents), layout.padding, layout.swizzle)
    )


def _in_stage(
    nodes: Sequence[Node], staged: dict[Buffer, Buffer], slot: IntExpr
) -> tuple[Node, ...]:
    def element(one: Element) -> Element:
        buffer = staged.get(one.buffer)
        if buffer is None:
            return one
        return Element(buffer=buffer, subscripts=(slot, *one.subscripts))

    return with_elements(nodes, element)


def _written(nodes: Sequence[Node]) -> set[Buffer]:
    return {one for one in written(nodes) if one.space == "shared"}


def _read(nodes: Sequence[Node]) -> set[Buffer]:
    return {one for one in read(nodes) if one.space == "shared"}

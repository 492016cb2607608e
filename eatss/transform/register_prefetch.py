"""What a step of products loads, lanes load while those of the step before are multiplied.

    for (k0…) { wait; barrier; …copy…; for (k_step < 4) { load fragments; multiply } }

becomes, where registers have room for the fragments of two steps,

    wait; barrier; load fragments[0] of the first step;
    for (k0…) {
        …copy…;
        for (k_step < 3) { load fragments[(k_step + 1) % 2] of the next; multiply [k_step % 2] }
        wait; barrier; load fragments[0] of the first step of the next turn; multiply [1]
    }

So there are products to do while loads of the first step of a turn are under way, too. Copies
without tests do not stand in front of all steps, but in shares behind the loads of the first ones:

        for (k_step < 2) { load fragments of the next; …a half of the copies…; multiply }
        commit;
        for (k_step = 2; k_step < 3) { load fragments of the next; multiply }

Products of threads have copies in front, a few of them; many stand in shares, too. Steps of many
products of a thread run in parts, so that a cache of instructions keeps them; those that copy stand
in front of the parts:

        for (k_part = 0; k_part < 12; k_part += 6)
            for (k_step < 6) { load k_part + k_step + 1; multiply }
        for (k_step = 12; k_step < 15) { load k_step + 1; multiply }
        wait; barrier; load the first step of the next turn; multiply [1]

:class:`Steps` have one product each and registers for the operands of two steps, :class:`Phases`
have several that load for each other. :class:`StepsAhead` are what a turn does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eatss.analysis.structure import WORD_BYTES
from eatss.free_names import free_name
from eatss.frozen import frozen
from eatss.kernel.nodes import (
    AllFinite,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Evaluate,
    For,
    If,
    Layout,
    Let,
    Node,
    Perform,
    Scope,
    Source,
)
from eatss.kernel.uses import (
    every,
    every_of,
    inside,
    read,
    trips_from_zero,
    with_elements,
    with_expressions,
    written,
)
from eatss.plan.contract import (
    FRAGMENT_PLACES,
    STEPS_LOADED,
    parts_behind,
    prefetches,
    steps_of_a_part,
    words_of_two,
)
from eatss.program import Constant, IntExpr, Name, substitute
from eatss.transform.interleaved_copies import Shares, multiplies, turns_between


@frozen
class Part:
    """Steps from ``first`` on run in parts of so many, ``count`` of them, in a loop."""

    counter: str
    steps: int
    count: int
    first: int = 0

    @property
    def end(self) -> int:
        """The first step behind them."""
        return self.first + self.steps * self.count

    def around(self, loop: For, body: Sequence[Node]) -> For:
        """Return the loop over parts; ``body`` is that of a step, which ``loop`` counts in one."""
        inner = replace(loop, condition=Name(loop.counter) < self.steps, body=tuple(body))
        return For(
            counter=self.counter,
            lower=Constant(self.first),
            condition=Name(self.counter) < self.end,
            step=Constant(self.steps),
            body=(inner,),
            unroll=1,
            narrow=loop.narrow,
        )

    def step(self, counter: str) -> IntExpr:
        """Return the number of a step from the counters of both loops."""
        return Name(self.counter) + Name(counter)


@frozen
class Steps:
    """Some steps of products: how many, by what counter, and what each loads and multiplies."""

    counter: str
    count: int
    narrow: bool
    loop: For | None
    declared: tuple[Buffer, ...]
    loads: tuple[Node, ...]
    products: tuple[Node, ...]
    part: Part | None = None
    part_behind: Part | None = None
    """The parts where copies stand in the steps in front of them."""

    @classmethod
    def of(cls, node: Node) -> Steps | None:
        """Return a node as steps, ``None`` if it is something else."""
        if isinstance(node, For):
            count = trips_from_zero(node) if node.unroll == "whole" else None
            parts = _parts(node.body)
            if not count or parts is None or node.cycle is not None:
                return None
            return cls(
                counter=node.counter, count=count, narrow=node.narrow, loop=node,
                declared=parts[0], loads=parts[1], products=parts[2],
            )  # fmt: skip
        if not isinstance(node, Scope) or not node.body or not isinstance(node.body[0], Let):
            return None
        first, *rest = node.body
        parts = _parts(rest)
        if parts is None or not isinstance(first, Let) or first.value != Constant(0):
            return None
        return cls(
            counter=first.name, count=1, narrow=first.narrow, loop=None,
            declared=parts[0], loads=parts[1], products=parts[2],
        )  # fmt: skip

    @property
    def words(self) -> int:
        """Registers that a step loads."""
        return sum(one.size_bytes for one in self.declared) // WORD_BYTES

    @property
    def words_of_parts(self) -> int:
        """Registers for further parts that factors are split into, of one matrix of each."""
        performed = list(every_of(self.products, Perform))
        parts = max((one.instruction.multiplying.parts for one in performed), default=1)
        ones = sum(one.size_bytes // _matrices(one) for one in self.declared)
        return (parts - 1) * ones // WORD_BYTES

    @property
    def most_words(self) -> int:
        """Registers for what two steps load, and for further parts of it."""
        return STEPS_LOADED * self.words + self.words_of_parts

    def buffers(self) -> tuple[Buffer, ...]:
        """Return the registers of operands."""
        return tuple(self.doubled().values())

    def doubled(self) -> dict[Buffer, Buffer]:
        """Return for each fragment the one that has room for two steps."""
        return {
            one: replace(one, layout=Layout((Constant(STEPS_LOADED), *one.layout.extents)))
            for one in self.declared
        }

    def loaded(self, step: IntExpr, number: IntExpr | None = None) -> tuple[Node, ...]:
        """Return the loads of a step, of which ``number`` is odd where the step is."""
        change = {self.counter: step}
        nodes = with_expressions(self.loads, lambda one: substitute(one, change))
        return self._in_set(nodes, _set_of(step if number is None else number))

    def multiplied(self, step: IntExpr | None = None) -> tuple[Node, ...]:
        """Return the products of a step, that which the counter says; it is odd where that is."""
        here = Name(self.counter)
        change = {self.counter: here if step is None else step}
        nodes = with_expressions(self.products, lambda one: substitute(one, change))
        return self._in_set(nodes, _set_of(here))

    def _in_set(self, nodes: Sequence[Node], number: IntExpr) -> tuple[Node, ...]:
        doubled = self.doubled()

        def element(one: Element) -> Element:
            buffer = doubled.get(one.buffer)
            if buffer is None:
                return one
            return Element(buffer=buffer, subscripts=(number, *one.subscripts))

        return with_elements(nodes, element)

    def turns(self, behind: Sequence[Node], shares: Shares | None = None) -> tuple[Node, ...]:
        """Return all steps; ``behind`` stands where nothing is left to load of them.

        Copies in ``shares`` are of fewer steps than there are.
        """
        last = Let(name=self.counter, value=Constant(self.count - 1), narrow=self.narrow)
        end = Scope(body=(last, *behind, *self.multiplied()))
        if shares is None:
            return (*self._in_parts(0, self.part), end)
        copying = self._loading(0, shares.steps, shares.of_step(self.counter))
        return (*copying, *shares.behind, *self._in_parts(shares.steps, self.part_behind), end)

    def _in_parts(self, first: int, part: Part | None) -> tuple[Node, ...]:
        """Return the steps from one on but for the last, each with the loads of the next one."""
        if part is None or self.loop is None:
            return self._loading(first, self.count - 1)
        here, one = part.step(self.counter), Constant(1)
        loads = self.loaded(here + one, Name(self.counter) + one)
        return (
            *self._loading(first, part.first),
            part.around(self.loop, (*loads, *self.multiplied(here))),
            *self._loading(part.end, self.count - 1),
        )

    def _loading(self, first: int, stop: int, copies: Sequence[Node] = ()) -> tuple[Node, ...]:
        """Return some steps that load the next one, each with copies in front of its products."""
        if self.loop is None:
            return ()
        later = self.loaded(Name(self.counter) + 1)
        loop = replace(self.loop, body=(*later, *copies, *self.multiplied()))
        return turns_between(loop, first, stop)


@frozen
class Phases:
    """Steps of several products each: what one loads, threads load while they compute another.

    So no operand needs registers for two steps.
    """

    loop: For
    count: int
    declared: tuple[Buffer, ...]
    loads: tuple[tuple[Node, ...], ...]
    computed: tuple[tuple[Node, ...], ...]
    part: Part | None = None

    @property
    def counter(self) -> str:
        """The name that counts steps."""
        return self.loop.counter

    @property
    def products(self) -> tuple[Node, ...]:
        """All that a step computes."""
        return tuple(node for own in self.computed for node in own)

    @property
    def most_words(self) -> int:
        """Registers for the operands of two products that follow each other."""
        return int(words_of_two([_words_written(one) for one in self.loads]))

    def buffers(self) -> tuple[Buffer, ...]:
        """Return the registers of operands."""
        return self.declared

    def loaded(self, step: IntExpr) -> tuple[Node, ...]:
        """Return the loads for the first product of a step."""
        return self._at(self.loads[0], step)

    def turns(self, behind: Sequence[Node], shares: Shares | None = None) -> tuple[Node, ...]:
        """Return all steps; ``behind`` stands where nothing is left to load of them.

        There are no ``shares`` of copies.
        """
        assert shares is None
        here = Name(self.loop.counter)
        last = Let(name=self.loop.counter, value=Constant(self.count - 1), narrow=self.loop.narrow)
        end = Scope(body=(last, *self._step(here, behind)))
        body = self._step(here, self.loaded(here + 1))
        loop = replace(self.loop, body=body)
        if self.part is None:
            return (*turns_between(loop, 0, self.count - 1), end)
        change = {self.loop.counter: self.part.step(self.loop.counter)}
        inner = with_expressions(body, lambda one: substitute(one, change))
        rest = turns_between(loop, self.part.end, self.count - 1)
        return (self.part.around(self.loop, inner), *rest, end)

    def _step(self, here: IntExpr, behind: Sequence[Node]) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for at, own in enumerate(self.computed):
            later = self.loads[at + 1 : at + 2]
            nodes += (*self._at(later[0], here), *own) if later else (*behind, *own)
        return tuple(nodes)

    def _at(self, nodes: Sequence[Node], step: IntExpr) -> tuple[Node, ...]:
        change = {self.loop.counter: step}
        return with_expressions(nodes, lambda one: substitute(one, change))


def _words_written(nodes: Sequence[Node]) -> int:
    return sum(one.size_bytes for one in written(nodes)) // WORD_BYTES


def with_parts(steps: Steps | Phases, threads: int, taken: set[str]) -> Steps | Phases:
    """Return steps of products of threads in parts where they are too many."""
    if steps.loop is None or steps.count % STEPS_LOADED:
        return steps
    products = _computed(steps.products)
    size = steps_of_a_part(steps.count, products, threads)
    if not size:
        return steps
    name = free_name(f"{steps.counter}_part", taken)
    part = Part(counter=name, steps=size, count=(steps.count - STEPS_LOADED) // size)
    if isinstance(steps, Phases):
        return replace(steps, part=part)
    first, size = parts_behind(steps.count, products, threads)
    count = (steps.count - first - STEPS_LOADED) // size if size else 0
    behind = replace(part, steps=size, count=count, first=first) if size else None
    return replace(steps, part=part, part_behind=behind)


def _computed(nodes: Sequence[Node]) -> int:
    """Return how many products unrolled loops over points have."""
    found = 0
    for node in nodes:
        turns = (trips_from_zero(node) or 1) if isinstance(node, For) else 1
        found += isinstance(node, Compute) + turns * sum(map(_computed, inside(node)))
    return found


def _matrices(fragment: Buffer) -> int:
    """Return how many matrices a thread has fragments of in a buffer."""
    extents = fragment.layout.extents
    return extents[0].value if extents and isinstance(extents[0], Constant) else 1


def _set_of(step: IntExpr) -> IntExpr:
    if isinstance(step, Constant):
        return Constant(step.value % STEPS_LOADED)
    return step % STEPS_LOADED


_Parts = tuple[tuple[Buffer, ...], tuple[Node, ...], tuple[Node, ...]]


def _parts(body: Sequence[Node]) -> _Parts | None:
    """Return what a step declares, loads and multiplies."""
    front = next((at for at, one in enumerate(body) if _computes(one)), 0)
    if front > 0 and isinstance(body[front - 1], Source):
        front -= 1
    declared = tuple(one.buffer for one in body[:front] if isinstance(one, Declare))
    loads = tuple(one for one in body[:front] if not isinstance(one, Declare))
    products = tuple(body[front:])
    plain = all(isinstance(one, _LOADS) and not multiplies(one) for one in every(loads))
    whole = all(isinstance(one, _PRODUCTS) for one in every(products))
    if not declared or not plain or not whole or _meet(loads, products):
        return None
    return declared, loads, products


def _meet(loads: Sequence[Node], products: Sequence[Node]) -> bool:
    """Tell whether something is loaded that products write, so that loads have to stay behind."""
    return bool(read(loads) & written(products))


def _computes(node: Node) -> bool:
    """Tell whether a node has products of warps or of threads."""
    return multiplies(node) or any(every_of((node,), Compute))


_LOADS = (Copy, Evaluate, For, Let, Perform, Scope)
"""What loads a step's operands."""

_PRODUCTS = (Compute, For, Let, Perform, Scope, Source)
"""What computes with them."""


_BURDEN = 16
"""Copies of a thread in a turn from which on products of threads wait for them: a gemm of 1111
floats has 28, one by one as rows begin anywhere, and takes 6 % less time with them in shares."""


@frozen
class StepsAhead:
    """What a turn of a loop does: where ``tests`` hold, steps of products; else ``orelse``.

    ``votes`` are taken before, so that no turn before knows what the tests say.
    """

    votes: tuple[AllFinite, ...]
    tests: tuple[IntExpr, ...]
    steps: tuple[Steps | Phases, ...]
    orelse: tuple[Node, ...]

    @classmethod
    def of(
        cls,
        rest: Sequence[Node],
        registers: int,
        steps_of: Callable[[Node], Steps | Phases | None] = Steps.of,
    ) -> StepsAhead | None:
        """Return it if it can load a step ahead.

        Args:
            rest: what the turn does with boxes that are there.
            registers: of a thread.
            steps_of: returns a node as steps, ``None`` if it is something else.

        Returns:
            ``None`` where there is more than steps of products, an odd number of them, or where
            their sums, the fragments of two steps and parts of them are more than the registers.
        """
        tests: tuple[IntExpr, ...] = ()
        orelse: tuple[Node, ...] = ()
        votes = tuple(one for one in rest if isinstance(one, AllFinite))
        nodes = tuple(rest[len(votes) :])
        if len(nodes) == 1 and isinstance(nodes[0], If):
            tests, orelse, nodes = nodes[0].conditions, nodes[0].orelse, nodes[0].body
        found = [steps_of(one) for one in nodes]
        steps = tuple(one for one in found if one is not None)
        if not steps or len(steps) < len(found) or any(map(multiplies, orelse)):
            return None
        if len(steps) == 1 and isinstance(steps[0], Steps) and steps[0].count % STEPS_LOADED:
            return None
        made = cls(votes=votes, tests=tests, steps=steps, orelse=orelse)
        return made if made.fits(registers) else None

    def fits(self, registers: int) -> bool:
        """Tell whether sums and the operands of two steps are no more than so many registers."""
        kept = written([node for own in self.steps for node in own.products])
        words = sum(one.size_bytes for one in kept) // WORD_BYTES
        most = max(one.most_words for one in self.steps)
        return bool(prefetches(words, most, registers))

    def in_parts(self, threads: int, taken: set[str]) -> StepsAhead:
        """Return it with steps in parts where they are too many, and of products of threads.

        Args:
            threads: of a block.
            taken: names that are not free; that of a counter is added.
        """
        found = []
        for one in self.steps:
            if not any(map(multiplies, one.products)):
                one = with_parts(one, threads, taken)  # noqa: PLW2901
            found.append(one)
        return replace(self, steps=tuple(found))

    @property
    def known_tests(self) -> tuple[IntExpr, ...]:
        """The tests that can be made before the turn."""
        return () if self.votes else self.tests

    @property
    def whole(self) -> tuple[IntExpr, ...]:
        """What holds where the tests do and no vote is to be taken."""
        unless = {one.name: one.unless for one in self.votes}
        return tuple(
            unless.get(one.name, one) if isinstance(one, Name) else one for one in self.tests
        )

    def declarations(self) -> tuple[Node, ...]:
        """Return the declarations of all fragments."""
        buffers = (buffer for one in self.steps for buffer in one.buffers())
        return tuple(Declare(buffer=one) for one in dict.fromkeys(buffers))

    def first(self) -> tuple[Node, ...]:
        """Return the loads of the first step."""
        return self.steps[0].loaded(Constant(0))

    def shares(self, copies: Sequence[Node], stages: int, registers: int) -> Shares | None:
        """Return copies of a turn in shares, ``None`` where they stand in front of all steps.

        With two stages half of the turn is left for them to arrive, with more a whole one is.
        Products of threads take so many instructions that a few copies in front are no burden.

        Args:
            copies: without tests.
            stages: of boxes.
            registers: of a thread.
        """
        first = self.steps[0]
        if not isinstance(first, Steps):
            return None
        most = first.count - 1
        if stages <= STEPS_LOADED:
            most = min(most, sum(one.count for one in self.steps) // 2)
        if any(map(multiplies, first.products)):
            return Shares.of(copies, most)
        if first.part is not None:
            most = 0 if first.part_behind is None else first.part_behind.first
        found = Shares.of(copies, most) if self.fits(registers - FRAGMENT_PLACES) else None
        return found if found is not None and found.copied >= _BURDEN else None

    def turn(self, behind: Sequence[Node]) -> tuple[Node, ...]:
        """Return what a turn does whose first step is loaded.

        Args:
            behind: what loads that of the next turn. The last products follow it.
        """
        nodes = self.whole_turn(behind)
        if not self.tests:
            return nodes
        orelse = (*self.orelse, *behind)
        return (*self.votes, If(conditions=self.tests, body=nodes, orelse=orelse))

    def whole_turn(self, behind: Sequence[Node], shares: Shares | None = None) -> tuple[Node, ...]:
        """Return what such a turn does where the tests hold.

        Args:
            behind: as above.
            shares: copies of a later turn, as :meth:`shares` has made them.
        """
        nodes: list[Node] = [] if shares is None else [*shares.front]
        for one, after in zip(self.steps, (*self.steps[1:], None), strict=True):
            own = shares if one is self.steps[0] else None
            nodes += one.turns(behind if after is None else after.loaded(Constant(0)), own)
        return tuple(nodes)

"""What a step of products loads, lanes load while those of the step before are multiplied.

    for (k0…) { wait; barrier; …copy…; for (k_step < 4) { load fragments; multiply } }

becomes, where registers have room for the fragments of two steps,

    wait; barrier; load fragments[0] of the first step;
    for (k0…) {
        …copy…;
        for (k_step < 3) { load fragments[(k_step + 1) % 2] of the next; multiply [k_step % 2] }
        wait; barrier; load fragments[0] of the first step of the next turn; multiply [1]
    }

So there are products to do while loads of the first step of an iteration are under way, too. Copies
without tests do not stand in front of all steps, but in shares behind the loads of the first ones:

        for (k_step < 2) { load fragments of the next; …a half of the copies…; multiply }
        commit;
        for (k_step = 2; k_step < 3) { load fragments of the next; multiply }

Products of threads have copies in front, a few of them; many stand in shares, too. Steps of many
products of a thread run in parts, so that a cache of instructions keeps them, behind all copies:

        for (k_part = 0; k_part < 12; k_part += 6)
            for (k_step < 6) { load k_part + k_step + 1; multiply }
        for (k_step = 12; k_step < 15) { load k_step + 1; multiply }
        wait; barrier; load the first step of the next iteration; multiply [1]

:class:`Prefetch` has the steps of one product and registers for the operands of two steps, or of
several products, its phases, that load for each other. :class:`PrefetchedSteps` are what an
iteration does.

The copies of an iteration are cut into shares, one for each of its first steps of products.

    for (e < 8) { copy A }  for (e < 5) { copy B }  commit;

becomes, over four steps,

    for (step < 4) {
        …
        for (e = 2 * step; e < 2 * step + 2) { copy A }
        for (e = 2 * step; e < 2 * step + 2) { if (e < 5) { copy B } }
        …
    }
    commit;

All copies at once would fill up the queue of loads and stores, in which what products wait for
stands behind them. Steps are unrolled, so a compiler knows what a test says. A buffer is copied by
one node still, so that it can be told that no two threads write the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eatss.analysis.operations import operations_of
from eatss.analysis.variant import WORD_BYTES
from eatss.base.frozen import frozen
from eatss.base.trees import free_name
from eatss.lower.kernel.nodes import (
    AllFinite,
    Buffer,
    Commit,
    Compute,
    Declare,
    Extents,
    For,
    If,
    Intrinsic,
    Let,
    Node,
    Nodes,
    Scope,
    Steps,
)
from eatss.lower.kernel.uses import (
    every_of,
    in_slot,
    inside,
    substituted,
    trips_from_zero,
    written,
)
from eatss.plan.contract import (
    FRAGMENT_PLACES,
    STEPS_LOADED,
    prefetches,
    steps_of_a_part,
    words_of_two,
)
from eatss.program import Constant, IntExpr, Name
from eatss.program.expression import IntExprs


def operands_of(steps: Steps) -> tuple[Buffer, ...]:
    """Return the registers that a step loads."""
    return tuple(one.buffer for one in steps.loads if isinstance(one, Declare))


def _loads(steps: Steps) -> list[Node]:
    """Return what fills the registers of a step."""
    return [one for one in steps.loads if not isinstance(one, Declare)]


def words_of(buffers: Sequence[Buffer]) -> int:
    """Return how many registers some buffers are."""
    return sum(one.size_bytes for one in buffers) // WORD_BYTES


def sum_words(steps: Sequence[Steps]) -> int:
    """Return the registers of all sums that steps add to."""
    return words_of([*written(node for one in steps for node in one.products)])


def part_words(steps: Steps) -> int:
    """Return the registers for further parts that factors are split into, of one matrix of each."""
    performed = every_of(steps.products, Intrinsic)
    parts = max((one.instruction.multiplying.parts for one in performed), default=1)
    return (parts - 1) * sum(map(_matrix_words, operands_of(steps)))


def _matrix_words(fragment: Buffer) -> int:
    """Return the registers of one of the matrices that a thread has fragments of in a buffer."""
    extents = fragment.layout.extents
    count = extents[0].value if extents and isinstance(extents[0], Constant) else 1
    return fragment.size_bytes // count // WORD_BYTES


def by_warps(steps: Steps) -> bool:
    """Tell whether warps multiply, not threads."""
    return any(every_of(steps.products, Intrinsic))


_FEWEST = 2
"""Steps over which there is something to spread."""


@frozen
class _Cut:
    """A loop of which a step does ``share`` of the ``count`` iterations, while some are left."""

    loop: For
    count: int
    share: int

    @property
    def steps(self) -> int:
        """How many steps do some."""
        return -(-self.count // self.share)

    def of_step(self, counter: str, steps: int) -> Node:
        """Return the iterations of one of so many steps, which ``counter`` numbers."""
        loop, first = self.loop, self.share * Name(counter)
        body = loop.body
        if self.share * steps > self.count:
            body = (If(conditions=(Name(loop.counter) < self.count,), body=body),)
        if self.share == 1:
            return Scope(body=(Let(name=loop.counter, value=first, narrow=loop.narrow), *body))
        condition = Name(loop.counter) < first + self.share
        return replace(loop, lower=first, condition=condition, body=body)


@frozen
class Shares:
    """Copies over some steps; what ``first`` has goes with the first step as it is."""

    first: Nodes
    cuts: tuple[_Cut, ...]

    @classmethod
    def of(cls, copies: Sequence[Node], steps: int) -> Shares | None:
        """Return loops over copies in shares over at most so many steps.

        Returns:
            ``None`` where steps are too few, no loop can be cut, or registers are declared.
        """
        counts = [(one, trips_from_zero(one) or 0) for one in copies if isinstance(one, For)]
        cuts = [(one, count) for one, count in counts if count and one.unroll == "whole"]
        if steps < _FEWEST or len(counts) < len(copies) or not cuts:
            return None
        first = tuple(one for one, count in counts if (one, count) not in cuts)
        shares = tuple(_Cut(loop=one, count=count, share=-(-count // steps)) for one, count in cuts)
        return cls(first=first, cuts=shares)

    @property
    def steps(self) -> int:
        """How many steps copy something."""
        return max(one.steps for one in self.cuts)

    @property
    def copied(self) -> int:
        """How many iterations of loops a thread copies in."""
        return sum(one.count for one in self.cuts)

    def of_step(self, counter: str) -> Nodes:
        """Return what each step copies; ``counter`` numbers them from 0."""
        cuts = tuple(one.of_step(counter, self.steps) for one in self.cuts)
        if not self.first:
            return cuts
        return (If(conditions=(Name(counter) < 1,), body=self.first), *cuts)


_BURDEN = 16
"""Copies of a thread in an iteration from which on products of threads wait for them: a gemm of
1111 floats has 28, one by one as rows begin anywhere, and takes 6 % less time with them in
shares."""


@frozen
class Part:
    """Steps run in parts of so many, up to ``end``, in a loop."""

    counter: str
    steps: int
    end: int


@frozen
class Prefetch:
    """Steps of products: what one loads, threads load while they compute another.

    ``phases`` are the products of a step, with the same counter. One has registers for the operands
    of two steps; of several none needs them.
    """

    phases: tuple[Steps, ...]
    part: Part | None = None

    @property
    def count(self) -> int:
        """How many steps there are."""
        return self.phases[0].count

    @property
    def counter(self) -> str:
        """The name that counts steps."""
        return self.phases[0].counter

    @property
    def most_words(self) -> int:
        """Registers for the operands of two products that follow each other, with their parts."""
        words = [words_of(operands_of(one)) for one in self.phases]
        return int(words_of_two(words)) + max(map(part_words, self.phases))

    def registers(self) -> dict[Buffer, Buffer]:
        """Return the registers of operands by those of a step alone."""
        own = {buffer: buffer for one in self.phases for buffer in operands_of(one)}
        if len(self.phases) > 1:
            return own
        two = Constant(STEPS_LOADED)
        return {one: replace(one, layout=Extents((two, *one.layout.extents))) for one in own}

    def loaded(self, step: IntExpr, number: IntExpr | None = None) -> Nodes:
        """Return the loads of a step for its first product; ``number`` is odd where the step is."""
        return self._at(_loads(self.phases[0]), step, step if number is None else number)

    def _at(self, nodes: Sequence[Node], step: IntExpr, number: IntExpr) -> Nodes:
        """Return nodes of a step, in the set of registers that belongs to its number."""
        found = substituted(nodes, {self.counter: step})
        if len(self.phases) > 1:
            return found
        which: IntExpr = number % STEPS_LOADED
        if isinstance(number, Constant):
            which = Constant(number.value % STEPS_LOADED)
        return in_slot(found, self.registers(), which)

    def turns(self, behind: Sequence[Node], shares: Shares | None = None) -> Nodes:
        """Return all steps; ``behind`` stands where nothing is left to load of them.

        Copies in ``shares`` are of fewer steps than there are.
        """
        here = Name(self.counter)
        last = Let(name=self.counter, value=Constant(self.count - 1), narrow=True)
        end = Scope(body=(last, *self._step(here, behind)))
        if shares is not None:
            copying = self._between(0, shares.steps, shares.of_step(self.counter))
            return (*copying, Commit(), *self._between(shares.steps, self.count - 1), end)
        return (*self._all_but_the_last(), end)

    def _all_but_the_last(self) -> Nodes:
        """Return the steps but for the last, each with the loads of the next one."""
        part = self.part
        if part is None:
            return self._between(0, self.count - 1)
        inner = Name(self.counter)
        here = Name(part.counter) + inner
        body = self._step(here, self.loaded(here + 1, inner + 1))
        (steps,) = self.phases[0].between(0, part.steps, body)
        parts = For(
            counter=part.counter,
            lower=Constant(0),
            condition=Name(part.counter) < part.end,
            step=Constant(part.steps),
            body=(steps,),
            unroll=1,
            narrow=True,
        )
        return (parts, *self._between(part.end, self.count - 1))

    def _between(self, first: int, end: int, copies: Sequence[Node] = ()) -> Nodes:
        """Return some steps that load the next one, each with copies in front of its products."""
        here = Name(self.counter)
        return self.phases[0].between(
            first, end, self._step(here, (*self.loaded(here + 1), *copies))
        )

    def _step(self, here: IntExpr, behind: Sequence[Node]) -> Nodes:
        """Return the products of a step, each behind the loads of the next one."""
        number = Name(self.counter)
        found: list[Node] = []
        for one, following in zip(self.phases, (*self.phases[1:], None), strict=True):
            found += behind if following is None else self._at(_loads(following), here, number)
            found += self._at(one.products, here, number)
        return tuple(found)

    def in_parts(self, threads: int, taken: set[str]) -> Prefetch:
        """Return steps of products of threads in parts where they are too many."""
        count = self.count
        if count % STEPS_LOADED or any(map(by_warps, self.phases)):
            return self
        phases = [own for one in self.phases for own in one.products]
        for each in (_instructions, lambda _: 1):  # if a cache keeps no part, one of products
            size = steps_of_a_part(count, _computed(phases, each), threads)
            if size:
                break
        else:
            return self
        name = free_name(f"{self.counter}_part", taken)
        end = (count - STEPS_LOADED) // size * size
        return replace(self, part=Part(counter=name, steps=size, end=end))


def _computed(nodes: Sequence[Node], each: Callable[[Compute], int]) -> int:
    """Return what unrolled loops over points compute, if a product is so much."""
    found = 0
    for node in nodes:
        turns = (trips_from_zero(node) or 1) if isinstance(node, For) else 1
        found += turns * sum(_computed(own, each) for own in inside(node))
        found += each(node) if isinstance(node, Compute) else 0
    return found


def _instructions(node: Compute) -> int:
    """Return how many instructions a product is: with its sum one, and what else it has."""
    still = [frozenset[str]()] * len(node.statement.accesses)
    kinds = operations_of(node.statement, node.types, still).counts
    return max(1, sum(kinds.values()) - kinds.get("multiply", 0))


@frozen
class PrefetchedSteps:
    """What an iteration of a loop does: where ``tests`` hold, steps of products; else ``orelse``.

    ``votes`` are taken before, so that no iteration before knows what the tests say.
    """

    votes: tuple[AllFinite, ...]
    tests: IntExprs
    steps: tuple[Prefetch, ...]
    orelse: Nodes

    @classmethod
    def of(
        cls,
        rest: Sequence[Node],
        registers: int,
        plain: Callable[[Node], tuple[Steps, ...]] = lambda _: (),
    ) -> PrefetchedSteps | None:
        """Return it if it can load a step ahead.

        Args:
            rest: what the iteration does with buffers that are there.
            registers: of a thread.
            plain: returns a loop over products of threads as steps, for each product; none for
                anything else.

        Returns:
            ``None`` where there is more than steps of products, an odd number of them, or where
            their sums, the fragments of two steps and parts of them are more than the registers.
        """
        tests: IntExprs = ()
        orelse: Nodes = ()
        votes = tuple(one for one in rest if isinstance(one, AllFinite))
        nodes = tuple(rest[len(votes) :])
        if len(nodes) == 1 and isinstance(nodes[0], If):
            tests, orelse, nodes = nodes[0].conditions, nodes[0].orelse, nodes[0].body
        phases: list[tuple[Steps, ...]] = [(one,) for one in nodes if isinstance(one, Steps)]
        phases = phases or [own for own in [plain(one) for one in nodes] if own]
        if not phases or len(phases) < len(nodes) or any(every_of(orelse, Steps)):
            return None
        if len(phases) == len(phases[0]) == 1 and phases[0][0].count % STEPS_LOADED:
            return None
        steps = tuple(Prefetch(phases=one) for one in phases)
        made = cls(votes=votes, tests=tests, steps=steps, orelse=orelse)
        return made if made.fits(registers) else None

    def fits(self, registers: int) -> bool:
        """Tell whether sums and the operands of two steps are no more than so many registers."""
        words = sum_words([phase for one in self.steps for phase in one.phases])
        return bool(prefetches(words, max(one.most_words for one in self.steps), registers))

    def in_parts(self, threads: int, taken: set[str]) -> PrefetchedSteps:
        """Return it with steps in parts where they are too many, and of products of threads.

        Args:
            threads: of a block.
            taken: names that are not free; that of a counter is added.
        """
        return replace(self, steps=tuple(one.in_parts(threads, taken) for one in self.steps))

    @property
    def known_tests(self) -> IntExprs:
        """The tests that can be made before the iteration."""
        return () if self.votes else self.tests

    @property
    def whole(self) -> IntExprs:
        """What holds where the tests do and no vote is to be taken."""
        unless = {one.name: one.unless for one in self.votes}
        return tuple(
            unless.get(one.name, one) if isinstance(one, Name) else one for one in self.tests
        )

    def declarations(self) -> Nodes:
        """Return the declarations of all fragments."""
        buffers = (buffer for one in self.steps for buffer in one.registers().values())
        return tuple(Declare(buffer=one) for one in dict.fromkeys(buffers))

    def first(self) -> Nodes:
        """Return the loads of the first step."""
        return self.steps[0].loaded(Constant(0))

    def shares(self, copies: Sequence[Node], stages: int, registers: int) -> Shares | None:
        """Return copies of an iteration in shares, ``None`` where they stand in front of all steps.

        With two stages half of the iteration is left for them to arrive, with more a whole one is.
        Products of threads take so many instructions that a few copies in front are no burden.

        Args:
            copies: without tests.
            stages: of buffers.
            registers: of a thread.
        """
        first = self.steps[0]
        if len(first.phases) > 1:
            return None
        most = first.count - 1
        if stages <= STEPS_LOADED:
            most = min(most, sum(one.count for one in self.steps) // 2)
        if by_warps(first.phases[0]):
            return Shares.of(copies, most)
        spread = first.part is None and self.fits(registers - FRAGMENT_PLACES)
        found = Shares.of(copies, most) if spread else None
        return found if found is not None and found.copied >= _BURDEN else None

    def turn(self, behind: Sequence[Node]) -> Nodes:
        """Return what an iteration does whose first step is loaded.

        Args:
            behind: what loads that of the next iteration. The last products follow it.
        """
        nodes = self.whole_turn(behind)
        if not self.tests:
            return nodes
        orelse = (*self.orelse, *behind)
        return (*self.votes, If(conditions=self.tests, body=nodes, orelse=orelse))

    def whole_turn(self, behind: Sequence[Node], shares: Shares | None = None) -> Nodes:
        """Return what such an iteration does where the tests hold.

        Args:
            behind: as above.
            shares: copies of a later iteration, as :meth:`shares` has made them.
        """
        nodes: list[Node] = []
        for one, after in zip(self.steps, (*self.steps[1:], None), strict=True):
            own = shares if one is self.steps[0] else None
            nodes += one.turns(behind if after is None else after.loaded(Constant(0)), own)
        return tuple(nodes)

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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eatss.kernel.nodes import AllFinite, Declare, If, Node
from eatss.kernel.uses import written
from eatss.plan.contract import FRAGMENT_PLACES, STEPS_LOADED, prefetches
from eatss.program import Constant, IntExpr, Name
from eatss.transform.copies_among_products import multiplies
from eatss.transform.copies_in_shares import Shares
from eatss.transform.product_steps import Phases, Steps, with_parts

_WORD_BYTES = 4

_BURDEN = 16
"""Copies of a thread in a turn from which on products of threads wait for them: a gemm of 1111
floats has 28, one by one as rows begin anywhere, and takes 6 % less time with them in shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
        words = sum(one.size_bytes for one in kept) // _WORD_BYTES
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

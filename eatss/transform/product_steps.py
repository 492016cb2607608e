"""Steps of products that load operands for each other, in the order in which they do.

    for (k_step < 4) { load what a step needs; multiply }

is what a step declares, loads and multiplies. :class:`Steps` have one product each and registers
for the operands of two steps, :class:`Phases` have several that load for each other.
Both may run in parts. Turns of a loop are made of them by :mod:`eatss.transform.loads_ahead`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eatss.free_names import free_name
from eatss.kernel.nodes import (
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Evaluate,
    For,
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
from eatss.plan.contract import STEPS_LOADED, parts_behind, steps_of_a_part, words_of_two
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    substitute,
)
from eatss.transform.copies_among_products import multiplies, turns_between
from eatss.transform.copies_in_shares import Shares

_WORD_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return sum(one.size_bytes for one in self.declared) // _WORD_BYTES

    @property
    def words_of_parts(self) -> int:
        """Registers for further parts that factors are split into, of one matrix of each."""
        performed = list(every_of(self.products, Perform))
        parts = max((one.instruction.multiplying.parts for one in performed), default=1)
        ones = sum(one.size_bytes // _matrices(one) for one in self.declared)
        return (parts - 1) * ones // _WORD_BYTES

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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    return sum(one.size_bytes for one in written(nodes)) // _WORD_BYTES


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

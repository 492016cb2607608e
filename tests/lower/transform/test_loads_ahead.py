"""Each step multiplies what was loaded for it, and loads come a step before their products.

Copies that are spread stand between them, and the end of their group in front of the next turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.instructions.products import MMA_F64_16X8X4
from eatss.lower.kernel.nodes import (
    Buffer,
    Commit,
    Compute,
    Copy,
    Declare,
    Element,
    Evaluate,
    Extents,
    Fill,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
    Source,
    Steps,
)
from eatss.lower.kernel.uses import constant_trips, every, with_expressions
from eatss.lower.transform.register_prefetch import Prefetch, Shares, StepsAhead
from eatss.plan.contract import UNROLLED_A_THREAD, parts_behind, steps_of_a_part
from eatss.polyhedral.expression import ElementType, Read
from eatss.program import Apply, Constant, Name, Operator, evaluate, substitute

PLENTY = 255
MANY = 16

SUMS = Buffer(
    name="sum",
    space="register",
    element_type=ElementType.DOUBLE,
    layout=Extents((Constant(8),)),
)
TOLD = Source(line=1, text="C += A * B;")


def buffer(name: str, space: Any, *extents: int) -> Buffer:
    layout = Extents(tuple(map(Constant, extents)))
    return Buffer(name=name, space=space, element_type=ElementType.DOUBLE, layout=layout)


def nest(
    number: int,
    count: int,
    *,
    loads: Sequence[Node] = (),
    by: Literal["warps", "threads"] = "warps",
) -> Steps:
    """Return steps of products: fragments of both factors, each an element of a box."""
    counter = f"step{number}"
    fragments = {name: buffer(f"{name}{number}", "register", 1) for name in "ab"}
    box = buffer(f"box{number}", "shared", 64)
    zero = Constant(0)
    load = [
        Evaluate(
            statement=cast("Any", None),
            part=Read(access=0),
            target=Element(buffer=one, subscripts=(zero,)),
            reads=(Element(buffer=box, subscripts=(Name(counter),)),),
            types={},
        )
        for one in fragments.values()
    ]
    factors = {name: Element(buffer=one, subscripts=(zero,)) for name, one in fragments.items()}
    own = Element(buffer=SUMS, subscripts=(zero,))
    perform = product_of(own, factors) if by == "warps" else sum_of(own, *factors.values())
    declared = [Declare(buffer=one) for one in fragments.values()]
    return Steps(
        counter=counter, count=count, loads=(*declared, *load, *loads), products=(TOLD, perform)
    )


def product_of(own: Element, factors: Mapping[str, Element]) -> Perform:
    """Return what warps add to a sum."""
    operands = (("d", (own,)), *((name, (one,)) for name, one in factors.items()))
    return Perform(instruction=MMA_F64_16X8X4, operands=operands)


def sum_of(own: Element, *factors: Element) -> Compute:
    """Return what threads add to one."""
    return Compute(
        statement=cast("Any", None),
        target=own,
        reads=(own, *factors),
        integers=(),
        types={},
    )


@dataclass
class Machine:
    """Runs what a turn does: ``held`` is what was loaded, ``done`` what was multiplied.

    ``copied`` are the elements that were copied.
    """

    turn: int = 0
    held: dict[tuple[str, int], tuple[int, str, int]] = field(default_factory=dict)
    done: list[tuple[int, str, int]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)

    def run(self, nodes: Sequence[Node], names: Mapping[str, int], turn: int) -> None:
        """Run nodes whose loads are those of a turn."""
        names = dict(names)
        for node in nodes:
            match node:
                case Let():
                    names[node.name] = evaluate(node.value, names)
                case Scope():
                    self.run(node.body, names, turn)
                case For():
                    value = evaluate(node.lower, names)
                    while evaluate(node.condition, {**names, node.counter: value}):
                        self.run(node.body, {**names, node.counter: value}, turn)
                        value += evaluate(node.step, names)
                case If():
                    holds = all(evaluate(one, names) for one in node.conditions)
                    self.run(node.body if holds else node.orelse, names, turn)
                case Fill():  # begins what is loaded for the next turn
                    turn += 1
                    self.events.append("turn")
                case _:
                    self._do(node, names, turn)

    def _do(self, node: Node, names: Mapping[str, int], turn: int) -> None:
        match node:
            case Copy():
                self.copied.append(evaluate(node.target.subscripts[0], names))
                self.events.append("copy")
            case Commit():
                self.events.append("commit")
            case Evaluate():
                self._load(node, names, turn)
            case Perform() | Compute():
                self._multiply(node, names)
            case _:
                assert isinstance(node, Declare | Source)

    def _load(self, node: Evaluate, names: Mapping[str, int], turn: int) -> None:
        (read,) = node.reads
        step = evaluate(read.subscripts[0], names)
        self.held[self._place(node.target, names)] = (turn, read.buffer.name, step)
        self.events.append("load")

    def _multiply(self, node: Perform | Compute, names: Mapping[str, int]) -> None:
        used = {self.held[self._place(one, names)] for one in self._fragments(node)}
        assert len(used) == 1  # both factors are of one step
        self.done += used
        self.events.append("multiply")

    def _place(self, element: Element, names: Mapping[str, int]) -> tuple[str, int]:
        number, *_ = (evaluate(one, names) for one in element.subscripts)
        return element.buffer.name, number

    def _fragments(self, node: Perform | Compute) -> Iterator[Element]:
        if isinstance(node, Compute):
            return iter(node.reads[1:])
        return (one for name, own in node.operands if name != "d" for one in own)


NEXT_TURN = Fill(target=Element(buffer=SUMS, subscripts=(Constant(0),)), value=0)

COUNTS = st.one_of(
    st.integers(1, 4).map(lambda half: [2 * half]),
    st.lists(st.integers(1, 5), min_size=2, max_size=3),
)


@given(COUNTS, st.integers(1, 3))
def test_each_step_multiplies_what_was_loaded_for_it(counts: list[int], turns: int) -> None:
    rest = [nest(number, count) for number, count in enumerate(counts)]
    found = StepsAhead.of(rest, PLENTY)
    assert found is not None
    machine = Machine()
    machine.run(found.first(), {}, 0)
    for turn in range(turns):
        machine.run(found.turn((NEXT_TURN, *found.first())), {}, turn)
    assert machine.done == [
        (turn, f"box{number}", step)
        for turn in range(turns)
        for number, count in enumerate(counts)
        for step in range(count)
    ]
    assert machine.events[:4] == ["load", "load"] * 2  # two steps are loaded before the first


def in_phases(count: int) -> Prefetch:
    """Return steps of two products each, and the loads of the one in front of it."""
    one, other = (nest(number, count, by="threads") for number in range(2))
    change = {other.counter: Name(one.counter)}
    loads, products = (
        with_expressions(nodes, lambda place: substitute(place, change))
        for nodes in (other.loads, other.products)
    )
    return Prefetch(phases=(one, replace(one, loads=loads, products=products)))


STEPS_AND_PHASES = st.one_of(
    st.tuples(st.just(1), st.integers(1, 30).map(lambda half: 2 * half)),
    st.tuples(st.just(2), st.integers(2, 30).map(lambda half: 2 * half)),
)
"""How many products a step has, and how many steps there are."""


def split(each: int, count: int, threads: int) -> StepsAhead:
    """Return steps of threads in parts as a block of so many wants them."""
    alone = Prefetch(phases=(nest(0, count, by="threads"),))
    steps = alone if each == 1 else in_phases(count)
    found = StepsAhead(votes=(), tests=(), steps=(steps,), orelse=())
    return found.in_parts(threads, set())


@given(STEPS_AND_PHASES, st.integers(1, 6), st.integers(1, 3))
def test_steps_in_parts_multiply_what_was_loaded_for_them(
    steps: tuple[int, int], threads: int, turns: int
) -> None:
    each, count = steps
    found = split(each, count, threads)
    machine = Machine()
    machine.run(found.first(), {}, 0)
    for turn in range(turns):
        machine.run(found.turn((NEXT_TURN, *found.first())), {}, turn)
    assert machine.done == [
        (turn, f"box{number}", step)
        for turn in range(turns)
        for step in range(count)
        for number in range(each)
    ]
    between = ["load", "load", "multiply"] * (each * count - 1)
    turn_ = [*between, "turn", "load", "load", "multiply"]
    assert machine.events == ["load", "load", *turn_ * turns]


def written(nodes: Sequence[Node]) -> int:
    """Return how many products code has, of a loop that is unrolled those of all turns."""
    count = 0
    for node in nodes:
        if isinstance(node, For):
            whole = constant_trips(node) if node.unroll == "whole" else 1
            assert whole is not None
            count += whole * written(node.body)
        elif isinstance(node, Scope):
            count += written(node.body)
        else:
            count += isinstance(node, Compute)
    return count


def copies(count: int) -> tuple[Node, ...]:
    """Return the copies of a turn: so many elements of a box."""
    to = Element(buffer=buffer("box", "shared", 64), subscripts=(Name("e"),))
    loop = For(
        counter="e",
        lower=Constant(0),
        condition=Apply(Operator.LT, (Name("e"), Constant(count))),
        step=Constant(1),
        body=(Copy(target=to, source=to, ahead=True),),
        unroll="whole",
        narrow=True,
    )
    return (loop,)


@given(COUNTS, st.integers(1, 17), st.integers(2, 4))
def test_copies_stand_between_loads_and_products(
    counts: list[int], copied: int, stages: int
) -> None:
    found = StepsAhead.of([nest(number, count) for number, count in enumerate(counts)], PLENTY)
    assert found is not None
    shares = found.shares(copies(copied), stages, PLENTY)
    if shares is None:
        assert counts[0] <= 2 or (stages == 2 and sum(counts) // 2 < 2)
        return
    assert found.shares(copies(copied), stages, 0) == shares  # loads of copies are in no registers
    steps = copying_steps(found, shares, copied, sum(counts))
    assert steps <= (sum(counts) / 2 if stages == 2 else counts[0] - 1)


def copying_steps(found: StepsAhead, shares: Shares, copied: int, count: int) -> int:
    """Return how many steps copy; they are the first, and copy between loads and products."""
    machine = Machine()
    machine.run(found.first(), {}, 0)
    machine.run(found.whole_turn((NEXT_TURN, *found.first()), shares), {}, 0)
    assert len(machine.done) == count
    assert machine.copied == list(range(copied))
    events = " ".join(machine.events)
    assert events.count("commit") == 1
    in_front, _, behind = events.partition(" commit ")
    assert "copy" not in behind
    assert "turn" in behind
    steps = in_front.removeprefix("load load ").split(" multiply")
    assert steps.pop() == ""
    assert all(one.strip().startswith("load load copy") for one in steps)
    return len(steps)


@given(st.integers(2, 30).map(lambda half: 2 * half), st.integers(1, 6), st.integers(1, 60))
def test_many_copies_stand_among_products_of_threads(count: int, threads: int, copied: int) -> None:
    found = split(1, count, threads)
    shares = found.shares(copies(copied), 2, PLENTY)
    size = steps_of_a_part(count, 1, threads)
    first, behind = parts_behind(count, 1, threads) if size else (count // 2, 0)
    if copied < MANY or first < 2:
        assert shares is None
        return
    assert shares is not None
    assert copying_steps(found, shares, copied, count) <= first
    nodes = found.whole_turn((), shares)
    assert written(nodes) <= UNROLLED_A_THREAD * threads
    steps = [one.step for one in every(nodes) if isinstance(one, For) and one.unroll == 1]
    assert steps == ([Constant(behind)] if size else [])

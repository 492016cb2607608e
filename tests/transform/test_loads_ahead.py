"""Each step multiplies what was loaded for it, and loads come a step before their products.

Copies that are spread stand between them, and the end of their group in front of the next turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from eatss.analysis.structure import FRAGMENT_PLACES
from eatss.instructions.matrices import MMA_F64_16X8X4
from eatss.kernel.layout import Layout
from eatss.kernel.nodes import (
    Buffer,
    Commit,
    Copy,
    Declare,
    Element,
    Evaluate,
    Fill,
    For,
    If,
    Let,
    Node,
    Perform,
    Scope,
    Source,
)
from eatss.program import Apply, Constant, IntExpr, Name, Operator, evaluate, total
from eatss.scops import ElementType
from eatss.transform.copies_in_shares import Shares
from eatss.transform.loads_ahead import StepsAhead

PLENTY = 255
STEPS = 4
"""Registers of a step's fragments, in words: two doubles."""

SUMS = Buffer(
    name="sum",
    space="register",
    element_type=ElementType.DOUBLE,
    layout=Layout((Constant(8),)),
)
TOLD = Source(line=1, text="C += A * B;")


def buffer(name: str, space: Any, *extents: int) -> Buffer:
    layout = Layout(tuple(map(Constant, extents)))
    return Buffer(name=name, space=space, element_type=ElementType.DOUBLE, layout=layout)


def nest(number: int, count: int, *, loads: Sequence[Node] = ()) -> Node:
    """Return steps of products: fragments of both factors, each an element of a box."""
    counter = f"step{number}"
    fragments = {name: buffer(f"{name}{number}", "register", 1) for name in "ab"}
    box = buffer(f"box{number}", "shared", 64)
    zero = Constant(0)
    load = [
        Evaluate(
            statement=cast("Any", None),
            part=cast("Any", None),
            target=Element(buffer=one, subscripts=(zero,)),
            reads=(Element(buffer=box, subscripts=(Name(counter),)),),
            types={},
        )
        for one in fragments.values()
    ]
    perform = Perform(
        instruction=MMA_F64_16X8X4,
        operands=(
            ("d", (Element(buffer=SUMS, subscripts=(zero,)),)),
            *(
                (name, (Element(buffer=one, subscripts=(zero,)),))
                for name, one in fragments.items()
            ),
        ),
    )
    declared = [Declare(buffer=one) for one in fragments.values()]
    body = (*declared, *load, *loads, TOLD, perform)
    if count == 1:
        return Scope(body=(Let(name=counter, value=zero, narrow=True), *body))
    return For(
        counter=counter,
        lower=zero,
        condition=Apply(Operator.LT, (Name(counter), Constant(count))),
        step=Constant(1),
        body=body,
        unroll="whole",
        narrow=True,
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
            case Perform():
                self._multiply(node, names)
            case _:
                assert isinstance(node, Declare | Source)

    def _load(self, node: Evaluate, names: Mapping[str, int], turn: int) -> None:
        (read,) = node.reads
        step = evaluate(read.subscripts[0], names)
        self.held[self._place(node.target, names)] = (turn, read.buffer.name, step)
        self.events.append("load")

    def _multiply(self, node: Perform, names: Mapping[str, int]) -> None:
        used = {self.held[self._place(one, names)] for one in self._fragments(node)}
        assert len(used) == 1  # both factors are of one step
        self.done += used
        self.events.append("multiply")

    def _place(self, element: Element, names: Mapping[str, int]) -> tuple[str, int]:
        number, *_ = (evaluate(one, names) for one in element.subscripts)
        return element.buffer.name, number

    def _fragments(self, node: Perform) -> Iterator[Element]:
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
    return (loop, Commit())


@given(COUNTS, st.integers(1, 17))
def test_copies_stand_between_loads_and_products(counts: list[int], copied: int) -> None:
    found = StepsAhead.of([nest(number, count) for number, count in enumerate(counts)], PLENTY)
    assert found is not None
    shares = Shares.of(copies(copied), found.steps_that_copy)
    if shares is None:
        assert counts[0] <= 2 or sum(counts) // 2 < 2
        return
    machine = Machine()
    machine.run(found.first(), {}, 0)
    machine.run(found.whole_turn((NEXT_TURN, *found.first()), shares), {}, 0)
    assert len(machine.done) == sum(counts)
    assert machine.copied == list(range(copied))
    events = " ".join(machine.events)
    assert events.count("commit") == 1
    in_front, _, behind = events.partition(" commit ")
    assert "copy" not in behind
    assert "turn" in behind
    steps = in_front.removeprefix("load load ").split(" multiply")
    assert steps.pop() == ""
    assert all(one.strip().startswith("load load copy") for one in steps)
    assert len(steps) <= sum(counts) / 2  # half of the turn is left for them to arrive


def test_copies_take_half_of_a_turn() -> None:
    for counts, most in (((8,), 4), ((4,), 2), ((4, 4), 3), ((1, 6), 0)):
        found = StepsAhead.of([nest(number, count) for number, count in enumerate(counts)], PLENTY)
        assert found is not None
        assert found.steps_that_copy == most


def test_an_odd_number_of_steps_has_no_two_sets() -> None:
    for count in (1, 3, 5):
        assert StepsAhead.of([nest(0, count)], PLENTY) is None
    assert StepsAhead.of([nest(0, 4)], PLENTY) is not None


def test_sums_and_two_steps_stay_in_registers() -> None:
    needed = 2 * 8 + 2 * STEPS + FRAGMENT_PLACES
    assert StepsAhead.of([nest(0, 2)], needed) is not None
    assert StepsAhead.of([nest(0, 2)], needed - 1) is None


def test_fragments_have_room_for_two_steps() -> None:
    found = StepsAhead.of([nest(0, 2)], PLENTY)
    assert found is not None
    declared = [
        one.buffer.layout.extents for one in found.declarations() if isinstance(one, Declare)
    ]
    assert declared == [(Constant(2), Constant(1))] * 2


def test_where_a_turn_has_no_products_the_next_is_loaded_all_the_same() -> None:
    tests: tuple[IntExpr, ...] = (Name("some"),)
    inside = If(conditions=tests, body=(nest(0, 2),), orelse=())
    found = StepsAhead.of([inside], PLENTY)
    assert found is not None
    assert found.tests == tests
    machine = Machine()
    machine.run(found.first(), {}, 0)
    machine.run(found.turn((NEXT_TURN, *found.first())), {"some": 0}, 0)
    machine.run(found.turn((NEXT_TURN, *found.first())), {"some": 1}, 1)
    assert machine.done == [(1, "box0", 0), (1, "box0", 1)]


def test_more_than_steps_of_products_stays() -> None:
    whole = nest(0, 2)
    assert isinstance(whole, For)
    plain = Fill(target=Element(buffer=SUMS, subscripts=(Constant(0),)), value=0)
    assert StepsAhead.of([whole, plain], PLENTY) is None
    assert StepsAhead.of([nest(0, 2, loads=(plain,))], PLENTY) is None
    assert StepsAhead.of([replace(whole, unroll=None)], PLENTY) is None
    otherwise = If(conditions=(Name("n"),), body=(whole,), orelse=(nest(1, 2),))
    assert StepsAhead.of([otherwise], PLENTY) is None


def test_counters_of_a_step_are_those_of_the_next_where_it_is_loaded() -> None:
    found = StepsAhead.of([nest(0, 4)], PLENTY)
    assert found is not None
    scopes = [one for one in found.turn(()) if isinstance(one, For)]
    (loop,) = scopes
    reads = [read for one in loop.body if isinstance(one, Evaluate) for read in one.reads]
    assert {read.subscripts for read in reads} == {(total(Name("step0"), Constant(1)),)}

"""Steps of plain products add what the loop added, in its order, of operands that are there.

What is computed is followed by a small machine: a sum is the list of what was added to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eatss.lower.kernel.barriers import barrier_faults
from eatss.lower.kernel.nodes import (
    AllFinite,
    Buffer,
    Compute,
    Copy,
    Declare,
    Element,
    Extents,
    Fill,
    For,
    If,
    Kernel,
    Let,
    Node,
    Scope,
    Source,
    Staging,
    Way,
)
from eatss.lower.kernel.uses import constant_trips, every, inside, with_expressions
from eatss.lower.transform.operands_ahead import plain_steps
from eatss.lower.transform.pipeline import pipelined
from eatss.lower.transform.register_prefetch import StepsAhead
from eatss.plan.contract import (
    FRAGMENT_PLACES,
    MOST_IN_A_TURN,
    MOST_UNROLLED,
    OPERAND_REUSE,
    UNROLLED_A_THREAD,
    steps_of_a_part,
    unrolled,
)
from eatss.polyhedral.expression import ElementType
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    evaluate,
    multiplied,
    substitute,
    total,
)
from tests.examples import examples

THREADS = 256
PLENTY = 10_000
TOLD = Source(line=1, text="C[i][j] += A[i][k] * B[k][j];")
Value = tuple[Any, ...]
Place = tuple[str, tuple[int, ...]]


def buffer(name: str, space: Any, *extents: int) -> Buffer:
    layout = Extents(tuple(map(Constant, extents)))
    return Buffer(name=name, space=space, element_type=ElementType.FLOAT, layout=layout)


BOXES = tuple(buffer(name, "shared", 64, 64, 64) for name in "ABE")
MEMORY = buffer("G", "global", 64)
SUMS = tuple(buffer(f"sum{at}", "register", 8, 8) for at in range(2))
ZERO, K = Constant(0), Name("k")


def at(of: Buffer, *subscripts: IntExpr) -> Element:
    return Element(buffer=of, subscripts=subscripts)


def compute(target: Element, *reads: Element) -> Compute:
    return Compute(
        statement=cast("Any", None),
        target=target,
        reads=(target, *reads),
        integers=(),
        types={},
    )


def loop(counter: str, count: int, *body: Node, unroll: Any = "whole") -> For:
    return For(
        counter=counter,
        lower=ZERO,
        condition=Apply(Operator.LT, (Name(counter), Constant(count))),
        step=Constant(1),
        body=body,
        unroll=unroll,
        narrow=True,
    )


def steps(count: int, *body: Node) -> For:
    """Return the loop over the steps of a turn, whose counter goes on from turn to turn."""
    last = total(Name("k0"), Constant(count))
    condition = Apply(Operator.LT, (K, last))
    return replace(loop("k", count, *body, unroll=None), lower=Name("k0"), condition=condition)


def in_turn(k: IntExpr) -> IntExpr:
    return total(k, multiplied(Constant(-1), Name("k0")))


def tile(rows: int, columns: int, target: Element | None = None) -> For:
    """Return the products of a step of a thread: rows and columns of C += A B."""
    own = at(SUMS[0], Name("r"), Name("c")) if target is None else target
    first = at(BOXES[0], in_turn(K), Name("i"))
    second = at(BOXES[1], in_turn(K), Name("j"))
    i = Let(name="i", value=total(multiplied(Constant(8), Name("ti")), Name("r")))
    j = Let(name="j", value=total(Name("tj"), Name("c")))
    return loop("r", rows, i, loop("c", columns, j, TOLD, compute(own, first, second)))


@dataclass
class Machine:
    """Runs what a turn does: ``held`` is what was loaded, ``sums`` what was added, in its order.

    A value is what it was read from: a box in a turn, memory, or a sum as far as it had come.
    """

    held: dict[Place, Value] = field(default_factory=dict)
    sums: dict[Place, list[Value]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    def run(self, nodes: Sequence[Node], names: Mapping[str, int], turn: int) -> None:
        """Run nodes of which those behind a :class:`Fill` are of the next turn."""
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
                case Fill():
                    turn += 1
                    self.events.append("turn")
                case Copy():
                    assert node.source.buffer in BOXES
                    self.held[self._place(node.target, names)] = self._read(
                        node.source, names, turn
                    )
                    self.events.append("load")
                case Compute():
                    values = tuple(self._read(one, names, turn) for one in node.reads[1:])
                    self.sums.setdefault(self._place(node.target, names), []).append(values)
                    self.events.append("add")
                case _:
                    assert isinstance(node, Declare | Source | AllFinite)

    def _read(self, one: Element, names: Mapping[str, int], turn: int) -> Value:
        place = self._place(one, names)
        if one.buffer in BOXES:
            return (*place, turn)
        if one.buffer in SUMS:
            return (*place, len(self.sums.get(place, ())))
        return self.held[place] if one.buffer.space == "register" else place

    def _place(self, one: Element, names: Mapping[str, int]) -> Place:
        return one.buffer.name, tuple(evaluate(part, names) for part in one.subscripts)


THREAD = {"ti": 1, "tj": 2}


def plainly(rest: Sequence[Node], depth: int, turns: int) -> Machine:
    """Run turns as they were."""
    machine = Machine()
    for turn in range(turns):
        machine.run(rest, {**THREAD, "k0": depth * turn}, turn)
    return machine


def ahead(found: StepsAhead, depth: int, turns: int) -> Machine:
    """Run turns of which each loads the first step of the next one."""
    machine = Machine()
    machine.run(found.first(), {**THREAD, "k0": 0}, 0)
    later = {"k0": total(Name("k0"), Constant(depth))}
    first = with_expressions(found.first(), lambda one: substitute(one, later))
    for turn in range(turns):
        nodes = found.turn((NEXT_TURN, *first))
        machine.run(nodes, {**THREAD, "k0": depth * turn}, turn)
    return machine


NEXT_TURN = Fill(target=at(SUMS[0], ZERO, ZERO), value=0)


NAMES = frozenset({"r", "c", "i", "j", "k", "k0", "ti", "tj"})


def steps_ahead(
    rest: Sequence[Node],
    registers: int = PLENTY,
    *,
    threads: int = THREADS,
    boxes: Sequence[Buffer] = BOXES,
    taken: set[str] | None = None,
) -> StepsAhead | None:
    names = set(NAMES) if taken is None else taken
    own = partial(plain_steps, boxes=frozenset(boxes), threads=threads, taken=names)
    return StepsAhead.of(rest, registers, own)


@st.composite
def nests(draw: st.DrawFn) -> Node:
    """Draw products of a step: loops over points, and what is added at each of them."""
    outer, rows, columns = draw(
        st.sampled_from(
            [(1, 4, 4), (1, 4, 5), (1, 5, 4), (1, 2, 8), (1, 6, 3), (4, 2, 3), (5, 3, 2), (4, 1, 3)]
        )
    )
    points = {"o": Name("o"), "r": Name("r"), "c": Name("c")}
    row = Let(name="i", value=total(Name("ti"), Name("r")))
    column = Let(name="j", value=total(Name("tj"), Name("c")))
    both = Let(name="b", value=total(Name("i"), Name("j")))
    named = [Name("i"), Name("j"), Name("o") if outer > 1 else ZERO, Name("r"), Name("b"), ZERO]

    def element() -> Element:
        step = total(in_turn(K), Constant(draw(st.integers(0, 2))))
        return at(draw(st.sampled_from(BOXES)), step, draw(st.sampled_from(named)))

    def sum_() -> Element:
        places = draw(st.sampled_from([("r", "c"), ("r", "c"), ("c", "r"), ("r",), ("c",), ()]))
        return at(draw(st.sampled_from(SUMS)), *(points[one] for one in places))

    def added() -> Compute:
        reads = [element() for _ in range(draw(st.integers(1, 3)))]
        other = draw(st.sampled_from(["none", "none", "memory", "sum", "first"]))
        if other == "memory":
            reads.append(at(MEMORY, Name("m")))
        elif other == "sum":
            reads.append(sum_())
        elif other == "first":
            reads.append(at(SUMS[0], Name("r"), ZERO))
        return compute(sum_(), *reads)

    body: tuple[Node, ...] = tuple(added() for _ in range(draw(st.integers(1, 2))))
    if draw(st.booleans()):  # values of the same names that are known there only
        inside = Let(name="i", value=total(Name("r"), Constant(7)))
        body = (Scope(body=(inside, both, *body)),)
    inner = loop("c", columns, column, both, *body)
    found = loop("r", rows, row, inner)
    return found if outer == 1 else loop("o", outer, found)


@settings(max_examples=examples(15))
@given(
    st.lists(st.lists(nests(), min_size=1, max_size=3), min_size=1, max_size=2),
    st.sampled_from([2, 4, 6]),
    st.integers(1, 3),
)
def test_sums_get_what_the_loop_adds_in_its_order(
    loops: list[list[Node]], depth: int, turns: int
) -> None:
    other = Let(name="m", value=multiplied(Constant(3), K))  # of the step, and used by products
    rest = [steps(depth, other, *own) for own in loops]
    found = steps_ahead(rest)
    assume(found is not None)
    assert found is not None
    assert ahead(found, depth, turns).sums == plainly(rest, depth, turns).sums


def in_parts(rest: Sequence[Node], threads: int) -> StepsAhead | None:
    """Return steps as a block of so many threads runs them, in parts if they are too many."""
    taken = set(NAMES)
    found = steps_ahead(rest, threads=threads, taken=taken)
    return None if found is None else found.in_parts(threads, taken)


def parts_of(found: StepsAhead) -> list[For]:
    """Return the loops over parts."""
    nodes = every(found.whole_turn(()))
    return [one for one in nodes if isinstance(one, For) and one.unroll == 1]


@settings(max_examples=examples(15))
@given(
    st.lists(nests(), min_size=1, max_size=2),
    st.integers(2, 12).map(lambda half: 2 * half),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_sums_get_the_same_where_steps_are_in_parts(
    own: list[Node], depth: int, turns: int, more: int
) -> None:
    other = Let(name="m", value=multiplied(Constant(3), K))
    rest = [steps(depth, other, *own)]
    computed = sum(trips(one, 1) for one in own)
    threads = -(-4 * computed // UNROLLED_A_THREAD) + 2 * more  # four steps are kept, and some
    found = in_parts(rest, threads)
    assume(found is not None)
    assert found is not None
    size = steps_of_a_part(depth, computed, threads)
    assert [one.step for one in parts_of(found)] == ([Constant(size)] if size else [])
    assert ahead(found, depth, turns).sums == plainly(rest, depth, turns).sums


def trips(node: Node, times: int) -> int:
    """Return how often something is added in loops over points."""
    if isinstance(node, Compute):
        return times
    if isinstance(node, For):
        count = constant_trips(node)
        assert count is not None
        times *= count
    return sum(trips(one, times) for body in inside(node) for one in body)


@pytest.mark.parametrize("number", [1, 2], ids=["steps", "phases"])
@pytest.mark.parametrize(
    ("depth", "threads", "size"),
    [
        (16, 1024, 0),
        (16, 32, 0),  # all 256 products of a nest are kept
        (16, 16, 4),  # eight steps are kept: 3 × 4, and 4
        (32, 16, 6),  # 5 × 6, and 2
        (32, 8, 2),  # four steps: 15 × 2, and 2
    ],
)
def test_parts_are_of_as_many_steps_as_are_kept(
    number: int, depth: int, threads: int, size: int
) -> None:
    own = [tile(4, 4, at(SUMS[0], *two)) for two in PLACES[:number]]
    rest = [steps(depth, *own)]
    found = in_parts(rest, threads * number)
    assert found is not None
    assert [one.step for one in parts_of(found)] == ([Constant(size)] if size else [])
    assert ahead(found, depth, 3).sums == plainly(rest, depth, 3).sums
    loads, adds = ["load"] * 8, ["add"] * 16
    machine = ahead(found, depth, 1)
    between = (loads + adds) * (depth * number - 1)
    assert machine.events == loads + between + ["turn", *loads, *adds]


def test_parts_have_a_counter_of_their_own() -> None:
    taken = {*NAMES, "k_step_part"}
    found = steps_ahead([steps(32, tile(4, 4))], threads=16, taken=taken)
    assert found is not None
    (part,) = parts_of(found.in_parts(16, taken))
    assert part.counter == "k_step_part_1"
    assert part.counter in taken


@given(st.integers(1, 3), st.integers(0, 1))
def test_operands_of_a_step_are_loaded_in_front_of_the_products_before(
    number: int, more: int
) -> None:
    rest = [steps(4, *(tile(4, 4 + more, at(SUMS[0], *two)) for two in PLACES[:number]))]
    found = steps_ahead(rest)
    assert found is not None
    machine = ahead(found, 4, 1)
    loads, adds = 4 + 4 + more, 4 * (4 + more)
    each = ["load"] * loads + ["add"] * adds
    turns = ["turn"] + ["load"] * loads + ["add"] * adds
    assert machine.events == ["load"] * loads + each * (4 * number - 1) + turns


PLACES = ((Name("r"), Name("c")), (Name("c"), Name("r")), (Name("r"), Name("c")))


def test_one_product_has_two_sets_of_operands_and_several_have_one() -> None:
    one, two = (steps_ahead([steps(4, *[tile(4, 4)] * number)]) for number in (1, 2))
    assert one is not None
    assert two is not None
    extents = [
        [node.buffer.layout.extents for node in found.declarations() if isinstance(node, Declare)]
        for found in (one, two)
    ]
    assert extents == [[(Constant(2), Constant(4))] * 2, [(Constant(4),)] * 4]


def counters(found: StepsAhead | None) -> set[str]:
    """Return the names that count in a turn."""
    assert found is not None
    return {one.counter for one in every(found.whole_turn(())) if isinstance(one, For)}


@pytest.mark.parametrize(("rows", "pairs"), [(4, 2), (6, 3), (3, 0), (5, 0)])
def test_rows_of_an_even_number_go_to_and_fro(rows: int, pairs: int) -> None:
    found = steps_ahead([steps(2, tile(rows, 6))])
    assert ("r_pair" in counters(found), "c_back" in counters(found)) == (pairs > 0, pairs > 0)
    assert found is not None
    machine = ahead(found, 2, 1)
    order = [places for _, places in machine.sums]
    there = [[(row, column) for column in range(6)] for row in range(rows)]
    if pairs:
        there[1::2] = [own[::-1] for own in there[1::2]]
    assert order == [place for own in there for place in own]


@pytest.mark.parametrize(
    "target",
    [(Name("r"),), (Name("c"),), (ZERO, Name("c")), (total(Name("r"), Name("c")),), ()],
    ids=["row", "column", "one row", "diagonal", "scalar"],
)
def test_points_that_share_a_sum_are_taken_in_their_order(target: tuple[IntExpr, ...]) -> None:
    found = steps_ahead([steps(2, tile(4, 6, at(SUMS[0], *target)))])
    assert "c_back" not in counters(found)


def test_a_sum_that_is_read_at_another_point_keeps_its_order() -> None:
    own = tile(4, 6)
    (i, row) = own.body
    assert isinstance(row, For)
    other = compute(at(SUMS[1], Name("r"), Name("c")), at(SUMS[0], Name("r"), ZERO))
    both = replace(own, body=(i, replace(row, body=(*row.body, other))))
    assert "c_back" not in counters(steps_ahead([steps(2, both)]))


def test_names_of_steps_and_operands_are_free() -> None:
    taken = {"k_step", "A_step", "r_pair", "c_back", "r", "c", "i", "j", "k", "k0", "ti", "tj"}
    before = set(taken)
    found = steps_ahead([steps(4, tile(4, 4))], taken=taken)
    assert found is not None
    own = counters(found)
    own |= {one.buffer.name for one in found.declarations() if isinstance(one, Declare)}
    assert own - before == taken - before
    assert not own & (before - {"r", "c"})


def test_two_reads_of_an_element_are_one_operand() -> None:
    element = at(BOXES[0], in_turn(K), Name("r"))
    twice = loop("r", 4, loop("c", 4, compute(at(SUMS[0], Name("r"), Name("c")), element, element)))
    found = steps_ahead([steps(2, twice)])
    assert found is not None
    (declared,) = (one.buffer for one in found.declarations() if isinstance(one, Declare))
    assert declared.layout.extents == (Constant(2), Constant(4))


def test_an_element_at_other_values_of_a_name_is_another_operand() -> None:
    (element, sum_) = at(BOXES[0], in_turn(K), Name("j")), at(SUMS[0], Name("r"), Name("c"))
    first, second = (
        loop(
            "c", 4, Let(name="j", value=total(Name("c"), Constant(8 * two))), compute(sum_, element)
        )
        for two in range(2)
    )
    rest = [steps(2, loop("r", 4, first, second))]
    found = steps_ahead(rest)
    assert found is not None
    assert len(found.declarations()) == 2
    assert ahead(found, 2, 2).sums == plainly(rest, 2, 2).sums


def test_values_of_a_scope_are_where_they_are_used() -> None:
    place = total(Name("i"), Name("c"))
    own = compute(at(SUMS[0], Name("r"), Name("c")), at(BOXES[0], in_turn(K), place))
    outside = Let(name="i", value=total(Name("r"), Constant(100)))
    scope = Scope(body=(Let(name="i", value=Name("r")), TOLD, own))
    rest = [steps(2, loop("r", 4, outside, loop("c", 4, scope)))]
    found = steps_ahead(rest)
    assert found is None  # each product reads an element of its own
    shared = Scope(
        body=(
            Let(name="i", value=Name("r")),
            TOLD,
            compute(at(SUMS[0], Name("r"), Name("c")), at(BOXES[0], in_turn(K), Name("i"))),
        )
    )
    rest = [steps(2, loop("r", 4, outside, loop("c", 4, shared)))]
    found = steps_ahead(rest)
    assert found is not None
    assert not any(
        isinstance(one, Scope) and one.phase == "" and TOLD in one.body
        for one in every(found.whole_turn(()))
    )
    assert ahead(found, 2, 2).sums == plainly(rest, 2, 2).sums


def test_what_is_not_in_boxes_of_the_turn_is_read_where_it_was() -> None:
    own = compute(
        at(SUMS[0], Name("r"), Name("c")),
        at(BOXES[0], in_turn(K), Name("r")),
        at(BOXES[1], in_turn(K), Name("c")),
    )
    rest = [steps(2, loop("r", 4, loop("c", 4, own)))]
    found = steps_ahead(rest, boxes=BOXES[:1], taken=set())
    assert found is not None
    nodes = every(found.whole_turn(()))
    read = {one for node in nodes if isinstance(node, Compute) for one in node.reads}
    assert {one.buffer.name for one in read} == {"sum0", "A_step", "B"}


def test_an_operand_of_the_step_alone_is_one_register() -> None:
    element = at(BOXES[0], in_turn(K))
    own = loop("r", 4, loop("c", 4, compute(at(SUMS[0], Name("r"), Name("c")), element)))
    found = steps_ahead([steps(2, own)])
    assert found is not None
    assert [one.buffer.size_bytes for one in found.declarations() if isinstance(one, Declare)] == [
        2 * 4
    ]


VOTE = AllFinite(name="finite", unless=ZERO, counter="e", thread=ZERO, threads=1, shares=())


def test_tests_around_the_steps_and_votes_stay() -> None:
    inside = If(conditions=(Name("whole"),), body=(steps(2, tile(4, 4)),), orelse=())
    found = steps_ahead([VOTE, inside])
    assert found is not None
    assert (found.votes, found.tests, found.known_tests) == ((VOTE,), (Name("whole"),), ())
    found = steps_ahead([inside])
    assert found is not None
    assert (found.votes, found.tests) == ((), (Name("whole"),))
    assert found.known_tests == found.tests


def refused() -> dict[str, list[Node]]:
    plain = tile(4, 4)
    test = If(conditions=(Name("whole"),), body=(plain,))
    fill = Fill(target=at(SUMS[0], ZERO, ZERO), value=0)
    to_box = tile(4, 4, at(BOXES[2], Name("r"), Name("c")))
    to_memory = tile(4, 4, at(MEMORY, Name("r")))
    large, half = tile(4, MOST_UNROLLED // 16 + 1), tile(4, MOST_UNROLLED // 32 + 1)
    open_ = replace(steps(4, plain), condition=Apply(Operator.LT, (K, Name("NK"))))
    points = loop("c", 8, compute(at(SUMS[0], K, Name("c")), at(BOXES[0], in_turn(K))))
    read_only = compute(at(SUMS[0], Name("r"), Name("c")), at(MEMORY, K))
    return {
        "tests inside": [steps(4, test)],
        "an odd number of steps": [steps(3, plain)],
        "steps that nobody counted": [open_],
        "too many products": [steps(2, tile(4, MOST_UNROLLED // 8 + 1))],
        "too many products in the least part": [steps(6, large)],
        "too many products in a turn": [steps(MOST_IN_A_TURN // 16 + 2, plain)],
        "too many products of several nests in a turn": [
            steps(MOST_IN_A_TURN // 32 + 2, plain, plain)
        ],
        "too many products of several nests": [steps(4, half, half)],
        "too many products of several nests in the least part": [steps(6, half, half)],
        "points that are not unrolled": [steps(4, replace(plain, unroll=4))],
        "what is no product": [steps(4, plain), fill],
        "what is no product inside": [steps(4, plain, fill)],
        "sums in a box": [steps(4, to_box)],
        "sums in memory": [steps(4, to_memory)],
        "points in the place of steps": [steps(4, points)],
        "too little reuse": [steps(4, tile(3, 4))],
        "too little reuse in one of two": [steps(4, plain, tile(3, 4))],
        "nothing of a box": [steps(4, loop("r", 4, loop("c", 4, read_only)))],
        "nothing": [],
    }


@pytest.mark.parametrize("case", refused())
def test_what_is_refused(case: str) -> None:
    assert steps_ahead(refused()[case]) is None


def test_bounds_are_as_they_are_told() -> None:
    enough = MOST_UNROLLED // UNROLLED_A_THREAD
    assert enough * UNROLLED_A_THREAD == MOST_UNROLLED
    assert enough <= THREADS
    for products, threads in (
        (MOST_UNROLLED, enough),
        (MOST_UNROLLED, THREADS),
        (MOST_UNROLLED, 1024),
        (512, 64),
    ):
        assert unrolled(2, products // 2, threads)
        assert not unrolled(2, products // 2 + 1, threads)
        assert unrolled(products, 1, threads)
        assert unrolled(6, products // 4, threads)  # four steps are kept: two, and two behind
        assert not unrolled(6, products // 4 + 1, threads)
    assert not unrolled(2, MOST_UNROLLED // 2, enough - 1)
    for count, most in (
        (2, MOST_UNROLLED // 2),
        (6, MOST_UNROLLED // 4),
        (32, MOST_IN_A_TURN // 32),
    ):
        assert steps_ahead([steps(count, tile(4, most // 4))]) is not None
        assert steps_ahead([steps(count, tile(4, most // 4 + 1))]) is None
    assert OPERAND_REUSE * (4 + 4) == 4 * 4


def test_registers_have_room_for_sums_and_two_steps() -> None:
    for own, words in (
        ([tile(4, 4)], 2 * (4 + 4)),
        ([tile(4, 4), tile(4, 4)], 2 * (4 + 4)),
        ([tile(4, 4), tile(4, 6)], (4 + 4) + (4 + 6)),
        ([tile(4, 6), tile(4, 4), tile(4, 6)], 2 * (4 + 6)),  # the last and the next step's first
    ):
        rest, needed = [steps(2, *own)], 8 * 8 + words + FRAGMENT_PLACES
        assert steps_ahead(rest, needed) is not None
        assert steps_ahead(rest, needed - 1) is None


def copying(test: IntExpr, depth: int = 4) -> Kernel:
    """Return a kernel whose turns fill two boxes, and compute where a test holds."""
    filled = [
        Copy(target=at(one, Name("t"), ZERO), source=at(MEMORY, Name("t"))) for one in BOXES[:2]
    ]
    stages = [Staging(ways=(Way(elements=(one,)),), ahead=True) for one in filled]
    inside = If(conditions=(test,), body=(steps(depth, tile(4, 4)),))
    turns = For(
        counter="k0",
        lower=ZERO,
        condition=Apply(Operator.LT, (Name("k0"), Name("NK"))),
        step=Constant(depth),
        body=(*stages, inside),
    )
    return Kernel(
        name="one",
        threads=32,
        arguments=(),
        shared=BOXES[:2],
        static_shared_bytes=48 << 10,
        index_bits=32,
        body=(Let(name="t", value=Name("threadIdx.x")), turns),
    )


def test_operands_of_several_points_lie_in_rows_along_them() -> None:
    def pays(*places: IntExpr) -> bool:
        apart = Let(name="a", value=total(Name("ti"), multiplied(Constant(8), Name("r"))))
        sums, column = at(SUMS[0], Name("r"), Name("c")), at(BOXES[1], in_turn(K), Name("c"))
        product = compute(sums, at(BOXES[0], *places), column)
        found = steps_ahead([steps(4, loop("r", 4, apart, loop("c", 16, product)))])
        return found is not None

    k, r = in_turn(K), Name("r")
    assert pays(k, total(Name("ti"), r))
    assert not pays(r, k)  # a vector is of several steps
    assert not pays(k, Name("a"))  # points are apart
    assert not pays(r, r)
    assert pays(k, Name("ti"))  # one for all points


def test_all_threads_of_a_block_ask_the_same_where_loads_run_ahead() -> None:
    for test, steps_run in (("NK", True), ("t", False), ("threadIdx.x", False)):
        own = copying(Apply(Operator.LT, (Name(test), Constant(8))))
        found = pipelined(own, 2, 1 << 30, {"t"}, PLENTY)
        counters = {one.counter for one in every(found.body) if isinstance(one, For)}
        assert ("k_step" in counters) == steps_run
        assert not barrier_faults(found.body)


@pytest.mark.parametrize(("depth", "in_parts"), [(16, False), (32, True)])
def test_blocks_of_few_threads_run_many_steps_in_parts(depth: int, in_parts: bool) -> None:
    own = copying(Apply(Operator.LT, (Name("NK"), Constant(8))), depth)
    assert own.threads * UNROLLED_A_THREAD == 16 * 16
    found = pipelined(own, 2, 1 << 30, {"t"}, PLENTY)
    counters = {one.counter for one in every(found.body) if isinstance(one, For)}
    assert "k_step" in counters
    assert ("k_step_part" in counters) == in_parts
    assert not barrier_faults(found.body)


def test_products_in_phases_load_nothing_that_one_of_them_writes() -> None:
    sums, box = at(SUMS[1], Name("r"), Name("c")), at(BOXES[0], in_turn(K), Name("i"))
    first = tile(4, 4)
    for target, kept in ((box, False), (sums, True)):
        both = steps(4, first, tile(4, 4, target))
        assert (steps_ahead([both]) is not None) == kept
    other = at(SUMS[0], Name("r"), Name("c"))  # what the first of them adds to
    from_box = at(BOXES[1], in_turn(K), Name("c"))
    reading = loop("r", 4, loop("c", 4, compute(sums, other, from_box)))
    both = steps(4, first, reading)
    found = steps_ahead([both])
    assert found is not None
    (steps_of_two,) = found.steps
    assert len(steps_of_two.phases) == 2
    nodes = list(every(steps_of_two.phases))
    written_to = {one.target.buffer for one in nodes if isinstance(one, Compute)}
    read = {one.source.buffer for one in nodes if isinstance(one, Copy)}
    assert (written_to, read) == ({*SUMS}, {*BOXES[:2]})
    assert ahead(found, 4, 2).sums == plainly([both], 4, 2).sums

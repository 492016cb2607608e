"""Steps add what the loop added, in its order, of operands that were loaded a step before.

What threads and warps compute is followed by a small machine: a sum is the list of what was added
to it. Copies stand between loads and products, spread over steps, each made once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eatss.base.frozen import frozen
from eatss.lower.instructions import of_warps
from eatss.lower.kernel.nodes import (
    AllFinite,
    Buffer,
    Commit,
    Compute,
    Copy,
    Declare,
    Element,
    For,
    Init,
    Intrinsic,
    Let,
    Load,
    Node,
    Scope,
    Source,
    Steps,
)
from eatss.lower.kernel.uses import constant_trips, every, inside, mapped_of, with_expressions
from eatss.lower.transform.operands_ahead import plain_steps
from eatss.lower.transform.register_prefetch import Prefetch, PrefetchedSteps, Shares
from eatss.plan.contract import (
    FRAGMENT_PLACES,
    MOST_UNROLLED,
    UNROLLED_A_THREAD,
    steps_of_a_part,
)
from eatss.polyhedral.expression import Binary, ElementType, Expression, Literal, Read
from eatss.polyhedral.scop import Access
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    evaluate,
    substitute,
)
from tests.examples import examples
from tests.lower.small_kernels import (
    ZERO,
    Machine,
    at,
    buffer,
    loop,
    only_if,
    place,
)

THREADS = 256
PLENTY, MANY = 10_000, 16
TOLD = Source(line=1, text="C[i][j] += A[i][k] * B[k][j];")
Value = tuple[Any, ...]
Place = tuple[str, tuple[int, ...]]


BOXES = tuple(buffer(name, "shared", 64, 64, 64) for name in "ABE")
MEMORY = buffer("G", "global", 64)
SUMS = tuple(buffer(f"sum{at}", "register", 8, 8) for at in range(2))
K = Name("k")


@frozen
class Plain:
    """A statement without operations: a product and its sum are as one."""

    value: Expression = Literal(text="1", element_type=ElementType.DOUBLE)
    accesses: tuple[Access, ...] = ()
    recomputed: tuple[Access, ...] = ()


def compute(target: Element, *reads: Element) -> Compute:
    return Compute(
        statement=cast("Any", Plain()),
        target=target,
        reads=(target, *reads),
        integers=(),
        types={},
    )


def points(counter: str, count: int, *body: Node) -> For:
    return loop(counter, count, *body, unroll="whole")


def steps(count: int, *body: Node) -> For:
    """Return the loop over the steps of a turn, whose counter goes on from turn to turn."""
    return loop("k", Name("k0") + count, *body, lower=Name("k0"))


def in_turn(k: IntExpr) -> IntExpr:
    return k + -1 * Name("k0")


def tile(rows: int, columns: int, target: Element | None = None) -> For:
    """Return the products of a step of a thread: rows and columns of C += A B."""
    own = at(SUMS[0], Name("r"), Name("c")) if target is None else target
    first = at(BOXES[0], in_turn(K), Name("i"))
    second = at(BOXES[1], in_turn(K), Name("j"))
    i = Let(name="i", value=8 * Name("ti") + Name("r"))
    j = Let(name="j", value=Name("tj") + Name("c"))
    return points("r", rows, i, points("c", columns, j, TOLD, compute(own, first, second)))


@dataclass
class Warp(Machine):
    """Runs what a turn does: ``held`` is what was loaded, ``sums`` what was added, in its order.

    A value is what it was read from: a box in a turn, memory, or a sum as far as it had come. Nodes
    behind a :class:`Init` are of the next turn.
    """

    held: dict[Place, Value] = field(default_factory=dict)
    sums: dict[Place, list[Value]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    copied: list[int] = field(default_factory=list)
    turn: int = 0

    def do(self, node: Node, names: Mapping[str, int]) -> None:
        match node:
            case Init():
                self.turn += 1
                self.events.append("turn")
            case Copy() if node.ahead:
                self.copied.append(evaluate(node.target.subscripts[0], names))
                self.events.append("copy")
            case Copy():
                self._load(node.target, node.source, names)
            case Load():
                self._load(node.target, node.reads[0], names)
            case Compute():
                self._add(node.target, node.reads[1:], names)
            case Intrinsic():
                factors = [one for name, own in node.operands if name != "d" for one in own]
                self._add(node.named("d")[0], factors, names)
            case Commit():
                self.events.append("commit")
            case _:
                assert isinstance(node, Declare | Source | AllFinite)

    def _load(self, to: Element, of: Element, names: Mapping[str, int]) -> None:
        assert of.buffer.space == "shared"
        self.held[to.buffer.name, place(to, names)] = self._read(of, names)
        self.events.append("load")

    def _add(self, to: Element, reads: Sequence[Element], names: Mapping[str, int]) -> None:
        values = tuple(self._read(one, names) for one in reads)
        self.sums.setdefault((to.buffer.name, place(to, names)), []).append(values)
        self.events.append("add")

    def _read(self, one: Element, names: Mapping[str, int]) -> Value:
        own = one.buffer.name, place(one, names)
        if one.buffer.space == "shared":
            return (*own, self.turn)
        if one.buffer in SUMS:
            return (*own, len(self.sums.get(own, ())))
        return self.held[own] if one.buffer.space == "register" else own


OF_THREAD = {"ti": 1, "tj": 2}


def plainly(rest: Sequence[Node], depth: int, turns: int) -> Warp:
    """Run turns as they were."""
    machine = Warp()
    for turn in range(turns):
        machine.turn = turn
        machine.run(rest, {**OF_THREAD, "k0": depth * turn})
    return machine


def ahead(found: PrefetchedSteps, depth: int, turns: int) -> Warp:
    """Run turns of which each loads the first step of the next one."""
    machine = Warp()
    machine.run(found.first(), {**OF_THREAD, "k0": 0})
    later = {"k0": Name("k0") + depth}
    first = with_expressions(found.first(), lambda one: substitute(one, later))
    for turn in range(turns):
        nodes = found.turn((NEXT_TURN, *first))
        machine.turn = turn
        machine.run(nodes, {**OF_THREAD, "k0": depth * turn})
    return machine


NEXT_TURN = Init(target=at(SUMS[0], ZERO, ZERO), value=0)


NAMES = frozenset({"r", "c", "i", "j", "k", "k0", "ti", "tj"})


def steps_ahead(
    rest: Sequence[Node],
    registers: int = PLENTY,
    *,
    threads: int = THREADS,
    boxes: Sequence[Buffer] = BOXES,
    taken: set[str] | None = None,
) -> PrefetchedSteps | None:
    names = set(NAMES) if taken is None else taken
    own = partial(plain_steps, boxes=frozenset(boxes), threads=threads, taken=names)
    return PrefetchedSteps.of(rest, registers, own)


@st.composite
def nests(draw: st.DrawFn) -> Node:
    """Draw products of a step: loops over points, and what is added at each of them."""
    outer, rows, columns = draw(
        st.sampled_from(
            [(1, 4, 4), (1, 4, 5), (1, 5, 4), (1, 2, 8), (1, 6, 3), (4, 2, 3), (5, 3, 2), (4, 1, 3)]
        )
    )
    own_points = {"o": Name("o"), "r": Name("r"), "c": Name("c")}
    row = Let(name="i", value=Name("ti") + Name("r"))
    column = Let(name="j", value=Name("tj") + Name("c"))
    both = Let(name="b", value=Name("i") + Name("j"))
    named = [Name("i"), Name("j"), Name("o") if outer > 1 else ZERO, Name("r"), Name("b"), ZERO]

    def element() -> Element:
        step = in_turn(K) + draw(st.integers(0, 2))
        return at(draw(st.sampled_from(BOXES)), step, draw(st.sampled_from(named)))

    def sum_() -> Element:
        own = draw(st.sampled_from([("r", "c"), ("r", "c"), ("c", "r"), ("r",), ("c",), ()]))
        return at(draw(st.sampled_from(SUMS)), *(own_points[one] for one in own))

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
        body = (Scope(body=(Let(name="i", value=Name("r") + 7), both, *body)),)
    found = points("r", rows, row, points("c", columns, column, both, *body))
    return found if outer == 1 else points("o", outer, found)


def in_parts(rest: Sequence[Node], threads: int) -> PrefetchedSteps | None:
    """Return steps as a block of so many threads runs them, in parts if they are too many."""
    taken = set(NAMES)
    found = steps_ahead(rest, threads=threads, taken=taken)
    return None if found is None else found.in_parts(threads, taken)


def parts_of(found: PrefetchedSteps) -> list[For]:
    """Return the loops over parts."""
    nodes = every(found.whole_turn(()))
    return [one for one in nodes if isinstance(one, For) and one.unroll == 1]


@settings(max_examples=examples(25))
@given(
    st.lists(st.lists(nests(), min_size=1, max_size=3), min_size=1, max_size=2),
    st.integers(1, 12).map(lambda half: 2 * half),
    st.integers(1, 3),
    st.one_of(st.integers(0, 3), st.just(THREADS)),
)
def test_sums_get_what_the_loop_adds_in_its_order(
    loops: list[list[Node]], depth: int, turns: int, more: int
) -> None:
    other = Let(name="m", value=3 * K)  # of the step, and used by products
    rest = [steps(depth, other, *own) for own in loops]
    computed = [sum(trips(one, 1) for one in own) for own in loops]
    threads = -(-4 * max(computed) // UNROLLED_A_THREAD) + 2 * more  # four steps are kept, and some
    found = in_parts(rest, threads)
    assume(found is not None)
    assert found is not None
    sizes = [steps_of_a_part(depth, one, threads) for one in computed]
    assert [one.step for one in parts_of(found)] == [Constant(size) for size in sizes if size]
    assert ahead(found, depth, turns).sums == plainly(rest, depth, turns).sums


def test_a_squared_distance_is_two_instructions_of_a_part() -> None:
    one = Plain().value
    apart = Binary(operator="-", left=one, right=one)
    squared = Binary(operator="+", left=one, right=Binary(operator="*", left=apart, right=apart))
    distances = mapped_of(
        (tile(8, 8),),
        Compute,
        lambda own: replace(own, statement=cast("Any", Plain(value=squared))),
    )
    products, far = (in_parts([steps(16, *own)], 128) for own in ((tile(8, 8),), distances))
    assert products is not None
    assert far is not None
    assert not parts_of(products)  # 1024 instructions
    assert parts_of(far)
    few = in_parts([steps(16, *distances)], 32)  # no part of 256 instructions, one of 256 products
    assert few is not None
    assert parts_of(few)


def trips(node: Node, times: int) -> int:
    """Return how often something is added in loops over points."""
    if isinstance(node, Compute):
        return times
    if isinstance(node, For):
        count = constant_trips(node)
        assert count is not None
        times *= count
    return sum(trips(one, times) for body in inside(node) for one in body)


def refused() -> dict[str, list[Node]]:
    plain = tile(4, 4)
    to_memory = tile(4, 4, at(MEMORY, Name("r")))
    in_steps = points("c", 8, compute(at(SUMS[0], K, Name("c")), at(BOXES[0], in_turn(K))))
    return {
        "tests inside": [steps(4, only_if(Name("whole"), body=(plain,)))],
        "an odd number of steps": [steps(3, plain)],
        "too many products": [steps(2, tile(4, MOST_UNROLLED // 8 + 1))],
        "sums in memory": [steps(4, to_memory)],
        "points in the place of steps": [steps(4, in_steps)],
    }


@pytest.mark.parametrize("case", refused())
def test_what_is_refused(case: str) -> None:
    assert steps_ahead(refused()[case]) is None


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


def nest(number: int, count: int, *, threads: bool = False) -> Steps:
    """Return steps of products of warps or threads: both factors are elements of a box."""
    counter, box = f"step{number}", buffer(f"box{number}", "shared", 64)
    fragments = [at(buffer(f"{name}{number}", "register", 1), ZERO) for name in "ab"]
    loads = [
        Load(
            statement=cast("Any", None),
            part=Read(access=0),
            target=one,
            reads=(at(box, Name(counter)),),
            types={},
        )
        for one in fragments
    ]
    own, (a, b) = at(SUMS[0], ZERO), fragments
    operands = (("d", (own,)), ("a", (a,)), ("b", (b,)))
    by_warps = Intrinsic(instruction=of_warps("mma_f64_16x8x4"), operands=operands)
    declared = [Declare(buffer=one.buffer) for one in fragments]
    products = (TOLD, compute(own, a, b) if threads else by_warps)
    return Steps(counter=counter, count=count, loads=(*declared, *loads), products=products)


COUNTS = st.one_of(
    st.integers(1, 4).map(lambda half: [2 * half]),
    st.lists(st.integers(1, 5), min_size=2, max_size=3),
)


@given(COUNTS, st.integers(1, 3))
def test_each_step_multiplies_what_was_loaded_for_it(counts: list[int], turns: int) -> None:
    found = PrefetchedSteps.of([nest(number, count) for number, count in enumerate(counts)], PLENTY)
    assert found is not None
    machine = Warp()
    machine.run(found.first(), {})
    for turn in range(turns):
        machine.turn = turn
        machine.run(found.turn((NEXT_TURN, *found.first())), {})
    assert [*machine.sums.values()] == [
        [
            ((f"box{number}", (step,), turn),) * 2
            for turn in range(turns)
            for number, count in enumerate(counts)
            for step in range(count)
        ]
    ]
    assert machine.events[:4] == ["load", "load"] * 2  # two steps are loaded before the first


def copies(count: int) -> tuple[Node, ...]:
    """Return the copies of a turn: so many elements of a box."""
    to = at(buffer("box", "shared", 64), Name("e"))
    return (points("e", count, Copy(target=to, source=to, ahead=True)),)


@given(COUNTS, st.integers(1, 17), st.integers(2, 4))
def test_copies_stand_between_loads_and_products(
    counts: list[int], copied: int, stages: int
) -> None:
    found = PrefetchedSteps.of([nest(number, count) for number, count in enumerate(counts)], PLENTY)
    assert found is not None
    shares = found.shares(copies(copied), stages, PLENTY)
    if shares is None:
        assert counts[0] <= 2 or (stages == 2 and sum(counts) // 2 < 2)
        return
    assert found.shares(copies(copied), stages, 0) == shares  # loads of copies are in no registers
    steps = copying_steps(found, shares, copied, sum(counts))
    assert steps <= (sum(counts) / 2 if stages == 2 else counts[0] - 1)


def copying_steps(found: PrefetchedSteps, shares: Shares, copied: int, count: int) -> int:
    """Return how many steps copy; they are the first, and copy between loads and products."""
    machine = Warp()
    machine.run(found.first(), {})
    machine.run(found.whole_turn((NEXT_TURN, *found.first()), shares), {})
    (added,) = machine.sums.values()
    assert len(added) == count
    assert machine.copied == list(range(copied))
    events = " ".join(machine.events)
    assert events.count("commit") == 1
    in_front, _, behind = events.partition(" commit ")
    assert "copy" not in behind
    assert "turn" in behind
    steps = in_front.removeprefix("load load ").split(" add")
    assert steps.pop() == ""
    assert all(one.strip().startswith("load load copy") for one in steps)
    return len(steps)


@given(st.integers(2, 30).map(lambda half: 2 * half), st.integers(1, 6), st.integers(1, 60))
def test_many_copies_stand_among_products_of_threads(count: int, threads: int, copied: int) -> None:
    alone = Prefetch(phases=(nest(0, count, threads=True),))
    whole = PrefetchedSteps(votes=(), tests=(), steps=(alone,), orelse=())
    found = whole.in_parts(threads, set())
    shares = found.shares(copies(copied), 2, PLENTY)
    if copied < MANY or count < 4 or steps_of_a_part(count, 1, threads):
        assert shares is None
        return
    assert shares is not None
    assert copying_steps(found, shares, copied, count) <= count // 2
    nodes = every(found.whole_turn((), shares))
    assert not any(isinstance(one, For) and one.unroll == 1 for one in nodes)

"""Boxes of several stages: which of them may be the same, and copies that are on their way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.barriers import (
    barrier_faults,
    may_meet,
    stage_of,
    turn_after,
    turn_before,
)
from eatss.lower.kernel.nodes import (
    Barrier,
    Commit,
    Copy,
    Cycle,
    Element,
    For,
    If,
    Node,
    Wait,
)
from eatss.program import Constant, IntExpr, Name, evaluate
from tests.lower.small_kernels import (
    N,
    at,
    buffer,
    loop,
)

Use: TypeAlias = tuple[str, str]
"""What is done to which stage."""

SYNC, COMMIT = Barrier(), Commit()
READ_EARLY = "S is read before all threads have written their part of it"
A = at(buffer("A", "global", 8), N)


def of_stage(stages: int, stage: IntExpr) -> Element:
    return at(buffer("S", "shared", stages, 8), stage, N)


def send(stages: int, stage: IntExpr) -> Copy:
    return Copy(target=of_stage(stages, stage), source=A, ahead=True)


def use(stages: int, stage: IntExpr) -> Copy:
    return Copy(target=A, source=of_stage(stages, stage))


def turns(stages: int, *body: Node) -> For:
    return replace(loop("k", N, *body), cycle=Cycle(name="stage", count=stages))


def pipeline(stages: int, *, wait: int, sync: bool = True, last: bool = False) -> list[Node]:
    """Return a pipeline, which is right where it waits for all but ``stages - 2`` copies."""
    first = [one for k in range(stages - 1) for one in (send(stages, Constant(k)), COMMIT)]
    free = turn_before(Cycle(name="stage", count=stages))
    copy = (If(conditions=(N,), body=(send(stages, free),)), COMMIT)
    read = use(stages, Name("stage"))
    turn = (read, *copy) if last else (*copy, read)
    return [*first, turns(stages, Wait(pending=wait), *((SYNC,) if sync else ()), *turn)]


@pytest.mark.parametrize("stages", [2, 3, 4, 5])
@pytest.mark.parametrize("last", [False, True])
def test_a_pipeline_needs_one_barrier_and_its_wait(stages: int, last: bool) -> None:
    assert barrier_faults(pipeline(stages, wait=stages - 2, last=last)) == ()
    assert barrier_faults(pipeline(stages, wait=stages - 1, last=last)) == (READ_EARLY,)
    assert READ_EARLY in barrier_faults(pipeline(stages, wait=stages - 2, last=last, sync=False))


@given(st.integers(2, 5), st.integers(0, 9), st.integers(0, 4))
def test_stages_are_told_as_they_are(stages: int, turn: int, turns: int) -> None:
    cycle = Cycle(name="stage", count=stages)
    cycles = {"k": cycle}
    places = [Name("stage"), turn_after(cycle), turn_before(cycle)]
    told = [stage_of(of_stage(stages, one), cycles) for one in places]
    for number, (place, stage) in enumerate(zip(places, told, strict=True)):
        now = evaluate(place, {"stage": turn % stages})
        assert now == (turn + stage.later) % stages
        for other in places[number:]:
            later = evaluate(other, {"stage": (turn + turns) % stages})
            moved = stage
            for _ in range(turns):
                moved = moved.a_turn_on("k")
            assert may_meet(moved, stage_of(of_stage(stages, other), cycles)) == (now == later)


_STEPS = st.one_of(
    st.just(SYNC),
    st.just(COMMIT),
    st.integers(0, 2).map(lambda pending: Wait(pending=pending)),
    st.sampled_from(["send", "use"]).flatmap(
        lambda what: st.sampled_from([(what, "now"), (what, "after"), (what, "before")])
    ),
)


def _places(stages: int) -> dict[str, IntExpr]:
    cycle = Cycle(name="stage", count=stages)
    return {"now": Name("stage"), "after": turn_after(cycle), "before": turn_before(cycle)}


@given(st.integers(2, 3), st.lists(_STEPS, min_size=1, max_size=7))
def test_what_threads_do_to_each_other_is_seen(stages: int, steps: list[Node | Use]) -> None:
    places, kinds = _places(stages), {"send": send, "use": use}
    body = [
        kinds[one[0]](stages, places[one[1]]) if isinstance(one, tuple) else one for one in steps
    ]
    if _meets(stages, steps):
        assert barrier_faults([turns(stages, *body)])


@dataclass(slots=True)
class _Sent:
    stage: int
    group: int
    there: int | None = None


class _Run:
    """Ten turns of a thread, and what meets the same of another one: intervals tell them apart."""

    def __init__(self) -> None:
        self.interval, self.groups, self.meets = 0, 0, False
        self.sent: list[_Sent] = []
        self.read: set[tuple[int, int]] = set()

    def step(self, one: Node | Use, stage: int) -> None:
        if isinstance(one, Barrier):
            self.interval += 1
        elif isinstance(one, Commit):
            self.groups += 1
        elif isinstance(one, Wait):
            for copy in self.sent:
                if copy.there is None and copy.group < self.groups - one.pending:
                    copy.there = self.interval
        elif isinstance(one, tuple) and one[0] == "send":
            self.sent.append(_Sent(stage, self.groups))
            self.meets |= (stage, self.interval) in self.read
        else:
            self.read.add((stage, self.interval))
            self.meets |= any(
                copy.stage == stage and (copy.there is None or copy.there == self.interval)
                for copy in self.sent
            )


def _meets(stages: int, steps: Sequence[Node | Use]) -> bool:
    """Tell whether a thread reads what another sends, or the other way round."""
    run, places = _Run(), _places(stages)
    for turn in range(10):
        for one in steps:
            place = places[one[1]] if isinstance(one, tuple) else Constant(0)
            run.step(one, evaluate(place, {"stage": turn % stages}))
    return run.meets


def test_the_property_has_both_kinds() -> None:
    copies: list[Node | Use] = [("send", "before"), COMMIT]
    assert not _meets(2, [Wait(pending=0), SYNC, ("use", "now"), *copies])
    assert _meets(2, [SYNC, ("use", "now"), *copies])
    assert _meets(2, [Wait(pending=0), ("use", "now"), *copies])

"""Barriers between what threads of a block write and read: enough, and none too many."""

from __future__ import annotations

import pytest

from eatss.lower.instructions import COMBINES
from eatss.lower.instructions.reductions import ATOMIC_ADD
from eatss.lower.kernel.barriers import (
    barrier_faults,
    barriers_in,
    needed_barriers_only,
    without_barrier,
)
from eatss.lower.kernel.nodes import (
    Agreed,
    AllFinite,
    Barrier,
    Copy,
    Element,
    Fixup,
    Flag,
    For,
    If,
    Init,
    Intrinsic,
    Kernel,
    Let,
    Node,
    PartialSum,
    Scope,
    Share,
)
from eatss.lower.transform.chain import with_barriers
from eatss.program import Apply, Constant, IntExpr, Name, Operator, Program
from tests.lower.small_kernels import (
    THREAD,
    ZERO,
    N,
    at,
    buffer,
    loop,
)

A, G, H = (at(buffer(name, "global", 8), N) for name in "AGH")
S, T = (at(buffer(name, "shared", 8), N) for name in "ST")
SYNC = Barrier()


def fill(box: Element) -> Copy:
    return Copy(target=box, source=A)


def use(box: Element) -> Copy:
    return Copy(target=A, source=box)


COMBINE = Intrinsic(instruction=COMBINES["add"], operands=(("target", (S,)), ("value", (A,))))
ADD = Intrinsic(instruction=ATOMIC_ADD, operands=(("target", (S,)), ("value", (A,))))


def turns(*body: Node, first: IntExpr = ZERO) -> For:
    return loop("k", N, *body, lower=first)


OTHER = at(S.buffer, Apply(Operator.SUB, (Constant(63), N)))
TOGETHER = "S is written by several threads at a time"
READ_EARLY = "S is read before all threads have written their part of it"
WRITTEN_EARLY = "S is written while other threads may still read it"
ALONE = "a barrier stands where not all threads of a block get to"


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ((fill(S), SYNC, use(S)), ()),
        ((fill(S), use(S)), (READ_EARLY,)),
        ((fill(S), SYNC, fill(T), use(S)), ()),
        ((fill(S), SYNC, use(S), fill(S), SYNC, use(S)), (WRITTEN_EARLY,)),
        ((turns(fill(S), SYNC, use(S), SYNC),), ()),
        ((turns(fill(S), SYNC, use(S)),), (WRITTEN_EARLY,)),  # the next turn of the loop
        ((turns(SYNC, fill(S)), use(S)), (READ_EARLY,)),
        ((fill(S), turns(SYNC), use(S)), (READ_EARLY,)),  # the loop may not run
        ((If(conditions=(N,), body=(fill(S), SYNC), orelse=(fill(S),)), use(S)), (READ_EARLY,)),
        ((If(conditions=(N,), body=(fill(S),), orelse=(use(S),)),), ()),
        ((fill(S), fill(S), SYNC, use(S)), ()),  # the same threads write the same places
        ((fill(S), Copy(target=OTHER, source=A)), (TOGETHER,)),
        ((fill(S), Init(target=OTHER, value=0)), (TOGETHER,)),
        ((fill(S), Copy(target=S, source=OTHER)), (READ_EARLY,)),
        ((fill(S), ADD), (READ_EARLY, TOGETHER)),
        ((fill(S), SYNC, COMBINE, fill(S)), (WRITTEN_EARLY, TOGETHER)),
        ((If(conditions=(THREAD,), body=(SYNC,)),), (ALONE,)),
        ((turns(SYNC, first=THREAD),), (ALONE,)),
        (
            (
                Let(name="t", value=THREAD),
                Let(name="u", value=Apply(Operator.ADD, (Name("t"), N))),
                If(conditions=(Name("u"),), body=(turns(SYNC),)),
            ),
            (ALONE,),
        ),
    ],
)
def test_faults(body: tuple[Node, ...], faults: tuple[str, ...]) -> None:
    assert barrier_faults(body) == faults


def test_barriers_that_are_not_needed_are_left_out() -> None:
    body = (turns(fill(S), SYNC, use(S), SYNC, fill(T), SYNC, use(T), SYNC),)
    # between a use of S and its next fill stands the barrier behind the fill of T
    assert needed_barriers_only(body) == (turns(fill(S), SYNC, use(S), fill(T), SYNC, use(T)),)
    assert needed_barriers_only((SYNC, SYNC)) == ()


def test_one_barrier_fewer_fails_in_every_kernel(
    generated_kernels: tuple[Program, list[Kernel]],
) -> None:
    for one in generated_kernels[1]:
        assert barrier_faults(one.body) == ()
        for number in range(barriers_in(one.body)):
            fewer = without_barrier(one.body, number)
            assert barrier_faults(fewer), f"{one.name}, barrier {number}"


def vote(box: Element, *, unless: IntExpr = ZERO) -> AllFinite:
    share = Share(count=8, element=at(box.buffer, Name("e")))
    return AllFinite(
        name="finite", unless=unless, counter="e", thread=THREAD, threads=8, shares=(share,)
    )


def test_a_vote_reads_its_boxes_and_all_threads_have_to_get_to_it() -> None:
    assert barrier_faults([fill(S), SYNC, vote(S)]) == ()
    assert "read before" in barrier_faults([fill(S), vote(S)])[0]
    some = If(conditions=(THREAD,), body=(vote(S),))
    assert "a vote stands" in barrier_faults([fill(S), SYNC, some])[0]
    assert "a vote stands" in barrier_faults([fill(S), SYNC, vote(S, unless=THREAD)])[0]


def test_all_threads_have_to_get_to_a_vote_on_a_flag_and_it_is_the_same_for_all_of_them() -> None:
    flag, agreed = Flag(name="exact"), Agreed(name="all_exact", flag="exact")
    then = If(conditions=(Name("all_exact"),), body=(SYNC,))
    assert barrier_faults([flag, agreed, then]) == ()
    some = If(conditions=(THREAD,), body=(agreed,))
    assert "a vote stands" in barrier_faults([flag, some])[0]
    alone = If(conditions=(Name("exact"),), body=(SYNC,))
    assert "a barrier stands" in barrier_faults([flag, alone])[0]


def together(*, number: IntExpr = N, own: IntExpr = ZERO) -> Fixup:
    part = at(buffer("parts", "global", 8), THREAD)
    sums = at(buffer("r", "register", 4), Name("s"))
    one = PartialSum(counters=("s",), extents=(4,), sum=sums, left=part, found=part)
    return Fixup(
        name="whole", number=number, own=own, part="part", thread=THREAD, sums=(one,),
        arrived=at(buffer("arrived", "global", 8), N),
    )  # fmt: skip


APART = "sums are put together where not all threads of a block get to"
SOME = Let(name="t", value=THREAD)


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ((together(),), ()),
        ((If(conditions=(N,), body=(together(),)),), ()),
        ((turns(together()),), ()),
        ((If(conditions=(THREAD,), body=(together(),)),), (APART,)),
        ((turns(together(), first=THREAD),), (APART,)),
        ((together(number=THREAD),), (APART,)),
        ((SOME, together(own=Name("t"))), (APART,)),
        # what it says of a block is the same for all its threads
        ((together(), If(conditions=(Name("whole"),), body=(SYNC,))), ()),
        # threads meet there at times only
        ((fill(S), together(), use(S)), (READ_EARLY,)),
        ((fill(S), SYNC, use(S), together(), fill(S)), (WRITTEN_EARLY,)),
    ],
)
def test_all_threads_have_to_get_to_where_sums_are_put_together(
    body: tuple[Node, ...], faults: tuple[str, ...]
) -> None:
    assert barrier_faults(body) == faults


def phase(name: str, *body: Node) -> Scope:
    return Scope(body=body, phase=name)


def copied(target: Element, source: Element) -> Copy:
    return Copy(target=target, source=source)


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ((phase("1", copied(G, H), copied(G, G)),), ()),
        ((phase("1", copied(G, H)), phase("2", copied(A, H))), ()),
        (
            (phase("1", copied(G, H)), phase("2", copied(A, G))),
            ("G is read before all threads have written their part of it",),
        ),
        ((phase("1", copied(G, H)), SYNC, phase("2", copied(A, G))), ()),
        (
            (phase("1", copied(G, H)), phase("2", copied(H, A))),
            ("H is written while other threads may still read it",),
        ),
        (
            (phase("1", copied(G, H)), phase("2", copied(G, A))),
            ("G is written by several threads at a time",),
        ),
        ((copied(G, H), copied(A, G)), ()),  # no phases: nobody meets there
    ],
)
def test_phases_meet_in_global_memory(body: tuple[Node, ...], faults: tuple[str, ...]) -> None:
    assert barrier_faults(body) == faults
    mended = with_barriers(body)
    assert barrier_faults(mended) == ()
    assert barriers_in(mended) == (1 if faults or SYNC in body else 0)


def scope(name: str, *body: Node) -> Scope:
    return Scope(body=body, apart=name)


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ((scope("1", turns(copied(S, T), copied(T, OTHER))),), 0),  # threads have their own
        ((scope("1", copied(S, T)), scope("2", copied(T, OTHER))), 1),
        ((turns(scope("1", copied(S, T), copied(T, OTHER))),), 1),  # not from turn to turn
        ((turns(scope("1", copied(S, T)), scope("2", copied(T, OTHER))),), 2),
        ((scope("1", fill(S)), turns(scope("2", copied(T, OTHER))), scope("3", use(T))), 2),
    ],
)
def test_threads_meet_between_scopes_that_are_apart(body: tuple[Node, ...], needed: int) -> None:
    mended = with_barriers(body)
    assert barrier_faults(mended) == ()
    assert barriers_in(mended) == needed
    assert bool(barrier_faults(body)) == bool(needed)

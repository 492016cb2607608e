"""Barriers between what threads of a block write and read: enough, and none too many."""

from __future__ import annotations

from typing import Any

import pytest

from eatss.lower.instructions import ATOMICS, COMBINES
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
    Flag,
    Init,
    Intrinsic,
    Kernel,
    Let,
    Share,
)
from eatss.lower.transform.chain import with_barriers
from eatss.program import Apply, IntExpr, Name, Operator, Program
from tests.lower.small_kernels import THREAD, ZERO, N, at, element, loop, nodes, together

S = element("S")
COMBINE = Intrinsic.of(COMBINES["add"], S, element("A"))
ADD = Intrinsic.of(ATOMICS["add"], S, element("A"))
ZERO_OTHER = Init(target=element("S2"), value=0)
TOGETHER = "S is written by several threads at a time"
READ_EARLY = "S is read before all threads have written their part of it"
WRITTEN_EARLY = "S is written while other threads may still read it"
ALONE = "Barrier stands where not all threads of a block get to"
SOME = Let(name="t", value=THREAD)
MORE = Let(name="u", value=Apply(Operator.ADD, (Name("t"), N)))
NAMED: dict[str, Any] = {
    "combine": COMBINE, "add": ADD, "zero": ZERO_OTHER, "n": N, "some": SOME, "more": MORE,
    "thread": THREAD, "u": Name("u"), "from_thread": loop("k", N, Barrier(), lower=THREAD),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("fill S sync use S", ()),
        ("fill S use S", (READ_EARLY,)),
        ("fill S sync fill T use S", ()),
        ("fill S sync use S fill S sync use S", (WRITTEN_EARLY,)),
        ("loop k { fill S sync use S sync }", ()),
        ("loop k { fill S sync use S }", (WRITTEN_EARLY,)),  # the next turn of the loop
        ("loop k { sync fill S } use S", (READ_EARLY,)),
        ("fill S loop k { sync } use S", (READ_EARLY,)),  # the loop may not run
        ("if n { fill S sync } else { fill S } use S", (READ_EARLY,)),
        ("if n { fill S } else { use S }", ()),
        ("fill S fill S sync use S", ()),  # the same threads write the same places
        ("fill S fill S2", (TOGETHER,)),
        ("fill S zero", (TOGETHER,)),
        ("fill S copy S S2", (READ_EARLY,)),
        ("fill S add", (READ_EARLY, TOGETHER)),
        ("fill S sync combine fill S", (WRITTEN_EARLY, TOGETHER)),
        ("if thread { sync }", (ALONE,)),
        ("from_thread", (ALONE,)),
        ("some more if u { loop k { sync } }", (ALONE,)),
    ],
)
def test_faults(text: str, faults: tuple[str, ...]) -> None:
    assert barrier_faults(nodes(text, **NAMED)) == faults


def test_barriers_that_are_not_needed_are_left_out() -> None:
    body = nodes("loop k { fill S sync use S sync fill T sync use T sync }")
    # between a use of S and its next fill stands the barrier behind the fill of T
    needed = nodes("loop k { fill S sync use S fill T sync use T }")
    assert needed_barriers_only(body) == needed
    assert needed_barriers_only(nodes("sync sync")) == ()


def test_one_barrier_fewer_fails_in_every_kernel(
    generated_kernels: tuple[Program, list[Kernel]],
) -> None:
    for one in generated_kernels[1]:
        assert barrier_faults(one.body) == ()
        for number in range(barriers_in(one.body)):
            fewer = without_barrier(one.body, number)
            assert barrier_faults(fewer), f"{one.name}, barrier {number}"


def vote(unless: IntExpr = ZERO) -> AllFinite:
    share = Share(count=8, element=at(S.buffer, Name("e")))
    return AllFinite(
        name="finite", unless=unless, counter="e", thread=THREAD, threads=8, shares=(share,)
    )


VOTE = "AllFinite stands where not all threads of a block get to"
AGREED = Agreed(name="all_exact", flag="exact")


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("fill S sync vote", ()),  # it reads its boxes
        ("fill S vote", (READ_EARLY,)),
        ("fill S sync if thread { vote }", (VOTE,)),
        ("fill S sync vote_of_threads", (VOTE,)),
        ("flag agreed if all_exact { sync }", ()),  # it is the same for all threads
        ("flag if thread { agreed }", (VOTE.replace("AllFinite", "Agreed"),)),
        ("flag if exact { sync }", (ALONE,)),
    ],
)
def test_all_threads_have_to_get_to_a_vote(text: str, faults: tuple[str, ...]) -> None:
    votes: dict[str, Any] = {"vote": vote(), "vote_of_threads": vote(THREAD), "agreed": AGREED}
    names = {name: Name(name) for name in ("exact", "all_exact")}
    found = nodes(text, thread=THREAD, flag=Flag(name="exact"), **votes, **names)
    assert barrier_faults(found) == faults


APART = "Fixup stands where not all threads of a block get to"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("together", ()),
        ("if n { together }", ()),
        ("loop k { together }", ()),
        ("if thread { together }", (APART,)),
        ("from_thread", (APART,)),
        ("of_threads", (APART,)),
        ("some own_of_threads", (APART,)),
        # what it says of a block is the same for all its threads
        ("together if whole { sync }", ()),
        # threads meet there at times only
        ("fill S together use S", (READ_EARLY,)),
        ("fill S sync use S together fill S", (WRITTEN_EARLY,)),
    ],
)
def test_all_threads_have_to_get_to_where_sums_are_put_together(
    text: str, faults: tuple[str, ...]
) -> None:
    own: dict[str, Any] = {
        "together": together(), "of_threads": together(number=THREAD), "whole": Name("whole"),
        "own_of_threads": together(own="t"), "some": SOME, "n": N, "thread": THREAD,
        "from_thread": loop("k", N, together(), lower=THREAD),
    }  # fmt: skip
    assert barrier_faults(nodes(text, **own)) == faults


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("phase 1 { copy G H copy G G }", ()),
        ("phase 1 { copy G H } phase 2 { copy A H }", ()),
        ("phase 1 { copy G H } phase 2 { copy A G }", (READ_EARLY,)),
        ("phase 1 { copy G H } sync phase 2 { copy A G }", ()),
        ("phase 1 { copy H G } phase 2 { copy G A }", (WRITTEN_EARLY,)),
        ("phase 1 { copy G H } phase 2 { copy G A }", (TOGETHER,)),
        ("copy G H copy A G", ()),  # no phases: nobody meets there
    ],
)
def test_phases_meet_in_global_memory(text: str, faults: tuple[str, ...]) -> None:
    body = nodes(text)
    assert barrier_faults(body) == tuple(one.replace("S", "G", 1) for one in faults)
    mended = with_barriers(body)
    assert barrier_faults(mended) == ()
    assert barriers_in(mended) == (1 if faults or "sync" in text else 0)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("apart 1 { loop k { copy S T copy T S2 } }", 0),  # threads have their own
        ("apart 1 { copy S T } apart 2 { copy T S2 }", 1),
        ("loop k { apart 1 { copy S T copy T S2 } }", 1),  # not from turn to turn
        ("loop k { apart 1 { copy S T } apart 2 { copy T S2 } }", 2),
        ("apart 1 { fill S } loop k { apart 2 { copy T S2 } } apart 3 { use T }", 2),
    ],
)
def test_threads_meet_between_scopes_that_are_apart(text: str, needed: int) -> None:
    body = nodes(text)
    mended = with_barriers(body)
    assert barrier_faults(mended) == ()
    assert barriers_in(mended) == needed
    assert bool(barrier_faults(body)) == bool(needed)

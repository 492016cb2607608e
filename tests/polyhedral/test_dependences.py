"""Dependences are those of a run, and those of large stencils too."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import islpy as isl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.polyhedral import dependences
from eatss.polyhedral.dependences import compute_dependences
from eatss.polyhedral.schedule import generalise, instantiate_dependences
from eatss.polyhedral.tree import follows
from tests.examples import examples

# -- Dependences equal what running the program shows.


Pairs = set[tuple[Any, Any]]


def _expected(events: list[Any]) -> tuple[Pairs, Pairs, Pairs]:
    flow: Pairs = set()
    anti: Pairs = set()
    output: Pairs = set()
    writer: dict[Any, Any] = {}
    readers: dict[Any, set[Any]] = {}
    for instance, written, used in events:
        for element in used:
            if element in writer:
                flow.add((writer[element], instance))
        if written in writer:
            output.add((writer[written], instance))
        anti |= {(reader, instance) for reader in readers.get(written, ())}
        readers[written] = set()
        writer[written] = instance
        for element in used:
            if element != written:
                readers.setdefault(element, set()).add(instance)
    return flow, anti, output


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_dependences_equal_those_of_a_run(
    data: st.DataObject,
    small_programs: st.SearchStrategy[Any],
    scop_of: Callable[..., Any],
    trace: Callable[..., Any],
    listed: Callable[..., Pairs],
) -> None:
    source, local = data.draw(small_programs)
    found = compute_dependences(scop_of(source, local=local))
    flow, anti, output = _expected(trace(source, {}))
    assert listed(found.flow) == flow
    assert listed(found.output) == output
    assert listed(found.anti) == anti


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_sizes_put_back_give_the_dependences_of_the_source(
    data: st.DataObject, small_programs: st.SearchStrategy[Any], scop_of: Callable[..., Any]
) -> None:
    source, local = data.draw(small_programs)
    scop = scop_of(source, local=local)
    symbolic = generalise(scop)
    direct = compute_dependences(scop)
    back = instantiate_dependences(compute_dependences(symbolic.scop), symbolic.values)
    assert back.flow.is_equal(direct.flow)
    assert back.output.is_equal(direct.output)
    assert back.forced.is_equal(direct.forced)
    assert back.order.is_equal(direct.order)


def test_a_local_scalar_is_neither_live_in_nor_live_out(scop_of: Callable[..., Any]) -> None:
    source = "for i in range(0, N):\n    t = A[i]\n    B[i] = t\n"
    local = compute_dependences(scop_of(source, parameters=["N"], local=["t"]))
    outer = compute_dependences(scop_of(source, parameters=["N"]))
    assert local.forced.is_empty()
    assert not outer.forced.is_empty()


def test_flow_of_a_matrix_product(scop_of: Callable[..., Any]) -> None:
    source = (
        "for i in range(0, N):\n  for j in range(0, N):\n    C[i,j] = 0\n"
        "    for k in range(0, N):\n      C[i,j] += A[i,k]*B[k,j]\n"
    )
    found = compute_dependences(scop_of(source, parameters=["N"]))
    text = (
        "[N] -> { S0[i,j] -> S1[i,j,0] : 0 <= i,j < N;"
        " S1[i,j,k] -> S1[i,j,k+1] : 0 <= i,j,k < N and k + 1 < N }"
    )
    assert found.flow.is_equal(type(found.flow).read_from_str(found.flow.get_ctx(), text))


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_where_exact_dependences_are_too_hard_more_are_respected(
    data: st.DataObject, small_programs: st.SearchStrategy[Any], scop_of: Callable[..., Any]
) -> None:
    source, local = data.draw(small_programs)
    scop = scop_of(source, local=local)
    exact = compute_dependences(scop)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependences, "_STEP", 1)
        more = compute_dependences(replace(scop))  # of which nothing is known yet
    assert more.flow.is_equal(exact.flow)
    for name in ("anti", "output", "forced", "order"):
        assert getattr(exact, name).is_subset(getattr(more, name)), name


@pytest.mark.parametrize("seed", range(40))
def test_what_follows_what_is_as_isl_orders_times(seed: int) -> None:
    dice = random.Random(seed)
    form = "{a} * i + {b} * j + {c}"
    times = [
        ", ".join(form.format(**{k: dice.randint(-1, 2) for k in "abc"}) for _ in range(3))
        for _ in "ST"
    ]
    space = "0 <= i < n and 0 <= j < 9"
    schedule = isl.UnionMap(
        f"[n] -> {{ S[i, j] -> [{times[0]}] : {space}; T[i, j] -> [{times[1]}] : {space} }}"
    )
    step = f"i' = i + {dice.randint(0, 2)} and j' >= j + {dice.randint(-2, 1)}"
    ends = f"{space} and 0 <= i' < n and 0 <= j' < 9 and {step}"
    pairs = "; ".join(f"{a}[i, j] -> {b}[i', j'] : {ends}" for a in "ST" for b in "ST" if a <= b)
    needed = isl.UnionMap(f"[n] -> {{ {pairs} }}")
    time = isl.MultiUnionPwAff.from_union_map(schedule)
    wrong = needed.lex_ge_at_multi_union_pw_aff(time)
    assert follows(needed, time) == wrong.is_empty()
    assert follows(needed.subtract(wrong), time)

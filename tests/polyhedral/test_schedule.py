"""The new schedule computes what the program computes, in bounded work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import islpy as isl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError, InternalError
from eatss.base.forked import ForkEndedError
from eatss.polyhedral import dependences, schedule, scheduling
from eatss.polyhedral.dependences import at_most, bounded_work, compute_dependences, ran_out
from eatss.polyhedral.schedule import generalise, schedule_scop
from eatss.polyhedral.scheduling import check_legality, in_tilable_bands
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.tree import bands, coincident
from tests.examples import examples

STENCIL = (
    "for t in range(0, T):\n"
    "    for i in range(1, N-1):\n        B[i] = A[i-1] + A[i] + A[i+1]\n"
    "    for i in range(1, N-1):\n        A[i] = B[i]\n"
)


def _memory(events: list[Any], order: list[Any], local: tuple[str, ...]) -> dict[Any, Any]:
    """Run instances in ``order``; a value is known by who wrote it and what it read."""
    by_instance = {instance: (written, used) for instance, written, used in events}
    memory: dict[Any, Any] = {}
    for instance in order:
        written, used = by_instance[instance]
        memory[written] = hash((instance, tuple(memory.get(e, e) for e in used)))
    return {element: value for element, value in memory.items() if element[0] not in local}


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_running_in_the_new_order_leaves_the_same_memory(
    data: st.DataObject,
    small_programs: st.SearchStrategy[Any],
    scop_of: Callable[..., Any],
    trace: Callable[..., Any],
    listed: Callable[..., Any],
) -> None:
    source, local = data.draw(small_programs)
    _check_memory(source, local, scop_of, trace, listed)


def test_a_read_of_a_local_before_any_write_stays_before_later_writes(
    scop_of: Callable[..., Any], trace: Callable[..., Any], listed: Callable[..., Any]
) -> None:
    source = "for i in range(0, 3):\n    A[0+i] = s\ns = A[0]\n"
    _check_memory(source, ("s",), scop_of, trace, listed)


def _check_memory(
    source: str,
    local: tuple[str, ...],
    scop_of: Callable[..., Any],
    trace: Callable[..., Any],
    listed: Callable[..., Any],
) -> None:
    events = trace(source, {})
    scheduled = schedule_scop(scop_of(source, local=local))
    time = dict(listed(scheduled.schedule.get_map().intersect_domain(scheduled.scop.domain)))
    instances = [instance for instance, _, _ in events]
    assert set(time) == set(instances)
    new_order = sorted(instances, key=lambda instance: time[instance][1])
    assert _memory(events, new_order, local) == _memory(events, instances, local)


@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_more_dependences_than_there_are_leave_the_same_memory_too(
    data: st.DataObject,
    small_programs: st.SearchStrategy[Any],
    scop_of: Callable[..., Any],
    trace: Callable[..., Any],
    listed: Callable[..., Any],
) -> None:
    source, local = data.draw(small_programs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependences, "_STEP", 1)
        _check_memory(source, local, scop_of, trace, listed)


def test_where_isl_comes_to_no_schedule_the_order_of_the_source_stays(
    scop_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def end(*_: object) -> None:
        tried.append(1)
        raise ForkEndedError("so it is")

    monkeypatch.setattr(scheduling, "run_forked", end)
    scheduled = schedule_scop(scop_of(STENCIL, parameters=["T", "N"]))
    assert len(tried) == 3
    assert scheduled.source_order
    assert [kernel.host_loops for kernel in scheduled.kernels] == [("t",), ("t",)]


def test_short_loops_that_overwrite_a_local_are_scheduled_in_bounded_work(
    monkeypatch: pytest.MonkeyPatch,
    scop_of: Callable[..., Any],
    trace: Callable[..., Any],
    listed: Callable[..., Any],
) -> None:
    """Here isl became ever slower and did not end in ten minutes."""
    source = (
        "for i in range(1, 4, 2):\n    for j in range(0, 4, 2):\n        for k in range(0, 4):\n"
        "            s = A[2+i+j] + B[0+i+j,2+3-i+j+k]\n"
    )
    monkeypatch.setattr(dependences, "default_operations", lambda _: 200_000)
    schedule_scop(scop_of(source, local=("s",)))
    _check_memory(source, ("s",), scop_of, trace, listed)


def test_where_no_work_is_left_for_a_schedule_the_order_of_the_source_is_kept(
    monkeypatch: pytest.MonkeyPatch,
    scop_of: Callable[..., Any],
) -> None:
    def hard(scop: Scop, *_: object) -> None:
        while not ran_out(scop):
            with suppress(isl.Error):
                compute_dependences(replace(scop))  # anew each time
        raise isl.Error("maximal number of operations exceeded")

    monkeypatch.setattr(schedule, "check_legality", hard)
    monkeypatch.setattr(dependences, "default_operations", lambda _: 500_000)
    found = schedule_scop(scop_of(STENCIL, parameters=["T", "N"]))
    assert [kernel.host_loops for kernel in found.kernels] == [("t",), ("t",)]
    assert all(loop.parallel for kernel in found.kernels for loop in kernel.loops)
    assert found.source_order
    general = generalise(found.scop).scop
    needed = compute_dependences(general)
    check_legality(general, needed, scheduling.original_with_marks(general, needed))


def test_a_step_that_runs_out_leaves_the_rest_to_the_work_around_it(
    scop_of: Callable[..., Any],
) -> None:
    scop = scop_of(STENCIL, parameters=["T", "N"])
    context = scop.isl_context
    steps = 0

    def run_out() -> None:
        nonlocal steps
        while not ran_out(scop):
            steps += 1
            with pytest.raises(isl.Error), at_most(context, 1000):
                compute_dependences(scop)
        compute_dependences(scop)

    with pytest.raises(InputError) as caught, bounded_work(scop, 40_000):
        run_out()
    assert 10 < steps < 45  # what a step spends counts for the work around it
    assert caught.value.code == "EATSS-P001"
    assert context.get_max_operations() == 0
    compute_dependences(scop)


def test_a_private_scalar_keeps_no_loops_of_the_source_apart(scop_of: Callable[..., Any]) -> None:
    loops = "for i in range(0, N):\n    for j in range(0, N):\n"
    body = "        t = A[i,j]\n        B[i,j] = t*t\n"
    scop = scop_of(loops + body, parameters=["N"], local=["t"])
    (band,) = bands(in_tilable_bands(scop, compute_dependences(scop)).get_root())
    assert coincident(band) == [True, True]


def test_a_digit_of_a_subscript_is_no_size(scop_of: Callable[..., Any]) -> None:
    loops = "for p in range(0, 2):\n    for q in range(0, 2):\n        for i in range(0, N):\n"
    body = "            for j in range(0, N):\n                B[2*i+p,2*j+q] = A[p,q,i,j]\n"
    (kernel,) = schedule_scop(scop_of(loops + body, parameters=["N"])).kernels
    assert [loop.parallel for loop in kernel.loops] == [True] * 4


def test_a_private_scalar_does_not_serialise_a_loop(scop_of: Callable[..., Any]) -> None:
    source = "for i in range(0, N):\n    t = A[i]\n    B[i] = t*t\n"
    (kernel,) = schedule_scop(scop_of(source, parameters=["N"], local=["t"])).kernels
    assert [loop.parallel for loop in kernel.loops] == [True]


def test_where_isl_gives_up_or_errs_the_original_order_stands(scop_of: Callable[..., Any]) -> None:
    gives_up = (
        "for i in range(0, 3):\n    for j in range(0, 3):\n        for k in range(0, 3):\n"
        "            A[2*i+j] = s\n    for j in range(i, 4):\n        A[2*i+j] = s\n"
    )
    errs = (
        "for i in range(0, 3):\n    for j in range(0, 3):\n        A[0] = A[0]\n"
        "for i in range(0, 3):\n    for j in range(0, 3):\n        for k in range(0, 3):\n"
        "            A[k] = A[j]\n            A[j] = A[0]\n    A[1] = A[0]\n"
    )
    for source in (gives_up, errs):
        scheduled = schedule_scop(scop_of(source))
        check_legality(scheduled.scop, scheduled.dependences, scheduled.schedule)


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        ('{ domain: "[N] -> { S0[i] : 0 <= i < N - 1 }",'
         ' child: { schedule: "[{ S0[i] -> [(i)] }]" } }', "EATSS-P901"),
        ('{ domain: "[N] -> { S0[i] : 0 <= i < N }" }', "EATSS-P901"),
        ('{ domain: "[N] -> { S0[i] : 0 <= i < N }",'
         ' child: { schedule: "[{ S0[i] -> [(-i)] }]" } }', "EATSS-P901"),
        ('{ domain: "[N] -> { S0[i] : 0 <= i < N }",'
         ' child: { schedule: "[{ S0[i] -> [(i)] }]", coincident: [ 1 ] } }', "EATSS-P901"),
    ],
)  # fmt: skip
def test_a_wrong_schedule_is_caught(scop_of: Callable[..., Any], tree: str, code: str) -> None:
    scop = scop_of("for i in range(0, N):\n    A[i+1] = A[i]\n", parameters=["N"])
    wrong = isl.Schedule.read_from_str(scop.isl_context, tree)
    with pytest.raises(InternalError) as caught:
        check_legality(scop, compute_dependences(scop), wrong)
    assert caught.value.code == code


def test_overlapping_live_ranges_are_caught(scop_of: Callable[..., Any]) -> None:
    source = "for i in range(0, N):\n    t = A[i]\n    B[i] = t\n"
    scop = scop_of(source, parameters=["N"], local=["t"])
    wrong = isl.Schedule.read_from_str(
        scop.isl_context,
        '{ domain: "[N] -> { S0[i] : 0 <= i < N; S1[i] : 0 <= i < N }", child: { sequence: ['
        ' { filter: "{ S0[i] }", child: { schedule: "[{ S0[i] -> [(i)] }]" } },'
        ' { filter: "{ S1[i] }", child: { schedule: "[{ S1[i] -> [(i)] }]" } } ] } }',
    )
    with pytest.raises(InternalError) as caught:
        check_legality(scop, compute_dependences(scop), wrong)
    assert caught.value.code == "EATSS-P901"

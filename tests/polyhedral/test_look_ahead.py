"""What begins a step joins the rows of the step before, and only where that is legal."""

from __future__ import annotations

import islpy as isl
import pytest

from eatss.polyhedral import look_ahead
from eatss.polyhedral.fused_nests import with_fused_nests
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.schedule import schedule_scop
from tests.polyhedral.executing import executed
from tests.polyhedral.test_fused_nests import as_scheduled, region

ARRAYS = "double A[6][6], double Q[6][6], double R[6][6], double n[6], double v[6]"
STEPS = """for (int k = 0; k < 5; k++) {
    n[k] = 0;
    for (int i = 0; i < 6; i++) n[k] += A[i][%(own)s] * A[i][%(own)s];
    for (int i = 0; i < 6; i++) %(q)s = A[i][%(own)s] * n[k];
    for (int j = %(own)s + 1; j < 6; j++) {
        R[k][j] = 0;
        for (int i = 0; i < 6; i++) R[k][j] += %(q)s * A[i][j];
        for (int i = 0; i < 6; i++) A[i][j] = A[i][j] - %(q)s * R[k][%(factor)s];
    }
}"""


def steps(own: str = "k", q: str = "Q[i][k]", factor: str = "j") -> str:
    return STEPS % {"own": own, "q": q, "factor": factor}


def ahead(loops: str) -> ScheduledScop:
    return with_fused_nests(schedule_scop(region(loops, ARRAYS)), "ahead")


@pytest.mark.parametrize("own", ["k", "k + 1"])
def test_the_norm_of_a_column_is_taken_where_the_column_is_made(own: str) -> None:
    loops = steps(own)
    scheduled = ahead(loops)
    assert executed(as_scheduled(scheduled)) == executed(region(loops, ARRAYS))
    assert [one.statements for one in scheduled.kernels] == [
        ("S3",), ("S4",), ("S5",), ("S0",), ("S1",), ("S2",)
    ]  # fmt: skip
    assert all(one.host_loops == ("k",) and one.loops[0].parallel for one in scheduled.kernels)
    shifts = {str(one.launch_domain).split("{")[1] for one in scheduled.kernels[:3]}
    assert len(shifts) == 1
    norm = scheduled.kernels[4].references
    assert {one.subscripts[-1].coefficients for one in norm if one.array == "A"}  # by its row


@pytest.mark.parametrize(
    "loops",
    [
        steps(q="v[i]"),  # all rows read what the next step writes
        steps(factor="5"),  # a row reads what another makes
        steps().replace("n[k] = 0;", "n[k] = A[0][5];"),  # not from its own column
    ],
)
def test_steps_that_need_more_than_a_row_stay_apart(loops: str) -> None:
    scheduled = schedule_scop(region(loops, ARRAYS))
    assert with_fused_nests(scheduled, "ahead") is scheduled


@pytest.mark.parametrize("shift", [0, 2])
def test_steps_too_far_ahead_are_refused(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    less = look_ahead._less

    def shifted(function: isl.UnionPwAff, value: isl.Val) -> isl.UnionPwAff:
        return less(function, value.mul(isl.Val(shift, value.get_ctx())))

    monkeypatch.setattr(look_ahead, "_less", shifted)
    monkeypatch.setattr(look_ahead, "_has_rows", lambda *_: True)
    scheduled = schedule_scop(region(steps("k + 1"), ARRAYS))
    assert with_fused_nests(scheduled, "ahead") is scheduled


def test_a_step_that_is_rows_as_it_is_keeps_the_order_of_the_source() -> None:
    loops = """for (int l = 1; l < 6; l++) for (int i = 0; i < 6 - l; i++) {
        A[i][i + l] = 9;
        for (int k = i; k < i + l; k++)
            A[i][i + l] = A[i][i + l] < A[i][k] + A[k + 1][i + l] ? A[i][i + l]
                                                                  : A[i][k] + A[k + 1][i + l];
    }"""
    apart, scheduled = schedule_scop(region(loops, ARRAYS)), ahead(loops)
    assert executed(as_scheduled(scheduled)) == executed(region(loops, ARRAYS))
    assert [one.host_loops for one in apart.kernels] == [(), ("l",)]
    assert [one.host_loops for one in scheduled.kernels] == [("l",), ("l",)]

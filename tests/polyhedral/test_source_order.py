"""Steps whose nests are rows keep the order of the source."""

from __future__ import annotations

from eatss.polyhedral.fused_nests import with_fused_nests
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.schedule import schedule_scop
from tests.polyhedral.executing import as_scheduled, executed
from tests.polyhedral.executing import region_of as region

ARRAYS = "double A[6][6], double Q[6][6], double R[6][6], double n[6], double v[6]"
STEPS = """for (int k = 0; k < 5; k++) {
    for (int i = 0; i < 6; i++) v[i] = A[i][k] * n[k];
    for (int j = k + 1; j < 6; j++)
        for (int i = 0; i < 6; i++) A[i][j] = A[i][j] - v[5 - i];
}"""


def in_order(loops: str) -> ScheduledScop:
    return with_fused_nests(schedule_scop(region(loops, ARRAYS)), "source")


def test_steps_that_need_more_than_a_row_stay_apart() -> None:
    scheduled = schedule_scop(region(STEPS, ARRAYS))  # a row reads what another makes
    assert with_fused_nests(scheduled, "source") is scheduled


def test_a_step_that_is_rows_as_it_is_keeps_the_order_of_the_source() -> None:
    loops = """for (int l = 1; l < 6; l++) for (int i = 0; i < 6 - l; i++) {
        A[i][i + l] = 9;
        for (int k = i; k < i + l; k++)
            A[i][i + l] = A[i][i + l] < A[i][k] + A[k + 1][i + l] ? A[i][i + l]
                                                                  : A[i][k] + A[k + 1][i + l];
    }"""
    apart, scheduled = schedule_scop(region(loops, ARRAYS)), in_order(loops)
    assert executed(as_scheduled(scheduled)) == executed(region(loops, ARRAYS))
    assert [one.host_loops for one in apart.kernels] == [(), ("l",)]
    assert [one.host_loops for one in scheduled.kernels] == [("l",), ("l",)]

"""Nests that share a band: the same instances, the same values, and only where that is legal."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import IllegalScheduleError, InternalError, internal_error
from eatss.base.targets import FUSIONS, Fusion
from eatss.polyhedral import fused_nests
from eatss.polyhedral.fused_nests import with_fused_nests
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.schedule import cut_again, schedule_scop
from eatss.polyhedral.scop import Scop
from tests.examples import examples
from tests.polyhedral.executing import as_scheduled, executed, region_of

ARRAYS = "double A[6][6], double B[6][6], double C[6][6], double D[6][6], double b[6], double c[6]"
PRODUCT = "for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) { C[i][j] = 0; %s }"
SUM = "for (int k = 0; k < 5; k++) C[i][j] += A[i][k] * B[k][j];"
USE = "for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) %s"


def region(loops: str, arrays: str = ARRAYS, before: str = "") -> Scop:
    return region_of(loops, arrays, before)


def fused(loops: str, fusion: Fusion = "users") -> ScheduledScop:
    return with_fused_nests(schedule_scop(region(loops)), fusion)


def cuts(scheduled: ScheduledScop) -> list[set[str]]:
    return [set(kernel.statements) for kernel in scheduled.kernels]


SWEEPS = (
    "for (int i = 0; i < 6; i++) for (int j = 1; j < 6; j++) C[i][j] = C[i][j - 1] + A[i][j];"
    "for (int i = 0; i < %d; i++) for (int j = 4; j >= 0; j--) D[i][j] = D[i][j + 1] + %s[i][j];"
)


@pytest.mark.parametrize(("rows", "read", "shared"), [(6, "A", 1), (3, "A", 1), (6, "C", 2)])
def test_recurrences_are_side_by_side_where_they_need_nothing_of_each_other(
    rows: int, read: str, shared: int
) -> None:
    loops = SWEEPS % (rows, read) + USE % "B[i][j] = C[i][j] + D[i][j];"
    scheduled = fused(loops, "beside")
    assert executed(as_scheduled(scheduled)) == executed(region(loops))
    assert len(scheduled.kernels) == shared + 1
    if shared == 1:
        assert scheduled.kernels[0].loops[0].trip_count == 6 + rows


@pytest.mark.parametrize(
    ("use", "joined"),
    [
        ("B[i][j] = C[i][j] + D[i][j];", True),
        ("D[i][j] = C[i][j] - D[i][j];", True),
        ("B[j][i] = D[j][i];", True),
        ("B[i][j] = D[i][5 - j] * b[j];", True),
        ("A[i][j] = b[i];", True),  # what the sweeps have read
        ("B[i][j] = C[i][j] + D[j][i];", True),  # of one of them
        ("B[i][j] = C[i][j] + C[i][5 - j] + D[i][0];", False),  # the later one is no function
        ("B[i][j] = D[i][0];", False),  # all in one step
        ("B[i][j] = A[i][j];", False),
    ],
)
def test_what_uses_a_recurrence_runs_in_its_steps(use: str, *, joined: bool) -> None:
    loops = SWEEPS % (6, "A") + USE % use
    apart, scheduled = schedule_scop(region(loops)), fused(loops, "steps")
    assert len(scheduled.kernels) == len(apart.kernels) - joined
    assert executed(as_scheduled(scheduled)) == executed(region(loops))
    if joined:
        (kernel,) = (one for one in scheduled.kernels if "S2" in one.statements)
        assert [loop.parallel for loop in kernel.loops] == [True, False]


@given(
    st.sampled_from(["C[i][j]", "C[i][j + 1]", "C[i + 1][j]", "C[j][i]", "C[i][4 - j]", "A[i][j]"]),
    st.sampled_from(["D[i][j]", "D[i][j + 1]", "D[j][i]", "D[i][4 - j]", "b[j]"]),
    st.sampled_from(["B[i][j]", "C[i][j]", "D[i][j]", "A[i][j]", "A[i][j + 1]", "B[i][4 - j]"]),
    st.sampled_from(["5", "4"]),
    st.booleans(),
)
@settings(max_examples=examples(12), deadline=None)
def test_steps_of_recurrences_leave_the_same_values(
    read: str, other: str, target: str, rows: str, turned: bool
) -> None:
    heads = [f"for (int i = 0; i < {rows}; i++)", "for (int j = 0; j < 5; j++)"]
    use = "".join(reversed(heads) if turned else heads)
    loops = SWEEPS % (6, "A") + f"{use} {target} = {read} + {other};"
    assert executed(as_scheduled(fused(loops, "steps"))) == executed(region(loops))


def test_a_step_before_what_it_needs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled = schedule_scop(region(SWEEPS % (6, "A") + USE % "B[i][j] = C[i][j] + D[i][j];"))
    earlier = isl.UnionMap.lexmin
    monkeypatch.setattr(isl.UnionMap, "lexmax", lambda steps: _one_earlier(earlier(steps)))
    refused = refusals(monkeypatch)
    assert with_fused_nests(scheduled, "steps") is scheduled
    assert refused


def _one_earlier(steps: isl.UnionMap) -> isl.UnionMap:
    back = isl.UnionMap.read_from_str(steps.get_ctx(), "{ [t] -> [t - 1] }")
    return steps.apply_range(back)


@pytest.mark.parametrize(
    "use",
    [
        "C[i][j] = C[i][j] > 0 ? C[i][j] : 0;",
        "D[i][j] = C[i][j] + b[j] + A[i][j];",
        "D[j][i] = C[i][j] * c[i];",
        "A[i][j] = C[i][j];",  # behind the last iteration, and yet in front of other rows' sums
    ],
)
def test_what_uses_a_sum_is_behind_its_last_iteration(use: str) -> None:
    loops = PRODUCT % SUM + USE % use
    scheduled = fused(loops)
    assert executed(as_scheduled(scheduled)) == executed(region(loops))
    if "A[i][j] =" in use:
        assert len(scheduled.kernels) > 1
        return
    (kernel,) = scheduled.kernels
    assert [loop.parallel for loop in kernel.loops] == [True, True, False]
    assert kernel.loops[2].trip_count == 5
    assert [one.array for one in kernel.reductions] == ["C"]


@pytest.mark.parametrize(
    "use",
    [
        "D[i][j] = C[i][j] + C[i][0];",
        "D[i][j] = C[i][j] + C[j][i];",
        "b[j] += C[i][j];",
    ],
)
def test_what_needs_other_points_stays_apart(use: str) -> None:
    scheduled = fused(PRODUCT % SUM + USE % use)
    assert all(not {"S1", "S2"} <= own for own in cuts(scheduled))


def test_results_of_one_reading_share_a_nest_only_where_asked_for() -> None:
    two = "for (int k = 0; k < 5; k++) { C[i][j] += A[i][k] * B[k][j]; D[i][j] += A[i][k] * b[k]; }"
    loops = PRODUCT % two
    assert len(fused(loops).kernels) == 2
    both = fused(loops, "all")
    assert len(both.kernels) == 1
    assert sorted(one.array for one in both.kernels[0].reductions) == ["C", "D"]
    assert executed(as_scheduled(both)) == executed(region(loops))


def test_nests_that_read_an_array_at_other_points_stay_apart() -> None:
    loops = (
        "for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) b[i] += A[i][j];"
        "for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) c[i] += A[j][i];"
    )
    assert len(fused(loops, "all").kernels) == 2


@pytest.mark.parametrize(("read", "kernels"), [("A[i][j]", 1), ("A[j][i]", 2)])
def test_maps_that_read_the_same_are_one(read: str, kernels: int) -> None:
    loops = USE % f"{{ C[i][j] = A[i][j] * b[j]; D[i][j] = {read} * c[j]; }}"
    assert len(fused(loops).kernels) == 2
    both = fused(loops, "all")
    assert len(both.kernels) == kernels
    assert executed(as_scheduled(both)) == executed(region(loops))


def test_loops_that_take_turns_are_parted() -> None:
    loops = """
        for (int i = 0; i < 6; i++) {
            b[i] = A[i][0];
            for (int j = 1; j < 6; j++) b[i] = A[i][j] > b[i] ? A[i][j] : b[i];
            c[i] = 0;
            for (int j = 0; j < 6; j++) c[i] += A[i][j] - b[i];
        }"""
    together = schedule_scop(region(loops))
    assert any({"S1", "S3"} <= own for own in cuts(together))
    apart = fused(loops, "rows")
    assert not any({"S1", "S3"} <= own for own in cuts(apart))
    assert executed(as_scheduled(apart)) == executed(region(loops))


def test_any_size_is_assumed_to_have_no_negative_sum() -> None:
    before = "#define NI 60\n"
    arrays = "int n, double C[n][n], double A[n][NI], double B[NI][n]"
    sums = "for (int k = 0; k < n; k++) C[i][j] += A[i][j] * B[j][i];"
    head = "for (int i = 0; i < NI; i++) for (int j = 0; j < NI; j++)"
    loops = f"{head} {{ C[i][j] = 0; {sums} }} {head} C[i][j] = C[i][j] > 0 ? C[i][j] : 0;"
    scheduled = with_fused_nests(schedule_scop(region(loops, arrays, before)), "users")
    assert len(scheduled.kernels) == 1
    assert scheduled.assumes is not None
    (bounds,) = scheduled.assumes.get_basic_sets()
    assert bounds.is_equal(isl.BasicSet.read_from_str(bounds.get_ctx(), "[n] -> { : n >= 0 }"))
    assert [one.array for one in scheduled.kernels[0].reductions] == ["C"]


@given(
    st.sampled_from(["C[i][j]", "D[i][j]", "D[j][i]", "b[j]", "C[j][i]", "A[i][j]"]),
    st.sampled_from(["C[i][j]", "D[i][j]", "C[j][i]", "C[i][0]", "b[i]"]),
    st.sampled_from(["C[i][j]", "D[j][i]", "D[i][j]", "c[i]"]),
    st.sampled_from(["6", "5"]),
    st.sampled_from(FUSIONS),
    st.booleans(),
)
@settings(max_examples=examples(8), deadline=None)
def test_nests_leave_the_same_values(
    target: str, read: str, other: str, last: str, fusion: Fusion, turned: bool
) -> None:
    heads = [f"for (int i = 0; i < {last}; i++)", "for (int j = 0; j < 6; j++)"]
    use = "".join(reversed(heads) if turned else heads)
    loops = PRODUCT % SUM + f"{use} {target} = {read} + {other};" + USE % "D[i][j] -= C[i][j];"
    assert executed(as_scheduled(fused(loops, fusion))) == executed(region(loops))


def test_an_epilogue_in_front_of_the_last_iteration_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_end = fused_nests._at_end
    early = lambda *where, last: at_end(*where, last=False)  # noqa: E731
    scheduled = schedule_scop(region(PRODUCT % SUM + USE % "C[i][j] = C[i][j] > 0 ? C[i][j] : 0;"))
    monkeypatch.setattr(fused_nests, "_at_end", early)
    refused = refusals(monkeypatch)
    assert with_fused_nests(scheduled, "users") is scheduled
    assert refused


def refusals(monkeypatch: pytest.MonkeyPatch) -> list[IllegalScheduleError]:
    """Return a list that gets what is said of schedules that are not legal."""
    refused: list[IllegalScheduleError] = []

    def noted(*args: object) -> ScheduledScop:
        try:
            return cut_again(*args)  # type: ignore[arg-type]
        except IllegalScheduleError as error:
            refused.append(error)
            raise

    monkeypatch.setattr(fused_nests, "cut_again", noted)
    return refused


def test_a_fault_of_the_check_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled = schedule_scop(region(PRODUCT % SUM + USE % "C[i][j] = C[i][j] > 0 ? C[i][j] : 0;"))

    def losing(*_: object) -> ScheduledScop:
        raise internal_error("EATSS-P901", "a statement instance is lost", span=None)

    monkeypatch.setattr(fused_nests, "cut_again", losing)
    with pytest.raises(InternalError):
        with_fused_nests(scheduled, "users")


@pytest.mark.parametrize("use", ["b[j] += C[i][j];", "c[i] = fmax(c[i], C[i][j]);"])
def test_a_reduction_of_what_a_nest_makes_shares_its_points(use: str) -> None:
    loops = "for (int i = 0; i < 6; i++) b[i] = c[i] = 0;".replace("b[i] = c[i]", use[0] + "[i]")
    loops = PRODUCT % SUM + loops + USE % use
    scheduled = fused(loops, "sums")
    assert cuts(scheduled)[-1] == {"S0", "S1", "S3"}
    assert [one.name for one in scheduled.scop.statements if one.combined] == ["S3"]
    assert executed(as_scheduled(scheduled)) == executed(region(loops))


@pytest.mark.parametrize(
    "use",
    [
        "{ b[j] += C[i][j]; D[i][j] = b[j]; }",  # parts are used
        "{ C[i][j] += b[j]; b[j] += C[i][j]; }",
        "b[j] = 2 * b[j] + C[i][j];",
    ],
)
def test_what_needs_the_order_of_a_reduction_keeps_nests_apart(use: str) -> None:
    scheduled = fused(PRODUCT % SUM + USE % use, "sums")
    assert not any(one.combined for one in scheduled.scop.statements)


@pytest.mark.parametrize(
    ("term", "is_shared"),
    [
        ("A[i][j] * B[j][i]", True),
        ("A[i][j] * B[i][j] * b[i]", False),  # lanes along j find neighbours
        ("A[i][0] * B[0][i]", False),
        ("A[i][j] * B[j][i] * c[0]", False),
    ],
)
def test_lanes_lie_along_both_loops_where_neighbours_do(term: str, *, is_shared: bool) -> None:
    loops = "c[0] = 0;" + USE % f"c[0] += {term};"
    scheduled = fused(loops, "sums")
    assert [one.combined for one in scheduled.scop.statements] == [False, is_shared]
    assert executed(as_scheduled(scheduled)) == executed(region(loops))


def test_nests_begin_with_the_loops_that_others_have_alone() -> None:
    add = USE % "b[j] += A[i][j];"
    loops = f"for (int j = 0; j < 6; j++) b[j] = 0; {add} {USE % 'C[i][j] = A[i][j] * b[j];'}"
    plain, scheduled = schedule_scop(region(loops)), fused(loops, "rows")
    assert [kernel.loops[0].name for kernel in plain.kernels] == ["j", "i"]
    assert [kernel.loops[0].name for kernel in scheduled.kernels] == ["j", "j"]
    assert executed(as_scheduled(scheduled)) == executed(region(loops))
    others = fused(loops.replace("A[i][j] * b[j]", "A[i][j] * b[5 - j]"), "rows")
    assert [kernel.loops[0].name for kernel in others.kernels] == ["j", "i"]

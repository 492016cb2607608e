"""Statements cut where they meet what they read: the same instances, the same values."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InternalError
from eatss.base.shipped import data_directory
from eatss.frontend.parse import parse_file
from eatss.polyhedral.schedule import schedule_scop
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.split_sets import (
    check_partition,
    frees_parts,
    with_split_sets,
)
from tests.examples import examples
from tests.polyhedral.executing import as_scheduled, executed, region_of

MIN = "A[i][j] = A[i][j] < {row} + {column} ? A[i][j] : {row} + {column};"
UPDATES = (MIN, "A[i][j] -= {row} * {column};", "A[i][j] = {column} - {row};", "A[i][j] += {row};")


def region(loops: str) -> Scop:
    return region_of(loops, "double A[8][8], double x[8]")


def pivoted(
    update: str, order: str = "kij", of_row: str = "k", of_column: str = "k", last: int = 5
) -> Scop:
    heads = {
        "k": "for (int k = 1; k < 5; k++)",
        "i": f"for (int i = 0; i < {last}; i++)",
        "j": "for (int j = 0; j < 6; j++)",
    }
    body = update.format(row=f"A[i][{of_row}]", column=f"A[{of_column}][j]")
    return region("".join(heads[one] for one in order) + body)


def pieces_of(scop: Scop, name: str) -> list[isl.Set]:
    return [one.domain.set_tuple_name(name) for one in scop.statements if one.piece_of == name]


def floyd_warshall() -> Scop:
    (scop,) = parse_file(data_directory("kernels") / "floyd-warshall.c").scops
    return scop


@given(
    st.sampled_from(UPDATES),
    st.sampled_from(["kij", "kji", "ikj", "jki"]),
    st.sampled_from(["k", "k + 1", "k - 1", "0", "i"]),
    st.sampled_from(["k", "k + 2", "5 - k", "j"]),
    st.integers(3, 6),
)
@settings(max_examples=examples(12), deadline=None)
def test_pieces_are_a_partition_and_leave_the_same_values(
    update: str, order: str, of_row: str, of_column: str, last: int
) -> None:
    scop = pivoted(update, order, of_row, of_column, last)
    cut = with_split_sets(scop)
    if cut is not scop:
        check_partition(scop.statements[0], pieces_of(cut, "S0"))
        assert executed(as_scheduled(schedule_scop(cut))) == executed(scop)
    assert executed(cut) == executed(scop)


def test_each_of_nine_pieces_of_floyd_warshall_is_parallel() -> None:
    scop = floyd_warshall()
    cut = with_split_sets(scop)
    assert len(cut.statements) == 9
    scheduled = schedule_scop(cut)
    loops = sorted(len(kernel.parallel_loops) for kernel in scheduled.kernels)
    assert loops == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert {kernel.host_loops for kernel in scheduled.kernels} == {("k",)}
    assert frees_parts(schedule_scop(scop), scheduled)


def test_a_transposition_in_place_is_cut_at_its_diagonal() -> None:
    loops = "for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) A[i][j] += A[j][i];"
    scop = region(loops)
    scheduled = schedule_scop(with_split_sets(scop))
    assert frees_parts(schedule_scop(scop), scheduled)
    assert all(len(kernel.parallel_loops) >= 1 for kernel in scheduled.kernels)
    assert executed(as_scheduled(scheduled)) == executed(scop)


@pytest.mark.parametrize(
    "loops",
    [
        "for (int i = 1; i < 8; i++) x[i] = x[i - 1];",  # never meets what it reads
        "for (int k = 0; k < 8; k++) for (int i = k + 1; i < 8; i++) x[i] -= x[k];",  # cut already
        "for (int i = 0; i < 8; i++) x[i] = A[i][0];",
    ],
)
def test_statements_that_meet_nothing_stay_whole(loops: str) -> None:
    scop = region(loops)
    assert with_split_sets(scop) is scop


def test_pieces_at_sizes_that_no_array_has_are_left_out() -> None:
    scop = region_of(
        "for (int i = 0; i <= 2; i++) for (int j = 0; j < m; j++)\n"
        "    A[j][n + m + 11 - i] += A[j][i] * A[j][j];",
        "int n, int m, long A[2 * n + 2 * m + 16][2 * n + 2 * m + 16]",
    )
    cut = with_split_sets(scop)
    assert len(cut.statements) > 1
    assert not any(one.domain.intersect_params(scop.context).is_empty() for one in cut.statements)
    assert schedule_scop(cut).kernels


# Mutants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", range(9))
def test_a_lost_or_doubled_piece_is_found(lost: int) -> None:
    scop = floyd_warshall()
    pieces = pieces_of(with_split_sets(scop), "S0")
    for changed in (pieces[:lost] + pieces[lost + 1 :], [*pieces, pieces[lost]]):
        with pytest.raises(InternalError, match="EATSS-P901"):
            check_partition(scop.statements[0], changed)

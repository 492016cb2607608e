"""Kernels that share rows are one kernel, whose blocks take rows through all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.analysis.layout import FusedRows
from eatss.analysis.variant import ClassSize, Rewrites
from eatss.cards import GpuProfile, load_profile
from eatss.cards.profile import Coefficient
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.cost.cuda_model import rows_prediction
from eatss.cost.demand import Demand
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodeRequest, recipe_from_dict
from eatss.lower.row_planning import row_runs_for
from eatss.plan.phases import RowRun
from eatss.program import Program
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.lower.checking import (
    broken,
    checked,
    every_barrier_is_missed,
    is_kept_by_its_recipe,
    right,
)

pytestmark = pytest.mark.usefixtures("analysed_once")

H200 = load_profile("h200")
ROWS = """
#ifndef NI
#define NI 3000
#endif
#ifndef NJ
#define NJ 1000
#endif
double exp(double), sqrt(double), fmax(double, double);
void rows(%s)
{
#pragma scop
    for (int i = 0; i < NI; i++) {
%s
    }
#pragma endscop
}
"""
SOFTMAX = ROWS % (
    "double in[NI][NJ], double out[NI][NJ], double most[NI], double sum[NI]",
    """
        most[i] = in[i][0];
        for (int j = 1; j < NJ; j++)
            most[i] = fmax(most[i], in[i][j]);
        sum[i] = 0;
        for (int j = 0; j < NJ; j++) {
            out[i][j] = exp(in[i][j] - most[i]);
            sum[i] += out[i][j];
        }
        for (int j = 0; j < NJ; j++)
            out[i][j] = out[i][j] / sum[i];""",
)
BEFORE = ROWS % (
    "double x[NI][NJ], double y[NI][NJ], double s[NI]",
    """
        s[i] = 0;
        for (int j = 0; j < NJ; j++)
            s[i] += x[i][j];
        for (int j = 0; j < NJ; j++)
            y[i][j] = x[i][j] - (i > 0 ? s[i - 1] : 0);""",
)
COLUMNS = re.sub(r"(in|out)\[i\]\[(\w+)\]", r"\1[\2][i]", SOFTMAX).replace(
    "in[NI][NJ], double out[NI][NJ]", "in[NJ][NI], double out[NJ][NI]"
)
BY_ROWS = """
#ifndef NI
#define NI 8192
#endif
#ifndef NJ
#define NJ 1500
#endif
float expf(float), fmaxf(float, float);
void columns(float in[NJ][NI], float out[NJ][NI], float most[NI], float sum[NI])
{
#pragma scop
    for (int i = 0; i < NI; i++)
        most[i] = in[0][i];
    for (int j = 1; j < NJ; j++)
        for (int i = 0; i < NI; i++)
            most[i] = fmaxf(most[i], in[j][i]);
    for (int i = 0; i < NI; i++)
        sum[i] = 0;
    for (int j = 0; j < NJ; j++)
        for (int i = 0; i < NI; i++) {
            out[j][i] = expf(in[j][i] - most[i]);
            sum[i] += out[j][i];
        }
    for (int j = 0; j < NJ; j++)
        for (int i = 0; i < NI; i++)
            out[j][i] /= sum[i];
#pragma endscop
}
"""
STEPS = """
#ifndef M
#define M 700
#endif
#ifndef N
#define N 300
#endif
double sqrt(double);
void steps(double A[M][N], double Q[M][N], double R[N][N])
{
    double n;
#pragma scop
    for (int k = 0; k < N; k++) {
        n = 0;
        for (int i = 0; i < M; i++)
            n += A[i][k] * A[i][k];
        R[k][k] = sqrt(n) + 1;
        for (int i = 0; i < M; i++)
            Q[i][k] = A[i][k] / R[k][k];
        for (int j = k + 1; j < N; j++) {
            R[k][j] = 0;
            for (int i = 0; i < M; i++)
                R[k][j] += Q[i][k] * A[i][j];
            for (int i = 0; i < M; i++)
                A[i][j] -= Q[i][k] * R[k][j];
        }
    }
#pragma endscop
}
"""
CELLS = """
#ifndef N
#define N 200
#endif
void cells(int t[N][N], int s[N])
{
#pragma scop
    for (int i = N - 1; i >= 0; i--)
        for (int j = i + 1; j < N; j++) {
            t[i][j] = t[i][j] > t[i][j - 1] ? t[i][j] : t[i][j - 1];
            if (i + 1 < j)
                t[i][j] = t[i][j] > t[i + 1][j] + s[i] ? t[i][j] : t[i + 1][j] + s[i];
            for (int k = i + 1; k < j; k++)
                t[i][j] = t[i][j] > t[i][k] + t[k + 1][j] ? t[i][j] : t[i][k] + t[k + 1][j];
        }
#pragma endscop
}
"""
SIZES = [{"NI": 37, "NJ": 131}, {"NI": 3, "NJ": 64}, {"NI": 1, "NJ": 1}]


@cache
def kept_apart(text: str, defines: tuple[str, ...]) -> tuple[Session, Selection]:
    session = Session(text, Reading(defines=defines), code=True)
    return session, session.select(H200, SelectOptions(target="cuda"), fuse_rows=False)


def in_one(
    text: str,
    rows: int,
    lanes: int,
    tile: int,
    folder: Path | None = None,
    *,
    whole: int = 0,
    columns: int = 0,
    **fixed: int,
) -> Program:
    """Generate a program all of whose kernels are one, into a folder where one is given."""
    session, apart = kept_apart(text, tuple(f"{name}={value}" for name, value in fixed.items()))
    names = tuple(kernel.name for kernel in apart.kernels)
    sizes = {"rows": rows, "lanes": lanes, "tile": tile, "whole": whole, "columns": columns}
    block = FusedRows(kernels=names, loops=1, **sizes)
    first, *others = apart.kernels
    selection = replace(apart, kernels=(replace(first, row_block=block), *others))
    program = session.generate(session.recipe(selection, H200, CodeRequest()), H200)
    if folder is not None:
        session.write(program, folder)
    return program


def is_right(folder: Path, *sizes: dict[str, int]) -> None:
    right(verify(folder, device="cpu", sizes=sizes))


def test_rows_that_a_launch_finds_short_enough_stay_in_registers(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    program = in_one(SOFTMAX, 1, 64, 128, folder, whole=1)
    (kernel,) = program.kernels
    assert sum("2 elements of a row in registers" in note for note in kernel.notes) == 2
    (short,) = re.findall(r"if \(NJ < 129\) \{(.*?)\n    \} else \{", program.text, re.DOTALL)
    assert short.count("&in[i0") == 2  # whole tiles, and whole vectors of others
    assert short.count("= in[i0") == 5  # their elements, those of the rest, and the first maximum
    is_right(folder, *SIZES, {"NI": 2, "NJ": 128}, {"NI": 2, "NJ": 129})
    longer = "if (NJ < 129)", "if (NJ < 140)"
    assert broken(program, folder, *longer, [{"NI": 2, "NJ": 131}]) != "ok"


SCALED = ROWS % (
    "float x[NI][NJ], float y[NI][NJ], float g[NJ], float s[NI]",
    """
        s[i] = 0;
        for (int j = 0; j < NJ; j++)
            s[i] += x[i][j];
        for (int j = 0; j < NJ; j++)
            y[i][j] = x[i][j] * s[i] + g[j];""",
)
VECTORS = [{"NI": 3, "NJ": length} for length in (255, 256, 257, 511, 512)]


@pytest.mark.parametrize("lanes", [32, 128])
def test_a_thread_has_vectors_of_a_row_that_it_keeps(lanes: int, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    program = in_one(SCALED, 2, lanes, 512, folder, whole=1)
    assert "rows: 4 elements of a thread follow each other" in program.kernels[0].notes
    for array in ("x", "g"):
        assert re.search(rf"eatss_load_wide\(&{array}_\w+\[[^&]*, &{array}\[", program.text)
    assert "eatss_store_wide(&y[" in program.text
    is_right(folder, *VECTORS)
    old, new = "j0 + 4 * tj + ", "j0 + 4 * (tj ^ 1) + "
    assert program.text.count(f"const int j = {old}") > 1
    first = program.text.index(f"const int j = {old}")
    text = program.text[:first] + program.text[first:].replace(old, new, 1)
    assert broken(program, folder, program.text, text, VECTORS) != "ok"
    unguarded = program.text.replace(" + 3 < NJ", " < NJ")
    assert broken(program, folder, program.text, unguarded, VECTORS) != "ok"


@pytest.mark.parametrize(
    ("old", "new", "tile"),
    [
        ("y[i][j] = x[i][j]", "y[i][j] = x[i][NJ - 1 - j]", 512),  # the other way round
        ("+ g[j]", "+ g[j / 2]", 512),  # not each has its own
        ("", "", 384),  # three of a thread
    ],
)
def test_elements_of_other_rows_lie_apart(old: str, new: str, tile: int) -> None:
    program = in_one(SCALED.replace(old, new), 2, 128, tile, whole=1)
    assert "eatss_load_wide" not in program.text


def test_what_two_sums_load_and_nothing_keeps_lies_apart() -> None:
    text = ROWS % (
        "float x[NI][NJ], float z[NI][NJ], float s[NI], float t[NI], float u[NI], float r[NI]",
        """
        s[i] = 0;
        t[i] = 0;
        u[i] = 0;
        for (int j = 0; j < NJ; j++) {
            s[i] += x[i][j] * x[i][j];
            t[i] += z[i][j] * z[i][j];
            u[i] += x[i][j] * z[i][j];
        }
        r[i] = u[i] / sqrt(s[i] * t[i]);""",
    )
    assert "eatss_load_wide" not in in_one(text, 2, 128, 512, whole=1).text


def test_rows_of_two_loops_are_as_long_as_their_product(tmp_path: Path) -> None:
    text = ROWS % (
        "double x[NI][NJ][NJ], double y[NI][NJ][NJ], double s[NI]",
        """
        s[i] = 0;
        for (int j = 0; j < NJ; j++)
            for (int k = 0; k < NJ; k++)
                s[i] += x[i][j][k];
        for (int j = 0; j < NJ; j++)
            for (int k = 0; k < NJ; k++)
                y[i][j][k] = x[i][j][k] - s[i];""",
    )
    program = in_one(text, 1, 64, 128, tmp_path / "made", whole=1)
    assert "if (NJ_NJ < 129)" in program.text
    is_right(tmp_path / "made", {"NI": 3, "NJ": 11}, {"NI": 2, "NJ": 12}, {"NI": 1, "NJ": 1})


def test_what_others_read_of_a_row_before_it_is_written_keeps_no_row_from_registers() -> None:
    text = SOFTMAX.replace("out[i][j] = exp(in", "in[i][j] = exp(in").replace("+= out", "+= in")
    program = in_one(text, 1, 64, 128, whole=1)
    assert any("in: 2 elements of a row" in note for note in program.kernels[0].notes)
    late = text.replace("in[i][j] - most[i])", "in[i][j] - most[i] + in[i][0])")
    program = in_one(late, 1, 64, 128, whole=1)
    assert not any("in: 2 elements of a row" in note for note in program.kernels[0].notes)


def test_every_barrier_between_phases_is_missed(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    program = in_one(SOFTMAX, 2, 64, 256, folder, NI=5, NJ=200)
    is_right(folder, {})
    every_barrier_is_missed(program, folder, [{}])


def test_a_row_that_needs_another_keeps_kernels_apart() -> None:
    runs = row_runs_for(Session(BEFORE, code=True).analysed, H200)
    assert not any(len(run.kernels) > 1 for run in runs)
    assert len(in_one(BEFORE, 1, 64, 64).kernels) > 1


def test_a_recipe_keeps_rows_and_is_refused_where_they_are_none() -> None:
    wrong = (("lanes", 48), ("rows", 64), ("tile", 100), ("kernels", ["kernel1"]))
    is_kept_by_its_recipe(in_one(SOFTMAX, 2, 64, 64), SOFTMAX, "row_block", *wrong)


@pytest.mark.parametrize("own", ["1", "i % 3"])
def test_values_that_one_lane_makes_reach_all_lanes(own: str, tmp_path: Path) -> None:
    text = ROWS % (
        "double x[NI][NJ], double y[NI][NJ], double a[NI], double t[NI][4], double v[NI], "
        "double s[NI]",
        f"""
        t[i][1] = a[i] * 2;
        v[i] = t[i][{own}] + t[i][1];
        s[i] = v[i];
        for (int j = 0; j < NJ; j++)
            s[i] += x[i][j] * v[i];
        for (int j = 0; j < NJ; j++)
            y[i][j] = x[i][j] * s[i];""",
    )
    folder = tmp_path / "made"
    program = in_one(text, 1, 128, 128, folder)
    told = {note[0] for note in program.kernels[0].notes if "a value of a row" in note}
    assert (len(program.kernels), told) == (1, {"s"})
    is_right(folder, *SIZES)


def test_columns_lie_beside_each_other_in_a_warp(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    program = in_one(COLUMNS, 4, 64, 128, folder, whole=1, columns=1)
    (kernel,) = program.kernels
    assert kernel.block == (4, 64, 1)
    assert set(re.findall(r"eatss_shuffle_down\(\w+, (\d+), (\d+)\)", program.text)) == {
        ("16", "32"), ("8", "32"), ("4", "32"),
    }  # fmt: skip
    is_right(folder, *SIZES, {"NI": 5, "NJ": 129})
    for change in (("_down(sum_r, 16,", "_down(sum_r, 2,"), ("r_warps[tj][", "r_warps[0][")):
        assert broken(program, folder, *change, [{"NI": 6, "NJ": 131}]) != "ok"


def test_columns_that_nests_go_through_row_by_row_stay_in_registers(tmp_path: Path) -> None:
    sizes = [{"NI": 37, "NJ": 131}, {"NI": 8, "NJ": 1500}, {"NI": 1, "NJ": 1}]
    (kernel,) = checked(BY_ROWS, tmp_path, sizes).kernels
    assert kernel.block[0] == 8
    assert sum("elements of a row in registers" in note for note in kernel.notes) == 2


def in_steps(text: str, size: int, lanes: int, tile: int, folder: Path, **how: Any) -> Program:
    """Generate a program each of whose classes is one launch a block of steps, into a folder."""
    classes = (ClassSize(region=0, size=size),)
    session = Session(text, code=True, rewrites=Rewrites(classes=classes))
    apart = session.select(H200, SelectOptions(target="cuda"), fuse_rows=False)
    schedules = [one.scheduled for one in session.symbolic.regions]
    runs = row_runs_for(session.analysed, H200, code=lambda: schedules)
    blocks = {
        run.kernels[0]: FusedRows(
            kernels=run.kernels,
            loops=1,
            rows=1 << (max(2, run.together) - 1).bit_length(),
            lanes=lanes,
            tile=tile,
            whole=1,
            columns=1,
            steps=1,
        )
        for run in runs
        if run.steps
    }
    kernels = tuple(replace(one, row_block=blocks.get(one.name)) for one in apart.kernels)
    recipe = session.recipe(replace(apart, kernels=kernels), H200, CodeRequest(**how))
    program = session.generate(recipe, H200)
    session.write(program, folder)
    return program


@pytest.mark.parametrize(
    ("size", "lanes", "tile", "type_"),
    [(4, 32, 64, "double"), (3, 16, 32, "double"), (8, 64, 64, "float")],
)
def test_blocks_of_rows_go_through_steps(
    size: int, lanes: int, tile: int, type_: str, tmp_path: Path
) -> None:
    program = in_steps(STEPS.replace("double", type_), size, lanes, tile, tmp_path)
    panel, rest = program.kernels
    assert (panel.block[0], rest.block[0]) == (8 if size == 8 else 4, 2)
    assert all("A: " in str(one.notes) for one in program.kernels)
    is_right(tmp_path, *({"M": m, "N": n} for m, n in OF_STEPS))


OF_STEPS = [(0, 3), (1, 1), (9, 0), (70, 9), (64, 17), (33, 8)]


def test_quotients_of_several_points_in_steps_have_one_reciprocal(tmp_path: Path) -> None:
    program = in_steps(STEPS, 4, 8, 64, tmp_path)
    sizes = {"M": 60, "N": 11}
    is_right(tmp_path, sizes)
    for one, other, fine in (
        ("bool exact = true", "bool exact = false", True),  # all are divisions
        ("eatss_quotient<double>(A_k[ri], R_v,", "eatss_quotient<double>(A_k[ri], 2 * R_v,", False),
    ):
        assert (broken(program, tmp_path, one, other, [sizes]) == "ok") == fine


def test_what_lasts_is_loaded_and_stored_once_a_block_of_steps(tmp_path: Path) -> None:
    program = in_steps(STEPS, 4, 32, 64, tmp_path, index_bits=64)
    short, _, _ = program.text.partition("k1_shared {")[2].partition("} else {\n        #pragma")
    before, _, inside = short.partition("for (int k_1 = 0;")
    inside, _, behind = inside.partition("\n        }\n")
    stores = [one.count("] = A_k[") for one in (before, inside, behind)]
    assert (before.count("= A["), inside.count("= A["), stores) == (2, 0, [0, 0, 2])
    sizes = {"M": 60, "N": 11}
    is_right(tmp_path, sizes)
    for change in (
        ("for (int k = 0;", "for (int k = 1;"),
        ("for (int k_1 = 0; k_1 < 4;", "for (int k_1 = 0; k_1 < 3;"),
        ("if (k_1 == 0)", "if (k_1 == 1)"),
        ("0 < j", "1 < j"),
        ("eatss_from_lane(Q_k[place], k +", "eatss_from_lane(Q_k[place], 0 * k +"),
    ):
        assert broken(program, tmp_path, *change, [sizes]) != "ok"


def test_steps_stay_on_the_host_where_others_are_in_their_loop(tmp_path: Path) -> None:
    program = in_steps(STEPS, 4, 32, 64, tmp_path / "whole")
    assert program.recipe is not None
    recipe = json.loads(json.dumps(program.recipe))
    panel = recipe["kernels"][0]["row_block"]
    panel["kernels"] = panel["kernels"][:-1]
    folder = tmp_path / "part"
    apart = eatss.codegen(STEPS, gpu="h200", recipe=recipe_from_dict(recipe), output=folder)
    assert len(apart.kernels) > len(program.kernels) + 1
    is_right(folder, {"M": 70, "N": 9})


def test_a_cell_goes_through_statements_in_a_register(tmp_path: Path) -> None:
    program = checked(CELLS, tmp_path / "made", [{"N": 0}, {"N": 1}, {"N": 2}, {"N": 40}])
    (kernel,) = program.kernels
    assert "t: a value of a row in a register of each of its threads" in kernel.notes
    assert program.text.count("t_v = t[") == 1


def demand(
    source: str,
    rows: Sequence[int],
    lanes: int,
    tile: int,
    *,
    loops: int = 1,
    profile: GpuProfile = H200,
    **more: int,
) -> tuple[RowRun, Demand]:
    """Return the longest run of kernels that share rows, and what columns of blocks take."""
    session = Session(source, code=True)
    facts = {one.name: one for one in session.analysed.facts}
    run = max(row_runs_for(session.analysed, H200), key=lambda one: len(one.kernels))
    sizes: dict[str, Any] = {
        "lanes": np.full(len(rows), lanes),
        "tile": np.full(len(rows), tile),
        **more,
    }
    block = FusedRows(kernels=run.kernels, loops=loops, rows=np.array(rows), **sizes)
    return run, rows_prediction(facts, run, block, profile, in_order=False).demand


def test_the_price_has_the_shared_memory_and_the_barriers_of_columns() -> None:
    rows = [1, 2, 4]
    code = [in_one(COLUMNS, n, 128, 128, columns=1).kernels[0].shared_bytes for n in rows]
    _, found = demand(COLUMNS, rows, 128, 128, columns=1)
    assert found.shared_bytes.tolist() == code
    assert found.of_lanes.tolist() == [1, 1, 1]  # a share, however many phases there are
    known = H200.calibration
    assert known is not None
    figures = dict(known.coefficients) | {
        "barrier_cycles": Coefficient(value=100.0, low=100.0, high=100.0)
    }
    slow = replace(H200, calibration=replace(known, coefficients=tuple(figures.items())))
    _, late = demand(COLUMNS, rows, 128, 128, columns=1, profile=slow)
    once, *twice = (late.chain_cycles - found.chain_cycles).tolist()
    assert twice == pytest.approx([2 * once] * 2)


TWO = """
#define N 4096
void two(float X[N][N], float Y[N][N], float Z[N][N])
{
#pragma scop
    for (int i = 1; i < N; i++) {
        float s = 0;
        for (int j = 0; j < N; j++)
            s += X[i][j] * X[i][j];
        for (int j = 0; j < N; j++)
            Y[i][j] = X[i][j] * s + Z[i - 1][j];
    }
#pragma endscop
}
"""


def test_the_price_waits_for_other_rows_of_an_array_whose_row_registers_keep() -> None:
    def cycles(source: str) -> float:
        run, found = demand(source, [1], 256, 4096)
        assert [own.array for own in run.registers.kept] == ["X"]
        return float(found.chain_cycles[0])

    assert cycles(TWO.replace("Z[i - 1]", "X[i - 1]")) == pytest.approx(cycles(TWO))

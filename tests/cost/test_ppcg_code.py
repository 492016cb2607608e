"""PPCG's code for single loops: what it loads once, who runs last points, lines in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eatss
from eatss.cards import load_profile
from eatss.choose.ppcg import candidates
from eatss.choose.selection import PpcgOptions
from eatss.cost.ppcg_code import PpcgCode
from eatss.cost.ppcg_model import PpcgModel
from eatss.plan.ppcg import PpcgPlan

QUADRATIC = """
void quadratic(double q[6000], double X[6000][48], double M[48][48])
{
#pragma scop
    for (int n = 0; n < 6000; n++) {
        q[n] = 0;
        for (int i = 0; i < 48; i++)
            for (int j = 0; j < 48; j++)
                q[n] += X[n][i] * M[i][j] * X[n][j];
    }
#pragma endscop
}
"""

UPDATE = """
void update(double A[6000][{columns}], double B[6000][{columns}], double x[6000])
{{
#pragma scop
    for (int i = 0; i < 6000; i++)
        for (int j = 0; j < {columns}; j++)
            {array}[i][j] = A[i][j] * x[i];
#pragma endscop
}}
"""

TRIANGLE = """
void triangle(double C[2200][2200], double A[2200][1800])
{{
#pragma scop
    for (int i = 0; i < 2200; i++)
        for (int {bounds}; j++)
            for (int k = 0; k < 1800; k++)
                C[i][j] += A[i][k] * A[j][k];
#pragma endscop
}}
"""


def model_of(path: Path, text: str) -> PpcgModel:
    source = path / "source.c"
    source.write_text(text)
    return PpcgModel.of(eatss.inspect(source).facts[0], load_profile("h200"))


def options(shared_bytes: int) -> PpcgOptions:
    return PpcgOptions(max_shared_memory=shared_bytes, unroll_gpu_tile=False)


def plan_of(model: PpcgModel, *vectors: tuple[int, ...], shared: int = 49152) -> PpcgPlan:
    return model.plan(candidates(model.kernel, vectors, options(shared)))


def test_rows_that_untiled_loops_walk_all_over_have_one_box(tmp_path: Path) -> None:
    """PPCG declares ``shared_M[7][48]`` and ``shared_X[96][48]``: 39 552 bytes."""
    model = model_of(tmp_path, QUADRATIC)
    assert [group.array for group in model.kernel.groups] == ["M", "X", "q"]
    assert plan_of(model, (96, 7, 96), shared=44928).shared_bytes[0] == 8 * 48 * (7 + 96)


def test_what_a_loop_does_not_move_is_loaded_once(tmp_path: Path) -> None:
    """nvcc keeps 48 elements of a row in 96 registers: 126 of a thread, 122 where it is staged."""
    model = model_of(tmp_path, QUADRATIC)
    plan = plan_of(model, (32, 32, 32), shared=0)
    code = PpcgCode(plan, model.card, model.constants)
    m, x, _ = model.kernel.groups
    at_row, at_j = (
        next(use for use in x.uses if ("i" in use.access.moving) == moved)
        for moved in (True, False)
    )
    assert code.stays(x, 0.0, at_row) == (48.0, 0.0)
    assert code.stays(m, 0.0, m.uses[0]) == (1.0, 0.0)
    steps, kept = code.stays(x, 0.0, at_j)
    assert (steps[0], kept[0]) == (32.0, 48.0)
    assert code.registers[0] == pytest.approx(126, rel=0.05)


def test_no_load_passes_a_store_that_may_be_to_its_memory(tmp_path: Path) -> None:
    text = QUADRATIC.replace("q[n] +=", "M[i][j] =").replace("q[n] = 0;", "")
    model = model_of(tmp_path, text)
    depth = len(model.kernel.band) + len(model.kernel.threads)
    code = PpcgCode(plan_of(model, (32,) * depth, shared=0), model.card, model.constants)
    for group in model.kernel.groups:
        for use in group.uses:
            assert np.all(code.stays(group, 0.0, use)[0] == 1.0)


@pytest.mark.parametrize(
    ("tile", "threads"),
    [((4, 264), (1, 256)), ((5, 64), (4, 32)), ((9, 40), (8, 16)), ((4, 96), (2, 32))],
)
def test_a_warp_without_a_lane_in_a_point_does_not_run_it(
    tmp_path: Path, tile: tuple[int, int], threads: tuple[int, int]
) -> None:
    model = model_of(tmp_path, UPDATE.format(columns=5000, array="B"))
    plan = plan_of(model, (*tile, *threads))
    warps = np.arange(threads[0] * threads[1]) // 32
    y, x = np.divmod(np.arange(threads[0] * threads[1]), threads[1])
    runs, most = 0, int(plan.all_points[0])
    for p in range(-(-tile[0] // threads[0])):
        for q in range(-(-tile[1] // threads[1])):
            working = (y + p * threads[0] < tile[0]) & (x + q * threads[1] < tile[1])
            runs += len({*warps[working].tolist()})
    share = plan.busy_warps(("i", "j"))
    assert float(np.ravel(share)[0]) == pytest.approx(runs / (most * (warps[-1] + 1)))


def test_lines_in_parts_take_longer_where_they_are_updated_in_place(tmp_path: Path) -> None:
    """On an H200: 277 beside 142 µs in place, 137 for both into another array."""
    lines = {}
    for columns in (5000, 5120):
        for array in "AB":
            model = model_of(tmp_path, UPDATE.format(columns=columns, array=array))
            plan = candidates(model.kernel, ((32, 32, 32, 16),), options(0))
            demand = model.columns(plan)[0]
            lines[columns, array] = demand.memory_bytes[0] / demand.dram_bytes[0]
    assert lines[5000, "A"] > 1.5 * lines[5120, "A"]
    assert lines[5000, "B"] == lines[5120, "B"] == lines[5120, "A"]


def test_lines_of_other_arrays_fill_the_time_of_lines_in_parts(tmp_path: Path) -> None:
    """On an H200 a wave's update of rows that begin 16 bytes into a line takes 0.283 ms a step."""
    shares = []
    for others in ("x[i]", "B[i][j]", "B[i][j] * C[i][j]"):
        text = UPDATE.format(columns=5000, array="A").replace("x[i];", f"{others};")
        text = text.replace("double x", "double C[6000][5000], double x")
        model = model_of(tmp_path, text)
        demand = model.columns(candidates(model.kernel, ((32, 32, 32, 16),), options(0)))[0]
        shares.append(float(demand.split_bytes[0] / demand.dram_bytes[0]))
    assert shares[0] > 1.5 * shares[1] > shares[2] == 0.0


@pytest.mark.parametrize(
    ("tile", "threads", "tested"),
    [((96, 96), (48, 4), 35), ((88, 88), (32, 4), 42), ((80, 80), (16, 8), 28)],
)
def test_of_rows_that_end_at_a_diagonal_points_above_it_are_tested(
    tmp_path: Path, tile: tuple[int, int], threads: tuple[int, int], tested: int
) -> None:
    """Tests as counted in machine code; where rows begin at the diagonal fewer are left."""
    found = {}
    for bounds in ("j = 0; j <= i", "j = i; j < 2200"):
        model = model_of(tmp_path, TRIANGLE.format(bounds=bounds))
        plan = plan_of(model, (*tile, 20, *threads))
        of = PpcgCode(plan, model.card, model.constants)
        share = of.tests(plan.kernel.statements[0])
        found[bounds] = float(np.ravel(share * plan.all_points)[0])
    ends, begins = found.values()
    assert ends == pytest.approx(tested, rel=0.08)
    assert begins < ends / 1.5

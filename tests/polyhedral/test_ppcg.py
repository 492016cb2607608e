"""Regions are cut into the kernels that PPCG makes of them: by its rules, by a saved schedule."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram
from eatss.base.diagnostics import InputError
from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.polyhedral.kernel import Kernel
from eatss.polyhedral.schedule import generalise, schedule_scop

# -- Sizes are the same whatever they are called.


KERNELS = Path(__file__).parents[2] / "kernels"

Cut = tuple[int, int]


def _cut(kernels: tuple[Kernel, ...]) -> list[Cut]:
    return [(len(kernel.loops), min(3, _leading_parallel(kernel))) for kernel in kernels]


def _leading_parallel(kernel: Kernel) -> int:
    count = 0
    for loop in kernel.loops:
        if not loop.parallel:
            break
        count += 1
    return count


def test_bounds_spelled_by_one_macro_are_one_size() -> None:
    (scop,) = parse_file(str(KERNELS / "gesummv.c"), FrontendOptions()).scops
    assert [name for name, _ in generalise(scop).values] == ["N"]


def test_a_size_may_be_called_what_isl_calls_an_operator() -> None:
    """Seen: exit 70, a size called mod written into isl's text."""
    region = "#pragma scop\nfor (int i = 0; i < mod; i++) {\n  x[i] = 0;\n"
    region += "  for (int j = 0; j < 500; j++) x[i] += a[i][j];\n}\n#pragma endscop\n"
    source = f"#define mod 600\nvoid f(double a[mod][500], double x[mod]) {{\n{region}}}\n"
    (facts,) = eatss.inspect(source).facts
    assert [loop.trip_count for loop in facts.loops] == [600, 500]


def test_numbers_and_parameters_give_the_same_cut(scop_of: Callable[..., Any]) -> None:
    source = (
        "for t in range(0, {T}):\n"
        "    for i in range(1, {N}-1):\n        for j in range(1, {N}-1):\n"
        "            B[i,j] = A[i,j] + A[i,j-1] + A[i,1+j] + A[1+i,j] + A[i-1,j]\n"
        "    for i in range(1, {N}-1):\n        for j in range(1, {N}-1):\n"
        "            A[i,j] = B[i,j]\n"
    )
    named = scop_of(source.format(T="T", N="N"), parameters=["T", "N"])
    fixed = scop_of(source.format(T=20, N=4000))
    assert _cut(schedule_scop(named).kernels) == _cut(schedule_scop(fixed).kernels)
    assert schedule_scop(fixed).kernels[0].loops[0].trip_count == 3998


# -- eatss cuts the kernels of this repository as a real PPCG did.


RecordedCut = list[tuple[int, int, tuple[str, ...]]]

UNSURE = {"adi.c"}
"""Files with a warning that the kernels may be others; its statements are."""


def _rows(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _recorded() -> dict[str, RecordedCut]:
    table: dict[str, RecordedCut] = {}
    for row in _rows("ppcg_cuts.csv"):
        table.setdefault(row["file"], []).append(
            (int(row["tile_dims"]), int(row["block_dims"]), tuple(row["statements"].split()))
        )
    return table


RECORDED = _recorded()
ORDERS = {(row["nests"], row["bound"]): row["ppcg_order"] for row in _rows("ppcg_orders.csv")}


def _check() -> Any:
    return importlib.import_module("benchmarks.ppcg_cuts")


def _cut_of_file(program: AnalysedProgram) -> RecordedCut:
    cut: RecordedCut = _check().cut_of(program)
    return cut


def test_every_kernel_of_the_repository_is_recorded() -> None:
    assert {path.name for path in KERNELS.glob("*.c")} == RECORDED.keys()


@pytest.mark.parametrize("file", sorted(RECORDED)[::3])
def test_a_file_is_cut_into_the_kernels_that_ppcg_makes_of_it(file: str) -> None:
    program = eatss.inspect(KERNELS / file)
    warned = any(warning.code == "EATSS-P020" for warning in program.warnings)
    assert warned == (file in UNSURE)
    if warned:
        assert _shapes(_cut_of_file(program)) == _shapes(RECORDED[file])
    else:
        assert _cut_of_file(program) == RECORDED[file]


def _shapes(cut: RecordedCut) -> list[tuple[int, int]]:
    return [(tiles, block) for tiles, block, _ in cut]


@pytest.mark.parametrize(("nests", "bound"), [*ORDERS][::4])
def test_independent_nests_run_in_the_order_in_which_ppcg_runs_them(nests: str, bound: str) -> None:
    check = _check()
    program = eatss.inspect(check.independent_nests(nests, bound))
    order = check.order_of(check.arrays_of(program))
    assert " ".join(str(k) for k in order) == ORDERS[nests, bound]
    assert program.warnings == ()


# -- PPCG's schedule files: matched with the region, checked, written back; doubts are said.


CHAIN = """\
void f(double A[64], double B[64], double C[64])
{
    int i;
#pragma scop
    for (i = 0; i < 64; i++) {
        B[i] = A[i];
        C[i] = B[i] + 1.0;
    }
#pragma endscop
}
"""
# Statements as PPCG numbers them: S_0 sets i, S_1 and S_2 are ours, S_3 increments i.
GROUPED = """\
domain: "{ G_0[i0] : 0 <= i0 <= 63 }"
child:
  schedule: "[{ G_0[i0] -> [(i0)] }]"
  permutable: 1
  coincident: [ 1 ]
  child:
    contraction: "{ S_1[i] -> G_0[(i)]; S_2[i] -> G_0[(i)] }"
    expansion: "{ G_0[i0] -> S_1[i = i0]; G_0[i0] -> S_2[i = i0] }"
    child:
      sequence:
      - filter: "{ S_1[i] }"
      - filter: "{ S_2[i] }"
"""
APART = """\
domain: "{ S_1[i] : 0 <= i <= 63; S_2[i] : 0 <= i <= 63 }"
child:
  sequence:
  - filter: "{ S_1[i] }"
    child:
      schedule: "[{ S_1[i] -> [(i)] }]"
      permutable: 1
      coincident: [ 1 ]
  - filter: "{ S_2[i] }"
    child:
      schedule: "[{ S_2[i] -> [(i)] }]"
      permutable: 1
      coincident: [ 1 ]
"""


def _loaded(source: str, schedule: str, folder: Path) -> AnalysedProgram:
    file = folder / "saved.schedule"
    file.write_text(schedule)
    return eatss.inspect(source, ppcg_schedule=file)


def _kernels(program: AnalysedProgram) -> list[tuple[str, ...]]:
    return [kernel.statements for scop in program.scops for kernel in scop.scheduled.kernels]


def _refused(source: str, schedule: str, folder: Path) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        _loaded(source, schedule, folder)
    return caught.value.code, caught.value.diagnostics[0].message


def test_a_chain_is_one_kernel_by_default_as_ppcg_groups_it() -> None:
    assert _kernels(eatss.inspect(CHAIN)) == [("S0", "S1")]


def test_groups_of_a_saved_schedule_become_their_statements(tmp_path: Path) -> None:
    assert _kernels(_loaded(CHAIN, GROUPED, tmp_path)) == [("S0", "S1")]


def test_sizes_are_selected_for_the_kernels_of_the_saved_schedule(tmp_path: Path) -> None:
    file = tmp_path / "saved.schedule"
    file.write_text(APART)
    selection = eatss.select(CHAIN, gpu="a100", ppcg_schedule=file)
    assert [kernel.index for kernel in selection.kernels] == [0, 1]
    assert selection.warnings == ()


@pytest.mark.parametrize(("old", "new"), [("63", "62"), ("S_2", "S_7")])
def test_a_schedule_of_another_region_is_refused(old: str, new: str, tmp_path: Path) -> None:
    code, message = _refused(CHAIN, APART.replace(old, new), tmp_path)
    assert code == "EATSS-P021"
    assert "of another region" in message


def test_a_schedule_that_breaks_a_dependence_is_refused(tmp_path: Path) -> None:
    swapped = APART.replace("S_1", "S_x").replace("S_2", "S_1").replace("S_x", "S_2")
    assert _refused(CHAIN, swapped, tmp_path)[0] == "EATSS-P021"


@pytest.mark.parametrize("text", ["", "domain", "hello", '{ "schema": "eatss-schedule" }', "{ }"])
def test_what_is_no_schedule_of_ppcg_is_refused(text: str, tmp_path: Path) -> None:
    assert _refused(CHAIN, text, tmp_path)[0] == "EATSS-P021"


def test_dead_code_is_left_out_as_ppcg_leaves_it_out() -> None:
    source = CHAIN.replace("int i;", "int i; double D[64];").replace(
        "C[i] =", "D[i] = B[i];\n        C[i] ="
    )
    (statements,) = _kernels(eatss.inspect(source))
    assert statements == ("S0", "S2")


def test_a_counter_that_outlives_the_region_makes_the_cut_unsure() -> None:
    region = CHAIN[CHAIN.index("#pragma scop") : CHAIN.index("}\n", CHAIN.index("#pragma end"))]
    source = CHAIN.replace(region, region + region)
    program = eatss.inspect(source)
    assert [warning.code for warning in program.warnings] == ["EATSS-P020"]
    assert "'i'" in program.warnings[0].message
    assert "--ppcg-schedule" in (program.warnings[0].hint or "")


def test_one_schedule_does_not_do_for_two_regions(tmp_path: Path) -> None:
    region = CHAIN[CHAIN.index("#pragma scop") : CHAIN.index("}\n", CHAIN.index("#pragma end"))]
    source = CHAIN.replace(region, region + region)
    assert _refused(source, APART, tmp_path)[0] == "EATSS-P025"

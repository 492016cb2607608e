"""PPCG's schedule files: matched with the region, checked, written back; doubts are said."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram
from eatss.base.codec import encode
from eatss.base.diagnostics import InputError
from eatss.session.steps import ppcg_schedule_of
from tests.examples import with_long

KERNELS = Path(__file__).parents[2] / "kernels"

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


def test_the_kernels_are_those_of_the_saved_schedule(tmp_path: Path) -> None:
    assert _kernels(_loaded(CHAIN, APART, tmp_path)) == [("S0",), ("S1",)]


def test_sizes_are_selected_for_the_kernels_of_the_saved_schedule(tmp_path: Path) -> None:
    file = tmp_path / "saved.schedule"
    file.write_text(APART)
    selection = eatss.select(CHAIN, gpu="a100", ppcg_schedule=file)
    assert [kernel.index for kernel in selection.kernels] == [0, 1]
    assert selection.warnings == ()


def test_a_schedule_of_other_sizes_is_refused(tmp_path: Path) -> None:
    code, message = _refused(CHAIN, APART.replace("63", "62"), tmp_path)
    assert code == "EATSS-P021"
    assert "S_1, S_2 runs for other values of its counters" in message


def test_a_schedule_of_other_statements_is_refused(tmp_path: Path) -> None:
    code, message = _refused(CHAIN, APART.replace("S_2", "S_7"), tmp_path)
    assert code == "EATSS-P021"
    assert "S_7" in message


def test_a_schedule_that_breaks_a_dependence_is_refused(tmp_path: Path) -> None:
    swapped = APART.replace("S_1", "S_x").replace("S_2", "S_1").replace("S_x", "S_2")
    assert _refused(CHAIN, swapped, tmp_path)[0] == "EATSS-P021"


@pytest.mark.parametrize("text", ["", "domain", "hello", '{ "schema": "eatss-schedule" }', "{ }"])
def test_what_is_no_schedule_of_ppcg_is_refused(text: str, tmp_path: Path) -> None:
    assert _refused(CHAIN, text, tmp_path)[0] == "EATSS-P021"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        eatss.inspect(CHAIN, ppcg_schedule=tmp_path / "none")
    assert caught.value.code == "EATSS-P021"


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    "name", with_long(["gemm", "correlation", "durbin", "fdtd-apml"], ["fdtd-apml"])
)
def test_what_is_written_for_ppcg_reads_back_as_the_same_kernels(name: str, tmp_path: Path) -> None:
    program = eatss.inspect(KERNELS / f"{name}.c")
    file = tmp_path / "ours.schedule"
    file.write_text(ppcg_schedule_of(program))
    again = eatss.inspect(KERNELS / f"{name}.c", ppcg_schedule=file)
    assert _kernels(again) == _kernels(program)
    assert again.warnings == ()


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


def test_the_selection_carries_the_doubt_and_keeps_it_in_json() -> None:
    region = CHAIN[CHAIN.index("#pragma scop") : CHAIN.index("}\n", CHAIN.index("#pragma end"))]
    selection = eatss.select(CHAIN.replace(region, region + region), gpu="a100")
    assert [warning.code for warning in selection.warnings] == ["EATSS-P020"]
    assert eatss.Selection.from_dict(selection.to_dict()).warnings == selection.warnings


def test_sizes_are_predicted_for_the_kernels_of_the_saved_schedule(tmp_path: Path) -> None:
    file = tmp_path / "saved.schedule"
    file.write_text(APART)
    expected = eatss.predict(CHAIN, gpu="a100", ppcg_schedule=file)
    assert [kernel.statements for kernel in expected.kernels] == [("S0",), ("S1",)]
    assert expected.warnings == ()
    assert [k.statements for k in eatss.predict(CHAIN, gpu="a100").kernels] == [("S0", "S1")]


def test_the_prediction_carries_the_doubt() -> None:
    region = CHAIN[CHAIN.index("#pragma scop") : CHAIN.index("}\n", CHAIN.index("#pragma end"))]
    expected = eatss.predict(CHAIN.replace(region, region + region), gpu="a100")
    assert [warning.code for warning in expected.warnings] == ["EATSS-P020"]
    assert expected.to_dict()["warnings"] == encode(expected.warnings)


def test_one_schedule_does_not_do_for_two_regions(tmp_path: Path) -> None:
    region = CHAIN[CHAIN.index("#pragma scop") : CHAIN.index("}\n", CHAIN.index("#pragma end"))]
    source = CHAIN.replace(region, region + region)
    assert _refused(source, APART, tmp_path)[0] == "EATSS-P025"
    with pytest.raises(InputError, match="EATSS-P025"):
        ppcg_schedule_of(eatss.inspect(source))

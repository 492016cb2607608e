"""``eatss compare`` as build scripts use it, on a scripted card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eatss as package
from eatss.measurement.measurement import comparison_from_dict
from tests.end_to_end.measuring import KERNELS, eatss, mistake
from tests.end_to_end.scripted_for_any import PATH, WRONG, AnyProgram

pytestmark = pytest.mark.usefixtures("heeded_signals", "kept")

GEMM = KERNELS / "gemm.c"
H200 = ("--gpu", "h200")


def test_variants_of_a_c_file_stand_beside_the_baseline() -> None:
    tiles = ("--tiles", "selected", "--tiles", "32,32,32", "--tiles", "i=32,j=64")
    done = eatss("compare", GEMM, *H200, *tiles, "--baseline", "32,32,32", "-f", "json", card=PATH)
    assert done.returncode == 0, done.stderr
    found = comparison_from_dict(json.loads(done.stdout))
    assert (found.program, found.baseline) == ("gemm", "32,32,32")
    assert [row.measurement.variant for row in found.rows] == ["selected", "32,32,32", "i=32,j=64"]
    selected = found.row("selected")
    assert selected.speedup is not None
    assert selected.speedup.value == pytest.approx(2, rel=0.01)
    assert selected.energy_ratio is not None
    assert selected.energy_ratio.value == pytest.approx(0.5, rel=0.01)
    sizes = dict(dict(found.row("i=32,j=64").measurement.tile_sizes)["kernel_gemm_k0"])
    assert (sizes["i"], sizes["j"]) == (32, 64)


def test_a_requirement_that_is_not_met_is_exit_code_3_and_says_by_how_much() -> None:
    require = ("--require", "energy<=1.0", "--require", "time<=0.1,ppw>=1")
    done = eatss("compare", GEMM, *H200, *require, card=PATH)
    assert done.returncode == 3
    assert done.stderr.startswith(
        "requirement time<=0.1 not met: selected: time over the baseline's is 0.4"
    ) or done.stderr.startswith(
        "requirement time<=0.1 not met: selected: time over the baseline's is 0.5"
    )
    assert "which does not meet <= 0.1" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_variant_is_exit_code_1_and_the_others_are_shown() -> None:
    done = eatss("compare", GEMM, *H200, card=WRONG)
    assert done.returncode == 1
    assert "selected  failed" in done.stdout
    assert "wrong result: C[0][0] is 2, the original gives 1" in done.stdout
    assert "\n32        ok" in done.stdout


def test_folders_are_variants_named_after_themselves(tmp_path: Path) -> None:
    for name in ("ours", "baseline"):
        package.codegen(GEMM, gpu="h200", output=tmp_path / name)
    folders = (tmp_path / "ours", tmp_path / "baseline")
    done = eatss("compare", *folders, "-f", "json", card=PATH)
    assert done.returncode == 0, done.stderr
    found = comparison_from_dict(json.loads(done.stdout))
    assert found.baseline == "baseline"
    assert found.row("ours").speedup is not None
    chosen = ("--baseline", tmp_path / "ours", "-f", "json")
    done = eatss("compare", *folders, *chosen, card=PATH)
    assert json.loads(done.stdout)["baseline"] == "ours"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["GEMM", "--tiles", "32,x"], "EATSS-E040"),
        (["GEMM", *H200, "--tiles", "32,32"], "EATSS-E041"),
        (["GEMM", "--baseline", "64"], "EATSS-E042"),
        (["GEMM", "--tiles", "32", "--tiles", "32"], "EATSS-E043"),
        (["GEMM", "--require", "energy=1"], "EATSS-E044"),
        (["GEMM", "GEMM"], "EATSS-E045"),
        (["GEMM", *H200, "--tiles", "q=32"], "EATSS-K001"),
    ],
)
def test_a_mistake_is_a_sentence_with_a_hint(arguments: list[str], code: str) -> None:
    given = [str(GEMM) if argument == "GEMM" else argument for argument in arguments]
    said = mistake("compare", *given, card=PATH)
    assert f"[{code}]" in said


def test_python_compares_and_tells_of_progress() -> None:
    told: list[str] = []
    found = package.compare(
        GEMM,
        tiles=("selected", "32"),
        reading=package.SourceOptions(gpu="h200"),
        progress=lambda progress: told.append(progress.stage),
        card=AnyProgram(),
    )
    assert isinstance(found, package.Comparison)
    assert found.baseline == "32"
    assert found.row("selected").ppw_ratio is not None
    assert "window" in told

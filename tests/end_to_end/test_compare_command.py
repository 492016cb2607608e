"""``eatss compare`` as build scripts use it, on a scripted card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import eatss as package
from eatss.base.diagnostics import input_error
from eatss.cards import GpuProfile
from eatss.choose import Selection
from eatss.lower.recipe import CodeRequest, Recipe
from eatss.measurement.measurement import comparison_from_dict
from eatss.measurement.options import parse_tile_choices
from eatss.session.session import Session
from eatss.session.variants import SourceOptions, generate_variants
from tests.end_to_end.measuring import KERNELS, eatss, mistake
from tests.end_to_end.scripted_for_any import AT_ONCE, INTERRUPTED, PATH, WRONG, AnyProgram

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


def test_without_options_selected_sizes_are_compared_with_32() -> None:
    done = eatss("compare", GEMM, *H200, card=PATH)
    assert done.returncode == 0, done.stderr
    assert "against 32  speed-up" in done.stdout
    assert "\nselected  ok" in done.stdout


@pytest.mark.long
def test_requirements_that_are_met_leave_the_exit_code_alone() -> None:
    done = eatss("compare", GEMM, *H200, "--require", "energy<=1.0", card=PATH)
    assert done.returncode == 0
    assert "met  energy<=1: selected" in done.stdout
    assert done.stderr == ""


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


@pytest.mark.long
def test_a_requirement_on_what_was_not_measured_is_not_met() -> None:
    done = eatss("compare", GEMM, *H200, "--meter", "none", "--require", "energy<=1", card=PATH)
    assert done.returncode == 3
    assert "was not measured, so <= 1 is not met" in done.stderr


def test_a_wrong_variant_is_exit_code_1_and_the_others_are_shown() -> None:
    done = eatss("compare", GEMM, *H200, card=WRONG)
    assert done.returncode == 1
    assert "selected  failed" in done.stdout
    assert "wrong result: C[0][0] is 2, the original gives 1" in done.stdout
    assert "\n32        ok" in done.stdout


def test_sizes_that_are_refused_are_a_row_rejected_by_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = Session.recipe

    def refuse(
        session: Session, selection: Selection, profile: GpuProfile, wanted: CodeRequest
    ) -> Recipe:
        if (wanted.tiles or {}).get("kernel0") == {"i": 64, "j": 64, "k": 64}:
            raise input_error("EATSS-K012", "the card is too old for such tiles")
        return decide(session, selection, profile, wanted)

    monkeypatch.setattr(Session, "recipe", refuse)
    found = package.compare(
        GEMM,
        tiles=("selected", "64", "32"),
        baseline="32",
        reading=package.SourceOptions(gpu="h200"),
        output=tmp_path,
        card=AnyProgram(),
    )
    statuses = [row.measurement.status for row in found.rows]
    assert statuses == ["ok", "rejected by the model", "ok"]
    assert found.row("64").measurement.reason == "the card is too old for such tiles"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["32", "selected"]


def test_where_no_sizes_fit_the_card_every_variant_is_rejected(tmp_path: Path) -> None:
    choices = parse_tile_choices(["selected", "32"])
    profile = replace(package.load_profile("h200"), registers_per_sm=32, registers_per_block=32)
    made = generate_variants(GEMM, choices, SourceOptions(gpu=profile), tmp_path)
    assert [variant.directory for variant in made.variants] == [None, None]
    assert all("limits" in variant.rejection for variant in made.variants)


def test_programs_made_together_are_those_made_one_by_one(tmp_path: Path) -> None:
    choices = parse_tile_choices(["selected", "16,32", "32"])
    source = KERNELS / "atax.c"
    generate_variants(source, choices, SourceOptions(gpu="h200"), tmp_path)
    alone = package.codegen(source, gpu="h200", tiles={"i": 32, "j": 32})
    assert (tmp_path / "32" / "atax.cu").read_text() == alone.text


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


@pytest.mark.long
def test_a_plot_is_drawn(tmp_path: Path) -> None:
    plot = tmp_path / "gemm.png"
    done = eatss("compare", GEMM, *H200, "--plot", plot, card=PATH)
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.long
def test_ctrl_c_keeps_the_windows_of_both() -> None:
    options = (*H200, "--windows", "50", "-f", "json")
    done = eatss("compare", GEMM, *options, card=INTERRUPTED)
    assert done.returncode == 130
    found = comparison_from_dict(json.loads(done.stdout))
    assert {row.measurement.method.ended for row in found.rows} == {"interrupted"}
    assert done.stderr.endswith("interrupted: what was measured until then is kept\n")


@pytest.mark.long
def test_ctrl_c_before_anything_was_measured_says_so() -> None:
    done = eatss("compare", GEMM, *H200, card=AT_ONCE)
    assert (done.returncode, done.stdout) == (130, "")
    assert "nothing was measured yet" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["GEMM", "--tiles", "32,x"], "EATSS-E040"),
        (["GEMM", *H200, "--tiles", "32,32"], "EATSS-E041"),
        (["GEMM", "--baseline", "64"], "EATSS-E042"),
        (["GEMM", "--tiles", "32", "--tiles", "32"], "EATSS-E043"),
        (["GEMM", "--require", "energy=1"], "EATSS-E044"),
        (["GEMM", "GEMM"], "EATSS-E045"),
        (["GEMM", "--plot", "plot.gif"], "EATSS-E053"),
        (["GEMM", *H200, "--tiles", "q=32"], "EATSS-K001"),
        (["GEMM", *H200, "--tiles", "0"], "EATSS-K002"),
        (["nowhere"], "EATSS-E051"),
    ],
)
def test_a_mistake_is_a_sentence_with_a_hint(arguments: list[str], code: str) -> None:
    given = [str(GEMM) if argument == "GEMM" else argument for argument in arguments]
    said = mistake("compare", *given, card=PATH)
    assert f"[{code}]" in said


def test_tiles_are_not_for_folders(tmp_path: Path) -> None:
    package.codegen(GEMM, gpu="h200", output=tmp_path)
    said = mistake("compare", tmp_path, "--tiles", "32", card=PATH)
    assert "[EATSS-E045]" in said


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


def test_python_compares_folders(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("ours", "baseline")]
    for folder in folders:
        package.codegen(GEMM, gpu="h200", output=folder)
    found = package.compare(folders, baseline="baseline", card=AnyProgram())
    ratio = found.row("ours").energy_ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(0.5, rel=0.01)

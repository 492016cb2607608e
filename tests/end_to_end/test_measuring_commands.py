"""``eatss measure`` and ``eatss compare`` as scripts use them, on a scripted card."""

from __future__ import annotations

import csv
import json
import re
import shutil
from io import StringIO
from pathlib import Path

import pytest

import eatss as package
from eatss.base.diagnostics import Diagnostic, InputError, NoSolutionError
from eatss.measurement import api
from eatss.measurement.measurement import comparison_from_dict, measurement_from_dict
from eatss.measurement.options import MeasureOptions, Variant
from eatss.session import variants as generating
from tests.end_to_end.measuring import KERNELS, eatss, mistake, python
from tests.end_to_end.scripted_for_any import (
    INTERRUPTED,
    MUCH_STACK,
    PATH,
    WRONG,
    AnyProgram,
)
from tests.measurement.scripted_card import Script

pytestmark = pytest.mark.usefixtures("heeded_signals", "kept")

GEMM = KERNELS / "gemm.c"
BLOCKED = ("z3", "islpy", "clang", "networkx", "cupy", "pynvml")
"""Typer itself imports pydantic, if it is there."""

BLOCKER = f"""\
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(name + " is not for a machine that measures")


sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that ``eatss codegen`` wrote."""
    folder = tmp_path_factory.mktemp("programs") / "gemm"
    package.codegen(GEMM, gpu="h200", output=folder)
    return folder


def test_a_folder_is_measured_on_a_machine_that_has_no_generator(
    gemm: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    arguments = ("measure", gemm, "--format", "json", "--card", PATH)
    done = python("-m", "eatss", *arguments, path=tmp_path)
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)["measurements"]
    found = measurement_from_dict(document)
    assert (found.program, found.variant, found.status) == ("gemm", "gemm", "ok")
    assert found.time_s == pytest.approx(0.01, rel=0.01)
    assert found.power_w == pytest.approx(500, rel=0.02)
    assert done.stderr == ""


def test_much_stack_is_warned_of_whether_results_are_right_or_wrong(
    gemm: Path, tmp_path: Path
) -> None:
    selected = tmp_path / "selected"
    shutil.copytree(gemm, selected)
    for folder, code in ((gemm, 0), (selected, 1)):
        done = eatss("measure", folder, "-f", "json", card=MUCH_STACK)
        assert done.returncode == code, done.stderr
        assert f"kernel 'k0' of '{folder.name}' has 3664 bytes of stack" in done.stderr
        assert "EATSS-V047" in done.stderr
        (document,) = json.loads(done.stdout)["measurements"]
        assert document["resources"][0]["local_bytes"] == 3664
    with pytest.warns(package.EatssWarning, match="3664 bytes of stack"):
        package.measure(selected, card=MUCH_STACK)


def test_options_reach_the_measurement(gemm: Path) -> None:
    options = ("--size", "NI=100,NJ=120", "--window", "3", "--updates", "25", "--meter", "none")
    done = eatss("measure", gemm, *options, "--target", "2%", "-f", "json", card=PATH)
    (document,) = json.loads(done.stdout)["measurements"]
    found = measurement_from_dict(document)
    assert dict(found.sizes) == {"NI": 100, "NJ": 120, "NK": 4000}
    method = found.method
    assert (method.least_window_s, method.least_updates, method.target) == (3.0, 25, 0.02)
    assert (found.energy_j, method.meter) == (None, None)
    assert "energy_j" in [gap.what for gap in found.missing]


def test_a_c_file_is_selected_for_generated_and_measured_in_one_go(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = eatss("measure", GEMM, "--gpu", "h200", "-o", kept, card=PATH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gemm  selected  ok\n")
    assert (kept / "gemm.cu").is_file()


def test_ctrl_c_keeps_what_was_measured(gemm: Path) -> None:
    done = eatss("measure", gemm, "--windows", "50", "-f", "json", card=INTERRUPTED)
    assert done.returncode == 130
    (document,) = json.loads(done.stdout)["measurements"]
    found = measurement_from_dict(document)
    assert found.method.ended == "interrupted"
    assert 1 <= len(found.windows) < 50
    assert done.stderr == "interrupted: what was measured until then is kept\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], "EATSS-E045", "there is no 'nowhere'"),
        (["nowhere.c", "--gpu", "h200"], "EATSS-F", "nowhere.c"),
        ([str(KERNELS)], "EATSS-V003", "holds no generated program"),
        (["GEMM", "-o", "x"], "EATSS-E048", "nothing is generated"),
        (["GEMM", "--target", "2"], "EATSS-E048", "--target is '2'"),
        (["GEMM", "--size", "QQ=4"], "EATSS-V008", "has no size 'QQ'"),
    ],
)
def test_a_mistake_is_a_sentence_with_a_hint(
    arguments: list[str], code: str, words: str, gemm: Path
) -> None:
    given = [str(gemm) if argument == "GEMM" else argument for argument in arguments]
    said = mistake("measure", *given, card=PATH)
    assert code in said
    assert words in said


def test_counters_without_nsight_compute_are_refused_before_time_goes_into_measuring(
    gemm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eatss.measurement import counters  # noqa: PLC0415

    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(counters.find_ncu, "__defaults__", ((),))
    card = AnyProgram()
    with pytest.raises(package.InputError) as caught:
        package.measure(gemm, options=MeasureOptions(counters=True), card=card)
    assert caught.value.code == "EATSS-E050"
    assert card.log == []


def test_the_defaults_of_the_command_line_are_those_of_python(gemm: Path) -> None:
    done = eatss("measure", gemm, "--format", "json", card=PATH)
    (document,) = json.loads(done.stdout)["measurements"]
    found = measurement_from_dict(document)
    same = package.measure(gemm, card=AnyProgram())
    assert found.provenance.option_hash == same.provenance.option_hash


SCALE = """\
#ifndef N
#define N 4000
#endif
void scale(double A[N])
{
#pragma scop
  for (int i = 0; i < N; i++) A[i] *= 2.0;
#pragma endscop
}
"""
H200 = ("--gpu", "h200")
NOISY = "tests.end_to_end.test_measuring_commands:Noisy"


class Noisy(AnyProgram):
    """Every run takes another time."""

    def truth(self, label: str) -> Script:
        return Script(time_s=0.01, noise=0.5)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of programs: gemm and atax, and gemm in float."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("gemm", "atax"):
        package.codegen(KERNELS / f"{name}.c", gpu="h200", output=folder / name)
    package.codegen(GEMM, gpu="h200", dtype="float", output=folder / "gemm-float")
    return folder


def test_two_files_of_one_name_are_two_programs(tmp_path: Path) -> None:
    for place, size in (("x", 640), ("y", 320)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "scale.c").write_text(SCALE.replace("4000", str(size)))
    sources = (tmp_path / "x" / "scale.c", tmp_path / "y" / "scale.c")
    kept = tmp_path / "kept"
    done = eatss("measure", *sources, *H200, "-o", kept, "-f", "csv", card=PATH)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(StringIO(done.stdout)))
    assert [row["variant"] for row in rows] == ["scale", "scale-2"]
    assert ["640" in row["sizes"] for row in rows] == [True, False]
    assert sorted(entry.name for entry in kept.iterdir()) == ["scale", "scale-2"]


def test_what_was_measured_is_printed_where_a_later_program_fails(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = api.measure_variants

    def fail_at_atax(variants: tuple[Variant, ...], *rest: object, **named: object) -> object:
        if variants[0].label == "atax":
            raise InputError(Diagnostic(code="EATSS-E074", message="the meter is gone", hint="x"))
        return run(variants, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "measure_variants", fail_at_atax)
    done = eatss("measure", programs / "gemm", programs / "atax", card=PATH)
    assert done.returncode == 2
    assert done.stdout.startswith("gemm  ok\n")
    assert "the meter is gone" in done.stderr


def test_a_file_that_the_card_is_too_small_for_does_not_stop_the_others(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise NoSolutionError(Diagnostic(code="EATSS-M020", message="no tile sizes fit"))

    monkeypatch.setattr(generating, "generate_one", refuse)
    done = eatss("measure", programs / "gemm", KERNELS / "lu.c", *H200, "-f", "csv", card=PATH)
    assert done.returncode == 1
    rows = list(csv.DictReader(StringIO(done.stdout)))
    assert [row["status"] for row in rows] == ["ok", "rejected by the model"]
    assert (rows[1]["variant"], rows[1]["reason"]) == ("lu", "no tile sizes fit")


def test_an_unstable_program_is_measured_and_right(programs: Path) -> None:
    short = ("--budget", "8", "--target", "0.01%")
    for command in (("measure",), ("compare",)):
        done = eatss(*command, programs / "gemm", *short, card=NOISY)
        assert "unstable" in done.stdout
        assert done.returncode == 0, done.stderr


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


def test_a_wrong_variant_is_exit_code_1_and_the_others_are_shown() -> None:
    done = eatss("compare", GEMM, *H200, card=WRONG)
    assert done.returncode == 1
    assert re.search(r"\n +selected +failed", done.stdout)
    assert "wrong result: C[0][0] is 2, the original gives 1" in done.stdout
    assert re.search(r"\n +32 +ok", done.stdout)


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
        (["GEMM", *H200, "--tiles", "32,32"], "EATSS-E040"),
        (["GEMM", "--baseline", "64"], "EATSS-E042"),
        (["GEMM", "--tiles", "32", "--tiles", "32"], "EATSS-E043"),
        (["GEMM", "GEMM"], "EATSS-E045"),
        (["GEMM", *H200, "--tiles", "q=32"], "EATSS-K001"),
    ],
)
def test_a_mistake_in_comparing_is_a_sentence_with_a_hint(arguments: list[str], code: str) -> None:
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

"""``eatss measure`` as scripts and people use it, on a scripted card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import eatss as package
from eatss.measurement.measurement import measurement_from_dict
from eatss.measurement.options import MeasureOptions
from tests.end_to_end.measuring import KERNELS, eatss, mistake, python
from tests.end_to_end.scripted_for_any import (
    INTERRUPTED,
    MUCH_STACK,
    PATH,
    AnyProgram,
)

pytestmark = pytest.mark.usefixtures("heeded_signals", "kept")

GEMM = KERNELS / "gemm.c"
BLOCKED = ("z3", "islpy", "clang", "networkx", "scipy", "cupy", "pynvml")
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
        (["nowhere"], "EATSS-E051", "there is no 'nowhere'"),
        (["nowhere.c", "--gpu", "h200"], "EATSS-F", "nowhere.c"),
        ([str(KERNELS)], "EATSS-V003", "holds no generated program"),
        (["GEMM", "-o", "x"], "EATSS-E047", "nothing is generated"),
        (["GEMM", "--target", "2"], "EATSS-E048", "--target is '2'"),
        (["GEMM", "--size", "QQ=4"], "EATSS-E072", "has no size 'QQ'"),
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

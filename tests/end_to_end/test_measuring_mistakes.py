"""Mistakes in measuring several programs are found before anything is measured, or lose nothing."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest

import eatss as package
from eatss.base.diagnostics import Diagnostic, InputError, NoSolutionError
from eatss.measurement import api
from eatss.measurement.options import Variant
from eatss.session import variants as generating
from tests.end_to_end.measuring import KERNELS, eatss
from tests.end_to_end.scripted_for_any import PATH, AnyProgram
from tests.measurement.scripted_card import Script

pytestmark = pytest.mark.usefixtures("heeded_signals", "kept")

GEMM = KERNELS / "gemm.c"
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
NOISY = "tests.end_to_end.test_measuring_mistakes:Noisy"


class Noisy(AnyProgram):
    """Every run takes another time."""

    def truth(self, label: str) -> Script:
        return Script(time_s=0.01, noise=0.5)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of programs: gemm and lu, and gemm in float."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("gemm", "lu"):
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

    def fail_at_lu(variants: tuple[Variant, ...], *rest: object, **named: object) -> object:
        if variants[0].label == "lu":
            raise InputError(Diagnostic(code="EATSS-E074", message="the meter is gone", hint="x"))
        return run(variants, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "measure_variants", fail_at_lu)
    done = eatss("measure", programs / "gemm", programs / "lu", card=PATH)
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

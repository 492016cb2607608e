"""What may be set beside each other: asked of programs before measuring, of measurements after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eatss.measurement.api import check_comparable, check_measurable
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import save_program
from tests.measurement.scripted_card import matmul
from tests.refusals import refusing

REJECTED = Variant(label="64", directory=None, rejection="no room")


def program(folder: Path, text: str = "void matmul(void) {}\n", **changes: Any) -> Variant:
    """Return a folder with a program that differs from others as told."""
    folder.mkdir()
    (folder / "matmul.c").write_text(text)
    made = matmul(changes.pop("n", 1000))
    defines = changes.pop("defines", ())
    original = replace(made.original, defines=defines)
    save_program(replace(made, original=original, **changes), folder)
    return Variant(label=folder.name, directory=folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "other"}, "differ in their program: matmul and other"),
        ({"dtype": "float"}, "differ in their type: double and float"),
        ({"defines": ("N=5",)}, r"differ in their definitions \(-D\): none and N=5"),
        ({"n": 500}, "differ in their sizes: N=1000 and N=500"),
        ({"text": "void matmul(int) {}\n"}, "differ in their original source"),
    ],
)
def test_programs_that_cannot_be_compared_are_refused_before_measuring(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    variants = [program(tmp_path / "a"), program(tmp_path / "b", **changes)]
    with refusing("EATSS-E079", words):
        check_comparable([REJECTED, *variants], MeasureOptions())


def test_a_size_that_one_program_lacks_is_refused_before_measuring(tmp_path: Path) -> None:
    with refusing("EATSS-V008", "has no size 'NI'"):
        check_measurable([program(tmp_path / "a")], MeasureOptions(sizes={"NI": 30}))


def test_a_folder_that_lost_its_original_is_refused_before_measuring(tmp_path: Path) -> None:
    variant = program(tmp_path / "a")
    (tmp_path / "a" / "matmul.c").unlink()
    with refusing("EATSS-V002", "matmul.c"):
        check_measurable([variant], MeasureOptions())

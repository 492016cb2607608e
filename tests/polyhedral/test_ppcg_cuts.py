"""eatss cuts the kernels of this repository as a real PPCG did.

``ppcg_cuts.csv`` was recorded from a PPCG on these very files by ``benchmarks/ppcg_cuts.py``: for
each kernel that PPCG makes, the depth of its tile band and the number of its block dimensions.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import eatss
from eatss.pipeline import AnalysedProgram

KERNELS = Path(__file__).parents[2] / "kernels"

Cut = list[tuple[int, int]]

UNSURE = {"adi.c"}
"""Files with a warning that the kernels may be others; they are not."""


def _recorded() -> dict[str, Cut]:
    table: dict[str, Cut] = {}
    with (Path(__file__).parent / "ppcg_cuts.csv").open() as lines:
        for row in csv.DictReader(lines):
            table.setdefault(row["file"], []).append(
                (int(row["tile_dims"]), int(row["block_dims"]))
            )
    return table


RECORDED = _recorded()


def _cut(program: AnalysedProgram) -> Cut:
    found = []
    for kernel in (k for scop in program.scops for k in scop.scheduled.kernels):
        marks = [loop.parallel for loop in kernel.loops]
        leading = marks.index(False) if False in marks else len(marks)
        found.append((len(marks), min(3, leading)))
    return found


def test_every_kernel_of_the_repository_is_recorded() -> None:
    assert {path.name for path in KERNELS.glob("*.c")} == RECORDED.keys()


@pytest.mark.parametrize("file", sorted(RECORDED))
def test_a_file_is_cut_into_the_kernels_that_ppcg_makes_of_it(file: str) -> None:
    program = eatss.inspect(KERNELS / file)
    assert _cut(program) == RECORDED[file]
    warned = any(warning.code == "EATSS-P020" for warning in program.warnings)
    assert warned == (file in UNSURE)

"""eatss cuts the kernels of this repository as a real PPCG did.

``ppcg_cuts.csv`` was recorded from a PPCG on these very files by ``benchmarks/ppcg_cuts.py``: for
each kernel that PPCG makes, in its order, the depth of its tile band, the number of its block
dimensions, and its statements. ``ppcg_orders.csv`` are the orders in which that PPCG runs nests
that do not depend on each other.
"""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.analysis.analyse import AnalysedProgram

KERNELS = Path(__file__).parents[2] / "kernels"

Cut = list[tuple[int, int, tuple[str, ...]]]

UNSURE = {"adi.c"}
"""Files with a warning that the kernels may be others; its statements are."""


def _rows(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _recorded() -> dict[str, Cut]:
    table: dict[str, Cut] = {}
    for row in _rows("ppcg_cuts.csv"):
        table.setdefault(row["file"], []).append(
            (int(row["tile_dims"]), int(row["block_dims"]), tuple(row["statements"].split()))
        )
    return table


RECORDED = _recorded()
ORDERS = {(row["nests"], row["bound"]): row["ppcg_order"] for row in _rows("ppcg_orders.csv")}


def _check() -> Any:
    return importlib.import_module("benchmarks.ppcg_cuts")


def _cut(program: AnalysedProgram) -> Cut:
    cut: Cut = _check().cut_of(program)
    return cut


def test_every_kernel_of_the_repository_is_recorded() -> None:
    assert {path.name for path in KERNELS.glob("*.c")} == RECORDED.keys()


@pytest.mark.samples(3)
@pytest.mark.parametrize("file", sorted(RECORDED))
def test_a_file_is_cut_into_the_kernels_that_ppcg_makes_of_it(file: str) -> None:
    program = eatss.inspect(KERNELS / file)
    warned = any(warning.code == "EATSS-P020" for warning in program.warnings)
    assert warned == (file in UNSURE)
    if warned:
        assert _shapes(_cut(program)) == _shapes(RECORDED[file])
    else:
        assert _cut(program) == RECORDED[file]


def _shapes(cut: Cut) -> list[tuple[int, int]]:
    return [(tiles, block) for tiles, block, _ in cut]


def test_the_two_products_of_mvt_have_the_numbers_that_ppcg_gives_them() -> None:
    program = eatss.inspect(KERNELS / "mvt.c")
    assert [kernel.statements for kernel in program.scops[0].scheduled.kernels] == [
        ("S0",),
        ("S1",),
    ]
    assert program.warnings == ()


@pytest.mark.samples(5)
@pytest.mark.parametrize(("nests", "bound"), ORDERS)
def test_independent_nests_run_in_the_order_in_which_ppcg_runs_them(nests: str, bound: str) -> None:
    check = _check()
    program = eatss.inspect(check.independent_nests(nests, bound))
    order = check.order_of(check.arrays_of(program))
    assert " ".join(str(k) for k in order) == ORDERS[nests, bound]
    assert program.warnings == ()

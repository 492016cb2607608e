"""Kernels that share rows become one where that is expected to cost less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eatss.analysis.layout import RowBlock
from eatss.cards import load_profile
from eatss.choose import Selection
from eatss.choose.options import SelectOptions
from eatss.cost.cuda_model import rows_prediction
from eatss.frontend.options import Reading
from eatss.lower.row_planning import row_runs_for
from eatss.session.session import Session

H200 = load_profile("h200")
SOFTMAX = Path(__file__).parents[2] / "benchmarks" / "programs" / "softmax.c"
TARGET = SelectOptions(target="cuda")


def softmax(**sizes: int) -> Session:
    defines = tuple(f"{name}={value}" for name, value in sizes.items())
    return Session(SOFTMAX, Reading(defines=defines), code=True)


def of_run(session: Session) -> tuple[Any, Any]:
    (run,) = row_runs_for(session.analysed, H200)
    return {one.name: one for one in session.analysed.facts}, run


def test_a_softmax_is_one_kernel_and_costs_less() -> None:
    session = softmax(NI=20000, NJ=2000)
    one, apart = (session.select(H200, TARGET, fuse_rows=fuse) for fuse in (True, False))
    first, *others = one.kernels
    assert first.row_block is not None
    assert len(others) == 3
    assert first.row_block.kernels == tuple(kernel.name for kernel in one.kernels)
    assert all(kernel.predicted is not None and kernel.predicted.launches == 0 for kernel in others)
    assert all(kernel.row_block is None for kernel in (*others, *apart.kernels))
    assert first.predicted is not None
    energy = sum(kernel.predicted.energy_j for kernel in apart.kernels if kernel.predicted)
    assert first.predicted.energy_j < energy
    assert Selection.from_dict(one.to_dict()) == one


def test_few_long_rows_stay_apart() -> None:
    selection = softmax(NI=4, NJ=1000000).select(H200, TARGET)
    assert all(kernel.row_block is None for kernel in selection.kernels)


def test_what_registers_keep_of_a_row_is_what_code_keeps() -> None:
    _, run = of_run(softmax(NI=20000, NJ=2000))
    kept = {one.array: one for one in run.registers.kept}
    assert set(kept) == {"in", "out"}
    assert kept["in"].load_in == 2  # the maximum begins behind the first element
    assert not kept["in"].stores
    assert kept["out"].load_in is None
    assert kept["out"].stores == (len(run.phases) - 1,)
    assert {one.array for one in run.registers.values} == {"most", "sum"}


@pytest.mark.parametrize("rows", [1, 4])
def test_a_row_that_is_kept_moves_through_l2_once(rows: int) -> None:
    facts, run = of_run(softmax(NI=20000, NJ=2000))
    whole, parts = (
        rows_prediction(
            facts,
            run,
            RowBlock(
                kernels=run.kernels,
                loops=1,
                rows=np.array([rows]),
                lanes=np.array([128.0]),
                tile=np.array([tile]),
            ),
            H200,
            in_order=False,
        )
        for tile in (2048.0, 512.0)
    )
    matrix = 20000 * 2000 * 8
    assert whole.demand.l2_bytes[0] == pytest.approx(2 * matrix, rel=0.1)
    assert parts.demand.l2_bytes[0] > 4 * matrix
    assert whole.demand.dram_bytes[0] == pytest.approx(2 * matrix, rel=0.01)
    assert whole.demand.registers[0] > parts.demand.registers[0]


def test_code_for_any_size_keeps_no_rows() -> None:
    session = softmax()
    numeric, symbolic = (
        row_runs_for(session.analysed, H200, code=code)
        for code in (None, lambda: [one.scheduled for one in session.symbolic.regions])
    )
    assert {phase.length for phase in numeric[0].phases} == {None, 2000}
    assert {phase.length for phase in symbolic[0].phases} == {None}
    assert numeric[0].kernels == symbolic[0].kernels
    assert numeric[0].registers.kept
    assert not any(own.kept for _, own in symbolic[0].storage)

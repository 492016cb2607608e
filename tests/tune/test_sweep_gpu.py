"""A sweep on the card of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.frontend.options import Reading
from eatss.tune.generation import Generation
from eatss.tune.jobs import SweepOptions
from eatss.tune.strategies import Budget
from eatss.tune.sweeping import sweep
from tests.tune.test_sweep import GEMM

pytestmark = pytest.mark.gpu

try:
    import cupy

    cupy.cuda.runtime.getDeviceCount()
except Exception as error:
    pytest.skip(f"needs a card: {error}", allow_module_level=True)


def test_variants_are_right_and_have_times_energies_and_resources(tmp_path: Path) -> None:
    chosen = SweepOptions(strategy="random", budget=Budget(variants=6), contenders=1)
    generation = Generation(reading=Reading(defines=("NI=1000", "NJ=1000", "NK=1000")))
    found = sweep(GEMM, output=tmp_path / "gemm.db", options=chosen, generation=generation)
    assert len({row.variant for row in found.rows if row.stage == "first"}) == 6
    for row in found.rows:
        assert row.status == "ok", row.reason
        assert row.time_s
        assert {"registers", "shared_bytes", "occupancy"} <= dict(row.metrics).keys()
    careful = [row for row in found.rows if row.stage == "careful"]
    assert careful
    assert all(row.time_error is not None and row.time_error < 0.05 for row in careful)

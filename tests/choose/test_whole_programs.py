"""Every program has a prediction: one thread counts, too, and full reductions are spread."""

from __future__ import annotations

import re
import warnings
from typing import Any, get_args

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.base.targets import TargetName
from eatss.choose.options import SelectOptions
from eatss.choose.selection import Selection
from eatss.polyhedral import factored_sums
from eatss.polyhedral.scop import Scop
from eatss.report.selection import selection_table
from eatss.session.session import Session

KERNELS = data_directory("kernels")

SUMS = {
    "dot": "s[0] = 0; for (int i = 0; i < N; i++) s[0] += x[i] * y[i];",
    "norm": "s[0] = 0; for (int i = 0; i < N; i++) s[0] += x[i] * x[i];",
    "largest": "s[0] = x[0]; for (int i = 0; i < N; i++) s[0] = fmax(s[0], fabs(x[i]));",
    "weighted": "for (int i = 0; i < N; i++) s[0] += 0.5 * y[i] * x[i];",
    "form": "s[0] = 0; for (int i = 0; i < 2048; i++) for (int j = 0; j < 2048; j++) "
    "s[0] += x[i] * A[i][j] * y[j];",
}

RECURRENCE = """
void kernel(double a[40000], double b[40000], double c[40000]) {
#pragma scop
  a[0] = 1;
  for (int i = 1; i < 40000; i++) a[i] = a[i - 1] * a[i - 1] + b[i];
  for (int i = 0; i < 40000; i++) c[i] = a[i];
  c[0] = a[3999];
#pragma endscop
}
"""


def _sum(body: str) -> str:
    return (
        "#include <math.h>\n#define N 4000000\n"
        "void kernel(double s[1], double x[N], double y[N], double A[2048][2048]) {\n"
        f"#pragma scop\n{body}\n#pragma endscop\n}}\n"
    )


def _select(source: str) -> Selection:
    return Session(source, cut="eatss").select("h200", SelectOptions(target="cuda"))


@pytest.mark.parametrize("name", [*SUMS][::2])
def test_full_reductions_are_spread_and_predicted(name: str) -> None:
    selection = _select(_sum(SUMS[name]))
    assert selection.host_statements == ()
    (kernel,) = selection.kernels
    assert kernel.spread is not None
    assert kernel.predicted is not None
    assert kernel.spread.lanes * kernel.spread.chunks * kernel.spread.outer > 32
    assert re.search(r"over [ij]: \d+ lanes, up to", selection_table(selection))
    if name == "dot":  # as long as memory takes, about
        assert 64e6 / 4.8e12 < kernel.predicted.time_s < 4 * 64e6 / 4.8e12
        assert kernel.spread.lanes * kernel.spread.chunks > 64 * 132  # as many threads


def test_what_runs_in_one_thread_has_a_prediction_and_counts() -> None:
    selection = _select(RECURRENCE)
    times = [one.predicted.time_s for one in selection.kernels if one.predicted is not None]
    assert len(times) == len(selection.kernels)
    assert selection.host_statements == ()
    text = selection_table(selection)
    assert "runs in one thread" in text
    assert re.search(r"\nexpected: [\d.]+ ms, ", text)
    assert max(times) > 1e-4  # 40000 steps, one after another


def test_a_default_of_ppcg_that_does_not_launch_says_why() -> None:
    (kernel,) = eatss.select(KERNELS / "conv-2d.c", gpu="h200").kernels
    assert kernel.default is None
    assert "a block of it needs 84992 registers, and there are 65536" in (kernel.note or "")


FADING = """
void fading(float a[4096], float X[4096][K], float Y[4096][K]) {
#pragma scop
  for (int i = 0; i < 4096; i++)
    for (int j = 0; j < 4096; j++) {
      a[i] = 0.5f * a[i];
      for (int k = 0; k < K; k++)
        a[i] += X[i][k] * Y[j][k];
    }
#pragma endscop
}
"""


def test_what_registers_keep_of_a_short_loop_is_not_read_again() -> None:
    times = []
    for points in (32, 128):  # a row of 128 does not fit registers
        (kernel,) = _select(f"#ifndef K\n#define K {points}\n#endif\n{FADING}").kernels
        assert kernel.predicted is not None
        times.append(kernel.predicted.time_s)
    assert times[1] > 3 * 4 * times[0]


WORK = [
    {"source": KERNELS / f"{name}.c", "target": target}
    for name in ("atax", "trisolv")
    for target in get_args(TargetName)
]
WORK.append({"source": KERNELS / "gemm.c", "target": "cuda", "dtype": "float", "tf32": "on"})


@pytest.mark.parametrize("asked", WORK)
def test_no_run_takes_less_than_its_work(asked: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", eatss.EatssWarning)
        run = eatss.select(gpu="h200", **asked).expected
    assert run is not None
    assert run.time_s >= run.least_time_s > 0


NEAREST = """
#include <math.h>
void kernel(float best[16384], float X[16384][32], float Y[16384][32]) {
#pragma scop
  for (int i = 0; i < 16384; i++) {
    best[i] = 1e30f;
    for (int j = 0; j < 16384; j++) {
      float d = 0;
      for (int k = 0; k < 32; k++) d += (X[i][k] - Y[j][k]) * (X[i][k] - Y[j][k]);
      best[i] = fminf(best[i], d);
    }
  }
#pragma endscop
}
"""


def test_distances_are_compared_where_they_are_made() -> None:
    """Though minima of stored ones would share a launch with what they begin with."""
    assert ("S1", "S2", "S3") in [one.statements for one in _select(NEAREST).kernels]


def test_what_is_taken_out_of_sums_is_proven_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proven: list[tuple[int, str]] = []
    prove = factored_sums._computes_the_same

    def computes_the_same(before: Scop, after: Scop, cut: Any) -> bool:
        proven.append((id(before), str((cut.statement.name, cut.loops, cut.summed))))
        return prove(before, after, cut)

    monkeypatch.setattr(factored_sums, "_computes_the_same", computes_the_same)
    _select(
        "void kernel(double y[64], double x[64][64], double W[64][64], double z[64][64]) {\n"
        "#pragma scop\n"
        "  for (int b = 0; b < 64; b++) for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++)\n"
        "    y[b] += x[b][i] * W[i][j] * z[b][j];\n"
        "#pragma endscop\n}\n"
    )
    assert len(proven) == len({*proven}) > 0


@pytest.mark.parametrize("name", ["gemm", "mttkrp", "syrk"])
def test_what_is_proven_of_a_product_is_near_what_is_chosen(name: str) -> None:
    """A bound that is right and says nothing proves as little as none."""
    chosen = eatss.select(KERNELS / f"{name}.c", gpu="h200", cache=False)
    (kernel,) = chosen.kernels
    assert kernel.gap is not None
    assert kernel.gap < 0.4

"""What PPCG leaves on the host has a time in predictions, a least one."""

from __future__ import annotations

import pytest

import eatss
from eatss.report.render import printed

SUM = """\
void sum(int n, double x[n], double y[n], double s[1]) {
#pragma scop
  s[0] = 0;
  for (int i = 0; i < n; i++)
    s[0] += x[i];
#pragma endscop
}
"""
SCALED = SUM.replace(
    "#pragma endscop", "  for (int i = 0; i < n; i++) y[i] = x[i] * s[0];\n#pragma endscop"
)


def test_a_program_without_kernels_has_the_time_of_the_host() -> None:
    with pytest.warns(eatss.EatssWarning, match="100 % of it on the host"):
        found = eatss.predict(SUM, gpu="h200", parameters={"n": 3_999_999})
    assert found.host_statements == ("sum: S0", "sum: S1")
    assert found.kernels == ()
    assert found.time_s == pytest.approx(1e-3)
    told = printed(found, "table")
    assert "at least 1.000 ms there, 250.0 ps for each instance of a statement" in told


def test_the_time_of_a_program_has_that_of_the_host_in_it() -> None:
    found = eatss.predict(SCALED, gpu="h200", parameters={"n": 3_999_999})
    (kernel,) = found.kernels
    assert kernel.predicted is not None
    assert found.host_time_s == pytest.approx(1e-3)
    assert found.time_s == pytest.approx(1e-3 + kernel.predicted.time_s)
    assert "the program: at least " in printed(found, "table")


def test_a_selection_tells_it_beside_the_kernels() -> None:
    found = eatss.select(SUM, gpu="h200")
    assert found.host_time_s == pytest.approx(4097 * 0.25e-9)
    assert eatss.Selection.from_dict(found.to_dict()) == found

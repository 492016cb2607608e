from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from eatss.measurement.assemble import two_sided_quantile


@given(freedom=st.integers(1, 500), confidence=st.floats(0.01, 0.9999))
def test_quantiles_are_those_of_scipy(freedom: int, confidence: float) -> None:
    expected = float(stdtrit(freedom, (1 + confidence) / 2))
    assert two_sided_quantile(confidence, freedom) == pytest.approx(expected, rel=1e-10)


def test_of_one_degree_of_freedom_it_is_a_tangent() -> None:
    assert two_sided_quantile(0.5, 1) == pytest.approx(math.tan(math.pi / 4), rel=1e-12)

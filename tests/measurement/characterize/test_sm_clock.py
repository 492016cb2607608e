"""The mean clock of the SMs out of their own cycles and nanoseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.measurement.characterize.bench import MOST_SMS, mean_clock_mhz


def told(*of_sms: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return what so many SMs told; the others told nothing."""
    found = np.zeros((MOST_SMS, 2), dtype=np.int64)
    found[: len(of_sms)] = np.array(of_sms, dtype=np.int64).reshape(-1, 2)
    return found


@given(
    st.floats(300.0, 3000.0),
    st.lists(st.integers(1, 10**15), min_size=1, max_size=200),
    st.integers(2_000_000, 3 * 10**9),
)
def test_cycles_over_nanoseconds_whatever_an_sm_began_at(
    mhz: float, begun: list[int], span_ns: int
) -> None:
    before = told(*((start, 10 + start // 3) for start in begun))
    later = told(
        *((start + round(span_ns * mhz / 1e3), 10 + start // 3 + span_ns) for start in begun)
    )
    assert mean_clock_mhz(before, later) == pytest.approx(mhz, rel=1e-5)


def test_half_of_the_sms_have_to_tell_twice() -> None:
    before = told(*[(1000, 10)] * 3)
    assert mean_clock_mhz(before, told((2_001_000, 1_000_010))) is None

"""The mean clock of the SMs out of their own cycles and nanoseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.measurement.card import CompileError, LaunchError
from eatss.measurement.characterize.bench import MOST_SMS, SmClock, mean_clock_mhz, sm_clock_of


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


def test_an_sm_that_lost_its_count_does_not_matter() -> None:
    before = told((1000, 10), (1000, 10), (9000, 10))
    later = told((2_001_000, 1_000_010), (2_001_000, 1_000_010), (4, 1_000_010))
    assert mean_clock_mhz(before, later) == pytest.approx(2000.0)


@pytest.mark.parametrize(
    "later",
    [
        told(),  # none told again
        told((5, 2_000_000)),  # the count began anew
        told((10**9, 20)),  # the timer has hardly moved
    ],
)
def test_without_two_tellings_there_is_no_clock(later: npt.NDArray[np.int64]) -> None:
    assert mean_clock_mhz(told((1000, 10)), later) is None


def test_half_of_the_sms_have_to_tell_twice() -> None:
    before = told(*[(1000, 10)] * 3)
    assert mean_clock_mhz(before, told((2_001_000, 1_000_010))) is None


@pytest.mark.parametrize(
    "failure", [CompileError("no such instruction"), LaunchError("out of luck", lost=False)]
)
def test_a_card_whose_sms_do_not_tell_is_measured_by_samples(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise failure

    monkeypatch.setattr(SmClock, "__init__", failing)
    assert sm_clock_of(None) is None  # type: ignore[arg-type]


def test_a_lost_card_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise LaunchError("gone", lost=True)

    monkeypatch.setattr(SmClock, "__init__", failing)
    with pytest.raises(LaunchError, match="gone"):
        sm_clock_of(None)  # type: ignore[arg-type]

"""How energy falls with the clock."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Clock = TypeVar("_Clock", float, npt.NDArray[np.float64])


def voltage_share(clock: _Clock, floor: float) -> _Clock:
    """Return the share of a price that is left at a share of the highest clock.

    Energy goes with the square of the voltage, and the voltage falls with the clock along a line
    that would end at ``floor``.
    """
    voltage = floor + (1 - floor) * clock
    return voltage * voltage

"""The mean clock of the SMs over a load, as the SMs count it.

NVML does not always tell it. While the matrix units of an H200 work on 16 or 19 bits its samples
say 1905 to 1980 MHz, and the SMs count 1757 to 1815 million cycles a second. So each SM says its
own cycles and the card's nanoseconds before and after; one over the other is the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.measurement.card import CompileError, LaunchError
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.cupy_module import translated

_KERNEL = "now"
_THREADS = 1024
"""Of a block: one or two fill an SM, so that every SM gets one."""

_BLOCKS_PER_SM = 4
MOST_SMS = 1024

_TEXT = r"""
extern "C" __global__ void __launch_bounds__(1024) now(longlong2 *told)
{
    if (threadIdx.x) return;
    unsigned sm;
    unsigned long long ns;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    const long long cycles = clock64();
    if (sm < 1024) told[sm] = make_longlong2(cycles, (long long)ns);
}
"""
"""A kernel that writes, for each SM by its number, its cycles and the time in ns."""

_LEAST_NS = 1e6
"""Shorter spans say little: on some cards the timer moves once in a microsecond."""

_LEAST_SHARE = 0.5


def mean_clock_mhz(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> float | None:
    """Return the mean clock between two tellings, in MHz.

    Args:
        before: shape (SMs, 2), cycles and ns of each SM; 0 where it told nothing.
        after: the same, later.

    Returns:
        The median over SMs; ``None`` where fewer than half of those that told anything did so
        twice, their cycles do not grow, or less than a millisecond lies between.
    """
    cycles, ns = (after - before).astype(np.float64).T
    told = (before[:, 1] > 0) | (after[:, 1] > 0)
    whole = (before[:, 1] > 0) & (after[:, 1] > 0) & (cycles > 0) & (ns >= _LEAST_NS)
    if not whole.any() or whole.sum() < _LEAST_SHARE * told.sum():
        return None
    return float(np.median(cycles[whole] / ns[whole]) * 1e3)


@dataclass(slots=True, kw_only=True)
class SmClock:
    """Cycles and nanoseconds of every SM, told on the card's stream before and after a load."""

    kernel: Any
    blocks: int
    before: Any
    after: Any

    @classmethod
    def on(cls, card: CupyCard) -> SmClock:
        """Return that of a card."""
        memory, target = card.memory, card.compile_target
        path = target.compile_text(_TEXT, "sm_clock.cu")
        with translated("the clock of the SMs"), memory.current():
            cupy = memory.cupy
            properties = cupy.cuda.runtime.getDeviceProperties(target.device)
            return cls(
                kernel=cupy.RawModule(path=str(path)).get_function(_KERNEL),
                blocks=_BLOCKS_PER_SM * int(properties["multiProcessorCount"]),
                before=cupy.zeros((MOST_SMS, 2), dtype=cupy.int64),
                after=cupy.zeros((MOST_SMS, 2), dtype=cupy.int64),
            )

    def begin(self) -> None:
        """Tell, before a load."""
        self.before[:] = 0
        self.after[:] = 0
        self.kernel((self.blocks,), (_THREADS,), (self.before,))

    def end(self) -> None:
        """Tell, after it."""
        self.kernel((self.blocks,), (_THREADS,), (self.after,))

    def mean_mhz(self) -> float | None:
        """Return the mean clock in between; the stream has to be done."""
        return mean_clock_mhz(self.before.get(), self.after.get())


def sm_clock_of(card: CupyCard) -> SmClock | None:
    """Return what tells the clock, ``None`` where it does not compile or run: NVML tells it then.

    Raises:
        LaunchError: the card is lost.
    """
    try:
        return SmClock.on(card)
    except CompileError:
        return None
    except LaunchError as error:
        if error.lost:
            raise
        return None

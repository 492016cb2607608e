"""Threads of a block in another order: lanes of a warp interleaved along two loops.

    const int lane = thread % 32;
    const int warp = thread / 32;
    const int tj = lane % 2 + 2 * (lane / 8) + 8 * (warp % 2);
    const int ti = lane / 2 % 4 + 4 * (warp / 2);

for 16 threads along ``j``. Why is said in :mod:`eatss.analysis.lanes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from eatss.analysis.lanes import ALONG_X, ALONG_Y
from eatss.diagnostics import SourceSpan
from eatss.lower.digits import digits
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    evaluate,
)
from eatss.schedule.errors import internal_error_at
from eatss.targets import CUDA

_THREAD = "eatss_thread"


def lane_and_warp(thread: IntExpr) -> tuple[IntExpr, IntExpr]:
    """Return the lane of a thread in its warp, and its warp in the block."""
    return _remainder(thread, CUDA.lanes), _quotient(thread, CUDA.lanes)


def interleaved_places(
    lane: str, warp: str, threads: Sequence[int], span: SourceSpan
) -> tuple[IntExpr, ...]:
    """Return the place of a thread along each loop, the fastest first.

    Args:
        lane: the name of a thread's lane in its warp.
        warp: the name of its warp in the block.
        threads: along each loop, the fastest first. Warps are boxes of lanes along the first two;
            along others they follow each other, along the last one slowest.
        span: where the statements are, for the error.

    Raises:
        InternalError: ``EATSS-K901`` some place has no thread.
    """
    along_x, along_y, *others = threads
    counts = [*reversed(others), along_y // ALONG_Y, along_x // ALONG_X]
    *outer, warp_y, warp_x = digits(Name(warp), [Constant(count) for count in counts], span)
    lane_y = _remainder(_quotient(Name(lane), 2), ALONG_Y)
    high = _quotient(Name(lane), 2 * ALONG_Y)
    lane_x = _remainder(Name(lane), 2) + 2 * high
    places = (
        lane_x + ALONG_X * warp_x,
        lane_y + ALONG_Y * warp_y,
        *reversed(outer),
    )
    if sorted(_met(places, lane, warp, threads)) != list(product(*map(range, threads))):
        raise internal_error_at("EATSS-K901", "the threads of a block leave points out", span=span)
    return places


def _met(
    places: Sequence[IntExpr], lane: str, warp: str, threads: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Yield the places of all threads of a block."""
    for thread in range(prod(threads)):
        own = (evaluate(one, {_THREAD: thread}) for one in lane_and_warp(Name(_THREAD)))
        known = dict(zip((lane, warp), own, strict=True))
        yield tuple(evaluate(place, known) for place in places)


def _quotient(number: IntExpr, by: int) -> IntExpr:
    return number // by


def _remainder(number: IntExpr, by: int) -> IntExpr:
    return number % by

"""Results of two programs compared in device memory.

Programs made from the same C with other tile sizes may add in another order or contract other
products, so results may differ by rounding. Of a sum of d products computed in any order the error
is at most d ε Σ|x||y| [Higham, Accuracy and Stability of Numerical Algorithms, Sec. 3.1], ε being
twice the unit roundoff. For data without a sign, as arguments have, Σ|x||y| is the result itself,
at most the largest element of the array. Both sides may err, which gives 2 d ε max|b|. What d is
stands at :func:`sum_length`; where sums are of several lengths it is a mean, and in triangular
nests the longest is up to three times as long. Hence 8 d ε max|b|. Cancellation and ill-conditioned
recurrences are not covered: where they show, results are reported as different.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from eatss.measure.arguments import CHUNK, Array, chunks
from eatss.measure.card import Difference
from eatss.program import Entry, Program, evaluate

_SLACK = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """An array against another: where they differ most, and the largest value of the reference."""

    error: float = 0.0
    at: int = 0
    largest: float = 0.0
    unequal_at: int | None = None


def sum_length(program: Program, sizes: Mapping[str, int]) -> float:
    """Return d, the number of terms that go into an element, at least 2.

    It is the larger of two figures. The sum of all sizes is longer than any sum over one loop,
    where each size bounds one. The operations over the elements written, as the plan counts them,
    are what sums over several loops come to.
    """
    counted = sum(_entry_length(program, entry, sizes) for entry in program.entries)
    return max(2.0, float(sum(max(0, value) for value in sizes.values())), counted)


def _entry_length(program: Program, entry: Entry, sizes: Mapping[str, int]) -> float:
    work = entry.work
    if work is None or work.operations is None or work.written_bytes is None:
        return 0.0
    operations = sum(evaluate(kind.count, sizes) for kind in work.operations)
    element_bytes = 4 if program.dtype == "float" else 8
    return operations / max(1.0, evaluate(work.written_bytes, sizes) / element_bytes)


def difference(xp: Any, name: str, mine: Array, theirs: Array, length: float) -> Difference:
    """Compare an array with the reference's; ``length`` is that of :func:`sum_length`."""
    found = _compare(xp, mine, theirs)
    if found.unequal_at is not None:
        return _reported(name, mine, theirs, found.unequal_at, inf, "")
    if not found.error:
        return Difference(equal=True, argument=name, worst=0.0, message="")
    allowed = _SLACK * float(np.finfo(mine.dtype).eps) * length * found.largest
    worst = found.error / allowed if allowed else inf
    if worst <= 1:
        return Difference(equal=True, argument=name, worst=worst, message="")
    return _reported(name, mine, theirs, found.at, worst, f"; rounding allows {allowed:.3g}")


def _compare(xp: Any, mine: Array, theirs: Array) -> _Compared:
    found = _Compared()
    for number, (left, right) in enumerate(zip(chunks(mine), chunks(theirs), strict=True)):
        part = _compare_chunk(xp, left, right)
        start = number * CHUNK
        found = _Compared(
            error=max(found.error, part.error),
            at=start + part.at if part.error > found.error else found.at,
            largest=max(found.largest, part.largest),
            unequal_at=start + part.unequal_at
            if part.unequal_at is not None and found.unequal_at is None
            else found.unequal_at,
        )
    return found


def _compare_chunk(xp: Any, left: Array, right: Array) -> _Compared:
    if left.dtype.kind != "f":
        differ = left != right
        first = int(xp.argmax(differ)) if bool(differ.any()) else None
        return _Compared(unequal_at=first)
    finite = xp.isfinite(left) & xp.isfinite(right)
    alike = finite | (left == right) | (xp.isnan(left) & xp.isnan(right))
    if not bool(alike.all()):
        return _Compared(unequal_at=int(xp.argmax(~alike)))
    values = xp.where(finite, right, 0).astype(np.float64)
    error = xp.abs(xp.where(finite, left, 0).astype(np.float64) - values)
    at = int(xp.argmax(error))
    return _Compared(error=float(error[at]), at=at, largest=float(xp.abs(values).max()))


def _reported(
    name: str, mine: Array, theirs: Array, at: int, worst: float, allowed: str
) -> Difference:
    indices = np.unravel_index(at, mine.shape) if mine.shape else ()
    place = "".join(f"[{int(index)}]" for index in indices)
    here, there = (array.reshape(-1)[at].item() for array in (mine, theirs))
    return Difference(
        equal=False,
        argument=name,
        worst=worst,
        message=f"{name}{place} is {here!r}, the reference has {there!r}{allowed}",
    )

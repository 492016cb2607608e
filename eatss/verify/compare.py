"""Compares what the generated program left in its arguments with what the original left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.verify.data import Buffer
from eatss.verify.result import Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sets of arguments compared; fields as in ``SizeResult``."""

    worst_error: float = 0.0
    bound: float = 0.0
    compared: int = 0
    not_finite: int = 0
    loose: int = 0
    difference: Difference | None = None


def compare(
    expected: Sequence[Buffer],
    actual: Sequence[Buffer],
    bounds: Sequence[npt.NDArray[np.float64] | None],
    *,
    alike: bool = False,
) -> Comparison:
    """Compare element by element.

    Args:
        expected: arguments as the original left them.
        actual: arguments as the generated program left them.
        bounds: for each argument the absolute error allowed to each element; ``None`` where
            every bit has to be equal. A NaN has to be a NaN, an infinity the same infinity,
            except where the bound is infinite itself.
        alike: whether a NaN may be an infinity, and the other way round.
    """
    worst, bound_there, compared, not_finite, loose = 0.0, 0.0, 0, 0, 0
    difference: Difference | None = None
    for before, after, bound in zip(expected, actual, bounds, strict=True):
        if before.argument.role in ("scalar", "parameter"):
            continue
        left, right = np.atleast_1d(before.array), np.atleast_1d(after.array)
        compared += left.size
        not_finite += _not_finite(left)
        wrong = _bits_differ(left, right)
        if alike and left.dtype.kind == "f":
            wrong &= np.isfinite(left) | np.isfinite(right)
        error = _error(left, right, wrong)
        if bound is not None:
            bound = np.atleast_1d(bound)  # noqa: PLW2901 - the same, of a scalar too
            wrong &= ~_within(left, right, error, bound)
            loose += int(np.count_nonzero((bound > np.abs(left)) & (left != 0)))
        finite = np.where(np.isfinite(error), error, 0.0)
        if finite.size and float(finite.max()) > worst:
            at = np.unravel_index(int(np.argmax(finite)), finite.shape)
            worst = float(finite[at])
            bound_there = 0.0 if bound is None else float(bound[at])
        if difference is None and wrong.any():
            difference = _first(before, left, right, wrong)
    return Comparison(
        worst_error=worst,
        bound=bound_there,
        compared=compared,
        not_finite=not_finite,
        loose=loose,
        difference=difference,
    )


def bits_equal(expected: Sequence[Buffer], actual: Sequence[Buffer]) -> bool:
    """Return whether all elements of all arrays are the same, one NaN like another."""
    pairs = zip(expected, actual, strict=True)
    return not any(
        _bits_differ(np.atleast_1d(before.array), np.atleast_1d(after.array)).any()
        for before, after in pairs
    )


def _bits_differ(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if left.dtype.kind != "f":
        return np.asarray(left != right)
    same_bits = left.view(f"u{left.itemsize}") == right.view(f"u{left.itemsize}")
    return np.asarray(~(same_bits | (np.isnan(left) & np.isnan(right))))


def _error(
    left: npt.NDArray[Any], right: npt.NDArray[Any], differ: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(left.astype(np.float64) - right.astype(np.float64))
    return np.where(differ, error, 0.0)


def _within(
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    error: npt.NDArray[np.float64],
    bound: npt.NDArray[np.float64],
) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(left) & np.isfinite(right)
    return np.asarray((finite & (error <= bound)) | (left == right) | np.isinf(bound))


def _not_finite(values: npt.NDArray[Any]) -> int:
    if values.dtype.kind != "f":
        return 0
    return int(values.size - np.count_nonzero(np.isfinite(values)))


def _first(
    buffer: Buffer,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    wrong: npt.NDArray[np.bool_],
) -> Difference:
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return Difference(
        array=buffer.argument.name,
        indices=tuple(int(k) for k in at[: len(buffer.shape)]),
        expected=str(left[at].item()),
        actual=str(right[at].item()),
    )

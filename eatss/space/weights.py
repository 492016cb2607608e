"""Numbers of points, exact however many they are.

They are 64-bit columns as long as these hold them, and columns of Python's integers beyond.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.space.dimensions import Integers

Weights = npt.NDArray[Any]
Columns = Mapping[str, Integers]
"""Whole numbers: ``int64``, or ``object`` where they are larger."""

_SAFE = float(1 << 62)


def repeated(weights: Weights, times: Weights) -> Weights:
    """Return the products, row by row."""
    if object not in (weights.dtype, times.dtype):
        if not len(weights):
            return weights
        if float(weights.max()) * float(times.max()) < _SAFE:
            return weights * times
    return np.asarray(weights.astype(object) * times.astype(object))


def total(weights: Weights) -> int:
    """Return the sum."""
    if weights.dtype != object and float(weights.sum(dtype=np.float64)) < _SAFE:
        return int(weights.sum())
    return sum(weights.tolist())


def summed(weights: Weights, group: Integers, groups: int) -> Weights:
    """Return the sum of the weights of each group; ``group`` says which each is in."""
    if weights.dtype == object or float(weights.sum(dtype=np.float64)) >= _SAFE:
        found = np.zeros(groups, dtype=object)
        np.add.at(found, group, weights.astype(object))
        return found
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, group, weights)
    return sums


def distinct(columns: Columns, rows: int) -> tuple[Integers, Integers]:
    """Return a row of each kind, in order of first appearance of the sorted values, and each row's
    kind.
    """  # noqa: D205
    if not columns or not rows:
        first = np.zeros(min(rows, 1), dtype=np.int64)
        return first, np.zeros(rows, dtype=np.int64)
    key = _keys(columns)
    if key is not None:
        _, firsts, kinds = np.unique(key, return_index=True, return_inverse=True)
    else:
        table = np.stack(list(columns.values()), axis=1)
        _, firsts, kinds = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return firsts.astype(np.int64), kinds.reshape(-1).astype(np.int64)


def grouped(columns: Columns, weights: Weights) -> tuple[dict[str, Integers], Weights]:
    """Return each distinct row once, with the sum of its weights."""
    firsts, kinds = distinct(columns, len(weights))
    sums = summed(weights, kinds, len(firsts))
    return {name: column[firsts] for name, column in columns.items()}, sums


def tuples(columns: Columns, rows: int) -> list[tuple[int, ...]]:
    """Return the rows of columns."""
    if not columns:
        return [()] * rows
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


def added(first: Weights, second: Weights) -> Weights:
    """Return the sums, row by row."""
    if object not in (first.dtype, second.dtype):
        largest = float(first.max(initial=0)) + float(second.max(initial=0))
        if largest < float(1 << 62):
            return first + second
    return np.asarray(first.astype(object) + second.astype(object))


def _keys(columns: Columns) -> Integers | None:
    """Return one number for each row that tells it from others, ``None`` if 64 bits are too few."""
    spans = [(int(c.min()), int(c.max()) - int(c.min()) + 1) for c in columns.values()]
    kinds = 1
    for _, span in spans:
        kinds *= span
    if kinds >= 1 << 62:
        return None
    key = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
    for column, (least, span) in zip(columns.values(), spans, strict=True):
        key = key * span + (column - least)
    return key

"""Integer expressions evaluated for many values of their names at once; it alone needs NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.program.expression import FUNCTIONS, IntExpr, Operator, evaluated

Columns: TypeAlias = int | npt.NDArray[np.int64]
"""A number, or one for each of several entries."""

_ON_COLUMNS: dict[Operator, Callable[[Any], Any]] = {
    **FUNCTIONS,
    Operator.MIN: partial(reduce, np.minimum),
    Operator.MAX: partial(reduce, np.maximum),
    Operator.AND: lambda v: reduce(np.logical_and, v).astype(np.int64),
    Operator.OR: lambda v: reduce(np.logical_or, v).astype(np.int64),
    Operator.SELECT: lambda v: np.where(v[0], v[1], v[2]),
}


def evaluate_columns(expression: IntExpr, values: Mapping[str, Columns]) -> Columns:
    """Return the values of an expression, as :func:`evaluate`, an entry an entry of the names."""
    found: Columns = evaluated(expression, values, _ON_COLUMNS)
    return found

"""Integer expressions evaluated for many values of their names at once; it alone needs NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.program.expression import FUNCTIONS, Constant, IntExpr, Name, Operator

Columns: TypeAlias = int | npt.NDArray[np.int64]
"""A number, or one for each of several entries."""

_ON_COLUMNS: dict[Operator, Callable[[Any], Any]] = {
    **FUNCTIONS,
    Operator.MIN: partial(reduce, np.minimum),
    Operator.MAX: partial(reduce, np.maximum),
    Operator.EQ: lambda v: np.equal(v[0], v[1]).astype(np.int64),
    Operator.LE: lambda v: np.less_equal(v[0], v[1]).astype(np.int64),
    Operator.LT: lambda v: np.less(v[0], v[1]).astype(np.int64),
    Operator.GE: lambda v: np.greater_equal(v[0], v[1]).astype(np.int64),
    Operator.GT: lambda v: np.greater(v[0], v[1]).astype(np.int64),
    Operator.AND: lambda v: reduce(np.logical_and, v).astype(np.int64),
    Operator.OR: lambda v: reduce(np.logical_or, v).astype(np.int64),
    Operator.SELECT: lambda v: np.where(v[0], v[1], v[2]),
}


def evaluate_columns(expression: IntExpr, values: Mapping[str, Columns]) -> Columns:
    """Return the values of an expression, as :func:`evaluate`, an entry an entry of the names."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Name):
        return values[expression.name]
    operands = [evaluate_columns(o, values) for o in expression.operands]
    return _ON_COLUMNS[expression.operator](operands)  # type: ignore[no-any-return]

"""Values of an expression, a column at once: what Python would compute, row by row.

A column is a NumPy array with a value a row, or one value for all rows. Of ``and``, ``or``,
``a if c else b`` and chained comparisons only the rows count whose values Python would compute: the
others may have no value. Whole numbers stay exact: beyond 2^53 there is an error, never a wrong
number.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.tune.point import Value
from eatss.tune.space.expressions import LARGEST, Expression, dotted

Column = npt.NDArray[Any]
"""Values of the kinds of NumPy: ``b`` conditions, ``i`` whole numbers, ``f`` numbers, ``U`` texts,
``O`` several kinds at once; of one dimension or of none."""

Named: TypeAlias = Mapping[str, Column]
"""Columns by name."""

MOST_EXPONENT = 64

_KIND_WORDS = {
    "b": "a condition",
    "i": "a whole number",
    "f": "a number",
    "U": "a text",
    "O": "a value of several kinds",
}
_SHOWN = 4

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.Div: np.true_divide,
}
_ALL: Column = np.asarray(True)
"""All rows, where those that count are asked for."""


def column_of(values: Sequence[Value]) -> Column:
    """Return values as a column: of one kind where they are numbers, or all texts."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return np.array(values, dtype=np.bool_)
    if kinds == {str}:
        return np.array(values, dtype=np.str_)
    if kinds == {int}:
        return np.array(values, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(values, dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def constant_of(value: Value) -> Column:
    """Return one value for all rows."""
    return column_of([value]).reshape(())


def evaluate(expression: Expression, columns: Named, rows: int) -> Column:
    """Return the values of an expression.

    Args:
        expression: what to compute.
        columns: values by name, of ``rows`` rows or one for all.
        rows: how many rows there are; of none only kinds are checked.

    Raises:
        ExpressionFault: ``EATSS-S009`` an unknown name, ``EATSS-S012`` a value of the wrong kind,
            ``EATSS-S013`` a division by zero, ``EATSS-S014`` a value that is too large.
    """
    with np.errstate(all="ignore"):
        return _Rows(expression, columns, rows).value(expression.tree, _ALL)


def evaluate_one(expression: Expression, values: Mapping[str, Value]) -> Value:
    """Return the value of an expression of plain values; raises as :func:`evaluate`."""
    lacking = [name for name in expression.names if name not in values]
    if lacking:
        raise expression.unknown(lacking[0], values.keys())
    columns = {name: constant_of(values[name]) for name in expression.names}
    found: Value = evaluate(expression, columns, 1).reshape(-1).tolist()[0]
    return found


def truth(expression: Expression, column: Column, node: ast.expr | None = None) -> Column:
    """Return which values count as true."""
    if column.dtype.kind == "b":
        return column
    if column.dtype.kind in "if":
        return np.asarray(column != 0)
    words = _KIND_WORDS[column.dtype.kind]
    raise expression.fault("EATSS-S012", f"{words} is no condition", node)


class _Rows:
    """Columns for which an expression is computed; ``where`` are the rows that count."""

    def __init__(self, expression: Expression, columns: Named, rows: int) -> None:
        self._expression, self._columns, self._rows = expression, columns, rows

    def value(self, node: ast.expr, where: Column) -> Column:
        """Return the values of a node."""
        name = dotted(node)
        if name is None:
            return np.asarray(self._value(node, where))
        if name not in self._columns:
            raise self._expression.unknown(name, self._columns.keys())
        return self._columns[name]

    def _value(self, node: ast.expr, where: Column) -> Any:  # noqa: PLR0911 - a table
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return constant_of(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._truth(operand, where)
            case ast.UnaryOp(op=op, operand=operand):
                column = self._number(operand, where)
                return -column if isinstance(op, ast.USub) else column
            case ast.BinOp():
                return self._binary(node, where)
            case ast.BoolOp():
                return self._logic(node, node.values, where)
            case ast.Compare():
                return self._compare(node, where)
            case ast.IfExp():
                test = self._truth(node.test, where)
                then = self.value(node.body, where & test)
                return self._choose(node, test, then, self.value(node.orelse, where & ~test))
            case ast.Call():
                return self._call(node, where)
            case _:
                raise AssertionError(f"{ast.dump(node)} passed the check of expressions")

    def _truth(self, node: ast.expr, where: Column) -> Column:
        return truth(self._expression, self.value(node, where), node)

    def _choose(self, node: ast.expr, test: Column, then: Column, otherwise: Column) -> Column:
        """Return ``then`` where the test is true, else ``otherwise``."""
        if test.ndim == 0 and self._rows:
            return then if test else otherwise
        kinds = {then.dtype.kind, otherwise.dtype.kind}
        if len(kinds) > 1 and not kinds <= set("bif"):
            words = " and ".join(sorted(_KIND_WORDS[kind] for kind in kinds))
            raise self._expression.fault("EATSS-S012", f"this is {words}", node)
        return np.where(test, then, otherwise)

    def _logic(self, node: ast.BoolOp, operands: Sequence[ast.expr], where: Column) -> Column:
        first, *rest = operands
        value = self.value(first, where)
        test = truth(self._expression, value, first)
        if not rest:
            return value
        goes_on = test if isinstance(node.op, ast.And) else ~test
        return self._choose(node, goes_on, self._logic(node, rest, where & goes_on), value)

    def _number(self, node: ast.expr, where: Column, *, whole: bool = False) -> Column:
        """Return the values of a node as numbers; conditions count as 0 and 1."""
        column = self.value(node, where)
        kind, hint = column.dtype.kind, None
        if kind == "b":
            return column.astype(np.int64)
        if kind not in "if":
            message = f"{_KIND_WORDS[kind]} stands where a number belongs"
        elif whole and kind == "f":
            message, hint = "a whole number belongs here", "write //, floor or ceil"
        else:
            return column
        raise self._expression.fault("EATSS-S012", message, node, hint=hint)

    def _binary(self, node: ast.BinOp, where: Column) -> Column:
        raises = isinstance(node.op, ast.Pow)
        left, right = (
            self._number(node.left, where), self._number(node.right, where, whole=raises)
        )  # fmt: skip
        if raises:
            return self._power(node, left, right, where)
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            self._refuse(right == 0, "EATSS-S013", "division by zero", node, where)
        if isinstance(node.op, ast.Mult) and left.dtype.kind == right.dtype.kind == "i":
            self._bounded(np.multiply(left, right, dtype=np.float64), node, where, whole=True)
        return self._bounded(_ARITHMETIC[type(node.op)](left, right), node, where)

    def _power(self, node: ast.BinOp, base: Column, exponent: Column, where: Column) -> Column:
        kept = np.clip(exponent, 0, MOST_EXPONENT)
        message = f"an exponent is a whole number from 0 to {MOST_EXPONENT}"
        self._refuse(kept != exponent, "EATSS-S012", message, node.right, where)
        if base.dtype.kind == "f":
            return self._bounded(_each(_float_power, base, kept), node, where)
        self._bounded(np.power(base.astype(np.float64), kept), node, where, whole=True)
        return self._bounded(np.power(base, kept), node, where)

    def _compare(self, node: ast.Compare, where: Column) -> Column:
        """Return whether all comparisons of a chain hold; one counts where those before do."""
        left, found = self.value(node.left, where), _ALL
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(right, ast.List | ast.Tuple):
                equal = [
                    self._related(node, ast.Eq(), left, self.value(one, where))
                    for one in right.elts
                ]
                among = reduce(np.logical_or, equal, np.asarray(False))
                return np.asarray(~among if isinstance(op, ast.NotIn) else among)
            value = self.value(right, where & found)
            found, left = found & self._related(node, op, left, value), value
        return found

    def _related(self, node: ast.expr, op: ast.cmpop, left: Column, right: Column) -> Column:
        """Return a comparison of two columns."""
        kinds = {left.dtype.kind, right.dtype.kind}
        if not (kinds <= set("bif") or kinds == {"U"} or "O" in kinds):
            words = " with ".join(sorted(_KIND_WORDS[kind] for kind in kinds))
            raise self._expression.fault("EATSS-S012", f"this compares {words}", node)
        if kinds & set("UO") and not isinstance(op, ast.Eq | ast.NotEq):
            message = "texts are equal or not, none is larger"
            raise self._expression.fault("EATSS-S012", message, node)
        return np.asarray(_COMPARE[type(op)](left, right), dtype=np.bool_)

    def _call(self, node: ast.Call, where: Column) -> Any:
        name = dotted(node.func)
        if name in ("gcd", "lcm", "ceildiv", "divides"):
            first, second = (self._number(one, where, whole=True) for one in node.args)
            return self._of_whole_numbers(node, name, first, second, where)
        columns = [self._number(one, where) for one in node.args]
        column = columns[0]
        match name:
            case "min" | "max":
                return reduce(np.minimum if name == "min" else np.maximum, columns)
            case "abs":
                return np.abs(column)
            case "log2":
                bad = column <= 0
                self._refuse(bad, "EATSS-S013", "log2 of no positive number", node, where)
                return _each(math.log2, np.where(bad, 1, column))
        if column.dtype.kind == "i":
            return column
        rounded = np.ceil(column) if name == "ceil" else np.floor(column)
        return self._bounded(rounded, node, where, whole=True).astype(np.int64)

    def _of_whole_numbers(
        self, node: ast.Call, name: str, first: Column, second: Column, where: Column
    ) -> Any:
        if name == "gcd":
            return np.gcd(first, second)
        if name == "lcm":
            parts = first // np.maximum(np.gcd(first, second), 1)
            product = np.multiply(parts, second, dtype=np.float64)
            self._bounded(product, node, where, whole=True)
            return self._bounded(np.abs(parts * second), node, where)
        divisor = second if name == "ceildiv" else first
        self._refuse(divisor == 0, "EATSS-S013", "division by zero", node, where)
        return -(-first // second) if name == "ceildiv" else second % first == 0

    def _bounded(
        self, result: Any, node: ast.expr, where: Column, *, whole: bool = False
    ) -> Column:
        """Refuse results that are too large.

        Whole numbers that 2^53 does not hold are found in floating point before they wrap.
        """
        column: Column = np.asarray(result)
        bad, message = ~np.isfinite(column), "the result is too large"
        if whole or column.dtype.kind == "i":
            bad, message = ~(np.abs(column) <= LARGEST), "the result is a whole number over 2^53"
        self._refuse(bad, "EATSS-S014", message, node, where)
        return column

    def _refuse(self, bad: Column, code: str, message: str, node: ast.expr, where: Column) -> None:
        rows = np.flatnonzero(np.broadcast_to(bad & where, (self._rows,)))
        if not len(rows):
            return
        values = [
            f"{name} = {column[rows[0]]}"
            for name, column in self._columns.items()
            if name in self._expression.names and column.ndim
        ]
        at = f" at {', '.join(values[:_SHOWN])}" if values else ""
        raise self._expression.fault(code, message + at, node)


def _float_power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def _each(function: Callable[..., float], *columns: Column) -> Column:
    """Return what a function of Python says for each row: no rounding but its own."""
    return np.asarray(np.vectorize(function, otypes=[np.float64])(*columns))

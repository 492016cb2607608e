"""Values of an expression, a column at once: what Python would compute, row by row.

A column is a NumPy array with a value a row, or one value for all rows. Of ``and``, ``or``,
``a if c else b`` and chained comparisons only the rows are computed whose values Python would
compute. Whole numbers stay exact: beyond 2^53 there is an error, never a wrong number.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.point import Value
from eatss.space.expressions import LARGEST, Expression, dotted

Column = npt.NDArray[Any]
"""Values of the kinds of NumPy: ``b`` conditions, ``i`` whole numbers, ``f`` numbers, ``U`` texts,
``O`` several kinds at once; of one dimension or of none."""

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
}


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


def evaluate(expression: Expression, columns: Mapping[str, Column], rows: int) -> Column:
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
        return _Rows(expression, columns, rows, None).value(expression.tree)


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
    """Some rows of the columns, for which an expression is computed."""

    def __init__(
        self,
        expression: Expression,
        columns: Mapping[str, Column],
        rows: int,
        chosen: npt.NDArray[np.int64] | None,
        within: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.expression = expression
        self.columns = columns
        self.rows = rows
        self.chosen = chosen
        self.within = within

    def value(self, node: ast.expr) -> Column:
        """Return the values of a node."""
        return np.asarray(self._value(node))

    def _value(self, node: ast.expr) -> Any:  # noqa: PLR0911 - a table
        name = dotted(node)
        if name is not None:
            return self._named(name)
        match node:
            case ast.Constant(value=value):
                assert isinstance(value, bool | int | float | str)
                return constant_of(value)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.BoolOp():
                return self._logic(node, list(node.values))
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                test = self._truth(node.test)
                return self._choose(
                    node,
                    test,
                    lambda rows: rows.value(node.body),
                    lambda rows: rows.value(node.orelse),
                )
            case ast.Call():
                return self._call(node)
            case _:
                raise AssertionError(f"{ast.dump(node)} passed the check of expressions")

    def _named(self, name: str) -> Column:
        column = self.columns.get(name)
        if column is None:
            raise self.expression.unknown(name, self.columns.keys())
        if self.chosen is None or column.ndim == 0:
            return column
        return np.asarray(column[self.chosen])

    def _truth(self, node: ast.expr) -> Column:
        return truth(self.expression, self.value(node), node)

    def _some(self, chosen: Column) -> _Rows:
        """Return those of these rows that are chosen."""
        within = np.flatnonzero(chosen)
        absolute = within if self.chosen is None else self.chosen[within]
        return _Rows(self.expression, self.columns, len(within), absolute, within)

    def _of(self, column: Column, parent: _Rows) -> Column:
        """Return what was computed for ``parent``, for those of its rows that these are."""
        if self is parent or column.ndim == 0:
            return column
        return np.asarray(column[self.within])

    def _choose(
        self,
        node: ast.expr,
        test: Column,
        then: Callable[[_Rows], Column],
        otherwise: Callable[[_Rows], Column],
    ) -> Column:
        """Return ``then`` where the test is true, else ``otherwise``; each of its rows only."""
        if test.ndim == 0 and self.rows:
            nothing = np.empty(0, dtype=np.int64)
            none = _Rows(self.expression, self.columns, 0, nothing, nothing)
            (otherwise if test else then)(none)  # its kinds are checked
            return then(self) if test else otherwise(self)
        test = np.broadcast_to(test, (self.rows,))
        first, second = then(self._some(test)), otherwise(self._some(~test))
        kind = self._common(node, first, second)
        found = np.empty(self.rows, dtype=kind)
        found[test], found[~test] = first, second
        return found

    def _common(self, node: ast.expr, *columns: Column) -> np.dtype[Any]:
        """Return the type that holds all of the columns."""
        kinds = {column.dtype.kind for column in columns}
        if kinds <= set("bif") or kinds == {"U"}:
            return np.result_type(*(column.dtype for column in columns))
        if len(kinds) == 1:
            return np.dtype(object)
        words = " and ".join(sorted(_KIND_WORDS[kind] for kind in kinds))
        raise self.expression.fault("EATSS-S012", f"this is {words}", node)

    def _logic(self, node: ast.BoolOp, operands: list[ast.expr]) -> Column:
        first, *rest = operands
        value = self.value(first)
        test = truth(self.expression, value, first)
        if not rest:
            return value

        def kept(rows: _Rows) -> Column:
            return rows._of(value, self)

        def next_(rows: _Rows) -> Column:
            return rows._logic(node, rest)

        if isinstance(node.op, ast.And):
            return self._choose(node, test, next_, kept)
        return self._choose(node, test, kept, next_)

    def _unary(self, node: ast.UnaryOp) -> Column:
        if isinstance(node.op, ast.Not):
            return np.asarray(~self._truth(node.operand))
        column = self._number(node.operand)
        return np.asarray(-column if isinstance(node.op, ast.USub) else column)

    def _number(self, node: ast.expr) -> Column:
        """Return the values of a node as numbers; conditions count as 0 and 1."""
        column = self.value(node)
        kind = column.dtype.kind
        if kind == "b":
            return column.astype(np.int64)
        if kind not in "if":
            message = f"{_KIND_WORDS[kind]} stands where a number belongs"
            raise self.expression.fault("EATSS-S012", message, node)
        return column

    def _whole(self, node: ast.expr) -> Column:
        column = self._number(node)
        if column.dtype.kind != "i":
            hint = "write //, floor or ceil"
            message = "a whole number belongs here"
            raise self.expression.fault("EATSS-S012", message, node, hint=hint)
        return column

    def _binary(self, node: ast.BinOp) -> Column:
        left, right = self._number(node.left), self._number(node.right)
        if isinstance(node.op, ast.Pow):
            return self._power(node, left, self._whole(node.right))
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            self._refuse(right == 0, "EATSS-S013", "division by zero", node)
        if isinstance(node.op, ast.Div):
            return self._bounded(np.true_divide(left, right), node)
        if isinstance(node.op, ast.Mult) and left.dtype.kind == right.dtype.kind == "i":
            self._small(np.multiply(left, right, dtype=np.float64), node)
        return self._bounded(_ARITHMETIC[type(node.op)](left, right), node)

    def _power(self, node: ast.BinOp, base: Column, exponent: Column) -> Column:
        most = MOST_EXPONENT
        message = f"an exponent is a whole number from 0 to {most}"
        self._refuse((exponent < 0) | (exponent > most), "EATSS-S012", message, node.right)
        if not self.rows:
            return np.empty(0, dtype=base.dtype)
        if base.dtype.kind == "i":
            self._small(np.power(base.astype(np.float64), exponent), node)
            return self._bounded(np.power(base, exponent), node)
        return self._bounded(_each(_float_power, base, exponent), node)

    def _compare(self, node: ast.Compare) -> Column:
        left = self.value(node.left)
        return self._chain(node, left, 0)

    def _chain(self, node: ast.Compare, left: Column, at: int) -> Column:
        """Return the comparisons of a chain from one on."""
        op, right = node.ops[at], node.comparators[at]
        if isinstance(op, ast.In | ast.NotIn):
            assert isinstance(right, ast.List | ast.Tuple)
            equal = [self._equal(node, left, self.value(one), ast.Eq()) for one in right.elts]
            found = reduce(np.logical_or, equal, np.asarray(False))
            return np.asarray(~found if isinstance(op, ast.NotIn) else found)
        value = self.value(right)
        result = self._equal(node, left, value, op)
        if at + 1 == len(node.ops):
            return result

        def further(rows: _Rows) -> Column:
            return rows._chain(node, rows._of(value, self), at + 1)

        def ended(rows: _Rows) -> Column:
            return np.zeros(rows.rows, dtype=np.bool_)

        return self._choose(node, result, further, ended)

    def _equal(self, node: ast.expr, left: Column, right: Column, op: ast.cmpop) -> Column:
        """Return a comparison of two columns."""
        kinds = {left.dtype.kind, right.dtype.kind}
        same = kinds <= set("bif") or kinds == {"U"} or "O" in kinds
        if not same:
            words = " with ".join(sorted(_KIND_WORDS[kind] for kind in kinds))
            raise self.expression.fault("EATSS-S012", f"this compares {words}", node)
        if kinds & set("UO") and not isinstance(op, ast.Eq | ast.NotEq):
            message = "texts are equal or not, none is larger"
            raise self.expression.fault("EATSS-S012", message, node)
        return np.asarray(_COMPARE[type(op)](left, right), dtype=np.bool_)

    def _call(self, node: ast.Call) -> Column:
        name = dotted(node.func)
        match name:
            case "min" | "max":
                columns = [self._number(one) for one in node.args]
                kind = self._common(node, *columns)
                fold = np.minimum if name == "min" else np.maximum
                return np.asarray(reduce(fold, [column.astype(kind) for column in columns]))
            case "abs":
                return np.asarray(np.abs(self._number(node.args[0])))
            case "ceil" | "floor":
                return self._rounded(node, np.ceil if name == "ceil" else np.floor)
            case "log2":
                column = self._number(node.args[0])
                self._refuse(column <= 0, "EATSS-S013", "log2 of no positive number", node)
                return np.asarray(_each(math.log2, column) if self.rows else column * 1.0)
            case _:
                return self._of_whole_numbers(node, name)

    def _rounded(self, node: ast.Call, rounding: Callable[[Column], Column]) -> Column:
        column = self._number(node.args[0])
        if column.dtype.kind == "i":
            return column
        rounded = rounding(column)
        self._small(rounded, node)
        return np.asarray(rounded).astype(np.int64)

    def _of_whole_numbers(self, node: ast.Call, name: str | None) -> Column:
        first, second = (self._whole(one) for one in node.args)
        if name == "gcd":
            return np.asarray(np.gcd(first, second))
        if name == "lcm":
            parts = first // np.maximum(np.gcd(first, second), 1)
            self._small(np.multiply(parts, second, dtype=np.float64), node)
            return self._bounded(np.abs(parts * second), node)
        if name == "ceildiv":
            self._refuse(second == 0, "EATSS-S013", "division by zero", node)
            return np.asarray(-(-first // second))
        self._refuse(first == 0, "EATSS-S013", "division by zero", node)
        return np.asarray(second % first == 0)

    def _small(self, column: Column, node: ast.expr) -> None:
        """Refuse results that 2^53 does not hold, found in floating point before they wrap."""
        bad = ~(np.abs(column) <= LARGEST)
        self._refuse(bad, "EATSS-S014", "the result is a whole number over 2^53", node)

    def _bounded(self, result: Any, node: ast.expr) -> Column:
        column: Column = np.asarray(result)
        if column.dtype.kind == "i":
            self._small(column, node)
        else:
            self._refuse(~np.isfinite(column), "EATSS-S014", "the result is too large", node)
        return column

    def _refuse(self, bad: Column, code: str, message: str, node: ast.expr) -> None:
        bad = np.asarray(bad)
        if not self.rows or not bad.any():
            return
        where = int(np.flatnonzero(np.broadcast_to(bad, (self.rows,)))[0])
        row = where if self.chosen is None else int(self.chosen[where])
        values = [
            f"{name} = {column[row]}"
            for name, column in self.columns.items()
            if name in self.expression.names and column.ndim
        ]
        at = f" at {', '.join(values[:_SHOWN])}" if values else ""
        raise self.expression.fault(code, message + at, node)


def _float_power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def _each(function: Callable[..., float], *columns: Column) -> Column:
    """Return what a function of Python says for each row: no rounding but its own."""
    if all(column.ndim == 0 for column in columns):
        return np.asarray(function(*(column.item() for column in columns)))
    same = np.broadcast_arrays(*columns)
    table = np.array([function(*row) for row in zip(*(c.tolist() for c in same), strict=True)])
    return np.asarray(table, dtype=np.float64)

"""Expressions of a search space: Python's own grammar, of which a white list is allowed.

``(blk_m + blk_n) * blk_k * bytes <= card.shared_per_block_bytes`` is parsed by :mod:`ast`, checked
and compiled twice: to a function of one value a name, which computes what Python would, and to a
function of NumPy columns, a value a row. Where the second one may differ from the first (a division
by zero in a row that ``and`` leaves out, a whole number beyond 2^53, values of several kinds), it
gives up, and the rows are computed one by one. What is wrong is told with its place.
"""

from __future__ import annotations

import ast
import copy
import difflib
import keyword
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean
from eatss.base.frozen import frozen
from eatss.cards.document import Origin, finding
from eatss.tune.points import Value

LARGEST = 1 << 53
"""Whole numbers up to this are also exact as numbers with a fraction."""

LONGEST_TEXT = 10_000
MOST_EXPONENT = 64
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_PLAIN: Mapping[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "abs": abs,
    "ceildiv": lambda a, b: -(-a // b),
    "gcd": math.gcd,
    "lcm": math.lcm,
    "log2": math.log2,
    "divides": lambda a, b: b % a == 0,
}
_COLUMNS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mult": np.multiply,
    "Div": np.true_divide,
    "FloorDiv": np.floor_divide,
    "Mod": np.remainder,
    "Pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "ceil": np.ceil,
    "floor": np.floor,
    "abs": np.abs,
    "ceildiv": lambda a, b: -(-a // b),
    "gcd": np.gcd,
    "divides": lambda a, b: b % a == 0,
}
_COMPARE: Mapping[str, Callable[..., Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
_DIVISOR = {"Div": 1, "FloorDiv": 1, "Mod": 1, "ceildiv": 1, "divides": 0}
"""Which argument must not be zero."""

_WHOLE = ("ceildiv", "gcd", "lcm", "divides")
FUNCTIONS = {
    **dict.fromkeys(("min", "max"), (2, 99)),
    **dict.fromkeys(("ceil", "floor", "abs", "log2"), (1, 1)),
    **dict.fromkeys(_WHOLE, (2, 2)),
}
"""How many arguments each function takes, at least and at most."""

_ALLOWED = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.List, ast.Tuple, ast.Load),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.USub, ast.UAdd, ast.Not, ast.And, ast.Or),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
)

Place: TypeAlias = tuple[str, ...]
"""Where something stands in a document: keys of its tables."""

Column = npt.NDArray[Any]
"""Values of one kind (conditions, whole numbers, numbers, texts) or, as objects, of several."""

Named: TypeAlias = Mapping[str, Column | Value]
"""Columns by name; a plain value stands for all rows."""


class _WrongError(Exception):
    """What is wrong at a node of an expression."""

    def __init__(self, code: str, message: str, node: ast.expr | None, hint: str | None = None):
        super().__init__(message)
        self.code, self.message, self.node, self.hint = code, message, node, hint


class _DoubtError(Exception):
    """Columns may not be what Python computes row by row."""


@frozen
class Expression:
    """A parsed expression.

    Attributes:
        text: As it was written.
        names: Names that it needs values of, in the order of reading.
        path: Where it stands in the document of its space.
        origin: That document.
        tree: As it was parsed.
        of_values: What it computes of one value a name.
        of_columns: The same of columns.
    """

    text: str
    names: tuple[str, ...] = ()
    path: Place = ()
    origin: Origin = field(default=Origin(label="expression"), compare=False)
    tree: ast.expr = field(compare=False, repr=False)
    of_values: Callable[..., Any] = field(compare=False, repr=False)
    of_columns: Callable[..., Any] = field(compare=False, repr=False)

    def error(
        self, code: str, message: str, node: ast.expr | None = None, *, hint: str | None = None
    ) -> InputError:
        """Return what is wrong with a part of it, or with all of it."""
        extent = (0, len(self.text)) if node is None else _extent(self.text, node)
        found = pointed(code, message, self.path, self.origin, self.text, extent, hint)
        return InputError(found)

    def unknown(self, name: str, known: Collection[str]) -> InputError:
        """Return that a name has no value."""
        hint = did_you_mean(name, sorted(known), "known")
        if not known:
            hint = "a text stands between quotes"
        return self.error("EATSS-S007", f"nothing is called {name}", self.node(name), hint=hint)

    def node(self, name: str) -> ast.expr:
        """Return where a name stands."""
        found = next(node for node in ast.walk(self.tree) if dotted(node) == name)
        assert isinstance(found, ast.expr)
        return found


def parse_expression(text: str, path: Place = (), origin: Origin | None = None) -> Expression:
    """Return the expression of a text.

    Raises:
        InputError: ``EATSS-S007`` it is none, or it has what is not on the list,
            ``EATSS-S014`` a whole number beyond 2^53.
    """
    text = re.sub(r"[\r\n\t]", " ", text)
    origin = origin or Origin(label="expression")
    indent = len(text) - len(text.lstrip(" "))

    def wrong(message: str, start: int = 0, end: int = 0) -> InputError:
        return InputError(pointed("EATSS-S007", message, path, origin, text, (start, end)))

    if len(text) > LONGEST_TEXT or not text.strip():
        raise wrong(f"an expression has 1 to {LONGEST_TEXT} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text[indent:], mode="eval").body
        for node in ast.walk(tree):  # blanks before an expression are no part of what is parsed
            if isinstance(node, ast.expr):
                node.col_offset += indent
                node.end_col_offset = (node.end_col_offset or 0) + indent
        names = _checked(tree)
        return Expression(
            text=text,
            names=names,
            path=path,
            origin=origin,
            tree=tree,
            of_values=_compiled(tree, columns=False),
            of_columns=_compiled(tree, columns=True),
        )
    except SyntaxError as error:
        start = min(max((error.offset or 1) - 1 + indent, 0), len(text) - 1)
        end = max(start + 1, min((error.end_offset or 0) - 1 + indent, len(text)))
        words = error.msg.split(". ", maxsplit=1)[0].removeprefix("invalid syntax").strip(" .,")
        raise wrong(f"this is no expression{': ' if words else ''}{words}", start, end) from None
    except _WrongError as error:
        extent = (0, len(text)) if error.node is None else _extent(text, error.node)
        found = pointed(error.code, error.message, path, origin, text, extent, error.hint)
        raise InputError(found) from None
    except (ValueError, RecursionError, MemoryError):
        raise wrong("this is no expression, or one nested too deeply", 0, len(text)) from None


def pointed(
    code: str,
    message: str,
    path: Place,
    origin: Origin,
    text: str,
    extent: tuple[int, int],
    hint: str | None = None,
) -> Diagnostic:
    """Return a finding about characters of a text that stands at a path of a document."""
    found = finding(code, message, path, origin, hint)
    if found.span is None or found.source_line is None:
        where = f' (in "{text}", column {extent[0] + 1})' if text else ""
        named = f"{'.'.join(path)}: " if path else ""
        return replace(found, message=f"{origin.label}: {named}{message}{where}")
    after = re.compile(r"\s*=\s*").match(found.source_line, found.span.end_column - 1)
    start = found.source_line.find(text, after.end() if after else found.span.end_column - 1)
    if not text or start < 0:
        return found
    column, end = start + extent[0] + 1, start + extent[1]
    return replace(found, span=replace(found.span, column=column, end_column=max(end, column) + 1))


def dotted(node: ast.AST) -> str | None:
    """Return the name that a node is, ``card.sm_count`` too, else ``None``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def name_fault(name: str) -> str | None:
    """Return why something cannot be called this, ``None`` if it can."""
    if not _NAME.fullmatch(name):
        return "a name has letters, digits and _, and dots between such parts"
    if any(keyword.iskeyword(part) for part in name.split(".")):
        return "it is a word of Python"
    return f"{name} is a function of expressions" if name in FUNCTIONS else None


def _extent(text: str, node: ast.expr) -> tuple[int, int]:
    """Return the characters of a node; ``ast`` counts bytes of UTF-8."""
    data = text.encode()
    start = len(data[: node.col_offset].decode(errors="ignore"))
    end = len(data[: node.end_col_offset or node.col_offset + 1].decode(errors="ignore"))
    return start, max(end, start + 1)


def _checked(node: ast.expr) -> tuple[str, ...]:
    """Check that all of a node is on the list; return its names, each once."""
    name = dotted(node)
    if name is not None:
        fault = name_fault(name)
        if fault is not None:
            raise _WrongError("EATSS-S007", f"{name} is no name of a value: {fault}", node)
        return (name,)
    if isinstance(node, ast.Constant):
        _check_literal(node)
    if isinstance(node, ast.Call):
        _check_call(node)
    parts = node.args if isinstance(node, ast.Call) else [*ast.iter_child_nodes(node)]
    words = [part for part in parts if not isinstance(part, ast.expr)]
    if isinstance(node, ast.Attribute) or not all(isinstance(x, _ALLOWED) for x in (node, *words)):
        raise _WrongError(
            "EATSS-S007",
            "this cannot stand in an expression of a space",
            node,
            "allowed: numbers, texts, names, + - * / // % **, comparisons, and, or, not, "
            f"a if c else b, in [...], {', '.join(FUNCTIONS)}",
        )
    every = (_checked(part) for part in parts if isinstance(part, ast.expr))
    return tuple(dict.fromkeys(name for own in every for name in own))


def _check_call(node: ast.Call) -> None:
    name = dotted(node.func) or ""
    least, most = FUNCTIONS.get(name, (0, 0))
    if not most:
        close = difflib.get_close_matches(name, FUNCTIONS, n=1)
        hint = "".join(f"did you mean {one}? " for one in close) + f"known: {', '.join(FUNCTIONS)}"
        raise _WrongError("EATSS-S007", f"there is no function {name}".strip(), node, hint)
    plain = not node.keywords and not any(isinstance(one, ast.Starred) for one in node.args)
    if not plain or not least <= len(node.args) <= most:
        message = f"{name} takes {least}{' or more' if most > least else ''} plain arguments"
        raise _WrongError("EATSS-S007", message, node)


def _check_literal(node: ast.Constant) -> None:
    value = node.value
    if not isinstance(value, bool | int | float | str) or (
        isinstance(value, str) and not value.isprintable()
    ):
        raise _WrongError("EATSS-S007", "this is no value of a space", node)
    if not isinstance(value, str) and not (
        abs(value) <= LARGEST if isinstance(value, int) else math.isfinite(value)
    ):
        raise _WrongError("EATSS-S014", "a whole number is at most 2^53", node)


class _Code(ast.NodeTransformer):
    """Names become values of a mapping ``v``; operators and functions calls of ``m``."""

    def __init__(self, nodes: list[ast.expr], *, columns: bool) -> None:
        self._nodes, self._columns = nodes, columns

    def visit(self, node: ast.AST) -> Any:
        """Return what stands for a node."""
        name = dotted(node)
        if name is None:
            return super().visit(node)
        return ast.Subscript(ast.Name("v", ast.Load()), ast.Constant(value=name), ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self._call("computed", self._at(node), type(node.op).__name__, node.left, node.right)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._call("computed", self._at(node), dotted(node.func), *node.args)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if not isinstance(node.op, ast.Not):
            word = "Sub" if isinstance(node.op, ast.USub) else "Add"
            return self._call("computed", self._at(node), word, 0, node.operand)
        return self._call("negated", node.operand) if self._columns else self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if not self._columns:
            return self.generic_visit(node)
        return self._call("joined", isinstance(node.op, ast.And), *node.values)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if not self._columns:
            return self.generic_visit(node)
        return self._call("chosen", node.test, node.body, node.orelse)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if not self._columns:
            return self.generic_visit(node)
        names = (type(op).__name__ for op in node.ops)
        pairs = zip(names, node.comparators, strict=True)
        return self._call("compared", node.left, *(part for pair in pairs for part in pair))

    def _at(self, node: ast.expr) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _call(self, name: str, *parts: Any) -> ast.Call:
        """Return a call of the machine with nodes and plain values."""
        given = [
            self.visit(one) if isinstance(one, ast.AST) else ast.Constant(value=one)
            for one in parts
        ]
        return ast.Call(ast.Attribute(ast.Name("m", ast.Load()), name, ast.Load()), given, [])


def _compiled(tree: ast.expr, *, columns: bool) -> Callable[..., Any]:
    """Return a function of values by name."""
    nodes: list[ast.expr] = []
    body = _Code(nodes, columns=columns).visit(copy.deepcopy(tree))
    module = ast.parse("lambda v, m: 0", mode="eval")
    assert isinstance(module.body, ast.Lambda)
    module.body.body = body
    code = compile(ast.fix_missing_locations(module), "<expression>", "eval")
    function = eval(code, {"__builtins__": {}})  # noqa: S307 - of nodes that are on the list
    machine = _ColumnMachine() if columns else _ValueMachine(nodes)
    return lambda values: function(values, machine)


class _ValueMachine:
    """Computes what Python does, and refuses what no space can hold."""

    def __init__(self, nodes: Sequence[ast.expr]) -> None:
        self._nodes = nodes

    def computed(self, at: int, name: str, *given: Any) -> Any:
        """Return the result of an operator or a function."""

        def wrong(code: str, message: str, hint: str | None = None) -> NoReturn:
            raise _WrongError(code, message, self._nodes[at], hint)

        if not all(isinstance(one, int | float) for one in given):
            wrong("EATSS-S011", "a text stands where a number belongs")
        if name in _WHOLE and not all(isinstance(one, int) for one in given):
            wrong("EATSS-S011", "a whole number belongs here", "write //, floor or ceil")
        if name == "Pow" and not (isinstance(given[1], int) and 0 <= given[1] <= MOST_EXPONENT):
            wrong("EATSS-S011", f"an exponent is a whole number from 0 to {MOST_EXPONENT}")
        try:
            found = _PLAIN[name](*given)
        except ZeroDivisionError:
            wrong("EATSS-S013", "division by zero")
        except ValueError:
            wrong("EATSS-S013", "log2 of no positive number")
        except OverflowError:
            wrong("EATSS-S014", "the result is too large")
        if isinstance(found, float) and not math.isfinite(found):
            wrong("EATSS-S014", "the result is too large")
        if isinstance(found, int) and abs(found) > LARGEST:
            wrong("EATSS-S014", "the result is a whole number over 2^53")
        return found


class _ColumnMachine:
    """Computes columns, as long as each row is what Python computes."""

    def computed(self, at: int, name: str, *given: Any) -> Any:
        """Return the result of an operator or a function."""
        del at
        given = tuple(map(_number, given))
        whole = all(_kind(one) == "i" for one in given)
        if name in _DIVISOR and not np.all(given[_DIVISOR[name]]):
            raise _DoubtError
        if name == "Pow" and not (np.all(given[1] >= 0) and np.all(given[1] <= MOST_EXPONENT)):
            raise _DoubtError
        if name not in _COLUMNS or ((name in _WHOLE or name == "Pow") and not whole):
            raise _DoubtError
        if name in ("ceil", "floor"):
            return given[0] if whole else _bounded(_COLUMNS[name](*given)).astype(np.int64)
        if name in ("Add", "Sub", "Mult", "Pow"):
            _bounded(_COLUMNS[name](np.asarray(given[0], dtype=np.float64), given[1]))
        return reduce(_COLUMNS[name], given) if len(given) > 1 else _COLUMNS[name](*given)

    def negated(self, value: Any) -> Any:
        """Return what is not so."""
        return ~_truth(value)

    def chosen(self, test: Any, then: Any, otherwise: Any) -> Any:
        """Return ``then`` where the test is true, else ``otherwise``."""
        kinds = {_kind(then), _kind(otherwise)}
        if not (kinds <= set("bif") or kinds == {"U"}):
            raise _DoubtError
        return np.where(_truth(test), then, otherwise)

    def joined(self, both: bool, *values: Any) -> Any:
        """Return what ``and`` or ``or`` gives."""

        def two(first: Any, second: Any) -> Any:
            return self.chosen(first, second, first) if both else self.chosen(first, first, second)

        return reduce(two, values)

    def compared(self, left: Any, *rest: Any) -> Any:
        """Return whether all comparisons of a chain hold."""
        found: Any = True
        for name, right in zip(rest[::2], rest[1::2], strict=True):
            if name in ("In", "NotIn"):
                if not isinstance(right, list | tuple):
                    raise _DoubtError
                among = [self._related("Eq", left, one) for one in right]
                any_of = reduce(np.logical_or, among, np.asarray(False))
                found = found & (any_of if name == "In" else ~any_of)
            else:
                found = found & np.asarray(self._related(name, left, right))
            left = right
        return found

    @staticmethod
    def _related(name: str, left: Any, right: Any) -> Any:
        kinds = {_kind(left), _kind(right)}
        if not (kinds <= set("bif") or kinds == {"U"}):
            raise _DoubtError
        return _COMPARE[name](left, right)


def _kind(value: Any) -> str:
    return np.asarray(value).dtype.kind


def _number(value: Any) -> Any:
    """Return numbers; conditions count as 0 and 1."""
    kind = _kind(value)
    if kind not in "bif":
        raise _DoubtError
    return np.asarray(value).astype(np.int64) if kind == "b" else value


def _truth(value: Any) -> Column:
    if _kind(value) not in "bif":
        raise _DoubtError
    return np.asarray(np.asarray(value) != 0)


def _bounded(value: Any) -> Column:
    """Return numbers that whole numbers of 64 bits hold exactly."""
    column = np.asarray(value)
    if not np.all(np.abs(column) <= LARGEST):
        raise _DoubtError
    return column


def column_of(values: Sequence[Value]) -> Column:
    """Return values as a column: of one kind where they are numbers, or all texts."""
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {str}) or kinds <= {int, float}:
        return np.array(values, dtype=np.int64 if kinds == {int} else None)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def evaluate(expression: Expression, columns: Named, rows: int) -> Column:
    """Return the values of an expression.

    Args:
        expression: what to compute.
        columns: values by name, of ``rows`` rows or one for all.
        rows: how many rows there are.

    Raises:
        InputError: ``EATSS-S007`` an unknown name, ``EATSS-S011`` a value of the wrong kind,
            ``EATSS-S013`` a division by zero, ``EATSS-S014`` a value that is too large.
    """
    lacking = [name for name in expression.names if name not in columns]
    if lacking:
        raise expression.unknown(lacking[0], columns.keys())
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(expression.of_columns(columns))
        return np.broadcast_to(found, (rows,))
    except (_DoubtError, ArithmeticError, TypeError, ValueError):
        given = ((name, columns[name]) for name in expression.names)
        varied = {name: own.tolist() for name, own in given if isinstance(own, np.ndarray)}
        each = zip(*varied.values(), strict=True) if varied else [()] * rows
        every = ({**columns, **dict(zip(varied, row, strict=True))} for row in each)
        return column_of([_one(expression, values, varied) for values in every])


def evaluate_one(expression: Expression, values: Mapping[str, Value]) -> Value:
    """Return the value of an expression of plain values; raises as :func:`evaluate`."""
    return _one(expression, values, ())


def _one(expression: Expression, values: Mapping[str, Any], varied: Collection[str]) -> Value:
    """Return the value in one row; ``varied`` are the names that a message tells the values of."""
    shown = [f"{name} = {values[name]}" for name in varied]
    at = f" at {', '.join(shown)}" if shown else ""
    try:
        found: Value = expression.of_values(values)
    except KeyError as error:
        raise expression.unknown(error.args[0], values.keys()) from None
    except _WrongError as wrong:
        raise expression.error(
            wrong.code, wrong.message + at, wrong.node, hint=wrong.hint
        ) from None
    except TypeError as error:
        raise expression.error("EATSS-S011", f"{error}{at}") from None
    return found


def truth(expression: Expression, column: Column) -> Column:
    """Return which values count as true."""
    if column.dtype.kind in "bif":
        return np.asarray(column != 0)
    raise expression.error("EATSS-S011", "a text is no condition")

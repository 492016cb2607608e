"""Expressions of a search space: Python's own grammar, of which a white list is allowed.

``(blk_m + blk_n) * blk_k * bytes <= card.shared_per_block_bytes`` is parsed by :mod:`ast` and never
executed as Python. Allowed are whole numbers, numbers, texts, names (dotted too), ``+ - * / // %
**``, comparisons, ``and or not``, ``a if c else b``, ``in`` lists, and ``FUNCTIONS``.
What is wrong with one is told with its place in the document.

Values of an expression, a column at once: what Python would compute, row by row.

A column is a NumPy array with a value a row, or one value for all rows. Of ``and``, ``or``,
``a if c else b`` and chained comparisons only the rows count whose values Python would compute: the
others may have no value. Whole numbers stay exact: beyond 2^53 there is an error, never a wrong
number.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from math import isinf
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, did_you_mean
from eatss.base.frozen import frozen
from eatss.cards.document import Origin, finding
from eatss.tune.points import Space, Value

FUNCTIONS = {
    "min": (2, None),
    "max": (2, None),
    "ceil": (1, 1),
    "floor": (1, 1),
    "abs": (1, 1),
    "ceildiv": (2, 2),
    "gcd": (2, 2),
    "lcm": (2, 2),
    "log2": (1, 1),
    "divides": (2, 2),
}
"""How many arguments each function takes, at least and at most."""

LARGEST = 1 << 53
"""Whole numbers up to this are also exact as numbers with a fraction."""

LONGEST_TEXT = 10_000
_DEEPEST = 120
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)


Place: TypeAlias = tuple[str, ...]
"""Where something stands in a document: keys of its tables."""


@dataclass(eq=False)
class ExpressionFault(Exception):  # noqa: N818 - it becomes an error with a place in a file
    """What is wrong with an expression.

    ``start`` and ``end`` are characters of ``text``, which stands at ``path`` of a document.
    """

    code: str
    message: str
    start: int = 0
    end: int = 0
    hint: str | None = None
    text: str = ""
    path: Place = ()


@frozen
class Expression:
    """A parsed expression.

    Attributes:
        text: As it was written.
        names: Names that it needs values of, in the order of reading.
        path: Where it stands in the document of its space.
    """

    text: str
    names: tuple[str, ...]
    path: Place = ()
    tree: ast.expr = field(compare=False, repr=False)

    def fault(
        self, code: str, message: str, node: ast.expr | None = None, *, hint: str | None = None
    ) -> ExpressionFault:
        """Return what is wrong with a part of it, or with all of it."""
        start, end = (0, len(self.text)) if node is None else _extent(self.text, node)
        return ExpressionFault(code, message, start, end, hint, self.text, self.path)

    def unknown(self, name: str, known: Collection[str]) -> ExpressionFault:
        """Return that a name has no value."""
        node = next(node for node in ast.walk(self.tree) if dotted(node) == name)
        assert isinstance(node, ast.expr)
        hint = did_you_mean(name, sorted(known), "known")
        if not known:
            hint = "a text stands between quotes"
        return self.fault("EATSS-S007", f"nothing is called {name}", node, hint=hint)


def parse_expression(text: str, path: Place = ()) -> Expression:
    """Return the expression of a text.

    Raises:
        ExpressionFault: ``EATSS-S007`` it is none, or it has what is not on the list,
            ``EATSS-S014`` a whole number beyond 2^53.
    """
    text = re.sub(r"[\r\n\t]", " ", text)

    def wrong(message: str, start: int = 0, end: int = 0) -> ExpressionFault:
        return ExpressionFault("EATSS-S007", message, start, end, text=text, path=path)

    if len(text) > LONGEST_TEXT:
        raise wrong(f"an expression has at most {LONGEST_TEXT} characters, this one {len(text)}")
    indent = len(text) - len(text.lstrip(" "))
    if not text.strip():
        raise wrong("an expression is missing")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text[indent:], mode="eval").body
        for node in ast.walk(tree):  # blanks before an expression are no part of what is parsed
            if isinstance(node, ast.expr):
                node.col_offset += indent
                node.end_col_offset = (node.end_col_offset or 0) + indent
    except SyntaxError as error:
        start = min(max((error.offset or 1) - 1 + indent, 0), len(text) - 1)
        end = max(start + 1, min((error.end_offset or 0) - 1 + indent, len(text)))
        words = error.msg.split(". ", maxsplit=1)[0].removeprefix("invalid syntax").strip(" .,")
        raise wrong(f"this is no expression{': ' if words else ''}{words}", start, end) from None
    except (ValueError, RecursionError, MemoryError):
        raise wrong("this is no expression", 0, len(text)) from None
    found = Expression(text=text, names=(), path=path, tree=tree)
    try:
        return replace(found, names=tuple(dict.fromkeys(_checked(found, tree, 0))))
    except RecursionError:
        raise found.fault("EATSS-S007", "the expression is nested too deeply") from None


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
    for part in name.split("."):
        if keyword.iskeyword(part):
            return f"{part} is a word of Python"
    if name in FUNCTIONS:
        return f"{name} is a function of expressions"
    return None


def _extent(text: str, node: ast.expr) -> tuple[int, int]:
    """Return the characters of a node; ``ast`` counts bytes of UTF-8."""
    data = text.encode()
    start = len(data[: node.col_offset].decode(errors="ignore"))
    end = len(data[: node.end_col_offset or node.col_offset + 1].decode(errors="ignore"))
    return start, max(end, start + 1)


def _checked(whole: Expression, node: ast.expr, depth: int) -> Iterator[str]:
    """Yield the names of a node and check that all of it is on the list."""
    if depth > _DEEPEST:
        raise whole.fault("EATSS-S007", "the expression is nested too deeply", node)
    name = dotted(node)
    if name is not None:
        fault = name_fault(name)
        if fault is not None:
            raise whole.fault("EATSS-S007", f"{name} is no name of a value: {fault}", node)
        yield name
        return
    for part in _parts(whole, node):
        yield from _checked(whole, part, depth + 1)


def _parts(whole: Expression, node: ast.expr) -> list[ast.expr]:  # noqa: PLR0911 - a table
    """Return the parts of a node that is on the list."""
    match node:
        case ast.Constant():
            _check_literal(whole, node)
            return []
        case ast.BinOp() if isinstance(node.op, _OPERATORS):
            return [node.left, node.right]
        case ast.UnaryOp() if not isinstance(node.op, ast.Invert):
            return [node.operand]
        case ast.BoolOp():
            return node.values
        case ast.IfExp():
            return [node.test, node.body, node.orelse]
        case ast.Compare() if all(isinstance(op, _COMPARISONS) for op in node.ops):
            return _compared(whole, node)
        case ast.Call():
            return _arguments(whole, node)
        case _:
            raise whole.fault(
                "EATSS-S007",
                f"{_kind(node)} cannot stand in an expression of a space",
                node,
                hint="allowed: numbers, texts, names, + - * / // % **, comparisons, and, or, not, "
                f"a if c else b, in [...], {', '.join(FUNCTIONS)}",
            )


def _compared(whole: Expression, node: ast.Compare) -> list[ast.expr]:
    parts = [node.left]
    for op, right in zip(node.ops, node.comparators, strict=True):
        if not isinstance(op, ast.In | ast.NotIn):
            parts.append(right)
        elif isinstance(right, ast.List | ast.Tuple) and len(node.ops) == 1:
            parts += right.elts
        else:
            hint = "write x in [8, 16]"
            raise whole.fault("EATSS-S007", "'in' wants a list after it", right, hint=hint)
    return parts


def _arguments(whole: Expression, node: ast.Call) -> list[ast.expr]:
    name = dotted(node.func) or ""
    hint = None
    if name not in FUNCTIONS:
        close = difflib.get_close_matches(name, FUNCTIONS, n=1)
        hint = "".join(f"did you mean {one}? " for one in close) + f"known: {', '.join(FUNCTIONS)}"
        message = f"there is no function {name}".strip()
    elif node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        message = f"{name} takes plain arguments"
    else:
        least, most = FUNCTIONS[name]
        if least <= len(node.args) <= (most or len(node.args)):
            return node.args
        wanted = f"{least}" if most == least else f"{least} or more"
        message = f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}"
        message += f", not {len(node.args)}"
    raise whole.fault("EATSS-S007", message, node, hint=hint)


def _check_literal(whole: Expression, node: ast.Constant) -> None:
    value = node.value
    if not isinstance(value, bool | int | float | str):
        raise whole.fault("EATSS-S007", f"{_kind(node)} is no value of a space", node)
    if isinstance(value, str):
        if not value.isprintable():
            raise whole.fault("EATSS-S007", "a text has printable characters only", node)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise whole.fault("EATSS-S014", "a whole number is at most 2^53", node)
    elif isinf(value):
        raise whole.fault("EATSS-S014", "this number is too large", node)


_KINDS = {
    ast.Lambda: "a function",
    ast.Attribute: "an attribute of a value",
    ast.Subscript: "a subscript",
    ast.List: "a list that does not follow 'in'",
    ast.Tuple: "a comma",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a formatted text",
    ast.BinOp: "this operator",
    ast.UnaryOp: "this operator",
    ast.Compare: "this comparison",
    ast.Constant: "this",
}


def _kind(node: ast.expr) -> str:
    return _KINDS.get(type(node), "this")


def origin_of(space: Space) -> Origin:
    """Return what the messages about a space name, and its text where it came from a file."""
    return Origin(label=space.source or f"the space {space.name}", text=space.text or None)


def expression_finding(fault: ExpressionFault, origin: Origin) -> Diagnostic:
    """Return a finding about a part of an expression, pointed at where that is in a file."""
    found = finding(fault.code, fault.message, fault.path, origin, fault.hint)
    if found.span is None or found.source_line is None:
        where = f'in "{fault.text}", column {fault.start + 1}' if fault.text else ""
        named = ".".join(fault.path)
        message = f"{origin.label}: {named}: {fault.message}" if named else fault.message
        return replace(found, message=f"{message} ({where})" if where else message)
    return _pointed(found, found.span, found.source_line, fault)


@contextmanager
def placed(space: Space) -> Iterator[None]:
    """Turn what expressions raise into errors with a place in the space's file."""
    try:
        yield
    except ExpressionFault as fault:
        raise InputError(expression_finding(fault, origin_of(space))) from None


@contextmanager
def noted(space: Space, findings: list[Diagnostic]) -> Iterator[None]:
    """Note what an expression raises among the findings about its space."""
    try:
        yield
    except ExpressionFault as fault:
        findings.append(expression_finding(fault, origin_of(space)))


def _pointed(found: Diagnostic, span: SourceSpan, line: str, fault: ExpressionFault) -> Diagnostic:
    """Return the finding at the part of the expression, where its text stands on the key's line."""
    after = re.compile(r"\s*=\s*").match(line, span.end_column - 1)
    start = line.find(fault.text, after.end() if after else span.end_column - 1)
    if not fault.text or start < 0:
        return found
    column = start + fault.start + 1
    place = replace(span, column=column, end_column=max(start + fault.end, column) + 1)
    return replace(found, span=place)


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
        ExpressionFault: ``EATSS-S007`` an unknown name, ``EATSS-S011`` a value of the wrong kind,
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
    raise expression.fault("EATSS-S011", f"{words} is no condition", node)


class _Rows:
    """Columns for which an expression is computed; ``where`` are the rows that count."""

    def __init__(self, expression: Expression, columns: Named, rows: int) -> None:
        self._expression, self._columns, self._rows = expression, columns, rows
        self._mixed: list[tuple[Column, Column]] = []

    def _mixing(self, result: Any, whole: Column) -> Column:
        """Note in which rows numbers of a result are whole in Python; return it as a column."""
        column = np.asarray(result)
        if column.dtype.kind == "f" and whole.any():
            self._mixed.append((column, whole))
        return column

    def _whole(self, column: Column) -> Column:
        """Return in which rows the values are whole numbers in Python."""
        if column.dtype.kind != "f":
            return _ALL
        found = (whole for mixed, whole in self._mixed if mixed is column)
        return next(found, np.asarray(False))

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
                return (
                    self._mixing(-column, self._whole(column))
                    if isinstance(op, ast.USub)
                    else column
                )
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
            raise self._expression.fault("EATSS-S011", f"this is {words}", node)
        return self._picked(test, then, otherwise)

    def _picked(self, test: Column, then: Column, otherwise: Column) -> Column:
        whole = np.where(test, self._whole(then), self._whole(otherwise))
        return self._mixing(np.where(test, then, otherwise), whole)

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
        raise self._expression.fault("EATSS-S011", message, node, hint=hint)

    def _binary(self, node: ast.BinOp, where: Column) -> Column:
        raises = isinstance(node.op, ast.Pow)
        left, right = (
            self._number(node.left, where), self._number(node.right, where, whole=raises)
        )  # fmt: skip
        if raises:
            return self._power(node, left, right, where)
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            self._refuse(right == 0, "EATSS-S013", "division by zero", node, where)
        compute = _ARITHMETIC[type(node.op)]
        if isinstance(node.op, ast.Div):
            return self._bounded(compute(left, right), node, where)
        whole = self._whole(left) & self._whole(right)
        if left.dtype.kind == right.dtype.kind == "i":
            return self._of_integers(node, compute, left, right, where)
        if whole.any():
            first, second = (np.where(whole, side, 1).astype(np.int64) for side in (left, right))
            self._of_integers(node, compute, first, second, where)
        return self._bounded(compute(left, right), node, where, whole=whole)

    def _of_integers(
        self,
        node: ast.BinOp,
        compute: Callable[[Any, Any], Any],
        left: Column,
        right: Column,
        where: Column,
    ) -> Column:
        if isinstance(node.op, ast.Mult):
            self._bounded(np.multiply(left, right, dtype=np.float64), node, where, whole=_ALL)
        return self._bounded(compute(left, right), node, where)

    def _power(self, node: ast.BinOp, base: Column, exponent: Column, where: Column) -> Column:
        kept = np.clip(exponent, 0, MOST_EXPONENT)
        message = f"an exponent is a whole number from 0 to {MOST_EXPONENT}"
        self._refuse(kept != exponent, "EATSS-S011", message, node.right, where)
        if base.dtype.kind == "f":
            powers = _each(_float_power, base, kept)
            return self._bounded(powers, node, where, whole=self._whole(base))
        self._bounded(np.power(base.astype(np.float64), kept), node, where, whole=_ALL)
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
            raise self._expression.fault("EATSS-S011", f"this compares {words}", node)
        if kinds & set("UO") and not isinstance(op, ast.Eq | ast.NotEq):
            message = "texts are equal or not, none is larger"
            raise self._expression.fault("EATSS-S011", message, node)
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
                better = operator.lt if name == "min" else operator.gt
                return reduce(lambda a, b: self._picked(better(b, a), b, a), columns)
            case "abs":
                return self._mixing(np.abs(column), self._whole(column))
            case "log2":
                bad = column <= 0
                self._refuse(bad, "EATSS-S013", "log2 of no positive number", node, where)
                return _each(math.log2, np.where(bad, 1, column))
        if column.dtype.kind == "i":
            return column
        rounded = np.ceil(column) if name == "ceil" else np.floor(column)
        return self._bounded(rounded, node, where, whole=_ALL).astype(np.int64)

    def _of_whole_numbers(
        self, node: ast.Call, name: str, first: Column, second: Column, where: Column
    ) -> Any:
        if name == "gcd":
            return np.gcd(first, second)
        if name == "lcm":
            parts = first // np.maximum(np.gcd(first, second), 1)
            product = np.multiply(parts, second, dtype=np.float64)
            self._bounded(product, node, where, whole=_ALL)
            return self._bounded(np.abs(parts * second), node, where)
        divisor = second if name == "ceildiv" else first
        self._refuse(divisor == 0, "EATSS-S013", "division by zero", node, where)
        return -(-first // second) if name == "ceildiv" else second % first == 0

    def _bounded(
        self, result: Any, node: ast.expr, where: Column, *, whole: Column | None = None
    ) -> Column:
        """Refuse results that are too large; ``whole`` are the rows that are so in Python.

        Whole numbers that 2^53 does not hold are found in floating point before they wrap.
        """
        column: Column = np.asarray(result)
        whole = self._whole(column) if whole is None else whole
        over = whole & ~(np.abs(column) <= LARGEST)
        self._refuse(over, "EATSS-S014", "the result is a whole number over 2^53", node, where)
        self._refuse(~np.isfinite(column), "EATSS-S014", "the result is too large", node, where)
        return self._mixing(column, whole)

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

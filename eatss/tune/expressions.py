"""Expressions of a search space: Python's own grammar, of which a white list is allowed.

``(blk_m + blk_n) * blk_k * bytes <= card.shared_per_block_bytes`` is parsed by :mod:`ast`, checked
and computed of columns, a value a row, or of plain values: each row has what Python would compute,
and a division by zero or a whole number beyond 2^53 is told with its place.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean
from eatss.base.frozen import Names, frozen
from eatss.base.text import Texts
from eatss.cards.document import Origin, finding
from eatss.tune.points import Value

LARGEST = 1 << 53
"""Whole numbers up to this are also exact as numbers with a fraction."""

LONGEST_TEXT = 10_000
MOST_EXPONENT = 64
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

_Function: TypeAlias = Callable[..., Any]


_FUNCTION: Mapping[str, _Function] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mult": np.multiply,
    "Div": np.true_divide,
    "FloorDiv": np.floor_divide,
    "Mod": np.remainder,
    "Pow": np.frompyfunc(operator.pow, 2, 1),
    "min": lambda *given: reduce(np.minimum, given),
    "max": lambda *given: reduce(np.maximum, given),
    "ceil": np.ceil,
    "floor": np.floor,
    "abs": np.abs,
    "ceildiv": lambda a, b: -(-a // b),
    "gcd": np.gcd,
    "lcm": np.frompyfunc(math.lcm, 2, 1),
    "log2": np.frompyfunc(math.log2, 1, 1),
    "divides": lambda a, b: b % a == 0,
}
_COMPARE: Mapping[str, _Function] = {
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
    "Constant Name Attribute Call List Tuple Load BinOp UnaryOp BoolOp Compare IfExp "
    "Add Sub Mult Div FloorDiv Mod Pow USub UAdd Not And Or Eq NotEq Lt LtE Gt GtE In NotIn"
)
"""Kinds of nodes that an expression may have."""

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
        self.code, self.node, self.hint = code, node, hint


@frozen
class Expression:
    """A parsed expression.

    Attributes:
        text: As it was written.
        names: Names that it needs values of, in the order of reading.
        path: Where it stands in the document of its space.
        origin: That document.
        tree: As it was parsed.
    """

    text: str
    names: Names = ()
    path: Place = ()
    origin: Origin = field(default=Origin(label="expression"), compare=False)
    tree: ast.expr = field(compare=False, repr=False)

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
            ``EATSS-S011`` a whole number beyond 2^53.
    """
    text = re.sub(r"[\r\n\t]", " ", text).strip()
    origin = origin or Origin(label="expression")

    def wrong(message: str, start: int = 0, end: int = 0) -> InputError:
        return InputError(pointed("EATSS-S007", message, path, origin, text, (start, end)))

    if not 0 < len(text) <= LONGEST_TEXT:
        raise wrong(f"an expression has 1 to {LONGEST_TEXT} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval").body
        whole = Expression(text=text, path=path, origin=origin, tree=tree)
        return replace(whole, names=_checked(tree))
    except SyntaxError as error:
        start = min(max((error.offset or 1) - 1, 0), len(text) - 1)
        end = max(start + 1, min((error.end_offset or 0) - 1, len(text)))
        words = error.msg.split(". ", maxsplit=1)[0].removeprefix("invalid syntax").strip(" .,")
        raise wrong(f"this is no expression{': ' if words else ''}{words}", start, end) from None
    except _WrongError as error:
        raise whole.error(error.code, str(error), error.node, hint=error.hint) from None
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


def _checked(node: ast.expr) -> Texts:
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
    kinds = {type(x).__name__ for x in (node, *words)}
    if isinstance(node, ast.Attribute) or not kinds <= {*_ALLOWED.split()}:
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
    if not isinstance(value, Value) or (isinstance(value, str) and not value.isprintable()):
        raise _WrongError("EATSS-S007", "this is no value of a space", node)
    if not isinstance(value, str) and not (
        abs(value) <= LARGEST if isinstance(value, int) else math.isfinite(value)
    ):
        raise _WrongError("EATSS-S011", "a whole number is at most 2^53", node)


_Lookup: TypeAlias = Callable[[str], Any]
"""Returns the values of a name: a column, or one value for all rows."""


def _computed(node: ast.expr, of: _Lookup) -> Any:  # noqa: C901, PLR0911 - a case a kind of node
    """Return the values of a node, as Python computes them row by row.

    A part that ``and``, ``or``, ``if`` or a chain of comparisons leaves out in a row is not
    computed there.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute():
            return of(dotted(node) or "")
        case ast.BoolOp(op=op, values=[first, *rest]):
            found = _computed(first, of)
            for part in rest:
                goes_on = _true(found, node) == isinstance(op, ast.And)
                found = _either(goes_on, part, found, of)
            return found
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _either(_true(_computed(test, of), test), body, orelse, of)
        case ast.Compare(left=left, ops=[op, *ops], comparators=[right, *rest]):
            found = _compared(node, type(op).__name__, _computed(left, of), right, of)
            chain = ast.copy_location(ast.Compare(right, ops, rest), node)
            return _either(found, chain, False, of) if ops else found
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.logical_not(_true(_computed(operand, of), operand))
        case ast.UnaryOp(op=sign, operand=operand):
            name = "Sub" if isinstance(sign, ast.USub) else "Add"
            return _applied(node, name, [0, _computed(operand, of)], of)
        case ast.BinOp(left=left, op=operation, right=right):
            both = [_computed(left, of), _computed(right, of)]
            return _applied(node, type(operation).__name__, both, of)
        case ast.Call(func=func, args=arguments):
            return _applied(node, dotted(func) or "", [_computed(x, of) for x in arguments], of)
    raise _WrongError("EATSS-S011", "a list stands behind 'in' alone", node)


def _either(where: Any, then: ast.expr, otherwise: Any, of: _Lookup) -> Any:
    """Return the values of ``then`` in some rows, in the others those of another node, or values.

    Each is computed in its own rows alone.
    """

    def values(part: Any, rows: Any = None) -> Any:
        if not isinstance(part, ast.expr):
            return part if rows is None else np.broadcast_to(part, rows.shape)[rows]
        return _computed(part, of if rows is None else partial(_some, of, rows))

    if np.ndim(where) == 0 or where.all() or not where.any():
        return values(then if np.all(where) else otherwise)
    first, second = (np.asarray(values(*one)) for one in ((then, where), (otherwise, ~where)))
    alike = _is_number(first, second) or first.dtype.kind == second.dtype.kind
    found = np.empty(where.shape, dtype=np.result_type(first, second) if alike else object)
    found[where], found[~where] = first, second
    return found


def _some(of: _Lookup, rows: Column, name: str) -> Any:
    values = of(name)
    return values[rows] if isinstance(values, np.ndarray) else values


def _compared(node: ast.expr, name: str, left: Any, right: ast.expr, of: _Lookup) -> Any:
    """Return whether a comparison holds; texts and numbers are not equal, and have no order."""

    def related(name: str, other: Any) -> Any:
        if _is_number(left, other) or _kind(left) == _kind(other):
            return _COMPARE[name](left, other)
        both = (np.asarray(one, dtype=object) for one in (left, other))
        return _COMPARE[name](*both)

    try:
        if name not in ("In", "NotIn"):
            return related(name, _computed(right, of))
        if not isinstance(right, ast.List | ast.Tuple):
            raise _WrongError("EATSS-S011", f"behind '{name}' stands a list", node)
        every = [_computed(one, of) for one in right.elts]
        if all(isinstance(one, int | float) for one in every) and _is_number(left):
            found = np.isin(left, every)
        else:
            found = reduce(np.logical_or, (related("Eq", one) for one in every), np.asarray(False))
        return found if name == "In" else np.logical_not(found)
    except TypeError as error:
        raise _WrongError("EATSS-S011", str(error), node) from None


def _applied(node: ast.expr, name: str, given: list[Any], of: _Lookup) -> Any:
    """Return the result of an operator or a function; refuse what no space can hold."""

    def refuse(bad: Any, code: str, message: str, hint: str | None = None) -> None:
        if np.any(bad):
            names = dict.fromkeys(filter(None, map(dotted, ast.walk(node))))
            seen = {name: of(name) for name in names if name not in FUNCTIONS}
            raise _WrongError(code, message + at_first(bad, seen), node, hint)

    refuse(not _is_number(*given), "EATSS-S011", "a text stands where a number belongs")
    given = [one * 1 if _kind(one) == "b" else one for one in given]
    whole = all(_kind(one) == "i" for one in given)
    whole_only = name in _WHOLE and not whole
    refuse(whole_only, "EATSS-S011", "a whole number belongs here", "write //, floor or ceil")
    if name == "Pow":
        most = np.arange(MOST_EXPONENT + 1)
        refuse(
            ~np.isin(given[1], most),
            "EATSS-S011",
            f"an exponent is a whole number from 0 to {MOST_EXPONENT}",
        )
    if name in _DIVISOR:
        refuse(given[_DIVISOR[name]] == 0, "EATSS-S011", "division by zero")
    refuse(name == "log2" and given[0] <= 0, "EATSS-S011", "log2 of no positive number")
    too_large = "EATSS-S011", "the result is too large, as is a whole number over 2^53"
    if whole and name in ("Add", "Sub", "Mult"):  # 64 bits may not hold it
        about = _FUNCTION[name](np.asarray(given[0], dtype=np.float64), given[1])
        refuse(np.abs(about) > 2 * LARGEST, *too_large)
    try:
        found = _FUNCTION[name](*given)
    except OverflowError:
        refuse(True, *too_large)
    if whole or name in ("ceil", "floor"):
        refuse(np.abs(found) > LARGEST, *too_large)
    if _kind(found) == "O":
        found = np.asarray(found.tolist())
    refuse(~np.isfinite(found), *too_large)
    is_whole = name in ("ceil", "floor")
    return np.asarray(found, dtype=np.int64)[()] if is_whole else found


def at_first(bad: Any, columns: Named) -> str:
    """Return what columns have in the first of some rows, as words."""
    arrays = ((name, own) for name, own in columns.items() if np.size(own) and np.ndim(own))
    shown = ", ".join(f"{name} = {np.asarray(own)[np.argmax(bad)]}" for name, own in arrays)
    return f" at {shown}" if shown else ""


def _kind(value: Any) -> str:
    return np.asarray(value).dtype.kind


def _is_number(*values: Any) -> bool:
    return all(_kind(one) in "bif" for one in values)


def _true(value: Any, node: ast.expr | None) -> Any:
    if not _is_number(value):
        raise _WrongError("EATSS-S011", "a text is no condition", node)
    return value != 0


def column_of(values: Sequence[Value]) -> Column:
    """Return values as a column: of one kind where they are numbers, or all texts."""
    kinds = {type(value) for value in values}
    if kinds == {str} or str not in kinds:
        return np.array(values)
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
            ``EATSS-S011`` a division by zero, ``EATSS-S011`` a value that is too large.
    """
    return np.broadcast_to(_values(expression, columns), (rows,))


def evaluate_one(expression: Expression, values: Mapping[str, Value]) -> Value:
    """Return the value of an expression of plain values; raises as :func:`evaluate`."""
    found: Value = np.asarray(_values(expression, values)).item()
    return found


def holds(expression: Expression, columns: Named, rows: int) -> Column:
    """Return in which rows an expression counts as true; raises as :func:`evaluate`."""
    return np.broadcast_to(_values(expression, columns, condition=True), (rows,))


def _values(expression: Expression, columns: Named, *, condition: bool = False) -> Any:
    lacking = [name for name in expression.names if name not in columns]
    if lacking:
        raise expression.unknown(lacking[0], columns.keys())
    try:
        with np.errstate(all="ignore"):
            found = _computed(expression.tree, columns.__getitem__)
            return _true(found, None) if condition else found
    except _WrongError as wrong:
        raise expression.error(wrong.code, str(wrong), wrong.node, hint=wrong.hint) from None

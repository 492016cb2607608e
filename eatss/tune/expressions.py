"""Expressions of a search space: Python's own grammar, of which a white list is allowed.

``(blk_m + blk_n) * blk_k * bytes <= card.shared_per_block_bytes`` is parsed by :mod:`ast` and
checked. Its value is what Python computes.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import Diagnostic, InputError, did_you_mean
from eatss.base.frozen import Names, frozen
from eatss.cards.document import Origin, finding
from eatss.tune.points import Value

LARGEST = 1 << 53
"""Whole numbers up to this are also exact as numbers with a fraction."""

LARGEST_EXPONENT = 1024

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
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
"""What can be called."""

_ALLOWED = re.findall(
    r"\w+",
    "Constant Load IfExp BoolOp And Or UnaryOp Not USub UAdd "
    "BinOp Add Sub Mult Div FloorDiv Mod Pow",
)
"""Kinds of nodes that an expression may have besides names, calls and comparisons."""

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)

Place: TypeAlias = tuple[str, ...]
"""Where something stands in a document: keys of its tables."""


@frozen
class Expression:
    """A parsed expression.

    Attributes:
        text: As it was written.
        names: Names that it needs values of, with where they stand in the text.
        path: Where it stands in the document of its space.
        origin: That document.
        tree: As it was parsed; ``card.sm_count`` is one name.
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
        extent = (0, len(self.text))
        if node is not None:  # ``ast`` counts bytes of UTF-8
            data = self.text.encode()
            start, end = (
                len(data[:at].decode(errors="ignore"))
                for at in (node.col_offset, node.end_col_offset)
            )
            extent = (start, end)
        return InputError(_pointed(code, message, self.path, self.origin, self.text, extent, hint))


def parse_expression(
    text: str,
    path: Place = (),
    origin: Origin | None = None,
    known: Collection[str] | None = None,
) -> Expression:
    """Return the expression of a text, which names nothing but what is ``known``, if that is told.

    Raises:
        InputError: ``EATSS-S007``, it is none, or it has what is not on the list.
    """
    text = re.sub(r"\s", " ", text).strip()
    origin = origin or Origin(label="expression")
    try:
        tree = ast.parse(text, mode="eval").body
        reader = _Reader(Expression(text=text, path=path, origin=origin, tree=tree), known)
        tree = reader.visit(tree)
    except SyntaxError as error:
        start = min(max((error.offset or 1) - 1, 0), max(len(text) - 1, 0))
        message = f"this is no expression: {error.msg}"
        extent = (start, max(start + 1, (error.end_offset or 0) - 1))
        raise InputError(_pointed("EATSS-S007", message, path, origin, text, extent)) from None
    except (RecursionError, MemoryError):
        message, extent = "this is nested too deeply", (0, len(text))
        raise InputError(_pointed("EATSS-S007", message, path, origin, text, extent)) from None
    return replace(reader.whole, tree=tree, names=tuple(dict.fromkeys(reader.names)))


def _pointed(
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
        place = f'{".".join(path)}: {message} (in "{text}", column {extent[0] + 1})'
        return replace(found, message=f"{origin.label}: {place.removeprefix(': ')}")
    start = found.source_line.find(text, found.span.end_column - 1)
    if not text or start < 0:
        return found
    column, end = (start + at + 1 for at in extent)
    return replace(found, span=replace(found.span, column=column, end_column=end))


class _Reader(ast.NodeTransformer):
    """Checks that all nodes are on the list, and makes one name of names with dots."""

    def __init__(self, whole: Expression, known: Collection[str] | None) -> None:
        self.whole = whole
        self._known = known
        self.names: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        """Return a node that can be computed."""
        name = _dotted(node)
        if name is not None:
            return self._named(node, name)
        if isinstance(node, ast.Compare):
            node.left = self.visit(node.left)
            node.comparators = [*map(self._compared, node.ops, node.comparators)]
            return node
        if isinstance(node, ast.Call) and not node.keywords:
            called = _dotted(node.func) or ""
            if called not in FUNCTIONS:
                hint = did_you_mean(called, FUNCTIONS, "known")
                raise self._refused(node, f"there is no function {called}".strip(), hint)
            node.args = [self.visit(one) for one in node.args]
            return node
        is_value = not isinstance(node, ast.Constant) or isinstance(node.value, Value)
        if type(node).__name__ not in _ALLOWED or not is_value:
            raise self._refused(node)
        node = self.generic_visit(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            power = ast.Call(ast.Name("**", ast.Load()), [node.left, node.right], [])
            return ast.fix_missing_locations(ast.copy_location(power, node))
        return node

    def _named(self, node: ast.AST, name: str) -> ast.expr:
        """Return a name that is known."""
        if fault := name_fault(name):
            raise self._refused(node, f"{name} is no name of a value: {fault}")
        if self._known is not None and name not in self._known:
            hint = "a text stands between quotes"
            if self._known:
                hint = did_you_mean(name, sorted(self._known), "known here")
            if name.startswith("card.") and "card.name" not in self._known:
                hint = "figures of a card are known once one is named: --gpu CARD"
            raise self._refused(node, f"nothing is called {name}", hint)
        self.names.append(name)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _compared(self, op: ast.cmpop, other: ast.expr) -> ast.expr:
        """Return what stands behind a comparison: a list behind ``in``, and there alone."""
        if isinstance(op, ast.Is | ast.IsNot):
            raise self._refused(other)
        if not isinstance(op, ast.In | ast.NotIn):
            return self.visit(other)  # type: ignore[no-any-return]
        if not isinstance(other, ast.List | ast.Tuple):
            raise self._refused(other, "a list stands behind 'in'")
        other.elts = [self.visit(one) for one in other.elts]
        return other

    def _refused(self, node: ast.AST, message: str = "", hint: str | None = None) -> InputError:
        at = node if isinstance(node, ast.expr) else None
        message = message or "this cannot stand in an expression of a space"
        allowed = (
            "allowed: numbers, texts, names, + - * / // % **, comparisons, and, or, not, "
            f"a if c else b, in [...], {', '.join(FUNCTIONS)}"
        )
        return self.whole.error("EATSS-S007", message, at, hint=hint or allowed)


def _dotted(node: ast.AST) -> str | None:
    """Return the name that a node is, ``card.sm_count`` too, else ``None``."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def name_fault(name: str) -> str | None:
    """Return why something cannot be called this, ``None`` if it can."""
    if not _NAME.fullmatch(name):
        return "a name has letters, digits and _, and dots between such parts"
    if any(keyword.iskeyword(part) for part in name.split(".")):
        return "it is a word of Python"
    return f"{name} is a function of expressions" if name in FUNCTIONS else None


@lru_cache(maxsize=1024)
def _compiled(expression: Expression) -> Any:
    return compile(ast.Expression(expression.tree), "expression", "eval")


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; ``10 ** 10 ** 10`` would take forever."""
    if exponent > LARGEST_EXPONENT:
        raise OverflowError(f"a power of {exponent} is too large")
    return base**exponent


_KNOWN = {"__builtins__": {}, **FUNCTIONS, "**": _power}


def evaluate(expression: Expression, values: Mapping[str, Value]) -> Value:
    """Return the value of an expression of values, which has all that it names.

    Raises:
        InputError: ``EATSS-S011``, it has none, or one that is no number that a space can hold.
    """
    why = "this is no number, or too large: whole ones go up to 2^53"
    try:
        found: Value = eval(_compiled(expression), _KNOWN, values)  # noqa: S307 - its nodes are on a list
        is_large = isinstance(found, int) and abs(found) > LARGEST
        if isinstance(found, str) or (not is_large and isfinite(found)):
            return found
    except ZeroDivisionError:
        why = "division by zero"
    except (ArithmeticError, MemoryError, TypeError, ValueError) as error:
        why = str(error) or "too large"
    at = ", ".join(f"{name} = {values[name]}" for name in expression.names)
    raise expression.error("EATSS-S011", f"{why} at {at}".removesuffix(" at "))


def holds(expression: Expression, values: Mapping[str, Value]) -> bool:
    """Return whether an expression counts as true; raises as :func:`evaluate`."""
    found = evaluate(expression, values)
    if isinstance(found, str):
        raise expression.error("EATSS-S011", "a text is no condition")
    return bool(found)


Column = npt.NDArray[np.object_]
"""Values as objects of Python: what is computed of them is exact."""


def column_of(values: Sequence[Value]) -> Column:
    """Return values as a column."""
    return np.fromiter(values, dtype=object, count=len(values))


def which_hold(
    expression: Expression, columns: Mapping[str, Column | Value], rows: int
) -> npt.NDArray[np.bool_]:
    """Return in which rows an expression holds, of columns and values of all that it names.

    Raises:
        InputError: as :func:`evaluate`.
    """
    with suppress(ArithmeticError, AttributeError, TypeError, ValueError):
        # whole columns compute as Python does, where no part asks for the truth of one
        found = eval(_compiled(expression), _KNOWN, columns)  # noqa: S307 - its nodes are on a list
        if isinstance(found, np.ndarray) and found.dtype == bool:
            return found
    own = (np.broadcast_to(np.asarray(columns[n], object), rows) for n in expression.names)
    every = zip(*own, strict=True) if expression.names else [()] * rows
    known: dict[tuple[Value, ...], bool] = {}
    met = []
    for row in every:
        if row not in known:
            known[row] = holds(expression, dict(zip(expression.names, row, strict=True)))
        met.append(known[row])
    return np.array(met, dtype=bool)

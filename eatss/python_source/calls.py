"""Calls: functions of ``math`` and NumPy, ``min``, ``max``, ``abs``, conversions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from eatss.python_source.annotations import (
    ELEMENTS,
    NumberType,
    Weak,
    common_type,
    is_floating,
    is_unsigned,
    type_name,
)
from eatss.python_source.c_text import joined, listed
from eatss.python_source.local_variables import Scope
from eatss.python_source.names import MATH, MATH_OF_TWO, NUMPY, NUMPY_OF_TWO, NUMPY_TYPES
from eatss.python_source.text import Code, Findings
from eatss.python_source.values import (
    Value,
    cast,
    chosen,
    converted,
    fixed,
    literal,
    settle,
)
from eatss.scops import ElementType

_KNOWN = "call functions of math and numpy, min, max and abs"
_HINTS = {
    "math.floor": "write numpy.floor, whose result is no integer, or // of integers",
    "math.ceil": "write numpy.ceil, whose result is no integer, or -(-a // b) of integers",
    "math.trunc": "write numpy.trunc, whose result is no integer",
    "numpy.maximum": "write max(a, b), or numpy.fmax(a, b)",
    "numpy.minimum": "write min(a, b), or numpy.fmin(a, b)",
    "numpy.where": "write a if condition else b",
    "builtins.int": "write numpy.int32(…) or numpy.int64(…)",
    "builtins.range": "range is for the head of a loop",
}

_OF_INTEGERS = {
    "numpy.ceil": "leave it out",
    "numpy.floor": "leave it out",
    "numpy.trunc": "leave it out",
    "numpy.fmax": "write max(a, b)",
    "numpy.fmin": "write min(a, b)",
    "numpy.fmod": "write a % 3, which rounds down",
    "numpy.power": "write a ** 2",
}
"""Functions that leave integers integers in NumPy, and what says the same (see their hint)."""


_IN_FLOAT = (ElementType.FLOAT, ElementType.HALF)
"""Types for which functions are those of C for ``float``."""


class Operands(Protocol):
    """Reads arguments; ``ExpressionReader`` does."""

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Read all of some expressions."""

    def unified(self, node: ast.expr, values: list[Value], what: str) -> list[Value]:
        """Return values as values of one type."""


class CallReader:
    """Reads the calls of one function."""

    def __init__(self, scope: Scope, findings: Findings, operands: Operands) -> None:
        self._scope = scope
        self._findings = findings
        self._operands = operands

    def call(self, node: ast.Call) -> Value:
        """Read a call.

        Raises:
            RefusedError: the function is none that is known, or its arguments are wrong.
        """
        full = self._scope.meaning(node.func)
        module, _, name = (full or "").rpartition(".")
        shown = ast.unparse(node.func)
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise self._findings.refusal(
                Code.CALL, node, f"call of '{shown}' with keywords or stars", _KNOWN
            )
        if module == "builtins" and name in ("min", "max") and len(node.args) > 1:
            return self._least(node, name)
        if full in ("builtins.abs", "numpy.abs", "numpy.absolute") and len(node.args) == 1:
            return self._absolute(node)
        if full == "builtins.float" and len(node.args) == 1:
            (value,) = self._operands.values(node.args)
            return replace(self._converted(node, value, Weak.FLOAT), number=None)
        if module == "numpy" and name in NUMPY_TYPES and len(node.args) == 1:
            (value,) = self._operands.values(node.args)
            element = ELEMENTS[NUMPY_TYPES[name]]
            self._converted(node, value, element)
            return fixed(value, element)
        for known, home, count in (
            (MATH, "math", 1), (MATH_OF_TWO, "math", 2), (NUMPY, "numpy", 1),
            (NUMPY_OF_TWO, "numpy", 2),
        ):  # fmt: skip
            if module == home and name in known and len(node.args) == count:
                return self._function(node, full or "", known[name])
        raise self._findings.refusal(
            Code.CALL, node, f"call of '{shown}', whose effect is not known",
            _HINTS.get(full or "", _KNOWN),
        )  # fmt: skip

    def _least(self, node: ast.Call, name: str) -> Value:
        """Read ``min`` or ``max``, which keeps the first of equals, by a macro that does so."""
        values = self._operands.unified(
            node, self._operands.values(node.args), f"the arguments of '{name}'"
        )
        self._scope.macros.add(name)
        text = values[0].piece
        for value in values[1:]:
            text = joined(f"{name}(", text, ", ", value.piece, ")")
        weak, is_zero = chosen(values, values[0].type)
        return Value(piece=text, type=values[0].type, weak=weak, is_zero=is_zero)

    def _absolute(self, node: ast.Call) -> Value:
        (value,) = self._operands.values(node.args)
        kind = value.type
        if value.number is not None:
            return literal(abs(value.number))
        if is_unsigned(kind):
            return value
        function = "abs"
        if is_floating(kind):
            function = "fabsf" if kind in _IN_FLOAT else "fabs"
        elif kind is ElementType.INT64:
            function = "labs"
        text = joined(f"{function}(", value.piece, ")")
        result = Value(piece=text, type=kind, weak=value.weak, is_zero=value.is_zero)
        small = kind in (ElementType.INT8, ElementType.INT16, ElementType.HALF)
        return cast(result, kind) if small else result

    def _function(self, node: ast.Call, full: str, function: str) -> Value:
        """Read a function of floating-point numbers.

        Those of ``math`` take and give doubles; NumPy's keep 32 bits, and round to 16 at the end.
        """
        values = self._operands.values(node.args)
        kind: NumberType = Weak.FLOAT
        if full.startswith("numpy."):
            kind = self._numpy_type(node, full, values)
        if kind in _IN_FLOAT:
            function += "f"
        arguments = []
        for value in values:
            needed = kind in _IN_FLOAT or value.number is not None
            one = self._converted(node, value, kind) if needed else value
            arguments.append(one.piece)
        result = Value(piece=joined(f"{function}(", listed(arguments), ")"), type=kind)
        return cast(result, kind) if kind is ElementType.HALF else result

    def _numpy_type(self, node: ast.Call, full: str, values: Sequence[Value]) -> NumberType:
        kind = values[0].type
        for value in values[1:]:
            kind = common_type(kind, value.type)
        with self._findings.clashes(Code.TYPES, node):
            for value in values:
                settle(value)
        if kind in _IN_FLOAT:
            return kind
        if not is_floating(kind) and full in _OF_INTEGERS:
            raise self._findings.refusal(
                Code.TYPES, node, f"'{full}' of integers is an integer in NumPy, and a double in C",
                f"{_OF_INTEGERS[full]}, or convert with numpy.float64(…)",
            )  # fmt: skip
        if not is_floating(kind) and isinstance(kind, ElementType) and kind.size_bytes < 4:
            raise self._findings.refusal(
                Code.TYPES, node, f"NumPy reckons with fewer than 32 bits for {type_name(kind)}",
                "convert the argument, for example with numpy.float64(…)",
            )  # fmt: skip
        return ElementType.DOUBLE

    def _converted(self, node: ast.Call, value: Value, kind: NumberType) -> Value:
        with self._findings.clashes(Code.NUMBER, node):
            return converted(value, kind)

"""Integer expressions of parameters and loop counters, printed as C and evaluated in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import TypeAlias

from eatss.codec import JsonForm


class Operator(StrEnum):
    """Operators of an integer expression; relations and ``and``, ``or`` give 0 or 1."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    FLOORDIV = "floordiv"
    MOD = "mod"
    QUOTIENT = "/"
    REMAINDER = "%"
    MIN = "min"
    MAX = "max"
    EQ = "=="
    LE = "<="
    LT = "<"
    GE = ">="
    GT = ">"
    AND = "and"
    OR = "or"
    XOR = "^"
    SELECT = "select"


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer."""

    json_layout = JsonForm(shape="value")

    value: int


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter or a counter."""

    json_layout = JsonForm(shape="value")

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator and its operands.

    ``SUB`` of one operand is the negation. ``FLOORDIV`` rounds towards minus infinity and
    ``MOD`` has the sign of the divisor, as in Python; both divisors are positive.
    ``QUOTIENT`` and ``REMAINDER`` are for dividends that are not negative, or where only
    divisibility matters: there C's ``/`` and ``%`` say the same.
    ``XOR`` is bitwise, of numbers that are not negative. ``SELECT`` is
    ``condition ? if_true : if_false``.
    """

    json_layout = JsonForm(shape="list")

    operator: Operator
    operands: tuple[IntExpr, ...]


IntExpr: TypeAlias = Constant | Name | Apply

_PRECEDENCE = {
    Operator.OR: 1,
    Operator.AND: 2,
    Operator.EQ: 3,
    Operator.LE: 4,
    Operator.LT: 4,
    Operator.GE: 4,
    Operator.GT: 4,
    Operator.ADD: 5,
    Operator.SUB: 5,
    Operator.MUL: 6,
    Operator.QUOTIENT: 6,
    Operator.REMAINDER: 6,
}
_UNARY, _ATOM = 7, 9

_CFUNCTIONS = {
    Operator.FLOORDIV: "eatss_floordiv",
    Operator.MOD: "eatss_mod",
    Operator.MIN: "eatss_min",
    Operator.MAX: "eatss_max",
}
_C_OPERATORS = {Operator.AND: "&&", Operator.OR: "||"}


def c_text(expression: IntExpr) -> str:
    """Return C text; the functions ``eatss_floordiv``, ``_mod``, ``_min``, ``_max`` are the
    preamble's of every generated file.
    """  # noqa: D205
    return _c(expression)[0]


def binds_as_a_name(expression: IntExpr) -> bool:
    """Tell whether the C text of an expression needs no parentheses anywhere."""
    return _c(expression)[1] == _ATOM


def _c(expression: IntExpr) -> tuple[str, int]:
    """Return C text and how tightly its outermost operator binds."""
    if isinstance(expression, Constant):
        return str(expression.value), _ATOM if expression.value >= 0 else _UNARY
    if isinstance(expression, Name):
        return expression.name, _ATOM
    operator, operands = expression.operator, expression.operands
    if operator in _CFUNCTIONS:
        return _call(_CFUNCTIONS[operator], operands), _ATOM
    if operator is Operator.SELECT:
        condition, yes, no = (_c(operand)[0] for operand in operands)
        return f"({condition} ? {yes} : {no})", _ATOM
    if len(operands) == 1:
        return f"-{_inside(operands[0], _UNARY + 1)}", _UNARY  # never "--"
    return _infix(operator, operands)


def _infix(operator: Operator, operands: Sequence[IntExpr]) -> tuple[str, int]:
    if operator is Operator.XOR:  # with more parentheses than C needs, for who reads it
        return f"({' ^ '.join(_inside(operand, _UNARY) for operand in operands)})", _ATOM
    level = _PRECEDENCE[operator]
    symbol = _C_OPERATORS.get(operator, operator.value)
    text = _inside(operands[0], level)
    for operand in operands[1:]:
        text += f" {symbol} {_inside(operand, level + 1)}"
    return text, level


def _call(function: str, operands: Sequence[IntExpr]) -> str:
    """Return nested calls of a function of two arguments."""
    text = _c(operands[0])[0]
    for operand in operands[1:]:
        text = f"{function}({text}, {_c(operand)[0]})"
    return text


def _inside(expression: IntExpr, level: int) -> str:
    text, binds = _c(expression)
    mixed = level in (_PRECEDENCE[Operator.OR], _PRECEDENCE[Operator.OR] + 1)
    if binds < level or (mixed and binds == _PRECEDENCE[Operator.AND]):
        return f"({text})"  # the latter because compilers warn of && within ||
    return text


FUNCTIONS: dict[Operator, Callable[[Sequence[int]], int]] = {
    Operator.ADD: sum,
    Operator.SUB: lambda v: -v[0] if len(v) == 1 else v[0] - sum(v[1:]),
    Operator.MUL: prod,
    Operator.FLOORDIV: lambda v: v[0] // v[1],
    Operator.MOD: lambda v: v[0] % v[1],
    Operator.QUOTIENT: lambda v: v[0] // v[1],
    Operator.REMAINDER: lambda v: v[0] % v[1],
    Operator.MIN: min,
    Operator.MAX: max,
    Operator.EQ: lambda v: int(v[0] == v[1]),
    Operator.LE: lambda v: int(v[0] <= v[1]),
    Operator.LT: lambda v: int(v[0] < v[1]),
    Operator.GE: lambda v: int(v[0] >= v[1]),
    Operator.GT: lambda v: int(v[0] > v[1]),
    Operator.AND: lambda v: int(all(v)),
    Operator.OR: lambda v: int(any(v)),
    Operator.XOR: lambda v: v[0] ^ v[1],
    Operator.SELECT: lambda v: v[1] if v[0] else v[2],
}


def evaluate(expression: IntExpr, values: Mapping[str, int]) -> int:
    """Return the value of an expression; ``KeyError`` for a name without a value."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Name):
        return values[expression.name]
    return FUNCTIONS[expression.operator]([evaluate(o, values) for o in expression.operands])

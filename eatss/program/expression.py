"""Integer expressions of parameters and loop counters: made, printed as C, evaluated in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partialmethod, reduce
from math import prod
from operator import eq, floordiv, ge, gt, le, lt, mod, xor
from typing import TypeAlias

from eatss.base.codec import JsonForm
from eatss.base.frozen import fixed


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


class _Operators:
    """Operators of Python on expressions and whole numbers: sums and products fold constants.

    ``//`` and ``%`` are ``QUOTIENT`` and ``REMAINDER``, relations give an expression.
    """

    __slots__ = ()

    def __add__(self, other: IntExpr | int) -> IntExpr:
        return total(_expression(self), _expression(other))

    def __radd__(self, other: int) -> IntExpr:
        return total(Constant(other), _expression(self))

    def __sub__(self, other: IntExpr | int) -> IntExpr:
        return difference(_expression(self), _expression(other))

    def __rsub__(self, other: int) -> IntExpr:
        return difference(Constant(other), _expression(self))

    def __mul__(self, other: IntExpr | int) -> IntExpr:
        return multiplied(_expression(self), _expression(other))

    def __rmul__(self, other: int) -> IntExpr:
        return multiplied(Constant(other), _expression(self))

    def _applied(self, operator: Operator, other: IntExpr | int) -> Apply:
        return Apply(operator, (_expression(self), _expression(other)))

    __floordiv__ = partialmethod(_applied, Operator.QUOTIENT)
    __mod__ = partialmethod(_applied, Operator.REMAINDER)
    __lt__ = partialmethod(_applied, Operator.LT)
    __le__ = partialmethod(_applied, Operator.LE)
    __gt__ = partialmethod(_applied, Operator.GT)
    __ge__ = partialmethod(_applied, Operator.GE)


@fixed
class Constant(_Operators):
    """An integer."""

    json_layout = JsonForm(shape="value")

    value: int


@fixed
class Name(_Operators):
    """A parameter or a counter."""

    json_layout = JsonForm(shape="value")

    name: str


@fixed
class Apply(_Operators):
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
IntExprs: TypeAlias = tuple[IntExpr, ...]
Grid: TypeAlias = tuple[IntExpr, IntExpr, IntExpr]
"""Blocks or tiles along x, y and z."""

Environment: TypeAlias = dict[str, IntExpr]
"""What stands for names."""


def _expression(one: _Operators | int) -> IntExpr:
    if isinstance(one, int):
        return Constant(one)
    assert isinstance(one, Constant | Name | Apply)
    return one


Sizes: TypeAlias = Mapping[str, int]
"""What names stand for, such as the parameters of a program."""

OwnSizes: TypeAlias = dict[str, int]
"""The same, which may be changed."""

SizePairs: TypeAlias = tuple[tuple[str, int], ...]
"""The same as data that can be hashed, in their order."""

_PRECEDENCE = {
    Operator(one): level
    for level, every in enumerate(("or", "and", "==", "<= < >= >", "+ -", "* / %"), start=1)
    for one in every.split()
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


def _c(expression: IntExpr) -> tuple[str, int]:  # noqa: PLR0911 - a table
    """Return C text and how tightly its outermost operator binds."""
    match expression:
        case Constant(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Name(name):
            return name, _ATOM
    operator, operands = expression.operator, expression.operands
    if function := _CFUNCTIONS.get(operator):  # of two arguments, nested for more
        return reduce(
            lambda one, other: f"{function}({one}, {other})", map(c_text, operands)
        ), _ATOM
    if operator is Operator.SELECT:
        condition, yes, no = map(c_text, operands)
        return f"({condition} ? {yes} : {no})", _ATOM
    if len(operands) == 1:
        return f"-{_inside(operands[0], _UNARY + 1)}", _UNARY  # never "--"
    if operator is Operator.XOR:  # with more parentheses than C needs, for who reads it
        return f"({' ^ '.join(_inside(operand, _UNARY) for operand in operands)})", _ATOM
    level = _PRECEDENCE[operator]
    texts = (_inside(operand, level + (at > 0)) for at, operand in enumerate(operands))
    return f" {_C_OPERATORS.get(operator, operator.value)} ".join(texts), level


def _inside(expression: IntExpr, level: int) -> str:
    text, binds = _c(expression)
    mixed = level in (_PRECEDENCE[Operator.OR], _PRECEDENCE[Operator.OR] + 1)
    if binds < level or (mixed and binds == _PRECEDENCE[Operator.AND]):
        return f"({text})"  # the latter because compilers warn of && within ||
    return text


_FUNCTIONS: Mapping[Operator, Callable[..., int]] = {
    Operator.ADD: lambda *values: sum(values),
    Operator.SUB: lambda first, *more: first - sum(more) if more else -first,
    Operator.MUL: lambda *values: prod(values),
    Operator.FLOORDIV: floordiv,
    Operator.MOD: mod,
    Operator.QUOTIENT: floordiv,
    Operator.REMAINDER: mod,
    Operator.MIN: lambda *values: min(values),
    Operator.MAX: lambda *values: max(values),
    Operator.EQ: eq,
    Operator.LE: le,
    Operator.LT: lt,
    Operator.GE: ge,
    Operator.GT: gt,
    Operator.AND: lambda *values: all(values),
    Operator.OR: lambda *values: any(values),
    Operator.XOR: xor,
    Operator.SELECT: lambda condition, yes, no: yes if condition else no,
}


def evaluate(expression: IntExpr, values: Sizes) -> int:
    """Return the value of an expression; ``KeyError`` for a name without a value."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Name):
        return values[expression.name]
    operands = (evaluate(one, values) for one in expression.operands)
    return int(_FUNCTIONS[expression.operator](*operands))


def _of(operator: Operator) -> Callable[..., Apply]:
    def applied(*operands: IntExpr | int) -> Apply:
        return Apply(operator, tuple(map(_expression, operands)))

    return applied


floored = _of(Operator.FLOORDIV)
equals = _of(Operator.EQ)
select = _of(Operator.SELECT)
"""An operator of operands, as they are; numbers are constants."""


def negated(operand: IntExpr) -> IntExpr:
    """Return ``-operand``."""
    if isinstance(operand, Constant):
        return Constant(-operand.value)
    return Apply(Operator.SUB, (operand,))


def difference(left: IntExpr, right: IntExpr) -> IntExpr:
    """Return ``left - right``, constants folded; a common operand of a sum is dropped."""
    if isinstance(right, Constant):
        return total(left, Constant(-right.value))
    if left == right:
        return Constant(0)
    match left:
        case Apply(Operator.ADD, operands) if right in operands:
            at = operands.index(right)
            rest = (*operands[:at], *operands[at + 1 :])
            return rest[0] if len(rest) == 1 else Apply(Operator.ADD, rest)
    return Apply(Operator.SUB, (left, right))


def total(left: IntExpr, right: IntExpr) -> IntExpr:  # noqa: PLR0911 - a table
    """Return ``left + right``, constants folded."""
    match left, right:
        case Constant(one), Constant(other):
            return Constant(one + other)
        case Constant(one), _:
            return difference(right, Constant(-one)) if one < 0 else total(right, left)
        case _, Constant(0):
            return left
        case Apply(Operator.ADD, (inner, Constant(constant))), Constant(addend):
            return total(inner, Constant(constant + addend))
        case Apply(Operator.SUB, (inner, Constant(constant))), Constant(addend):
            return total(inner, Constant(addend - constant))
        case _, Constant(addend) if addend < 0:
            return Apply(Operator.SUB, (left, Constant(-addend)))
    return Apply(Operator.ADD, (left, right))


def multiplied(left: IntExpr, right: IntExpr) -> IntExpr:
    """Return ``left * right``, constants folded."""
    match left, right:
        case Constant(one), Constant(other):
            return Constant(one * other)
        case (Constant(1), other) | (other, Constant(1)):
            return other
        case (Constant(0), _) | (_, Constant(0)):
            return Constant(0)
    return Apply(Operator.MUL, (left, right))


def minimum(value: IntExpr, most: int) -> IntExpr:
    """Return the smaller of a positive value and a constant, folded where one is known."""
    match value:
        case Constant(known):
            return Constant(min(known, most))
        case Apply(Operator.MIN, (inner, Constant(known))):
            return minimum(inner, min(known, most))
    return Constant(1) if most == 1 else Apply(Operator.MIN, (value, Constant(most)))


def at_least(value: IntExpr, least: int) -> IntExpr:
    """Return the larger of a value and a constant, folded where the value is known."""
    if isinstance(value, Constant):
        return Constant(max(value.value, least))
    return Apply(Operator.MAX, (value, Constant(least)))


def substitute(expression: IntExpr, values: Mapping[str, IntExpr]) -> IntExpr:
    """Replace names by expressions."""
    if isinstance(expression, Name):
        return values.get(expression.name, expression)
    if isinstance(expression, Apply):
        return replace(
            expression, operands=tuple(substitute(o, values) for o in expression.operands)
        )
    return expression


def numbers_in(expression: IntExpr) -> set[int]:
    """Return the numbers that an expression mentions."""
    match expression:
        case Constant(value):
            return {value}
        case Apply(_, operands):
            return {number for one in operands for number in numbers_in(one)}
    return set()


Lengths: TypeAlias = tuple[tuple[str, IntExpr], ...]
"""Lengths of loops, by their names."""


def names_in(*expressions: IntExpr) -> Iterator[str]:
    """Yield the names that expressions mention."""
    todo = [*reversed(expressions)]
    while todo:
        one = todo.pop()
        if isinstance(one, Name):
            yield one.name
        elif isinstance(one, Apply):
            todo += reversed(one.operands)

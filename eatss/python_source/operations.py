"""Operations on numbers: what Python means by an operator, in C."""

from __future__ import annotations

import ast
import operator as operator_functions
from collections.abc import Callable
from dataclasses import replace

from eatss.python_source.c_text import joined
from eatss.python_source.codes import Code
from eatss.python_source.number_types import Weak, is_floating
from eatss.python_source.scope import Scope
from eatss.python_source.text import Findings
from eatss.python_source.values import (
    PRECEDENCE,
    UNARY,
    Operation,
    TypeClashError,
    Value,
    arithmetic,
    converted,
    inside,
    literal,
    narrowed,
    negated,
)
from eatss.scops import ElementType

MOST_POWER = 8
PROMOTED_BYTES = 4
"""C reckons with smaller integers as with ones of this size."""
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^",
}  # fmt: skip
_FOLDED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator_functions.add, ast.Sub: operator_functions.sub,
    ast.Mult: operator_functions.mul,
}  # fmt: skip
ONE_TYPE = "convert one of them, for example with numpy.float64(…)"


class OperationReader:
    """Reads the operations of one function; operands are read before."""

    def __init__(self, scope: Scope, findings: Findings) -> None:
        self._scope = scope
        self._findings = findings

    def unary(self, node: ast.UnaryOp, value: Value) -> Value:
        """Read an operation on one number.

        Raises:
            RefusedError: C has no such operation on it.
        """
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            if is_floating(value.type):
                raise self._findings.refusal(Code.TYPES, node, "'~' is for integers")
            text = joined("~", inside(value, UNARY))
            return narrowed(Value(piece=text, type=value.type, precedence=UNARY))
        return self._checked(node, lambda: negated(value))

    def binary(
        self, node: ast.expr | ast.stmt, left: Value, operator: ast.operator, right: Value
    ) -> Operation:
        """Read an operation on two numbers.

        Raises:
            RefusedError: C has no such operation on them.
        """
        if isinstance(operator, ast.FloorDiv | ast.Mod):
            result = self._rounded(node, left, operator, right)
        elif isinstance(operator, ast.Pow):
            result = self._power(node, left, right)
        elif isinstance(operator, ast.LShift | ast.RShift):
            result = self._shift(node, left, operator, right)
        elif isinstance(left.number, int) and isinstance(right.number, int) and (
            type(operator) in _FOLDED
        ):  # fmt: skip
            number = _FOLDED[type(operator)](left.number, right.number)
            result = self._checked(node, lambda: literal(number))
        elif type(operator) in OPERATORS:
            spelling = OPERATORS[type(operator)]
            try:
                return arithmetic(left, spelling, right)
            except TypeClashError as error:
                raise self._findings.refusal(Code.TYPES, node, str(error), ONE_TYPE) from None
        else:
            raise self._findings.refusal(
                Code.EXPRESSION, node, "a product of matrices", "write it as loops"
            )
        return Operation(result=result, right=right, same_left=False)

    def _rounded(
        self, node: ast.expr | ast.stmt, left: Value, operator: ast.operator, right: Value
    ) -> Value:
        """Read ``//`` or ``%``, which round down in Python and towards zero in C."""
        sign = "//" if isinstance(operator, ast.FloorDiv) else "%"
        if is_floating(left.type) or is_floating(right.type):
            raise self._findings.refusal(
                Code.ARITHMETIC, node, f"'{sign}' of floating-point numbers",
                "write numpy.floor(x / y), or numpy.fmod(x, y), which rounds towards zero",
            )  # fmt: skip
        divisor = right.number
        if not isinstance(divisor, int) or divisor == 0:
            raise self._findings.refusal(
                Code.ARITHMETIC, node, f"'{sign}' by what is no constant other than zero",
                "divide by a number",
            )  # fmt: skip
        if isinstance(left.number, int):
            return literal(left.number // divisor if sign == "//" else left.number % divisor)
        kind = left.type
        if divisor < 0 and isinstance(kind, ElementType) and kind.name.startswith("U"):
            raise self._findings.refusal(Code.ARITHMETIC, node, f"'{sign}' by a negative number")
        if isinstance(kind, ElementType) and kind.name.startswith("U"):
            level = PRECEDENCE["/"]
            operator_text = "/" if sign == "//" else "%"
            number = converted(literal(divisor), kind)
            text = joined(inside(left, level), f" {operator_text} ", number.piece)
            return narrowed(Value(piece=text, type=kind, precedence=level))
        if kind is Weak.INT:
            macro = "floordiv" if sign == "//" else "floormod"
        else:
            macro = "floor_quotient" if sign == "//" else "floor_remainder"
        self._scope.macros.add(macro)
        top = left if divisor > 0 else self._checked(node, lambda: negated(left))
        text = joined(f"{macro}(", top.piece, f", {abs(divisor)})")
        result = Value(piece=text, type=kind)
        if divisor < 0 and sign == "%":
            result = negated(result)
        return narrowed(result)

    def _power(self, node: ast.expr | ast.stmt, left: Value, right: Value) -> Value:
        exponent = right.number
        if not isinstance(exponent, int) or not 0 <= exponent <= MOST_POWER:
            raise self._findings.refusal(
                Code.ARITHMETIC, node, f"'**' by what is no whole number from 0 to {MOST_POWER}",
                "write math.pow(x, y), or math.sqrt(x) for x ** 0.5",
            )  # fmt: skip
        if left.number is not None:
            number = left.number**exponent
            return self._checked(node, lambda: literal(number))
        if exponent == 0:
            one = converted(literal(1.0 if is_floating(left.type) else 1), left.type)
            return replace(one, number=None)
        result = left
        for _ in range(exponent - 1):
            result = arithmetic(result, "*", left).result
        return result

    def _shift(
        self, node: ast.expr | ast.stmt, left: Value, operator: ast.operator, right: Value
    ) -> Value:
        sign = "<<" if isinstance(operator, ast.LShift) else ">>"
        amount = right.number
        narrow = isinstance(left.type, ElementType) and left.type.size_bytes < PROMOTED_BYTES
        if is_floating(left.type) or not isinstance(amount, int) or narrow:
            raise self._findings.refusal(
                Code.ARITHMETIC, node, f"'{sign}' of what is no integer of 32 or 64 bits, or by "
                "what is no constant", "write a product or a quotient: x * 4, x // 4",
            )  # fmt: skip
        bits = 64 if left.type in (ElementType.INT64, ElementType.UINT64) else 32
        if not 0 <= amount < bits:
            raise self._findings.refusal(Code.ARITHMETIC, node, f"shift by {amount} of {bits} bits")
        level = PRECEDENCE[sign]
        text = joined(inside(left, level), f" {sign} {amount}")
        return Value(piece=text, type=left.type, precedence=level)

    def _checked(self, node: ast.expr | ast.stmt, made: Callable[[], Value]) -> Value:
        try:
            return made()
        except TypeClashError as error:
            raise self._findings.refusal(Code.NUMBER, node, str(error)) from None

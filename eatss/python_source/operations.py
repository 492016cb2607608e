"""Operations on numbers: what Python means by an operator, in C."""

from __future__ import annotations

import ast
import operator as operator_functions
from collections.abc import Callable
from dataclasses import replace

from eatss.python_source.annotations import TypeClashError, Weak, is_floating, is_unsigned
from eatss.python_source.c_text import joined
from eatss.python_source.local_variables import Scope
from eatss.python_source.text import Code, Findings
from eatss.python_source.values import (
    PRECEDENCE,
    UNARY,
    Operation,
    Value,
    arithmetic,
    converted,
    fixed,
    inside,
    is_wide,
    literal,
    narrowed,
    negated,
    settle,
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
    ast.Mult: operator_functions.mul, ast.BitAnd: operator_functions.and_,
    ast.BitOr: operator_functions.or_, ast.BitXor: operator_functions.xor,
}  # fmt: skip
IN_64_BITS = "write numpy.int64(…) to reckon in 64 bits"
_MOST_BITS = 64


class OperationReader:
    """Reads the operations of one function; operands are read before."""

    def __init__(self, scope: Scope, findings: Findings) -> None:
        self._scope = scope
        self._findings = findings
        self._checked = findings.checked

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
            if isinstance(value.number, int):
                number = ~value.number
                return self._checked(node, lambda: literal(number))
            self._settled(node, value)
            text = joined("~", inside(value, UNARY))
            return narrowed(replace(value, piece=text, precedence=UNARY))
        if is_unsigned(value.type):
            self._settled(node, value)
        return self._checked(node, lambda: negated(value))

    def binary(
        self, node: ast.expr | ast.stmt, left: Value, operator: ast.operator, right: Value
    ) -> Operation:
        """Read an operation on two numbers.

        Raises:
            RefusedError: C has no such operation on them.
        """
        if isinstance(operator, ast.FloorDiv | ast.Mod | ast.Pow | ast.LShift | ast.RShift):
            result = self._of_constant(node, left, operator, right)
        elif isinstance(left.number, int) and isinstance(right.number, int) and (
            type(operator) in _FOLDED
        ):  # fmt: skip
            number = _FOLDED[type(operator)](left.number, right.number)
            result = self._checked(node, lambda: literal(number))
        elif type(operator) in OPERATORS:
            spelling = OPERATORS[type(operator)]
            if spelling != "/":
                self._refuse_wide(node, left, right)
            with self._findings.clashes(Code.TYPES, node):
                return arithmetic(left, spelling, right)
        else:
            raise self._findings.refusal(
                Code.EXPRESSION, node, "a product of matrices", "write it as loops"
            )
        return Operation(result=result, right=right, same_left=False)

    def _of_constant(
        self, node: ast.expr | ast.stmt, left: Value, operator: ast.operator, right: Value
    ) -> Value:
        """Read an operation whose right operand is a constant."""
        self._settled(node, left)
        if isinstance(operator, ast.FloorDiv | ast.Mod):
            result = self._rounded(node, left, operator, right)
        elif isinstance(operator, ast.Pow):
            result = self._power(node, left, right)
        else:
            result = self._shift(node, left, operator, right)
        return replace(result, weak=left.weak)

    def _settled(self, node: ast.expr | ast.stmt, value: Value) -> None:
        with self._findings.clashes(Code.TYPES, node):
            settle(value)

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
            number = left.number // divisor if sign == "//" else left.number % divisor
            return self._checked(node, lambda: literal(number))
        kind = left.type
        if divisor < 0 and is_unsigned(kind):
            raise self._findings.refusal(Code.ARITHMETIC, node, f"'{sign}' by a negative number")
        self._refuse_wide(node, left, right)
        if isinstance(kind, ElementType):
            by = self._checked(node, lambda: converted(literal(divisor), kind))
            return self._rounded_element(left, sign, divisor, by)
        macro = "floordiv" if sign == "//" else "floormod"
        self._scope.macros.add(macro)
        top = left if divisor > 0 else negated(left)
        text = joined(f"{macro}(", top.piece, f", {abs(divisor)})")
        result = Value(piece=text, type=kind)
        return negated(result) if divisor < 0 and sign == "%" else result

    def _rounded_element(self, left: Value, sign: str, divisor: int, by: Value) -> Value:
        """Read ``//`` or ``%`` of a NumPy number; no step of it leaves the numbers of its type."""
        assert isinstance(left.type, ElementType)
        if left.type.is_unsigned:
            level = PRECEDENCE["/"]
            operator_text = "/" if sign == "//" else "%"
            text = joined(inside(left, level), f" {operator_text} ", by.piece)
            return narrowed(Value(piece=text, type=left.type, precedence=level))
        if divisor == -1:  # C has no quotient of the least number by -1, nor its remainder
            return negated(left) if sign == "//" else fixed(literal(0), left.type)
        macro = "floor_quotient" if sign == "//" else "floor_remainder"
        if divisor < 0:
            macro += "_negative"
        self._scope.macros.add(macro)
        text = joined(f"{macro}(", left.piece, ", ", by.piece, ")")
        return narrowed(Value(piece=text, type=left.type))

    def _power(self, node: ast.expr | ast.stmt, left: Value, right: Value) -> Value:
        exponent = right.number
        if not isinstance(exponent, int) or not 0 <= exponent <= MOST_POWER:
            raise self._findings.refusal(
                Code.ARITHMETIC, node, f"'**' by what is no whole number from 0 to {MOST_POWER}",
                "write math.pow(x, y), or math.sqrt(x) for x ** 0.5",
            )  # fmt: skip
        if left.number is not None:
            base = left.number
            return self._checked(node, lambda: _power_of(base, exponent))
        if exponent == 0:
            return fixed(literal(1.0 if is_floating(left.type) else 1), left.type)
        result = left
        for _ in range(exponent - 1):
            result = arithmetic(result, "*", left).result
        return result

    def _shift(
        self, node: ast.expr | ast.stmt, left: Value, operator: ast.operator, right: Value
    ) -> Value:
        sign = "<<" if isinstance(operator, ast.LShift) else ">>"
        amount = right.number
        if isinstance(left.number, int) and isinstance(amount, int) and 0 <= amount < _MOST_BITS:
            number = left.number << amount if sign == "<<" else left.number >> amount
            return self._checked(node, lambda: literal(number))
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

    def _refuse_wide(self, node: ast.expr | ast.stmt, left: Value, right: Value) -> None:
        """Refuse an operation on integers of Python with a number that C's ``int`` does not hold.

        Raises:
            RefusedError: it is one.
        """
        if left.type is Weak.INT and right.type is Weak.INT:
            for value in (left, right):
                if is_wide(value):
                    raise self._findings.refusal(
                        Code.NUMBER, node,
                        f"{value.number} does not fit into the 32 bits that integers of Python "
                        "have in C", IN_64_BITS,
                    )  # fmt: skip


def _power_of(base: float, exponent: int) -> Value:
    """Return a power of a number.

    Raises:
        TypeClashError: it is too large.
    """
    try:
        return literal(base**exponent)
    except OverflowError:
        raise TypeClashError(f"{base!r} ** {exponent} is too large for 64 bits") from None

"""Operations on numbers: what Python means by an operator, in C."""

from __future__ import annotations

import ast
import operator as operator_functions
from collections.abc import Callable
from dataclasses import replace

from eatss.frontend.python.annotations import INT, TypeClashError
from eatss.frontend.python.c_text import joined
from eatss.frontend.python.local_variables import Scope
from eatss.frontend.python.text import Node
from eatss.frontend.python.values import (
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
from eatss.polyhedral.scops import ElementType

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


class OperationReader(Scope):
    """Reads the operations of one function; operands are read before."""

    def unary(self, node: ast.UnaryOp, value: Value) -> Value:
        """Read an operation on one number.

        Raises:
            RefusedError: C has no such operation on it.
            TypeClashError: a number does not fit.
        """
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            if value.type.is_floating:
                self.refuse("EATSS-Y019", node, "'~' is for integers")
            if isinstance(value.number, int):
                return literal(~value.number)
            self._settled(node, value)
            text = joined("~", inside(value, UNARY))
            return narrowed(replace(value, piece=text, precedence=UNARY))
        if value.type.is_unsigned:
            self._settled(node, value)
        return negated(value)

    def binary(self, node: Node, left: Value, operator: ast.operator, right: Value) -> Operation:
        """Read an operation on two numbers.

        Raises:
            RefusedError: C has no such operation on them.
            TypeClashError: a number does not fit.
        """
        if isinstance(operator, ast.FloorDiv | ast.Mod | ast.Pow | ast.LShift | ast.RShift):
            self._settled(node, left)  # the right operand is a constant
            if isinstance(operator, ast.FloorDiv | ast.Mod):
                result = self._rounded(node, left, operator, right)
            elif isinstance(operator, ast.Pow):
                result = self._power(node, left, right)
            else:
                result = self._shift(node, left, operator, right)
            result = replace(result, weak=left.weak)
        elif isinstance(left.number, int) and isinstance(right.number, int) and (
            type(operator) in _FOLDED
        ):  # fmt: skip
            result = literal(_FOLDED[type(operator)](left.number, right.number))
        elif type(operator) in OPERATORS:
            spelling = OPERATORS[type(operator)]
            if spelling != "/":
                self._refuse_wide(node, left, right)
            with self.findings.clashes("EATSS-Y019", node):
                return arithmetic(left, spelling, right)
        else:
            self.refuse("EATSS-Y012", node, "a product of matrices", "write it as loops")
        return Operation(result=result, right=right, same_left=False)

    def _settled(self, node: Node, value: Value) -> None:
        with self.findings.clashes("EATSS-Y019", node):
            settle(value)

    def _rounded(self, node: Node, left: Value, operator: ast.operator, right: Value) -> Value:
        """Read ``//`` or ``%``, which round down in Python and towards zero in C."""
        sign = "//" if isinstance(operator, ast.FloorDiv) else "%"
        if left.type.is_floating or right.type.is_floating:
            self.refuse(
                "EATSS-Y021", node, f"'{sign}' of floating-point numbers",
                "write numpy.floor(x / y), or numpy.fmod(x, y), which rounds towards zero",
            )  # fmt: skip
        divisor = right.number
        if not isinstance(divisor, int) or divisor == 0:
            self.refuse(
                "EATSS-Y021", node, f"'{sign}' by what is no constant other than zero",
                "divide by a number",
            )  # fmt: skip
        if isinstance(left.number, int):
            return literal(left.number // divisor if sign == "//" else left.number % divisor)
        kind = left.type
        if divisor < 0 and kind.is_unsigned:
            self.refuse("EATSS-Y021", node, f"'{sign}' by a negative number")
        self._refuse_wide(node, left, right)
        if not kind.is_weak:
            return self._rounded_element(left, sign, divisor)
        macro = "floordiv" if sign == "//" else "floormod"
        self.macros.add(macro)
        top = left if divisor > 0 else negated(left)
        text = joined(f"{macro}(", top.piece, f", {abs(divisor)})")
        result = Value(piece=text, type=kind)
        return negated(result) if divisor < 0 and sign == "%" else result

    def _rounded_element(self, left: Value, sign: str, divisor: int) -> Value:
        """Read ``//`` or ``%`` of a NumPy number; no step of it leaves the numbers of its type."""
        by = converted(literal(divisor), left.type)
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
        self.macros.add(macro)
        text = joined(f"{macro}(", left.piece, ", ", by.piece, ")")
        return narrowed(Value(piece=text, type=left.type))

    def _power(self, node: Node, left: Value, right: Value) -> Value:
        exponent = right.number
        if not isinstance(exponent, int) or not 0 <= exponent <= MOST_POWER:
            self.refuse(
                "EATSS-Y021", node, f"'**' by what is no whole number from 0 to {MOST_POWER}",
                "write math.pow(x, y), or math.sqrt(x) for x ** 0.5",
            )  # fmt: skip
        if left.number is not None:
            return _power_of(left.number, exponent)
        if exponent == 0:
            return fixed(literal(1.0 if left.type.is_floating else 1), left.type)
        result = left
        for _ in range(exponent - 1):
            result = arithmetic(result, "*", left).result
        return result

    def _shift(self, node: Node, left: Value, operator: ast.operator, right: Value) -> Value:
        sign = "<<" if isinstance(operator, ast.LShift) else ">>"
        amount = right.number
        if isinstance(left.number, int) and isinstance(amount, int) and 0 <= amount < _MOST_BITS:
            return literal(left.number << amount if sign == "<<" else left.number >> amount)
        narrow = not left.type.is_weak and left.type.element.size_bytes < PROMOTED_BYTES
        if left.type.is_floating or not isinstance(amount, int) or narrow:
            self.refuse(
                "EATSS-Y021", node, f"'{sign}' of what is no integer of 32 or 64 bits, or by "
                "what is no constant", "write a product or a quotient: x * 4, x // 4",
            )  # fmt: skip
        bits = 64 if left.type.element in (ElementType.INT64, ElementType.UINT64) else 32
        if not 0 <= amount < bits:
            self.refuse("EATSS-Y021", node, f"shift by {amount} of {bits} bits")
        level = PRECEDENCE[sign]
        text = joined(inside(left, level), f" {sign} {amount}")
        return Value(piece=text, type=left.type, precedence=level)

    def _refuse_wide(self, node: Node, left: Value, right: Value) -> None:
        """Refuse an operation on integers of Python with a number that C's ``int`` does not hold.

        Raises:
            RefusedError: it is one.
        """
        if left.type == INT and right.type == INT:
            for value in (left, right):
                if is_wide(value):
                    self.refuse(
                        "EATSS-Y022", node,
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

"""Values in C text: arithmetic that gives what Python and NumPy give, operation by operation."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend.python.annotations import (
    DOUBLE,
    FLOAT,
    INT,
    Candidate,
    NumberType,
    TypeClashError,
    common_type,
    promoted,
    usual_type,
)
from eatss.frontend.python.c_text import Piece, joined
from eatss.polyhedral.scops import ElementType
from eatss.polyhedral.scops.expression import as_single, single_text

PRIMARY, UNARY, LEAST = 16, 14, 0
PRECEDENCE = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10,
    ">=": 10, "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4, "?": 3,
}  # fmt: skip


_LIKE_PYTHON = (ElementType.INT32, ElementType.INT64, ElementType.DOUBLE)
"""Types in which NumPy gives what Python gives, as far as numbers fit."""


@frozen
class Value:
    """An expression: its C text, its type in Python, and its number where it is a literal.

    The C expression has the C type of ``type``. ``precedence`` is that of its outermost operator.
    ``weak`` is the type of a literal that it may be instead, in an arm of a choice: a number of
    Python, though in C it has the type of the other arm. ``is_zero`` says that it is 0 then.
    """

    piece: Piece
    type: NumberType
    precedence: int = PRIMARY
    number: int | float | None = None
    weak: NumberType | None = None
    is_zero: bool = False

    @property
    def candidate(self) -> Candidate:
        """The type for a place that several values go to; a literal takes any that holds it."""
        return Candidate(self.type, self.number is not None, self.weak)

    def at(self, span: SourceSpan) -> Value:
        """Return the value with the place in Python it stands for."""
        return replace(self, piece=self.piece.at(span))


@frozen
class Operation:
    """``left operator right`` in C; the result may need a cast to be what Python gives.

    ``same_left`` says that the left operand is used as it is, and ``result`` has the type.
    """

    result: Value
    right: Value
    same_left: bool


def literal(number: float) -> Value:
    """Return a number of Python.

    Raises:
        TypeClashError: it is too large for C.
    """
    if isinstance(number, int):
        low, high = ElementType.INT64.bounds
        if not low < number <= high:
            raise TypeClashError(f"{number} is too large for 64 bits")
        least, most = ElementType.INT32.bounds
        text = str(number) if least < number <= most else f"{number}L"
        if number == least:
            text = f"({least + 1} - 1)"  # C has no int of the number without its sign
        kind = INT
    else:
        if number - number != 0:
            raise TypeClashError(f"{number} is no finite number")
        text, kind = repr(number), FLOAT
    precedence = UNARY if text.startswith("-") else PRIMARY
    return Value(piece=Piece(text), type=kind, precedence=precedence, number=number)


def converted(value: Value, wanted: NumberType) -> Value:
    """Return a value as one of another type, as NumPy converts it."""
    if value.number is not None:
        return _literal_as(value, value.number, wanted)
    if value.type.element is wanted.element:
        return replace(value, type=wanted)
    return cast(value, wanted)


def fixed(value: Value, wanted: NumberType) -> Value:
    """Return a value as one of another type; a literal no longer takes that of its neighbours."""
    made = converted(value, wanted)
    if value.number is not None and wanted.element is ElementType.INT64:
        made = cast(made, wanted)
    return replace(made, number=None)


def is_wide(value: Value) -> bool:
    """Tell whether a value is an integer of Python that C's ``int`` does not hold."""
    low, high = INT.element.bounds
    return value.type == INT and value.number is not None and not low <= value.number <= high


def cast(value: Value, wanted: NumberType) -> Value:
    """Return a value with a cast before it."""
    text = joined(f"({wanted.element.value}) ", inside(value, UNARY))
    return Value(piece=text, type=wanted, precedence=UNARY)


def inside(value: Value, precedence: int, *, right: bool = False) -> Piece:
    """Return the text of an operand, in parentheses where its operator binds less."""
    least = precedence + right
    starts = value.piece.text.startswith(("-", "+")) and precedence == UNARY
    logical = {value.precedence, precedence} == {PRECEDENCE["&&"], PRECEDENCE["||"]}
    if value.precedence < least or starts or logical:
        return joined("(", value.piece, ")")
    return value.piece


def chosen(values: Sequence[Value], kind: NumberType) -> tuple[NumberType | None, bool]:
    """Return what a choice between values of a type is where a literal is chosen; see `Value`."""
    found = [
        (FLOAT if isinstance(one.number, float) else INT, one.number == 0)
        if one.number is not None
        else (one.weak, one.is_zero)
        for one in values
    ]
    literals = [one for one in found if one[0] not in (None, kind)]
    if not literals:
        return None, False
    is_int = any(one == INT for one, _ in literals)
    return INT if is_int else FLOAT, all(zero for _, zero in literals)


def settle(value: Value, beside: NumberType | None = None) -> None:
    """See that an operation is the same for the literal that a value may be.

    Args:
        value: the value.
        beside: the type of the other operand, if there is one.

    Raises:
        TypeClashError: Python reckons in another type then.
    """
    if value.weak is None:
        return
    if beside is None or beside.is_weak:
        same = value.type.element in _LIKE_PYTHON
    else:
        same = common_type(value.type, beside) == common_type(value.weak, beside)
    if not same:
        raise TypeClashError(
            f"a literal that may be chosen here stays {value.weak} in Python, and is no "
            f"{value.type}",
            value.type,
        )


def arithmetic(left: Value, operator: str, right: Value) -> Operation:
    """Return a sum, difference, product or quotient, or a bitwise operation on integers.

    Raises:
        TypeClashError: NumPy has no type for both, or C does not reckon in it.
    """
    is_zero = (left.is_zero and operator in ("*", "/")) or (right.is_zero and operator == "*")
    if not is_zero:
        settle(left, right.type)
        settle(right, left.type)
        if left.weak is not None and right.weak is not None:
            settle(left)
            settle(right)
    operation = _arithmetic(left, operator, right)
    weak = left.weak or right.weak
    if weak is None or not all(one.type.is_weak or one.weak for one in (left, right)):
        return operation
    result = replace(operation.result, weak=weak, is_zero=is_zero)
    return replace(operation, result=result)


def _arithmetic(left: Value, operator: str, right: Value) -> Operation:
    common = common_type(left.type, right.type)
    if operator == "/" and not common.is_floating:
        common = FLOAT if common == INT else DOUBLE
    if operator in ("&", "|", "^") and common.is_floating:
        raise TypeClashError(f"'{operator}' is for integers")
    element = common.element
    first, second = (_operand(value, common) for value in (left, right))
    usual = usual_type(first.type.element, second.type.element)
    same_left = first.piece == left.piece
    if usual is not element and promoted(element) is not usual:
        first, same_left = cast(first, common), False
        usual = usual_type(element, second.type.element)
    level = PRECEDENCE[operator]
    text = joined(inside(first, level), f" {operator} ", inside(second, level, right=True))
    result = Value(piece=text, type=common, precedence=level)
    if usual is not element:
        result = cast(result, common)
    return Operation(result=result, right=second, same_left=same_left)


def compared(left: Value, operator: str, right: Value) -> Piece:
    """Return a comparison, in the type in which NumPy compares.

    Raises:
        TypeClashError: no type of C holds the numbers of both.
    """
    for one, other in ((left, right), (right, left)):
        if left.type.is_floating or right.type.is_floating:
            settle(one, other.type)
    common = common_type(left.type, right.type)
    if common == DOUBLE and not left.type.is_floating and not right.type.is_floating:
        raise TypeClashError("numbers with and without a sign cannot be compared in 64 bits")
    values = []
    for value in (left, right):
        if value.type == INT and value.number is None and common.is_unsigned:
            raise TypeClashError(
                "a Python integer, which may be negative, is compared with one without a sign"
            )
        values.append(_operand(value, common))
    first, second = values
    usual = usual_type(first.type.element, second.type.element)
    if usual is not common.element and promoted(common.element) is not usual:
        first = cast(first, common)
    level = PRECEDENCE[operator]
    return joined(inside(first, level + 1), f" {operator} ", inside(second, level, right=True))


def negated(value: Value) -> Value:
    """Return ``-value``."""
    if value.number is not None:
        return literal(-value.number)
    text = joined("-", inside(value, UNARY))
    return narrowed(replace(value, piece=text, precedence=UNARY))


def narrowed(value: Value) -> Value:
    """Cast what C has promoted back to the small integer that NumPy has."""
    element = value.type.element
    made = value if promoted(element) is element else cast(value, value.type)
    return replace(made, weak=value.weak, is_zero=value.is_zero)


def _operand(value: Value, common: NumberType) -> Value:
    """Return an operand for arithmetic in a type; what C converts itself is left to C."""
    if value.number is not None and (value.type, common) != (INT, INT):
        return _literal_as(value, value.number, common)
    if value.type == FLOAT and common.element in (ElementType.FLOAT, ElementType.HALF):
        return cast(value, common)
    return value


def _literal_as(value: Value, number: float, wanted: NumberType) -> Value:
    """Spell a number of Python in the type of the NumPy number beside it."""
    element = wanted.element
    if element.is_floating:
        as_float = float(number)
        text = f"{_single(as_float)}f" if element is ElementType.FLOAT else repr(as_float)
        if element is ElementType.HALF:
            text = f"({element.value}) {_single(_half(as_float))}f"
    elif isinstance(number, float):
        return cast(value, wanted)
    else:
        low, high = element.bounds
        if not low <= number <= high:
            raise TypeClashError(f"{number} does not fit into {element.value}")
        suffix = {"UINT32": "u", "INT64": "L", "UINT64": "UL"}.get(element.name, "")
        if not suffix or (abs(number) <= ElementType.INT32.bounds[1] and suffix == "L"):
            return replace(value, type=wanted)  # C converts it
        text = f"{number}{suffix}"
    precedence = UNARY if text.startswith(("-", "(")) else PRIMARY
    marks = tuple(replace(mark, end=len(text)) for mark in value.piece.marks)
    return replace(value, piece=Piece(text, marks), type=wanted, precedence=precedence)


def _single(number: float) -> str:
    """Return the shortest decimal text of a number rounded to 32 bits.

    Raises:
        TypeClashError: it is too large for them.
    """
    rounded = as_single(number)
    if math.isinf(rounded):
        raise TypeClashError(f"{number!r} is too large for 32 bits")
    return single_text(rounded)


def _half(number: float) -> float:
    """Return a number rounded to 16 bits.

    Raises:
        TypeClashError: it is too large for them.
    """
    try:
        (rounded,) = struct.unpack("e", struct.pack("e", number))
    except OverflowError:
        raise TypeClashError(f"{number!r} is too large for 16 bits") from None
    return float(rounded)

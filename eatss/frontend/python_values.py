"""Values of expressions in Python: their C, their types, and operations on them."""

from __future__ import annotations

import ast
import math
import operator as operator_functions
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend.python_types import (
    DOUBLE,
    FLOAT,
    INT,
    Candidate,
    Findings,
    Node,
    NumberType,
    Piece,
    Resolve,
    TypeClashError,
    common_type,
    joined,
    promoted,
    usual_type,
)
from eatss.polyhedral.expression import ElementType, as_single, single_text

# -- values ------------------------------------------------------------------------------------
# Values in C text: arithmetic that gives what Python and NumPy give, operation by operation.


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


# -- local variables ---------------------------------------------------------------------------
# Where locals get their first value, and the innermost block of C that each can live in.


@frozen
class Argument:
    """A parameter of the function.

    ``kind`` is ``param`` for an integer that sizes may name, ``scalar`` or ``array``. ``extents``
    are the texts of the sizes of an array, outermost first, as Python has them.
    """

    name: str
    kind: Literal["param", "scalar", "array"]
    element_type: ElementType
    extents: tuple[str, ...] = ()


@frozen
class Local:
    """What a name that the function assigns holds: a number, or an array of ``n_dims``.

    ``weak`` is the type of a literal that is assigned as well, and is a number of Python there.
    """

    type: NumberType
    n_dims: int = 0
    weak: NumberType | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """What names mean at some place of a function, and the findings about it.

    ``locals`` are known as far as their types are; ``counters`` are those of the loops
    around; ``past`` are counters of loops that have ended; ``refused`` are names of which a finding
    tells already. ``mixes`` says that there are floating-point numbers of 32 bits.
    """

    arguments: dict[str, Argument]
    resolve: Resolve
    assigned: frozenset[str]
    mixes: bool
    findings: Findings
    locals: dict[str, Local]
    refused: set[str]
    counters: list[str] = field(default_factory=list)
    past: set[str] = field(default_factory=set)
    macros: set[str] = field(default_factory=set)

    def meaning(self, node: ast.expr) -> str | None:
        """Return the full name of a function or module; ``None`` for variables and the unknown."""
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name) and (
            first.id in self.arguments or first.id in self.assigned or first.id in self.counters
        ):
            return None
        return self.resolve(node)

    def refuse(self, code: str, node: Node, message: str, hint: str | None = None) -> NoReturn:
        """Record a finding, and leave what cannot be read any further.

        Raises:
            RefusedError: always.
        """
        self.findings.refuse(code, node, message, hint)

    @property
    def sizes(self) -> list[str]:
        """The parameters that sizes of arrays may name."""
        return [one.name for one in self.arguments.values() if one.kind == "param"]


Block = Sequence[ast.stmt]


@dataclass(frozen=True, slots=True)
class Declarations:
    """Where locals are declared, by the ``id`` of statements.

    ``with_value`` are the assignments that declare what they assign; ``before`` are the names
    declared without a value before a statement.
    """

    with_value: set[int] = field(default_factory=set)
    before: dict[int, list[str]] = field(default_factory=dict)


def assigned_name(statement: ast.stmt) -> str | None:
    """Return the name that a statement assigns; ``None`` for elements and other statements."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def assignments(body: Block) -> Iterator[ast.stmt]:
    """Yield the statements that assign a name, in the order of the source."""
    for statement in body:
        if assigned_name(statement) is not None:
            yield statement
        elif isinstance(statement, ast.For | ast.If):
            yield from assignments(statement.body)
            yield from assignments(statement.orelse)


def reads_without_value(name: str, body: Block) -> list[ast.Name]:
    """Return the places that read a local where it may have no value yet."""
    found: list[ast.Name] = []

    def follow(block: Block, has_value: bool) -> bool:
        """Follow whether it has a value; return whether it surely has one in the end."""
        for statement in block:
            is_set = assigned_name(statement) == name
            head: ast.AST = statement
            if isinstance(statement, ast.For):
                head = statement.iter
            elif isinstance(statement, ast.If):
                head = statement.test
            if not has_value:
                if isinstance(statement, ast.AugAssign) and is_set:
                    assert isinstance(statement.target, ast.Name)
                    found.append(statement.target)
                found.extend(
                    one
                    for one in ast.walk(head)
                    if isinstance(one, ast.Name)
                    and one.id == name
                    and isinstance(one.ctx, ast.Load)
                )
            if isinstance(statement, ast.For):
                follow(statement.body, has_value)
            elif isinstance(statement, ast.If):
                arms = [follow(arm, has_value) for arm in (statement.body, statement.orelse)]
                has_value = all(arms)
            else:
                has_value = has_value or is_set
        return has_value

    follow(body, False)
    return found


def declarations(names: Sequence[str], body: Block) -> Declarations:
    """Return where each local is declared: in the innermost block that has all it is used for."""
    result = Declarations()
    for name in names:
        _place(name, body, result)
    return result


def _place(name: str, body: Block, result: Declarations) -> None:
    using = [statement for statement in body if _mentions(name, statement)]
    if not using:
        return
    first = using[0]
    if assigned_name(first) == name and not isinstance(first, ast.AugAssign):
        result.with_value.add(id(first))
        return
    blocks = [block for statement in using for block in _own_blocks(name, statement)]
    if blocks and all(not reads_without_value(name, block) for block in blocks):
        for block in blocks:
            _place(name, block, result)
        return
    result.before.setdefault(id(first), []).append(name)


def _own_blocks(name: str, statement: ast.stmt) -> Iterator[Block]:
    """Yield the blocks of a statement; all of it where something else of it uses the name."""
    if isinstance(statement, ast.For) and not _mentions(name, statement.iter):
        yield statement.body
    elif isinstance(statement, ast.If) and not _mentions(name, statement.test):
        yield statement.body
        yield statement.orelse
    else:
        read = ast.Expr(ast.Name(name, ast.Load()))  # so that it counts as one that needs a value
        yield [read]


def _mentions(name: str, node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


# -- operations --------------------------------------------------------------------------------
# Operations on numbers: what Python means by an operator, in C.


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

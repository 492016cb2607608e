"""Python expressions in, C expressions with the same values out, operation by operation.

Calls are of functions of ``math`` and NumPy, of ``min``, ``max``, ``abs`` and conversions.
"""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend.python_types import (
    DOUBLE,
    ELEMENTS,
    FLOAT,
    FLOATS,
    INT,
    MATH,
    MATH_OF_TWO,
    NUMPY,
    NUMPY_OF_TWO,
    NUMPY_TYPES,
    Node,
    NumberType,
    PythonText,
    Resolve,
    TypeClashError,
    common_type,
    marked,
    unmarked,
)
from eatss.frontend.source import Findings, RefusedError
from eatss.polyhedral.expression import ElementType, as_single, single_text

HEAD, FORMS = "EATSS-Y004", "EATSS-Y011"
"""Codes: the head of a function and its names; what is outside the subset, types of numbers."""

CONVERT = "convert it, for example with numpy.float64(…) or numpy.int64(…)"

# -- values ------------------------------------------------------------------------------------

PRIMARY, UNARY, LEAST = 16, 14, 0
PRECEDENCE = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<": 10, "<=": 10, ">": 10, ">=": 10, "==": 9,
    "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4, "?": 3,
}  # fmt: skip
_LOGICAL = {PRECEDENCE["&&"], PRECEDENCE["||"]}


@frozen
class Value:
    """An expression: its C text, its type in Python, and its number where it is a literal.

    The C expression has the C type of ``type``. ``precedence`` is that of its outermost operator.
    ``right`` is the right operand of an operation whose left one is used as it is.
    """

    text: str
    type: NumberType
    precedence: int = PRIMARY
    number: int | float | None = None
    right: str | None = None


def literal(number: float) -> Value:
    """Return a number of Python.

    Raises:
        TypeClashError: it is too large for C.
    """
    if isinstance(number, float):
        if not math.isfinite(number):
            raise TypeClashError(f"{number} is no finite number")
        text, kind = repr(number), FLOAT
    else:
        if abs(number) > INT.element.bounds[1]:
            raise TypeClashError(
                f"{number} does not fit into the 32 bits that integers of Python have in C"
            )
        text, kind = str(number), INT
    precedence = UNARY if text.startswith("-") else PRIMARY
    return Value(text=text, type=kind, precedence=precedence, number=number)


def one_type(values: Sequence[Value]) -> NumberType | None:
    """Return the one type for a variable or a choice between values; ``None`` if there is none.

    A literal takes any type that holds it.
    """
    firm = {one.type for one in values if one.number is None}
    free = {one.type for one in values if one.number is not None}
    if not firm or firm <= {INT, FLOAT}:
        return FLOAT if FLOAT in firm | free else INT
    if firm == {FLOAT, DOUBLE}:
        return DOUBLE
    if len(firm) > 1:
        return None
    (found,) = firm
    return None if FLOAT in free and not found.is_floating else found


def types_of(values: Sequence[Value]) -> str:
    """Return the types of values in words."""
    return " and ".join(dict.fromkeys(str(value.type) for value in values))


def converted(value: Value, wanted: NumberType) -> Value:
    """Return a value as one of another type, as NumPy converts it.

    Raises:
        TypeClashError: a literal does not fit.
    """
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


def cast(value: Value, wanted: NumberType) -> Value:
    """Return a value with a cast before it."""
    text = f"({wanted.element.value}) {inside(value, UNARY)}"
    return Value(text=text, type=wanted, precedence=UNARY)


def inside(value: Value, precedence: int, *, right: bool = False) -> str:
    """Return the text of an operand, in parentheses where its operator binds less."""
    signed = precedence == UNARY and unmarked(value.text).startswith(("-", "+"))
    mixed = {value.precedence, precedence} == _LOGICAL
    return f"({value.text})" if value.precedence < precedence + right or signed or mixed else (
        value.text
    )  # fmt: skip


def arithmetic(left: Value, operator: str, right: Value) -> Value:
    """Return a sum, difference, product or quotient, or a bitwise operation on integers.

    Raises:
        TypeClashError: NumPy has no type for both, or C does not reckon in it.
    """
    common = common_type(left.type, right.type)
    if operator == "/" and not common.is_floating:
        common = FLOAT if common == INT else DOUBLE
    if operator in ("&", "|", "^") and common.is_floating:
        raise TypeClashError(f"'{operator}' is for integers")
    first, second = _operands(left, right, common)
    level = PRECEDENCE[operator]
    text = f"{inside(first, level)} {operator} {inside(second, level, right=True)}"
    kept = second.text if first.text == left.text else None
    return Value(text=text, type=common, precedence=level, right=kept)


def compared(left: Value, operator: str, right: Value) -> str:
    """Return a comparison, in the type in which NumPy compares.

    Raises:
        TypeClashError: no type of C holds the numbers of both.
    """
    first, second = _operands(left, right, common_type(left.type, right.type))
    level = PRECEDENCE[operator]
    return f"{inside(first, level + 1)} {operator} {inside(second, level, right=True)}"


def _operands(left: Value, right: Value, common: NumberType) -> tuple[Value, Value]:
    """Return operands as C takes them to reckon in a type; what C converts itself is left to C."""
    first, second = (_operand(value, common) for value in (left, right))
    types = (first.type.element, second.type.element)
    # beside a short floating-point number C makes an integer one of these, NumPy a double
    if common.is_floating and common.element not in types:
        first = cast(first, common)
    return first, second


def _operand(value: Value, common: NumberType) -> Value:
    if value.number is not None and (value.type, common) != (INT, INT):
        return _literal_as(value, value.number, common)
    if value.type == FLOAT and common.element in _IN_FLOAT:
        return cast(value, common)
    return value


def negated(value: Value) -> Value:
    """Return ``-value``."""
    if value.number is not None:
        return literal(-value.number)
    kind = common_type(value.type)
    return Value(text=f"-{inside(value, UNARY)}", type=kind, precedence=UNARY)


def _literal_as(value: Value, number: float, wanted: NumberType) -> Value:
    """Spell a number of Python in the type of the NumPy number beside it."""
    element = wanted.element
    if element is ElementType.FLOAT:
        text = f"{_rounded(number, 32)}f"
    elif element is ElementType.HALF:
        text = f"({element.value}) {_rounded(number, 16)}f"
    elif element.is_floating:
        text = repr(float(number))
    elif isinstance(number, float):
        return cast(value, wanted)
    else:
        low, high = element.bounds
        if not low <= number <= high:
            raise TypeClashError(f"{number} does not fit into {element.value}")
        return replace(value, type=wanted)  # C converts it
    precedence = UNARY if text.startswith(("-", "(")) else PRIMARY
    text = value.text.replace(unmarked(value.text), text)
    return replace(value, text=text, type=wanted, precedence=precedence)


def _rounded(number: float, bits: int) -> str:
    """Return the shortest decimal text of a number rounded to 32 or 16 bits."""
    try:
        if bits == 16:
            (number,) = struct.unpack("e", struct.pack("e", number))
        found = as_single(float(number))
    except OverflowError:
        found = math.inf
    if math.isinf(found):
        raise TypeClashError(f"{number!r} is too large for {bits} bits")
    return single_text(found)


# -- reader ------------------------------------------------------------------------------------

_MOST_POWER = 8
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_CONSTANTS = {f"{module}.{name}": value for module in ("math", "numpy") for name, value in (
    ("pi", math.pi), ("e", math.e), ("tau", math.tau)
)}  # fmt: skip
_FUNCTIONS = {
    ("math", 1): MATH,
    ("math", 2): MATH_OF_TWO,
    ("numpy", 1): NUMPY,
    ("numpy", 2): NUMPY_OF_TWO,
}
_IN_FLOAT = FLOATS[:2]
"""Types for which functions are those of C for ``float``."""

_ARITHMETIC = (
    "use numbers, elements of arrays, + - * /, // % ** by constants, functions of math and numpy, "
    "min, max, abs, numpy.float64(…), and a if condition else b"
)
_ELEMENTS = "give every subscript, from 0 on: A[i, n - 1]"


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

    @property
    def type(self) -> NumberType:
        """The type of its numbers."""
        return INT if self.kind == "param" else NumberType(self.element_type)


@frozen
class Local:
    """What a name that the function assigns holds: a number, or an array with ``extents``."""

    type: NumberType
    extents: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class ExpressionReader:
    """Reads the expressions of one function.

    ``locals`` are known as far as their types are; ``counters`` are those of the loops around,
    ``past`` those of loops that have ended; ``refused`` are names of which a finding tells already.
    ``spans`` is what marks stand for.
    """

    text: PythonText
    resolve: Resolve
    assigned: frozenset[str]
    findings: Findings
    arguments: dict[str, Argument] = field(default_factory=dict)
    locals: dict[str, Local] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    spans: list[SourceSpan] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    past: set[str] = field(default_factory=set)
    macros: set[str] = field(default_factory=set)

    def note(
        self, node: Node, message: str, hint: str | None = _ARITHMETIC, *, code: str = FORMS
    ) -> None:
        """Record a finding."""
        self.findings.add(code, message, span=self.text.span(node), hint=hint)

    def refuse(
        self, node: Node, message: str, hint: str | None = _ARITHMETIC, *, code: str = FORMS
    ) -> NoReturn:
        """Record a finding, and leave what cannot be read any further.

        Raises:
            RefusedError: always.
        """
        self.note(node, message, hint, code=code)
        raise RefusedError

    @contextmanager
    def fitting(self, node: Node) -> Iterator[None]:
        """Refuse a node where types of its numbers do not go together."""
        try:
            yield
        except TypeClashError as error:
            self.refuse(node, str(error), CONVERT)

    def at(self, text: str, node: Node) -> str:
        """Return C text that stands for a node."""
        return marked(text, self.text.span(node), self.spans)

    def meaning(self, node: ast.expr) -> str:
        """Return the full name of a function or module; nothing for variables and the unknown."""
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        own = (*self.arguments, *self.assigned, *self.counters)
        if isinstance(first, ast.Name) and first.id in own:
            return ""
        return self.resolve(node) or ""

    def value(self, node: ast.expr) -> Value:
        """Read an expression whose value is a number.

        Raises:
            RefusedError: something in it was refused; the finding is recorded.
        """
        with self.fitting(node):
            value = self._value(node)
        return replace(value, text=self.at(value.text, node))

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Read all of some expressions, so that all findings are recorded.

        Raises:
            RefusedError: something in them was refused.
        """
        found: list[Value] = []
        for node in nodes:
            with suppress(RefusedError):
                found.append(self.value(node))
        if len(found) < len(nodes):
            raise RefusedError
        return found

    def _value(self, node: ast.expr) -> Value:  # noqa: PLR0911 - one for each form
        match node:
            case ast.Constant(int(number) | float(number)) if not isinstance(number, bool):
                return literal(number)
            case ast.Name():
                return self._name(node)
            case ast.Subscript():
                return self.element(node)
            case ast.BinOp(left, operator, right):
                first, second = self.values([left, right])
                return self.binary(node, first, second, operator)
            case ast.UnaryOp(ast.USub(), operand):
                return negated(self.value(operand))
            case ast.IfExp():
                return self._choice(node)
            case ast.Call():
                return self._call(node)
            case ast.Attribute() if self.meaning(node) in _CONSTANTS:
                return literal(_CONSTANTS[self.meaning(node)])
        return self.refuse(node, "expression outside the subset")

    # -- variables and elements -------------------------------------------------------

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        variable = self.arguments.get(name) or self.locals.get(name)
        if name in self.counters:
            return Value(text=name, type=INT)
        if name in self.past:
            self.refuse(
                node, f"counter '{name}' is used outside its loop",
                "write the value it has there, for example the end of the range less 1", code=HEAD,
            )  # fmt: skip
        if variable is None:
            if name in self.assigned or name in self.refused:
                raise RefusedError  # its own assignment was refused
            self.refuse(
                node, f"'{name}' is neither a parameter of the function nor assigned in it",
                f"add a parameter, {name}: eatss.Param or {name}: eatss.f64, or write the number: "
                "what surrounds the function is not read", code=HEAD,
            )  # fmt: skip
        if variable.extents:
            self.refuse(node, f"'{name}' is an array, not an element of it", _ELEMENTS)
        return Value(text=name, type=variable.type)

    def element(self, node: ast.Subscript) -> Value:
        """Read ``A[i, j]`` or ``A[i][j]``.

        Raises:
            RefusedError: it is no element of an array.
        """
        indices: list[ast.expr] = []
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            group = base.slice
            indices[:0] = group.elts if isinstance(group, ast.Tuple) else [group]
            base = base.value
        name = base.id if isinstance(base, ast.Name) else ""
        array = self.arguments.get(name) or self.locals.get(name)
        if array is None:
            self.value(base)
        if array is None or not array.extents:
            self.refuse(
                base, f"'{ast.unparse(base)}' is no array",
                f'annotate it: {name or "A"}: eatss.f64["n"]',
            )  # fmt: skip
        values = self.values(indices)
        for index, value in zip(indices, values, strict=True):
            self.whole(index, value, "subscript")
            if value.number is not None and value.number < 0:
                self.refuse(index, "a negative subscript counts from the end in Python", _ELEMENTS)
        if len(indices) != len(array.extents):
            self.refuse(
                node, f"'{name}' needs {len(array.extents)} subscripts, and {len(indices)} stand "
                "here", _ELEMENTS,
            )  # fmt: skip
        return Value(text=name + "".join(f"[{one.text}]" for one in values), type=array.type)

    def whole(self, node: ast.expr, value: Value, what: str) -> None:
        """Refuse what has to be an integer and is none.

        Raises:
            RefusedError: it is none.
        """
        if value.type.is_floating:
            self.refuse(node, f"{what} is no integer", "divide with // where an integer is meant")

    # -- operations -------------------------------------------------------------------

    def binary(self, node: Node, left: Value, right: Value, operator: ast.operator) -> Value:
        """Read an operation on two numbers.

        Raises:
            RefusedError: C has no such operation on them.
            TypeClashError: a number does not fit.
        """
        if isinstance(operator, ast.FloorDiv | ast.Mod):
            return self._quotient(node, left, right, operator)
        if isinstance(operator, ast.Pow):
            return self._power(node, left, right)
        if type(operator) not in OPERATORS:
            self.refuse(node, "operation outside the subset")
        return arithmetic(left, OPERATORS[type(operator)], right)

    def _quotient(self, node: Node, left: Value, right: Value, operator: ast.operator) -> Value:
        """Read ``//`` or ``%``, which round down in Python and towards zero in C."""
        divisor, kind = right.number, common_type(left.type)
        if kind.is_floating or not isinstance(divisor, int) or divisor <= 0:
            self.refuse(
                node, "'//' and '%' are of an integer by a constant greater than zero",
                "write numpy.floor(x / y), or numpy.fmod(x, y), which rounds towards zero",
            )  # fmt: skip
        names = ("floordiv", "floormod") if kind.is_weak else ("floor_quotient", "floor_remainder")
        macro = names[isinstance(operator, ast.Mod)]
        self.macros.add(macro)
        return Value(text=f"{macro}({left.text}, {converted(right, kind).text})", type=kind)

    def _power(self, node: Node, left: Value, right: Value) -> Value:
        exponent = right.number
        if not isinstance(exponent, int) or not 1 <= exponent <= _MOST_POWER:
            self.refuse(
                node, f"'**' by what is no whole number from 1 to {_MOST_POWER}",
                "write math.pow(x, y), or math.sqrt(x) for x ** 0.5",
            )  # fmt: skip
        result = left
        for _ in range(exponent - 1):
            result = arithmetic(result, "*", left)
        return replace(result, right=None)

    # -- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        full = self.meaning(node.func)
        module, _, name = full.rpartition(".")
        count = len(node.args)
        known = _FUNCTIONS.get((module, count), {})
        is_plain = not node.keywords and not any(isinstance(o, ast.Starred) for o in node.args)
        if is_plain and full in ("builtins.min", "builtins.max") and count > 1:
            return self._least(node, name)
        if is_plain and count == 1:
            if full in ("builtins.abs", "numpy.abs", "numpy.absolute"):
                return _absolute(self.value(node.args[0]))
            if full == "builtins.float":
                return replace(converted(self.value(node.args[0]), FLOAT), number=None)
            if module == "numpy" and name in NUMPY_TYPES:
                kind = NumberType(ELEMENTS[NUMPY_TYPES[name]])
                return fixed(self.value(node.args[0]), kind)
        if is_plain and name in known:
            return self._function(node, full, known[name])
        return self.refuse(node, f"call of '{ast.unparse(node.func)}', whose effect is not known")

    def _least(self, node: ast.Call, name: str) -> Value:
        """Read ``min`` or ``max``, which keeps the first of equals, by a macro that does so."""
        values = self._unified(self.values(node.args))
        self.macros.add(name)
        text = values[0].text
        for value in values[1:]:
            text = f"{name}({text}, {value.text})"
        return Value(text=text, type=values[0].type)

    def _function(self, node: ast.Call, full: str, function: str) -> Value:
        """Read a function of floating-point numbers.

        Those of ``math`` take and give doubles; NumPy's keep 32 bits, and round to 16 at the end.
        """
        values = self.values(node.args)
        kind = FLOAT
        if full.startswith("numpy."):
            kind = common_type(*(value.type for value in values))
            kind = DOUBLE if kind == FLOAT else kind
            if not kind.is_floating:
                raise TypeClashError(f"'{full}' of integers")
        is_short = kind.element in _IN_FLOAT
        arguments = ", ".join(
            (converted(value, kind) if is_short or value.number is not None else value).text
            for value in values
        )
        result = Value(text=f"{function}{'f' if is_short else ''}({arguments})", type=kind)
        return cast(result, kind) if kind.element is ElementType.HALF else result

    # -- choices and conditions -------------------------------------------------------

    def _choice(self, node: ast.IfExp) -> Value:
        condition = ""
        with suppress(RefusedError):
            condition = self.condition(node.test)
        yes, no = self._unified(self.values([node.body, node.orelse]))
        if not condition:
            raise RefusedError
        text = f"{condition} ? {inside(yes, 4)} : {inside(no, 3)}"
        return Value(text=text, type=yes.type, precedence=PRECEDENCE["?"])

    def _unified(self, values: list[Value]) -> list[Value]:
        """Return values as values of one type, which a choice between them has."""
        kind = one_type(values)
        if kind is None:
            raise TypeClashError(f"what is chosen from is of types {types_of(values)}")
        return [converted(value, kind) for value in values]

    def condition(self, node: ast.expr, around: int = LEAST) -> str:
        """Read a condition; in parentheses where the operator around it wants them.

        Raises:
            RefusedError: something in it was refused.
        """
        with self.fitting(node):
            text, precedence = self._condition(node)
        if precedence < around or {precedence, around} == _LOGICAL:
            text = f"({text})"
        return self.at(text, node)

    def _condition(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.BoolOp(operator, parts):
                sign = "&&" if isinstance(operator, ast.And) else "||"
                level = PRECEDENCE[sign]
                return f" {sign} ".join([self.condition(one, level) for one in parts]), level
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({self.condition(operand)})", UNARY
            case ast.Compare(first, operators, others) if all(
                type(one) in _COMPARISONS for one in operators
            ):
                values = self.values([first, *others])
                signs = [_COMPARISONS[type(one)] for one in operators]
                pairs = zip(values, signs, values[1:], strict=False)
                texts = [compared(left, sign, right) for left, sign, right in pairs]
                return " && ".join(texts), PRECEDENCE["&&" if len(texts) > 1 else signs[0]]
        value = None if isinstance(node, ast.Compare) else self.value(node)
        if value is None or value.type.is_floating:
            self.refuse(node, "condition that compares no numbers", "compare numbers: x != 0.0")
        level = PRECEDENCE["!="]
        return f"{inside(value, level + 1)} != 0", level


def _absolute(value: Value) -> Value:
    if value.number is not None:
        return literal(abs(value.number))
    kind = common_type(value.type)
    function = "fabs" if kind.is_floating else "abs"
    if kind.element is ElementType.INT64:
        function = "labs"
    elif kind.element in _IN_FLOAT:
        function = "fabsf"
    result = Value(text=f"{function}({value.text})", type=kind)
    return cast(result, kind) if kind.element is ElementType.HALF else result

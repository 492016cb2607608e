"""Python expressions in, C expressions with the same values out, operation by operation.

Calls are of functions of ``math`` and NumPy, of ``min``, ``max``, ``abs`` and conversions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import Names, frozen
from eatss.frontend.python_types import (
    DOUBLE,
    FLOAT,
    FLOATS,
    FUNCTIONS,
    INT,
    NUMPY_TYPES,
    Node,
    NumberType,
    Resolve,
    TypeClashError,
    common_type,
    marked,
    span_of,
    unmarked,
)
from eatss.frontend.source import Findings, RefusedError, SourceText
from eatss.polyhedral.expression import ElementType, as_half, as_single, single_text

CODE = "EATSS-Y004"
CONVERT = "convert it, for example with numpy.float64(…) or numpy.int64(…)"

# -- values ------------------------------------------------------------------------------------

PRIMARY, UNARY = 16, 14
PRECEDENCE = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<": 10, "<=": 10, ">": 10, ">=": 10, "==": 9,
    "!=": 9, "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4, "?": 3,
}  # fmt: skip
_LOGICAL = {PRECEDENCE["&&"], PRECEDENCE["||"]}


@frozen
class Value:
    """An expression: its C text, its type in Python, and its number where it is a literal.

    The C expression has the C type of ``type``. ``precedence`` is that of its outermost operator.
    """

    text: str
    type: NumberType = INT
    precedence: int = PRIMARY
    number: int | float | None = None


def literal(number: float) -> Value:
    """Return a number of Python.

    Raises:
        TypeClashError: it is too large for C.
    """
    if isinstance(number, float) and not math.isfinite(number):
        raise TypeClashError(f"{number} is no finite number")
    if isinstance(number, int) and abs(number) > INT.element.bounds[1]:
        raise TypeClashError(
            f"{number} does not fit into the 32 bits that integers of Python have in C"
        )
    text, kind = repr(number), FLOAT if isinstance(number, float) else INT
    precedence = UNARY if text.startswith("-") else PRIMARY
    return Value(text=text, type=kind, precedence=precedence, number=number)


def one_type(values: Sequence[Value]) -> NumberType | None:
    """Return the one type for a variable or a choice between values; ``None`` if there is none.

    A literal takes any type that holds it.
    """
    firm = {one.type for one in values if one.number is None}
    free = {one.type for one in values if one.number is not None}
    if firm <= {INT, FLOAT}:
        return FLOAT if FLOAT in firm | free else INT
    if firm == {FLOAT, DOUBLE}:
        return DOUBLE
    found = next(iter(firm))
    return None if len(firm) > 1 or (FLOAT in free and not found.is_floating) else found


def types_of(values: Sequence[Value]) -> str:
    """Return the types of values in words."""
    return " and ".join(dict.fromkeys(str(value.type) for value in values))


def converted(value: Value, wanted: NumberType) -> Value:
    """Return a value as one of another type, as NumPy converts it; a literal is spelled in it.

    Raises:
        TypeClashError: a literal does not fit.
    """
    number, element = value.number, wanted.element
    if number is None or (isinstance(number, float) and not element.is_floating):
        is_same = value.type.element is element
        return replace(value, type=wanted) if is_same else cast(value, wanted)
    if not element.is_floating:
        low, high = element.bounds
        if not low <= number <= high:
            raise TypeClashError(f"{number} does not fit into {element.value}")
        return replace(value, type=wanted)  # C converts it
    text = repr(float(number)) if element is ElementType.DOUBLE else _single(number, element)
    precedence = UNARY if text.startswith(("-", "(")) else PRIMARY
    text = value.text.replace(unmarked(value.text), text)
    return replace(value, text=text, type=wanted, precedence=precedence)


def _single(number: float, element: ElementType) -> str:
    """Return the shortest C text of a number rounded to ``float`` or ``_Float16``."""
    is_half = element is ElementType.HALF
    try:
        found = as_half(number) if is_half else as_single(float(number))
    except OverflowError:
        found = math.inf
    if math.isinf(found):
        raise TypeClashError(f"{number!r} is too large for {8 * element.size_bytes} bits")
    return f"({element.value}) " * is_half + f"{single_text(found)}f"


def cast(value: Value, wanted: NumberType) -> Value:
    """Return a value with a cast before it."""
    text = f"({wanted.element.value}) {inside(value, UNARY)}"
    return Value(text=text, type=wanted, precedence=UNARY)


def inside(value: Value, precedence: int, *, right: bool = False) -> str:
    """Return the text of an operand, in parentheses where its operator binds less."""
    signed = precedence == UNARY and unmarked(value.text).startswith(("-", "+"))
    mixed = {value.precedence, precedence} == _LOGICAL
    binds_less = value.precedence < precedence + right
    return f"({value.text})" if binds_less or signed or mixed else value.text


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
    return Value(text=text, type=common, precedence=level)


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
    first, second = (
        converted(one, common)
        if one.number is not None or (one.type == FLOAT and common.element in _IN_FLOAT)
        else one
        for one in (left, right)
    )
    # beside a short floating-point number C makes an integer one of these, NumPy a double
    if common.is_floating and common.element not in (first.type.element, second.type.element):
        first = cast(first, common)
    return first, second


def _called(function: str, arguments: Sequence[Value], kind: NumberType) -> Value:
    """Return a call of a function of C, which has another one for ``float``."""
    suffix = "f" * (kind.element in _IN_FLOAT)
    text = f"{function}{suffix}({', '.join(one.text for one in arguments)})"
    result = Value(text=text, type=kind)
    return cast(result, kind) if kind.element is ElementType.HALF else result


# -- reader ------------------------------------------------------------------------------------

_MOST_POWER = 8
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_CONSTANTS = {
    f"{module}.{name}": getattr(math, name)
    for module in ("math", "numpy")
    for name in ("pi", "e", "tau")
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
    extents: Names = ()

    @property
    def type(self) -> NumberType:
        """The type of its numbers."""
        return INT if self.kind == "param" else NumberType(self.element_type)


@frozen
class Local:
    """What a name that the function assigns holds: a number, or an array with ``extents``."""

    type: NumberType
    extents: Names = ()


@dataclass(slots=True, kw_only=True, eq=False)
class ExpressionReader:
    """Reads the expressions of one function.

    What is refused is recorded, and raises ``RefusedError``. ``locals`` are known as far as their
    types are; ``counters`` are those of the loops around, ``past`` those of loops that have ended;
    ``refused`` are names of which a finding tells already. ``spans`` is what marks stand for.
    """

    source: SourceText
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

    def note(self, node: Node, message: str, hint: str | None = _ARITHMETIC) -> None:
        """Record a finding."""
        self.findings.add(CODE, message, span=span_of(self.source, node), hint=hint)

    def refuse(self, node: Node, message: str, hint: str | None = _ARITHMETIC) -> NoReturn:
        """Record a finding, and leave what cannot be read any further."""
        self.note(node, message, hint)
        raise RefusedError

    @contextmanager
    def fitting(self, node: Node) -> Iterator[None]:
        """Refuse a node where types of its numbers do not go together."""
        try:
            yield
        except TypeClashError as error:
            self.refuse(node, str(error), CONVERT)

    def at(self, text: str, node: Node) -> str:
        """Return C text that stands for a node: with a mark, whose span is added, around it."""
        self.spans.append(span_of(self.source, node))
        return marked(text, len(self.spans) - 1)

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
        """Read an expression whose value is a number."""
        with self.fitting(node):
            value = self._value(node)
        return replace(value, text=self.at(value.text, node))

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Read all of some expressions, so that all findings are recorded."""
        found = []
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
                value = self.value(operand)
                if value.number is not None:
                    return literal(-value.number)
                text = f"-{inside(value, UNARY)}"
                return Value(text=text, type=common_type(value.type), precedence=UNARY)
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
            return Value(text=name)
        if name in self.past:
            self.refuse(
                node, f"counter '{name}' is used outside its loop",
                "write the value it has there, for example the end of the range less 1",
            )  # fmt: skip
        if variable is None:
            if name in self.assigned or name in self.refused:
                raise RefusedError  # its own assignment was refused
            self.refuse(
                node, f"'{name}' is neither a parameter of the function nor assigned in it",
                f"add a parameter, {name}: eatss.Param or {name}: eatss.f64, or write the number: "
                "what surrounds the function is not read",
            )  # fmt: skip
        if variable.extents:
            self.refuse(node, f"'{name}' is an array, not an element of it", _ELEMENTS)
        return Value(text=name, type=variable.type)

    def element(self, node: ast.Subscript) -> Value:
        """Read ``A[i, j]`` or ``A[i][j]``."""
        indices: list[ast.expr] = []
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            indices[:0] = items(base.slice)
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
        """Refuse what has to be an integer and is none."""
        if value.type.is_floating:
            self.refuse(node, f"{what} is no integer", "divide with // where an integer is meant")

    # -- operations -------------------------------------------------------------------

    def binary(self, node: Node, left: Value, right: Value, operator: ast.operator) -> Value:
        """Read an operation on two numbers; ``TypeClashError`` where one does not fit."""
        number = right.number
        match operator:
            case ast.FloorDiv() | ast.Mod():  # round down in Python and towards zero in C
                kind = common_type(left.type)
                if kind.is_floating or not isinstance(number, int) or number <= 0:
                    self.refuse(
                        node, "'//' and '%' are of an integer by a constant greater than zero",
                        "write numpy.floor(x / y), or numpy.fmod(x, y), which rounds towards zero",
                    )  # fmt: skip
                weak, firm = ("floordiv", "floormod"), ("floor_quotient", "floor_remainder")
                macro = (weak if kind.is_weak else firm)[isinstance(operator, ast.Mod)]
                self.macros.add(macro)
                return Value(text=f"{macro}({left.text}, {converted(right, kind).text})", type=kind)
            case ast.Pow():
                if not isinstance(number, int) or not 1 <= number <= _MOST_POWER:
                    self.refuse(
                        node, f"'**' by what is no whole number from 1 to {_MOST_POWER}",
                        "write math.pow(x, y), or math.sqrt(x) for x ** 0.5",
                    )  # fmt: skip
                result = left
                for _ in range(number - 1):
                    result = arithmetic(result, "*", left)
                return result
        if type(operator) not in OPERATORS:
            self.refuse(node, "operation outside the subset")
        return arithmetic(left, OPERATORS[type(operator)], right)

    # -- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        full, count = self.meaning(node.func), len(node.args)
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            full = ""
        if full in ("builtins.min", "builtins.max") and count > 1:
            return self._least(node, full.removeprefix("builtins."))
        if (full, count) in FUNCTIONS:
            return self._function(node, full, FUNCTIONS[full, count])
        element = NUMPY_TYPES.get(full.removeprefix("numpy.")) if full[:6] == "numpy." else None
        is_absolute = full in ("builtins.abs", "numpy.abs", "numpy.absolute")
        if count != 1 or not (element or is_absolute or full == "builtins.float"):
            self.refuse(node, f"call of '{ast.unparse(node.func)}', whose effect is not known")
        value = self.value(node.args[0])
        if is_absolute and value.number is not None:
            return literal(abs(value.number))
        if is_absolute:
            kind = common_type(value.type)
            whole = "labs" if kind.element is ElementType.INT64 else "abs"
            return _called("fabs" if kind.is_floating else whole, [value], kind)
        made = converted(value, NumberType(element) if element else FLOAT)
        if value.number is not None and element is ElementType.INT64:
            made = cast(made, made.type)
        return replace(made, number=None)

    def _least(self, node: ast.Call, name: str) -> Value:
        """Read ``min`` or ``max``, which keeps the first of equals, by a macro that does so."""
        first, *others = self._unified(self.values(node.args))
        self.macros.add(name)
        text = first.text
        for value in others:
            text = f"{name}({text}, {value.text})"
        return Value(text=text, type=first.type)

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
        arguments = [
            converted(one, kind) if is_short or one.number is not None else one for one in values
        ]
        return _called(function, arguments, kind)

    # -- choices and conditions -------------------------------------------------------

    def _choice(self, node: ast.IfExp) -> Value:
        test = None
        with suppress(RefusedError):
            test = self.condition(node.test)
        yes, no = self._unified(self.values([node.body, node.orelse]))
        if test is None:
            raise RefusedError
        text = f"{test.text} ? {inside(yes, 4)} : {inside(no, 3)}"
        return Value(text=text, type=yes.type, precedence=PRECEDENCE["?"])

    def _unified(self, values: list[Value]) -> list[Value]:
        """Return values as values of one type, which a choice between them has."""
        kind = one_type(values)
        if kind is None:
            raise TypeClashError(f"what is chosen from is of types {types_of(values)}")
        return [converted(value, kind) for value in values]

    def condition(self, node: ast.expr) -> Value:
        """Read a condition."""
        with self.fitting(node):
            found = self._condition(node)
        return replace(found, text=self.at(found.text, node))

    def _condition(self, node: ast.expr) -> Value:
        match node:
            case ast.BoolOp(operator, parts):
                sign = "&&" if isinstance(operator, ast.And) else "||"
                level = PRECEDENCE[sign]
                text = f" {sign} ".join(inside(self.condition(one), level) for one in parts)
                return Value(text=text, precedence=level)
            case ast.UnaryOp(ast.Not(), operand):
                return Value(text=f"!({self.condition(operand).text})", precedence=UNARY)
            case ast.Compare(first, operators, others) if all(
                type(one) in _COMPARISONS for one in operators
            ):
                values = self.values([first, *others])
                signs = [_COMPARISONS[type(one)] for one in operators]
                texts = [*map(compared, values, signs, values[1:])]
                level = PRECEDENCE["&&" if len(texts) > 1 else signs[0]]
                return Value(text=" && ".join(texts), precedence=level)
        value = None if isinstance(node, ast.Compare) else self.value(node)
        if value is None or value.type.is_floating:
            self.refuse(node, "condition that compares no numbers", "compare numbers: x != 0.0")
        level = PRECEDENCE["!="]
        return Value(text=f"{inside(value, level + 1)} != 0", precedence=level)


def items(node: ast.expr) -> Sequence[ast.expr]:
    """Return the parts of a tuple, or what is none."""
    return node.elts if isinstance(node, ast.Tuple) else [node]

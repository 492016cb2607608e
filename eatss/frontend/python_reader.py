"""Statements of a Python function in, C with the same values out, operation by operation.

Calls are of functions of ``math`` and NumPy, of ``min``, ``max``, ``abs`` and conversions.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from textwrap import indent
from typing import Literal, NoReturn

import numpy as np

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import Names, fixed, frozen
from eatss.frontend.python_types import (
    DOUBLE,
    ELEMENTS,
    FLOAT,
    FLOATS,
    FUNCTIONS,
    INT,
    MACROS,
    NUMPY_TYPES,
    Node,
    NumberType,
    Resolve,
    TypeClashError,
    c_name_is_free,
    common_type,
    marked,
    span_of,
    unmarked,
)
from eatss.frontend.source import Findings, RefusedError, SourceText
from eatss.polyhedral.expression import ElementType, as_half, as_single, single_text

# -- values ------------------------------------------------------------------------------------

PRIMARY, UNARY, CHOICE = 16, 15, 3
PRECEDENCE = {
    "*": 13, "/": 13, "+": 12, "-": 12, "<": 10, "<=": 10, ">": 10, ">=": 10, "==": 9, "!=": 9,
    "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4,
}  # fmt: skip
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.And: "&&", ast.Or: "||",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_COMPARED = range(9, 11)
_BITWISE = range(6, 9)
_LOGICAL = {PRECEDENCE["&&"], PRECEDENCE["||"]}
_MOST_INT = INT.element.bounds[1]
_IN_FLOAT = FLOATS[:2]
"""Types for which functions are those of C for ``float``."""


@fixed
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
    kind, most = (FLOAT, sys.float_info.max) if isinstance(number, float) else (INT, _MOST_INT)
    if not abs(number) <= most:
        raise TypeClashError(f"{number} does not fit into the type that it has in C")
    text = repr(number)
    precedence = UNARY if text.startswith("-") else PRIMARY
    return Value(text, kind, precedence, number)


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
    text = repr(number)
    if element.is_floating:
        text = repr(float(number)) if element is ElementType.DOUBLE else _single(number, element)
    elif not element.bounds[0] <= number <= element.bounds[1]:
        raise TypeClashError(f"{number} does not fit into {element.value}")
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
        raise TypeClashError(f"{number!r} does not fit into {element.value}")
    return f"({element.value}) " * is_half + f"{single_text(found)}f"


def cast(value: Value, wanted: NumberType) -> Value:
    """Return a value with a cast before it."""
    text = f"({wanted.element.value}) {inside(value, UNARY)}"
    return Value(text, wanted, UNARY)


def inside(value: Value, precedence: int) -> str:
    """Return the text of an operand, in parentheses where its operator binds less."""
    signed = precedence == UNARY and unmarked(value.text).startswith(("-", "+"))
    mixed = {value.precedence, precedence} == _LOGICAL
    binds_less = value.precedence < precedence
    return f"({value.text})" if binds_less or signed or mixed else value.text


def operation(left: Value, sign: str, right: Value) -> Value:
    """Return an operation on two numbers, or a comparison of them, in the type that NumPy takes.

    Raises:
        TypeClashError: NumPy has no type for both, or C does not reckon in it.
    """
    level, common = PRECEDENCE[sign], common_type(left.type, right.type)
    if sign == "/" and not common.is_floating:
        common = FLOAT if common == INT else DOUBLE
    if level in _BITWISE and common.is_floating:
        raise TypeClashError(f"'{sign}' is for integers")
    # what C converts itself is left to C
    first, second = (
        converted(one, common)
        if one.number is not None or (one.type == FLOAT and common.element in _IN_FLOAT)
        else one
        for one in (left, right)
    )
    # beside a short floating-point number C makes an integer one of these, NumPy a double
    if common.is_floating and common.element not in (first.type.element, second.type.element):
        first = cast(first, common)
    text = f"{inside(first, level + (level in _COMPARED))} {sign} {inside(second, level + 1)}"
    return Value(text, common, level)


def _called(function: str, arguments: Sequence[Value], kind: NumberType) -> Value:
    """Return a call of a function of C, which has another one for ``float``."""
    suffix = "f" * (kind.element in _IN_FLOAT)
    text = f"{function}{suffix}({', '.join(one.text for one in arguments)})"
    result = Value(text, kind)
    return cast(result, kind) if kind.element is ElementType.HALF else result


# -- reader ------------------------------------------------------------------------------------

_MOST_POWER = 8
_IN_SIZES = {ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Constant, ast.Name, ast.Load}


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

    @property
    def declared(self) -> str:
        """Its declaration in C."""
        sizes = "".join(f"[{one}]" for one in self.extents)
        return f"{self.element_type.value} {self.name}{sizes}"


@dataclass(slots=True, kw_only=True, eq=False)
class FunctionReader:
    """Reads one function.

    What is refused is recorded, and raises ``RefusedError``. ``types`` are those of locals, as far
    as they are known; ``seen`` is what each is assigned, in order, with the statement. ``declared``
    are parameters and arrays of the function itself, ``counters`` those of the loops around,
    ``blocks`` the locals that each block around declares. ``spans`` is what marks stand for.
    """

    source: SourceText
    resolve: Resolve
    types: dict[str, NumberType]
    findings: Findings
    declared: dict[str, Argument] = field(default_factory=dict)
    seen: dict[str, list[tuple[Value, ast.stmt]]] = field(default_factory=dict)
    spans: list[SourceSpan] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    blocks: list[set[str]] = field(default_factory=list)
    macros: set[str] = field(default_factory=set)

    def note(self, kind: str, node: Node, **words: object) -> None:
        """Record a finding."""
        if "text" not in words:
            words["text"] = ast.unparse(node)
        self.findings.add(kind, span_of(self.source, node), **words)

    def refuse(self, kind: str, node: Node, **words: object) -> NoReturn:
        """Record a finding, and leave what cannot be read any further."""
        self.note(kind, node, **words)
        raise RefusedError

    def at(self, text: str, node: Node) -> str:
        """Return C text that stands for a node: with a mark, whose span is added, around it."""
        self.spans.append(span_of(self.source, node))
        return marked(text, len(self.spans) - 1)

    def is_own(self, name: str) -> bool:
        """Tell whether a name has a value of the function's own here."""
        return any(name in names for names in (self.declared, self.counters, *self.blocks))

    def meaning(self, node: ast.expr) -> object:
        """Return what a function or module is; nothing for variables and the unknown."""
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        is_own = isinstance(first, ast.Name) and self.is_own(first.id)
        return None if is_own else self.resolve(node)

    # -- parameters ---------------------------------------------------------------------

    def function(self, node: ast.FunctionDef) -> str:
        """Return the function in C."""
        with suppress(RefusedError):
            self._check_name(node.name, node)
        given = node.args
        odd = [*given.kwonlyargs, given.vararg, given.kwarg, *given.defaults, *given.kw_defaults]
        for one in odd:
            if one is not None:
                self.note("odd_parameter", one)
        declared = []
        for one in parameters_of(node):
            with suppress(RefusedError):
                self.declared[one.arg] = argument = self._argument(one)
                declared.append(self.at(argument.declared, one))
        body = self._lines(node.body)
        macros = "".join(f"{text}\n" for name, text in MACROS.items() if name in self.macros)
        return self.at(
            f"#include <math.h>\n#include <stdlib.h>\n{macros}\n"
            f"void {node.name}({', '.join(declared)})\n"
            f"{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n",
            node,
        )

    def _argument(self, node: ast.arg) -> Argument:
        self._check_name(node.arg, node)
        annotation = _unquoted(node.annotation or ast.Constant(None))
        base, sizes = annotation, list[ast.expr]()
        if isinstance(annotation, ast.Subscript):
            base, sizes = annotation.value, [*_items(annotation.slice)]
        kind = getattr(self.resolve(base), "name", ast.unparse(base).rpartition(".")[2])
        if kind == "Param" and not sizes:
            return Argument(name=node.arg, kind="param", element_type=ElementType.INT32)
        if kind not in ELEMENTS:
            self.refuse("no_annotation", node.annotation or node, name=node.arg)
        return self._array(node.arg, ELEMENTS[kind], sizes)

    def _array(self, name: str, element: ElementType, sizes: Sequence[ast.expr]) -> Argument:
        return Argument(
            name=name,
            kind="array" if sizes else "scalar",
            element_type=element,
            extents=tuple(map(self._size, sizes)),
        )

    def _size(self, node: ast.expr) -> str:
        """Return a size of an array, affine over parameters before it; C spells it alike."""
        inner = _unquoted(node)
        parts = [*ast.walk(inner)]
        names = {one.id for one in parts if isinstance(one, ast.Name)}
        known = {name for name, one in self.declared.items() if one.kind == "param"}
        (value,) = self._whole([inner])
        if not names <= known or not {*map(type, parts)} <= _IN_SIZES or (value.number or 1) <= 0:
            self.refuse("no_size", inner)
        return ast.unparse(inner)

    def _check_name(self, name: str, node: Node) -> None:
        if not c_name_is_free(name):
            self.refuse("no_c_name", node, name=name)

    # -- control ----------------------------------------------------------------------

    def _lines(self, body: Sequence[ast.stmt]) -> str:
        """Read statements that follow one another; what is wrong is recorded."""
        texts = []
        self.blocks.append(set())
        for statement in body:
            with suppress(RefusedError):
                text = self._statement(statement)
                texts += [self.at(text, statement)] * bool(text)
        self.blocks.pop()
        return indent("\n".join(texts), "    ")

    def _statement(self, node: ast.stmt) -> str:
        match node:
            case ast.For():
                return self._for(node)
            case ast.If():
                return self._if(node)
            case ast.Assign([target], made) if not isinstance(target, ast.Tuple | ast.List):
                return self._assign(node, target, made)
            case ast.AugAssign():
                return self._update(node)
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                return ""
        self.note("statement", node)
        self._lines([one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)])
        raise RefusedError

    def _block(self, body: Sequence[ast.stmt]) -> str:
        text = self._lines(body)
        return f"{{\n{text}\n}}" if text else "{\n}"

    def _for(self, node: ast.For) -> str:
        own = [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)]
        head = ""
        with suppress(RefusedError):
            if not isinstance(node.target, ast.Name) or self.is_own(node.target.id):
                self.refuse("counter", node.target)
            self._check_name(node.target.id, node.target)
        with suppress(RefusedError):
            head = self._head_of_loop(node, own[0])
        if node.orelse:
            self.note("else_of_loop", node.orelse[0])
        self.counters += own
        body = self._block(node.body)
        del self.counters[len(self.counters) - len(own) :]
        return f"{head} {body}"

    def _head_of_loop(self, node: ast.For, counter: str) -> str:
        call = node.iter
        if not isinstance(call, ast.Call) or self.meaning(call.func) is not range or (
            call.keywords or not 1 <= len(call.args) <= 3
        ):  # fmt: skip
            self.refuse("no_range", call)
        values = self._whole(call.args)
        start, end, *steps = values if len(values) > 1 else [Value("0"), *values]
        step = steps[0].number if steps else 1
        if not isinstance(step, int) or step == 0:
            self.refuse("no_constant_step", call.args[-1])
        last = inside(end, PRECEDENCE["<"] + 1)
        test = f"< {last}" if step > 0 else ">= 0" if end.number == -1 else f"> {last}"
        change = {1: "++", -1: "--"}.get(step, f" += {step}" if step > 0 else f" -= {-step}")
        return f"for (int {counter} = {start.text}; {counter} {test}; {counter}{change})"

    def _if(self, node: ast.If) -> str:
        test = Value("0")
        with suppress(RefusedError):
            test = self._condition(node.test)
        text = f"if ({test.text}) {self._block(node.body)}"
        match node.orelse:
            case [ast.If() as inner]:
                return f"{text} else {self.at(self._if(inner), inner)}"
            case [_, *_]:
                return f"{text} else {self._block(node.orelse)}"
        return text

    # -- assignments ------------------------------------------------------------------

    def _assign(self, node: ast.Assign, target: ast.expr, made: ast.expr) -> str:
        name = target.id if isinstance(target, ast.Name) else ""
        if name and isinstance(made, ast.Call) and self.meaning(made.func) is np.empty:
            return self._empty(node, name, made)
        written = self._target(target)
        is_new = bool(name) and not self.is_own(name)
        try:
            value = self._value(made)
        finally:
            self.blocks[-1] |= {name} if is_new else set()
        if name:
            self.seen.setdefault(name, []).append((value, node))
        kind = f"{written.type.element.value} " if is_new else ""
        return f"{kind}{written.text} = {self._stored(made, value, written)};"

    def _update(self, node: ast.AugAssign) -> str:
        written = self._target(node.target)
        if isinstance(node.target, ast.Name):
            self._name(node.target)
        value = self._value(node.value)
        result = self._fitting(node, lambda: self._binary(node, written, value, node.op))
        if isinstance(node.target, ast.Name):
            self.seen.setdefault(node.target.id, []).append((result, node))
        left = f"{written.text} {_SIGNS.get(type(node.op), '')} "
        if result.text.startswith(left):
            return f"{left[:-1]}= {result.text.removeprefix(left)};"
        return f"{written.text} = {self._stored(node, result, written)};"

    def _stored(self, node: Node, value: Value, written: Value) -> str:
        """Return the text of a value that is stored: a literal in the type of its place."""
        number = value.number
        if number is None or (isinstance(number, float) and not written.type.is_floating):
            return value.text
        return self._fitting(node, lambda: converted(value, written.type)).text

    def _target(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Subscript):
            found = self._element(node)
            return replace(found, text=self.at(found.text, node))
        name = node.id if isinstance(node, ast.Name) else ""
        if not name or name in (*self.counters, *self.declared):
            self.refuse("no_place", node)
        self._check_name(name, node)
        return Value(self.at(name, node), self.types.get(name, INT))

    def _empty(self, node: ast.Assign, name: str, call: ast.Call) -> str:
        """Read ``T = numpy.empty((n, m), dtype=numpy.float32)``."""
        self._check_name(name, node.targets[0])
        named = [one.value for one in call.keywords if one.arg == "dtype"]
        types = [*map(self.meaning, (*call.args[1:], *named))]
        if (
            len(self.blocks) > 1
            or self.is_own(name)
            or not call.args
            or len(types) > 1
            or len(named) < len(call.keywords)
            or not NUMPY_TYPES.keys() >= set(types)
        ):
            self.refuse("array_made", node, name=name)
        element = NUMPY_TYPES[types[0]] if types else ElementType.DOUBLE
        self.declared[name] = made = self._array(name, element, _items(call.args[0]))
        return f"{made.declared};"

    # -- expressions ------------------------------------------------------------------

    def _fitting(self, node: Node, read: Callable[[], Value]) -> Value:
        """Return what is read of a node; refuse it where types of numbers do not go together."""
        try:
            return read()
        except TypeClashError as error:
            self.refuse("types", node, why=error)

    def _value(self, node: ast.expr) -> Value:
        """Read an expression whose value is a number."""
        found = self._fitting(node, lambda: self._number(node))
        return replace(found, text=self.at(found.text, node))

    def _values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Read some expressions."""
        return [*map(self._value, nodes)]

    def _whole(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Read what has to be integers."""
        values = self._values(nodes)
        for node, value in zip(nodes, values, strict=True):
            if value.type.is_floating:
                self.refuse("no_integer", node)
        return values

    def _number(self, node: ast.expr) -> Value:  # noqa: PLR0911 - one for each form
        match node:
            case ast.Constant(int(number) | float(number)) if not isinstance(number, bool):
                return literal(number)
            case ast.Name():
                return self._name(node)
            case ast.Subscript():
                return self._element(node)
            case ast.BinOp(left, operator, right):
                first, second = self._values([left, right])
                return self._binary(node, first, second, operator)
            case ast.UnaryOp(ast.USub(), operand):
                value = self._value(operand)
                if value.number is not None:
                    return literal(-value.number)
                text = f"-{inside(value, UNARY)}"
                return Value(text, common_type(value.type), UNARY)
            case ast.IfExp(test, yes, no):
                return self._choice(test, [yes, no])
            case ast.Call():
                return self._call(node)
            case ast.Attribute() if isinstance(constant := self.meaning(node), float):
                return literal(constant)  # math.pi
        return self.refuse("no_expression", node)

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        if not self.is_own(name):
            self.refuse("no_value", node)
        variable = self.declared.get(name)
        if variable is None:
            kind = INT if name in self.counters else self.types.get(name, INT)
            return Value(name, kind)
        if variable.extents:
            self.refuse("whole_array", node)
        return Value(name, variable.type)

    def _element(self, node: ast.Subscript) -> Value:
        """Read ``A[i, j]`` or ``A[i][j]``."""
        indices: list[ast.expr] = []
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            indices[:0] = _items(base.slice)
            base = base.value
        name = ast.unparse(base)
        array = self.declared.get(name)
        if array is None or not array.extents:
            self.refuse("no_array", base)
        values = self._whole(indices)
        for index, value in zip(indices, values, strict=True):
            if value.number is not None and value.number < 0:
                self.refuse("negative", index)
        if len(indices) != len(array.extents):
            self.refuse("subscripts", node, name=name, count=len(array.extents))
        return Value(name + "".join(f"[{one.text}]" for one in values), array.type)

    def _binary(self, node: Node, left: Value, right: Value, operator: ast.operator) -> Value:
        """Read an operation on two numbers; ``TypeClashError`` where one does not fit."""
        number = right.number
        match operator:
            case ast.FloorDiv() | ast.Mod():  # round down in Python and towards zero in C
                kind = common_type(left.type)
                if kind.is_floating or not isinstance(number, int) or number <= 0:
                    self.refuse("rounded_quotient", node)
                weak, firm = ("floordiv", "floormod"), ("floor_quotient", "floor_remainder")
                macro = (weak if kind.is_weak else firm)[isinstance(operator, ast.Mod)]
                self.macros.add(macro)
                return Value(f"{macro}({left.text}, {converted(right, kind).text})", kind)
            case ast.Pow():
                if not isinstance(number, int) or not 1 <= number <= _MOST_POWER:
                    self.refuse("power", node)
                result = left
                for _ in range(number - 1):
                    result = operation(result, "*", left)
                return result
        if type(operator) not in _SIGNS:
            self.refuse("no_expression", node)
        return operation(left, _SIGNS[type(operator)], right)

    def _call(self, node: ast.Call) -> Value:
        called, arguments = self.meaning(node.func), node.args
        if node.keywords or any(isinstance(one, ast.Starred) for one in arguments):
            called = None
        if called in (min, max) and len(arguments) > 1:
            return self._least(arguments, "min" if called is min else "max")
        function = FUNCTIONS.get((called, len(arguments)))
        if function is not None:
            return self._function(called, self._values(arguments), function)
        element, is_absolute = NUMPY_TYPES.get(called), called in (abs, np.abs)
        if len(arguments) != 1 or not (element or is_absolute or called is float):
            self.refuse("unknown_call", node, name=ast.unparse(node.func))
        value = self._value(arguments[0])
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

    def _least(self, arguments: Sequence[ast.expr], name: str) -> Value:
        """Read ``min`` or ``max``, which keeps the first of equals, by a macro that does so."""
        first, *others = _unified(self._values(arguments))
        self.macros.add(name)
        text = first.text
        for value in others:
            text = f"{name}({text}, {value.text})"
        return Value(text, first.type)

    def _function(self, called: object, values: Sequence[Value], function: str) -> Value:
        """Return a function of floating-point numbers.

        Those of ``math`` take and give doubles; NumPy's keep 32 bits, and round to 16 at the end.
        """
        kind = FLOAT
        if isinstance(called, np.ufunc):
            kind = common_type(*(value.type for value in values))
            kind = DOUBLE if kind == FLOAT else kind
            if not kind.is_floating:
                raise TypeClashError(f"'numpy.{called.__name__}' of integers")
        is_short = kind.element in _IN_FLOAT
        arguments = [
            converted(one, kind) if is_short or one.number is not None else one for one in values
        ]
        return _called(function, arguments, kind)

    def _choice(self, condition: ast.expr, arms: Sequence[ast.expr]) -> Value:
        test, (yes, no) = self._condition(condition), _unified(self._values(arms))
        text = f"{test.text} ? {inside(yes, CHOICE + 1)} : {inside(no, CHOICE)}"
        return Value(text, yes.type, CHOICE)

    def _condition(self, node: ast.expr) -> Value:
        found = self._fitting(node, lambda: self._truth(node))
        return replace(found, text=self.at(found.text, node))

    def _truth(self, node: ast.expr) -> Value:
        match node:
            case ast.BoolOp(operator, parts):
                return _joined(_SIGNS[type(operator)], [*map(self._condition, parts)])
            case ast.UnaryOp(ast.Not(), operand):
                return Value(f"!({self._condition(operand).text})", precedence=UNARY)
            case ast.Compare(first, operators, others) if {*map(type, operators)} <= {*_SIGNS}:
                values = self._values([first, *others])
                signs = [_SIGNS[type(one)] for one in operators]
                return _joined("&&", [*map(operation, values, signs, values[1:])])
        value = None if isinstance(node, ast.Compare) else self._value(node)
        if value is None or value.type.is_floating:
            self.refuse("no_condition", node)
        level = PRECEDENCE["!="]
        return Value(f"{inside(value, level + 1)} != 0", precedence=level)


def parameters_of(node: ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters of a function that are given by position."""
    return [*node.args.posonlyargs, *node.args.args]


def _joined(sign: str, parts: Sequence[Value]) -> Value:
    """Return several conditions as one."""
    level = PRECEDENCE[sign]
    text = f" {sign} ".join(inside(one, level) for one in parts)
    return Value(text, precedence=level) if len(parts) > 1 else parts[0]


def _unified(values: Sequence[Value]) -> list[Value]:
    """Return values as values of one type, which a choice between them has."""
    kind = one_type(values)
    if kind is None:
        raise TypeClashError(f"what is chosen from is of types {types_of(values)}")
    return [converted(value, kind) for value in values]


def _items(node: ast.expr) -> Sequence[ast.expr]:
    """Return the parts of a tuple, or what is none."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _unquoted(node: ast.expr) -> ast.expr:
    """Return the expression in a quoted annotation or extent, at the place of the quotes."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return node
    try:
        inner = ast.parse(node.value.strip(), mode="eval").body
    except SyntaxError:
        return node
    for one in ast.walk(inner):
        ast.copy_location(one, node)
    return inner

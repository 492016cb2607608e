"""Parameters of a Python function in, arguments and their C declarations out."""

from __future__ import annotations

import ast

from eatss.frozen import frozen
from eatss.python_source.annotations import ELEMENTS, PARAM
from eatss.python_source.c_text import Piece, joined
from eatss.python_source.local_variables import Argument
from eatss.python_source.names import Resolve, c_name_is_free
from eatss.python_source.text import Code, Findings, RefusedError
from eatss.scops import ElementType

_TYPES = ", ".join(ELEMENTS)
_ANNOTATE = 'write n: eatss.Param, x: eatss.f64 or A: eatss.f64["n", "n"]'


@frozen
class Parameter:
    """An argument with its declaration in C."""

    argument: Argument
    declaration: Piece


class ParameterReader:
    """Reads the parameters of one function."""

    def __init__(self, resolve: Resolve, findings: Findings) -> None:
        self._resolve = resolve
        self._findings = findings

    def read(self, arguments: ast.arguments) -> tuple[Parameter, ...]:
        """Return the parameters that are right, in order; what is wrong is recorded."""
        others = [*arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for one in others:
            if one is not None:
                self._findings.add(
                    Code.FUNCTION, one, f"'{one.arg}' is no plain parameter",
                    "list all parameters by position",
                )  # fmt: skip
        for default in [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]:
            self._findings.add(
                Code.FUNCTION, default, "a default value",
                "leave it out: every argument is given",
            )  # fmt: skip
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        found: list[Parameter] = []
        known: list[str] = []
        for one in (*arguments.posonlyargs, *arguments.args):
            try:
                parameter = self._parameter(one, known, names)
            except RefusedError:
                continue
            found.append(parameter)
            if parameter.argument.kind == "param":
                known.append(one.arg)
        return tuple(found)

    def _parameter(self, node: ast.arg, known: list[str], names: list[str]) -> Parameter:
        check_name(node.arg, node, self._findings)
        if node.annotation is None:
            raise self._findings.refusal(
                Code.ANNOTATION, node, f"parameter '{node.arg}' has no annotation", _ANNOTATE
            )
        annotation = _unquoted(node.annotation)
        base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        spelled = self._resolve(base) or f"eatss.{ast.unparse(base).rpartition('.')[2]}"
        kind = spelled.removeprefix("eatss.")
        if kind == PARAM and base is annotation:
            argument = Argument(name=node.arg, kind="param", element_type=ElementType.INT32)
            return self._declared(node, argument, "")
        if kind not in ELEMENTS:
            raise self._findings.refusal(
                Code.ANNOTATION, node.annotation,
                f"'{ast.unparse(node.annotation)}' is no type of a parameter",
                f"{_ANNOTATE}; the types are {_TYPES}",
            )  # fmt: skip
        if not isinstance(annotation, ast.Subscript):
            argument = Argument(name=node.arg, kind="scalar", element_type=ELEMENTS[kind])
            return self._declared(node, argument, "")
        elements = annotation.slice
        extents = elements.elts if isinstance(elements, ast.Tuple) else [elements]
        reader = ExtentReader(known, names, self._findings)
        read = [reader.extent(extent) for extent in extents]
        argument = Argument(
            name=node.arg,
            kind="array",
            element_type=ELEMENTS[kind],
            extents=tuple(text for text, _ in read),
        )
        return self._declared(node, argument, "".join(f"[{c_text}]" for _, c_text in read))

    def _declared(self, node: ast.arg, argument: Argument, sizes: str) -> Parameter:
        piece = joined(f"{argument.element_type.value} ", argument.name, sizes)
        span = self._findings.text.span(node)
        return Parameter(argument=argument, declaration=piece.at(span))


class ExtentReader:
    """Reads sizes of arrays: affine texts over parameters, or numbers."""

    def __init__(self, known: list[str], names: list[str], findings: Findings) -> None:
        self._known = known
        self._names = names
        self._findings = findings

    def extent(self, node: ast.expr) -> tuple[str, str]:
        """Return a size as Python and as C has it.

        Raises:
            RefusedError: it is none.
        """
        inner = _unquoted(node)
        if inner is node and isinstance(node, ast.Constant) and isinstance(node.value, str):
            raise self._no_size(node)
        if isinstance(inner, ast.UnaryOp) or (
            isinstance(inner, ast.Constant) and isinstance(inner.value, int) and inner.value < 1
        ):
            raise self._no_size(inner)
        return ast.unparse(inner), self._text(inner)

    def _text(self, node: ast.expr, least: int = 0) -> str:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return str(node.value)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.BinOp):
            signs: dict[type[ast.operator], tuple[str, int]] = {
                ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2), ast.FloorDiv: ("/", 2),
            }  # fmt: skip
            sign, level = signs.get(type(node.op), ("", 0))
            divisor = node.right.value if isinstance(node.right, ast.Constant) else None
            if sign == "*" and _names(node.left) and _names(node.right):
                raise self._no_size(node)
            if sign and (sign != "/" or (isinstance(divisor, int) and divisor > 0)):
                left, right = self._text(node.left, level), self._text(node.right, level + 1)
                text = f"{left} {sign} {right}"
                return f"({text})" if level < least else text
        raise self._no_size(node)

    def _name(self, node: ast.Name) -> str:
        if node.id in self._known:
            return node.id
        if node.id in self._names:
            raise self._findings.refusal(
                Code.EXTENT, node, f"'{node.id}' is no eatss.Param that stands before this array",
                f"put {node.id}: eatss.Param before it",
            )  # fmt: skip
        raise self._findings.refusal(
            Code.EXTENT, node, f"'{node.id}' is no parameter of the function",
            f"add a parameter: {node.id}: eatss.Param",
        )  # fmt: skip

    def _no_size(self, node: ast.expr) -> RefusedError:
        return self._findings.refusal(
            Code.EXTENT, node, f"'{ast.unparse(node)}' is no size of an array",
            "sizes are positive numbers, and sums and multiples of parameters: \"2 * n + 1\"",
        )  # fmt: skip


def check_name(name: str, node: ast.arg | ast.expr | ast.stmt, findings: Findings) -> None:
    """Refuse a name that a variable of C cannot have.

    Raises:
        RefusedError: it cannot.
    """
    if not c_name_is_free(name):
        raise findings.refusal(
            Code.NAME, node, f"C has no variable of the name '{name}'", "choose another name"
        )


def _unquoted(node: ast.expr) -> ast.expr:
    """Return the expression in a quoted annotation or extent, at the place of the quotes."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return node
    try:
        inner = ast.parse(node.value.strip(), mode="eval").body
    except SyntaxError:
        return node
    for one in ast.walk(inner):
        if isinstance(one, ast.expr):
            ast.copy_location(one, node)
    return inner


def _names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) for one in ast.walk(node))

"""Parameters of a Python function in, arguments and their C declarations out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from eatss.base.frozen import frozen
from eatss.frontend.python.annotations import ELEMENTS, PARAM
from eatss.frontend.python.c_text import Piece, joined
from eatss.frontend.python.local_variables import Argument
from eatss.frontend.python.names import Resolve, c_name_is_free
from eatss.frontend.python.text import Findings, RefusedError
from eatss.polyhedral.scops import ElementType

_TYPES = ", ".join(ELEMENTS)
_ANNOTATE = 'write n: eatss.Param, x: eatss.f64 or A: eatss.f64["n", "n"]'


@frozen
class Parameter:
    """An argument with its declaration in C."""

    argument: Argument
    declaration: Piece


def read_parameters(
    arguments: ast.arguments, resolve: Resolve, findings: Findings
) -> tuple[Parameter, ...]:
    """Return the parameters that are right, in order; what is wrong is recorded."""
    for one in (*arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            findings.add(
                "EATSS-Y005", one, f"'{one.arg}' is no plain parameter",
                "list all parameters by position",
            )  # fmt: skip
    for default in [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]:
        findings.add(
            "EATSS-Y005", default, "a default value", "leave it out: every argument is given"
        )
    plain = (*arguments.posonlyargs, *arguments.args)
    names = [one.arg for one in plain]
    found: list[Parameter] = []
    known: list[str] = []
    for one in plain:
        with suppress(RefusedError):
            argument, sizes = _argument(one, known, names, resolve, findings)
            piece = joined(f"{argument.element_type.value} ", argument.name, sizes)
            span = findings.text.span(one)
            found.append(Parameter(argument=argument, declaration=piece.at(span)))
            known += [one.arg] if argument.kind == "param" else []
    return tuple(found)


def _argument(
    node: ast.arg, known: list[str], names: list[str], resolve: Resolve, findings: Findings
) -> tuple[Argument, str]:
    """Return a parameter, and the sizes behind its name in C."""
    check_name(node.arg, node, findings)
    if node.annotation is None:
        findings.refuse("EATSS-Y004", node, f"parameter '{node.arg}' has no annotation", _ANNOTATE)
    annotation = _unquoted(node.annotation)
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    spelled = resolve(base) or f"eatss.{ast.unparse(base).rpartition('.')[2]}"
    kind = spelled.removeprefix("eatss.")
    if kind == PARAM and base is annotation:
        return Argument(name=node.arg, kind="param", element_type=ElementType.INT32), ""
    if kind not in ELEMENTS:
        findings.refuse(
            "EATSS-Y004", node.annotation,
            f"'{ast.unparse(node.annotation)}' is no type of a parameter",
            f"{_ANNOTATE}; the types are {_TYPES}",
        )  # fmt: skip
    element = ELEMENTS[kind]
    if not isinstance(annotation, ast.Subscript):
        return Argument(name=node.arg, kind="scalar", element_type=element), ""
    inside = annotation.slice
    read = [
        extent(one, known, names, findings)
        for one in (inside.elts if isinstance(inside, ast.Tuple) else [inside])
    ]
    extents = tuple(text for text, _ in read)
    argument = Argument(name=node.arg, kind="array", element_type=element, extents=extents)
    return argument, "".join(f"[{c_text}]" for _, c_text in read)


_SIGNS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2), ast.FloorDiv: ("/", 2),
}  # fmt: skip
"""Operators of sizes: in C, and how tightly they bind."""


def extent(
    node: ast.expr, known: Sequence[str], names: Sequence[str], findings: Findings
) -> tuple[str, str]:
    """Return a size of an array, an affine text over parameters, as Python and as C has it.

    Args:
        node: the size.
        known: the parameters that it may name.
        names: all parameters.
        findings: gets what is wrong.

    Raises:
        RefusedError: it is none.
    """
    inner = _unquoted(node)
    is_text = isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    is_small = isinstance(inner, ast.Constant) and type(inner.value) is int and inner.value < 1
    if (inner is node and is_text) or is_small or isinstance(inner, ast.UnaryOp):
        _refuse_size(inner, findings)

    def c_text(one: ast.expr, least: int = 0) -> str:
        match one:
            case ast.Constant(int(number)) if not isinstance(number, bool):
                return str(number)
            case ast.Name(name) if name in known:
                return name
            case ast.Name(name) if name in names:
                findings.refuse(
                    "EATSS-Y007", one, f"'{name}' is no eatss.Param that stands before this array",
                    f"put {name}: eatss.Param before it",
                )  # fmt: skip
            case ast.Name(name):
                findings.refuse(
                    "EATSS-Y007", one, f"'{name}' is no parameter of the function",
                    f"add a parameter: {name}: eatss.Param",
                )  # fmt: skip
            case ast.BinOp(left, operator, right) if type(operator) in _SIGNS:
                sign, level = _SIGNS[type(operator)]
                divisor = right.value if isinstance(right, ast.Constant) else None
                is_fine = isinstance(divisor, int) and divisor > 0 if sign == "/" else True
                if is_fine and not (sign == "*" and _names(left) and _names(right)):
                    text = f"{c_text(left, level)} {sign} {c_text(right, level + 1)}"
                    return f"({text})" if level < least else text
        return _refuse_size(one, findings)

    return ast.unparse(inner), c_text(inner)


def _refuse_size(node: ast.expr, findings: Findings) -> NoReturn:
    findings.refuse(
        "EATSS-Y007", node, f"'{ast.unparse(node)}' is no size of an array",
        "sizes are positive numbers, and sums and multiples of parameters: \"2 * n + 1\"",
    )  # fmt: skip


def check_name(name: str, node: ast.arg | ast.expr | ast.stmt, findings: Findings) -> None:
    """Refuse a name that a variable of C cannot have.

    Raises:
        RefusedError: it cannot.
    """
    if not c_name_is_free(name):
        findings.refuse(
            "EATSS-Y006", node, f"C has no variable of the name '{name}'", "choose another name"
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

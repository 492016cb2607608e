"""A Python function in, the text of the C function with the same loops out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress

from eatss.frozen import frozen
from eatss.python_source.annotations import Candidate, NumberType, Weak, one_type, type_name
from eatss.python_source.c_text import CLine, Piece, is_declared, joined, listed
from eatss.python_source.local_variables import (
    Argument,
    Local,
    Scope,
    assigned_name,
    assignments,
    declarations,
    reads_without_value,
)
from eatss.python_source.names import MACROS, Resolve
from eatss.python_source.parameters import Parameter, ParameterReader, check_name
from eatss.python_source.statements import StatementReader
from eatss.python_source.text import Code, Findings, PythonText, RefusedError
from eatss.scops import ElementType

_MOST_ROUNDS = 20


@frozen
class CFunction:
    """A function in C, line by line, and its arguments."""

    lines: tuple[CLine, ...]
    arguments: tuple[Argument, ...]

    @property
    def text(self) -> str:
        """The C."""
        return "".join(f"{line.piece.text}\n" for line in self.lines)


def c_function(node: ast.FunctionDef, text: PythonText, resolve: Resolve) -> CFunction:
    """Return a function in C.

    Args:
        node: the function.
        text: the file it stands in.
        resolve: what names mean there.

    Raises:
        InputError: with all findings, if something has no C of the same meaning.
    """
    findings = Findings(text)
    try:
        return _c_function(node, findings, resolve)
    except RecursionError:
        findings.add(Code.EXPRESSION, _head(node), "nested too deeply", "split the expressions")
    findings.raise_errors()
    raise AssertionError


def _c_function(node: ast.FunctionDef, findings: Findings, resolve: Resolve) -> CFunction:
    head = _head(node)
    with suppress(RefusedError):
        check_name(node.name, head, findings)
        if is_declared(node.name):
            raise findings.refusal(
                Code.NAME, head, f"C has something of the name '{node.name}' in its headers",
                "choose another name for the function",
            )  # fmt: skip
    if isinstance(node.returns, ast.expr) and ast.unparse(node.returns) != "None":
        findings.add(
            Code.FUNCTION, node.returns, "the function returns something",
            "assign results to elements of arrays",
        )  # fmt: skip
    parameters = ParameterReader(resolve, findings).read(node.args)
    given = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    names = [str(assigned_name(one)) for one in assignments(node.body)]
    own = tuple(dict.fromkeys(name for name in names if name not in given))
    scope = Scope(
        arguments={one.argument.name: one.argument for one in parameters},
        resolve=resolve,
        assigned=frozenset({*own, *given}),
        mixes=_mixes(node, parameters, resolve),
    )
    lines, macros = _body(node, scope, own, findings)
    findings.raise_errors()
    span = findings.text.span(head)

    def plain(text: str | Piece) -> CLine:
        return CLine(joined(text), span)

    return CFunction(
        lines=(
            plain("#include <math.h>"),
            plain("#include <stdlib.h>"),
            *(plain(MACROS[name]) for name in MACROS if name in macros),
            plain(""),
            plain(joined(f"void {node.name}(", listed([p.declaration for p in parameters]), ")")),
            plain("{"),
            plain("#pragma scop"),
            *lines,
            plain("#pragma endscop"),
            plain("}"),
        ),
        arguments=tuple(one.argument for one in parameters),
    )


def _head(node: ast.FunctionDef) -> ast.expr:
    """Return the name of a function as a node, for findings about all of it."""
    column = node.col_offset + len("def ")
    return ast.Name(
        node.name, ast.Load(), lineno=node.lineno, col_offset=column, end_lineno=node.lineno,
        end_col_offset=column + len(node.name.encode()),
    )  # fmt: skip


def _body(
    node: ast.FunctionDef, scope: Scope, own: Sequence[str], findings: Findings
) -> tuple[list[CLine], set[str]]:
    """Read the statements again and again, until the types of all locals are known."""
    for name in own:
        for place in reads_without_value(name, node.body):
            findings.add(
                Code.NO_VALUE, place, f"'{name}' may have no value here",
                "give it one before the loop or the condition",
            )  # fmt: skip
    findings.raise_errors()
    if not any(isinstance(one, ast.Assign | ast.AugAssign) for one in ast.walk(node)):
        findings.add(
            Code.FUNCTION, _head(node), "the function assigns nothing",
            "write loops that assign elements of arrays",
        )  # fmt: skip
    declared = declarations(own, node.body)
    for _ in range(_MOST_ROUNDS):
        quiet = Findings(findings.text)
        reader = StatementReader(scope, declared, quiet)
        scope.past.clear()
        reader.read(node.body)
        known = dict(scope.locals)
        for name, candidates in reader.seen.items():
            kind = one_type(candidates, mixes=scope.mixes) or candidates[0].type
            scope.locals[name] = Local(type=kind, weak=_weak(candidates, kind))
        if scope.locals == known:
            break
    scope.past.clear()
    scope.macros.clear()
    reader = StatementReader(scope, declared, findings)
    arrays = {name for name, local in scope.locals.items() if local.n_dims}
    for name in arrays:
        del scope.locals[name]
    reader.read(node.body)
    for name, candidates in reader.seen.items():
        if one_type(candidates, mixes=scope.mixes) is None:
            kinds = " and ".join(dict.fromkeys(type_name(one.type) for one in candidates))
            findings.add(
                Code.TYPES, reader.places[name][-1], f"local '{name}' is of types {kinds}",
                f"convert what it is assigned: {name} = numpy.float64(…)",
            )  # fmt: skip
    return reader.lines, scope.macros


def _weak(candidates: Sequence[Candidate], kind: NumberType) -> Weak | None:
    """Return the type of the literals among what a local is assigned, if it is not the local's.

    Sums of floating-point numbers begin with one, which has their type where anything is added: of
    those only an integer for a double counts, which is one beside an integer.
    """
    found = [one.weak or (one.type if one.free else None) for one in candidates]
    if kind in (Weak.FLOAT, ElementType.DOUBLE):
        return Weak.INT if Weak.INT in found else None
    if isinstance(kind, Weak) or kind.is_floating:
        return None
    return next((one for one in found if isinstance(one, Weak)), None)


def _mixes(node: ast.FunctionDef, parameters: Sequence[Parameter], resolve: Resolve) -> bool:
    """Tell whether there are floating-point numbers of 32 or 16 bits."""
    narrow = (ElementType.FLOAT, ElementType.HALF)
    return any(one.argument.element_type in narrow for one in parameters) or any(
        resolve(one) in ("numpy.float32", "numpy.float16")
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    )

"""A Python function in, the text of the C function with the same loops out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from eatss.frontend.python.annotations import DOUBLE, FLOAT, INT, Candidate, NumberType, one_type
from eatss.frontend.python.c_text import CLine, Piece, is_declared, joined, listed
from eatss.frontend.python.local_variables import (
    Argument,
    Local,
    assigned_name,
    assignments,
    declarations,
    reads_without_value,
)
from eatss.frontend.python.names import MACROS, Resolve
from eatss.frontend.python.parameters import Parameter, check_name, read_parameters
from eatss.frontend.python.statements import StatementReader
from eatss.frontend.python.text import Findings, PythonText, RefusedError
from eatss.polyhedral.scops import ElementType

_MOST_ROUNDS = 20


def c_function(
    node: ast.FunctionDef, text: PythonText, resolve: Resolve
) -> tuple[tuple[CLine, ...], tuple[Argument, ...]]:
    """Return a function in C, line by line, and its arguments.

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
        findings.add("EATSS-Y012", _head(node), "nested too deeply", "split the expressions")
    findings.raise_errors()
    raise AssertionError


def _c_function(
    node: ast.FunctionDef, findings: Findings, resolve: Resolve
) -> tuple[tuple[CLine, ...], tuple[Argument, ...]]:
    head = _head(node)
    with suppress(RefusedError):
        check_name(node.name, head, findings)
        if is_declared(node.name):
            findings.add(
                "EATSS-Y006", head, f"C has something of the name '{node.name}' in its headers",
                "choose another name for the function",
            )  # fmt: skip
    if isinstance(node.returns, ast.expr) and ast.unparse(node.returns) != "None":
        findings.add(
            "EATSS-Y005", node.returns, "the function returns something",
            "assign results to elements of arrays",
        )  # fmt: skip
    parameters = read_parameters(node.args, resolve, findings)
    read = _body(node, parameters, findings, resolve)
    findings.raise_errors()
    declared = listed([one.declaration for one in parameters])
    span = findings.text.span(head)
    before: tuple[str | Piece, ...] = (
        "#include <math.h>",
        "#include <stdlib.h>",
        *(text for name, text in MACROS.items() if name in read.macros),
        "",
        joined(f"void {node.name}(", declared, ")"),
        "{",
        "#pragma scop",
    )
    behind = ("#pragma endscop", "}")
    lines = (
        *(CLine(joined(text), span) for text in before),
        *read.lines,
        *(CLine(joined(text), span) for text in behind),
    )
    return lines, tuple(one.argument for one in parameters)


def _head(node: ast.FunctionDef) -> ast.expr:
    """Return the name of a function as a node, for findings about all of it."""
    column = node.col_offset + len("def ")
    return ast.Name(
        node.name, ast.Load(), lineno=node.lineno, col_offset=column, end_lineno=node.lineno,
        end_col_offset=column + len(node.name.encode()),
    )  # fmt: skip


def _body(
    node: ast.FunctionDef, parameters: Sequence[Parameter], findings: Findings, resolve: Resolve
) -> StatementReader:
    """Read the statements again and again, until the types of all locals are known."""
    given = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    assigned = dict.fromkeys(str(assigned_name(one)) for one in assignments(node.body))
    own = [name for name in assigned if name not in given]
    for name in own:
        for place in reads_without_value(name, node.body):
            findings.add(
                "EATSS-Y020", place, f"'{name}' may have no value here",
                "give it one before the loop or the condition",
            )  # fmt: skip
    findings.raise_errors()
    if not any(isinstance(one, ast.Assign | ast.AugAssign) for one in ast.walk(node)):
        findings.add(
            "EATSS-Y005", _head(node), "the function assigns nothing",
            "write loops that assign elements of arrays",
        )  # fmt: skip
    # floating-point numbers of 32 or 16 bits
    mixes = any(
        one.argument.element_type in (ElementType.FLOAT, ElementType.HALF) for one in parameters
    ) or any(
        resolve(one) in ("numpy.float32", "numpy.float16")
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    )
    known: dict[str, Local] = {}
    reader_of = partial(
        StatementReader,
        arguments={one.argument.name: one.argument for one in parameters},
        resolve=resolve,
        assigned=frozenset({*own, *given}),
        mixes=mixes,
        locals=known,
        refused=set(),
        declared=declarations(own, node.body),
    )
    for _ in range(_MOST_ROUNDS):
        reader = reader_of(findings=Findings(findings.text))
        reader.read(node.body)
        before = dict(known)
        for name, candidates in reader.seen.items():
            kind = one_type(candidates, mixes=mixes) or candidates[0].type
            known[name] = Local(type=kind, weak=_weak(candidates, kind))
        if known == before:
            break
    for name in [name for name, local in known.items() if local.n_dims]:
        del known[name]
    reader = reader_of(findings=findings)
    reader.read(node.body)
    for name, candidates in reader.seen.items():
        if one_type(candidates, mixes=mixes) is None:
            kinds = " and ".join(dict.fromkeys(str(one.type) for one in candidates))
            findings.add(
                "EATSS-Y019", reader.places[name][-1], f"local '{name}' is of types {kinds}",
                f"convert what it is assigned: {name} = numpy.float64(…)",
            )  # fmt: skip
    return reader


def _weak(candidates: Sequence[Candidate], kind: NumberType) -> NumberType | None:
    """Return the type of the literals among what a local is assigned, if it is not the local's.

    Sums of floating-point numbers begin with one, which has their type where anything is added: of
    those only an integer for a double counts, which is one beside an integer.
    """
    found = [one.weak or (one.type if one.free else None) for one in candidates]
    if kind in (FLOAT, DOUBLE):
        return INT if INT in found else None
    if kind.is_weak or kind.is_floating:
        return None
    return next((one for one in found if one and one.is_weak), None)

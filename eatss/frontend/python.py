"""Loops written in Python in, C with the same loops out.

A function with the decorator ``eatss.scop`` is parsed, never executed. Nothing else of eatss
sees Python source: the C goes the way of every C file, and what is said of it is said of the
Python.
"""

from __future__ import annotations

import ast
import inspect
import os
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, input_error
from eatss.base.frozen import frozen
from eatss.frontend.options import FrontendResult
from eatss.frontend.python_expressions import (
    CONVERT,
    FORMS,
    HEAD,
    Argument,
    Local,
    one_type,
    types_of,
)
from eatss.frontend.python_statements import StatementReader, assigned_name, declaring
from eatss.frontend.python_types import (
    MACROS,
    CLine,
    PythonText,
    Resolve,
    by_values,
    functions_of,
    python_span,
)
from eatss.frontend.source import Findings, RefusedError
from eatss.polyhedral.scop import Scop, Statement

if TYPE_CHECKING:
    from eatss.frontend.symbolic import SymbolicResult

# -- function ----------------------------------------------------------------------------------

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
    head, findings = _head(node), Findings(text)
    try:
        reader, declared = _read(node, head, text, findings, resolve)
    except RecursionError:
        raise input_error(
            FORMS, f"'{node.name}' is nested too deeply", hint="split the expressions"
        ) from None
    span = text.span(head)
    before = (
        "#include <math.h>",
        "#include <stdlib.h>",
        *(text for name, text in MACROS.items() if name in reader.macros),
        "",
        f"void {node.name}({declared})",
        "{",
        "#pragma scop",
    )
    lines = (
        *(CLine.of(line, span, reader.spans) for line in before),
        *reader.lines,
        *(CLine.of(line, span) for line in ("#pragma endscop", "}")),
    )
    return lines, tuple(reader.arguments.values())


def _read(
    node: ast.FunctionDef, head: ast.expr, text: PythonText, findings: Findings, resolve: Resolve
) -> tuple[StatementReader, str]:
    """Read a function; return its reader and the declarations of its parameters in C."""
    given = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    assigned = map(assigned_name, (one for one in ast.walk(node) if isinstance(one, ast.stmt)))
    own = [name for name in dict.fromkeys(assigned) if name is not None and name not in given]
    reader = StatementReader(
        text=text, findings=findings, resolve=resolve, assigned=frozenset({*own, *given})
    )
    with suppress(RefusedError):
        reader.check_name(node.name, head)
    if node.returns is not None and ast.unparse(node.returns) != "None":
        reader.note(node.returns, "the function returns something", _RESULTS, code=HEAD)
    declared = reader.parameters(node.args)
    for name in own:
        for place in declaring(name, node.body, reader.declaring):
            hint = "give it one before the loop or the condition"
            reader.note(place, f"'{name}' may have no value here", hint, code=HEAD)
    findings.raise_errors()
    if not any(isinstance(one, ast.Assign | ast.AugAssign) for one in ast.walk(node)):
        reader.note(head, "the function assigns nothing", _RESULTS, code=HEAD)
    known: dict[str, Local] = {}
    for _ in range(_MOST_ROUNDS):  # until the types of all locals are known
        rest = replace(
            reader, findings=Findings(text), locals=dict(known), lines=[], seen={}, past=set(),
        )  # fmt: skip
        rest.read(node.body)
        before = known
        known = {
            name: Local(type=one_type(values) or values[0].type)
            for name, seen in rest.seen.items()
            if (values := [value for value, _ in seen])
        }
        if known == before:
            break
    for name, seen in rest.seen.items():
        values = [value for value, _ in seen]
        if one_type(values) is None:
            rest.note(seen[-1][1], f"local '{name}' is of types {types_of(values)}", CONVERT)
    findings.raise_errors()
    rest.findings.raise_errors()
    return rest, declared


_RESULTS = "write loops that assign results to elements of arrays"


def _head(node: ast.FunctionDef) -> ast.expr:
    """Return the name of a function as a node, for findings about all of it."""
    column = node.col_offset + len("def ")
    return ast.Name(
        node.name, ast.Load(), lineno=node.lineno, col_offset=column, end_lineno=node.lineno,
        end_col_offset=column + len(node.name.encode()),
    )  # fmt: skip


# -- python scop -------------------------------------------------------------------------------


class CalledError(InputError, TypeError):
    """A ``PythonScop`` was called; its loops are parsed and never run."""


@frozen
class PythonScop:
    """Affine loops written in Python, and the C with the same loops.

    Attributes:
        name: Name of the function, in Python and in C.
        arguments: Its parameters in order.
        c_source: The C: one function with one region, one statement a line.
        text: The file it stands in.
        lines: The lines of ``c_source``, each with the Python it stands for.
        function: The function as it was before it was decorated, for plain Python; ``None``
            where a file was read. eatss never calls it.
    """

    name: str
    arguments: tuple[Argument, ...]
    c_source: str
    text: PythonText
    lines: tuple[CLine, ...]
    function: FunctionType | None = None

    def __call__(self, *arguments: object, **named: object) -> NoReturn:
        """Refuse to run: eatss reads the loops, and what is made of them runs on a GPU.

        Raises:
            CalledError: always.
        """
        raise CalledError(
            Diagnostic(
                code="EATSS-Y030",
                message=f"'{self.name}' is parsed and does not run by itself",
                hint=f"eatss.jit({self.name})(…) runs it on a GPU, {self.name}.function(…) "
                "as plain Python",
            )
        )

    def __repr__(self) -> str:
        return f"<PythonScop {self.name} of {self.text.file}>"

    @property
    def file(self) -> str:
        """The file that the loops stand in."""
        return self.text.file

    def span_of(self, c_span: SourceSpan) -> SourceSpan:
        """Return the Python that a stretch of ``c_source`` stands for."""
        return python_span(self.lines, c_span)


def scop(function: Callable[..., Any]) -> PythonScop:
    """Read affine loops written in Python; they are parsed and never executed.

    ``eatss.select``, ``eatss.codegen`` and all else that takes a C file take the result::

        @eatss.scop
        def scale(n: eatss.Param, alpha: eatss.f64, A: eatss.f64["n", "n"]):
            for i in range(n):
                for j in range(n):
                    A[i, j] = alpha * A[i, j]

    Args:
        function: A function with annotated parameters, whose file can be read.

    Raises:
        InputError: ``EATSS-Y0xx``, with all findings: the source is not to be had, or something in
            it has no C of the same meaning.
    """
    if not isinstance(function, FunctionType):
        raise input_error("EATSS-Y001", f"{function!r} is no function", hint="decorate a def")
    text = _text_of(function)
    tree = _parsed(text)
    first = function.__code__.co_firstlineno
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first in (start, node.lineno):
                return _scop_of(node, text, by_values(function), function)
    raise input_error(
        "EATSS-Y001",
        f"the source of '{function.__name__}' is no def",
        hint="write it as def, not as a lambda or async def",
    )


def read_python(path: str | os.PathLike[str], name: str | None = None) -> PythonScop:
    """Read a decorated function of a file; nothing of the file is imported or executed.

    Args:
        path: the file.
        name: the function; ``None`` for the only one with the decorator ``eatss.scop``.

    Raises:
        InputError: ``EATSS-Y0xx``: the file cannot be read, it has no such function, or something
            in it has no C of the same meaning.
    """
    file = str(Path(path))
    try:
        with tokenize.open(file) as opened:  # in the encoding that its first lines name
            lines = tuple(opened)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        hint = "check the path, and save it as UTF-8 or in an encoding that it names"
        raise input_error("EATSS-Y001", f"'{file}' cannot be read: {error}", hint=hint) from None
    text = PythonText(file=file, lines=lines)
    tree = _parsed(text)
    functions = {
        node.name: (node, resolve)
        for node, resolve in functions_of(tree)
        if any(_is_decorator(one, resolve) for one in node.decorator_list)
    }
    if name is None and len(functions) == 1:
        (name,) = functions
    if name not in functions:
        what = f"{len(functions) or 'no'} functions" if name is None else f"no function '{name}'"
        hint = f"write {file}:NAME with one of: {', '.join(functions)}"
        raise input_error(
            "EATSS-Y001",
            f"'{file}' has {what} with the decorator eatss.scop",
            hint=hint if functions else "write @eatss.scop before the def",
        )
    node, resolve = functions[name]
    return _scop_of(node, text, resolve, None)


def _scop_of(
    node: ast.FunctionDef, text: PythonText, resolve: Resolve, function: FunctionType | None
) -> PythonScop:
    lines, arguments = c_function(node, text, resolve)
    return PythonScop(
        name=node.name,
        arguments=arguments,
        c_source="".join(f"{line.text}\n" for line in lines),
        text=text,
        lines=lines,
        function=function,
    )


def _text_of(function: FunctionType) -> PythonText:
    try:
        lines, _ = inspect.findsource(function)
    except (OSError, TypeError):
        raise input_error(
            "EATSS-Y001",
            f"the source of '{function.__name__}' is not to be had",
            hint="put it into a file or a notebook: what exec or a console runs leaves no source",
        ) from None
    return PythonText(file=inspect.getsourcefile(function) or "<python>", lines=tuple(lines))


def _parsed(text: PythonText) -> ast.Module:
    try:
        return ast.parse("".join(text.lines), filename=text.file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        column = getattr(error, "offset", None) or 1
        span = SourceSpan.in_line(text.file, line, column)
        raise InputError(
            Diagnostic(
                code="EATSS-Y001",
                message=f"no valid Python: {getattr(error, 'msg', None) or error}",
                span=span,
                source_line=text.line_text(line),
                hint="see that python takes it",
            )
        ) from None


def _is_decorator(node: ast.expr, resolve: Resolve) -> bool:
    return resolve(node) == "eatss.scop" or (
        isinstance(node, ast.Attribute) and node.attr == "scop" and resolve(node) is None
    )


# -- places ------------------------------------------------------------------------------------
# What the front end says of the C, said of the Python it was made from.


_HINTS = {
    "EATSS-F012": "use sums of counters and parameters with constant factors; // and % by "
    "constants, min, max and a if c else b are fine, and a size is a parameter: m: eatss.Param",
}
"""Hints that are otherwise for Python than for C."""

C_FILE = "<source>"
"""What C text is called in spans of the front end."""


def in_python(result: FrontendResult, source: PythonScop) -> FrontendResult:
    """Return regions and warnings with places in Python."""
    return FrontendResult(
        scops=tuple(region_in_python(scop, source) for scop in result.scops),
        warnings=tuple(finding_in_python(warning, source) for warning in result.warnings),
    )


def symbolic_in_python(
    result: SymbolicResult, numeric: FrontendResult, source: PythonScop
) -> SymbolicResult:
    """Return regions for any size with places in Python.

    Args:
        result: the regions as they were read.
        numeric: those for the numbers of the source, in Python; a region that is the same for any
            size stays the same object.
        source: the Python.
    """
    same = {id(a): b for a, b in zip(result.numeric.scops, numeric.scops, strict=True)}
    return replace(
        result,
        scops=tuple(same.get(id(scop)) or region_in_python(scop, source) for scop in result.scops),
        numeric=numeric,
    )


def region_in_python(scop: Scop, source: PythonScop) -> Scop:
    """Return a region whose spans, and those of its statements, are places in Python."""
    return replace(
        scop,
        span=source.span_of(scop.span),
        statements=tuple(_statement(statement, source) for statement in scop.statements),
    )


def finding_in_python(finding: Diagnostic, source: PythonScop) -> Diagnostic:
    """Return a finding that points at Python; one about a header or nothing stays as it is."""
    if finding.span is None or finding.span.file != C_FILE:
        return finding
    span = source.span_of(finding.span)
    hint = _HINTS.get(finding.code, finding.hint)
    return replace(finding, span=span, source_line=source.text.line_text(span.line), hint=hint)


@contextmanager
def findings_in_python(source: PythonScop) -> Iterator[None]:
    """Let errors about the C point at the Python.

    Raises:
        InputError: where one is raised inside.
    """
    try:
        yield
    except InputError as error:
        raise InputError(*(finding_in_python(one, source) for one in error.diagnostics)) from None


def _statement(statement: Statement, source: PythonScop) -> Statement:
    return replace(
        statement,
        span=source.span_of(statement.span),
        written_in=PurePath(source.file).name,
        accesses=tuple(
            replace(access, span=source.span_of(access.span)) for access in statement.accesses
        ),
    )

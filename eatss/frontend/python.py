"""Loops written in Python in, C with the same loops out.

A function with the decorator ``eatss.scop`` is parsed, never executed. Nothing else of eatss
sees Python source: the C goes the way of every C file, and what is said of it is said of the
Python.
"""

from __future__ import annotations

import ast
import inspect
import tokenize
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from types import FunctionType
from typing import Any, TypeAlias

from eatss.base.diagnostics import InputError, SourceSpan, input_error
from eatss.base.files import StrPath
from eatss.base.frozen import frozen
from eatss.frontend.options import FrontendOptions, FrontendResult
from eatss.frontend.python_reader import Argument, FunctionReader, one_type, parameters_of, types_of
from eatss.frontend.python_types import (
    Mark,
    NumberType,
    Resolve,
    by_imports,
    by_values,
    marks_of,
    unmarked,
)
from eatss.frontend.source import Findings, SourceText

# -- function ----------------------------------------------------------------------------------

_MOST_ROUNDS = 20


def _read(
    node: ast.FunctionDef, text: SourceText, resolve: Resolve, function: FunctionType | None
) -> PythonScop:
    """Read a function, until the types of all locals are known.

    Raises:
        InputError: with all findings, if something has no C of the same meaning.
    """
    types: dict[str, NumberType] = {}
    for _ in range(_MOST_ROUNDS):
        findings = Findings(text)
        reader = FunctionReader(source=text, resolve=resolve, types=types, findings=findings)
        try:
            c_text = reader.function(node)
        except RecursionError:
            reader.note("nested", node, text=node.name)
        before, types = types, {}
        for name, seen in reader.seen.items():
            values = [value for value, _ in seen]
            kind = one_type(values)
            types[name] = kind or values[0].type
            if kind is None:
                why = f"local '{name}' is of types {types_of(values)}"
                reader.note("types", seen[-1][1], why=why)
        if types == before:
            break
    findings.raise_errors()
    return PythonScop(
        name=node.name,
        arguments=tuple(reader.declared[one.arg] for one in parameters_of(node)),
        c_source=unmarked(c_text),
        text=text,
        marks=marks_of(c_text, reader.spans),
        function=function,
    )


# -- python scop -------------------------------------------------------------------------------


@frozen
class PythonScop:
    """Affine loops written in Python, and the C with the same loops.

    Attributes:
        name: Name of the function, in Python and in C.
        arguments: Its parameters in order.
        c_source: The C: one function with one region, one statement a line.
        text: The file it stands in.
        marks: Stretches of ``c_source``, and the Python that each stands for; the last is all.
        function: The function as it was before it was decorated, for plain Python; ``None``
            where a file was read. eatss never calls it.
    """

    name: str
    arguments: tuple[Argument, ...]
    c_source: str
    text: SourceText
    marks: tuple[Mark, ...]
    function: FunctionType | None = None

    def __repr__(self) -> str:
        return f"<PythonScop {self.name} of {self.text.file}>"

    @property
    def file(self) -> str:
        """The file that the loops stand in."""
        return self.text.file

    @property
    def line(self) -> int:
        """The line of the file in which the function begins."""
        return self.marks[-1][2].line

    def read(self, options: FrontendOptions) -> FrontendResult:
        """Read the C; regions, statements and findings have places in Python.

        Raises:
            InputError: with all findings, if it is refused.
        """
        from eatss.frontend.parse import parse_text  # noqa: PLC0415 - it loads isl

        name = PurePath(self.file).name
        data = self.c_source.encode()
        return parse_text(
            _InPython.of("<source>", data, written_in=name, python=self.text, marks=self.marks),
            options,
        )


SourceLike: TypeAlias = StrPath | PythonScop
"""A file, a kernel of eatss (``"@gemm"``), C, or loops in Python."""


@frozen
class _InPython(SourceText):
    """C text whose places are those of the Python that it was made from."""

    python: SourceText
    marks: tuple[Mark, ...]

    def span(self, start: int, end: int) -> SourceSpan:
        """Return the Python that bytes ``[start, end)`` stand for: the least mark around them."""
        around = [mark for mark in self.marks if mark[0] <= start and end <= mark[1]]
        return min(around, key=lambda mark: mark[1] - mark[0], default=self.marks[-1])[2]

    def line_text(self, span: SourceSpan) -> str | None:
        """Return the line of Python in which a span begins."""
        return self.python.line_text(span)


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
                return _read(node, text, by_values(function), function)
    raise input_error(
        "EATSS-Y001",
        f"the source of '{function.__name__}' is no def",
        hint="write it as def, not as a lambda or async def",
    )


def read_python(path: StrPath, name: str | None = None) -> PythonScop:
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
    text = _text(file, lines)
    tree = _parsed(text)
    resolve = by_imports(tree)
    functions = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(_is_decorator(one, resolve) for one in node.decorator_list)
    }
    found = [one for one in functions if name in (None, one)]
    if len(found) != 1:
        what = "functions" if name is None else f"function '{name}'"
        hint = f"write {file}:NAME with one of: {', '.join(functions)}"
        raise input_error(
            "EATSS-Y001",
            f"'{file}' has {len(found) or 'no'} {what} with the decorator eatss.scop",
            hint=hint if functions else "write @eatss.scop before the def",
        )
    return _read(functions[found[0]], text, resolve, None)


def _text(file: str, lines: Sequence[str]) -> SourceText:
    return SourceText.of(file, "".join(lines).encode("utf-8", "surrogatepass"))


def _text_of(function: FunctionType) -> SourceText:
    try:
        lines, _ = inspect.findsource(function)
    except (OSError, TypeError):
        raise input_error(
            "EATSS-Y001",
            f"the source of '{function.__name__}' is not to be had",
            hint="put it into a file or a notebook: what exec or a console runs leaves no source",
        ) from None
    return _text(inspect.getsourcefile(function) or "<python>", lines)


def _parsed(text: SourceText) -> ast.Module:
    try:
        return ast.parse(text.data.decode("utf-8", "surrogatepass"), filename=text.file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
        span = SourceSpan.in_line(text.file, line or 1, column or 1)
        findings, why = Findings(text), getattr(error, "msg", None) or error
        findings.add("no_python", span, why=why)
        raise InputError(*findings.errors) from None


def _is_decorator(node: ast.expr, resolve: Resolve) -> bool:
    found = resolve(node)
    return found is scop or (
        found is None and isinstance(node, ast.Attribute) and node.attr == "scop"
    )

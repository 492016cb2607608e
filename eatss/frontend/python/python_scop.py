"""The decorator ``eatss.scop`` and what it makes of a function; files of Python, only read."""

from __future__ import annotations

import ast
import inspect
import os
import tokenize
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

from eatss.base.diagnostics import Diagnostic, InputError, SourceSpan, input_error
from eatss.base.frozen import frozen
from eatss.frontend.python.c_text import CLine, python_span
from eatss.frontend.python.function import c_function
from eatss.frontend.python.local_variables import Argument
from eatss.frontend.python.names import Resolve, by_values, functions_of
from eatss.frontend.python.text import PythonText


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
        reason = "it is neither UTF-8 nor in an encoding that it names"
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
        hint = "check the path" if isinstance(error, OSError) else "save it as UTF-8"
        raise input_error("EATSS-Y001", f"'{file}' cannot be read: {reason}", hint=hint) from None
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
        names = ", ".join(functions)
        raise input_error(
            "EATSS-Y003",
            f"'{file}' has {len(functions) or 'no'} functions with the decorator eatss.scop"
            if name is None
            else f"'{file}' has no function '{name}' with the decorator eatss.scop",
            hint=f"write {file}:NAME with one of: {names}"
            if functions
            else "write @eatss.scop before the def",
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
        c_source="".join(f"{line.piece.text}\n" for line in lines),
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
                code="EATSS-Y002",
                message=f"no valid Python: {getattr(error, 'msg', None) or error}",
                span=span,
                source_line=text.line(line),
                hint="see that python takes it",
            )
        ) from None


def _is_decorator(node: ast.expr, resolve: Resolve) -> bool:
    return resolve(node) == "eatss.scop" or (
        isinstance(node, ast.Attribute) and node.attr == "scop" and resolve(node) is None
    )

"""Types and names of Python functions, their text, and C text that knows its Python."""

from __future__ import annotations

import ast
import builtins
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import fixed
from eatss.frontend.source import SourceText
from eatss.polyhedral.expression import ElementType

# -- types -------------------------------------------------------------------------------------
# Types of numbers by the rules of Python and NumPy, and what C makes of the same. Python's own
# numbers are weak (NEP 50): beside a NumPy number they take its type.

FLOATS = (ElementType.HALF, ElementType.FLOAT, ElementType.DOUBLE)
ELEMENTS: dict[str, ElementType] = {
    f"{'f' if one.is_floating else 'u' if one.is_unsigned else 'i'}{8 * one.size_bytes}": one
    for one in ElementType
    if one is not ElementType.BOOL
}
"""Element types by their name in ``eatss``."""

SHORT_NAMES = {element: name for name, element in ELEMENTS.items()}
_COMPUTED = {ElementType.INT32, ElementType.INT64, *FLOATS}
"""Types of operands; numbers of others are stored, and converted."""


class TypeClashError(Exception):
    """Types of numbers do not go together, or a number does not fit its type; says why."""


@fixed
class NumberType:
    """A type of numbers: what it is in C, and whether it is one of Python's own."""

    element: ElementType
    is_weak: bool = False

    @property
    def is_floating(self) -> bool:
        """Whether its numbers are floating-point numbers."""
        return self.element.is_floating

    def __str__(self) -> str:
        if self.is_weak:
            return "float" if self.is_floating else "int"
        return SHORT_NAMES[self.element]


INT, FLOAT = NumberType(ElementType.INT32, True), NumberType(ElementType.DOUBLE, True)
"""Types of Python's own numbers."""

DOUBLE = NumberType(ElementType.DOUBLE)


def common_type(*types: NumberType) -> NumberType:
    """Return the type in which NumPy does arithmetic with numbers of some types.

    Raises:
        TypeClashError: some are only stored, and converted.
    """
    for one in types:
        if one.element not in _COMPUTED:
            raise TypeClashError(f"arithmetic with {one}, which is a type of what is stored")
    firm = [one for one in types if not one.is_weak]
    if not firm:
        return FLOAT if FLOAT in types else INT
    widest = max(firm, key=lambda one: one.element.size_bytes)
    is_mixed = len({one.is_floating for one in firm}) > 1
    is_lifted = FLOAT in types and not widest.is_floating
    return DOUBLE if is_mixed or is_lifted else widest


@fixed
class ElementAnnotation:
    """A scalar of an element type; subscripted with extents, an array of them.

    ``name`` is its name in ``eatss``, ``type`` what it is in C. ``Param`` is an integer that sizes,
    bounds and subscripts may name.
    """

    name: str
    type: ElementType

    def __getitem__(self, extents: str | int | tuple[str | int, ...]) -> ElementAnnotation:
        """Return it as the annotation of an array with these extents, which is only parsed."""
        return self

    def __repr__(self) -> str:
        return f"eatss.{self.name}"


Param = ElementAnnotation("Param", ElementType.INT32)
f16, f32, f64, i8, u8, i16, u16, i32, u32, i64, u64 = (
    ElementAnnotation(name, element) for name, element in ELEMENTS.items()
)

# -- text --------------------------------------------------------------------------------------
# C text in the making has a character before and one behind what stands for a stretch of Python:
# the first is ``_FIRST`` and the number of the span, in a plane of Unicode that no text uses.

Node = ast.stmt | ast.expr | ast.arg
Mark = tuple[int, int, SourceSpan]
"""Characters from one to another, and the Python that they stand for."""

_FIRST, _END = 0xF0000, "\x03"
_MARKS = re.compile(f"([{chr(_FIRST)}-{chr(0x10FFFF)}{_END}])")


def span_of(text: SourceText, node: Node) -> SourceSpan:
    """Return where a node stands; ``ast`` counts columns in bytes."""
    first, last = (text.line_starts[n - 1] for n in (node.lineno, node.end_lineno or node.lineno))
    return text.span(first + node.col_offset, last + (node.end_col_offset or node.col_offset + 1))


def marked(text: str, number: int) -> str:
    """Return C text that stands for the Python at a span of this number."""
    return f"{chr(_FIRST + number)}{text}{_END}"


def unmarked(text: str) -> str:
    """Return C text without the characters around what stands for Python."""
    return _MARKS.sub("", text)


def marks_of(text: str, spans: Sequence[SourceSpan]) -> tuple[Mark, ...]:
    """Return what stretches of the text without marks stand for, inner ones first."""
    found = []
    begun: list[tuple[int, SourceSpan]] = []
    at = 0
    for part in _MARKS.split(text):
        if part == _END:
            start, span = begun.pop()
            found.append((start, at, span))
        elif part and ord(part[0]) >= _FIRST:
            begun.append((at, spans[ord(part) - _FIRST]))
        else:
            at += len(part)
    return tuple(found)


# -- names -------------------------------------------------------------------------------------
# Names that C cannot have, and what names of Python mean: by imports, or by value.

_MODULES = ("math", "numpy", "eatss")
"""Of whose names it is known what they mean."""

MACROS = {
    "min": "#define min(a, b) ((b) < (a) ? (b) : (a))",
    "max": "#define max(a, b) ((b) > (a) ? (b) : (a))",
    "floordiv": "#define floordiv(a, b) ((int) floor((double) (a) / (b)))",
    "floormod": "#define floormod(a, b) ((a) - (b) * (int) floor((double) (a) / (b)))",
    "floor_quotient": "#define floor_quotient(a, b) ((a) / (b) - ((a) % (b) < 0))",
    "floor_remainder": "#define floor_remainder(a, b) ((a) % (b) + (b) * ((a) % (b) < 0))",
}  # fmt: skip
"""The macros of the C text, each written only where it is used; divisors are positive."""


def _functions(
    module: ModuleType, count: int, same: str, **others: str
) -> dict[tuple[object, int], str]:
    names = {name: name for name in same.split()} | others
    return {(getattr(module, name), count): c for name, c in names.items()}


FUNCTIONS = {
    **_functions(
        math,
        1,
        """
        acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 fabs lgamma log log10
        log1p log2 sin sinh sqrt tan tanh
        """,
        gamma="tgamma",
    ),
    **_functions(math, 2, "atan2 copysign fmod hypot pow remainder"),
    **_functions(
        np,
        1,
        """
        cbrt ceil cos cosh exp exp2 expm1 fabs floor log log10 log1p log2 rint sin sinh sqrt tan
        tanh trunc
        """,
        **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    ),
    **_functions(np, 2, "copysign fmax fmin fmod hypot", arctan2="atan2", power="pow"),
}
"""The function of C by one of Python and the number of its arguments."""

NUMPY_TYPES: dict[object, ElementType] = {
    getattr(np, {"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:]): element
    for name, element in ELEMENTS.items()
}
"""Types of NumPy that are called to convert a number."""

_KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof main abs labs
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)
_RESERVED = re.compile("__|_[A-Z]|EATSS|eatss")

Resolve = Callable[[ast.expr], Any]
"""Takes a name or an attribute to what it means: ``np.sqrt`` to that function."""


def c_name_is_free(name: str) -> bool:
    """Tell whether a name of Python can be that of a variable in the C text."""
    taken = name in _KEYWORDS or name in MACROS or name.removesuffix("f") in FUNCTIONS.values()
    return not (taken or _RESERVED.match(name)) and name.isascii()


def by_imports(tree: ast.Module) -> Resolve:
    """Return what names in a file mean.

    A name means what it is imported as, or a builtin, unless something else in the file, wherever
    it stands, gives it a value.
    """
    meanings: dict[str, list[object]] = {}
    for node in ast.walk(tree):
        for name, meaning in _bound(node):
            meanings.setdefault(name, []).append(meaning)
    known = {} if "*" in meanings else {**vars(builtins)}
    for name, (first, *others) in meanings.items():
        known[name] = first if all(one is first for one in others) else None
    return _resolver(known)


def _bound(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Yield the names that a node gives a meaning, with what that is if it is known.

    ``*`` stands for names that are not known.
    """
    match node:
        case ast.Import(names):
            for alias in names:
                first = alias.name.partition(".")[0]
                yield alias.asname or first, _module(alias.name if alias.asname else first)
        case ast.ImportFrom(module, names, level):
            for alias in names:
                found = None if level else getattr(_module(module), alias.name, None)
                yield alias.asname or alias.name, found
        case ast.Name(name, ast.Store() | ast.Del()):
            yield name, None
        case ast.alias() | ast.keyword():
            pass
        case _:  # functions, classes, arguments, handlers, patterns
            bound = [getattr(node, field, None) for field in ("name", "rest", "arg")]
            yield from ((name, None) for name in bound if isinstance(name, str))


def _module(name: str | None) -> ModuleType | None:
    return import_module(name) if name in _MODULES else None


def by_values(function: FunctionType) -> Resolve:
    """Return what names in a function mean by the values they have where it is defined."""
    values = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            values[name] = cell.cell_contents
    return _resolver(values)


def _resolver(known: Mapping[str, object]) -> Resolve:
    def resolve(node: ast.expr) -> object:
        match node:
            case ast.Name(name):
                found = known.get(name)
            case ast.Attribute(inner, name):
                base = resolve(inner)
                is_known = isinstance(base, ModuleType) and base.__name__ in _MODULES
                found = getattr(base, name, None) if is_known else None
            case _:
                found = None
        return found if isinstance(found, Hashable) else None

    return resolve

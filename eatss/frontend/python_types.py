"""Types and names of Python functions, their text, and C text that knows its Python."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.polyhedral.expression import ElementType

# -- types -------------------------------------------------------------------------------------
# Types of numbers by the rules of Python and NumPy, and what C makes of the same. Python's own
# numbers are weak (NEP 50): beside a NumPy number they take its type.

FLOATS = (ElementType.HALF, ElementType.FLOAT, ElementType.DOUBLE)
ELEMENTS = {
    "f16": ElementType.HALF,
    "f32": ElementType.FLOAT,
    "f64": ElementType.DOUBLE,
    "i8": ElementType.INT8,
    "i16": ElementType.INT16,
    "i32": ElementType.INT32,
    "i64": ElementType.INT64,
    "u8": ElementType.UINT8,
    "u16": ElementType.UINT16,
    "u32": ElementType.UINT32,
    "u64": ElementType.UINT64,
}
"""Element types by their name in ``eatss``."""

SHORT_NAMES = {element: name for name, element in ELEMENTS.items()}
_COMPUTED = {ElementType.INT32, ElementType.INT64, *FLOATS}
"""Types of operands; numbers of others are stored, and converted."""


class TypeClashError(Exception):
    """Types of numbers do not go together, or a number does not fit its type; says why."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ArrayAnnotation:
    """An array: element type and extents, as texts over parameters or as numbers."""

    element: ElementAnnotation
    extents: tuple[str | int, ...]

    def __repr__(self) -> str:
        return f"eatss.{self.element.name}[{', '.join(map(repr, self.extents))}]"


@dataclass(frozen=True, slots=True)
class ElementAnnotation:
    """A scalar of an element type; subscripted with extents, an array of them.

    ``name`` is its name in ``eatss``, ``type`` what it is in C.
    """

    name: str
    type: ElementType

    def __getitem__(self, extents: str | int | tuple[str | int, ...]) -> ArrayAnnotation:
        """Return the annotation of an array with these extents, outermost first."""
        return ArrayAnnotation(self, extents if isinstance(extents, tuple) else (extents,))

    def __repr__(self) -> str:
        return f"eatss.{self.name}"


@dataclass(frozen=True, slots=True)
class ParamAnnotation:
    """An integer that sizes, bounds and subscripts may name; ``int`` in C."""

    def __repr__(self) -> str:
        return "eatss.Param"


Param = ParamAnnotation()
f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 = (
    ElementAnnotation(name, element) for name, element in ELEMENTS.items()
)

# -- text --------------------------------------------------------------------------------------
# C text in the making has a character before and one behind what stands for a stretch of Python:
# the first is ``_FIRST`` and the number of the span, in a plane of Unicode that no text uses.

Node = ast.stmt | ast.expr | ast.arg

_FIRST, _END = 0xF0000, "\x03"
_MARKS = re.compile(f"[{chr(_FIRST)}-{chr(0x10FFFF)}{_END}]")


@frozen
class PythonText:
    """A file of Python, or what stands for one where a cell or a console has no file."""

    file: str
    lines: tuple[str, ...]

    def span(self, node: Node) -> SourceSpan:
        """Return where a node stands, columns in characters."""
        line, end_line = node.lineno, node.end_lineno or node.lineno
        end = node.end_col_offset or node.col_offset + 1
        return SourceSpan(
            file=self.file,
            line=line,
            column=self._column(line, node.col_offset),
            end_line=end_line,
            end_column=self._column(end_line, end),
        )

    def line_text(self, line: int) -> str:
        """Return the text of a line, counted from 1; nothing where there is none."""
        return self.lines[line - 1].rstrip("\r\n") if 0 < line <= len(self.lines) else ""

    def _column(self, line: int, offset: int) -> int:
        """Return the column of an offset in UTF-8 bytes, which is what ``ast`` counts in."""
        return len(self.line_text(line).encode("utf-8")[:offset].decode("utf-8", "replace")) + 1


def marked(text: str, span: SourceSpan, spans: list[SourceSpan]) -> str:
    """Return C text that stands for a stretch of Python, which is added to ``spans``."""
    spans.append(span)
    return f"{chr(_FIRST + len(spans) - 1)}{text}{_END}"


def unmarked(text: str) -> str:
    """Return C text without the characters around what stands for Python."""
    return _MARKS.sub("", text)


@dataclass(frozen=True, slots=True)
class CLine:
    """A line of C; ``span`` is the Python it stands for where no mark says it better.

    Characters ``start`` to ``end`` of a mark ``(start, end, span)`` stand for its span.
    """

    text: str
    span: SourceSpan
    marks: tuple[tuple[int, int, SourceSpan], ...] = ()

    @classmethod
    def of(cls, text: str, span: SourceSpan, spans: Sequence[SourceSpan] = ()) -> CLine:
        """Build from a text with marks of ``spans``."""
        marks: list[tuple[int, int, SourceSpan]] = []
        begun: list[tuple[int, int]] = []
        at = 0
        for character in text:
            if character == _END:
                start, number = begun.pop()
                marks.append((start, at, spans[number]))
            elif ord(character) >= _FIRST:
                begun.append((at, ord(character) - _FIRST))
            else:
                at += 1
        return cls(unmarked(text), span, tuple(marks))


def python_span(lines: tuple[CLine, ...], span: SourceSpan) -> SourceSpan:
    """Return the Python that a span of C stands for: the least mark around it, or its lines."""
    first, last = (lines[min(line, len(lines)) - 1] for line in (span.line, span.end_line))
    if first is last:
        start, end = span.column - 1, span.end_column - 1
        around = [mark for mark in first.marks if mark[0] <= start and end <= mark[1]]
        return min(around, key=lambda mark: mark[1] - mark[0])[2] if around else first.span
    return replace(first.span, end_line=last.span.end_line, end_column=last.span.end_column)


# -- names -------------------------------------------------------------------------------------
# Names that C cannot have, and what names of Python mean: by imports, or by value.

_BUILTIN = ("abs", "float", "int", "max", "min", "range")
MACROS = {
    "min": "#define min(a, b) ((b) < (a) ? (b) : (a))",
    "max": "#define max(a, b) ((b) > (a) ? (b) : (a))",
    "floordiv": "#define floordiv(a, b) ((int) floor((double) (a) / (b)))",
    "floormod": "#define floormod(a, b) ((a) - (b) * (int) floor((double) (a) / (b)))",
    "floor_quotient": "#define floor_quotient(a, b) ((a) / (b) - ((a) % (b) < 0))",
    "floor_remainder": "#define floor_remainder(a, b) ((a) % (b) + (b) * ((a) % (b) < 0))",
}  # fmt: skip
"""The macros of the C text, each written only where it is used; divisors are positive."""


def _same(names: str) -> dict[str, str]:
    return {name: name for name in names.split()}


MATH = {
    **_same(
        """
        acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 fabs lgamma log log10
        log1p log2 sin sinh sqrt tan tanh
        """
    ),
    "gamma": "tgamma",
}
"""Functions of ``math`` with one argument, and their names in C."""

MATH_OF_TWO = _same("atan2 copysign fmod hypot pow remainder")
NUMPY = {
    **_same(
        """
        cbrt ceil cos cosh exp exp2 expm1 fabs floor log log10 log1p log2 rint sin sinh sqrt tan
        tanh trunc
        """
    ),
    **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **dict.fromkeys(("abs", "absolute"), "fabs"),
}
NUMPY_OF_TWO = {**_same("copysign fmax fmin fmod hypot"), "arctan2": "atan2", "power": "pow"}
NUMPY_TYPES = {
    f"{kind}{bits}": f"{kind[0]}{bits}"
    for kind, widths in (
        ("float", (16, 32, 64)),
        ("int", (8, 16, 32, 64)),
        ("uint", (8, 16, 32, 64)),
    )
    for bits in widths
}
"""Types of NumPy that are called to convert a number, by their name in ``eatss``."""

_KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof main abs labs
    """.split()  # noqa: SIM905 - words are easier to read than quotes
)
_RESERVED = re.compile("__|_[A-Z]|EATSS|eatss")
_C_FUNCTIONS = frozenset(
    {*MATH.values(), *MATH_OF_TWO.values(), *NUMPY.values(), *NUMPY_OF_TWO.values()}
)

Resolve = Callable[[ast.expr], str | None]
"""Takes a name or an attribute to the full name of what it means: ``np.sqrt`` to ``numpy.sqrt``."""


def c_name_is_free(name: str) -> bool:
    """Tell whether a name of Python can be that of a variable in the C text."""
    taken = name in _KEYWORDS or name in MACROS or name.removesuffix("f") in _C_FUNCTIONS
    return not (taken or _RESERVED.match(name)) and name.isascii()


def functions_of(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, Resolve]]:
    """Yield the functions of a file, each with what names mean around it.

    A name means what it is imported as, or a builtin, unless something else in the file, wherever
    it stands, gives it a value.
    """
    meanings: dict[str, set[str | None]] = {}
    for node in ast.walk(tree):
        for name, full in _bound(node):
            meanings.setdefault(name, set()).add(full)
    known = {} if "*" in meanings else {name: f"builtins.{name}" for name in _BUILTIN}
    for name, found in meanings.items():
        known.pop(name, None)
        (full, *others) = found
        if full is not None and not others:
            known[name] = full
    resolve = _resolver(known)
    yield from ((one, resolve) for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))


def _bound(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the names that a node gives a meaning, with the full name where it is known.

    ``*`` stands for names that are not known.
    """
    match node:
        case ast.Import(names):
            for alias in names:
                first = alias.name.partition(".")[0]
                yield alias.asname or first, alias.name if alias.asname else first
        case ast.ImportFrom(module, names, level):
            for alias in names:
                known = None if level or module is None else f"{module}.{alias.name}"
                yield alias.asname or alias.name, known
        case (
            ast.Name(name, ast.Store() | ast.Del())
            | ast.arg(name)
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name, None
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name, None


def by_values(function: FunctionType) -> Resolve:
    """Return what names in a function mean by the values they have where it is defined."""
    values: dict[str, object] = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            values.pop(name, None)
    names = {name: full for name, value in values.items() if (full := _full_name(value))}
    return _resolver(names)


def _full_name(value: object) -> str | None:
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, ParamAnnotation):
        return "eatss.Param"
    if isinstance(value, ElementAnnotation):
        return f"eatss.{value.name}"
    if any(value is getattr(builtins, name) for name in _BUILTIN):
        return f"builtins.{getattr(value, '__name__', '')}"
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if type(value).__name__ == "ufunc":  # it has no module before NumPy 2.2
        module = "numpy"
    if module in ("math", "numpy") and isinstance(name, str):
        return f"{module}.{name}"
    return None


def _resolver(known: Mapping[str, str]) -> Resolve:
    def resolve(node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Attribute):
            base = resolve(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    return resolve

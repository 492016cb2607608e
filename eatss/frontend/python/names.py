"""What names mean: modules and functions by imports or by value, and names that C cannot have."""

from __future__ import annotations

import ast
import builtins
import math
import re
from collections.abc import Callable, Iterator, Mapping, Set
from types import FunctionType, ModuleType

from eatss.frontend.python.c_text import is_macro

_BUILTIN = ("abs", "float", "int", "max", "min", "range")
MACROS = {
    "min": "#define min(a, b) ((b) < (a) ? (b) : (a))",
    "max": "#define max(a, b) ((b) > (a) ? (b) : (a))",
    "floordiv": "#define floordiv(a, b) ((int) floor((double) (a) / (b)))",
    "floormod": "#define floormod(a, b) ((a) - (b) * (int) floor((double) (a) / (b)))",
    "floor_quotient": "#define floor_quotient(a, b) ((a) / (b) - ((a) % (b) < 0))",
    "floor_remainder": "#define floor_remainder(a, b) ((a) % (b) + (b) * ((a) % (b) < 0))",
    "floor_quotient_negative":
        "#define floor_quotient_negative(a, b) ((a) / (b) - ((a) % (b) > 0))",
    "floor_remainder_negative":
        "#define floor_remainder_negative(a, b) ((a) % (b) + (b) * ((a) % (b) > 0))",
}  # fmt: skip
"""The macros of the C text, each written only where it is used.

Divisors are positive; those of the last two are less than -1.
"""


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

_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_NAMED = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs,
    ast.MatchStar,
)  # fmt: skip

Resolve = Callable[[ast.expr], str | None]
"""Takes a name or an attribute to the full name of what it means: ``np.sqrt`` to ``numpy.sqrt``."""


def c_name_is_free(name: str) -> bool:
    """Tell whether a name of Python can be that of a variable in the C text."""
    taken = name in _KEYWORDS or name in MACROS or name.removesuffix("f") in _C_FUNCTIONS
    taken = taken or is_macro(name)
    return name.isascii() and not taken and not _RESERVED.match(name)


def functions_of(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, Resolve]]:
    """Yield the functions of a file, each with what names mean around it.

    A name means what it is imported as, or a builtin, unless something else may give it a value.
    """
    known = {name: f"builtins.{name}" for name in _BUILTIN}
    changed = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    yield from _functions_of(tree, known, changed)


def _functions_of(
    scope: ast.AST, around: Mapping[str, str], changed: Set[str]
) -> Iterator[tuple[ast.FunctionDef, Resolve]]:
    inner: list[ast.AST] = []
    meanings: dict[str, set[str | None]] = {}
    for node in _own_nodes(scope):
        if isinstance(node, _SCOPES):
            inner.append(node)
        for name, full in _bound(node):
            meanings.setdefault(name, set()).add(full)
    known = {} if meanings.pop("*", None) else {**around}
    for name, found in meanings.items():
        known.pop(name, None)
        (full, *others) = found
        if full is not None and not others:
            known[name] = full
    for name in changed:
        known.pop(name, None)
    for node in inner:
        if isinstance(node, ast.FunctionDef):
            yield node, _resolver(known)
        yield from _functions_of(node, known, changed)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a scope, inner scopes as a whole, in the order of the source."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, _SCOPES):
            yield from _own_nodes(node)


def _bound(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the names that a node gives a meaning, with the full name where it is known.

    ``*`` stands for names that are not known.
    """
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield alias.asname or first, alias.name if alias.asname else first
    elif isinstance(node, ast.ImportFrom):
        module = None if node.level else node.module
        for alias in node.names:
            if (module, alias.name) == ("math", "*"):
                yield from ((name, f"math.{name}") for name in dir(math) if name[0] != "_")
            else:
                yield alias.asname or alias.name, module and f"{module}.{alias.name}"
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, None
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest, None
    elif isinstance(node, _NAMED) and node.name is not None:
        yield node.name, None


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
    from eatss.frontend.python.annotations import (  # noqa: PLC0415 - read where it is needed
        ElementAnnotation,
        ParamAnnotation,
    )

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

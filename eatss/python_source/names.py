"""What names mean: modules and functions by imports or by value, and names that C cannot have."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType

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

MATH = {
    **{name: name for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc",
        "exp", "exp2", "expm1", "fabs", "lgamma", "log", "log10", "log1p", "log2", "sin", "sinh",
        "sqrt", "tan", "tanh",
    )},
    "gamma": "tgamma",
}  # fmt: skip
"""Functions of ``math`` with one argument, and their names in C."""

MATH_OF_TWO = {name: name for name in ("atan2", "copysign", "fmod", "hypot", "pow", "remainder")}
NUMPY = {
    **{name: name for name in (
        "cbrt", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "log", "log10",
        "log1p", "log2", "rint", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )},
    "abs": "fabs", "absolute": "fabs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
}  # fmt: skip
NUMPY_OF_TWO = {
    "arctan2": "atan2", "copysign": "copysign", "fmax": "fmax", "fmin": "fmin", "fmod": "fmod",
    "hypot": "hypot", "power": "pow",
}  # fmt: skip
NUMPY_TYPES = {
    "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
"""Types of NumPy that are called to convert a number, by their name in ``eatss``."""

_KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
        "typedef", "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "main",
        "abs", "labs",
    }
)  # fmt: skip
_RESERVED = re.compile("__|_[A-Z]|EATSS|eatss")
_C_FUNCTIONS = frozenset(
    {*MATH.values(), *MATH_OF_TWO.values(), *NUMPY.values(), *NUMPY_OF_TWO.values()}
)

Resolve = Callable[[ast.expr], str | None]
"""Takes a name or an attribute to the full name of what it means: ``np.sqrt`` to ``numpy.sqrt``."""


def c_name_is_free(name: str) -> bool:
    """Tell whether a name of Python can be that of a variable in the C text."""
    taken = name in _KEYWORDS or name in MACROS or name.removesuffix("f") in _C_FUNCTIONS
    return name.isascii() and not taken and not _RESERVED.match(name)


def by_imports(tree: ast.Module) -> Resolve:
    """Return what names of a file mean by its imports."""
    known: dict[str, str] = {name: f"builtins.{name}" for name in _BUILTIN}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                known[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef) and node.name in _BUILTIN:
            known.pop(node.name, None)
    return _resolver(known)


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
    from eatss.python_source.annotations import (  # noqa: PLC0415 - read where it is needed
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

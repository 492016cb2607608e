"""Pieces of generated text: lines, indented; what types are called; numbers.

NVRTC has no header with a type for halves. ``eatss_half`` holds 16 bits and converts to and from
all other numbers. Nothing is computed in it, and no conversion is left to the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, isinf, isnan
from types import MappingProxyType

from eatss.polyhedral.expression import ElementType, Literal
from eatss.program import Argument
from eatss.program.tokens import size_text


class Lines:
    """Collects lines; blocks in braces indent what stands in them."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def add(self, *lines: str) -> None:
        """Add lines; one that starts with ``#`` is not indented unless it is a pragma."""
        for line in lines:
            flush = line.startswith("#") and not line.startswith("#pragma")
            self._lines.append(line if flush or not line else "    " * self._depth + line)

    @contextmanager
    def block(self, head: str = "", tail: str = "") -> Iterator[None]:
        """Put what is added inside braces after ``head``."""
        self.add(f"{head} {{".lstrip())
        with self.indented():
            yield
        self.add("}" + tail)

    def goes_on(self, text: str) -> None:
        """Add text to the last line."""
        self._lines[-1] += text

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent what is added."""
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """Return the text, with a line break after every line."""
        return "".join(line + "\n" for line in self._lines)


HALF = "eatss_half"
"""What ``_Float16`` is called in CUDA."""

_SPELLINGS = {ElementType.HALF.value: HALF, ElementType.BOOL.value: "bool"}


def type_text(element_type: ElementType | str) -> str:
    """Return what an element type, or its C spelling, is called in CUDA."""
    spelling = element_type.value if isinstance(element_type, ElementType) else element_type
    return _SPELLINGS.get(spelling, spelling)


_SUFFIXES = {
    ElementType.INT32: "",
    ElementType.UINT32: "u",
    ElementType.INT64: "L",
    ElementType.UINT64: "UL",
}
_INFINITY = {ElementType.FLOAT: "(1e38f * 1e38f)", ElementType.DOUBLE: "(1e308 * 1e308)"}
_LIMITS = {
    ElementType.INT32: 2**31,
    ElementType.UINT32: 2**32,
    ElementType.INT64: 2**63,
    ElementType.UINT64: 2**64,
    ElementType.FLOAT: 2**24,
    ElementType.DOUBLE: 2**53,
}


def argument_text(
    argument: Argument, given: Mapping[str, str] = MappingProxyType({}), *, const: bool = True
) -> str:
    """Return the declaration of an argument of an entry.

    Args:
        argument: what is declared.
        given: what sizes are called there, where that is not their name.
        const: whether arrays that are only read are declared so.
    """
    c_type = type_text(argument.element_type)
    if argument.role in ("array", "cell"):
        return f"{'const ' * (const and not argument.writes)}{c_type} *{argument.name}"
    return f"{c_type} {given.get(argument.name) or size_text(argument.name)}"


def literal_text(literal: Literal) -> str:
    """Return a literal; what has no spelling (the least integers, infinity, NaN) is computed."""
    text = literal.text
    if literal.element_type.is_floating:
        return _floating(literal)
    value = _integer(literal)
    if value is not None and value in (-(2**31), -(2**63)):
        suffix = _SUFFIXES.get(literal.element_type, "")
        return f"(-{-value - 1}{suffix} - 1)"
    return text


def constant_text(value: float, element_type: ElementType) -> str:
    """Return a number as C that is converted to a type without change; a half, converted."""
    if element_type is ElementType.HALF:
        return f"({type_text(element_type)}){constant_text(float(value), ElementType.FLOAT)}"
    if isnan(value):
        zero = "0.0f" if element_type is ElementType.FLOAT else "0.0"
        return f"{_INFINITY[element_type][:-1]} * {zero})"
    if isinf(value):
        return f"-{_INFINITY[element_type]}" if value < 0 else _INFINITY[element_type]
    if value != int(value):
        return f"{value!r}f" if element_type is ElementType.FLOAT else repr(value)
    text = str(int(value))
    if -(2**31) < value < 2**31:
        return text
    suffix = _SUFFIXES[element_type]
    return literal_text(Literal(text=f"{text}{suffix}", element_type=element_type))


def converted_literal(literal: Literal, target: ElementType) -> str | None:
    """Return an integer literal as a literal of another type, if it has that value exactly.

    ``2`` as ``double`` is ``2.0``.
    """
    if literal.element_type.is_floating or target not in _LIMITS:
        return None
    value = _integer(literal)
    if value is None or not 0 <= value < _LIMITS[target]:
        return None
    if target is ElementType.DOUBLE:
        return f"{value}.0"
    if target is ElementType.FLOAT:
        return f"{value}.0f"
    return f"{value}{_SUFFIXES[target]}"


def _integer(literal: Literal) -> int | None:
    try:
        return int(literal.text.rstrip("uUlL"))
    except ValueError:
        return None


def _floating(literal: Literal) -> str:
    text, is_float = literal.text, literal.element_type is ElementType.FLOAT
    digits = text[:-1] if is_float and text[-1] in "fF" and text != "inf" else text
    try:
        value = float(digits)
    except ValueError:
        return text  # hexadecimal
    return text if isfinite(value) else constant_text(value, literal.element_type)

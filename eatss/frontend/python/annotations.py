"""What parameters of a function are annotated with: ``Param``, ``f64["n", "n"]``, ``f64``.

Types of numbers, by the rules of Python and NumPy, and what C makes of the same.

Python's own numbers are weak (NEP 50): beside a NumPy number they take its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eatss.polyhedral.scops import ElementType

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
_NUMPY = {element: f"{name[0]}{element.size_bytes}" for name, element in ELEMENTS.items()}
_ELEMENTS = {name: element for element, name in _NUMPY.items()}
_FLOATING = (ElementType.HALF, ElementType.FLOAT, ElementType.DOUBLE)
_RANKS = (ElementType.INT32, ElementType.UINT32, ElementType.INT64, ElementType.UINT64)


@dataclass(frozen=True, slots=True)
class NumberType:
    """A type of numbers: what it is in C, and whether it is one of Python's own."""

    element: ElementType
    is_weak: bool = False

    @property
    def is_floating(self) -> bool:
        """Whether its numbers are floating-point numbers."""
        return self.element.is_floating

    @property
    def is_unsigned(self) -> bool:
        """Whether it is one of NumPy's integers without a sign."""
        return self.element.is_unsigned

    def __str__(self) -> str:
        if self.is_weak:
            return "float" if self.is_floating else "int"
        return SHORT_NAMES[self.element]


INT, FLOAT = NumberType(ElementType.INT32, True), NumberType(ElementType.DOUBLE, True)
"""Types of Python's own numbers."""

DOUBLE = NumberType(ElementType.DOUBLE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A type that a value may have; one that is ``free`` is a literal, which takes any.

    ``weak`` is that of a literal which the value may be instead.
    """

    type: NumberType
    free: bool
    weak: NumberType | None = None


def to_one_type(*types: NumberType) -> str:
    """Return the hint to convert numbers of some types to one that has room for all."""
    wide = "float64" if any(one.is_floating for one in types) else "int64"
    return f"convert one of them, for example with numpy.{wide}(…)"


def common_type(left: NumberType, right: NumberType) -> NumberType:
    """Return the type in which NumPy does arithmetic with both."""
    if left.is_weak and right.is_weak:
        return FLOAT if FLOAT in (left, right) else INT
    if left.is_weak:
        left, right = right, left
    if right.is_weak:
        return DOUBLE if right == FLOAT and not left.is_floating else left
    import numpy as np  # noqa: PLC0415 - only where types are mixed

    kind = np.promote_types(_NUMPY[left.element], _NUMPY[right.element])
    return NumberType(_ELEMENTS[f"{kind.kind}{kind.itemsize}"])


def usual_type(left: ElementType, right: ElementType) -> ElementType:
    """Return the type in which C does arithmetic with both (LP64)."""
    if left.is_floating or right.is_floating:
        return max((one for one in (left, right) if one.is_floating), key=_FLOATING.index)
    return max(promoted(left), promoted(right), key=_RANKS.index)


def promoted(element: ElementType) -> ElementType:
    """Return the type after C's promotion of small integers."""
    return element if element.is_floating or element.size_bytes >= 4 else ElementType.INT32


def one_type(candidates: Sequence[Candidate], *, mixes: bool) -> NumberType | None:
    """Return the one type for a variable or a choice between values; ``None`` if there is none.

    Args:
        candidates: the types of the values.
        mixes: whether the function has floating-point numbers of 32 or 16 bits. Then a double of
            Python is not the same as one of NumPy: the first gives way to these, the second does
            not.
    """
    firm = {one.type for one in candidates if not one.free}
    free = {one.type for one in candidates if one.free}
    if not firm or firm <= {INT, FLOAT}:
        return FLOAT if FLOAT in firm | free else INT
    if firm == {FLOAT, DOUBLE} and not mixes:
        return DOUBLE
    if len(firm) > 1:
        return None
    (found,) = firm
    return None if FLOAT in free and not found.is_floating else found


class TypeClashError(Exception):
    """Two numbers have types that do not go together; the message says why, ``hint`` what helps."""

    def __init__(self, message: str, *types: NumberType) -> None:
        super().__init__(message)
        self.hint = to_one_type(*types)


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


PARAM = "Param"
Param = ParamAnnotation()
f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 = (
    ElementAnnotation(name, element) for name, element in ELEMENTS.items()
)

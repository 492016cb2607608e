"""What parameters of a function are annotated with: ``Param``, ``f64["n", "n"]``, ``f64``."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.scops import ElementType


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

Param = ParamAnnotation()
f16 = ElementAnnotation("f16", ElementType.HALF)
f32 = ElementAnnotation("f32", ElementType.FLOAT)
f64 = ElementAnnotation("f64", ElementType.DOUBLE)
i8 = ElementAnnotation("i8", ElementType.INT8)
i16 = ElementAnnotation("i16", ElementType.INT16)
i32 = ElementAnnotation("i32", ElementType.INT32)
i64 = ElementAnnotation("i64", ElementType.INT64)
u8 = ElementAnnotation("u8", ElementType.UINT8)
u16 = ElementAnnotation("u16", ElementType.UINT16)
u32 = ElementAnnotation("u32", ElementType.UINT32)
u64 = ElementAnnotation("u64", ElementType.UINT64)

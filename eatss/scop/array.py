"""Arrays and their element types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import islpy as isl


class ElementType(Enum):
    """Element types of arrays and scalars, by their C spelling."""

    FLOAT = "float"
    DOUBLE = "double"
    INT8 = "signed char"
    UINT8 = "unsigned char"
    INT16 = "short"
    UINT16 = "unsigned short"
    INT32 = "int"
    UINT32 = "unsigned int"
    INT64 = "long"
    UINT64 = "unsigned long"

    @property
    def size_bytes(self) -> int:
        """Size of one element in bytes (LP64)."""
        return _SIZE_BYTES[self]

    @property
    def is_floating(self) -> bool:
        """Whether the type is a floating-point type."""
        return self in (ElementType.FLOAT, ElementType.DOUBLE)


_SIZE_BYTES = {
    ElementType.FLOAT: 4,
    ElementType.DOUBLE: 8,
    ElementType.INT8: 1,
    ElementType.UINT8: 1,
    ElementType.INT16: 2,
    ElementType.UINT16: 2,
    ElementType.INT32: 4,
    ElementType.UINT32: 4,
    ElementType.INT64: 8,
    ElementType.UINT64: 8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """An array or, with no dimensions, a scalar.

    ``extent`` is the set of its elements, a set in the space ``name[d0, d1, …]``
    over the parameters of the scop; a dimension whose size the source does not
    give (``double A[][N]``) has no upper bound there. ``is_local`` says that it
    is declared inside the region, so its values are dead when the region ends.
    """

    name: str
    element_type: ElementType
    extent: isl.Set
    n_dims: int
    is_local: bool = False

    def __str__(self) -> str:
        return f"{self.element_type.value} {self.extent}"

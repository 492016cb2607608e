"""Arrays and their element types."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

from eatss.base.frozen import frozen

if TYPE_CHECKING:
    import islpy as isl

Origin: TypeAlias = Literal["parameter", "member", "global", "static", "local"]
"""Where an array or scalar lives: a parameter of the function, a structure that one is or points
to, a global that other files can reach, a ``static`` one that they cannot, or the function's own
storage."""


class ElementType(Enum):
    """Element types of arrays and scalars, by their C spelling.

    Halves are stored, and converted; no operation is done in them. What C does in ``_Float16`` is
    done in ``float`` and converted, operation by operation: for sums, differences, products and
    quotients that is the same, because a float has more than twice the bits.
    """

    HALF = "_Float16"
    FLOAT = "float"
    DOUBLE = "double"
    BOOL = "_Bool"
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
    def is_unsigned(self) -> bool:
        """Whether no value of the type is negative."""
        return self.name.startswith("U") or self is ElementType.BOOL

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        bits = 1 if self is ElementType.BOOL else 8 * self.size_bytes
        if self.is_unsigned:
            return 0, 2**bits - 1
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    @property
    def is_floating(self) -> bool:
        """Whether the type is a floating-point type."""
        return self in (ElementType.HALF, ElementType.FLOAT, ElementType.DOUBLE)


_SIZE_BYTES = {
    ElementType.HALF: 2,
    ElementType.FLOAT: 4,
    ElementType.DOUBLE: 8,
    ElementType.BOOL: 1,
    ElementType.INT8: 1,
    ElementType.UINT8: 1,
    ElementType.INT16: 2,
    ElementType.UINT16: 2,
    ElementType.INT32: 4,
    ElementType.UINT32: 4,
    ElementType.INT64: 8,
    ElementType.UINT64: 8,
}


@frozen
class Array:
    """An array or, with no dimensions, a scalar.

    ``extent`` is the set of its elements, a set in the space ``name[d0, d1, …]``
    over the parameters of the scop; a dimension whose size the source does not
    give (``double A[][N]``) has no upper bound there. ``is_local`` says that it
    is declared inside the region, so its values are dead when the region ends.
    ``origin`` says where it lives; ``source_name`` is its name in C, from which ``name``
    differs where another variable or isl has that name (empty: no C source gave one).
    ``ppcg_kills`` says that PPCG knows its values to be dead after the region: declared in a block
    of the region, or in the block around it with no mention after it. ``copy_of`` names the array
    of which it has the values from before the region (empty: it is no copy). ``declared`` is the
    set of its elements as the source names them, where ``extent`` counts several dimensions as one
    (``None``: it does not).
    """

    name: str
    element_type: ElementType
    extent: isl.Set
    n_dims: int
    is_local: bool = False
    origin: Origin = "parameter"
    source_name: str = ""
    ppcg_kills: bool = False
    copy_of: str = ""
    declared: isl.Set | None = None

    def __str__(self) -> str:
        return f"{self.element_type.value} {self.extent}"

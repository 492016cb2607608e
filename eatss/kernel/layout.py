"""Where the elements of a buffer lie: strides, padding, swizzle.

``Layout((Constant(32), Constant(32)), padding=1)`` is a box whose rows are 33 elements apart.
``Layout((Constant(32), Constant(32)), swizzle=32)`` needs no padding: element ``[i][j]`` lies where
``[i][j ^ (i % 32)]`` would, so that a column, too, lies in all banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from eatss.program import Apply, Constant, IntExpr, Operator, multiplied, total


@dataclass(frozen=True, slots=True)
class Layout:
    """Extents in elements, the slowest first, and how rows lie.

    ``padding`` elements follow each row. Columns are exchanged by exclusive or with the number of
    the row modulo ``swizzle``, a power of two that divides the last extent; 0 leaves them. The row
    is the last subscript but one of an extent above 1.
    """

    extents: tuple[IntExpr, ...]
    padding: int = 0
    swizzle: int = 0

    def __post_init__(self) -> None:
        """Refuse a swizzle that leaves the row.

        Raises:
            ValueError: it is no power of two that divides the length of a row, or there is padding
                besides, which would do the same again.
        """
        if not self.swizzle:
            return
        last = self.extents[-1] if len(self.extents) > 1 else None
        fits = isinstance(last, Constant) and last.value % self.swizzle == 0
        if self.swizzle & (self.swizzle - 1) or not fits or self.padding:
            raise ValueError(f"a swizzle of {self.swizzle} does not fit {self}")

    @property
    def allocated(self) -> tuple[IntExpr, ...]:
        """Extents with the padding."""
        if not self.padding:
            return self.extents
        return (*self.extents[:-1], total(self.extents[-1], Constant(self.padding)))

    @property
    def strides(self) -> tuple[IntExpr, ...]:
        """How far apart neighbours along each dimension are, in elements, the swizzle left out."""
        found: list[IntExpr] = []
        stride: IntExpr = Constant(1)
        for extent in reversed(self.allocated):
            found.append(stride)
            stride = multiplied(stride, extent)
        return tuple(reversed(found))

    @property
    def elements(self) -> int | None:
        """Elements that are allocated, ``None`` where an extent is not constant."""
        extents = [one.value for one in self.allocated if isinstance(one, Constant)]
        return prod(extents) if len(extents) == len(self.extents) else None

    def place(self, subscripts: Sequence[IntExpr]) -> tuple[IntExpr, ...]:
        """Return the subscripts at which an element lies in an array of the allocated extents."""
        if not self.swizzle:
            return tuple(subscripts)
        *outer, column = subscripts
        long = [k for k, extent in enumerate(self.extents[:-1]) if extent != Constant(1)]
        row = outer[long[-1] if long else -1]
        turn = Apply(Operator.REMAINDER, (row, Constant(self.swizzle)))
        return (*outer, Apply(Operator.XOR, (column, turn)))

    def address(self, subscripts: Sequence[IntExpr]) -> IntExpr:
        """Return how many elements in front of it an element has."""
        places = self.place(subscripts)
        if not places:
            return Constant(0)
        address = places[0]
        for extent, place in zip(self.allocated[1:], places[1:], strict=True):
            address = total(multiplied(address, extent), place)
        return address

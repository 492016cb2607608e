"""What a kernel is made of besides its piece, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from typing import Literal

import islpy as isl

from eatss.base.frozen import frozen
from eatss.base.targets import Axis
from eatss.lower.arrays import DeviceArray
from eatss.lower.index_range import Indices
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import NameTable, Piece
from eatss.lower.planning import Unit
from eatss.lower.promotion import SharedTile
from eatss.polyhedral.scop import Scop
from eatss.program import Constant, IntExpr


@frozen
class KernelContext:
    """What a kernel is made of, besides its piece.

    ``parameters`` are the integer parameters that are passed. Loops may fill boxes ahead of
    themselves where ``copies_ahead`` says so. With ``strict_fp`` zeros are added to no sum.
    """

    scop: Scop
    arrays: Dictionary[str, DeviceArray]
    names: NameTable
    index_bits: Literal[32, 64]
    line_info: bool
    parameters: tuple[str, ...]
    shared_limit_bytes: int
    static_shared_bytes: int
    copies_ahead: bool = False
    strict_fp: bool = False


@frozen
class KernelInput:
    """What the builders of one kernel share: its unit, the region, and indices that it prints."""

    unit: Unit
    context: KernelContext
    index: Indices

    @property
    def piece(self) -> Piece:
        """The statements."""
        return self.unit.piece

    @property
    def mapping(self) -> Mapping:
        """Where its loops go."""
        return self.unit.mapping

    @property
    def names(self) -> NameTable:
        """Gives out names that are free."""
        return self.unit.names

    @property
    def bound(self) -> tuple[str, ...]:
        """The loops of the band."""
        return tuple(loop.name for loop in self.piece.band)


@frozen
class BuiltKernel:
    """A kernel, and what launching it takes.

    ``grid`` are the numbers of blocks along x, y, z; ``launch`` are the sizes and host counters
    for which there is anything to run. ``parameter_tiles`` are for sizes that bound tiled loops the
    largest tile. ``most_blocks`` is what must hold of the sizes for the grid to launch, ``None``
    for nothing. ``index`` has what the kernel and its grid compute of indices. ``origins``
    are where tiles of blocks along x begin, by the loops of the mapping. ``grid_strides`` are the
    axes along which a block may take several tiles; ``tiles`` are those along x, y and z.
    ``staged`` are the tiles in shared memory. ``piece`` has its statements.
    """

    piece: Piece
    kernel: Kernel
    grid: tuple[IntExpr, IntExpr, IntExpr]
    launch: isl.Set
    parameter_tiles: tuple[tuple[str, int], ...]
    most_blocks: IntExpr | None
    notes: tuple[str, ...]
    index: Indices
    origins: tuple[IntExpr, ...] = ()
    grid_strides: tuple[Axis, ...] = ()
    tiles: tuple[IntExpr, IntExpr, IntExpr] = (Constant(1), Constant(1), Constant(1))
    staged: tuple[SharedTile, ...] = ()

"""What the user decides about generated code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eatss.analysis.structure import SharedSum


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedThreads:
    """Threads of a block by loop; what is not named has one."""

    threads: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodegenOptions:
    """Options of code generation.

    ``tile_sizes`` and ``block`` replace what is selected, for the kernel of that name or, with
    ``""``, for every kernel: tile sizes by loop name, threads by loop name or in the order of the
    loops, the last one along ``x``. ``placements`` puts references, by array or by text
    (``A[i][k]``), into ``l1`` or ``shared`` memory. ``strict_fp`` keeps the order of all
    floating-point operations. ``index_bits`` is the width of index arithmetic, ``None`` for the
    narrowest that is proven to do at the sizes of the source. ``line_info`` lets the CUDA
    compiler's messages and profilers name lines of the C source. ``shared_limit_bytes`` bounds a
    block's shared memory, ``None`` for all that the card lets a block opt in to.
    ``transformations`` are made of every kernel, in their order; ``instructions`` take the place of
    statements whose value they compute. With ``stages`` above 1, boxes in shared memory are copied
    so many turns of a loop ahead, less one; ``None`` is what is selected. ``shared_sums`` says for
    kernels by name how blocks share their sums, instead of what is selected. Without ``fuse_rows``
    kernels stay apart, whatever is selected.
    """

    tile_sizes: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    block: tuple[tuple[str, tuple[int, ...] | NamedThreads], ...] = ()
    placements: tuple[tuple[str, Literal["l1", "shared"]], ...] = ()
    strict_fp: bool = False
    index_bits: Literal[32, 64] | None = None
    line_info: bool = False
    shared_limit_bytes: int | None = None
    transformations: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    stages: int | None = None
    shared_sums: tuple[tuple[str, SharedSum], ...] = ()
    fuse_rows: bool = True

    @property
    def keeps_apart(self) -> bool:
        """Whether no kernels become one: the user says so, or says how each of them is laid out."""
        own = self.tile_sizes or self.block or self.placements or self.shared_sums
        return bool(own) or not self.fuse_rows

    @property
    def changes_layout(self) -> bool:
        """Whether blocks are laid out otherwise than selected."""
        own = self.tile_sizes or self.block or self.placements or self.shared_sums
        return bool(own) or self.stages is not None

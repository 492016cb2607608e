"""The nouns of what was decided: by a model, and by the user.

A generator carries a recipe out. So a recipe that was kept makes the same code again, whatever a
model would choose today.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from eatss.analysis.structure import RecomputedArray, RowBlock, SharedSum, SplitK, WarpUse
from eatss.codec import BY_NAME, JsonForm
from eatss.recipe.options import CodegenOptions

SCHEMA_VERSION = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""

Sizes = Annotated[tuple[tuple[str, int], ...], BY_NAME]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedReference:
    """A reference of some statements, and the memory that it was given.

    ``access`` is its text (``A[i][k]``).
    """

    array: str
    access: str
    statements: tuple[str, ...]
    memory: Literal["l1", "shared", "private"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecipe:
    """What was decided about one kernel.

    ``tile_sizes`` by loop of the band, outermost first; ``block`` threads by mapped loop, the one
    along ``x`` last. ``spread`` is how its sums are spread over threads and blocks, ``shared_sum``
    how blocks share sums that are not spread, ``host_loop`` a loop of the band that runs on the
    host. ``warps`` is the instruction that warps compute products by, ``stages`` the boxes of
    shared memory in use at once where threads compute alone, ``resident`` the blocks of an SM that
    are to run at a time then, which bounds the registers of a thread. ``row_block`` says for the
    first of several kernels how they become one.
    """

    name: str
    statements: tuple[str, ...]
    tile_sizes: Sizes
    block: Sizes
    references: tuple[PlacedReference, ...]
    spread: SplitK | None = None
    shared_sum: SharedSum | None = None
    host_loop: str | None = None
    warps: WarpUse | None = None
    stages: int = 1
    resident: int = 1
    row_block: RowBlock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that was decided about the code of a program on a card.

    ``kernels`` are what a model chose, ``options`` what the user wants instead or besides.
    ``recomputed`` are arrays whose elements kernels compute anew where they read them.
    """

    json_layout = JsonForm(closed=True)

    gpu: str
    dtype: str
    kernels: tuple[KernelRecipe, ...]
    options: CodegenOptions = field(default_factory=CodegenOptions)
    recomputed: tuple[RecomputedArray, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def kernel(self, name: str) -> KernelRecipe:
        """Return what was decided about a kernel; ``KeyError`` if there is none of that name."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)

"""``Layout``: all that is chosen for the code of one kernel, as numbers or as columns of them.

The model enumerates columns of it, one row of them is selected, a recipe keeps it, the generator
carries it out, and JSON shows it. Nothing else says what can be chosen.

Which loops go to blocks and threads, and along which axes, is said here, too: the model chooses
sizes for what is mapped, and the generator carries it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from eatss.analysis.variant import KernelVariant
from eatss.base.codec import BY_NAME
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.targets import AXES, CUDA, Axis

if TYPE_CHECKING:
    from eatss.analysis.facts import KernelFacts
    from eatss.polyhedral.kernel import Loop


Noun = TypeVar("Noun")

FIXED = {"fixed": True}
"""Metadata of a field that has no columns."""


def mapped(change: Callable[..., Any], noun: Noun, *others: Noun) -> Noun:
    """Return a noun with ``change`` made of each column: ``mapped(lambda one: one[rows], demand)``.

    With ``others``, which are alike but for their numbers, ``change`` gets those of all.
    """
    return _mapped(change, noun, *others)  # type: ignore[no-any-return]


def _mapped(change: Callable[..., Any], value: Any, *others: Any) -> Any:
    if value is None or isinstance(value, str | bool):
        return value
    names = _names_of(value.__class__)
    if names is not None:
        every = value, *others
        parts = {name: _mapped(change, *(getattr(one, name) for one in every)) for name in names}
        return replace(value, **parts)
    if isinstance(value, tuple):
        return tuple(_mapped(change, *parts) for parts in zip(value, *others, strict=True))
    if isinstance(value, Mapping):
        return {key: _mapped(change, value[key], *(one[key] for one in others)) for key in value}
    return change(value, *others)


@cache
def _names_of(noun: type) -> Names | None:
    """Return the fields of a class that have columns, ``None`` for what is no noun."""
    if not is_dataclass(noun):
        return None
    return tuple(one.name for one in fields(noun) if not one.metadata.get("fixed"))


if TYPE_CHECKING:
    Number: TypeAlias = Any
    """A whole number, or a column of them: the generator asks for one, the model for thousands."""
else:
    Number = int

Sizes = Annotated[tuple[tuple[str, Number], ...], BY_NAME]
Group: TypeAlias = tuple[int, ...]
"""References that are staged together, by index."""

Chosen = TypeVar("Chosen", bound="Layout")


@frozen
class SplitK:
    """How a sum is spread over threads and blocks.

    ``lanes`` threads of a block add up one sum together, ``tile`` steps of it at a time;
    ``chunks`` blocks share these steps; of a running sum each tile has one then. So many blocks as
    ``outer`` says share another loop of the sum, outside of it.
    """

    lanes: Number
    tile: Number
    chunks: Number
    outer: Number = 1


@frozen
class GridSplitK:
    """How blocks share a sum: so many ``blocks`` take turns at the tiles of a ``loop`` of it.

    Threads, points, places and instructions are as without: each block adds what it has to memory.
    Where it is ``streamed``, these are all blocks that there are, and they take equal shares of
    the loop's turns of all tiles, one tile after another: of a tile that several blocks have parts
    of, the last of them puts it together.
    """

    loop: str
    blocks: Number
    streamed: bool = False


@frozen
class FusedRows:
    """How kernels that follow each other become one, whose blocks take rows through all of them.

    A block has ``rows`` rows, one a thread along ``y``, and ``lanes`` threads along ``x`` for each
    of them, which take ``tile`` elements of the row at a time. With ``whole`` 1 they keep rows that
    are no longer. ``kernels`` are the names of all, of which so many outer ``loops`` are over rows.
    With ``columns`` 1 the axes are the other way round: threads beside each other have rows beside
    each other, which is right for columns of matrices. With ``steps`` 1 blocks go through
    the innermost loop on the host around the kernels themselves.
    """

    kernels: Names
    loops: int
    rows: Number
    lanes: Number
    tile: Number
    whole: Number = 0
    columns: int = 0
    steps: int = 0

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The axes of threads of different rows, and of those of one."""
        return ("x", "y") if self.columns else ("y", "x")

    @property
    def extents(self) -> tuple[int, int, int]:
        """Threads along x, y and z."""
        own = int(self.lanes), int(self.rows)
        x, y = own[::-1] if self.columns else own
        return x, y, 1

    @property
    def threads(self) -> Number:
        """Threads of a block."""
        return self.rows * self.lanes


@frozen
class TimeTile:
    """How steps of a loop on the host become one launch, and its kernels with them.

    A launch computes ``depth`` steps. A warp has ``32 * columns`` cells of ``rows`` rows, side by
    side with other ``warps`` of its block, and goes ``length`` cells along the first dimension.
    Rows are loaded ``prefetch`` rows before they are used. ``kernels`` are the names of all.
    """

    kernels: Names
    depth: Number
    columns: Number
    length: Number
    rows: Number = 1
    warps: Number = 1
    prefetch: Number = 1

    @property
    def cells(self) -> str:
        """The cells of a block, along the first dimension first, as text."""
        sizes = (self.length, self.rows * self.warps, CUDA.lanes * self.columns)
        return " × ".join(str(size) for size in sizes if size > 1)


@frozen
class ClassBlock:
    """How kernels of a class of tiles become one launch, all steps of a block in it.

    A block has ``threads``, and ``width`` points of the loop that blocks share, 1 where there is
    none. ``kernels`` are the names of all.
    """

    kernels: Names
    threads: Number
    width: Number


@frozen
class LoopBlock:
    """How a loop on the host becomes one launch of one block, which runs its iterations.

    The loop is the outermost one around ``kernels``, which are the names of all in it. What was a
    launch is a phase of the block, between barriers of its ``threads``.

    Where there are ``tiles``, each block has so many values of the loop, and so many along each of
    the parallel loops inside, which may be skewed. Blocks of a wavefront of tiles are one launch.
    """

    kernels: Names
    threads: int
    tiles: Numbers = ()


@frozen
class WarpUse:
    """How a launch uses an instruction of warps.

    ``stages`` are the boxes of shared memory in use at once: all but one are filled ahead.
    ``resident`` blocks of an SM are to run at a time, which bounds the registers of a thread.
    """

    instruction: str
    stages: Number
    resident: Number = 1


APART = dict.fromkeys(("row_block", "time_tile", "class_block", "loop_block"))
"""Fields of a :class:`Layout` of a kernel by itself."""


@frozen
class Layout:
    """All that is chosen for one kernel but for the places of its references.

    ``tile_sizes`` by loop of the band, outermost first; ``block`` threads by mapped loop, the one
    along ``x`` last. ``spread`` is how its sums are spread over threads and blocks, ``shared_sum``
    how blocks share sums that are not spread. ``warps`` is the instruction that warps compute
    products by, ``stages`` the boxes of shared memory in use at once where threads compute alone,
    ``resident`` the blocks of an SM that are to run at a time then, which bounds the registers of a
    thread. ``row_block`` says for the first of several kernels how they become one, ``time_tile``
    how they take several steps at once, ``class_block`` how they take all steps of a class of
    tiles, ``loop_block`` how one block runs a loop around them.
    """

    tile_sizes: Sizes
    block: Sizes
    spread: SplitK | None = None
    shared_sum: GridSplitK | None = None
    warps: WarpUse | None = None
    stages: Number = 1
    resident: Number = 1
    row_block: FusedRows | None = None
    time_tile: TimeTile | None = None
    class_block: ClassBlock | None = None
    loop_block: LoopBlock | None = None

    @property
    def tiles(self) -> dict[str, Number]:
        """Tile sizes by loop of the band."""
        return dict(self.tile_sizes)

    @property
    def threads(self) -> dict[str, Number]:
        """Threads of a block by mapped loop."""
        return dict(self.block)

    @property
    def instruction(self) -> str | None:
        """The name of the instruction that warps compute products by."""
        return None if self.warps is None else self.warps.instruction

    @property
    def cut(self) -> tuple[bool, str | None, str | None]:
        """What tells the variant of the kernel: see :attr:`KernelVariant.cut`."""
        own = self.shared_sum
        shared = None if own is None or own.streamed else own.loop
        return self.spread is not None, shared, self.instruction

    @property
    def lanes(self) -> Number:
        """Threads that add up one sum together, 1 where none is spread."""
        return 1 if self.spread is None else self.spread.lanes

    @property
    def sum_tile(self) -> Number:
        """Steps of a spread sum at a time."""
        return 1 if self.spread is None else self.spread.tile

    @property
    def chunks(self) -> Number:
        """Blocks that add to the same element."""
        if self.shared_sum is not None and not self.shared_sum.streamed:
            return self.shared_sum.blocks
        return 1 if self.spread is None else self.spread.chunks

    @property
    def outer_chunks(self) -> Number:
        """Blocks that share an outer loop of a spread sum."""
        return 1 if self.spread is None else self.spread.outer

    @property
    def streams(self) -> Number:
        """Blocks that take equal shares of all steps, 0 where they do not."""
        own = self.shared_sum
        return own.blocks if own is not None and own.streamed else 0

    @property
    def pipeline_stages(self) -> Number:
        """Buffers in shared memory, of products by warps or by threads alone."""
        return self.stages if self.warps is None else self.warps.stages

    @property
    def blocks_at_once(self) -> Number:
        """Blocks of an SM that are to run at a time."""
        return self.resident if self.warps is None else self.warps.resident

    @property
    def joined(self) -> Names:
        """The names of the kernels that become one with this one, none where it stays apart."""
        ways = (self.row_block, self.time_tile, self.class_block, self.loop_block)
        return next((one.kernels for one in ways if one is not None), ())

    def map(self: Chosen, change: Callable[[Any], Any]) -> Chosen:
        """Return it with ``change`` made of each number: ``layout.map(lambda one: one[rows])``."""
        return mapped(change, self)

    def chosen(self) -> dict[str, Any]:
        """Return the fields of a layout by name, for another noun that has one."""
        return {one.name: getattr(self, one.name) for one in fields(Layout)}


@frozen
class Candidates(Layout):
    """Layouts of one kernel under one variant: each number is a column of them.

    ``staged`` is 1 for each group of references that is staged in shared memory. ``fewer`` says
    that there were too many to offer all.
    """

    variant: KernelVariant = field(metadata=FIXED)
    staged: Mapping[Group, Number] = field(default_factory=dict)
    fewer: bool = False

    def __len__(self) -> int:
        """Return the number of layouts."""
        return len(self.stages)

    @property
    def columns(self) -> list[Any]:
        """All columns in the order of their fields."""
        found: list[Any] = []
        self.map(found.append)
        return found

    @property
    def copies(self) -> bool:
        """Whether blocks have more threads than their tiles have points."""
        return any((threads > self.tiles[name]).any() for name, threads in self.block)

    def at(self, row: int) -> Candidates:
        """Return one of the layouts, its numbers whole."""
        return self.map(lambda column: int(column[row]))


def mapped_loops(facts: KernelFacts) -> tuple[Loop, ...]:
    """Return the loops whose tiles go to blocks, in the order of threads: along ``x`` last.

    All parallel loops of the band: it is permutable, so one that stands behind a serial loop may
    stand in front of it. Neighbours in memory go to neighbouring threads, so the loop along
    which memory is contiguous comes last: that of the references that move along most loops, which
    touch most elements, and of those that decide the CMA loop where these leave it open.
    """

    def walked(loop: Loop) -> tuple[object, ...]:
        along = (one for one in facts.references if loop.name in one.spatial)
        own = Counter(-len(one.invariant) for one in along)
        return *(own[-still] for still in range(depth)), loop.name == facts.cma_loop

    depth = len(facts.loops) + len(facts.inner_loops)
    last = max(facts.parallel_loops, key=walked, default=None)
    last = last if facts.cma_loop else None
    return tuple(sorted(facts.parallel_loops, key=lambda loop: loop is last))


def reordering_loops(facts: KernelFacts) -> Names:
    """Return the serial loops whose tiles of several iterations take a sum in another order.

    Of a sum over several loops of the band those are all but the last.
    """
    serial = [loop.name for loop in facts.loops if not loop.parallel]
    found: dict[str, None] = {}
    for reduction in facts.reductions:
        found |= dict.fromkeys([name for name in serial if name in reduction.loops][:-1])
    return tuple(found)


def thread_axes(threads: Sequence[int]) -> tuple[Axis, ...]:
    """Return the axis of each mapped loop's threads.

    The last loop has ``x``. Up to three loops have an axis each. Of more, the last other one that
    has several threads has ``y``, and the rest share ``z``.

    Args:
        threads: along each loop, in the order of ``mapped_loops``.
    """
    if len(threads) <= len(AXES):
        return AXES[: len(threads)][::-1]
    several = [at for at, size in enumerate(threads[:-1]) if size > 1]
    along_y = several[-1] if several else None
    axes: list[Axis] = ["y" if at == along_y else "z" for at in range(len(threads) - 1)]
    return (*axes, "x")


def grid_axes(count: int) -> tuple[Axis, ...]:
    """Return the axis along which the tiles of each mapped loop go to blocks.

    Up to three loops have an axis each. Of more, the first two have ``z`` and ``y``, and the rest
    share ``x``, which may have the most blocks.

    Args:
        count: how many loops are mapped.
    """
    if count <= len(AXES):
        return AXES[:count][::-1]
    axes: list[Axis] = ["x"] * (count - 2)
    return ("z", "y", *axes)


def threads_along(axis: Axis, threads: Sequence[int], axes: Sequence[Axis]) -> int:
    """Return the threads of a block along an axis that loops may share."""
    total = 1
    for size, own in zip(threads, axes, strict=True):
        if own == axis:
            total *= size
    return total

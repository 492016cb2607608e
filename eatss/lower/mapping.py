"""From selected sizes to the layout of a piece: which loop goes to host, blocks, threads, tiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import (
    Layout,
    grid_axes,
    mapped_loops,
    reordering_loops,
    thread_axes,
    threads_along,
)
from eatss.analysis.variant import WarpInstruction
from eatss.base.diagnostics import input_error
from eatss.base.frozen import Names, Numbers, frozen, their_names
from eatss.base.targets import AXES, CUDA, Axis
from eatss.cards import GpuProfile
from eatss.choose.problem import choose_block
from eatss.lower.kernel.nodes import WarpAxis
from eatss.lower.pieces import LoopMember, NameTable, Piece
from eatss.lower.recipe import CodegenOptions, NamedThreads
from eatss.plan.shares import block_along, widening
from eatss.polyhedral.expression import Combiner
from eatss.program import Apply, Constant, IntExpr, Name, Operator
from eatss.program.expression import OwnSizes, SizePairs
from eatss.program.linear import Linear


@frozen
class MappedLoop:
    """A parallel loop whose tiles go to blocks and whose points go to threads.

    ``place`` says which points of a tile of ``tile`` points a thread has. ``cyclic`` threads
    take turns, so that neighbours have neighbouring points; others have their points in a row.
    ``origin``, ``thread`` and ``point`` are the C names. ``axis`` is
    that of the threads, ``grid`` that of the blocks, ``None`` where each block takes all tiles, one
    after the other. Loops may share an axis; of those that do the one with the greatest ``order``
    runs fastest.
    """

    name: str
    source_name: str
    tile: int
    threads: int
    axis: Axis
    grid: Axis | None
    order: int
    origin: str
    thread: str
    point: str
    cyclic: bool = True

    @property
    def points(self) -> int:
        """Points a thread has along the loop, at most."""
        return -(-self.tile // self.threads)

    @property
    def is_single(self) -> bool:
        """Whether a thread has one point, which is none of the block's own."""
        return self.points == 1 and (self.threads > 1 or self.tile > 1)

    @property
    def place(self) -> Linear:
        """The point that each thread has in each of its slots, which ``point`` counts."""
        apart, along = (1, self.threads) if self.cyclic else (self.points, 1)
        terms = {self.origin: 1}
        terms |= {self.thread: apart} if self.threads > 1 else {}
        terms |= {self.point: along} if self.points > 1 else {}
        return Linear(terms, 0)

    @property
    def first(self) -> Linear:
        """The first point that a thread has."""
        return Linear({name: c for name, c in self.place.terms.items() if name != self.point}, 0)

    @property
    def step(self) -> int:
        """How far apart points of a thread are that follow each other."""
        return self.place.terms.get(self.point, 1)


@frozen
class SerialTile:
    """A band loop that is cut into tiles of ``tile`` iterations inside a block.

    Where it is ``shared``, so many ``blocks`` along that axis of the grid take turns at its tiles.
    """

    name: str
    source_name: str
    tile: int
    origin: str
    shared: Axis | None = None
    blocks: int = 1


@frozen
class Mapping:
    """The layout of a piece.

    ``mapped`` are outermost first; a piece that runs in one thread has none. ``split`` is a loop
    of a sum that is spread likewise: each thread adds up its points, over ``chunks`` blocks. Blocks
    take turns at the tiles of a serial loop that is shared.
    What ``scan`` combines along the split loop is stored at each of its points; its tiles are
    blocks, the fastest along x, if it has an axis of the grid. Each lane then has vectors of
    ``scan_vector`` steps.
    ``warps`` are loops, all that have several threads, whose threads are boxes of lanes. Where
    lanes are ``interleaved`` warps are boxes along the two fastest loops, too, with lanes in the
    order of :mod:`eatss.analysis.variant`.
    """

    mapped: tuple[MappedLoop, ...]
    serial: tuple[SerialTile, ...]
    split: MappedLoop | None = None
    chunks: int = 1
    warps: tuple[WarpAxis, ...] = ()
    interleaved: bool = False
    scan: Combiner | None = None
    scan_vector: int = 1

    @property
    def spread(self) -> tuple[MappedLoop, ...]:
        """All loops that go to threads, the split one last."""
        return self.mapped if self.split is None else (*self.mapped, self.split)

    def loops_of(self, along: str, across: Names) -> tuple[MappedLoop, ...]:
        """Return the loops of whose points a thread has registers: the split one ``along`` it."""
        loops = self.spread if along else self.mapped
        return tuple(one for one in loops if one.name not in across)

    @property
    def shared(self) -> SerialTile | None:
        """The serial loop at whose tiles blocks take turns."""
        return next((tile for tile in self.serial if tile.shared is not None), None)

    @property
    def shares_sums(self) -> bool:
        """Whether several threads or blocks add up one sum."""
        return self.split is not None or self.shared is not None

    @property
    def blocks_of_sum(self) -> int:
        """Blocks that have parts of one sum, at most."""
        return self.chunks * (1 if self.shared is None else self.shared.blocks)

    @property
    def beside(self) -> int:
        """Sums that lie side by side in a warp: how far lanes of one that follow are apart."""
        if self.split is None:
            return 1
        return prod(self.block[: AXES.index(self.split.axis)])

    @property
    def sources(self) -> dict[str, str]:
        """What serial loops are called in the source, by their names in C."""
        return {tile.name: tile.source_name for tile in self.serial}

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block in x, y, z."""
        x, y, z = (prod(loop.threads for loop in self.threads_along(axis)) for axis in AXES)
        return x, y, z

    def threads_along(self, axis: Axis) -> tuple[MappedLoop, ...]:
        """Return the loops with several threads along an axis, the fastest last."""
        found = [loop for loop in self.spread if loop.axis == axis and loop.threads > 1]
        return tuple(sorted(found, key=lambda loop: loop.order))

    @property
    def with_threads(self) -> tuple[MappedLoop, ...]:
        """The loops with several threads, the fastest first."""
        return tuple(loop for axis in AXES for loop in reversed(self.threads_along(axis)))

    def blocks_along(self, axis: Axis) -> tuple[MappedLoop, ...]:
        """Return the loops whose tiles go to blocks along an axis, the fastest last.

        The split loop of a sum is not among them, that of a running sum is.
        """
        loops = self.mapped if self.scan is None else self.spread
        found = [loop for loop in loops if loop.grid == axis]
        return tuple(sorted(found, key=lambda loop: loop.order))

    @property
    def slowest(self) -> str | None:
        """The loop that blocks go along most slowly; none where they need each other."""
        axes = reversed(AXES) if self.blocks_of_sum == 1 and self.scan is None else ()
        return next((loop.source_name for axis in axes for loop in self.blocks_along(axis)), None)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block)

    @property
    def thread(self) -> IntExpr:
        """The number of a thread in its block."""
        terms, stride = list[IntExpr](), 1
        for axis, size in zip(AXES, self.block, strict=True):
            terms += [stride * Name(CUDA.thread + axis)] if size > 1 else []
            stride *= size
        return Apply(Operator.ADD, tuple(terms)) if len(terms) > 1 else [*terms, Constant(0)][0]

    @property
    def points(self) -> int:
        """Points a thread has, at most, those of the split loop not counted."""
        return prod(loop.points for loop in self.mapped)

    @property
    def tiles(self) -> SizePairs:
        """Tile sizes by the loops' names in the source."""
        mapped = tuple((loop.source_name, loop.tile) for loop in self.spread)
        return mapped + tuple((loop.source_name, loop.tile) for loop in self.serial)


def laid_out(
    item: LoopMember,
    tile: int,
    threads: int,
    axis: Axis,
    grid: Axis | None,
    names: NameTable,
    order: int,
) -> MappedLoop:
    """Return a loop that goes to blocks and threads, with names of its own in C."""
    return MappedLoop(
        name=item.name,
        source_name=item.source_name,
        tile=tile,
        threads=threads,
        axis=axis,
        grid=grid,
        order=order,
        origin=names.fresh(f"{item.name}0"),
        thread=names.fresh(f"t{item.name}"),
        point=names.fresh(f"r{item.name}"),
    )


def serial_tile(item: LoopMember, tile: int, names: NameTable) -> SerialTile:
    """Return a loop that a block runs in tiles, with a name of its origin in C."""
    origin = names.fresh(f"{item.name}0")
    return SerialTile(name=item.name, source_name=item.source_name, tile=tile, origin=origin)


def in_warps(mapping: Mapping, instruction: WarpInstruction, names: NameTable) -> Mapping:
    """Return a layout whose warps are boxes of lanes along the loops that have threads.

    Args:
        mapping: the layout.
        instruction: what warps are to multiply by.
        names: where C names come from.

    Returns:
        The layout as it was where its sizes do not fit the instruction.
    """
    loops = [loop for loop in mapping.mapped if loop.threads > 1]
    lanes, tiles = instruction.lanes, dict(mapping.tiles)
    rows_and_columns = [loop.source_name for loop in loops]
    threads = {loop.source_name: loop.threads for loop in loops}
    sums = [tile.source_name for tile in mapping.serial]
    if mapping.split is not None or not instruction.fits(rows_and_columns, sums, tiles, threads):
        return mapping
    warps = tuple(
        WarpAxis(
            loop=loop.name,
            thread=loop.thread,
            point=loop.point,
            lanes=count,
            warps=loop.threads // count,
            lane=names.fresh(f"lane_{loop.name}"),
            warp=names.fresh(f"warp_{loop.name}"),
        )
        for loop, count in zip(loops, lanes, strict=True)
    )
    return replace(mapping, warps=warps)


def free_axes(mapped: Iterable[MappedLoop]) -> list[Axis]:
    """Return the axes of the grid along which no blocks go."""
    taken = {one.grid for one in mapped}
    return [axis for axis in AXES if axis not in taken]


def with_shared_sum(mapping: Mapping, loop: str, blocks: int) -> Mapping | None:
    """Return a layout at whose tiles of a serial loop blocks take turns.

    Args:
        mapping: the layout.
        loop: the loop, by C name.
        blocks: how many take turns.

    Returns:
        ``None`` where the mapped loops leave no axis of the grid.
    """
    free = free_axes(mapping.mapped)
    if not free:
        return None
    serial = tuple(
        replace(tile, shared=free[0], blocks=blocks) if tile.name == loop else tile
        for tile in mapping.serial
    )
    return replace(mapping, serial=serial)


def widened(mapping: Mapping, lanes: int, most_threads: int) -> Mapping:
    """Return a layout with ``lanes`` times the threads along ``x``, and tiles as much longer.

    It is that of launches beside one whose sums are spread over lanes: their blocks are as large.
    """
    along_x = next((loop for loop in mapping.mapped if loop.axis == "x"), None)
    times = 1 if along_x is None else widening(mapping.threads, lanes, most_threads)
    if along_x is None or times == 1:
        return mapping
    wider = replace(along_x, threads=along_x.threads * times, tile=along_x.tile * times)
    return replace(
        mapping, mapped=tuple(wider if loop is along_x else loop for loop in mapping.mapped)
    )


def layout(
    piece: Piece,
    facts: KernelFacts,
    selection: Layout,
    profile: GpuProfile,
    options: CodegenOptions,
    names: NameTable,
) -> Mapping:
    """Return how a selected piece is laid out.

    Args:
        piece: the piece.
        facts: its kernel as analysed, with the selection's loop names.
        selection: tile sizes and threads.
        profile: the card, for its limits.
        options: sizes the user gave instead.
        names: where C names come from.

    Raises:
        InputError: ``EATSS-K001``, threads given by the user are along other loops;
            ``EATSS-K003``, they exceed the card; ``EATSS-K019``, tiles take sums in another order
            where that is to be kept.
    """
    tiles, block = sizes_of(facts, selection, profile, options)
    order = [name for name, _ in block]  # the last one along x
    axes = thread_axes([threads for _, threads in block])
    grid = grid_axes(len(block))
    mapped = []
    serial = []
    for loop in piece.band:
        source, tile = loop.source_name, tiles[loop.source_name]
        if source in order:
            at = order.index(source)
            spread = selection.spread is not None
            threads = block_along(block[at][1], tile, len(order), spread=spread)
            mapped.append(laid_out(loop, tile, threads, axes[at], grid[at], names, at))
        else:
            serial.append(serial_tile(loop, tile, names))
    return Mapping(mapped=tuple(mapped), serial=tuple(serial))


def sizes_of(
    facts: KernelFacts,
    selection: Layout,
    profile: GpuProfile,
    options: CodegenOptions,
) -> tuple[OwnSizes, SizePairs]:
    """Return tile sizes by loop, and the threads along each mapped loop, the one along x last.

    Raises:
        InputError: as :func:`layout`.
    """
    wanted = _Wanted(facts=facts, selection=selection, profile=profile, options=options)
    tiles = wanted.tiles()
    return tiles, wanted.block(tiles)


@frozen
class _Wanted:
    """What is selected for a kernel, and what the user wants instead."""

    facts: KernelFacts
    selection: Layout
    profile: GpuProfile
    options: CodegenOptions

    def tiles(self) -> OwnSizes:
        """Return the tile sizes, by loop."""
        asked, tiles = self.options.tiles_of(self.facts.name), dict(self.selection.tile_sizes)
        tiles |= {name: size for name, size in asked.items() if name in tiles}
        # loops whose tiles would take sums in another order are cut into single iterations
        for name in reordering_loops(self.facts) if self.options.strict_fp else ():
            if name in asked and tiles.get(name, 1) > 1:
                raise input_error(
                    "EATSS-K019",
                    f"tiles of {tiles[name]} iterations of loop '{name}' take sums in another "
                    "order",
                    hint=f"give {name}=1, or leave out --strict-fp",
                )
            if name in tiles:
                tiles[name] = 1
        return tiles

    def block(self, tiles: OwnSizes) -> SizePairs:
        """Return the threads along each mapped loop, the one along x last."""
        facts, selection = self.facts, self.selection
        order = their_names(mapped_loops(facts))
        given = next(
            (sizes for kernel, sizes in reversed(self.options.block) if kernel in ("", facts.name)),
            None,
        )
        if given is not None:
            return self._given_block(given, order)
        if tiles == dict(selection.tile_sizes) and order == tuple(dict(selection.block)):
            return _launchable(selection.block)
        # the last loop gets threads, and two long ones
        long = sorted(order[:-1], key=lambda name: (tiles[name], order.index(name)), reverse=True)
        with_threads = [n for n in order if n in (*long[: len(AXES) - 1], order[-1])]
        rank = {name: at for at, name in enumerate(with_threads)}
        loops = sorted(facts.loops, key=lambda loop: rank.get(loop.name, len(rank)))
        sizes = dict(choose_block(replace(facts, loops=tuple(loops)), tiles, self.profile))
        return _launchable(tuple((name, sizes.get(name, 1)) for name in order))

    def _given_block(self, given: Numbers | NamedThreads, order: Sequence[str]) -> SizePairs:
        """Return the threads along each mapped loop that the user gives, by loop or in order."""
        if isinstance(given, NamedThreads):
            sizes = dict(given.threads)
            fits = {*sizes} <= {*order}
        else:
            # of up to three loops each has an axis, and the user says which has x
            band = their_names(self.facts.parallel_loops)
            order = band if len(band) <= len(AXES) else order
            sizes = dict(zip(order[::-1], given[::-1], strict=False))
            fits = prod(given[: len(given) - len(sizes)]) == 1
        loops = ", ".join(order) or "none"
        if not fits:
            raise input_error(
                "EATSS-K001",
                f"--block gives threads to other loops than go to threads ({loops})",
                hint="give one size for each of them, the innermost last, or threads by loop",
            )
        block = tuple((name, sizes.get(name, 1)) for name in order)
        counts = [size for _, size in block]
        along_z = threads_along("z", counts, thread_axes(counts))
        most, most_along_z = self.profile.threads_per_block, CUDA.most_threads["z"]
        if min(counts, default=1) < 1 or prod(counts) > most or along_z > most_along_z:
            raise input_error(
                "EATSS-K003",
                f"a block of {' x '.join(map(str, counts))} = {prod(counts)} threads cannot "
                f"launch: {self.profile.title} has 1 to {most}, {most_along_z} along z",
                hint="give smaller sizes with --block",
            )
        return block


def _launchable(block: SizePairs) -> SizePairs:
    """Keep the threads along z within CUDA's limit; the points go to fewer threads."""
    sizes = [size for _, size in block]
    axes = thread_axes(sizes)
    while threads_along("z", sizes, axes) > CUDA.most_threads["z"]:
        at = next(at for at, axis in enumerate(axes) if axis == "z" and sizes[at] > 1)
        sizes[at] = -(-sizes[at] // 2)
    return tuple((name, size) for (name, _), size in zip(block, sizes, strict=True))

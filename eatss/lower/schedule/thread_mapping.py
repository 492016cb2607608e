"""From selected sizes to the layout of a piece: which loop goes to blocks, threads, tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NoReturn

from eatss.analysis import KernelFacts
from eatss.analysis.layout import (
    Layout,
    grid_axes,
    mapped_loops,
    reordering_loops,
    thread_axes,
    threads_along,
)
from eatss.base.diagnostics import SourceSpan, input_error
from eatss.base.frozen import frozen
from eatss.base.targets import AXES, CUDA
from eatss.cards import GpuProfile
from eatss.choose.problem import choose_block
from eatss.lower.recipe.options import CodegenOptions, NamedThreads
from eatss.lower.schedule.mapping import MappedLoop, Mapping, SerialTile, laid_out
from eatss.lower.schedule.names import NameTable
from eatss.lower.schedule.pieces import Piece


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
        InputError: ``EATSS-K001`` to ``EATSS-K004``: sizes given by the user name no loop, are
            not positive or exceed the card; ``EATSS-K020``: they take sums in another order
            where that is to be kept.
    """
    tiles, block = sizes_of(facts, selection, profile, options, piece.statements[0].span)
    order = [name for name, _ in block]  # the last one along x
    axes = thread_axes([threads for _, threads in block])
    grid = grid_axes(len(block))
    mapped: list[MappedLoop] = []
    serial: list[SerialTile] = []
    for loop in piece.band:
        source, tile = loop.source_name, tiles[loop.source_name]
        if source in order:
            at = order.index(source)
            threads = min(block[at][1], tile)
            mapped.append(laid_out(loop, tile, threads, axes[at], grid[at], names, at))
        else:
            origin = names.fresh(f"{loop.name}0")
            serial.append(SerialTile(name=loop.name, source_name=source, tile=tile, origin=origin))
    return Mapping(mapped=tuple(mapped), serial=tuple(serial))


def sizes_of(
    facts: KernelFacts,
    selection: Layout,
    profile: GpuProfile,
    options: CodegenOptions,
    span: SourceSpan | None = None,
) -> tuple[dict[str, int], tuple[tuple[str, int], ...]]:
    """Return tile sizes by loop, and the threads along each mapped loop, the one along x last.

    Raises:
        InputError: as :func:`layout`.
    """
    wanted = _Wanted(facts=facts, selection=selection, profile=profile, options=options, span=span)
    tiles = wanted.tiles()
    return tiles, wanted.block(tiles)


@frozen
class _Wanted:
    """What is selected for a kernel, and what the user wants instead."""

    facts: KernelFacts
    selection: Layout
    profile: GpuProfile
    options: CodegenOptions
    span: SourceSpan | None

    def _refuse(self, code: str, message: str, hint: str) -> NoReturn:
        raise input_error(code, message, span=self.span, hint=hint)

    def tiles(self) -> dict[str, int]:
        """Return the tile sizes, by loop."""
        tiles = dict(self.selection.tile_sizes)
        asked: set[str] = set()
        for kernel, sizes in self.options.tile_sizes:
            for name, size in sizes if kernel in ("", self.facts.name) else ():
                if size < 1:
                    self._refuse(
                        "EATSS-K002", f"the tile size of loop '{name}' is {size}",
                        "tile sizes are 1 or more",
                    )  # fmt: skip
                if name in tiles:
                    tiles[name] = size
                    asked.add(name)
                elif kernel:
                    self._refuse_loop(name)
        # loops whose tiles would take sums in another order are cut into single iterations
        for name in reordering_loops(self.facts) if self.options.strict_fp else ():
            if name in asked and tiles[name] > 1:
                self._refuse(
                    "EATSS-K020",
                    f"tiles of {tiles[name]} iterations of loop '{name}' take sums in another "
                    "order",
                    f"give {name}=1, or leave out --strict-fp",
                )
            if name in tiles:
                tiles[name] = 1
        return tiles

    def _refuse_loop(self, name: str) -> NoReturn:
        """Refuse a tile size of a loop that is not tiled."""
        facts = self.facts
        tiled = ", ".join(loop.name for loop in facts.loops) or "none"
        inner = {loop.name for loop in facts.inner_loops}
        why = "it runs inside a tile, as a whole" if name in inner else "there is no such loop"
        self._refuse(
            "EATSS-K001", f"kernel {facts.name} has no tile loop '{name}': {why}",
            f"its tile loops: {tiled}",
        )  # fmt: skip

    def block(self, tiles: dict[str, int]) -> tuple[tuple[str, int], ...]:
        """Return the threads along each mapped loop, the one along x last."""
        facts, selection = self.facts, self.selection
        order = [loop.name for loop in mapped_loops(facts)]
        given = next(
            (sizes for kernel, sizes in reversed(self.options.block) if kernel in ("", facts.name)),
            None,
        )
        if isinstance(given, NamedThreads):
            return self._named_block(given, order)
        if given is not None:
            # of up to three loops each has an axis, and the user says which has x
            band = [loop.name for loop in facts.parallel_loops]
            return self._given_block(given, band if len(band) <= len(AXES) else order)
        same = tiles == dict(selection.tile_sizes) and order == [n for n, _ in selection.block]
        if same:
            return _launchable(selection.block)
        # the last loop gets threads, and two long ones
        long = sorted(order[:-1], key=lambda name: (tiles[name], order.index(name)), reverse=True)
        with_threads = [n for n in order if n in (*long[: len(AXES) - 1], order[-1])]
        leading = [loop for name in with_threads for loop in facts.loops if loop.name == name]
        rest = [loop for loop in facts.loops if loop.name not in with_threads]
        reordered = replace(facts, loops=(*leading, *rest))
        sizes = dict(choose_block(reordered, tiles, self.profile))
        return _launchable(tuple((name, sizes.get(name, 1)) for name in order))

    def _named_block(
        self, given: NamedThreads, order: Sequence[str]
    ) -> tuple[tuple[str, int], ...]:
        sizes = dict(given.threads)
        for name in sizes:
            if name not in order:
                self._refuse(
                    "EATSS-K004",
                    f"--block gives threads to the loop '{name}', which does not go to threads",
                    f"the loops that do: {', '.join(order) or 'none'}",
                )
        block = tuple((name, sizes.get(name, 1)) for name in order)
        self._check_threads([size for _, size in block])
        self._check_z([size for _, size in block])
        return block

    def _given_block(
        self, given: tuple[int, ...], mapped: Sequence[str]
    ) -> tuple[tuple[str, int], ...]:
        self._check_threads(given)
        sizes = list(given[-len(mapped) :]) if mapped else []
        if prod(given[: len(given) - len(sizes)]) > 1:
            self._refuse(
                "EATSS-K004",
                f"--block gives {len(given)} sizes, but {len(mapped)} loops go to threads "
                f"({', '.join(mapped) or 'none'})",
                "give one size for each of them, the innermost last",
            )
        sizes = [1] * (len(mapped) - len(sizes)) + sizes
        self._check_z(sizes)
        return tuple(zip(mapped, sizes, strict=True))

    def _check_threads(self, sizes: Sequence[int]) -> None:
        threads, most = prod(sizes), self.profile.threads_per_block
        if any(size < 1 for size in sizes) or threads > most:
            self._refuse(
                "EATSS-K003",
                f"a block of {' x '.join(map(str, sizes))} = {threads} threads cannot launch: "
                f"{self.profile.title} has 1 to {most} threads a block",
                "give smaller sizes with --block",
            )

    def _check_z(self, sizes: Sequence[int]) -> None:
        """Refuse threads that z does not have; sizes are in the order of threads, x last."""
        along_z = threads_along("z", sizes, thread_axes(sizes))
        if along_z > CUDA.most_threads["z"]:
            self._refuse(
                "EATSS-K003",
                f"{along_z} threads along z cannot launch: CUDA allows {CUDA.most_threads['z']}",
                "give a smaller first size with --block",
            )


def _launchable(block: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Keep the threads along z within CUDA's limit; the points go to fewer threads."""
    sizes = [size for _, size in block]
    axes = thread_axes(sizes)
    while threads_along("z", sizes, axes) > CUDA.most_threads["z"]:
        at = next(at for at, axis in enumerate(axes) if axis == "z" and sizes[at] > 1)
        sizes[at] = -(-sizes[at] // 2)
    return tuple((name, size) for (name, _), size in zip(block, sizes, strict=True))

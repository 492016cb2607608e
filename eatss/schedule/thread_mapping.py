"""From selected sizes to the layout of a piece: which loop goes to blocks, threads, tiles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

from eatss.analysis import KernelFacts
from eatss.analysis.layout import Layout
from eatss.analysis.mapping import (
    grid_axes,
    mapped_loops,
    reordering_loops,
    thread_axes,
    threads_along,
)
from eatss.diagnostics import SourceSpan, input_error
from eatss.gpu import GpuProfile
from eatss.model.build import choose_block
from eatss.recipe.options import CodegenOptions, NamedThreads
from eatss.schedule.mapping import MappedLoop, Mapping, SerialTile
from eatss.schedule.names import NameTable
from eatss.schedule.pieces import Piece
from eatss.targets import AXES, CUDA


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
        origin = names.fresh(f"{loop.name}0")
        if source not in order:
            serial.append(SerialTile(name=loop.name, source_name=source, tile=tile, origin=origin))
            continue
        at = order.index(source)
        mapped.append(
            MappedLoop(
                name=loop.name,
                source_name=source,
                tile=tile,
                threads=min(block[at][1], tile),
                axis=axes[at],
                grid=grid[at],
                order=at,
                origin=origin,
                thread=names.fresh(f"t{loop.name}"),
                point=names.fresh(f"r{loop.name}"),
            )
        )
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
    tiles = _tiles(facts, selection, options, span)
    return tiles, _block(facts, selection, tiles, profile, options, span)


def _launchable(block: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Keep the threads along z within CUDA's limit; the points go to fewer threads."""
    sizes = [size for _, size in block]
    axes = thread_axes(sizes)
    while threads_along("z", sizes, axes) > CUDA.most_threads["z"]:
        at = next(at for at, axis in enumerate(axes) if axis == "z" and sizes[at] > 1)
        sizes[at] = -(-sizes[at] // 2)
    return tuple((name, size) for (name, _), size in zip(block, sizes, strict=True))


def _tiles(
    facts: KernelFacts,
    selection: Layout,
    options: CodegenOptions,
    span: SourceSpan | None,
) -> dict[str, int]:
    tiles = dict(selection.tile_sizes)
    asked: set[str] = set()
    for kernel, sizes in options.tile_sizes:
        if kernel not in ("", facts.name):
            continue
        for name, size in sizes:
            if size < 1:
                raise input_error(
                    "EATSS-K002", f"the tile size of loop '{name}' is {size}", span=span,
                    hint="tile sizes are 1 or more",
                )  # fmt: skip
            if name in tiles:
                tiles[name] = size
                asked.add(name)
            elif kernel:
                raise no_such_loop(name, facts, span)
    if options.strict_fp:
        _keep_order(tiles, asked, facts, span)
    return tiles


def _keep_order(
    tiles: dict[str, int], asked: Collection[str], facts: KernelFacts, span: SourceSpan | None
) -> None:
    """Cut the loops whose tiles would take sums in another order into single iterations."""
    for name in reordering_loops(facts):
        if name in asked and tiles[name] > 1:
            raise input_error(
                "EATSS-K020",
                f"tiles of {tiles[name]} iterations of loop '{name}' take sums in another order",
                span=span,
                hint=f"give {name}=1, or leave out --strict-fp",
            )
        if name in tiles:
            tiles[name] = 1


def no_such_loop(name: str, facts: KernelFacts, span: SourceSpan | None) -> Exception:
    """Return the error for a tile size of a loop that is not tiled."""
    tiled = ", ".join(loop.name for loop in facts.loops) or "none"
    inner = {loop.name for loop in facts.inner_loops}
    why = "it runs inside a tile, as a whole" if name in inner else "there is no such loop"
    return input_error(
        "EATSS-K001",
        f"kernel {facts.name} has no tile loop '{name}': {why}",
        span=span,
        hint=f"its tile loops: {tiled}",
    )


def _block(
    facts: KernelFacts,
    selection: Layout,
    tiles: dict[str, int],
    profile: GpuProfile,
    options: CodegenOptions,
    span: SourceSpan | None,
) -> tuple[tuple[str, int], ...]:
    """Return the threads along each mapped loop, the one along x last."""
    order = [loop.name for loop in mapped_loops(facts)]
    given = next(
        (sizes for kernel, sizes in reversed(options.block) if kernel in ("", facts.name)), None
    )
    if isinstance(given, NamedThreads):
        return _named_block(given, order, profile, span)
    if given is not None:
        # of up to three loops each has an axis, and the user says which has x
        band = [loop.name for loop in facts.parallel_loops]
        return _given_block(given, band if len(band) <= len(AXES) else order, profile, span)
    same = tiles == dict(selection.tile_sizes) and order == [n for n, _ in selection.block]
    if same:
        return _launchable(selection.block)
    with_threads = _with_threads(order, tiles)
    leading = [loop for name in with_threads for loop in facts.loops if loop.name == name]
    rest = [loop for loop in facts.loops if loop.name not in with_threads]
    reordered = replace(facts, loops=(*leading, *rest))
    sizes = dict(choose_block(reordered, tiles, profile))
    return _launchable(tuple((name, sizes.get(name, 1)) for name in order))


def _with_threads(order: Sequence[str], tiles: dict[str, int]) -> list[str]:
    """Return the loops that get threads where none are chosen: the last, and two long ones."""
    longest = sorted(order[:-1], key=lambda name: (tiles[name], order.index(name)), reverse=True)
    return [name for name in order if name in (*longest[: len(AXES) - 1], order[-1])]


def _named_block(
    given: NamedThreads, order: Sequence[str], profile: GpuProfile, span: SourceSpan | None
) -> tuple[tuple[str, int], ...]:
    sizes = dict(given.threads)
    for name in sizes:
        if name not in order:
            raise input_error(
                "EATSS-K004",
                f"--block gives threads to the loop '{name}', which does not go to threads",
                span=span,
                hint=f"the loops that do: {', '.join(order) or 'none'}",
            )
    block = tuple((name, sizes.get(name, 1)) for name in order)
    _check_threads([size for _, size in block], profile, span)
    _check_z([size for _, size in block], span)
    return block


def _given_block(
    given: tuple[int, ...], mapped: Sequence[str], profile: GpuProfile, span: SourceSpan | None
) -> tuple[tuple[str, int], ...]:
    _check_threads(given, profile, span)
    sizes = list(given[-len(mapped) :]) if mapped else []
    if prod(given[: len(given) - len(sizes)]) > 1:
        raise input_error(
            "EATSS-K004",
            f"--block gives {len(given)} sizes, but {len(mapped)} loops go to threads "
            f"({', '.join(mapped) or 'none'})",
            span=span,
            hint="give one size for each of them, the innermost last",
        )
    sizes = [1] * (len(mapped) - len(sizes)) + sizes
    _check_z(sizes, span)
    return tuple(zip(mapped, sizes, strict=True))


def _check_threads(sizes: Sequence[int], profile: GpuProfile, span: SourceSpan | None) -> None:
    threads = prod(sizes)
    if any(size < 1 for size in sizes) or threads > profile.threads_per_block:
        raise input_error(
            "EATSS-K003",
            f"a block of {' x '.join(map(str, sizes))} = {threads} threads cannot launch: "
            f"{profile.title} has 1 to {profile.threads_per_block} threads a block",
            span=span,
            hint="give smaller sizes with --block",
        )


def _check_z(sizes: Sequence[int], span: SourceSpan | None) -> None:
    """Refuse threads that z does not have; ``sizes`` are in the order of threads, x last."""
    along_z = threads_along("z", sizes, thread_axes(sizes))
    if along_z > CUDA.most_threads["z"]:
        raise input_error(
            "EATSS-K003",
            f"{along_z} threads along z cannot launch: CUDA allows {CUDA.most_threads['z']}",
            span=span,
            hint="give a smaller first size with --block",
        )

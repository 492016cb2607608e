"""From selected sizes to the layout of a piece: which loop goes to blocks, threads, tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from eatss.analysis import KernelFacts
from eatss.codegen.errors import input_error_at
from eatss.codegen.mapping import AXES, MappedLoop, Mapping, SerialTile
from eatss.codegen.names import NameTable
from eatss.codegen.options import CodegenOptions
from eatss.codegen.pieces import Piece
from eatss.diagnostics import SourceSpan
from eatss.gpu import GpuProfile
from eatss.model import KernelSelection
from eatss.model.block import choose_block
from eatss.model.build import MAX_BLOCK_LOOPS

_MAX_Z = 64  # CUDA's limit on the threads of a block along z


def layout(
    piece: Piece,
    facts: KernelFacts,
    selection: KernelSelection,
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
            not positive or exceed the card.
    """
    span = piece.statements[0].span
    tiles = _tiles(facts, selection, options, span)
    mapped_names = _mapped(facts)
    block = _launchable(_block(facts, selection, tiles, mapped_names, profile, options, span))
    order = [name for name, _ in block]  # the last one along x
    axes = dict(zip(reversed(order), AXES, strict=False))
    mapped: list[MappedLoop] = []
    serial: list[SerialTile] = []
    for loop in piece.band:
        source, tile = loop.source_name, tiles[loop.source_name]
        origin = names.fresh(f"{loop.name}0")
        if source not in axes:
            serial.append(SerialTile(name=loop.name, source_name=source, tile=tile, origin=origin))
            continue
        mapped.append(
            MappedLoop(
                name=loop.name,
                source_name=source,
                tile=tile,
                threads=min(dict(block)[source], tile),
                axis=axes[source],
                grid=axes[source],
                origin=origin,
                thread=names.fresh(f"t{loop.name}"),
                point=names.fresh(f"r{loop.name}"),
            )
        )
    return Mapping(mapped=tuple(mapped), serial=tuple(serial))


def _launchable(block: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Keep the threads along z within CUDA's limit; the points go to fewer threads."""
    if len(block) < 3 or block[0][1] <= _MAX_Z:
        return block
    name, size = block[0]
    while size > _MAX_Z:
        size = -(-size // 2)
    return ((name, size), *block[1:])


def _mapped(facts: KernelFacts) -> tuple[str, ...]:
    """Return the loops that go to blocks: the leading parallel ones, three at most."""
    names: list[str] = []
    for loop in facts.loops[:MAX_BLOCK_LOOPS]:
        if not loop.parallel:
            break
        names.append(loop.name)
    return tuple(names)


def _tiles(
    facts: KernelFacts,
    selection: KernelSelection,
    options: CodegenOptions,
    span: SourceSpan,
) -> dict[str, int]:
    tiles = dict(selection.tile_sizes)
    for kernel, sizes in options.tile_sizes:
        if kernel not in ("", facts.name):
            continue
        for name, size in sizes:
            if size < 1:
                raise input_error_at(
                    "EATSS-K002", f"the tile size of loop '{name}' is {size}", span=span,
                    hint="tile sizes are 1 or more",
                )  # fmt: skip
            if name in tiles:
                tiles[name] = size
            elif kernel:
                raise no_such_loop(name, facts, span)
    return tiles


def no_such_loop(name: str, facts: KernelFacts, span: SourceSpan | None) -> Exception:
    """Return the error for a tile size of a loop that is not tiled."""
    tiled = ", ".join(loop.name for loop in facts.loops) or "none"
    inner = {loop.name for loop in facts.inner_loops}
    why = "it runs inside a tile, as a whole" if name in inner else "there is no such loop"
    return input_error_at(
        "EATSS-K001",
        f"kernel {facts.name} has no tile loop '{name}': {why}",
        span=span,
        hint=f"its tile loops: {tiled}",
    )


def _block(
    facts: KernelFacts,
    selection: KernelSelection,
    tiles: dict[str, int],
    mapped: Sequence[str],
    profile: GpuProfile,
    options: CodegenOptions,
    span: SourceSpan,
) -> tuple[tuple[str, int], ...]:
    """Return the threads along each mapped loop, the one along x last."""
    given = next(
        (sizes for kernel, sizes in reversed(options.block) if kernel in ("", facts.name)), None
    )
    if given is not None:
        return _given_block(given, mapped, profile, span)
    cma = facts.cma_loop
    order = [name for name in mapped if name != cma]
    if cma is not None and cma in mapped:
        order.append(cma)  # neighbours in memory go to neighbouring threads
    same = tiles == dict(selection.tile_sizes) and order == [n for n, _ in selection.block]
    if same:
        return selection.block
    leading = [
        facts_loop for name in order for facts_loop in facts.loops if facts_loop.name == name
    ]
    rest = [loop for loop in facts.loops if loop.name not in order]
    reordered = replace(facts, loops=(*leading, *rest))
    return choose_block(reordered, tiles, profile)


def _given_block(
    given: tuple[int, ...], mapped: Sequence[str], profile: GpuProfile, span: SourceSpan
) -> tuple[tuple[str, int], ...]:
    threads = prod(given)
    if any(size < 1 for size in given) or threads > profile.threads_per_block:
        raise input_error_at(
            "EATSS-K003",
            f"a block of {' x '.join(map(str, given))} = {threads} threads cannot launch: "
            f"{profile.title} has 1 to {profile.threads_per_block} threads a block",
            span=span,
            hint="give smaller sizes with --block",
        )
    sizes = list(given[-len(mapped) :]) if mapped else []
    if prod(given[: len(given) - len(sizes)]) > 1:
        raise input_error_at(
            "EATSS-K004",
            f"--block gives {len(given)} sizes, but {len(mapped)} loops go to threads "
            f"({', '.join(mapped) or 'none'})",
            span=span,
            hint="give one size for each of them, the innermost last",
        )
    sizes = [1] * (len(mapped) - len(sizes)) + sizes
    if len(sizes) == 3 and sizes[0] > _MAX_Z:
        raise input_error_at(
            "EATSS-K003",
            f"{sizes[0]} threads along z cannot launch: CUDA allows 64",
            span=span,
            hint="give a smaller first size with --block",
        )
    return tuple(zip(mapped, sizes, strict=True))

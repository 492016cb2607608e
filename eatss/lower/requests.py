"""What the user asks for, checked against the program: sizes, blocks, placements, a selection."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from eatss.analysis.layout import GridSplitK, Layout
from eatss.analysis.variant import MAX_STAGES
from eatss.base.diagnostics import input_error
from eatss.base.options import changed
from eatss.base.targets import CUDA
from eatss.cards import GpuProfile
from eatss.choose.options import SelectOptions, wrong
from eatss.frontend.options import Reading
from eatss.lower.recipe import (
    Block,
    CodegenOptions,
    CodeOptions,
    CodeRequest,
    KernelRecipe,
    NamedThreads,
    Recipe,
    Tiles,
)

if TYPE_CHECKING:
    from eatss.analysis import KernelFacts
    from eatss.choose import KernelSelection, Selection
    from eatss.polyhedral.scop import Scop


MAX_TILE = 2**20
"""The largest tile size of a loop; an index within a tile stays far from 32 bits."""

_PREFIX = "kernel"
_MOST_THREADS = 1024
_LANES = (1, 2, 4, 8, 16, 32)
"""Threads that shuffles add up over."""

_AXES = 3


def checked_options(
    facts: Sequence[KernelFacts],
    scops: Sequence[Scop],
    wanted: CodeRequest,
    shared_limit_bytes: int | None = None,
) -> CodegenOptions:
    """Return the options of code generation.

    A kernel may be called ``kernel0`` or ``k0``. ``shared_limit_bytes`` bounds the shared memory of
    a block, ``None`` for the card's.

    Raises:
        InputError: ``EATSS-K001`` a tile size for a loop that is not tiled, ``EATSS-K002`` for an
            impossible one, ``EATSS-K003`` for a block that is no block, ``EATSS-K005`` a
            placement of something that is not there, ``EATSS-K013`` a kernel that is not there,
            ``EATSS-K020`` blocks that share a sum whose order is to be kept.
    """
    if wanted.index_bits not in (None, 32, 64):
        raise wrong("index_bits", wanted.index_bits, "32, 64, or None")
    if wanted.stages is not None and not 1 <= wanted.stages <= MAX_STAGES:
        raise wrong("stages", wanted.stages, f"a number from 1 to {MAX_STAGES}, or None")
    kernels = _Kernels(facts)
    plain = {one.name: getattr(wanted, one.name) for one in fields(CodeOptions)}
    return CodegenOptions(
        **plain | {"instructions": tuple(plain["instructions"])},
        shared_limit_bytes=shared_limit_bytes,
        tile_sizes=tuple(kernels.tile_sizes(wanted.tiles or {})),
        block=tuple(kernels.blocks(wanted.block)),
        placements=tuple(_placements(wanted.placements or {}, scops)),
        shared_sums=tuple(kernels.shared_sums(wanted)),
    )


def tile_sizes_of(tiles: Tiles, facts: Sequence[KernelFacts]) -> dict[str, dict[str, int]]:
    """Return the tile sizes that are asked for, by kernel and loop.

    Raises:
        InputError: as :func:`checked_options`.
    """
    return {name: dict(sizes) for name, sizes in _Kernels(facts).tile_sizes(tiles)}


def blocks_of(
    block: Block, facts: Sequence[KernelFacts]
) -> dict[str, tuple[int, ...] | dict[str, int]]:
    """Return the threads that are asked for by kernel, ``""`` for every other one.

    They are in the order of the loops, or by loop.

    Raises:
        InputError: as :func:`checked_options`.
    """
    return {
        name: dict(sizes.threads) if isinstance(sizes, NamedThreads) else sizes
        for name, sizes in _Kernels(facts).blocks(block)
    }


def check_decided(
    made: Selection | Recipe,
    facts: Sequence[KernelFacts],
    scops: Sequence[Scop],
    profile: GpuProfile,
    dtype: str,
) -> None:
    """Refuse a selection or recipe of other kernels, another card or type, or of no launch.

    Raises:
        InputError: ``EATSS-K011``; as :func:`checked_options` for what the user asked for.
    """
    for why in _misfits(made, facts, profile, dtype):
        raise input_error(
            "EATSS-K011",
            f"what was decided does not belong to this program: {why}",
            hint="select again (eatss select --format json), or write a recipe (--save-recipe)",
        )
    if isinstance(made, Recipe):
        _check_options(made.options, facts, scops)


def choices(
    wanted: CodeRequest, choosing: SelectOptions, selection: object, reading: Reading
) -> tuple[str, ...]:
    """Return the names of what the user chose and a recipe decides.

    Args:
        wanted: choices about the code.
        choosing: choices about the sizes; how long may be looked for them is none.
        selection: sizes, if they are given.
        reading: how the source is read; only what is computed anew is a choice.
    """
    sizes = () if selection is None else ("selection",)
    anew = ("recompute",) if reading.recompute != "auto" else ()
    return (*changed(wanted), *sizes, *changed(choosing, but=("target", "timeout_s")), *anew)


def check_alone(recipe: Recipe | None, given: Sequence[str]) -> None:
    """Refuse choices beside a recipe, which has all of them.

    Args:
        recipe: everything that is decided, if it is.
        given: the choices, as the user spells them.

    Raises:
        InputError: ``EATSS-C012``.
    """
    if recipe is not None and given:
        raise input_error(
            "EATSS-C012",
            f"{', '.join(given)} beside a recipe: it has everything that is decided",
            hint="leave them out, or edit the recipe",
        )


def _misfits(
    made: Selection | Recipe, facts: Sequence[KernelFacts], profile: GpuProfile, dtype: str
) -> Iterator[str]:
    """Yield why what was decided cannot be of a program."""
    if made.gpu != profile.name:
        yield f"it is for {made.gpu}, and the code is for {profile.name}"
    if made.dtype != dtype:
        yield f"it is for {made.dtype}, and the source computes in {dtype}"
    kernels: Sequence[KernelSelection | KernelRecipe] = made.kernels
    here, there = [one.name for one in facts], [one.name for one in kernels]
    if here != there:
        ours, theirs = (", ".join(found) or "none" for found in (here, there))
        yield f"it has the kernels {theirs}, and the source has {ours}"
    for at, (kernel, decided) in enumerate(zip(facts, kernels, strict=True)):
        yield from (f"its {kernel.name} {why}" for why in _of_kernel(kernel, decided))
        if not _has_rows(decided, here[at:], profile):
            yield f"its {kernel.name} takes rows through other kernels, or in blocks of no launch"
    limit = made.options.shared_limit_bytes if isinstance(made, Recipe) else None
    most = profile.shared_per_block_optin_bytes
    if limit is not None and not 0 <= limit <= most:
        yield f"it allows {limit} bytes of shared memory, and a block may have {most}"


def _of_kernel(kernel: KernelFacts, decided: KernelSelection | KernelRecipe) -> Iterator[str]:
    """Yield why what was decided cannot be of a kernel."""
    from eatss.lower.instructions import INSTRUCTIONS  # noqa: PLC0415 - what is kept needs none

    loops = tuple(loop.name for loop in kernel.loops)
    parallel = tuple(loop.name for loop in kernel.parallel_loops)
    sizes, threads = dict(decided.tile_sizes), dict(decided.block)
    texts = {(one.array, one.access) for one in kernel.references}
    warps, spread, shared = decided.warps, decided.spread, decided.shared_sum
    own = decided.statements == kernel.statements
    if not isinstance(decided, KernelRecipe):
        there = decided.host_loops, decided.loops, decided.parallel
        own = own and there == (kernel.host_loops, loops, parallel)
    if not own or not {(one.array, one.access) for one in decided.references} <= texts:
        yield "has other statements, loops or references than the source"
    if (tuple(sizes) != loops and (sizes or parallel)) or not {*threads} <= {*loops}:
        yield "does not have a tile size for each loop, or has threads along others"
    if decided.host_loop not in (None, *loops) or (shared and shared.loop not in sizes):
        yield "runs another loop on the host, or shares a sum over another, than the source has"
    tiles = [*sizes.values(), *([spread.tile] if spread else ())]
    chunks = [*([spread.chunks] if spread else ()), *([shared.blocks] if shared else ())]
    for what, numbers, most in (
        ("tiles", tiles, MAX_TILE),
        ("threads", [*threads.values()], _MOST_THREADS),
        ("blocks that share a sum", chunks, CUDA.most_blocks["y"]),
        ("buffers", [decided.stages, *([warps.stages] if warps else ())], MAX_STAGES),
    ):
        if not all(1 <= number <= most for number in numbers):
            yield f"has {what} that are not from 1 to {most}"
    if spread and (spread.lanes not in _LANES or shared):
        yield f"spreads sums over {spread.lanes} threads that do not go with a launch"
    name = warps and warps.instruction
    if name and not (name in INSTRUCTIONS and INSTRUCTIONS[name].lanes):
        yield f"computes products by {name}, which is no instruction of warps"


def _has_rows(decided: Layout, following: Sequence[str], profile: GpuProfile) -> bool:
    """Tell whether a kernel may become one with those behind it; ``following`` begins with it."""
    block = decided.row_block
    return block is None or (
        len(block.kernels) > 0
        and block.kernels == tuple(following[: len(block.kernels)])
        and 1 <= block.rows * block.lanes <= profile.threads_per_block
        and block.lanes & (block.lanes - 1) == 0 < min(block.lanes, block.loops)
        and 1 <= block.tile <= MAX_TILE
        and block.tile % block.lanes == 0
    )


def _check_options(
    options: CodegenOptions, facts: Sequence[KernelFacts], scops: Sequence[Scop]
) -> None:
    """Refuse options of a recipe as :func:`checked_options` refuses those of a user."""
    tiles: dict[str, int | dict[str, int]] = {}
    for kernel, sizes in options.tile_sizes:
        if kernel:
            tiles[kernel] = dict(sizes)
        else:
            tiles.update(sizes)
    blocks: list[Block] = [()]
    for kernel, block in options.block:
        threads = dict(block.threads) if isinstance(block, NamedThreads) else block
        blocks.append({kernel: threads} if kernel else threads)
    for one in blocks:
        wanted = CodeRequest(
            tiles=tiles,
            block=one,
            placements=dict(options.placements),
            index_bits=options.index_bits,
            stages=options.stages,
            share={one.loop: one.blocks for _, one in options.shared_sums if not one.streamed},
            stream={one.loop: one.blocks for _, one in options.shared_sums if one.streamed},
            strict_fp=options.strict_fp,
        )
        checked_options(facts, scops, wanted)


def _is_whole(number: object, least: int, most: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= most


class _Kernels:
    """The kernels of a program, for which the user asks for something."""

    def __init__(self, facts: Sequence[KernelFacts]) -> None:
        self.facts = {kernel.name: kernel for kernel in facts}

    def named(self, name: str) -> KernelFacts:
        """Return a kernel, which may be called ``kernel0`` or ``k0``."""
        full = _PREFIX + name[1:] if name[:1] == "k" and name[1:].isdecimal() else name
        if full in self.facts:
            return self.facts[full]
        raise input_error(
            "EATSS-K013",
            f"there is no kernel '{name}'",
            hint=f"the kernels: {', '.join(self.facts) or 'none'}",
        )

    def having(self, loop: str, own: KernelFacts | None = None) -> list[KernelFacts]:
        """Return the kernels that tile a loop, of all or of one; an error if there are none."""
        asked = self.facts.values() if own is None else [own]
        having = [one for one in asked if loop in (tiled.name for tiled in one.loops)]
        if having:
            return having
        why = "there is no such loop"
        if any(loop == found.name for kernel in asked for found in kernel.inner_loops):
            why = "it runs inside a tile, as a whole"
        elif any(loop in kernel.host_loops for kernel in asked):
            why = "it stays on the host"
        tiled = dict.fromkeys(found.name for kernel in asked for found in kernel.loops)
        subject = "no kernel has a" if own is None else f"{own.name} has no"
        raise input_error(
            "EATSS-K001",
            f"{subject} tile loop '{loop}': {why}",
            hint=f"the tile loops: {', '.join(tiled) or 'none'}",
        )

    def tile_sizes(self, tiles: Tiles) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
        """Yield the sizes of each kernel; those for the kernel win over those for all."""
        given: dict[str, dict[str, int]] = {name: {} for name in self.facts}
        for key, size in tiles.items():
            if not isinstance(size, Mapping):
                for kernel in self.having(key):
                    given[kernel.name][key] = _size(key, size)
        for key, sizes in tiles.items():
            if isinstance(sizes, Mapping):
                kernel = self.named(key)
                for loop, size in sizes.items():
                    self.having(loop, kernel)
                    given[kernel.name][loop] = _size(loop, size)
        yield from ((name, tuple(chosen.items())) for name, chosen in given.items() if chosen)

    def blocks(self, block: Block) -> Iterator[tuple[str, tuple[int, ...] | NamedThreads]]:
        """Yield the threads of kernels: for all of them, by loop for all, then for one kernel."""
        if not isinstance(block, Mapping):
            if block:
                yield "", _threads(block)
            return
        kernels: list[tuple[str, tuple[int, ...] | NamedThreads]] = []
        loops: dict[str, int] = {}
        for key, sizes in block.items():
            if isinstance(sizes, int):
                loops[key] = sizes
            elif isinstance(sizes, Mapping):
                kernels.append((self.named(key).name, _named(sizes)))
            elif key:
                kernels.append((self.named(key).name, _threads(sizes)))
            else:
                yield "", _threads(sizes)
        having = [kernel.name for loop in loops for kernel in self.having(loop)]
        for name, kernel in self.facts.items():
            if name in having:
                own = {loop.name for loop in kernel.loops}
                yield name, _named({loop: size for loop, size in loops.items() if loop in own})
        yield from kernels

    def shared_sums(self, wanted: CodeRequest) -> Iterator[tuple[str, GridSplitK]]:
        """Yield how blocks share the sum of each kernel that has one of the loops."""
        found: dict[str, GridSplitK] = {}
        asked = [(*one, False) for one in (wanted.share or {}).items()]
        asked += [(*one, True) for one in (wanted.stream or {}).items()]
        most = CUDA.most_blocks["y"]
        for loop, blocks, streamed in asked:
            if not _is_whole(blocks, 1, most):
                raise input_error(
                    "EATSS-C004",
                    f"the sum over '{loop}' is to be shared by {blocks!r} blocks",
                    hint=f"give a whole number from 1 to {most}",
                )
            if wanted.strict_fp and blocks > 1:
                raise input_error(
                    "EATSS-K020",
                    f"{blocks} blocks that share the sum over '{loop}' take it in another order",
                    hint=f"leave out {'--stream' if streamed else '--share'} or --strict-fp",
                )
            for kernel in self.having(loop):
                before = found.get(kernel.name)
                if before is not None and min(before.blocks, blocks) > 1:
                    raise input_error(
                        "EATSS-C004",
                        f"{kernel.name} is to share its sum over '{before.loop}' and '{loop}'",
                        hint="give one of them",
                    )
                if before is None or blocks > 1:
                    found[kernel.name] = GridSplitK(loop=loop, blocks=blocks, streamed=streamed)
        yield from found.items()


def _size(loop: str, size: object) -> int:
    if isinstance(size, int) and _is_whole(size, 1, MAX_TILE):
        return size
    raise input_error(
        "EATSS-K002",
        f"the tile size of loop '{loop}' is {size!r}",
        hint=f"tile sizes are whole numbers from 1 to {MAX_TILE}",
    )


def _named(sizes: Mapping[str, int]) -> NamedThreads:
    """Return threads by loop; those that no block has are refused."""
    for size in sizes.values():
        _threads((size,))
    return NamedThreads(threads=tuple(sizes.items()))


def _threads(sizes: Sequence[int]) -> tuple[int, ...]:
    if 1 <= len(sizes) <= _AXES and all(_is_whole(size, 1, sys.maxsize) for size in sizes):
        return tuple(sizes)
    raise input_error(
        "EATSS-K003",
        f"a block of {', '.join(map(str, sizes)) or 'nothing'} is no block of threads",
        hint="give one to three whole numbers of 1 or more, the innermost loop last",
    )


def _placements(
    placements: Mapping[str, str], scops: Sequence[Scop]
) -> Iterator[tuple[str, Literal["l1", "shared"]]]:
    known: set[str] = set()
    for scop in scops:
        for statement in scop.statements:
            known.update(access.array for access in statement.accesses)
            known.update(_compact(access.text) for access in statement.accesses)
    for name, memory in placements.items():
        if _compact(name) not in known:
            raise input_error(
                "EATSS-K005",
                f"there is no reference '{name}' to place",
                hint="name an array, or a reference as the source spells it, like 'A[i][k]'",
            )
        if memory not in ("l1", "shared"):
            raise input_error(
                "EATSS-C004", f"the placement of '{name}' is {memory!r}", hint="give l1 or shared"
            )
        yield name, "shared" if memory == "shared" else "l1"


def _compact(text: str) -> str:
    return "".join(text.split())

"""What the user asks for, checked against the program: sizes, blocks, placements, a selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from eatss.analysis.layout import Layout, SharedSum, WarpUse
from eatss.analysis.structure import MAX_STAGES
from eatss.diagnostics import InputError, input_error
from eatss.frontend.options import Reading
from eatss.gpu import GpuProfile
from eatss.model.options import SelectOptions
from eatss.options import changed
from eatss.recipe.options import (
    Block,
    CodegenOptions,
    CodeOptions,
    CodeRequest,
    NamedThreads,
    Tiles,
)
from eatss.recipe.recipe import KernelRecipe, Recipe
from eatss.targets import CUDA

if TYPE_CHECKING:
    from eatss.analysis import KernelFacts
    from eatss.model import KernelSelection, Selection
    from eatss.scops import Scop

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
    names = [kernel.name for kernel in facts]
    if wanted.index_bits not in (None, 32, 64):
        raise input_error(
            "EATSS-C004", f"index_bits is {wanted.index_bits!r}", hint="give 32, 64, or None"
        )
    if wanted.stages is not None and not 1 <= wanted.stages <= MAX_STAGES:
        raise input_error(
            "EATSS-C004",
            f"stages is {wanted.stages!r}",
            hint=f"give a number from 1 to {MAX_STAGES}, or None",
        )
    plain = {one.name: getattr(wanted, one.name) for one in fields(CodeOptions)}
    return CodegenOptions(
        **plain | {name: tuple(plain[name]) for name in ("transformations", "instructions")},
        shared_limit_bytes=shared_limit_bytes,
        tile_sizes=tuple(_tile_sizes(wanted.tiles or {}, facts, names)),
        block=tuple(_blocks(wanted.block, facts, names)),
        placements=tuple(_placements(wanted.placements or {}, scops)),
        shared_sums=tuple(_shared_sums(wanted, facts)),
    )


def tile_sizes_of(tiles: Tiles, facts: Sequence[KernelFacts]) -> dict[str, dict[str, int]]:
    """Return the tile sizes that are asked for, by kernel and loop.

    Raises:
        InputError: as :func:`checked_options`.
    """
    names = [kernel.name for kernel in facts]
    return {name: dict(sizes) for name, sizes in _tile_sizes(tiles, facts, names)}


def blocks_of(
    block: Block, facts: Sequence[KernelFacts]
) -> dict[str, tuple[int, ...] | dict[str, int]]:
    """Return the threads that are asked for by kernel, ``""`` for every other one.

    They are in the order of the loops, or by loop.

    Raises:
        InputError: as :func:`checked_options`.
    """
    names = [kernel.name for kernel in facts]
    return {
        name: dict(sizes.threads) if isinstance(sizes, NamedThreads) else sizes
        for name, sizes in _blocks(block, facts, names)
    }


def check_selection(
    selection: Selection, facts: Sequence[KernelFacts], profile: GpuProfile, dtype: str
) -> None:
    """Refuse a selection that was made for other kernels, another card or another type.

    Raises:
        InputError: ``EATSS-K011``.
    """
    for why in _misfits(selection, facts, profile, dtype):
        raise input_error(
            "EATSS-K011",
            f"the selection does not belong to this program: {why}",
            hint="select again with: eatss select FILE.c --gpu NAME --format json",
        )


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
        InputError: ``EATSS-C015``.
    """
    if recipe is not None and given:
        raise input_error(
            "EATSS-C015",
            f"{', '.join(given)} beside a recipe: it has everything that is decided",
            hint="leave them out, or edit the recipe",
        )


def check_recipe(
    recipe: Recipe,
    facts: Sequence[KernelFacts],
    scops: Sequence[Scop],
    profile: GpuProfile,
    dtype: str,
) -> None:
    """Refuse a recipe that was written for other kernels, another card or another type.

    Raises:
        InputError: ``EATSS-K018``; as :func:`checked_options` for what the user asked for.
    """
    for why in _misfits(recipe, facts, profile, dtype):
        raise input_error(
            "EATSS-K018",
            f"the recipe does not belong to this program: {why}",
            hint="write one for it with --save-recipe; one made with a schedule of your own needs "
            "--load-schedule again",
        )
    _check_options(recipe.options, facts, scops)


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
        whys = (_kernel_misfits(kernel, decided), _row_misfits(decided, here[at:], profile))
        yield from (f"its {kernel.name} {why}" for own in whys for why in own)
    limit = made.options.shared_limit_bytes if isinstance(made, Recipe) else None
    most = profile.shared_per_block_optin_bytes
    if limit is not None and not 0 <= limit <= most:
        yield f"it allows {limit} bytes of shared memory, and a block may have {most}"


def _kernel_misfits(kernel: KernelFacts, decided: KernelSelection | KernelRecipe) -> Iterator[str]:
    """Yield why what was decided cannot be of a kernel."""
    loops = tuple(loop.name for loop in kernel.loops)
    parallel = tuple(loop.name for loop in kernel.parallel_loops)
    sizes = dict(decided.tile_sizes)
    texts = {(one.array, one.access) for one in kernel.references}
    if not isinstance(decided, KernelRecipe):
        own = (decided.statements, decided.host_loops, decided.loops, decided.parallel)
        if own != (kernel.statements, kernel.host_loops, loops, parallel):
            yield "has other statements or loops than the source"
    elif kernel.statements != decided.statements:
        yield "has other statements than the source"
    if tuple(sizes) != loops and (sizes or parallel):
        yield "does not have a tile size for each loop"
    if not all(1 <= size <= MAX_TILE for size in sizes.values()):
        yield f"has a tile size that is not from 1 to {MAX_TILE}"
    if not all(1 <= threads <= _MOST_THREADS for _, threads in decided.block):
        yield f"has threads along a loop that are not from 1 to {_MOST_THREADS}"
    if not {name for name, _ in decided.block} <= set(loops):
        yield "has threads along other loops than the source"
    if decided.host_loop not in (None, *loops):
        yield "runs another loop on the host than the source has"
    if not {(one.array, one.access) for one in decided.references} <= texts:
        yield "has other references than the source"
    yield from _cut_misfits(decided)


def _cut_misfits(decided: Layout) -> Iterator[str]:
    spread = decided.spread
    if spread is not None and spread.lanes not in _LANES:
        yield f"spreads sums over {spread.lanes} threads, not over 1, 2, 4, 8, 16 or 32"
    if spread is not None and not (
        1 <= spread.tile <= MAX_TILE and 1 <= spread.chunks <= CUDA.most_blocks["y"]
    ):
        yield "spreads sums in steps or over blocks that no launch has"
    shared = decided.shared_sum
    if shared is not None and shared.loop not in dict(decided.tile_sizes):
        yield "has blocks that share a sum over another loop than the source has"
    if shared is not None and not 1 <= shared.blocks <= CUDA.most_blocks["y"]:
        yield f"has {shared.blocks} blocks that share a sum, not 1 to {CUDA.most_blocks['y']}"
    if shared is not None and spread is not None:
        yield "spreads a sum that blocks share"
    yield from _stage_misfits(decided.warps, decided.stages)


def _row_misfits(decided: Layout, following: Sequence[str], profile: GpuProfile) -> Iterator[str]:
    """Yield why a kernel cannot become one with those behind it; ``following`` begins with it."""
    block = decided.row_block
    if block is None:
        return
    if not block.kernels or block.kernels != tuple(following[: len(block.kernels)]):
        yield "becomes one with other kernels than those behind it"
    lanes = {1 << power for power in range(_MOST_THREADS.bit_length())}
    if block.lanes not in lanes or not 1 <= block.rows * block.lanes <= profile.threads_per_block:
        yield f"has blocks of {block.rows} rows of {block.lanes} threads, which no launch has"
    if block.loops < 1 or not (1 <= block.tile <= MAX_TILE and block.tile % block.lanes == 0):
        yield "takes rows in steps that its threads do not have"


def _stage_misfits(warps: WarpUse | None, stages: int) -> Iterator[str]:
    """Yield why no launch can use an instruction or have boxes so."""
    from eatss.instructions import INSTRUCTIONS  # noqa: PLC0415 - what is kept needs none

    if warps is not None and not (
        warps.instruction in INSTRUCTIONS.names() and INSTRUCTIONS.get(warps.instruction).lanes
    ):
        yield f"computes products by {warps.instruction}, which is no instruction of warps"
    for number in (stages, *(() if warps is None else (warps.stages,))):
        if not 1 <= number <= MAX_STAGES:
            yield f"has {number} boxes of shared memory in use at once, not 1 to {MAX_STAGES}"


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


def _tile_sizes(
    tiles: Tiles, facts: Sequence[KernelFacts], names: Sequence[str]
) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """Yield the sizes of each kernel; those for the kernel win over those for all."""
    given: dict[str, dict[str, int]] = {kernel.name: {} for kernel in facts}
    everywhere = {loop: size for loop, size in tiles.items() if not isinstance(size, Mapping)}
    own = {key: sizes for key, sizes in tiles.items() if isinstance(sizes, Mapping)}
    for loop, size in everywhere.items():
        for kernel in _having(loop, facts, "no kernel has a"):
            given[kernel.name][loop] = _size(loop, size)
    for key, sizes in own.items():
        kernel = facts[names.index(_kernel(key, names))]
        for loop, size in sizes.items():
            _having(loop, (kernel,), f"{kernel.name} has no")
            given[kernel.name][loop] = _size(loop, size)
    for name, chosen in given.items():
        if chosen:
            yield name, tuple(chosen.items())


def _having(loop: str, facts: Sequence[KernelFacts], subject: str) -> list[KernelFacts]:
    """Return the kernels that tile a loop; an error if there are none."""
    having = [kernel for kernel in facts if loop in (tiled.name for tiled in kernel.loops)]
    if not having:
        raise _no_loop(subject, loop, facts)
    return having


def _no_loop(subject: str, loop: str, facts: Sequence[KernelFacts]) -> InputError:
    tiled = dict.fromkeys(found.name for kernel in facts for found in kernel.loops)
    inside = {found.name for kernel in facts for found in kernel.inner_loops}
    host = {name for kernel in facts for name in kernel.host_loops}
    why = "there is no such loop"
    if loop in inside:
        why = "it runs inside a tile, as a whole"
    elif loop in host:
        why = "it stays on the host"
    return input_error(
        "EATSS-K001",
        f"{subject} tile loop '{loop}': {why}",
        hint=f"the tile loops: {', '.join(tiled) or 'none'}",
    )


def _size(loop: str, size: object) -> int:
    if isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= MAX_TILE:
        return size
    raise input_error(
        "EATSS-K002",
        f"the tile size of loop '{loop}' is {size!r}",
        hint=f"tile sizes are whole numbers from 1 to {MAX_TILE}",
    )


def _blocks(
    block: Block, facts: Sequence[KernelFacts], names: Sequence[str]
) -> Iterator[tuple[str, tuple[int, ...] | NamedThreads]]:
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
            kernels.append((_kernel(key, names), _named(sizes)))
        elif key:
            kernels.append((_kernel(key, names), _threads(sizes)))
        else:
            yield "", _threads(sizes)
    yield from _by_loop(loops, facts)
    yield from kernels


def _by_loop(
    loops: Mapping[str, int], facts: Sequence[KernelFacts]
) -> Iterator[tuple[str, NamedThreads]]:
    """Yield the threads of each kernel that has one of the loops."""
    for loop in loops:
        _having(loop, facts, "no kernel has a")
    for kernel in facts:
        own = {loop.name for loop in kernel.loops}
        here = {loop: size for loop, size in loops.items() if loop in own}
        if here:
            yield kernel.name, _named(here)


def _named(sizes: Mapping[str, int]) -> NamedThreads:
    """Return threads by loop; those that no block has are refused."""
    for size in sizes.values():
        _threads((size,))
    return NamedThreads(threads=tuple(sizes.items()))


def _threads(sizes: Sequence[int]) -> tuple[int, ...]:
    whole = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    if whole and 1 <= len(sizes) <= _AXES and all(size >= 1 for size in sizes):
        return tuple(sizes)
    raise input_error(
        "EATSS-K003",
        f"a block of {', '.join(map(str, sizes)) or 'nothing'} is no block of threads",
        hint="give one to three whole numbers of 1 or more, the innermost loop last",
    )


def _shared_sums(
    wanted: CodeRequest, facts: Sequence[KernelFacts]
) -> Iterator[tuple[str, SharedSum]]:
    """Yield how blocks share the sum of each kernel that has one of the loops."""
    found: dict[str, SharedSum] = {}
    asked = [(*one, False) for one in (wanted.share or {}).items()]
    asked += [(*one, True) for one in (wanted.stream or {}).items()]
    for loop, blocks, streamed in asked:
        whole = isinstance(blocks, int) and not isinstance(blocks, bool)
        if not (whole and 1 <= blocks <= CUDA.most_blocks["y"]):
            raise input_error(
                "EATSS-C004",
                f"the sum over '{loop}' is to be shared by {blocks!r} blocks",
                hint=f"give a whole number from 1 to {CUDA.most_blocks['y']}",
            )
        if wanted.strict_fp and blocks > 1:
            raise input_error(
                "EATSS-K020",
                f"{blocks} blocks that share the sum over '{loop}' take it in another order",
                hint=f"leave out {'--stream' if streamed else '--share'} or --strict-fp",
            )
        for kernel in _having(loop, facts, "no kernel has a"):
            before = found.get(kernel.name)
            if before is not None and min(before.blocks, blocks) > 1:
                raise input_error(
                    "EATSS-C004",
                    f"{kernel.name} is to share its sum over '{before.loop}' and '{loop}'",
                    hint="give one of them",
                )
            if before is None or blocks > 1:
                found[kernel.name] = SharedSum(loop=loop, blocks=blocks, streamed=streamed)
    yield from found.items()


def _kernel(name: str, names: Sequence[str]) -> str:
    full = _PREFIX + name[1:] if name[:1] == "k" and name[1:].isdecimal() else name
    if full in names:
        return full
    raise input_error(
        "EATSS-K013",
        f"there is no kernel '{name}'",
        hint=f"the kernels: {', '.join(names) or 'none'}",
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

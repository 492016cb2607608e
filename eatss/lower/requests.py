"""What the user asks for, checked against the program: sizes, blocks, placements, a selection."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Literal

from eatss.analysis.layout import GridSplitK, Layout
from eatss.analysis.variant import MAX_STAGES
from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import Names, Numbers, their_names
from eatss.base.options import changed
from eatss.base.targets import AXES, CUDA
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
    compact,
)
from eatss.program.expression import OwnSizes, SizePairs, Sizes

if TYPE_CHECKING:
    from eatss.analysis.facts import KernelFacts
    from eatss.choose.selection import KernelSelection, Selection
    from eatss.polyhedral.scop import Scop


MAX_TILE = 2**20
"""The largest tile size of a loop; an index within a tile stays far from 32 bits."""

_PREFIX = "kernel"
_BLOCKS = CUDA.most_blocks["y"]

_MOST = {
    "block": 1024,
    "lanes": 1024,
    "chunks": _BLOCKS,
    "outer": _BLOCKS,
    "blocks": _BLOCKS,
    "stages": MAX_STAGES,
    "whole": 1,
    "steps": 1,
}
"""The most that numbers of a layout can be, by field; of all others it is :data:`MAX_TILE`."""

_FROM_0 = {"whole", "steps", "columns", "streamed"}
"""Fields that may be 0."""


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
        InputError: ``EATSS-K001`` a size, a block or a placement that fits no kernel, loop or
            reference; ``EATSS-K019`` blocks that share a sum whose order is to be kept.
    """
    if wanted.index_bits not in (None, 32, 64):
        raise wrong("index_bits", wanted.index_bits, "32, 64, or None")
    if wanted.stages is not None and not 1 <= wanted.stages <= MAX_STAGES:
        raise wrong("stages", wanted.stages, f"a number from 1 to {MAX_STAGES}, or None")
    kernels = Kernels(facts)
    plain = {one.name: getattr(wanted, one.name) for one in fields(CodeOptions)}
    return CodegenOptions(
        **plain | {"instructions": tuple(plain["instructions"])},
        shared_limit_bytes=shared_limit_bytes,
        tile_sizes=tuple(kernels.tile_sizes(wanted.tiles or {})),
        block=tuple(kernels.blocks(wanted.block)),
        placements=tuple(_placements(wanted.placements or {}, scops)),
        shared_sums=tuple(kernels.shared_sums(wanted)),
    )


def check_decided(
    made: Selection | Recipe, facts: Sequence[KernelFacts], profile: GpuProfile, dtype: str
) -> None:
    """Refuse a selection or recipe of other kernels, another card or type, or of no launch.

    Raises:
        InputError: ``EATSS-K011``.
    """
    for why in _misfits(made, facts, profile, dtype):
        raise input_error(
            "EATSS-K011",
            f"what was decided does not belong to this program: {why}",
            hint="select again (eatss select --format json), or write a recipe (--save-recipe)",
        )


def choices(
    wanted: CodeRequest, choosing: SelectOptions, selection: object, reading: Reading
) -> Names:
    """Return the names of what the user chose and a recipe decides.

    Args:
        wanted: choices about the code.
        choosing: choices about the sizes; how long may be looked for them is none.
        selection: sizes, if they are given.
        reading: how the source is read; only what is computed anew is a choice.
    """
    sizes = () if selection is None else ("selection",)
    anew = ("recompute",) if reading.recompute != "auto" else ()
    return (*changed(wanted), *sizes, *changed(choosing, but=("target", "timeout_s", "gap")), *anew)


def check_alone(recipe: Recipe | None, given: Sequence[str]) -> None:
    """Refuse choices, as the user spells them, beside a recipe, which has all of them.

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
    if (made.gpu, made.dtype) != (profile.name, dtype):
        yield f"it is for {made.dtype} on {made.gpu}, not for {dtype} on {profile.name}"
    kernels: Sequence[KernelSelection | KernelRecipe] = made.kernels
    here, there = their_names(facts), their_names(kernels)
    if here != there:
        yield f"it has other kernels ({', '.join(there)}) than the source ({', '.join(here)})"
    for at, (kernel, decided) in enumerate(zip(facts, kernels, strict=True)):
        if not _is_of(kernel, decided):
            yield f"its {kernel.name} has other statements, loops or references than the source"
        if not (_within(decided.chosen()) and _is_launch(decided, here[at:], profile)):
            yield f"the sizes of its {kernel.name} are of no launch"
    if isinstance(made, Recipe):
        own, most = made.options, profile.shared_per_block_optin_bytes
        sizes: dict[str, object] = {
            "tile_sizes": [one for _, one in own.tile_sizes],
            "shared_sums": [one for _, one in own.shared_sums],
            "stages": own.stages,
        }
        if not (_within(sizes) and 0 <= (own.shared_limit_bytes or 0) <= most):
            yield "the sizes of its options are of no launch"


def _is_of(kernel: KernelFacts, decided: KernelSelection | KernelRecipe) -> bool:
    """Tell whether what was decided names statements, loops and references of a kernel."""
    loops = their_names(kernel.loops)
    parallel = their_names(kernel.parallel_loops)
    sizes, shared = dict(decided.tile_sizes), decided.shared_sum
    texts = [(one.array, one.access) for one in kernel.references]
    return (
        decided.statements == kernel.statements
        and (
            isinstance(decided, KernelRecipe)
            or (decided.host_loops, decided.loops, decided.parallel)
            == (kernel.host_loops, loops, parallel)
        )
        and [(one.array, one.access) for one in decided.references] == texts
        and (tuple(sizes) == loops or not (sizes or parallel))
        and {*dict(decided.block)} <= {*loops}
        and (shared is None or shared.loop in sizes)
    )


def _within(chosen: Mapping[str, object]) -> bool:
    """Tell whether all sizes are from 1, or 0, to the most there can be of their kind, by field."""
    return all(
        (name not in _FROM_0) <= number <= _MOST.get(name, MAX_TILE)
        for name, number in _sizes(chosen)
    )


def _sizes(noun: object, name: str = "") -> Iterator[tuple[str, int]]:
    """Yield the whole numbers in something, each with the field that it is of."""
    if isinstance(noun, int):
        yield name, noun
    elif is_dataclass(noun):
        yield from _sizes({one.name: getattr(noun, one.name) for one in fields(noun)})
    elif isinstance(noun, Mapping):
        for field, value in noun.items():
            yield from _sizes(value, field)
    elif isinstance(noun, Sequence) and not isinstance(noun, str):
        for one in noun:
            yield from _sizes(one, name)


def _is_launch(decided: Layout, following: Sequence[str], profile: GpuProfile) -> bool:
    """Tell whether a card can have what was decided, whatever the kernel.

    It may become one with those behind it; ``following`` begins with it.
    """
    from eatss.lower.instructions.products import PRODUCTS  # noqa: PLC0415 - what is kept needs none

    warps, spread, rows, tile = decided.warps, decided.spread, decided.row_block, decided.time_tile
    loop, of_class, lanes = decided.loop_block, decided.class_block, CUDA.lanes
    threads = [0 if one is None else one.threads for one in (rows, loop, of_class)]
    joined = [one for one in (rows, tile, loop, of_class) if one is not None]
    return (
        all(one.kernels == tuple(following[: len(one.kernels)]) != () for one in joined)
        and max(*threads, 0 if tile is None else lanes * tile.warps) <= profile.threads_per_block
        and (spread is None or (decided.shared_sum is None and _in_warps(spread.lanes)))
        and (warps is None or warps.instruction in their_names(PRODUCTS))
        and (
            rows is None
            or (
                rows.lanes & (rows.lanes - 1) == 0
                and rows.tile % rows.lanes == 0
                and (not rows.columns or (rows.columns == 1 and lanes % rows.rows == 0))
            )
        )
        and (tile is None or tile.columns > 0)
        and (loop is None or len(loop.kernels) == 1 or not loop.tiles)
        and (
            of_class is None
            or (of_class.threads % lanes == 0 and of_class.width <= of_class.threads)
        )
    )


def _in_warps(lanes: int) -> bool:
    """Tell whether threads that share a sum are whole warps, or an equal part of one."""
    return CUDA.lanes % lanes == 0 or lanes % CUDA.lanes == 0


def _is_whole(number: object, least: int, most: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= most


def _misfit(message: str, hint: str) -> InputError:
    return input_error("EATSS-K001", message, hint=hint)


class Kernels:
    """The kernels of a program, for which the user asks for something.

    What fits no kernel, loop or launch is an ``InputError`` ``EATSS-K001``.
    """

    def __init__(self, facts: Sequence[KernelFacts]) -> None:
        self._facts = {kernel.name: kernel for kernel in facts}

    def _named(self, name: str) -> KernelFacts:
        """Return a kernel, which may be called ``kernel0`` or ``k0``."""
        full = _PREFIX + name[1:] if name[:1] == "k" and name[1:].isdecimal() else name
        if full not in self._facts:
            there = f"the kernels: {', '.join(self._facts) or 'none'}"
            raise _misfit(f"there is no kernel '{name}'", there)
        return self._facts[full]

    def _having(self, loop: str, asked: Sequence[KernelFacts] = ()) -> list[KernelFacts]:
        """Return the kernels that tile a loop, of some or of all; an error if there are none."""
        asked = asked or [*self._facts.values()]
        tiled = {one.name: their_names(one.loops) for one in asked}
        having = [one for one in asked if loop in tiled[one.name]]
        if not having:
            loops = dict.fromkeys(found for names in tiled.values() for found in names)
            raise _misfit(
                f"there is no tile loop '{loop}'",
                f"the tile loops: {', '.join(loops) or 'none'}; others run on the host, or as a "
                "whole inside a tile",
            )
        return having

    def tile_sizes(self, tiles: Tiles) -> Iterator[tuple[str, SizePairs]]:
        """Yield the sizes of each kernel; those for the kernel win over those for all."""
        given: dict[str, OwnSizes] = {name: {} for name in self._facts}
        for key, size in sorted(tiles.items(), key=lambda one: isinstance(one[1], Mapping)):
            named = isinstance(size, Mapping)
            asked = [self._named(key)] if named else []
            for loop, own in size.items() if isinstance(size, Mapping) else [(key, size)]:
                for kernel in self._having(loop, asked):
                    given[kernel.name][loop] = _size(loop, own)
        yield from ((name, tuple(chosen.items())) for name, chosen in given.items() if chosen)

    def blocks(self, block: Block) -> Iterator[tuple[str, Numbers | NamedThreads]]:
        """Yield the threads of kernels: for all (``""``), by loop for all, then for one kernel."""
        if not isinstance(block, Mapping):
            block = {"": block} if block else {}
        given: dict[str, OwnSizes] = {name: {} for name in self._facts}
        for loop, size in block.items():
            if isinstance(size, int):
                for kernel in self._having(loop):
                    given[kernel.name][loop] = size
        if "" in block:
            yield "", _threads(block[""])
        yield from ((name, _threads(own)) for name, own in given.items() if own)
        for key, sizes in block.items():
            if key and not isinstance(sizes, int):
                yield self._named(key).name, _threads(sizes)

    def shared_sums(self, wanted: CodeRequest) -> Iterator[tuple[str, GridSplitK]]:
        """Yield how blocks share the sum of each kernel that has one of the loops."""
        found: dict[str, GridSplitK] = {}
        asked = [(*one, False) for one in (wanted.share or {}).items()]
        asked += [(*one, True) for one in (wanted.stream or {}).items()]
        for loop, blocks, streamed in asked:
            if not _is_whole(blocks, 1, _BLOCKS):
                raise wrong(f"blocks along {loop}", blocks, f"a whole number from 1 to {_BLOCKS}")
            if wanted.strict_fp and blocks > 1:
                raise input_error(
                    "EATSS-K019",
                    f"{blocks} blocks that share the sum over '{loop}' take it in another order",
                    hint=f"leave out {'--stream' if streamed else '--share'} or --strict-fp",
                )
            for kernel in self._having(loop):
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
    raise _misfit(
        f"the tile size of loop '{loop}' is {size!r}",
        f"tile sizes are whole numbers from 1 to {MAX_TILE}",
    )


def _threads(
    sizes: int | Sequence[int] | Sizes,
) -> Numbers | NamedThreads:
    """Return threads in the order of the loops, or by loop; those that no block has are refused."""
    if isinstance(sizes, Mapping):
        counts, few = [*sizes.values()], True
    else:
        counts = [sizes] if isinstance(sizes, int) else [*sizes]
        few = 1 <= len(counts) <= len(AXES)
    if not few or not all(_is_whole(size, 1, sys.maxsize) for size in counts):
        raise _misfit(
            f"a block of {', '.join(map(str, counts)) or 'nothing'} is no block of threads",
            "give one to three whole numbers of 1 or more, the innermost loop last",
        )
    return NamedThreads(threads=tuple(sizes.items())) if isinstance(sizes, Mapping) else (*counts,)


def _placements(
    placements: Mapping[str, str], scops: Sequence[Scop]
) -> Iterator[tuple[str, Literal["l1", "shared"]]]:
    statements = [statement for scop in scops for statement in scop.statements]
    accesses = [access for statement in statements for access in statement.accesses]
    known = {name for one in accesses for name in (one.array, compact(one.text))}
    for name, memory in placements.items():
        if compact(name) not in known:
            raise _misfit(
                f"there is no reference '{name}' to place",
                "name an array, or a reference as the source spells it, like 'A[i][k]'",
            )
        if memory not in ("l1", "shared"):
            raise wrong(f"the placement of '{name}'", memory, "l1 or shared")
        yield name, "shared" if memory == "shared" else "l1"

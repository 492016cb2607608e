"""What a point decides about each kernel, as a layout of the generator's own."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, GridSplitK, Group, SplitK, WarpUse
from eatss.analysis.variant import MAX_STAGES, KernelVariant
from eatss.base.diagnostics import InputError, input_error
from eatss.choose.cuda import cuda_at, in_warps, kernel_variant_of
from eatss.choose.cuda_candidates import PLAIN_TILE
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.tune.derived import (
    NONE,
    OF_SPREADS,
    KernelSpace,
    KernelSpaces,
    cut_values,
)
from eatss.tune.points import Point, is_of_kernel

Decided: TypeAlias = dict[str, Any]
"""What a point says of one kernel by the names of a search space, ``k0.`` left out."""


def short_name(kernel: str) -> str:
    """Return what a kernel is called in a point: ``k0`` for ``kernel0``."""
    return "k" + kernel.removeprefix("kernel")


def decided_of(decisions: Point, facts: KernelFacts) -> Decided:
    """Return what decisions say of a kernel.

    Those with its name before them count more than those without.
    """
    prefix = f"{short_name(facts.name)}."
    found: Decided = {}
    for name, value in sorted(decisions.items(), key=lambda one: one[0].startswith(prefix)):
        plain = name.removeprefix(prefix)
        if "." not in plain and is_of_kernel(plain):
            is_number = plain != "warps" and not plain.startswith("staged_")
            if is_number and (isinstance(value, bool) or int(value) != value):
                raise _refused(f"{plain} is {value!r}, which is no whole number")
            found[plain] = int(value) if is_number else value
    return found


def selection_at(
    base: Selection, spaces: KernelSpaces, options: ModelOptions, decisions: Point
) -> Selection:
    """Return a selection whose kernels have the layouts that a point decides.

    Args:
        base: what stands where nothing is decided.
        spaces: what can be decided of the kernels.
        options: what is predicted for.
        decisions: ``tile_i``, ``threads_i``, ``points_i`` by loop, ``staged_A`` by array,
            ``lanes``, ``steps`` and ``chunks`` of spread sums, ``warps``, the instruction that
            warps compute products by, ``stages``, the boxes in use at once, ``share``, the blocks
            that share a sum, ``stream``, those that take equal shares of all steps; with ``k0.``
            before it, of one kernel.

    Raises:
        InputError: ``EATSS-W010``, they make no layout.
    """
    kernels = []
    for kernel in base.kernels:
        space = spaces[kernel.name]
        decided = decided_of(decisions, space.facts)
        is_changed = decided and space.variants
        kernels.append(_at(kernel, space, options, decided) if is_changed else kernel)
    return replace(base, kernels=tuple(kernels))


def _at(
    kernel: KernelSelection, space: KernelSpace, options: ModelOptions, decided: Decided
) -> KernelSelection:
    facts, variant = space.facts, _kernel_variant(kernel, space, decided)
    layout = _layout(kernel, variant, space, decided)
    if layout.warps is not None and not in_warps(variant, layout.tiles, layout.threads):
        if "warps" in decided:
            raise _refused(
                f"the threads and tiles of {facts.name} are not those of {decided['warps']}"
            )
        variant = _kernel_variant(kernel, space, decided | {"warps": NONE})
        layout = replace(layout, variant=variant, warps=None, stages=1)
    if layout.warps is None and not any(layout.staged.values()):
        if decided.get("stages", 1) > 1:
            raise _refused(f"several pipeline stages of {facts.name} need something that is staged")
        layout = replace(layout, stages=1)
    return cuda_at(facts, layout.map(lambda one: np.array([one])), space.profile, options)


def _kernel_variant(kernel: KernelSelection, space: KernelSpace, decided: Decided) -> KernelVariant:
    """Return how a kernel is cut under decisions: as it is where they say nothing of that."""
    base = kernel_variant_of(space.variants, kernel)
    spreads = base is not None and base.spreads
    if {*OF_SPREADS} & {*decided}:
        spreads = prod(decided.get(name, 1) for name in OF_SPREADS if name != "steps") > 1
    shares = not spreads and decided.get("share", cut_values(kernel)["share"]) > 1
    warps = decided.get("warps", kernel.instruction or NONE)
    for variant in space.variants:
        own, shared, name = variant.cut
        is_free = spreads and "warps" not in decided
        if (own, shared is not None) == (spreads, shares) and (is_free or warps == (name or NONE)):
            return variant
    how = "shared" if shares else "spread" if spreads else "kept together"
    by = "" if warps == NONE else f", and computed by warps with {warps}"
    raise _refused(f"the sums of {kernel.name} cannot be {how}{by}")


def _layout(
    kernel: KernelSelection, variant: KernelVariant, space: KernelSpace, decided: Decided
) -> Candidates:
    facts = space.facts
    tiles, block = kernel.tiles, kernel.threads
    for name in space.mapped:
        before = block.get(name, 1), tiles.get(name, 1)
        block[name], tiles[name] = _along(name, decided, *before)
    for name in space.serial:
        tiles[name] = decided.get(f"tile_{name}", tiles.get(name, PLAIN_TILE))
    steps = {"steps": PLAIN_TILE} if kernel.spread is None else {}
    now = cut_values(kernel) | steps | decided
    stages, instruction, stream = now["stages"], variant.instruction, decided.get("stream")
    if stream and variant.stream_loop is None:
        raise _refused(f"no stream-K in {kernel.name}: its sums cannot be split")
    if not 1 <= stages <= MAX_STAGES:
        raise _refused(f"stages is {stages}, not 1 to {MAX_STAGES}")
    shared_sum = None
    if now["stream"] and variant.stream_loop is not None:
        shared_sum = GridSplitK(loop=variant.stream_loop, blocks=now["stream"], streamed=True)
    elif variant.shared_loop is not None:
        shared_sum = GridSplitK(loop=variant.shared_loop, blocks=now["share"])
    spread = SplitK(lanes=now["lanes"], tile=now["steps"], chunks=now["chunks"], outer=now["outer"])
    groups = (group for launch in variant.launches for group in launch.stageable)
    return Candidates(
        variant=variant,
        tile_sizes=tuple((loop.name, tiles[loop.name]) for loop in facts.loops),
        block=tuple((name, block[name]) for name in space.mapped),
        staged={group: int(_staged(group, space, kernel.shared, decided)) for group in groups},
        spread=spread if variant.spreads else None,
        shared_sum=shared_sum,
        warps=None if instruction is None else WarpUse(instruction=instruction.name, stages=stages),
        stages=stages if instruction is None else 1,
    )


def _along(name: str, decided: Decided, before: int, was: int) -> tuple[int, int]:
    """Return threads and tile along a mapped loop, which were ``before`` and ``was``."""
    threads, points, tile = (
        decided.get(f"{kind}_{name}") for kind in ("threads", "points", "tile")
    )
    if threads is points is tile is None:
        return before, was
    if tile is None:
        count = threads or before
        return count, count * (max(1, was // max(1, before)) if points is None else points)
    count = threads or (tile // points if points else min(before, tile))
    if not 0 < count <= tile or (points is not None and count * points != tile):
        each = "" if points is None else f" with {points} points each"
        raise _refused(f"a tile of {tile} along {name} is not for {count} threads{each}")
    return count, tile


def _staged(group: Group, space: KernelSpace, shared: frozenset[int], decided: Decided) -> bool:
    """Tell whether a group is staged: by its own name, by its array, or as it was."""
    arrays = {f"staged_{space.facts.references[at].array}" for at in group}
    wanted = [decided[one] for one in (space.staged.get(group), *arrays) if one in decided]
    return bool(wanted[0]) if wanted else shared.issuperset(group)


def _refused(message: str) -> InputError:
    return input_error("EATSS-W010", message, hint="a filter of the space can leave it out")

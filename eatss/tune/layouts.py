"""What a point decides about each kernel, as a layout of the generator's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, GridSplitK, SplitK, WarpUse, mapped_loops
from eatss.analysis.variant import MAX_STAGES, KernelVariant
from eatss.base.diagnostics import InputError, input_error
from eatss.cards import GpuProfile
from eatss.choose.cuda import cuda_at, in_warps, kernel_variant_of
from eatss.choose.cuda_candidates import PLAIN_TILE
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.tune.derived import NONE, OF_SPREADS, KernelVariants, cut_values, kernel_spaces
from eatss.tune.points import CUTS, OF_LOOPS, Point, Value

Decided: TypeAlias = dict[str, Any]
"""What a point says of one kernel by the names of a search space, ``k0.`` left out."""


def short_name(kernel: str) -> str:
    """Return what a kernel is called in a point: ``k0`` for ``kernel0``."""
    return "k" + kernel.removeprefix("kernel")


def decided_of(decisions: Point, facts: KernelFacts) -> Decided:
    """Return what decisions say of a kernel.

    Those with its name before them count more than those without.
    """
    found: Decided = {}
    own = f"{short_name(facts.name)}."
    for name, value in sorted(decisions.items(), key=lambda one: one[0].startswith(own)):
        plain = name.removeprefix(own)
        kind, _, of = plain.partition("_")
        if "." not in plain and (plain in CUTS or (kind in OF_LOOPS and of)):
            as_it_is = plain == "warps" or kind == "staged"
            found[plain] = value if as_it_is else _whole(plain, value)
    return found


def _whole(name: str, value: Value) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise _refused(f"{name} is {value!r}, which is no whole number")
    return int(value)


def selection_at(
    base: Selection,
    facts: Sequence[KernelFacts],
    variants: KernelVariants,
    profile: GpuProfile,
    options: ModelOptions,
    decisions: Point,
) -> Selection:
    """Return a selection whose kernels have the layouts that a point decides.

    Args:
        base: what stands where nothing is decided.
        facts: the kernels.
        variants: how each can be cut.
        profile: the card.
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
    for kernel, own in zip(base.kernels, facts, strict=True):
        decided = decided_of(decisions, own)
        cuts = variants.get(own.name, ())
        if decided and cuts:
            kernels.append(_at(kernel, own, cuts, profile, options, decided))
        else:
            kernels.append(kernel)
    return replace(base, kernels=tuple(kernels))


def _at(
    kernel: KernelSelection,
    facts: KernelFacts,
    variants: tuple[KernelVariant, ...],
    profile: GpuProfile,
    options: ModelOptions,
    decided: Decided,
) -> KernelSelection:
    variant = _kernel_variant(kernel, facts, variants, decided)
    layout = _layout(kernel, facts, variant, variants, profile, decided)
    if layout.warps is not None and not in_warps(variant, layout.tiles, layout.threads):
        if "warps" in decided:
            raise _refused(
                f"the threads and tiles of {facts.name} are not those of {decided['warps']}"
            )
        variant = _kernel_variant(kernel, facts, variants, decided | {"warps": NONE})
        layout = replace(layout, variant=variant, warps=None, stages=1)
    if layout.warps is None and not any(layout.staged.values()):
        if decided.get("stages", 1) > 1:
            raise _refused(f"several pipeline stages of {facts.name} need something that is staged")
        layout = replace(layout, stages=1)
    return cuda_at(facts, layout.map(lambda one: np.array([one])), profile, options)


def _kernel_variant(
    kernel: KernelSelection,
    facts: KernelFacts,
    variants: tuple[KernelVariant, ...],
    decided: Decided,
) -> KernelVariant:
    base = kernel_variant_of(variants, kernel)
    spreads = base is not None and base.spreads
    warps = decided.get("warps", kernel.instruction or NONE)
    if any(name in decided for name in OF_SPREADS):
        spreads = prod(decided.get(name, 1) for name in OF_SPREADS if name != "steps") > 1
    shares = not spreads and decided.get("share", cut_values(kernel)["share"]) > 1
    for variant in variants:
        own, shared, name = variant.cut
        if (own, shared is not None) == (spreads, shares) and (
            (name or NONE) == warps or (spreads and "warps" not in decided)
        ):
            return variant
    if shares:
        raise _refused(f"blocks cannot share the sums of {facts.name}")
    if warps != NONE:
        raise _refused(f"warps cannot compute what {facts.name} does by {warps}")
    raise _refused(f"the sums of {facts.name} cannot be {'spread' if spreads else 'kept together'}")


def _layout(
    kernel: KernelSelection,
    facts: KernelFacts,
    variant: KernelVariant,
    variants: tuple[KernelVariant, ...],
    profile: GpuProfile,
    decided: Decided,
) -> Candidates:
    tiles, block = kernel.tiles, kernel.threads
    mapped = [loop.name for loop in mapped_loops(facts)]
    for name in (loop.name for loop in facts.loops):
        if name in mapped:
            threads, tile = block.get(name, 1), tiles.get(name, 1)
            block[name], tiles[name] = _along(name, decided, threads, tile)
        else:
            tiles[name] = decided.get(f"tile_{name}", tiles.get(name, PLAIN_TILE))
    if decided.get("stream") and variant.stream_loop is None:
        raise _refused(f"no stream-K in {kernel.name}: its sums cannot be split")
    groups = dict.fromkeys(group for launch in variant.launches for group in launch.stageable)
    (space,) = kernel_spaces([facts], {facts.name: variants}, profile).values()
    steps = {"steps": PLAIN_TILE} if kernel.spread is None else {}
    now = cut_values(kernel) | steps | decided
    stages, instruction = now["stages"], variant.instruction
    if not 1 <= stages <= MAX_STAGES:
        raise _refused(f"stages is {stages}, not 1 to {MAX_STAGES}")
    spread = SplitK(lanes=now["lanes"], tile=now["steps"], chunks=now["chunks"], outer=now["outer"])
    return Candidates(
        variant=variant,
        tile_sizes=tuple((loop.name, tiles[loop.name]) for loop in facts.loops),
        block=tuple((name, block[name]) for name in mapped),
        staged={
            group: int(_staged(group, space.staged.get(group, ""), facts, kernel.shared, decided))
            for group in groups
        },
        spread=spread if variant.spreads else None,
        shared_sum=_shared_sum(variant, now["share"], now["stream"]),
        warps=None if instruction is None else WarpUse(instruction=instruction.name, stages=stages),
        stages=stages if instruction is None else 1,
    )


def _along(name: str, decided: Decided, threads: int, tile: int) -> tuple[int, int]:
    """Return threads and tile along a mapped loop."""
    own_threads, points, own_tile = (
        decided.get(f"{kind}_{name}") for kind in ("threads", "points", "tile")
    )
    if own_threads is points is own_tile is None:
        return threads, tile
    if own_tile is None:
        before = max(1, tile // max(1, threads))
        count = int(own_threads or threads)
        return count, count * (before if points is None else points)
    if points is not None:
        if points < 1 or own_tile % points or own_threads not in (None, own_tile // points):
            raise _refused(f"a tile of {own_tile} along {name} is not threads times {points}")
        return own_tile // points, own_tile
    if own_threads is not None and own_threads > own_tile:
        raise _refused(f"a tile of {own_tile} along {name} has no work for {own_threads} threads")
    return own_threads or min(threads, own_tile), own_tile


def _shared_sum(variant: KernelVariant, share: int, stream: int) -> GridSplitK | None:
    """Return how blocks share a sum: the tiles of its loop, or equal parts of all steps."""
    if stream and variant.stream_loop is not None:
        return GridSplitK(loop=variant.stream_loop, blocks=stream, streamed=True)
    loop = variant.shared_loop
    return None if loop is None else GridSplitK(loop=loop, blocks=share)


def _staged(
    group: Sequence[int], name: str, facts: KernelFacts, shared: frozenset[int], decided: Decided
) -> bool:
    """Tell whether a group is staged: by its own name, by its array, or as it was."""
    if name in decided:
        return bool(decided[name])
    arrays = {f"staged_{facts.references[at].array}" for at in group}
    wanted = [on for own, on in decided.items() if own in arrays]
    return bool(wanted[-1]) if wanted else set(group) <= shared


def _refused(message: str) -> InputError:
    return input_error("EATSS-W010", message, hint="a filter of the space can leave it out")

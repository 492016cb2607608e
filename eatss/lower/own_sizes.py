"""A selection with the sizes and places that a user gives instead: what code is made of then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from eatss.analysis import KernelFacts
from eatss.analysis.structure import Structure
from eatss.cards import GpuProfile
from eatss.choose import KernelSelection, Selection
from eatss.choose.cuda import in_warps, structure_of
from eatss.lower.recipe.options import CodegenOptions
from eatss.lower.schedule.thread_mapping import sizes_of


def with_own_sizes(
    selection: Selection,
    facts: Sequence[KernelFacts],
    structures: Mapping[str, tuple[Structure, ...]],
    profile: GpuProfile,
    options: CodegenOptions,
) -> Selection:
    """Return a selection with the sizes, threads and places of ``options``.

    Warps compute products by an instruction where they still can.

    Raises:
        InputError: as ``eatss.lower.schedule.thread_mapping.layout``.
    """
    kernels = tuple(
        _with_own(kernel, own, structures.get(own.name, ()), profile, options)
        for kernel, own in zip(selection.kernels, facts, strict=True)
    )
    return replace(selection, kernels=kernels)


def places_without_effect(
    facts: Sequence[KernelFacts],
    structures: Mapping[str, tuple[Structure, ...]],
    options: CodegenOptions,
) -> tuple[str, ...]:
    """Return what the user wants in shared memory and no kernel can stage.

    Points keep it in registers, or its tile has no shape that could be copied.
    """
    reached = {
        name
        for own in facts
        for structure in structures.get(own.name, ())
        for launch in structure.launches
        for group in launch.stageable
        for name in _names_of(group, own)
    }
    return tuple(
        name
        for name, memory in options.placements
        if memory == "shared" and "".join(name.split()) not in reached
    )


def _with_own(
    kernel: KernelSelection,
    facts: KernelFacts,
    structures: Sequence[Structure],
    profile: GpuProfile,
    options: CodegenOptions,
) -> KernelSelection:
    kernel = _with_shared_sum(options.changed(kernel, kernel.name), structures, options)
    structure = structure_of(structures, kernel)
    if structure is None:
        return kernel
    tiles, block = sizes_of(facts, kernel, profile, options)
    spread = kernel.spread
    if spread is not None:
        asked = [s for name, sizes in options.tile_sizes if name == facts.name for s in sizes]
        sums = {launch.sum_loop for launch in structure.launches}
        tile = next((size for loop, size in reversed(asked) if loop in sums), spread.tile)
        spread = replace(spread, tile=tile)
    places: dict[int, Literal["l1", "shared"]] = {}
    for launch in structure.launches:
        for group in launch.stageable:
            memory = _asked_for(group, facts, options)
            if memory is not None:
                places.update(dict.fromkeys(group, memory))
    threads = {loop: min(count, tiles[loop]) for loop, count in block}
    return replace(
        kernel,
        tile_sizes=tuple((loop, tiles[loop]) for loop, _ in kernel.tile_sizes),
        block=tuple(threads.items()),
        spread=spread,
        sum_kinds=structure.sum_kinds,
        warps=kernel.warps if in_warps(structure, tiles, threads) else None,
        references=tuple(
            replace(reference, placement=places.get(at, reference.placement))
            for at, reference in enumerate(kernel.references)
        ),
    )


def _with_shared_sum(
    kernel: KernelSelection, structures: Sequence[Structure], options: CodegenOptions
) -> KernelSelection:
    """Return a kernel with the blocks that the user lets share its sum, where they can."""
    own = kernel.shared_sum
    if own is None or kernel.name not in (name for name, _ in options.shared_sums):
        return kernel
    found = kernel if own.streamed else replace(kernel, spread=None, sum_loops=(), host_loop=None)
    cut = structure_of(structures, found)
    if cut is None or (own.streamed and cut.stream_loop != own.loop):
        return replace(kernel, shared_sum=None)
    return found


def _asked_for(
    group: Sequence[int], facts: KernelFacts, options: CodegenOptions
) -> Literal["l1", "shared"] | None:
    """Return the memory that the user wants for references, named by array or by text."""
    named = _names_of(group, facts)
    for name, memory in reversed(options.placements):
        if "".join(name.split()) in named:
            return memory
    return None


def _names_of(group: Sequence[int], facts: KernelFacts) -> set[str]:
    """Return how a user may call the references of a group: by array, or by text."""
    arrays = {facts.references[at].array for at in group}
    return arrays | {"".join(facts.references[at].access.split()) for at in group}

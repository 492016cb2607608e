"""Which reads are staged in shared memory, and which points of a tile threads have for that.

The recipe says the first, :mod:`eatss.plan.stage` the second.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as Dictionary
from dataclasses import replace

from eatss.lower.arrays import DeviceArray
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import Piece
from eatss.lower.recipe import CodegenOptions, KernelRecipe, compact
from eatss.lower.storage import Candidate, StoragePlan
from eatss.lower.transform.point_groups import InterleavedPoints
from eatss.plan.launch import LaunchPlan
from eatss.plan.numbers import nowhere
from eatss.plan.stage import LoopTile, StagedReads, Tiling, vector
from eatss.polyhedral.scop import Scop


def promoted_candidates(
    storage: StoragePlan,
    recipe: KernelRecipe | None,
    options: CodegenOptions,
    piece: Piece,
    mapping: Mapping,
) -> frozenset[Candidate]:
    """Return the candidates that go to shared memory; of split sums only what the user says."""
    if recipe is None:
        return frozenset()
    found = set()
    for candidate in storage.candidates:
        texts = {compact(piece.statement(name).accesses[at].text) for name, at in candidate.places}
        memory: str | None = options.placed((candidate.array, *texts))
        if memory is None and mapping.split is None:
            memory = _decided(candidate, texts, recipe)
        if memory == "shared":
            found.add(candidate)
    return frozenset(found)


def _decided(candidate: Candidate, texts: set[str], recipe: KernelRecipe) -> str:
    """Return where the recipe has a candidate; equal texts are distinguished by statement."""
    statements = {name for name, _ in candidate.places}
    known = [
        reference
        for reference in recipe.references
        if reference.array == candidate.array and compact(reference.access) in texts
    ]
    own = [reference for reference in known if statements & set(reference.statements)]
    return next((reference.memory for reference in own or known), "l1")


def unpromoted_notes(
    storage: StoragePlan,
    recipe: KernelRecipe | None,
    options: CodegenOptions,
    piece: Piece,
) -> tuple[str, ...]:
    """Say which references meant for shared memory are not staged, and why."""
    staged = {candidate.array for candidate in storage.candidates}
    held = {registers.array for registers in storage.registers}
    here = {statement.name for statement in piece.statements}
    notes: dict[str, None] = {}
    for one in () if recipe is None else recipe.references:
        asked = options.placed((one.array, one.access))
        if (
            (asked or one.memory) != "shared"
            or one.array in staged
            or here.isdisjoint(one.statements)
        ):
            continue
        if one.array not in held:
            notes[f"{one.access} stays in L1: the kernel writes what it touches"] = None
        elif asked is not None:
            notes[f"{one.access} is not staged: it lives in registers"] = None
    return tuple(notes)


Arrays = Dictionary[str, DeviceArray]
"""The arrays of a region, by name."""


def tiling_of(mapping: Mapping) -> Tiling:
    """Return the loops of a layout in tiles, and along which threads have neighbouring points."""
    mapped = sorted(mapping.mapped, key=lambda loop: loop.order)
    return Tiling(
        mapped=tuple(
            LoopTile(name=one.source_name, tile=one.tile, threads=one.threads, points=one.points)
            for one in mapped
        ),
        serial={one.source_name: one.tile for one in mapping.serial},
        threads=mapping.threads,
        load_vectors=not mapping.warps and mapping.split is None,
        neighbours={one.source_name: not one.cyclic for one in mapped},
    )


def staged_reads(candidate: Candidate, arrays: Arrays) -> StagedReads:
    """Return what a plan has to know of reads that are staged."""
    array = arrays[candidate.array]
    size = array.array.element_type.size_bytes
    return StagedReads(
        along=candidate.along,
        moving=candidate.moving,
        across=candidate.across,
        element_bytes=size,
        aligned=array.may_be_aligned(vector(size)),
    )


def with_vectors(mapping: Mapping, plan: LaunchPlan) -> Mapping:
    """Return a layout whose threads have neighbouring points, and lanes an order, as planned."""
    mapped = tuple(
        one if nowhere(plan.neighbours(one.source_name)) else replace(one, cyclic=False)
        for one in mapping.mapped
    )
    return replace(mapping, mapped=mapped, interleaved=bool(plan.interleaved))


def neighbours_of(
    mapping: Mapping, staged: Collection[Candidate], scop: Scop, plan: LaunchPlan
) -> tuple[InterleavedPoints, ...]:
    """Return the loops of which threads have several vectors of points that lie apart, as planned.

    All rows of shared memory that are read along one have vectors as long.
    """
    found = []
    for loop in mapping.mapped:
        if not plan.in_groups(loop.source_name):
            continue
        widths = {
            vector(scop.array(candidate.array).element_type.size_bytes)
            for candidate in staged
            if not loop.cyclic and loop.source_name in candidate.along
        }
        if len(widths) == 1:
            found.append(
                InterleavedPoints(
                    thread=loop.thread,
                    threads=loop.threads,
                    point=loop.point,
                    points=loop.points,
                    vector=widths.pop(),
                )
            )
    return tuple(found)

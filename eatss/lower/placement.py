"""Which reads are staged in shared memory, and which points of a tile threads have for that.

The recipe says the first, :mod:`eatss.plan.stage` the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace

from eatss.analysis.work import reference_of
from eatss.lower.arrays import DeviceArray
from eatss.lower.mapping import Mapping
from eatss.lower.pieces import Part, Piece
from eatss.lower.recipe import CodegenOptions, KernelRecipe
from eatss.lower.storage import Candidate, StoragePlan
from eatss.lower.transform.point_groups import Neighbours
from eatss.plan.stage import (
    LoopTile,
    StagedReads,
    Tiling,
    element_words,
    interleaved,
    vector,
    with_neighbours,
)
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
    staged = set()
    for candidate in storage.candidates:
        wanted = _asked_for(candidate, piece, options)
        if wanted is None and mapping.split is None:
            wanted = _decided(candidate, recipe, piece)
        if wanted == "shared":
            staged.add(candidate)
    return frozenset(staged)


def unpromoted_notes(
    storage: StoragePlan,
    recipe: KernelRecipe | None,
    options: CodegenOptions,
    piece: Piece,
) -> tuple[str, ...]:
    """Say which references meant for shared memory are not staged, and why."""
    if recipe is None:
        return ()
    staged = {candidate.array for candidate in storage.candidates}
    held = {registers.array for registers in storage.registers}
    notes = [
        f"{reference.access} stays in L1: the kernel writes what it touches"
        for reference in recipe.references
        if reference.memory == "shared"
        and reference.array not in staged | held
        and any(statement.name in reference.statements for statement in piece.statements)
    ]
    for name, memory in options.placements:
        accesses = [
            access
            for statement in piece.statements
            for access in statement.accesses
            if _compact(name) in (access.array, _compact(access.text))
        ]
        if memory == "shared" and accesses and not any(a.array in staged for a in accesses):
            why = "it lives in registers" if accesses[0].array in held else "the kernel writes it"
            notes.append(f"{name} is not staged: {why}")
    return tuple(dict.fromkeys(notes))


def _texts(candidate: Candidate, piece: Piece) -> set[str]:
    return {
        _compact(piece.statement(name).accesses[number].text) for name, number in candidate.places
    }


def _asked_for(candidate: Candidate, piece: Piece, options: CodegenOptions) -> str | None:
    texts = _texts(candidate, piece)
    for name, memory in reversed(options.placements):
        if name == candidate.array or _compact(name) in texts:
            return memory
    return None


def _decided(candidate: Candidate, recipe: KernelRecipe, piece: Piece) -> str:
    """Return where the recipe has a candidate; equal texts are told apart by statement."""
    texts = _texts(candidate, piece)
    statements = {name for name, _ in candidate.places}
    known = [
        reference
        for reference in recipe.references
        if reference.array == candidate.array and _compact(reference.access) in texts
    ]
    own = [reference for reference in known if statements & set(reference.statements)]
    return next((reference.memory for reference in own or known), "l1")


def _compact(text: str) -> str:
    return "".join(text.split())


Arrays = Dictionary[str, DeviceArray]
"""The arrays of a region, by name."""


def tiling_of(mapping: Mapping, sum_words: int = 0, registers: int = 0) -> Tiling:
    """Return the loops of a layout in tiles, and along which threads have neighbouring points."""
    mapped = sorted(mapping.mapped, key=lambda loop: loop.order)
    return Tiling(
        mapped=tuple(
            LoopTile(name=one.source_name, tile=one.tile, threads=one.threads, points=one.points)
            for one in mapped
        ),
        serial={one.source_name: one.tile for one in mapping.serial},
        threads=mapping.threads,
        sum_words=sum_words,
        registers=registers,
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


def with_vectors(
    mapping: Mapping,
    piece: Piece,
    parts: Sequence[Part],
    storage: StoragePlan,
    staged: Collection[Candidate],
    arrays: Arrays,
    registers: int,
) -> Mapping:
    """Return a layout whose threads have neighbouring points, and lanes in an order, for vectors.

    Args:
        mapping: the layout.
        piece: what is laid out.
        parts: which statements serial loops run around.
        storage: where its references live.
        staged: those that are staged in shared memory.
        arrays: of the region, by name.
        registers: that a thread may have.
    """
    sums = (arrays[own.array].array.element_type.size_bytes for own in storage.registers)
    reads = [staged_reads(candidate, arrays) for candidate in staged]
    tiling = tiling_of(mapping, sum(map(element_words, sums)), registers)
    tiling = with_neighbours(tiling, reads, list(_accesses(piece, parts, storage, list(staged))))
    pairs = interleaved(
        tiling, [(one.source_name, one.threads) for one in mapping.with_threads], reads
    )
    mapped = tuple(
        replace(one, cyclic=False) if tiling.neighbours.get(one.source_name) else one
        for one in mapping.mapped
    )
    return replace(mapping, mapped=mapped, interleaved=any(pairs.values()))


def _accesses(
    piece: Piece, parts: Sequence[Part], storage: StoragePlan, staged: Sequence[Candidate]
) -> Iterator[tuple[int | None, Collection[str]]]:
    """Yield what is accessed elsewhere than in registers, as far as serial loops run around it."""
    held = {place for own in storage.registers for place in own.places}
    groups = {place: at for at, candidate in enumerate(staged) for place in candidate.places}
    once = once_a_tile(parts)
    known = tuple(one for one in piece.kernel.references if one.subscripts)
    for statement in piece.statements:
        for number, access in enumerate(statement.accesses):
            place = statement.name, number
            if statement.name not in once and place not in held:
                position = reference_of(access.array, access.text, statement.name, known)
                if position is not None:
                    yield groups.get(place), known[position].loops


def once_a_tile(parts: Sequence[Part]) -> frozenset[str]:
    """Return the statements that no serial loop runs around, though one does around others."""
    if not any(part.serial for part in parts):
        return frozenset()
    return frozenset(name for part in parts if not part.serial for name in part.statements)


def neighbours_of(
    mapping: Mapping, staged: Collection[Candidate], scop: Scop
) -> tuple[Neighbours, ...]:
    """Return the loops of which threads have several vectors of points.

    All rows of shared memory that are read along one have vectors as long.
    """
    found = []
    for loop in mapping.mapped:
        widths = {
            vector(scop.array(candidate.array).element_type.size_bytes)
            for candidate in staged
            if not loop.cyclic and loop.source_name in candidate.along
        }
        if len(widths) == 1:
            found.append(
                Neighbours(
                    thread=loop.thread,
                    threads=loop.threads,
                    point=loop.point,
                    points=loop.points,
                    vector=widths.pop(),
                )
            )
    return tuple(found)

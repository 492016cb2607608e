"""Which reads are staged in shared memory: as the recipe says."""

from __future__ import annotations

from eatss.lower.storage import Candidate, StoragePlan
from eatss.recipe.options import CodegenOptions
from eatss.recipe.recipe import KernelRecipe
from eatss.schedule.mapping import Mapping
from eatss.schedule.pieces import Piece


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

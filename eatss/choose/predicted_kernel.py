"""A kernel's selection by a prediction, and what is expected of one layout of generated code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates, Layout
from eatss.analysis.mapping import mapped_loops
from eatss.analysis.structure import Structure
from eatss.cards.profile import GpuProfile
from eatss.choose.objectives import OBJECTIVES
from eatss.choose.options import ObjectiveName
from eatss.choose.selection import KernelSelection, ReferenceSelection, Usage
from eatss.cost.cuda_model import CudaModel
from eatss.cost.expected import Prediction


def predicted_kernel(
    facts: KernelFacts,
    profile: GpuProfile,
    objective: ObjectiveName,
    /,
    *,
    layout: Layout,
    private: Collection[int] = (),
    shared: Collection[int] = (),
    shared_limit_bytes: int,
    prediction: Prediction | None = None,
    **found: Any,
) -> KernelSelection:
    """Return the selection of sizes.

    Args:
        facts: the kernel.
        profile: the card.
        objective: what was least.
        layout: what was chosen; it has no sizes where the kernel runs in one thread.
        private: the references that registers have, by position; L1 has those that none has.
        shared: those that shared memory has.
        shared_limit_bytes: shared memory that a block may have.
        prediction: what is expected of the sizes.
        found: how they were found.
    """
    return KernelSelection.of(
        facts,
        layout,
        objective_formula=OBJECTIVES.get(objective).formula,
        shared_limit_bytes=shared_limit_bytes,
        references=tuple(
            ReferenceSelection.at(
                one, "private" if at in private else "shared" if at in shared else "l1"
            )
            for at, one in enumerate(facts.references)
        ),
        usage=_usage(prediction, profile, shared_limit_bytes),
        predicted=prediction,
        **found,
    )


def _usage(
    prediction: Prediction | None, profile: GpuProfile, shared_limit_bytes: int
) -> tuple[Usage, ...]:
    """Return what a prediction expects a kernel to use of the limits of a card."""
    if prediction is None or not prediction.threads:
        return ()
    warps = -(-prediction.threads // profile.threads_per_warp)
    per_sm = prediction.resident_blocks * warps * profile.threads_per_warp
    limits = (
        ("threads", "threads of a block", prediction.threads, profile.threads_per_block, "threads"),
        ("occupancy", "threads of an SM", per_sm, profile.max_threads_per_sm, "threads"),
        ("registers_thread", "registers of a thread (estimate)", prediction.registers,
         profile.registers_per_thread, "registers"),
        ("shared_per_block", "shared memory of a block", prediction.shared_bytes,
         shared_limit_bytes, "bytes"),
    )  # fmt: skip
    return tuple(
        Usage(name=n, title=t, used=used, available=most, unit=unit, binding=10 * used > 9 * most)
        for n, t, used, most, unit in limits
    )


ONE_THREAD = "it runs in one thread, for which nothing is predicted"
NO_REGISTERS = "its sums do not fit registers, and what the code does then is not predicted"
STAGED_SUMS = "it stages arrays beside sums that are spread, and what that does is not predicted"
TOO_LARGE = "a block of it does not fit the card"
FAR_FACTORS = "its warps load factors of products from memory, and what that does is not predicted"


def structure_of(structures: Sequence[Structure], kernel: Layout) -> Structure | None:
    """Return how a selected kernel is cut; ``None`` for one without launches to choose sizes of."""
    if kernel.spread is None and not kernel.tile_sizes:
        return None
    return next((one for one in structures if one.cut == kernel.cut), None)


def in_warps(structure: Structure, tiles: Mapping[str, int], threads: Mapping[str, int]) -> bool:
    """Tell whether warps can use a structure's instruction: its threads are boxes of lanes.

    Each thread has whole matrices' worth of points then, and a tile of the sums whole steps.

    Args:
        structure: the structure.
        tiles: by loop of the band.
        threads: by mapped loop.
    """
    own = structure.instruction
    if own is None:
        return False
    several = {name for name, count in threads.items() if count > 1}
    return all(
        several == {one.rows, one.columns}
        and tiles[one.sum_loop] % own.steps == 0
        and all(
            threads[name] % lanes == 0 and tiles[name] % (threads[name] * points) == 0
            for name, lanes, points in zip(
                (one.rows, one.columns), own.lanes, own.points, strict=True
            )
        )
        for one in structure.products
    )


def candidate_of(facts: KernelFacts, structure: Structure, kernel: KernelSelection) -> Candidates:
    """Return the layout of a selected kernel as the prediction takes it, the only candidate."""
    groups = (group for launch in structure.launches for group in launch.stageable)
    block = tuple((loop.name, kernel.threads.get(loop.name, 1)) for loop in mapped_loops(facts))
    own = kernel.chosen() | {"block": block, "row_block": None}
    staged = {group: int(kernel.shared.issuperset(group)) for group in groups}
    return Candidates(**own, structure=structure, staged=staged).map(lambda one: np.array([one]))


def expected_of(
    facts: KernelFacts,
    structures: Sequence[Structure],
    profile: GpuProfile,
    kernel: KernelSelection,
) -> tuple[Prediction | None, str | None]:
    """Return what is expected of a selected kernel, or why nothing is."""
    structure = structure_of(structures, kernel)
    if structure is None and not facts.loops:  # one thread, nothing to choose
        structure = next((one for one in structures if not one.spreads), None)
    if structure is None:
        return None, ONE_THREAD
    stageable = [(own, {*group}) for own in structure.launches for group in own.stageable]
    if any(own.sum_loop and kernel.shared & group for own, group in stageable):
        return None, STAGED_SUMS
    factors = {at for one in structure.products for at in one.references}
    if not all(factors & group <= kernel.shared for _, group in stageable):
        return None, FAR_FACTORS
    found = CudaModel.of(facts, profile).columns(candidate_of(facts, structure, kernel))
    if not np.all(found.fits):
        return None, NO_REGISTERS
    prediction = found.at(0)
    return prediction, TOO_LARGE if prediction is None else None

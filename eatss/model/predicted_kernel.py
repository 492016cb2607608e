"""A kernel's selection by a prediction, as far as both targets say the same of it."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Layout
from eatss.gpu.profile import GpuProfile
from eatss.model.objectives import OBJECTIVES
from eatss.model.options import ObjectiveName
from eatss.model.selection import KernelSelection, ReferenceSelection, Usage
from eatss.prediction.expected import Prediction


@dataclass(frozen=True, slots=True)
class Places:
    """The references that registers and shared memory have, by position; L1 has the others."""

    private: Container[int]
    shared: Container[int]


def predicted_kernel(
    facts: KernelFacts,
    profile: GpuProfile,
    objective: ObjectiveName,
    *,
    layout: Layout,
    places: Places,
    shared_limit_bytes: int,
    prediction: Prediction | None,
) -> KernelSelection:
    """Return the selection of sizes; the caller adds how they were found.

    Args:
        facts: the kernel.
        profile: the card.
        objective: what was least.
        layout: what was chosen; it has no sizes where the kernel runs in one thread.
        places: where references go.
        shared_limit_bytes: shared memory that a block may have.
        prediction: what is expected of the sizes.
    """
    return KernelSelection.of(
        facts,
        layout,
        objective_formula=OBJECTIVES.get(objective).formula,
        shared_limit_bytes=shared_limit_bytes,
        references=_placed(facts, places),
        usage=_usage(prediction, profile, shared_limit_bytes),
        predicted=prediction,
    )


def _placed(facts: KernelFacts, places: Places) -> tuple[ReferenceSelection, ...]:
    return tuple(
        ReferenceSelection.at(
            reference,
            "private" if at in places.private else "shared" if at in places.shared else "l1",
        )
        for at, reference in enumerate(facts.references)
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

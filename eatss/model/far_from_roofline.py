"""What is said of predictions that are far from the least that a card could take for the work."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis.facts import KernelFacts
from eatss.analysis.touched import touched_bytes
from eatss.diagnostics import Diagnostic, Severity, SourceSpan
from eatss.gpu.profile import GpuProfile
from eatss.prediction.card import card_of
from eatss.prediction.expected import Prediction
from eatss.shown import time_text

FAR = 100
"""So many times the time at the roofline is not told without a word."""

_BYTES_OF_DOUBLE = 8


def far_from_roofline(
    kernels: Sequence[KernelFacts],
    predicted: Sequence[Prediction | None],
    profile: GpuProfile,
    span: SourceSpan | None = None,
) -> tuple[Diagnostic, ...]:
    """Return a note where a run is expected to take ``FAR`` times the time at the roofline.

    Args:
        kernels: of the program.
        predicted: what is expected of each, ``None`` where nothing is.
        profile: the card.
        span: the source.
    """
    known = [
        (facts.name, one) for facts, one in zip(kernels, predicted, strict=True) if one is not None
    ]
    least_s = least_time_s(kernels, profile)
    time_s = sum(one.time_s for _, one in known)
    if not known or not 0 < FAR * least_s <= time_s:
        return ()
    name, worst = max(known, key=lambda pair: pair[1].time_s)
    share = f"{100 * worst.time_s / time_s:.0f} % of it in {name}"
    again = f" and its {worst.launches} launches" if worst.launches > 1 else ""
    return (
        Diagnostic(
            code="EATSS-M025",
            severity=Severity.NOTE,
            message=f"{time_text(time_s)} are expected, {time_s / least_s:.3g} times the least "
            f"time of this work on {profile.name} ({time_text(least_s)}): {share}, bound by "
            f"{worst.bound}{again}",
            span=span,
            hint="larger sizes, or more loops that are parallel, would use more of the card",
        ),
    )


def least_time_s(kernels: Sequence[KernelFacts], profile: GpuProfile) -> float:
    """Return the time of the work at the roofline: arithmetic at its peak, each byte moved once.

    It is no less than a launch of each kernel.
    """
    arithmetic_s = 0.0
    moved: dict[str, float] = {}
    for facts in kernels:
        launches = facts.work.launches or 1
        sizes = {one.name: float(one.elements * one.element_bytes) for one in facts.work.arrays}
        for statement in facts.work.statements:
            wide = statement.element_bytes >= _BYTES_OF_DOUBLE
            peak = profile.peak_fp64_gflops if wide else profile.peak_fp32_gflops
            operations = sum(often for _, often in statement.operations)
            if peak is not None:
                arithmetic_s += (statement.instances or 0) * operations / (1e9 * peak)
            for access in statement.accesses:
                touched = () if access.touched is None else (access.touched,)
                own = min(sizes[access.array], launches * touched_bytes(touched))
                moved[access.array] = max(moved.get(access.array, 0.0), own)
    launched_s = len(kernels) * card_of(profile).launch_s
    return max(launched_s, arithmetic_s, sum(moved.values()) / (1e9 * profile.bandwidth_gb_s))

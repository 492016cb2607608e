"""What is said of predictions that are far from the least that a card could take for the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eatss.analysis.facts import KernelFacts
from eatss.analysis.structure import TensorFormat
from eatss.analysis.touched import touched_bytes
from eatss.analysis.work import StatementFacts
from eatss.base.diagnostics import Diagnostic, Severity, SourceSpan
from eatss.base.expected_run import ExpectedRun
from eatss.base.shown import time_text
from eatss.cards.profile import GpuProfile
from eatss.cost.card import card_of
from eatss.cost.expected import Prediction

_BYTES_OF_DOUBLE, _BYTES_OF_FLOAT = 8, 4

_FORMATS: Mapping[int, TensorFormat] = {8: "fp64", 2: "fp16", 1: "int8"}
"""What tensor cores multiply of elements of so many bytes, without a request."""


def far_from_roofline(
    run: ExpectedRun,
    kernels: Sequence[tuple[Sequence[str], Prediction]],
    gpu: str,
    span: SourceSpan | None = None,
) -> Diagnostic | None:
    """Return a note where a run is expected to take far more than the time at the roofline.

    Args:
        run: what is expected of the program.
        kernels: the statements of each, and what is expected of it.
        gpu: name of the card.
        span: the source.
    """
    if not run.is_far:
        return None
    statements, worst = max(kernels, key=lambda pair: pair[1].time_s, default=((), None))
    if worst is None or worst.time_s < run.host_time_s:
        share_s, where = run.host_time_s, "on the host, where PPCG leaves what is not parallel"
        hint = "'--target cuda' leaves nothing on the host: 'eatss codegen' generates that code"
    else:
        again = f" and its {worst.launches} launches" if worst.launches > 1 else ""
        kernel = f"the kernel of {', '.join(statements)}"
        share_s, where = worst.time_s, f"in {kernel}, bound by {worst.bound}{again}"
        hint = _hint(worst)
    return Diagnostic(
        code="EATSS-M025",
        severity=Severity.NOTE,
        message=f"{run.time_words} are expected, {run.times_words} the least "
        f"time of this work on {gpu} ({time_text(run.least_time_s)}): "
        f"{100 * share_s / run.time_s:.0f} % of it {where}",
        span=span,
        hint=hint,
    )


def _hint(one: Prediction) -> str:
    """Return what to do about a kernel, by what its time goes to."""
    if one.blocks * one.threads == 1:
        return (
            "one thread runs it, because each step waits for the one before; of long loops the "
            "note EATSS-A010 says what to write instead"
        )
    if one.launches > 1:
        return "each launch has little work: larger sizes inside the loop of the host give it more"
    return "larger sizes, or more loops that are parallel, would use more of the card"


def least_time_s(
    kernels: Sequence[KernelFacts],
    on_host: Mapping[str, float],
    profile: GpuProfile,
    *,
    tf32: bool = False,
) -> float:
    """Return the time of the work at the roofline: arithmetic at its peak, each byte moved once.

    It is no less than a launch of each kernel. ``on_host`` are the bytes of arrays that
    statements on the host touch. ``tf32``: tensor cores may multiply floats.
    """
    formats = {**_FORMATS, _BYTES_OF_FLOAT: "tf32"} if tf32 else _FORMATS
    arithmetic_s = 0.0
    moved = dict(on_host)
    for facts in kernels:
        launches = facts.work.launches or 1
        sizes = {one.name: float(one.elements * one.element_bytes) for one in facts.work.arrays}
        for statement in facts.work.statements:
            operations, adds_products = _operations(statement)
            peak = _peak_gflops(profile, statement, formats if adds_products else {})
            if peak is not None:
                arithmetic_s += (statement.instances or 0) * operations / (1e9 * peak)
            for access in statement.accesses:
                touched = () if access.touched is None else (access.touched,)
                own = min(sizes[access.array], launches * touched_bytes(touched))
                moved[access.array] = max(moved.get(access.array, 0.0), own)
    launched_s = max(1, len(kernels)) * card_of(profile).launch_s
    return max(launched_s, arithmetic_s, sum(moved.values()) / (1e9 * profile.bandwidth_gb_s))


def _peak_gflops(
    profile: GpuProfile, statement: StatementFacts, formats: Mapping[int, TensorFormat]
) -> float | None:
    """Return the peak of a statement's arithmetic; ``formats`` are those of tensor cores."""
    wide = statement.element_bytes >= _BYTES_OF_DOUBLE
    plain = profile.peak_fp64_gflops if wide else profile.peak_fp32_gflops
    form = formats.get(min((one.element_bytes for one in statement.accesses), default=0))
    tensor = None if form is None else profile.peak_tensor_gflops(form)
    return plain if tensor is None else tensor


def _operations(statement: StatementFacts) -> tuple[int, bool]:
    """Return the operations of an instance at least, and whether they add products.

    Those whose value several instances share are left out. What adds products has a multiplication
    for each addition: other factors may wait until the sum is there. A product of integers counts
    as two, with its sum.
    """
    counts = dict(statement.operations)
    shared = sum(often for _, kinds in statement.repeated for _, often in kinds)
    every, additions = sum(counts.values()) - shared, counts.get("add", 0)
    products = additions > 0 and "multiply" in counts
    own = min(every, 2 * additions) if products else every
    return own + 2 * statement.integer_products, products or statement.integer_products > 0

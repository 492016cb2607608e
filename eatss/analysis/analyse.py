"""Puts the facts of a kernel together."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis.coalescing import (
    classify,
    contiguous_loops,
    count_stride_one,
    find_cma_loop,
)
from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts, Volume, VolumeKind
from eatss.analysis.reuse import count_distinct_references, invariant_loops, temporal_loops
from eatss.analysis.work import kernel_work, overlapping
from eatss.polyhedral.footprint import footprint
from eatss.polyhedral.kernel import Kernel, Reference
from eatss.polyhedral.program import ScheduledScop
from eatss.polynomial import Polynomial
from eatss.scops import ElementType, Scop


def analyse(
    scheduled: ScheduledScop,
    *,
    volume: VolumeKind = VolumeKind.FOOTPRINT,
    element_type: ElementType | None = None,
    first_index: int = 0,
) -> tuple[KernelFacts, ...]:
    """Return the facts of every kernel of a scheduled scop, in launch order.

    Args:
        scheduled: The scop with its kernels.
        volume: How the elements a tile touches are counted.
        element_type: Overrides the type of every floating-point array.
        first_index: Number of the first kernel; regions of one file count on.
    """
    return tuple(
        analyse_kernel(
            scheduled.scop,
            kernel,
            volume=volume,
            element_type=element_type,
            index=first_index + position,
        )
        for position, kernel in enumerate(scheduled.kernels)
    )


def analyse_kernel(
    scop: Scop,
    kernel: Kernel,
    *,
    volume: VolumeKind,
    element_type: ElementType | None,
    index: int,
) -> KernelFacts:
    """Return the facts of one kernel. Scalars live in registers and are left out."""
    references = tuple(r for r in kernel.references if r.subscripts)
    cma_loop = find_cma_loop(kernel, references)
    element_bytes = _element_bytes(scop, references, element_type)
    facts = tuple(_reference_facts(kernel, r, cma_loop) for r in references)
    return KernelFacts(
        name=f"kernel{index}",
        index=index,
        statements=kernel.statements,
        host_loops=kernel.host_loops,
        loops=kernel.loops,
        inner_loops=kernel.inner_loops,
        element_bytes=element_bytes,
        cma_loop=cma_loop,
        references=facts,
        reductions=kernel.reductions,
        volume_kind=volume,
        volumes=_volumes(kernel, references, facts, volume),
        stride_one=tuple(
            (loop.name, count_stride_one(references, loop.name)) for loop in kernel.loops
        ),
        distinct_references=count_distinct_references(kernel.statements, references, element_bytes),
        work=kernel_work(scop, kernel, references, element_type),
        overlaps=overlapping(references),
    )


def _reference_facts(kernel: Kernel, reference: Reference, cma_loop: str | None) -> ReferenceFacts:
    contiguous = contiguous_loops(reference)
    return ReferenceFacts(
        array=reference.array,
        access=reference.text,
        statements=reference.statements,
        reads=reference.reads,
        writes=reference.writes,
        memory=classify(kernel, reference, cma_loop),
        cma=cma_loop is not None and cma_loop in contiguous,
        temporal=temporal_loops(kernel, reference),
        invariant=invariant_loops(kernel, reference),
        spatial=contiguous,
    )


def _element_bytes(
    scop: Scop, references: Sequence[Reference], element_type: ElementType | None
) -> int:
    """Return the width of the kernel's widest element, the override applied."""
    types = {scop.array(r.array).element_type for r in references}
    if element_type is not None:
        types = {element_type if t.is_floating else t for t in types}
    return max((t.size_bytes for t in types), default=ElementType.FLOAT.size_bytes)


def _volumes(
    kernel: Kernel,
    references: Sequence[Reference],
    facts: Sequence[ReferenceFacts],
    kind: VolumeKind,
) -> tuple[Volume, ...]:
    if kind is VolumeKind.PRODUCT:
        return tuple(
            Volume(
                array=reference.array,
                memory=fact.memory,
                references=(position,),
                elements=Polynomial.product(reference.loops),
                exact=False,
            )
            for position, (reference, fact) in enumerate(zip(references, facts, strict=True))
        )
    return _footprint_volumes(kernel, references, facts)


def _footprint_volumes(
    kernel: Kernel, references: Sequence[Reference], facts: Sequence[ReferenceFacts]
) -> tuple[Volume, ...]:
    """Count the references to one array in one memory together, so that halos count once."""
    groups: dict[tuple[str, Memory], list[int]] = {}
    for position, fact in enumerate(facts):
        groups.setdefault((fact.array, fact.memory), []).append(position)
    loops = kernel.loops + kernel.inner_loops
    volumes = []
    for (array, memory), positions in groups.items():
        counted = footprint([references[p] for p in positions], loops)
        volumes.append(
            Volume(
                array=array,
                memory=memory,
                references=tuple(positions),
                elements=counted.elements,
                exact=counted.exact,
            )
        )
    return tuple(volumes)

"""The facts of a kernel: its CMA loop, memory classes, reuse, volumes [EATSS, Sec. IV-D, IV-E]."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts, Volume, VolumeKind
from eatss.analysis.work import kernel_work, overlapping
from eatss.polyhedral.footprint import footprint
from eatss.polyhedral.kernel import Kernel, Reference, Subscript
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


def stride_one_loops(reference: Reference) -> tuple[str, ...]:
    """Return the loops that occur with coefficient ±1 in the last subscript.

    These are the loops in which the reference is the fastest-varying one; a
    convolution's ``I[h + kh][w + kw]`` has two, ``w`` and ``kw``.
    """
    if not reference.subscripts:
        return ()
    last = reference.subscripts[-1]
    if not last.affine:
        return ()
    return tuple(name for name, coefficient in last.coefficients if abs(coefficient) == 1)


def contiguous_loops(reference: Reference) -> tuple[str, ...]:
    """Return the loops along which the reference walks contiguous memory.

    Unlike :func:`stride_one_loops` the loop may occur in no other subscript: the
    diagonal ``A[i][i]`` is not contiguous in ``i``.
    """
    elsewhere = {name for subscript in reference.subscripts[:-1] for name in subscript.loops}
    return tuple(name for name in stride_one_loops(reference) if name not in elsewhere)


def count_stride_one(references: Sequence[Reference], loop: str) -> int:
    """Return in how many references ``loop`` is the fastest-varying subscript."""
    return sum(loop in stride_one_loops(reference) for reference in references)


def find_cma_loop(kernel: Kernel, references: Sequence[Reference]) -> str | None:
    """Return the loop for coalesced memory accesses, ``l_s1`` [Sec. IV-D].

    It is the parallel loop that walks contiguous memory in the most references.
    Equals are decided by the number of arrays that the loop indexes, then by depth, the
    innermost first. ``None`` if no parallel loop is stride-one anywhere.
    """
    best: tuple[int, int, int] | None = None
    chosen: str | None = None
    for depth, loop in enumerate(kernel.loops):
        if not loop.parallel:
            continue
        stride_one = sum(loop.name in contiguous_loops(r) for r in references)
        arrays = len({r.array for r in references if loop.name in r.loops})
        rank = (stride_one, arrays, depth)
        if stride_one > 0 and (best is None or rank > best):
            best, chosen = rank, loop.name
    return chosen


def is_updated_repeatedly(kernel: Kernel, reference: Reference) -> bool:
    """Return whether one element is read and written again and again inside a tile."""
    loops = {loop.name for loop in kernel.loops + kernel.inner_loops}
    return reference.reads and reference.writes and bool(loops - reference.loops)


def classify(kernel: Kernel, reference: Reference, cma_loop: str | None) -> Memory:
    """Return the memory class of a reference [Sec. IV-E].

    L1 if it walks contiguous memory along the CMA loop, or does not move along it
    but is updated repeatedly; any other belongs in shared memory.
    """
    if cma_loop is not None and cma_loop in contiguous_loops(reference):
        return Memory.L1
    moves = cma_loop is not None and cma_loop in reference.loops
    if not moves and is_updated_repeatedly(kernel, reference):
        return Memory.L1
    return Memory.SHARED


CACHE_LINE_BYTES = 128
"""L1 and L2 line of every NVIDIA GPU since Fermi (four 32-byte sectors)."""


def invariant_loops(kernel: Kernel, reference: Reference) -> tuple[str, ...]:
    """Return all loops of the kernel along which the reference does not move."""
    loops = kernel.loops + kernel.inner_loops
    return tuple(loop.name for loop in loops if loop.name not in reference.loops)


def temporal_loops(kernel: Kernel, reference: Reference) -> tuple[str, ...]:
    """Return the loops that carry temporal reuse, as Table II of EATSS lists them.

    The outermost loop of a nest is left out: between two of its iterations all
    other loops sweep their whole range, so what it would reuse is long evicted
    unless that loop is tiled. ``matmul``'s ``Ker[k][j]`` therefore has none.
    """
    loops = kernel.loops + kernel.inner_loops
    outermost = loops[0].name if len(loops) > 1 else None
    return tuple(name for name in invariant_loops(kernel, reference) if name != outermost)


def count_distinct_references(
    statements: Sequence[str], references: Sequence[Reference], element_bytes: int
) -> int:
    """Return ``no.references`` of Sec. IV-G: those that touch different cache lines.

    The number stands for registers, and statements fused into one kernel run one after
    the other, so it is the largest number that one statement needs.
    """
    return max(
        (
            count_distinct_lines([r for r in references if name in r.statements], element_bytes)
            for name in statements
        ),
        default=0,
    )


def count_distinct_lines(references: Sequence[Reference], element_bytes: int) -> int:
    """Return how many cache lines the references touch at one point of the loops.

    References to one array that differ only by a constant, shorter than a line, in the
    last subscript share a line: ``hz[i][j]`` and ``hz[i][j-1]`` count once.
    """
    line_elements = max(1, CACHE_LINE_BYTES // element_bytes)
    lines: list[Reference] = []
    for reference in references:
        if not any(_share_line(reference, other, line_elements) for other in lines):
            lines.append(reference)
    return len(lines)


def _share_line(a: Reference, b: Reference, line_elements: int) -> bool:
    if a.array != b.array or len(a.subscripts) != len(b.subscripts) or not a.subscripts:
        return False
    *a_outer, a_last = a.subscripts
    *b_outer, b_last = b.subscripts
    if any(_distance(x, y) != 0 for x, y in zip(a_outer, b_outer, strict=True)):
        return False
    distance = _distance(a_last, b_last)
    return distance is not None and distance < line_elements


def _distance(a: Subscript, b: Subscript) -> int | None:
    """Return ``|a - b|`` where it is a known constant, else ``None``."""
    if not (a.affine and b.affine):
        return None
    if a.coefficients != b.coefficients or a.symbols != b.symbols:
        return None
    return abs(a.offset - b.offset)

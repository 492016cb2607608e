"""The facts of all kernels of a program [EATSS, Sec. IV-D, IV-E], and loops that run slowly."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts
from eatss.analysis.work import (
    bytes_of,
    bytes_of_arrays,
    instances_of,
    kernel_work,
    overlapping,
    parameter_values,
    sizes_of,
)
from eatss.base.diagnostics import Diagnostic, Diagnostics
from eatss.base.frozen import Names, complete, distinct, frozen, their_names
from eatss.base.polynomial import Polynomial
from eatss.base.shown import ProgramSize
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.kernel import Kernel, Reference, ScheduledScop, Subscript
from eatss.polyhedral.scop import Scop
from eatss.program.expression import OwnSizes


def analyse(
    scheduled: ScheduledScop,
    *,
    element_type: ElementType | None = None,
    first_index: int = 0,
) -> tuple[KernelFacts, ...]:
    """Return the facts of every kernel of a scheduled scop, in launch order.

    Args:
        scheduled: The scop with its kernels.
        element_type: Overrides the type of every floating-point array.
        first_index: Number of the first kernel; regions of one file count on.
    """
    return tuple(
        analyse_kernel(
            scheduled.scop,
            kernel,
            element_type=element_type,
            index=first_index + position,
        )
        for position, kernel in enumerate(scheduled.kernels)
    )


CACHE_LINE_BYTES = 128
"""L1 and L2 line of every NVIDIA GPU since Fermi (four 32-byte sectors)."""


def analyse_kernel(
    scop: Scop,
    kernel: Kernel,
    *,
    element_type: ElementType | None,
    index: int,
) -> KernelFacts:
    """Return the facts of one kernel. Scalars live in registers and are left out."""
    references = tuple(r for r in kernel.references if r.subscripts)
    cma_loop = _cma_loop(kernel, references)
    types = {scop.array(r.array).element_type for r in references}
    if element_type is not None:
        types = {element_type if t.is_floating else t for t in types}
    element_bytes = max((t.size_bytes for t in types), default=ElementType.FLOAT.size_bytes)
    facts = tuple(_reference_facts(kernel, r, cma_loop) for r in references)
    stride_one = [name for r in references for name in _stride_one(r)]
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
        stride_one=tuple((loop.name, stride_one.count(loop.name)) for loop in kernel.loops),
        # the number stands for registers, and statements of a kernel run one after the other
        distinct_references=max(
            (
                _distinct_lines([r for r in references if name in r.statements], element_bytes)
                for name in kernel.statements
            ),
            default=0,
        ),
        work=kernel_work(scop, kernel, references, element_type),
        overlaps=overlapping(references),
    )


def _stride_one(reference: Reference) -> list[str]:
    """Return the loops that occur with coefficient ±1 in the last subscript.

    These are the loops in which the reference is the fastest-varying one; a
    convolution's ``I[h + kh][w + kw]`` has two, ``w`` and ``kw``.
    """
    last = reference.subscripts[-1]
    return [name for name, c in last.coefficients if abs(c) == 1] if last.affine else []


def _contiguous(reference: Reference) -> Names:
    """Return the loops along which the reference walks contiguous memory.

    Such a loop occurs in no other subscript: the diagonal ``A[i][i]`` is not contiguous in ``i``.
    """
    elsewhere = {name for subscript in reference.subscripts[:-1] for name in subscript.loops}
    return tuple(name for name in _stride_one(reference) if name not in elsewhere)


def _cma_loop(kernel: Kernel, references: Sequence[Reference]) -> str | None:
    """Return the loop for coalesced memory accesses, ``l_s1`` [Sec. IV-D].

    It is the parallel loop that walks contiguous memory in the most references.
    Equals are decided by the number of arrays that the loop indexes, then by depth, the
    innermost first. ``None`` if no parallel loop is stride-one anywhere.
    """
    ranks = [(0, 0, 0, "")]
    for depth, loop in enumerate(kernel.loops):
        if loop.parallel:
            stride_one = sum(loop.name in _contiguous(r) for r in references)
            arrays = len({r.array for r in references if loop.name in r.loops})
            ranks.append((stride_one, arrays, depth, loop.name))
    stride_one, *_, name = max(ranks)
    return name if stride_one else None


def _reference_facts(kernel: Kernel, reference: Reference, cma_loop: str | None) -> ReferenceFacts:
    """Return a reference with its memory class [Sec. IV-E] and its reuse.

    It is L1 if it walks contiguous memory along the CMA loop, or does not move along it but is read
    and written again and again inside a tile; any other belongs in shared memory. Table II of EATSS
    lists temporal reuse without the outermost loop of a nest: between two of its iterations all
    other loops sweep their whole range, so what it would reuse is long evicted unless that loop is
    tiled. ``matmul``'s ``Ker[k][j]`` therefore has none.
    """
    loops = their_names(kernel.loops + kernel.inner_loops)
    contiguous, still = _contiguous(reference), tuple(n for n in loops if n not in reference.loops)
    updated = reference.reads and reference.writes and bool(still)
    cma = cma_loop in contiguous
    moving = [name for one in reference.subscripts for name in one.loops]
    plain = all(one.affine and len(one.loops) <= 1 for one in reference.subscripts)
    return ReferenceFacts(
        array=reference.array,
        access=reference.text,
        statements=reference.statements,
        reads=reference.reads,
        writes=reference.writes,
        memory=Memory.L1 if cma or (updated and cma_loop not in reference.loops) else Memory.SHARED,
        cma=cma,
        temporal=tuple(name for name in still if len(loops) == 1 or name != loops[0]),
        invariant=still,
        spatial=contiguous,
        elements=Polynomial.product(reference.loops),
        exact=plain and len({*moving}) == len(moving),
    )


def _distinct_lines(references: Sequence[Reference], element_bytes: int) -> int:
    """Return how many cache lines the references touch at one point of the loops [Sec. IV-G].

    References to one array that differ only by a constant, shorter than a line, in the
    last subscript share a line: ``hz[i][j]`` and ``hz[i][j-1]`` count once.
    """
    line_elements = max(1, CACHE_LINE_BYTES // element_bytes)

    def share_line(a: Reference, b: Reference) -> bool:
        if a.array != b.array or len(a.subscripts) != len(b.subscripts):
            return False
        *outer, last = map(Subscript.distance, a.subscripts, b.subscripts)
        return not any(one != 0 for one in outer) and last is not None and last < line_elements

    lines: list[Reference] = []
    for reference in references:
        if not any(share_line(reference, other) for other in lines):
            lines.append(reference)
    return len(lines)


@frozen
class AnalysedScop:
    """One region with its schedule and the facts of its kernels.

    ``scop`` is the region as read; what is scheduled may lack its dead code. ``warnings`` say why
    the kernels may be others than PPCG's.
    """

    scop: Scop
    scheduled: ScheduledScop
    facts: tuple[KernelFacts, ...]
    warnings: Diagnostics = ()


@frozen
class AnalysedProgram:
    """All regions of a C file; kernels are numbered through the file.

    ``dtype`` is the element type selected for, in its C spelling.
    """

    file: str
    dtype: str
    scops: tuple[AnalysedScop, ...]
    warnings: Diagnostics

    @property
    def facts(self) -> tuple[KernelFacts, ...]:
        """The facts of all kernels of the file, in launch order."""
        return tuple(fact for scop in self.scops for fact in scop.facts)

    @property
    def sizes(self) -> tuple[ProgramSize, ...]:
        """The sizes that counts of all kernels are for."""
        return sizes_of(scop.scop for scop in self.scops)

    @property
    def doubts(self) -> Diagnostics:
        """Why the kernels may be others than PPCG's."""
        return tuple(warning for scop in self.scops for warning in scop.warnings)

    @property
    def functions(self) -> Names:
        """The functions the regions stand in, each once, in source order."""
        return distinct(scop.scheduled.scop.function for scop in self.scops)

    @property
    def host_statements(self) -> Names:
        """The statements that no kernel has, as ``function: S0``."""
        return tuple(
            f"{scop.scheduled.scop.function}: {name}"
            for scop in self.scops
            for name in scop.scheduled.host_statements
        )

    @property
    def host_instances(self) -> int | None:
        """How many instances those statements have, ``None`` where they cannot be counted."""
        found = complete(
            instances_of(scop.scheduled.scop, scop.scheduled.host_statements) for scop in self.scops
        )
        return None if found is None else sum(found)

    @property
    def host_bytes(self) -> OwnSizes:
        """How many bytes of each array those statements touch, as far as they can be counted."""
        found: OwnSizes = {}
        for scop in self.scops:
            found |= bytes_of(scop.scheduled.scop, scop.scheduled.host_statements)
        return found

    @property
    def array_bytes(self) -> int:
        """How many bytes all arrays take at the sizes; those of several regions count once."""
        found: dict[tuple[str, str], int] = {}
        for region in self.scops:
            scop = region.scheduled.scop
            for name, own in bytes_of_arrays(scop, parameter_values(scop)).items():
                place = scop.function, name
                found[place] = max(own, found.get(place, 0))
        return sum(found.values())

    @property
    def beyond_32_bits(self) -> Names:
        """The arrays whose elements a signed subscript of 32 bits cannot all reach."""
        return distinct(
            name
            for region in self.scops
            for scop in (region.scheduled.scop,)
            for name, own in bytes_of_arrays(scop, parameter_values(scop)).items()
            if own > scop.array(name).element_type.size_bytes << 31
        )


@frozen
class SlowLoop:
    """Statements of which a loop runs in few threads, and the note that tells of it."""

    statements: Names
    note: Diagnostic

    @property
    def text(self) -> str:
        """What is told of it, and what to write instead, in one line."""
        return f"{self.note.message}; {self.note.hint}"

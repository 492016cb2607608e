"""The CMA loop and the memory class of each reference [EATSS, Sec. IV-D and IV-E]."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.analysis.facts import Memory
from eatss.polyhedral.kernel import Kernel, Reference


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

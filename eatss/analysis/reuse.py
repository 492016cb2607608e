"""Reuse of each reference per loop, and references that share a cache line."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.polyhedral.kernel import Kernel, Reference, Subscript

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

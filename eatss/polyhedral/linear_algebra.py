"""Small exact linear algebra: rank of an integer matrix and coordinates in its columns."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def column_rank(matrix: Sequence[Sequence[int]]) -> int:
    """Return the rank of a matrix given by rows."""
    return len(_reduce([[Fraction(x) for x in row] for row in matrix])[1])


def solve_columns(
    matrix: Sequence[Sequence[int]], vector: Sequence[int]
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Express ``vector`` in the columns of ``matrix``, which must be independent.

    Returns:
        The coordinates, and what is left of the vector; two vectors differ by a
        combination of columns if and only if what is left is equal.
    """
    width = len(matrix[0]) if matrix else 0
    rows, pivots = _reduce(
        [[Fraction(x) for x in (*row, v)] for row, v in zip(matrix, vector, strict=True)],
        columns=width,
    )
    solution = [Fraction(0)] * width
    for row, column in enumerate(pivots):
        solution[column] = rows[row][-1]
    return tuple(solution), tuple(row[-1] for row in rows[len(pivots) :])


def _reduce(
    rows: list[list[Fraction]], *, columns: int | None = None
) -> tuple[list[list[Fraction]], list[int]]:
    """Bring rows to reduced echelon form over the first ``columns``; return them and the pivots."""
    pivots: list[int] = []
    width = columns if columns is not None else (len(rows[0]) if rows else 0)
    for column in range(width):
        top = len(pivots)
        pivot = next((r for r in range(top, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[top], rows[pivot] = rows[pivot], rows[top]
        scale = rows[top][column]
        rows[top] = [x / scale for x in rows[top]]
        for r in range(len(rows)):
            if r != top and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[top], strict=True)]
        pivots.append(column)
    return rows, pivots

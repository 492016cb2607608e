"""Elements that lie beside each other in shared memory are loaded together, 16 bytes at a time.

    sh.B[k][j], sh.B[k][j + 1], sh.B[k][j + 2], sh.B[k][j + 3]

The compiler makes one load of them where it can see that they begin at a multiple of 16 bytes. So
rows of boxes have such lengths, and a thread has neighbouring points along the last loop instead of
points that are as far apart as there are threads.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from eatss.analysis.structure import MOST_ROWS, MOST_VECTORS, VECTOR_BYTES
from eatss.analysis.work import reference_of
from eatss.lower.storage import Candidate, Place, StoragePlan
from eatss.schedule.mapping import MappedLoop, Mapping
from eatss.schedule.pieces import Piece
from eatss.scops import Scop
from eatss.transform.vectors_apart import Neighbours


def vector_of(candidate: Candidate, mapping: Mapping, element_bytes: int) -> int:
    """Return how many elements of a box a thread may load at a time: 1 where lanes are in columns.

    Rows of odd length are better for those: many lanes that read one column have a bank each then.
    """
    last = _last(mapping)
    if mapping.warps or mapping.split is not None or last is None:
        return 1
    in_columns = last.source_name in candidate.across and last.threads > MOST_ROWS
    return 1 if in_columns else max(1, VECTOR_BYTES // element_bytes)


def in_rows(
    mapping: Mapping, piece: Piece, storage: StoragePlan, staged: Collection[Candidate], scop: Scop
) -> Mapping:
    """Return a layout whose threads have neighbouring points along the last loop, where that helps.

    It does where what moves along the loop lies in rows of shared memory or in registers.
    """
    last = _last(mapping)
    if last is None or last.threads == 1 or last.tile != last.threads * last.points:
        return mapping
    rows: set[Place] = set()
    for candidate in staged:
        width = vector_of(candidate, mapping, scop.array(candidate.array).element_type.size_bytes)
        if last.source_name == candidate.along and _fits(last.points, width):
            rows |= candidate.places
    held = {place for own in storage.registers for place in own.places}
    if not rows or any(
        (statement.name, number) not in rows | held
        for statement in piece.statements
        for number, access in enumerate(statement.accesses)
        if _moves(piece, statement.name, access.array, access.text, last)
    ):
        return mapping
    wide = replace(last, cyclic=False)
    return replace(mapping, mapped=tuple(wide if loop is last else loop for loop in mapping.mapped))


def neighbours_of(mapping: Mapping, staged: Collection[Candidate], scop: Scop) -> Neighbours | None:
    """Return the loop of which threads have several vectors of points, ``None`` for none.

    All rows of shared memory that are read along it have vectors as long.
    """
    last = _last(mapping)
    if last is None or last.cyclic:
        return None
    widths = {
        vector_of(candidate, mapping, scop.array(candidate.array).element_type.size_bytes)
        for candidate in staged
        if candidate.along == last.source_name
    }
    if len(widths) != 1:
        return None
    return Neighbours(
        thread=last.thread,
        threads=last.threads,
        point=last.point,
        points=last.points,
        vector=widths.pop(),
    )


def _fits(points: int, width: int) -> bool:
    """Tell whether points are whole vectors, and few enough."""
    return width > 1 and points % width == 0 and points <= MOST_VECTORS * width


def _last(mapping: Mapping) -> MappedLoop | None:
    """Return the loop along x."""
    return max(mapping.mapped, key=lambda loop: loop.order, default=None)


def _moves(piece: Piece, statement: str, array: str, text: str, loop: MappedLoop) -> bool:
    """Tell whether an access moves along a loop."""
    known = tuple(one for one in piece.kernel.references if one.subscripts)
    position = reference_of(array, text, statement, known)
    return position is not None and loop.source_name in known[position].loops

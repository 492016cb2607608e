"""Elements that lie beside each other in shared memory are loaded together, 16 bytes at a time.

    sh.B[k][j], sh.B[k][j + 1], sh.B[k][j + 2], sh.B[k][j + 3]

The compiler makes one load of them where it can see that they begin at a multiple of 16 bytes. So
rows of boxes have such lengths, and a thread has neighbouring points along a loop instead of
points that are as far apart as there are threads.

Of ``A[i][k]``, which is multiplied by all of a thread's points along ``j``, the box may be turned:

    sh.A[k][i], sh.A[k][i + 1], sh.A[k][i + 2], sh.A[k][i + 3]

In rows along ``k`` a vector is of four steps, and registers have those of all points. That is too
much where most of them hold sums. But turned boxes are copied element by element.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from math import prod

from eatss.analysis.lanes import interleaves
from eatss.analysis.structure import (
    MOST_ROWS,
    MOST_VECTORS,
    PIECE_BYTES,
    TURNED_TOGETHER,
    VECTOR_BYTES,
    copied_in_pieces,
    crowded,
)
from eatss.analysis.work import reference_of
from eatss.lower.arrays import DeviceArray
from eatss.lower.storage import Candidate, StoragePlan
from eatss.schedule.mapping import MappedLoop, Mapping
from eatss.schedule.parts import Part
from eatss.schedule.pieces import Piece
from eatss.scops import Scop
from eatss.transform.vectors_apart import Neighbours

_WORD_BYTES = 4


def row_dimension(candidate: Candidate, mapping: Mapping) -> int:
    """Return the dimension along which rows of a box lie: that of neighbouring points, or the last.

    All boxes that move along such points have rows along them [:func:`in_rows`].
    """
    wide = {loop.source_name for loop in mapping.mapped if not loop.cyclic}
    found = (at for at, loop in enumerate(candidate.along) if loop in wide)
    return next(found, len(candidate.along) - 1)


def vector_of(candidate: Candidate, mapping: Mapping, element_bytes: int) -> int:
    """Return the elements of which rows of a box are an odd multiple, if of them at all.

    They are those that a thread may load at a time. Where lanes are in columns it is 1: many that
    read one column have a bank each then. Copies into turned boxes meet no bank twice by it.
    """
    last = _last(mapping)
    if mapping.warps or mapping.split is not None or last is None:
        return 1
    if row_dimension(candidate, mapping) != len(candidate.along) - 1:
        return TURNED_TOGETHER
    in_columns = last.source_name in candidate.across and last.threads > MOST_ROWS
    return 1 if in_columns else _width(element_bytes)


def in_rows(
    mapping: Mapping,
    piece: Piece,
    parts: Sequence[Part],
    storage: StoragePlan,
    staged: Collection[Candidate],
    arrays: Dictionary[str, DeviceArray],
    registers: int,
) -> Mapping:
    """Return a layout whose threads have neighbouring points along the loops where that helps.

    It does where what moves along a loop lies in rows of shared memory or in registers, as far as
    serial loops run around it. Rows of a box lie along one loop, and loops along x come first.

    Args:
        mapping: the layout.
        piece: what is laid out.
        parts: which statements serial loops run around.
        storage: where its references live.
        staged: those that are staged in shared memory.
        arrays: of the region, by name.
        registers: that a thread may have.
    """
    if mapping.warps or mapping.split is not None:
        return mapping
    full = _is_crowded(mapping, storage, staged, arrays, registers)
    held = {place for own in storage.registers for place in own.places}
    once = once_a_tile(parts)
    taken: set[Candidate] = set()
    last = _last(mapping)
    for loop in sorted(mapping.mapped, key=lambda one: one.order, reverse=True):
        rows = {
            candidate
            for candidate in staged
            for array in [arrays[candidate.array]]
            for size in [array.array.element_type.size_bytes]
            if candidate not in taken
            and _fits(loop, _width(size))
            and (
                candidate.along[-1] == loop.source_name
                or (
                    (full or loop is last or not array.may_be_aligned(_width(size)))
                    and _may_turn(candidate, loop, mapping, size)
                )
            )
        }
        fine = held.union(*(candidate.places for candidate in rows))
        if not rows or any(
            (statement.name, number) not in fine
            for statement in piece.statements
            if statement.name not in once
            for number, access in enumerate(statement.accesses)
            if _moves(piece, statement.name, access.array, access.text, loop)
        ):
            continue
        taken |= rows
        wide = replace(loop, cyclic=False)
        mapped = tuple(wide if one is loop else one for one in mapping.mapped)
        mapping = replace(mapping, mapped=mapped)
    return mapping


def once_a_tile(parts: Sequence[Part]) -> frozenset[str]:
    """Return the statements that no serial loop runs around, though one does around others."""
    if not any(part.serial for part in parts):
        return frozenset()
    return frozenset(name for part in parts if not part.serial for name in part.statements)


def with_lanes_interleaved(mapping: Mapping, staged: Collection[Candidate]) -> Mapping:
    """Return a layout whose lanes are interleaved where vectors take fewer wavefronts by it.

    Threads have neighbouring points along both loops, see :func:`in_rows`.

    Args:
        mapping: the layout.
        staged: the references that are staged in shared memory.
    """
    loops = mapping.with_threads
    pair = loops[:2]
    alone = mapping.warps or mapping.split is not None
    if alone or len(pair) < len(("x", "y")) or any(loop.cyclic for loop in pair):
        return mapping
    wide = {loop.source_name for loop in mapping.mapped if not loop.cyclic}
    loads = [
        ([loop.source_name in candidate.moving for loop in loops], True)
        for candidate in staged
        if candidate.along[row_dimension(candidate, mapping)] in wide
    ]
    found = interleaves([loop.threads for loop in loops], (0, 1), loads)
    return replace(mapping, interleaved=True) if found else mapping


def _is_crowded(
    mapping: Mapping,
    storage: StoragePlan,
    staged: Collection[Candidate],
    arrays: Dictionary[str, DeviceArray],
    registers: int,
) -> bool:
    """Tell whether vectors of steps of all that lies along the sums are too much for registers."""
    sizes = (arrays[own.array].array.element_type.size_bytes for own in storage.registers)
    sums = sum(max(1, size // _WORD_BYTES) for size in sizes) * mapping.points
    serial = {tile.source_name for tile in mapping.serial}
    vectors = sum(
        prod(one.points for one in mapping.mapped if one.source_name in candidate.moving)
        for candidate in staged
        if candidate.along[-1] in serial
    )
    return bool(crowded(sums, vectors * (VECTOR_BYTES // _WORD_BYTES), registers))


def _may_turn(candidate: Candidate, loop: MappedLoop, mapping: Mapping, element_bytes: int) -> bool:
    """Tell whether rows of a box may lie along a loop, and those of the array along a serial one.

    A thread needs an element for several points of another loop then, and copies are of whole
    pieces.
    """
    *others, last = candidate.along
    serial = {one.source_name: one.tile for one in mapping.serial}
    tiles = serial | {one.source_name: one.tile for one in mapping.mapped}
    if last is None or last not in serial or loop.source_name not in others:
        return False
    if any(tiles.get(name) != 1 for name in candidate.moving - {last, loop.source_name}):
        return False
    again = any(
        one.points > 1 and one.source_name not in candidate.moving for one in mapping.mapped
    )
    piece = PIECE_BYTES // element_bytes
    return again and bool(copied_in_pieces(loop.tile, tiles[last], mapping.threads, piece))


def neighbours_of(
    mapping: Mapping, staged: Collection[Candidate], scop: Scop
) -> tuple[Neighbours, ...]:
    """Return the loops of which threads have several vectors of points.

    All rows of shared memory that are read along one have vectors as long.
    """
    found = []
    for loop in mapping.mapped:
        widths = {
            _width(scop.array(candidate.array).element_type.size_bytes)
            for candidate in staged
            if not loop.cyclic and loop.source_name in candidate.along
        }
        if len(widths) == 1:
            found.append(
                Neighbours(
                    thread=loop.thread,
                    threads=loop.threads,
                    point=loop.point,
                    points=loop.points,
                    vector=widths.pop(),
                )
            )
    return tuple(found)


def _width(element_bytes: int) -> int:
    """Return the elements of a vector."""
    return max(1, VECTOR_BYTES // element_bytes)


def _fits(loop: MappedLoop, width: int) -> bool:
    """Tell whether points of a thread are whole vectors, and few enough."""
    whole = loop.threads > 1 and loop.tile == loop.threads * loop.points
    several = width > 1 and loop.points % width == 0
    return whole and several and loop.points <= MOST_VECTORS * width


def _last(mapping: Mapping) -> MappedLoop | None:
    """Return the loop along x."""
    return max(mapping.mapped, key=lambda loop: loop.order, default=None)


def _moves(piece: Piece, statement: str, array: str, text: str, loop: MappedLoop) -> bool:
    """Tell whether an access moves along a loop."""
    known = tuple(one for one in piece.kernel.references if one.subscripts)
    position = reference_of(array, text, statement, known)
    return position is not None and loop.source_name in known[position].loops

"""Pieces that follow each other as phases of the same blocks: each block has rows of its own.

Softmax is a maximum over ``j``, exponentials, a sum over ``j`` and a division. All of them have a
loop over rows outside, and nothing leads from one row to another. So a block can take a row
through all of them, and what one of them leaves of it is still in a cache for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import islpy as isl

from eatss.analysis.layout import RowBlock
from eatss.lower.schedule.launch_order import every_dependence, instances
from eatss.lower.schedule.mapping import MappedLoop, Mapping, SerialTile, laid_out
from eatss.lower.schedule.names import NameTable
from eatss.lower.schedule.pieces import LoopMember, Piece
from eatss.polyhedral import Dependences
from eatss.polyhedral.isl_names import function_on, named_map
from eatss.polyhedral.scop import Statement


def row_groups(
    pieces: Sequence[Piece], dependences: Dependences
) -> Iterator[tuple[tuple[Piece, ...], int]]:
    """Yield the longest runs of pieces that share rows, and the number of their row loops.

    Rows are as many outer parallel loops as all pieces of a run have in common.
    """
    at = 0
    while at < len(pieces):
        depth, end = shared_rows(pieces[at : at + 1], dependences), at + 1
        while depth and end < len(pieces):
            found = shared_rows(pieces[at : end + 1], dependences)
            if not found:
                break
            depth, end = found, end + 1
        if depth:
            yield tuple(pieces[at:end]), depth
        at = end


def shared_rows(pieces: Sequence[Piece], dependences: Dependences) -> int:
    """Return how many outer loops are rows of all pieces, 0 if they have none."""
    host = [loop.member.key for loop in pieces[0].host]
    if any(not piece.selected or piece.inner for piece in pieces) or any(
        [loop.member.key for loop in piece.host] != host for piece in pieces
    ):
        return 0
    most = min(len(outer_parallel(piece)) for piece in pieces)
    for depth in range(most, 0, -1):
        if stay_in_rows(pieces, depth, dependences):
            return depth
    return 0


def parallel(piece: Piece) -> tuple[LoopMember, ...]:
    """Return the parallel loops of a piece's band."""
    return tuple(
        loop for loop, facts in zip(piece.band, piece.kernel.loops, strict=True) if facts.parallel
    )


def outer_parallel(piece: Piece) -> tuple[LoopMember, ...]:
    """Return the parallel loops with which a piece's band begins."""
    found: list[LoopMember] = []
    for loop in piece.band:
        if loop not in parallel(piece):
            break
        found.append(loop)
    return tuple(found)


def stay_in_rows(pieces: Sequence[Piece], depth: int, dependences: Dependences) -> bool:
    """Tell whether every dependence of a launch of all pieces joins instances of one row."""
    here = instances(pieces[0])
    rows = isl.UnionMap.empty(here.get_space())
    for piece in pieces:
        here = here.union(instances(piece))
        for statement in piece.statements:
            rows = rows.union(_row_of(piece, statement, depth))
    row = isl.MultiUnionPwAff.from_union_map(rows)
    needed = every_dependence(dependences).intersect_domain(here).intersect_range(here)
    return bool(
        needed.lex_lt_at_multi_union_pw_aff(row).is_empty()
        and needed.lex_gt_at_multi_union_pw_aff(row).is_empty()
    )


def _row_of(piece: Piece, statement: Statement, depth: int) -> isl.Map:
    """Return which row each instance of a statement is in."""
    loops = outer_parallel(piece)[:depth]
    functions = [function_on(loop.member.function, statement.domain) for loop in loops]
    return named_map(statement.domain, functions, "row", ())


def have_same_rows(pieces: Sequence[Piece], depth: int) -> bool:
    """Tell whether all pieces have the same rows, where they have any."""
    first, *others = (_rows_of(piece, depth) for piece in pieces)
    return all(
        first.intersect_params(other.params()).is_equal(other.intersect_params(first.params()))
        for other in others
    )


def _rows_of(piece: Piece, depth: int) -> isl.Set:
    rows = (
        _row_of(piece, statement, depth).intersect_domain(piece.unbound(placed)).range()
        for statement, placed in zip(piece.statements, piece.placed, strict=True)
    )
    return reduce(isl.Set.union, rows)


def row_mapping(piece: Piece, depth: int, block: RowBlock, names: NameTable) -> Mapping:
    """Return the layout of a piece whose rows go to blocks, and the rest of whose loops to lanes.

    The innermost row loop has as many threads as a block has rows, along y. The innermost other
    parallel loop has the lanes, along x.
    """
    row_loops = outer_parallel(piece)[:depth]
    others = [loop for loop in parallel(piece) if loop not in row_loops]
    mapped: list[MappedLoop] = []
    serial: list[SerialTile] = []
    for loop in piece.band:
        if loop in row_loops:
            last = loop is row_loops[-1]
            count = block.rows if last else 1
            mapped.append(laid_out(loop, count, count, "y", "x", names, row_loops.index(loop)))
        elif loop in others:
            last = loop is others[-1]
            tile, threads = (block.tile, block.lanes) if last else (1, 1)
            order = depth + others.index(loop)
            mapped.append(laid_out(loop, tile, threads, "x", None, names, order))
        else:
            origin = names.fresh(f"{loop.name}0")
            serial.append(
                SerialTile(name=loop.name, source_name=loop.source_name, tile=_STEPS, origin=origin)
            )
    return Mapping(mapped=tuple(mapped), serial=tuple(serial))


def lanes_mapping(whole: Mapping, loop: LoopMember, block: RowBlock, names: NameTable) -> Mapping:
    """Return the layout of a sum over ``loop`` that the lanes of a row share."""
    split = laid_out(loop, block.tile, block.lanes, "x", None, names, 0)
    serial = tuple(tile for tile in whole.serial if tile.name != loop.name)
    return Mapping(mapped=whole.mapped, serial=serial, split=split)


_STEPS = 32
"""Steps of a serial loop in a tile: they only bound what is unrolled."""

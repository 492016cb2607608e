"""Arrays that blocks read and write step after step, in shared memory while they run a tile.

    for (e = threadIdx.x; e < 35 * 102; e += 64)             // what the tile reads of A
        if (…) sh.A[e / 102][e % 102] = A[i0 + e / 102][j0 + e % 102];
    __syncthreads();
    for (c of the tile) {
        sh.A[i - i0][j - j0] = … sh.A[i - i0 - 1][j - j0] …;  A[i][j] = sh.A[i - i0][j - j0];
        __syncthreads();
    }

Another tile of the wavefront may write elements of the box, so only those are copied that the tile
reads: tiles that need each other's elements are of different wavefronts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import islpy as isl

from eatss.base.frozen import distinct, frozen
from eatss.lower.arrays import DeviceArray, condition_of, isl_notation, union_of, value_of
from eatss.lower.kernel.nodes import (
    Aligned,
    Buffer,
    Copy,
    Element,
    Extents,
    For,
    If,
    Intrinsic,
    Let,
    Node,
    Nodes,
    Scope,
)
from eatss.lower.kernel.uses import accesses, elements, every, mapped, with_elements
from eatss.lower.pieces import NameTable, Piece
from eatss.plan.loop_blocks import COPIES_AT_ONCE, odd_padding
from eatss.polyhedral.isl_names import (
    SET,
    affine_form,
    coalesced,
    dims_as_parameters,
    fixed_box,
    parameters_set,
    renamed_parameter,
    without_parameters,
)
from eatss.polyhedral.scop import Access
from eatss.program import Constant, IntExpr, Name, names_in
from eatss.program.expression import IntExprs
from eatss.program.linear import as_sum, linear, strict


@frozen
class StagedArray:
    """An array and its box: where that begins, and which elements a tile reads.

    ``needed`` is in the terms of ``places``, names of an element's subscripts.
    """

    buffer: Buffer
    tile: Buffer
    begins: IntExprs
    places: tuple[str, ...]
    needed: IntExpr

    def staged(self, element: Element) -> Element:
        """Return where an element is; one of another buffer stays."""
        if element.buffer != self.buffer:
            return element
        pairs = zip(element.subscripts, self.begins, strict=True)
        return self.tile.at(*(as_sum(one - begin) for one, begin in pairs))


def staged_arrays(
    pieces: Sequence[Piece],
    arrays: Mapping[str, DeviceArray],
    known: isl.Set,
    names: NameTable,
    most_bytes: int,
) -> tuple[StagedArray, ...]:
    """Return the arrays that a tile reads and writes, as far as their boxes fit.

    Args:
        pieces: what runs in a tile.
        arrays: the arrays of the region.
        known: what is known of sizes and the tile.
        names: gives out names.
        most_bytes: that a block may have.
    """
    found, left = [], most_bytes
    members = NameTable()
    for key, array in arrays.items():
        uses = [
            (access, piece.domain_of(one.name))
            for piece in pieces
            for one in piece.statements
            for access in one.accesses
            if access.array == key
        ]
        if len({access.is_write for access, _ in uses}) < 2 or None in map(linear, array.shape):
            continue
        piece = pieces[0]
        inner = (*(loop for loop, *_ in piece.cuts), *(n for one in pieces for n in one.bound))
        touched = coalesced(union_of([_touched(*one, inner) for one in uses]))
        reads = [one for one in uses if not one[0].is_write]
        box = fixed_box(touched)
        if box is None:
            continue
        sizes = [size for _, size in box]
        padding = odd_padding(sizes, _steps(reads, piece))
        layout = Extents(tuple(map(Constant, sizes)), padding=padding)
        tile = Buffer(
            name=members.fresh(array.name),
            space="shared",
            element_type=array.array.element_type,
            layout=layout,
            of_phases=True,
        )
        if tile.size_bytes > left:
            continue
        left -= tile.size_bytes
        places = tuple(names.fresh(f"{array.name}_{axis}") for axis in range(len(box)))
        needed = coalesced(union_of([_touched(*one, inner) for one in reads]))
        written = [_touched(*one, inner) for one in uses if one[0].is_write]
        others = _written_beside(written, [tile for _, tile, _ in piece.cuts])
        needed = dims_as_parameters(_with_short_test(needed, others), places)
        needed = needed.intersect(_inside(array, places, needed.get_ctx()))
        found.append(
            StagedArray(
                buffer=array.buffer,
                tile=tile,
                begins=tuple(value_of(begin, known) for begin, _ in box),
                places=places,
                needed=strict(condition_of(needed, known)),
            )
        )
    return tuple(found)


def _touched(access: Access, placed: isl.Set, inner: Sequence[str]) -> isl.Set:
    """Return the elements of an access in a tile."""
    relation = access.relation.intersect_domain(placed)
    return without_parameters(relation.range(), inner)


def _with_short_test(needed: isl.Set, others: isl.Set) -> isl.Set:
    """Return a convex set around elements, if it has none of others that are written meanwhile."""
    hull = isl.Set.from_basic_set(needed.remove_divs().simple_hull())
    return hull if hull.is_disjoint(others) else needed


def _inside(array: DeviceArray, places: Sequence[str], context: isl.Context) -> isl.Set:
    """Return the elements that an array has."""
    pairs = zip(places, array.shape, strict=True)
    text = " and ".join(f"0 <= {place} < {isl_notation(extent)}" for place, extent in pairs)
    return parameters_set(context, (*places, *distinct(names_in(*array.shape))), text)


def _written_beside(written: Sequence[isl.Set], tiles: Sequence[str]) -> isl.Set:
    """Return the elements that other tiles of the wavefront write."""
    beside = [f"{tile}_beside" for tile in tiles]
    found = union_of(written)
    for tile, other in zip(tiles, beside, strict=True):
        found = renamed_parameter(found, tile, other)
    same = f"{' + '.join(beside)} = {' + '.join(tiles)}"
    apart = " or ".join(f"{one} != {other}" for one, other in zip(tiles, beside, strict=True))
    text = f"{same} and ({apart})"
    pairs = parameters_set(found.get_ctx(), (*beside, *tiles), text)
    return without_parameters(found.intersect_params(pairs), beside)


def _steps(reads: Sequence[tuple[Access, isl.Set]], piece: Piece) -> tuple[int, ...] | None:
    """Return how far apart neighbouring threads read, along each dimension, if that is one step."""
    (access, placed), *_ = reads
    loop = piece.cuts[-1][0]
    element = access.relation.intersect_domain(placed).range()
    steps = []
    for position in range(element.dim(SET)):
        form = affine_form(element.dim_max(position))
        if form is None:
            return None
        steps.append(dict(form.parameters).get(loop, 0))
    return tuple(steps)


def can_stage(body: Sequence[Node], buffer: Buffer) -> bool:
    """Tell whether all that nodes do with a buffer can be done with a tile of it."""
    return not any(
        (isinstance(node, Intrinsic) or (isinstance(node, Copy) and node.width > 1))
        and any(element.buffer == buffer for element in elements(node))
        for node in every(body)
    ) and not any(isinstance(node, Aligned) and node.buffer == buffer for node in every(body))


def with_arrays_staged(
    body: Nodes, staged: Sequence[StagedArray], thread: IntExpr, threads: int, names: NameTable
) -> Nodes:
    """Return what a block does in a tile, with copies of arrays in front."""
    copies = tuple(_copied(one, thread, threads, names) for one in staged)
    for one in staged:
        body = with_elements(body, one.staged)
    tiles = {one.tile: one for one in staged}

    def stored(node: Node) -> Nodes:
        written, _ = accesses(node)
        return (node, *(_stored(tiles[one.buffer], one) for one in written if one.buffer in tiles))

    return (*copies, *mapped(body, stored))


def _stored(one: StagedArray, element: Element) -> Copy:
    """Return the store of an element from a tile to its array."""
    places = zip(element.subscripts, one.begins, strict=True)
    whole = one.buffer.at(*(as_sum(place + begin) for place, begin in places))
    return Copy(target=whole, source=element)


def _copied(one: StagedArray, thread: IntExpr, threads: int, names: NameTable) -> Node:
    """Return the copy of what a tile reads, by all threads of the block."""
    counter = names.fresh("element")
    sizes = [extent.value for extent in one.tile.layout.extents if isinstance(extent, Constant)]
    within, rest = [], prod(sizes)
    for at, size in enumerate(sizes):
        rest //= size
        place: IntExpr = Name(counter) if rest == 1 else Name(counter) // rest
        within.append(place % size if at else place)
    lets = tuple(
        Let(name=name, value=begin + place)
        for name, begin, place in zip(one.places, one.begins, within, strict=True)
    )
    copy = Copy(target=one.tile.at(*within), source=one.buffer.at(*map(Name, one.places)))
    loop = For(
        counter=counter,
        lower=thread,
        condition=Name(counter) < prod(sizes),
        step=Constant(threads),
        unroll=COPIES_AT_ONCE,
        body=(*lets, If(conditions=(one.needed,), body=(copy,))),
    )
    return Scope(body=(loop,), phase=f"tile of {one.tile.name}")

"""What of a piece becomes a kernel of its own: order of launches, sums, rows, loops on the host.

A sum whose loop is spread over threads and blocks needs its target set before any of them adds to
it, so it is launched between what comes before and what comes after. Where parallel loops have few
points, a serial loop may run on the host: a band is permutable, and what is left inside is often a
plain sum. Pieces that share rows, as those of a softmax, may be phases of the same blocks: nothing
leads from one row to another. Decisions ask for every dependence between instances, also those
that live ranges would let go; the check of the outcome asks what the schedule was checked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from math import prod
from typing import TypeAlias

import islpy as isl

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import FusedRows, SplitK
from eatss.base.frozen import Names, their_names
from eatss.base.targets import AXES, CUDA
from eatss.cards import GpuProfile
from eatss.lower.arrays import union_of
from eatss.lower.mapping import Mapping, SerialTile, free_axes, laid_out, serial_tile
from eatss.lower.pieces import (
    LoopMember,
    NameTable,
    Piece,
    edges,
    functions_of,
    tied_instances,
)
from eatss.lower.recipe import CodegenOptions
from eatss.plan.shares import blocks_of_sum, outer_tile, threads_beside_lanes
from eatss.polyhedral.expression import Combiner, combiner_of
from eatss.polyhedral.isl_names import (
    among,
    big_value,
    bound_domain,
    integer,
    named_map,
    node_kind,
    set_names,
    universes,
    without_parameters,
)
from eatss.polyhedral.scheduling import live_ranges_overlap, tagger_of
from eatss.polyhedral.scop import Dependences, Statement
from eatss.polyhedral.tiled_sums import with_band_below
from eatss.polyhedral.tree import alone, members

Sums: TypeAlias = dict[str, frozenset[str]]
"""The loops that each statement sums over, by their names in C."""


def within_launch(piece: Piece) -> isl.UnionMap:
    """Return every dependence between instances of one launch, the host loops as parameters."""
    return among(piece.dependences.needed, instances(piece))


def instances(piece: Piece) -> isl.UnionSet:
    """Return the instances of a launch of a piece, the host loops as parameters."""
    return union_of([piece.unbound(one).to_union_set() for one in piece.placed])


def may_follow(piece: Piece, first: Sequence[str], then: Sequence[str]) -> bool:
    """Tell whether all instances of some statements of a launch may run after all of others."""
    here = instances(piece)

    def of(names: Sequence[str]) -> isl.UnionSet:
        domains = (piece.statement(name).domain for name in names)
        return here.intersect(universes(isl.UnionSet.empty(here.get_space()), domains))

    backwards = within_launch(piece).intersect_domain(of(then))
    return backwards.intersect_range(of(first)).is_empty()


def only_updates(piece: Piece) -> bool:
    """Tell whether a launch does nothing but add to elements whose sums none of it reads.

    Every dependence then joins updates of one element by one statement, and what is added is read
    where the launch does not write. So the updates may run in any order, those of
    different elements at once.
    """
    elements = [one.write.relation.intersect_domain(one.domain) for one in piece.statements]
    same = union_of([one.apply_range(one.reverse()).to_union_map() for one in elements])
    return within_launch(piece).is_subset(same) and not _reads_results(piece)


def _reads_results(piece: Piece) -> bool:
    """Tell whether a launch reads what it writes other than to take up the element it updates."""
    updates = {reduction.statement for reduction in piece.kernel.reductions}
    written = read = isl.UnionSet.empty(instances(piece).get_space())
    for statement, placed in piece.placed_statements:
        here = piece.unbound(placed)
        taken_up = 0
        for access in statement.accesses:
            image = here.apply(access.relation)
            if access.is_write:
                written = written.union(image)
            elif access.array == statement.write.array and access.relation.is_equal(
                statement.write.relation
            ):
                taken_up += 1
            else:
                read = read.union(image)
        if taken_up != 1 and not (taken_up and statement.name in updates):  # x > m ? x : m
            return True
    return not written.intersect(read).is_empty()


def launches_respect(piece: Piece, launches: Sequence[Piece]) -> bool:
    """Tell whether pieces launched one after another respect the dependences between them.

    Args:
        piece: what they were made from.
        launches: the pieces in their order, all under the host loops of ``piece``.
    """
    here, dependences = instances(piece), piece.dependences
    number = isl.UnionPwAff.empty(here.get_space())
    for at, launch in enumerate(launches):
        own = union_of([one.domain.to_union_set() for one in launch.statements])
        number = number.union_add(isl.UnionPwAff.val_on_domain(own, big_value(here.get_ctx(), at)))
    time = alone(number)
    if not among(dependences.validity, here).lex_gt_at_multi_union_pw_aff(time).is_empty():
        return False
    order, flow = (
        tied_between(relation, here) for relation in (dependences.order, dependences.tagged_flow)
    )
    if order.is_empty():
        return True
    tagged_time = time.pullback_union_pw_multi_aff(tagger_of(order))
    return not live_ranges_overlap(order.lex_gt_at_multi_union_pw_aff(tagged_time), flow, time)


def tied_between(relation: isl.UnionMap, tied: isl.UnionSet) -> isl.UnionMap:
    """Keep of a relation between tagged instances what is between instances in ``tied``."""
    if relation.is_empty():
        return relation
    return among(relation, tied.preimage_union_pw_multi_aff(tagger_of(relation)))


LEAST_TRIPS = 64
"""Trips of a serial loop below which it is left as it is."""

SERIAL_SPREAD = SplitK(lanes=256, tile=1024, chunks=512, outer=512)
"""How the sums of what PPCG would leave on the host are spread, which no size is selected for."""


def trips(facts: KernelFacts, name: str) -> int:
    """Return how many trips a loop of the source has at the sizes that predictions are for."""
    return dict(facts.work.trips).get(name, 1)


def sum_loop(
    piece: Piece,
    statements: Sequence[str],
    loops: Sequence[str],
    sums: Sums,
    facts: KernelFacts,
) -> str | None:
    """Return the loop of a part to split, by C name: one with work for a warp, of a long sum.

    Every statement has to be a sum along it, and none may need what another computes.
    """
    sources = {loop.name: loop.source_name for loop in piece.loops}
    length = {
        loop: trips(facts, sources[loop])
        for loop in loops
        if adds_only(piece, statements, loop, sums)
    }
    found = [loop for loop, own in length.items() if own >= CUDA.lanes]
    if prod(length.values()) < LEAST_TRIPS:
        return None
    return max(found, key=lambda name: _contiguous(piece, sources[name]), default=None)


def adds_only(
    piece: Piece,
    statements: Sequence[str],
    loop: str,
    sums: Sums,
) -> bool:
    """Tell whether statements are sums along a loop, none of which needs what another computes.

    Args:
        piece: the piece.
        statements: of a part.
        loop: by C name.
        sums: the loops that each statement sums over, by C name.
    """
    if not all(loop in sums.get(name, ()) for name in statements):
        return False
    tied = tied_instances(piece, ())
    return not any(edges({name: tied[name] for name in statements}, piece.dependences))


def _contiguous(piece: Piece, source_name: str) -> int:
    """Return how much is read along a loop from neighbouring places, matrices counting more."""
    return sum(
        len(reference.loops)
        for reference in piece.kernel.references
        if reference.subscripts
        and any(
            name == source_name and abs(coefficient) == 1
            for name, coefficient in reference.subscripts[-1].coefficients
        )
    )


def split_mapping(
    piece: Piece,
    facts: KernelFacts,
    whole: Mapping,
    loop: str,
    outer: str | None,
    spread: SplitK,
    profile: GpuProfile,
    options: CodegenOptions,
    names: NameTable,
) -> Mapping:
    """Return the layout of a part whose loop ``loop`` is split.

    Lanes go along ``x``: neighbours along the sum are neighbours in memory. With one lane the
    mapped loops keep their axes.

    Args:
        piece: the piece.
        facts: its kernel, for trip counts.
        whole: the layout of all of the piece, whose threads and tiles are kept where they fit.
        loop: the loop of the sum, by C name.
        outer: another one of it, whose tiles blocks may share.
        spread: lanes, tile and chunks.
        profile: the card.
        options: tile sizes the user gave, which come first.
        names: where C names come from.
    """
    by_name = {item.name: item for item in piece.loops}
    item, lanes = by_name[loop], spread.lanes
    inwards = sorted(whole.mapped, key=lambda mapped: -mapped.order)  # along x first
    counts = threads_beside_lanes(
        [mapped.threads for mapped in inwards],
        lanes,
        profile.threads_per_block,
        CUDA.most_threads["z"],
    )
    kept = {}
    for position, (mapped, threads) in enumerate(zip(inwards, counts, strict=True)):
        axis = AXES[min(position + (lanes > 1), len(AXES) - 1)]
        grid = AXES[min(position, len(AXES) - 1)]
        if len(inwards) > len(AXES):  # all but the outermost share x, so that z is for the sum
            grid = "x" if position < len(inwards) - 1 else "y"
        own, order = by_name[mapped.name], len(inwards) - position
        kept[mapped.name] = laid_out(own, mapped.tile, threads, axis, grid, names, order)
    free = free_axes(kept.values())
    asked = options.tiles_of(facts.name)
    tile = asked.get(item.source_name, int(spread.tile))
    known, serial = {one.name: one for one in whole.serial}, list[SerialTile]()
    for own in piece.band:
        if own.name not in (*kept, loop):
            length = trips(facts, own.source_name)
            size = outer_tile(length, spread.outer) if own.name == outer else _STEPS
            made = serial_tile(own, asked.get(own.source_name, size), names)
            serial.append(known.get(own.name, made))
    turns = next((one for one in serial if one.name == outer), None)
    chunks, takers = blocks_of_sum(
        len(free),
        -(-trips(facts, item.source_name) // tile),
        spread.chunks,
        1 if turns is None else -(-trips(facts, turns.source_name) // turns.tile),
        spread.outer,
    )
    axis, grid = AXES[0] if lanes > 1 else AXES[-1], free[0] if free else AXES[-1]
    own_grid = None if takers > 1 and grid == free[-1] else grid  # which the outer loop has then
    return Mapping(
        mapped=tuple(kept[mapped.name] for mapped in whole.mapped),
        serial=tuple(
            replace(one, shared=free[-1], blocks=takers) if one is turns and takers > 1 else one
            for one in serial
        ),
        split=laid_out(item, tile, lanes, axis, own_grid, names, 0),
        chunks=chunks,
    )


def row_groups(
    pieces: Sequence[Piece], dependences: Dependences, fits: Callable[[Piece, int], bool]
) -> Iterator[tuple[tuple[Piece, ...], int]]:
    """Yield the longest runs of pieces that share rows, and the number of their row loops.

    Rows are as many outer parallel loops as all pieces of a run have in common. Pieces that do not
    ``fit`` blocks of rows of so many loops are in none.
    """

    def shared(run: Sequence[Piece]) -> int:
        depth = shared_rows(run, dependences)
        return depth if depth and all(fits(one, depth) for one in run) else 0

    at = 0
    while at < len(pieces):
        depth, end = shared(pieces[at : at + 1]), at + 1
        while depth and end < len(pieces):
            found = shared(pieces[at : end + 1])
            if not found:
                break
            depth, end = found, end + 1
        if depth:
            yield tuple(pieces[at:end]), depth
        at = end


def shared_rows(pieces: Sequence[Piece], dependences: Dependences) -> int:
    """Return how many outer loops are rows of all pieces, 0 if they have none."""
    host = [loop.member.key for loop in pieces[0].host]
    if any(not one.selected or one.inner or one.combines for one in pieces) or any(
        [loop.member.key for loop in piece.host] != host for piece in pieces
    ):
        return 0
    for depth in range(min(len(outer_parallel(piece)) for piece in pieces), 0, -1):
        if stay_in_rows(pieces, depth, dependences):
            return depth
    return 0


def over_steps(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces of which one launch has all iterations of the innermost loop on the host."""
    return [
        replace(
            one,
            host=one.host[:-1],
            placed=tuple(without_parameters(own, one.host_names[-1:]) for own in one.placed),
        )
        for one in pieces
    ]


def parallel(piece: Piece) -> tuple[LoopMember, ...]:
    """Return the parallel loops of a piece's band."""
    return tuple(
        loop for loop, facts in zip(piece.band, piece.kernel.loops, strict=True) if facts.parallel
    )


def outer_parallel(piece: Piece) -> tuple[LoopMember, ...]:
    """Return the parallel loops with which a piece's band begins."""
    here = parallel(piece)
    return tuple(takewhile(lambda loop: loop in here, piece.band))


def stay_in_rows(pieces: Sequence[Piece], depth: int, dependences: Dependences) -> bool:
    """Tell whether every dependence of a launch of all pieces joins instances of one row."""
    here = union_of([instances(piece) for piece in pieces])
    rows = [
        _row_of(piece, one, depth).to_union_map() for piece in pieces for one in piece.statements
    ]
    row = isl.MultiUnionPwAff.from_union_map(union_of(rows))
    needed = among(dependences.needed, here)
    return bool(
        needed.lex_lt_at_multi_union_pw_aff(row).is_empty()
        and needed.lex_gt_at_multi_union_pw_aff(row).is_empty()
    )


def _row_of(piece: Piece, statement: Statement, depth: int) -> isl.Map:
    """Return which row each instance of a statement is in."""
    functions = functions_of(outer_parallel(piece)[:depth], statement.domain)
    return named_map(statement.domain, functions, "row", ())


def rows_of_steps(pieces: Sequence[Piece], dependences: Dependences) -> int | None:
    """Return how many rows a block has to have to go through the innermost loop on the host.

    0 for any number: in all steps rows of one loop need nothing of each other. Else a block has all
    of them, which are numbered from 0. ``None`` where it cannot.
    """
    hosts = {tuple(loop.member.key for loop in one.host) for one in pieces}
    if len(hosts) > 1 or hosts == {()} or any(one.inner or not one.selected for one in pieces):
        return None
    if not all(map(outer_parallel, pieces)):
        return None
    return 0 if stay_in_rows(over_steps(pieces), 1, dependences) else numbered_rows(pieces)


def numbered_rows(pieces: Sequence[Piece]) -> int | None:
    """Return how many rows of one loop there are at most, ``None`` where they begin below 0."""
    rows = union_of([_rows(one, 1) for one in pieces])
    first, last = rows.dim_min_val(0), rows.dim_max_val(0)
    return integer(last) + 1 if first.is_nonneg() and last.is_int() else None


def _rows(piece: Piece, depth: int) -> isl.Set:
    """Return the rows of a launch."""
    return union_of(
        [
            _row_of(piece, statement, depth).intersect_domain(piece.unbound(placed)).range()
            for statement, placed in piece.placed_statements
        ]
    )


def have_same_rows(pieces: Sequence[Piece], depth: int) -> bool:
    """Tell whether all pieces have the same rows, where they have any."""
    first, *others = (_rows(piece, depth) for piece in pieces)
    return all(
        first.intersect_params(other.params()).is_equal(other.intersect_params(first.params()))
        for other in others
    )


def row_mapping(piece: Piece, depth: int, block: FusedRows, names: NameTable) -> Mapping:
    """Return the layout of a piece whose rows go to blocks, and the rest of whose loops to lanes.

    The innermost row loop has as many threads as a block has rows, along y. The innermost other
    parallel loop has the lanes, along x. For columns it is the other way round.
    """
    of_rows, of_lanes = block.axes
    row_loops = outer_parallel(piece)[:depth]
    others = [loop for loop in parallel(piece) if loop not in row_loops]
    mapped = []
    serial = []
    for loop in piece.band:
        if loop in row_loops:
            last = loop is row_loops[-1]
            count = block.rows if last else 1
            mapped.append(laid_out(loop, count, count, of_rows, "x", names, row_loops.index(loop)))
        elif loop in others:
            last = loop is others[-1]
            tile, threads = (block.tile, block.lanes) if last else (1, 1)
            order = depth + others.index(loop)
            mapped.append(laid_out(loop, tile, threads, of_lanes, None, names, order))
        else:
            serial.append(serial_tile(loop, _STEPS, names))
    return Mapping(mapped=tuple(mapped), serial=tuple(serial))


def lanes_mapping(whole: Mapping, loop: LoopMember, block: FusedRows, names: NameTable) -> Mapping:
    """Return the layout of a sum over ``loop`` that the lanes of a row share."""
    split = laid_out(loop, block.tile, block.lanes, block.axes[1], None, names, 0)
    serial = tuple(tile for tile in whole.serial if tile.name != loop.name)
    return Mapping(mapped=whole.mapped, serial=serial, split=split)


_STEPS = 32
"""Steps of a serial loop in a tile: they only bound what is unrolled."""


def restricted(piece: Piece, statements: Sequence[str]) -> Piece:
    """Return the piece with some of its statements only."""
    kept = tuple(one for one in piece.statements if one.name in statements)
    if len(kept) == len(piece.statements):
        return piece
    placed = tuple(piece.domain_of(one.name) for one in kept)
    return piece.once(
        lambda: replace(piece, statements=kept, placed=placed), "part", their_names(kept)
    )


def sums_of(piece: Piece, *, exact: bool = False) -> Sums:
    """Return for each statement that is a reduction the loops, by C name, it goes over.

    With ``exact`` only those that come to the same value in any order: floating-point sums and
    products do not, and of zeros ``fmax`` may return either.
    """
    names = {loop.source_name: loop.name for loop in piece.loops}
    found: Sums = {}
    for reduction in piece.kernel.reductions:
        element_type = piece.scop.array(reduction.array).element_type
        fits = combiner_of(reduction.operator, element_type) is not None
        if fits and not (exact and element_type.is_floating):
            found[reduction.statement] = frozenset(
                names[loop] for loop in reduction.loops if loop in names
            )
    return found


def combiner_in(piece: Piece, statements: Collection[str]) -> Combiner | None:
    """Return what combines parts of the reductions of some statements.

    ``None`` where there are none, or where they differ.
    """
    found = {
        combiner_of(reduction.operator, piece.scop.array(reduction.array).element_type)
        for reduction in piece.kernel.reductions
        if reduction.statement in statements
    }
    return next(iter(found)) if len(found) == 1 else None


def serial_runs(piece: Piece, sums: Sums) -> Iterator[tuple[Piece, Names]]:
    """Yield what runs one after another of a piece that has no parallel loop.

    A sum that may be split is a piece of its own, with its loops as a band, and so is what may be a
    recurrence; other statements stay together, without any.
    """
    recurrences = {
        one.name: frozenset(their_names(piece.loops))
        for one in piece.statements
        if not one.one_pass and (one.chunk or not (piece.host or one.name in sums))
    }
    sums = sums | recurrences
    waiting: list[str] = []
    for node in _items(piece.tree.node):
        statements = set_names(node.get_domain())
        banded = _banded(piece, node, sums) if len(statements) == 1 else None
        if banded is None:
            waiting += statements
            continue
        if waiting:
            yield restricted(piece, waiting), ()
        waiting = []
        yield banded, banded.bound
    if waiting:
        yield restricted(piece, waiting), ()


def _banded(piece: Piece, node: isl.ScheduleNode, sums: Sums) -> Piece | None:
    """Return the piece of one statement whose bands of loops that it sums over are one."""
    (name,) = set_names(node.get_domain())
    known = {loop.member.key: loop for loop in piece.inner}
    found: list[LoopMember] = []
    wide, below = node, node
    while own := [known[one.key] for one in members(below) if one.key in known]:
        if not sums.get(name, frozenset()).issuperset(their_names(own)):
            break
        wide = node if below is node else with_band_below(wide)
        found, below = [*found, *own], below.get_child(0)
    if not found:
        return None
    (statement,) = restricted(piece, (name,)).statements
    functions = functions_of(found, statement.domain)
    bound = bound_domain(statement.domain, functions, their_names(found))
    band = [replace(o, member=m) for o, m in zip(found, members(wide), strict=True)]
    return replace(
        restricted(piece, (name,)),
        tree=replace(piece.tree, band=tuple(members(wide)), permutable=True, node=wide),
        band=tuple(band),
        inner=tuple(one for one in piece.inner if one not in found),
        placed=(piece.domain_of(name).intersect(bound),),
    )


def _items(node: isl.ScheduleNode) -> Iterator[isl.ScheduleNode]:
    """Yield the subtrees that run one after another."""
    kind = node_kind(node)
    if kind == "filter":
        yield from _items(node.get_child(0))
    elif kind in ("sequence", "set"):
        for position in range(node.n_children()):
            yield from _items(node.get_child(position))
    else:
        yield node

"""All loops of a factorisation in tiles: diagonal, panels, and what is left, a product.

``for (k …) { for (j > k) A[k][j] /= A[k][k]; for (i, j > k) A[i][j] -= A[i][k] * A[k][j]; }`` runs
in steps ``k``. So many steps are a block ``kb``, and statements are cut where other loops leave it:

    for (kb …) {
        diagonal:  i and j in the block, in steps k
        panels:    i or j in the block, in steps k
        the rest:  for (i, j behind the block) for (k in the block) A[i][j] -= A[i][k] * A[k][j]
    }

Counters of pieces begin at their block, or behind it. Which step an instance belongs to is found
from dependences: that of a sum is the loop it sums over, so a step takes what it makes off all
later ones (right-looking); others run in a step of theirs, before all blocks or behind them. Steps
run backwards, behind those that do not, where that is what dependences need: other loops then end
in front of the step, and are cut there, as in a backward solve.
What needs each other in a block is a class, and stays in steps; classes follow in the order of
dependences. All of them hold, so values are those of the source in every bit.

Statements that are none together are parts, one after the other, each in classes where it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import TypeAlias

import islpy as isl

from eatss.base.diagnostics import internal_error
from eatss.base.frozen import Names, fixed, their_names
from eatss.base.memo import remembered
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import (
    dependent_accesses,
    first_equal,
    spelled,
    tag_accesses,
    tagged_dependences,
    tagging,
    without_tags,
)
from eatss.polyhedral.expression import AffineValue, Expression, mapped
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    among,
    at_values,
    coalesced,
    counter_of,
    equal_leading_dims,
    map_between,
    maps_of,
    named_map,
    output_affs,
    universes,
    with_names,
)
from eatss.polyhedral.kept_versions import Versions, moving_loops, with_versions
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.parts import still_loops
from eatss.polyhedral.scalars import with_private_scalars, without_scalars
from eatss.polyhedral.scop import Access, Dependences, Scop, Statement
from eatss.polyhedral.split_sets import check_partition, piece_along
from eatss.polyhedral.tree import alone, follows
from eatss.program.expression import SizePairs

_BEFORE, _UP, _DOWN, _BEHIND = range(4)
"""When a statement runs: before all blocks, in blocks of steps, in blocks backwards, behind all."""

_Step: TypeAlias = tuple[int, int]
"""When a statement runs, and the loop that is its steps, by number (0 where it has no steps)."""

_MOST_PIECES = 24
"""Pieces of all statements."""


@remembered
def with_class_tiles(scop: Scop, size: int) -> Scop:
    """Return a region whose loops are in blocks of so many steps, cut into classes of tiles.

    Its statements stand in an order that is to be kept. Scalars may get elements of their own for
    it. The region itself where it has no such order.

    Raises:
        InternalError: ``EATSS-P901``, pieces are not what they are cut from, or run too early.
    """

    def ways() -> Iterator[Scop]:
        yield scop
        yield from with_private_scalars(scop)

    for own in ways():
        tiling = _tiling(own)
        cut = None if tiling is None else _in_classes(own, replace(tiling, size=size))
        if cut is not None:
            return replace(cut, written=scop.written or scop)
    bare = _steps_first(without_scalars(scop))
    versions = with_versions(bare)
    cut = None if versions is None else _with_versions(versions, _apart(bare), size)
    if cut is None and _may_step(bare):
        cut = _in_turn(bare, _parts(bare), size)
    return scop if cut is None else replace(cut, written=scop.written or scop)


def _may_step(scop: Scop) -> bool:
    """Tell whether a statement may be a sum, or overwrite in steps what others of them read.

    One that scalars hide may be.
    """

    def may(own: Statement) -> bool:
        reads = (one.relation for one in own.reads if one.array == own.write.array)
        return bool(_summed(own, scop)) or any(
            len(moving) < len(own.loops) and not {*moving}.isdisjoint(_still(own))
            for moving in map(moving_loops, reads)
        )

    scalars = (not scop.array(name).n_dims for name in scop.written_arrays)
    return any(scalars) or any(map(may, scop.statements))


@remembered
def _needed(scop: Scop) -> isl.UnionMap:
    """Return what instances of a region need of each other, and what is to be overwritten later."""
    return coalesced(without_tags(tagged_dependences(scop)).memory_based)


@remembered
def _apart(scop: Scop) -> Names:
    """Return the loops of a region of one statement whose iterations need nothing of each other."""
    (own,), needed = scop.statements, _needed(scop)
    return tuple(name for at, name in enumerate(own.loops) if is_still(own, at, needed))


@remembered
def _steps_first(scop: Scop) -> Scop:
    """Return a region of one statement with its steps around loops that others are apart along.

    Steps are the loop along which what is written stays. The region itself where that is outermost.

    Raises:
        InternalError: ``EATSS-P901``, instances run before what they need.
    """
    if len(scop.statements) != 1:
        return scop
    (own,) = scop.statements
    still = _still(own)
    in_order = own.loops == tuple(map(counter_of, output_affs(own.schedule)[1::2]))
    if len(still) != 1 or still == [0] or not in_order:
        return scop
    needed = _needed(scop)
    if not _stays(needed, own, range(still[0])):
        return scop
    order = [*still, *(at for at in range(len(own.loops)) if at not in still)]
    names = [own.loops[at] for at in order]
    onto = named_map(own.domain, [counter(own, at) for at in order], own.name, names)
    instance = isl.PwMultiAff.from_map(onto.reverse()).gist(onto.range()).as_multi_aff()
    found = piece_along(own, instance, onto.range())
    loops = (counter(found, at) for at in range(len(order)))
    found = _at(replace(found, piece_of=own.piece_of), [0, *_spaced(loops)])
    moved = onto.to_union_map()
    check_time([found], needed.apply_domain(moved).apply_range(moved))
    return replace(scop, statements=(found,))


@remembered
def _parts(scop: Scop) -> list[Scop]:
    """Return the statements that need each other as regions, behind all that they need."""
    if len(scop.statements) < 2:
        return []
    pieces = [
        _Piece(one, isl.Map.identity(one.domain.get_space().map_from_set()), _BEFORE, cut=False)
        for one in scop.statements
    ]
    tied = _components(pieces, _needed(scop))
    statements = (tuple(one.statement for one in own) for own in tied)
    return [replace(scop, statements=own) for own in statements] if len(tied) > 1 else []


def _in_turn(scop: Scop, parts: Sequence[Scop], size: int) -> Scop | None:
    """Return parts of a region one after the other, in classes where they can be.

    ``None`` where none can be, and where those of one name would be two statements or arrays.

    Raises:
        InternalError: ``EATSS-P901``, a part runs before what it needs.
    """
    cut = [with_class_tiles(one, size) for one in parts]
    if not any(one.class_size for one in cut):
        return None
    check_time(_one_by_one(parts), _needed(scop))
    statements = _one_by_one(cut)
    arrays = dict.fromkeys(array for part in cut for array in part.arrays)
    if any(len({*their_names(all_of)}) < len(all_of) for all_of in (statements, tuple(arrays))):
        return None
    return replace(scop, arrays=tuple(arrays), statements=statements, class_size=size)


def _one_by_one(parts: Sequence[Scop]) -> tuple[Statement, ...]:
    """Return the statements of regions, each region behind those before it."""
    return _padded([
        (one, [number, *output_affs(one.schedule)])
        for number, part in enumerate(parts)
        for one in part.statements
    ])  # fmt: skip


def at_sizes(cut: Scop, numeric: Scop, values: SizePairs) -> Scop | None:
    """Return a region over numbers in classes, as the one for any size is cut.

    ``None`` where a piece has no instances then.

    Args:
        cut: the region for any size, in classes.
        numeric: the region over the numbers, as it was before.
        values: of the sizes.
    """

    def at(access: Access) -> Access:
        return replace(access, relation=at_values(access.relation, values))

    def value_at(node: Expression) -> Expression:
        if isinstance(node, AffineValue):
            function = at_values(isl.Map.from_pw_aff(node.value), values)
            return replace(node, value=isl.PwMultiAff.from_map(function).get_at(0))
        return node

    known = {(one.name, one.n_dims): one for one in numeric.arrays}
    found = replace(
        numeric,
        arrays=tuple(
            known.get((one.name, one.n_dims)) or replace(one, extent=at_values(one.extent, values))
            for one in cut.arrays
        ),
        statements=tuple(
            replace(
                one,
                domain=at_values(one.domain, values),
                schedule=at_values(one.schedule, values),
                accesses=tuple(map(at, one.accesses)),
                recomputed=tuple(map(at, one.recomputed)),
                value=mapped(one.value, value_at),
            )
            for one in cut.statements
        ),
        class_size=cut.class_size,
        written=numeric.written or numeric,
    )
    return None if any(one.domain.is_empty() for one in found.statements) else found


def _in_classes(scop: Scop, tiling: _Tiling) -> Scop | None:
    tiling = replace(tiling, taken=scop.names)
    pieces = [one for statement in scop.statements for one in tiling.pieces(statement)]
    if not any(one.cut for one in pieces) or len(pieces) > _MOST_PIECES:
        return None
    return _ordered(scop, pieces, _of_pieces(scop, pieces), tiling.size)


def _with_versions(versions: Versions, apart: Names, size: int) -> Scop | None:
    """Return a region with copies in classes: a block of steps has elements of them anew."""
    scop = versions.scop
    steps = dict.fromkeys(their_names(scop.statements), (_UP, 0))
    tiling = _Tiling(size, steps, scop.names, around=True, apart=apart)
    pieces = []
    for piece in (one for own in scop.statements for one in tiling.pieces(own)):
        for own in versions.parts(piece.statement, piece.whole, tiling.taken):
            accesses = (
                _of_block(access, own, size) if access.array in versions.arrays else access
                for access in own.accesses
            )
            statement = replace(own, accesses=tuple(accesses))
            whole = piece.whole.set_tuple_name(IN, own.name).intersect_domain(own.domain)
            pieces.append(replace(piece, statement=statement, whole=whole))
    arrays = tuple(
        replace(one, extent=_first_block(one.extent, size)) if one.name in versions.arrays else one
        for one in scop.arrays
    )
    scop = replace(scop, arrays=arrays)
    found = _of_pieces(versions.with_all_reads, pieces, versions)
    return _ordered(scop, pieces, found, size, around=True)


def _of_pieces(
    whole: Scop, pieces: Sequence[_Piece], versions: Versions | None = None
) -> Dependences:
    """Return the dependences of pieces, tagged, by those of the region that they are cut from.

    Each block has elements of copies anew: what writes one is behind all that blocks before do.
    """
    copies = () if versions is None else versions.arrays
    cut = replace(whole, statements=tuple(one.statement for one in pieces))
    before, here = (
        {one.place: one.number for one in dependent_accesses(of)} for of in (whole, cut)
    )
    firsts = {one.name: first_equal(one.accesses) for one in (*whole.statements, *cut.statements)}
    own_of = whole.no_relation
    for piece in pieces:
        own, name = piece.statement, piece.whole.get_tuple_name(OUT)
        for at, access in enumerate(own.accesses):
            place = at
            if versions is not None and access.array in copies and name == versions.source.name:
                place = len(versions.source.accesses) + copies.index(access.array)
            tags = (
                here.get((own.name, firsts[own.name][at])),
                before.get((name, firsts[name][place])),
            )
            if None not in tags:
                mine, its = (tagging(own, f"__ref{tag}") for tag in tags)
                both = mine.range_product(piece.whole.range_product(its)).uncurry()
                own_of = own_of.union(both)
    cut_to = own_of.reverse()
    found = tagged_dependences(whole).each(lambda one: one.apply_domain(cut_to).apply_range(cut_to))
    if not copies:
        return found
    accesses = tag_accesses(cut)
    elements = universes(cut.no_points, (whole.array(name).extent for name in copies))
    written = accesses.writes.intersect_range(elements)
    used = accesses.reads.intersect_range(elements).union(written)
    blocks = (isl.UnionPwAff.from_pw_aff(counter(one.statement, 0)) for one in pieces)
    block = alone(reduce(isl.UnionPwAff.union_add, blocks))
    tagger = used.domain().universe().unwrap().domain_map_union_pw_multi_aff()
    later = used.apply_range(written.reverse()).lex_lt_at_multi_union_pw_aff(
        block.pullback_union_pw_multi_aff(tagger)
    )
    reading = later.intersect_domain(accesses.reads.domain())
    writing = later.intersect_domain(accesses.writes.domain())
    unread = writing.subtract_domain(found.tagged_flow.domain())
    return replace(
        found,
        anti=found.anti.union(reading),
        output=found.output.union(writing),
        order=found.order.union(reading).union(unread),
    )


def _first_block(extent: isl.Set, size: int) -> isl.Set:
    """Return an extent whose first dimension is as long as a block."""
    free = extent.eliminate(SET, 0, 1).lower_bound_val(SET, 0, 0)
    return coalesced(free.upper_bound_val(SET, 0, size - 1))


def _of_block(access: Access, statement: Statement, size: int) -> Access:
    """Return an access by steps of the block instead of all."""
    step, *others = output_affs(access.relation)
    first = counter(statement, 0).scale_val(isl.Val(size, step.get_ctx()))
    functions = [step.sub(first), *others]
    names = [f"d{at}" for at in range(len(functions))]
    return spelled(access, named_map(statement.domain, functions, access.array, names))


def _ordered(
    scop: Scop, pieces: Sequence[_Piece], tagged: Dependences, size: int, *, around: bool = False
) -> Scop | None:
    """Return a region of pieces in their order, if there is one."""
    found = without_tags(tagged)
    needed = coalesced(found.memory_based)
    timed = _in_order(pieces, needed, around=around)
    if timed is None:
        return None
    check_time(timed, needed)
    return replace(scop, statements=timed, class_size=size, dependences=found)


def check_time(statements: Sequence[Statement], needed: isl.UnionMap) -> None:
    """Check that statements run behind all that they need.

    Raises:
        InternalError: ``EATSS-P901``.
    """
    schedule = reduce(isl.UnionMap.union, (one.schedule.to_union_map() for one in statements))
    time = isl.MultiUnionPwAff.from_union_map(schedule)
    if not follows(needed, time):
        message = "a class of tiles runs before what it needs"
        raise internal_error("EATSS-P901", message, span=statements[0].span)


# -- steps -------------------------------------------------------------------------------------


@fixed
class _Piece:
    """A piece, what instances of the source it runs, and whether it was cut from others.

    Where it runs in steps its loops are blocks and steps, then the others. ``row`` is the first of
    them that leaves the block, by number, or its steps.
    """

    statement: Statement
    whole: isl.Map
    stage: int
    cut: bool
    row: int = 1


@fixed
class _Tiling:
    """The steps of each statement."""

    size: int
    steps: Mapping[str, _Step]
    taken: set[str]
    around: bool = False
    apart: Names = ()

    def pieces(self, statement: Statement) -> Iterator[_Piece]:
        """Yield the pieces of a statement, those in a block first."""
        stage, step = self.steps[statement.name]
        if stage in (_BEFORE, _BEHIND):
            same = isl.Map.identity(statement.domain.get_space().map_from_set())
            yield _Piece(statement, same.intersect_range(statement.domain), stage, cut=False)
            return
        first, sides = _timed(statement, (stage, step)), (0, 1 if stage == _UP else -1)
        leaving = [
            at
            for at in range(len(statement.loops))
            if at != step
            and statement.loops[at] not in self.apart
            and (
                self.around
                or statement.domain.is_subset(_timed(statement, (stage, at)).ge_set(first))
            )
        ]
        others = (name for at, name in enumerate(statement.loops) if at != step)
        own = statement.loops[step]
        names = (free_name(f"{own}b", {*self.taken, *statement.loops}), own, *others)
        found = []
        for places in product((0, 1, -1) if self.around else sides, repeat=len(leaving)):
            away = dict(zip(leaving, places, strict=True))
            instance, domain = self._instance(statement, step, away, names)
            if not domain.is_empty():
                found.append((instance, domain))
        wholes = [isl.Map.from_multi_aff(one).intersect_domain(of) for one, of in found]
        check_partition(statement, [one.range() for one in wholes])
        for at, (instance, domain) in enumerate(found):
            name = free_name(f"{statement.name}_{at}", self.taken)
            piece = piece_along(
                statement, instance.set_tuple_name(IN, name), domain.set_tuple_name(name)
            )
            row = 1 if not leaving else leaving[0] + (2 if leaving[0] < step else 1)
            whole = wholes[at].set_tuple_name(IN, name)
            yield _Piece(piece, whole, stage, cut=len(found) > 1, row=row)

    def _instance(
        self, statement: Statement, own_step: int, sides: Mapping[int, int], names: Names
    ) -> tuple[isl.MultiAff, isl.Set]:
        """Return what a piece runs by its own counters, and all it runs.

        ``sides`` says of loops that leave the block whether the piece has them in front of it (-1),
        in it (0) or behind it (1).
        """
        block, step, *others = names
        own, left, size = statement.domain, iter(others), self.size
        whole, there = list[str](), [f"{block} >= 0"]
        for at in range(len(statement.loops)):
            name = step if at == own_step else next(left)
            side = sides.get(at, 0)
            leaves = at == own_step or at in sides
            whole.append(
                name if not leaves or side < 0 else f"{size} * {block} + {name} + {side * size}"
            )
            if leaves:
                end = f"{size} * {block}" if side < 0 else str(size)
                there.append(f"{name} >= 0" if side > 0 else f"0 <= {name} < {end}")
        tuples = (statement.name, names), (statement.name, whole)
        onto = map_between(own, *tuples, " and ".join(there)).intersect_range(own)
        instance = isl.PwMultiAff.from_map(map_between(own, *tuples)).as_multi_aff()
        return instance, with_names(onto.domain(), SET, names).remove_redundancies().coalesce()


@remembered
def _tiling(scop: Scop) -> _Tiling | None:
    """Return the loops of a region that are its steps, if there are such, in blocks of one."""
    deepest = max((len(one.loops) for one in scop.statements), default=0)
    sums = {one.name: _summed(one, scop) for one in scop.statements}
    order = sorted(scop.statements, key=lambda one: not sums[one.name])  # they decide
    deep = [one for one in order if len(one.loops) == deepest]
    if deepest < 2 or not all(sums[one.name] for one in deep):
        return None
    needed = _needed(scop)

    def chosen(steps: dict[str, _Step]) -> dict[str, _Step] | None:
        if len(steps) == len(order):  # some sum in the most loops has its own
            sums_up = (at in sums[one.name] for one in deep for at in [steps[one.name][1]])
            return steps if any(sums_up) else None
        statement, some = order[len(steps)], order[: len(steps) + 1]
        own = statement.domain.to_union_set().universe()
        mine = needed.intersect_domain(own).union(needed.intersect_range(own))
        ways = [(stage, loop) for stage in (_UP, _DOWN) for loop in sums[statement.name]]
        up, down = ([(one, at) for at in range(len(statement.loops))] for one in (_UP, _DOWN))
        ways += up if statement in deep else [*up, (_BEFORE, 0), (_BEHIND, 0), *down]
        for step in ways:
            more = {**steps, statement.name: step}
            found = chosen(more) if _run_forward(some, mine, more) else None
            if found is not None:
                return found
        return None

    steps = chosen({})
    return None if steps is None else _Tiling(1, steps, set())


def _summed(statement: Statement, scop: Scop) -> list[int]:
    """Return the only loop along which what a sum is stored to stays, if there is one."""
    write = statement.write
    if update_of(statement, scop.array(write.array).element_type) is None:
        return []
    still = _still(statement)
    begins = len(still) == 1 and statement.domain.dim_min_val(still[0]).is_nonneg()
    return still if begins else []  # blocks begin at 0


def _still(statement: Statement) -> list[int]:
    """Return the loops along which what a statement writes stays."""
    return [*map(statement.loops.index, still_loops(statement))]


def _run_forward(
    statements: Sequence[Statement], needed: isl.UnionMap, steps: Mapping[str, _Step]
) -> bool:
    """Tell whether no statement runs in a step before that of what it needs."""
    stages = times = isl.UnionPwAff.empty(needed.get_space())
    for one in statements:
        stage = isl.Val(steps[one.name][0], needed.get_ctx())
        own = _timed(one, steps[one.name]).intersect_domain(one.domain)
        stages = stages.union_add(isl.UnionPwAff.val_on_domain(one.domain.to_union_set(), stage))
        times = times.union_add(isl.UnionPwAff.from_pw_aff(own))
    time = alone(stages).flat_range_product(alone(times))
    return bool(among(needed, stages.domain()).lex_gt_at_multi_union_pw_aff(time).is_empty())


def _timed(statement: Statement, step: _Step) -> isl.PwAff:
    """Return when a statement runs among those of its stage."""
    stage, loop = step
    if stage in (_UP, _DOWN):
        own = counter(statement, loop)
        return own.neg() if stage == _DOWN else own
    return isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(statement.domain.get_space()))


def counter(statement: Statement, loop: int) -> isl.PwAff:
    """Return the counter of a loop, by number."""
    counters = isl.MultiAff.identity_on_domain_space(statement.domain.get_space())
    return counters.get_at(loop).to_pw_aff()


# -- order -------------------------------------------------------------------------------------


def _in_order(
    pieces: Sequence[_Piece], needed: isl.UnionMap, *, around: bool
) -> tuple[Statement, ...] | None:
    """Return pieces in the order in which they run, ``None`` where a class has a serial loop more.

    ``[1, kb, class, i, 0, j, 0, k]`` is when a product runs, and ``[1, kb, class, k, place, i, 0,
    j]`` when a class does that stays in steps; ``[2, -kb, class, …, -k, …]`` of those backwards.
    """
    times: dict[str, list[isl.PwAff | int]] = {}
    in_block = equal_leading_dims(needed, 1)
    for stage in (_BEFORE, _BEHIND):
        beside = [one for one in pieces if one.stage == stage]
        for number, tied in enumerate(_components(beside, needed)):
            for one in (piece.statement for piece in tied):
                times[one.name] = [stage, number, *output_affs(one.schedule)]
    classes = _components if around else _classes
    blocked = (
        (stage, *numbered)
        for stage in (_UP, _DOWN)
        for numbered in enumerate(classes([o for o in pieces if o.stage == stage], in_block))
    )
    for stage, number, tied in blocked:
        own = _among(tied, in_block)
        if len(tied) == 1 and _is_sum(tied[0], own):
            statement = tied[0].statement
            block, step = (_timed(statement, (stage, at)) for at in (0, 1))
            loops = [*(counter(statement, at) for at in range(2, len(statement.loops))), step]
            times[statement.name] = [stage, block, number, *_spaced(loops)]
            continue
        in_step = equal_leading_dims(own, 2)
        serial = not around and _adds_in_steps(tied, in_block)
        if serial and not all(output_affs(one.statement.write.relation) for one in tied):
            return None  # a scalar, which is to have an element for each step
        for place, together in enumerate(_components(tied, in_step)):
            first, statement = together[0], together[0].statement
            in_turn = _among(together, in_step)
            if len(together) > 1 or not (around or _stays(in_turn, statement, [first.row])):
                return None
            block, step = (_timed(statement, (stage, at)) for at in (0, 1))
            others = [*range(2, len(statement.loops))]
            if serial:  # rows come first, in which sums are added up
                others = [first.row, *(at for at in others if at != first.row)]
            else:
                others.sort(key=lambda at: not is_still(statement, at, in_turn))
            loops = [counter(statement, at) for at in others]
            times[statement.name] = [stage, block, number, step, place, *_spaced(loops)]
    return _padded([(one.statement, times[one.statement.name]) for one in pieces])


def _classes(pieces: Sequence[_Piece], in_block: isl.UnionMap) -> list[list[_Piece]]:
    """Return the classes of a block in their order; what sums of a step begin with is in theirs."""
    found = _components(pieces, in_block)
    for own in [*found]:
        behind = (one for one in found[found.index(own) + 1 :] if _needs(one, own, in_block))
        user = next(behind, None)
        alone = len(own) == 1 and _among(own, in_block).is_empty()
        if alone and user is not None and _adds_in_steps(user, in_block):
            user += own
            found.remove(own)
    return found


def _adds_in_steps(pieces: Sequence[_Piece], in_block: isl.UnionMap) -> bool:
    """Tell whether a class that is no product adds something up in a step."""
    own = _among(pieces, in_block)
    in_step = equal_leading_dims(own, 2)
    return not (len(pieces) == 1 and _is_sum(pieces[0], own)) and any(
        not _among([one], in_step).is_empty() for one in pieces
    )


def _is_sum(piece: _Piece, own: isl.UnionMap) -> bool:
    """Tell whether instances of a piece in a block need others of the same result only."""
    others = range(2, len(piece.statement.loops))
    return bool(others) and _stays(own, piece.statement, others)


def _stays(needed: isl.UnionMap, statement: Statement, loops: Iterable[int]) -> bool:
    """Tell whether what instances need of each other is at the same value of some loops."""
    return all(is_still(statement, at, needed) for at in loops)


def is_still(statement: Statement, loop: int, needed: isl.UnionMap) -> bool:
    """Tell whether instances of a statement need those of the same iteration of a loop only."""
    own = isl.UnionPwAff.from_pw_aff(counter(statement, loop))
    return bool(needed.is_subset(needed.eq_at_multi_union_pw_aff(alone(own))))


def _spaced(loops: Iterable[isl.PwAff]) -> Iterator[isl.PwAff | int]:
    """Yield loops with places of nothing between them."""
    for loop in loops:
        yield loop
        yield 0


def _padded(timed: Sequence[tuple[Statement, list[isl.PwAff | int]]]) -> tuple[Statement, ...]:
    """Return statements that run at times of one length."""
    length = max(len(time) for _, time in timed)
    return tuple(_at(one, [*time, *[0] * (length - len(time))]) for one, time in timed)


def _at(statement: Statement, time: Sequence[isl.PwAff | int]) -> Statement:
    """Return a statement that runs at a time."""
    universe, context = isl.Set.universe(statement.domain.get_space()), statement.domain.get_ctx()

    def function(one: isl.PwAff | int) -> isl.Map:
        if isinstance(one, int):
            one = isl.PwAff.val_on_domain(universe, isl.Val(one, context))
        return isl.Map.from_pw_aff(one)

    schedule = reduce(isl.Map.flat_range_product, map(function, time))
    return replace(statement, schedule=schedule.intersect_domain(statement.domain))


def _components(pieces: Sequence[_Piece], needed: isl.UnionMap) -> list[list[_Piece]]:
    """Return pieces that need each other together, behind what they need."""
    import networkx as nx  # type: ignore[import-untyped]  # noqa: PLC0415 - sizes alone need none

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(pieces)))
    at = {piece.statement.name: number for number, piece in enumerate(pieces)}
    for relation in maps_of(needed):
        ends = [at.get(relation.get_tuple_name(side)) for side in (IN, OUT)]
        if None not in ends and not relation.is_empty():
            graph.add_edge(*ends)
    tied = nx.condensation(graph)
    members = {node: sorted(data["members"]) for node, data in tied.nodes(data=True)}
    order = nx.lexicographical_topological_sort(tied, key=lambda node: members[node])
    return [[pieces[at] for at in members[node]] for node in order]


def _among(pieces: Sequence[_Piece], needed: isl.UnionMap) -> isl.UnionMap:
    """Return what pieces need of each other."""
    return among(needed, _instances(pieces))


def _needs(pieces: Sequence[_Piece], others: Sequence[_Piece], needed: isl.UnionMap) -> bool:
    """Tell whether pieces need something of others."""
    leaving = needed.intersect_domain(_instances(others))
    return not leaving.intersect_range(_instances(pieces)).is_empty()


def _instances(pieces: Sequence[_Piece]) -> isl.UnionSet:
    domains = (one.statement.domain.to_union_set() for one in pieces)
    return reduce(isl.UnionSet.union, domains)

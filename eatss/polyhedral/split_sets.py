"""Statements are cut where they meet what they read: a cycle of dependences less.

``for (k …) for (i …) for (j …) A[i][j] = f(A[i][j], A[i][k], A[k][j]);`` writes row and column
``k``, which all instances of step ``k`` read. Cut at ``i = k`` and ``j = k``, it is nine pieces:
four read the row or the column before or after it is written, and each is parallel. It is known as
index set splitting [Griebl, Feautrier and Lengauer, 2000].

Pieces run what the statement runs, and nothing is assumed of values. Their order is isl's. Pieces
that then need nothing of each other in a step of the loop around share a launch, and the first of
a step may share that of the last of the step before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import chain, combinations

import islpy as isl

from eatss.base.diagnostics import IllegalScheduleError, internal_error
from eatss.base.frozen import fixed
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import at_most, first_equal
from eatss.polyhedral.expression import pulled_back
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    affine_form,
    affine_text,
    constant_value,
    dim_names,
    equal_leading_dims,
    node_kind,
    outermost,
    output_affs,
    renaming,
    set_names,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.recomputed_producers import (
    Flow,
    Source,
    flow_to_reads,
    reading_anew,
    source_of,
)
from eatss.polyhedral.schedule import cut_again
from eatss.polyhedral.scheduling import local_dependences
from eatss.polyhedral.scop import Access, Place, Scop, Statement
from eatss.polyhedral.tree import (
    PARTED,
    alone,
    branches,
    coincident,
    functions,
    is_tilable,
    with_band,
    with_parts,
)

_MOST_PIECES = 9
"""Pieces of one statement: two hyperplanes, three parts each."""

_EARLY = 2_000_000
"""isl operations to find out whether pieces may compute anew what others write."""

_Sides = tuple[isl.Set, isl.Set, isl.Set]
"""The instances of a statement before a hyperplane, on it and behind it."""

# -- pieces ------------------------------------------------------------------------------------


def with_split_sets(scop: Scop) -> Scop:
    """Return a region whose statements are cut where they meet what they read of their own array.

    The region itself where there is no such place.

    Raises:
        InternalError: ``EATSS-P901``, the pieces are not the statement.
    """
    taken = scop.names
    statements = tuple(piece for one in scop.statements for piece in _pieces(one, taken))
    if len(statements) == len(scop.statements):
        return scop
    cut = replace(scop, statements=statements)
    with suppress(isl.Error), at_most(scop.isl_context, _EARLY):
        cut = _with_early_reads(cut) or cut
    return replace(cut, written=scop.written or scop)


def _pieces(statement: Statement, taken: set[str]) -> tuple[Statement, ...]:
    """Return the pieces of a statement in the order of their sides, itself where there is one."""
    parts = [statement.domain]
    for sides in _hyperplanes(statement):
        parts = [
            cut for one in parts for side in sides if not (cut := one.intersect(side)).is_empty()
        ]
        if len(parts) > _MOST_PIECES:
            break
    if not 1 < len(parts) <= _MOST_PIECES:
        return (statement,)
    check_partition(statement, parts)
    return tuple(
        piece_on(statement, part.coalesce(), free_name(f"{statement.name}_{at}", taken))
        for at, part in enumerate(parts)
    )


def _hyperplanes(statement: Statement) -> Iterator[_Sides]:
    """Yield where a subscript of a read meets that of the write."""
    write = output_affs(statement.write.relation)
    reads = {one.text: one for one in statement.reads if one.array == statement.write.array}
    for read in reads.values():
        for written, one in zip(write, output_affs(read.relation), strict=True):
            form = affine_form(written.sub(one))
            if form is not None and form.coefficients:
                yield written.lt_set(one), written.eq_set(one), written.gt_set(one)


def check_partition(statement: Statement, parts: Sequence[isl.Set]) -> None:
    """Check that parts are disjoint, and together all that a statement runs.

    Raises:
        InternalError: ``EATSS-P901``.
    """
    disjoint = all(one.is_disjoint(other) for one, other in combinations(parts, 2))
    if disjoint and reduce(isl.Set.union, parts).is_equal(statement.domain):
        return
    message = f"the pieces of {statement.name} do not run every instance exactly once"
    raise internal_error("EATSS-P901", message, span=statement.span)


def piece_on(statement: Statement, part: isl.Set, name: str) -> Statement:
    """Return what runs a part of the instances of a statement, when it does."""
    domain = part.set_tuple_name(name)
    same = isl.MultiAff.identity_on_domain_space(domain.get_space())
    piece = piece_along(statement, same.set_tuple_name(OUT, statement.name), domain)
    schedule = statement.schedule.intersect_domain(part).set_tuple_name(IN, name)
    return replace(piece, schedule=schedule)


def piece_along(statement: Statement, instance: isl.MultiAff, domain: isl.Set) -> Statement:
    """Return a statement that runs those instances of another that a function names.

    It runs when the other does.
    """
    whole = Source(
        producer=statement,
        instance=instance,
        relation=isl.Map.from_multi_aff(instance).intersect_domain(domain),
    )

    def of(access: Access) -> Access:
        relation = whole.elements(access)
        forms = [affine_form(outermost(one, domain)) for one in output_affs(relation)]
        subscripts = "".join(f"[{affine_text(one)}]" for one in forms if one)
        text = access.text if None in forms else access.array + subscripts
        return replace(access, relation=relation, text=text)

    return replace(
        statement,
        name=domain.get_tuple_name(),
        loops=dim_names(domain),
        domain=domain,
        schedule=whole.relation.apply_range(statement.schedule),
        accesses=tuple(map(of, statement.accesses)),
        value=pulled_back(statement.value, instance),
        recomputed=tuple(map(of, statement.recomputed)),
        piece_of=statement.piece_of or statement.name,
    )


# -- early reads -------------------------------------------------------------------------------


def _with_early_reads(scop: Scop) -> Scop | None:
    """Return a region that reads nothing of what it writes in the same step of its one outer loop.

    Such values are computed anew, and what writes what others read comes last: pieces of a step
    then need fewer launches in turn. ``None`` where that is not proven to give the same values.
    """
    if not all(one.loops for one in scop.statements) or any(
        constant_value(output_affs(one.schedule)[0]) for one in scop.statements
    ):
        return None
    expected = dict(flow_to_reads(scop))
    changed = scop
    for at in chain(*_ranked(scop, reduce(isl.UnionMap.union, expected.values())) or ()):
        found = _reading_early(changed.statements[at], changed, expected)
        if found is None:
            return None
        before, after = changed.statements[:at], changed.statements[at + 1 :]
        changed = replace(changed, statements=(*before, found, *after))
    reads = _used(read for one in changed.statements for read in one.reads)
    ranks = _ranked(changed, reads.apply_range(written_by(changed).reverse()))
    if changed is scop or ranks is None:
        return None
    rank_of = {at: rank for rank, ats in enumerate(ranks) for at in ats}
    late = (_at_place(one, rank_of[at]) for at, one in enumerate(changed.statements))
    changed = replace(changed, statements=tuple(late))
    return changed if _same_values(scop, changed, expected) else None


def _ranked(scop: Scop, relation: isl.UnionMap) -> list[list[int]] | None:
    """Return the numbers of statements in an order in which a relation leads forward in a step."""
    domains = [one.domain.to_union_set() for one in scop.statements]
    return generations(domains, equal_leading_dims(relation, 1))


def generations(domains: Sequence[isl.UnionSet], relation: isl.UnionMap) -> list[list[int]] | None:
    """Return the numbers of sets so that a relation leads forward between them, if it can."""
    graph = TopologicalSorter(dict.fromkeys(range(len(domains)), ()))
    for one, domain in enumerate(domains):
        leading = relation.intersect_domain(domain)
        for other, own in enumerate(domains):
            if other != one and not leading.intersect_range(own).is_empty():
                graph.add(other, one)
    try:
        graph.prepare()
    except CycleError:
        return None
    found = []
    while ready := graph.get_ready():
        found.append(sorted(ready))
        graph.done(*ready)
    return found


def _used(accesses: Iterable[Access]) -> isl.UnionMap:
    return reduce(isl.UnionMap.union, (one.relation.to_union_map() for one in accesses))


def written_by(scop: Scop) -> isl.UnionMap:
    """Return which instances write which elements."""
    return _used(one.write for one in scop.statements)


def _at_place(statement: Statement, place: int) -> Statement:
    """Return a statement that runs at a place among the others of a step."""
    free = statement.schedule.eliminate(OUT, 2, 1)
    return replace(statement, schedule=free.fix_val(OUT, 2, isl.Val(place, free.get_ctx())))


def _same_values(before: Scop, after: Scop, expected: Flow) -> bool:
    """Tell whether reads get what is expected, and writes of each element come in their order."""
    flow = flow_to_reads(after)
    same = writes_in_order(before).is_equal(writes_in_order(after))
    return same and all(flow[place].is_equal(expected[place]) for place in flow)


def writes_in_order(scop: Scop) -> isl.UnionMap:
    """Return which instances write an element, and which do later."""
    pairs = written_by(scop).apply_range(written_by(scop).reverse())
    return pairs.intersect(scop.schedule.lex_lt_union_map(scop.schedule))


def _reading_early(
    statement: Statement, scop: Scop, expected: dict[Place, isl.UnionMap]
) -> Statement | None:
    """Return a statement that computes anew what is written in its step, and note its flow."""
    firsts = first_equal(statement.accesses)
    sources: dict[int, Source] = {}
    for at in sorted({*firsts} - {0}):
        place = statement.name, at
        if not equal_leading_dims(expected[place], 1).is_empty():
            source = source_of(scop, place, expected, shared=True)
            if source is None:
                return None
            sources[at] = source
    anew = reading_anew(statement, sources) if sources else (statement, {})
    if anew is None:
        return None
    kept = [at for at, first in enumerate(firsts) if first not in sources]
    found = [(at, expected[statement.name, old]) for at, old in enumerate(kept)]
    for at, reads in anew[1].items():
        here = sources[at].relation.reverse().to_union_map()
        for operand, read in reads.items():
            flow = expected[sources[at].producer.name, operand].apply_range(here)
            found.append((read, flow))
    expected |= {(statement.name, at): flow for at, flow in found}
    same = all(expected[statement.name, at].is_equal(flow) for at, flow in found)
    return anew[0] if same else None


# -- launches ----------------------------------------------------------------------------------


def frees_parts(before: ScheduledScop, after: ScheduledScop) -> bool:
    """Tell whether a piece of a statement, or its chunks, have more parallel loops than it has."""
    loops = {name: len(one.parallel_loops) for name, one in before.kernel_of.items()}
    return any(
        (own.chunk or own.piece_of)
        and len(one.parallel_loops) > loops.get(own.name, loops.get(own.piece_of, 0))
        for name, one in after.kernel_of.items()
        for own in (after.scop.statement(name),)
    )


def with_shared_launches(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a region of split statements in which pieces share launches.

    The region itself where none of its statements is split, or no launches can be shared.
    """
    if not any(one.piece_of for one in scheduled.scop.statements):
        return scheduled
    for in_turn in (True, False):
        root = _shared(scheduled, scheduled.schedule.get_root(), in_turn)
        with suppress(IllegalScheduleError, isl.Error):
            return cut_again(scheduled, root.get_schedule())
    return scheduled


@fixed
class _Launch:
    """Instances that run together: the loop of the host, and parallel ones, none for one point.

    Those of ``first`` are before the others at each point.
    """

    domain: isl.UnionSet
    step: isl.UnionPwAff
    members: tuple[isl.UnionPwAff, ...]
    first: isl.UnionSet | None = None

    def with_(self, other: _Launch) -> _Launch:
        """Return both as one launch."""
        members = tuple(map(isl.UnionPwAff.union_add, self.members, other.members))
        step, domain = self.step.union_add(other.step), self.domain.union(other.domain)
        return replace(self, domain=domain, step=step, members=members)

    def at_leaf(self, leaf: isl.ScheduleNode) -> isl.ScheduleNode:
        """Put its band at a leaf."""
        if not self.members:
            return leaf
        band = with_band(leaf, self.members, [True] * len(self.members))
        if self.first is None:
            return band
        parts = [self.first, self.domain.subtract(self.first)]
        return with_parts(band.get_child(0), parts, lambda _, below: below, in_order=True).parent()


def _shared(scheduled: ScheduledScop, node: isl.ScheduleNode, in_turn: bool) -> isl.ScheduleNode:
    """Return a node of a tree in which launches below loops of the host are shared.

    ``in_turn`` says that the first launch of a step joins the last of the step before.
    """
    if is_tilable(node):
        return node
    launches = _launches(node, None)
    layers = _layers(scheduled, node, launches) if len(launches) > 1 else []
    if not layers:
        for at in range(node.n_children()):
            node = _shared(scheduled, node.get_child(at), in_turn).parent()
        return node
    if in_turn and len(layers) > 2 and len(layers[0]) == len(layers[-1]) == 1:
        (early,), (late,) = layers[0], layers[-1]
        one = isl.UnionPwAff.val_on_domain(early.domain, isl.Val(1, early.domain.get_ctx()))
        before = _beside(scheduled.scop, late, [early])
        if len(before.members) == len(early.members) > 0:
            both = before.with_(replace(early, step=early.step.sub(one)))
            both = replace(both, first=None if late.members else late.domain)
            layers = [*layers[1:-1], [both]]
    order = [one for layer in layers for one in layer]
    band = node.cut().insert_partial_schedule(alone(_step(order)))
    return with_parts(
        band.band_set_permutable(1).get_child(0),
        [one.domain for one in order],
        lambda at, below: order[at].at_leaf(below),
        in_order=True,
    ).parent()


def _launches(node: isl.ScheduleNode, step: isl.UnionPwAff | None) -> list[_Launch]:
    """Return the launches of a step of a loop of the host, in their order.

    Without a step, those of all such loops at a node. None where some have loops inside.
    """
    if node_kind(node) in PARTED:
        parts = [_launches(one, step) for one in branches(node)]
        return [one for part in parts for one in part] if all(parts) else []
    if step is None:
        alone_ = node_kind(node) == "band" and node.band_n_member() == 1
        return _launches(node.get_child(0), functions(node)[0]) if alone_ else []
    parallel = is_tilable(node) and all(coincident(node))
    domain, inside = node.get_domain().universe(), node.get_child(0) if parallel else node
    members = tuple(functions(node)) if parallel else ()
    found = [_Launch(domain, step.intersect_domain(domain), members)]
    return found if node_kind(inside) == "leaf" else []


def _layers(
    scheduled: ScheduledScop, node: isl.ScheduleNode, launches: Sequence[_Launch]
) -> list[list[_Launch]]:
    """Return launches in layers that need nothing of each other, where there are such."""
    needed = local_dependences(scheduled.dependences.needed, node)
    needed = needed.eq_at_multi_union_pw_aff(alone(_step(launches)))
    layers = generations([one.domain for one in launches], needed)
    return [_joined(scheduled.scop, [launches[at] for at in layer]) for layer in layers or ()]


def _step(launches: Sequence[_Launch]) -> isl.UnionPwAff:
    return reduce(isl.UnionPwAff.union_add, (one.step for one in launches))


def _joined(scop: Scop, layer: Sequence[_Launch]) -> list[_Launch]:
    """Return launches that need nothing of each other, those of as many loops as one."""
    found: dict[int, _Launch] = {}
    for at, one in enumerate(_beside(scop, one, layer) for one in layer):
        place = len(one.members) or -at - 1
        found[place] = found[place].with_(one) if place in found else one
    return list(found.values())


def _beside(scop: Scop, point: _Launch, others: Sequence[_Launch]) -> _Launch:
    """Return a launch of one point as one of those that other pieces of its statement run in."""
    own = scop.statement(set_names(point.domain)[0])
    for other in others if own.piece_of and not point.members else ():
        for name in set_names(other.domain) if other.members else ():
            if scop.statement(name).piece_of == own.piece_of:
                to_piece = renaming([(own.domain, name)])
                here = (one.pullback_union_pw_multi_aff(to_piece) for one in other.members)
                return replace(point, members=tuple(here))
    return point

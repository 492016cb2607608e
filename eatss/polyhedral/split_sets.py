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

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce

import islpy as isl

from eatss.base.diagnostics import InternalError, internal_error
from eatss.base.frozen import fixed
from eatss.base.trees import free_name
from eatss.polyhedral.expression import AffineValue, Expression, preorder, rebuilt
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    affine_form,
    function_on,
    node_kind,
    output_affs,
    set_names,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.schedule import cut_again
from eatss.polyhedral.scheduling import local_dependences
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.polyhedral.tree import (
    PARTED,
    alone,
    branches,
    coincident,
    functions,
    is_tilable,
    marked,
    with_parts,
)

_MOST_PIECES = 9
"""Pieces of one statement: two hyperplanes, three parts each."""

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
    return replace(scop, statements=statements, written=scop.written or scop)


def _pieces(statement: Statement, taken: set[str]) -> tuple[Statement, ...]:
    """Return the pieces of a statement in the order of their sides, itself where there is one."""
    parts = [statement.domain]
    for sides in _hyperplanes(statement):
        parts = [
            cut for part in parts for side in sides if not (cut := part.intersect(side)).is_empty()
        ]
    if not 1 < len(parts) <= _MOST_PIECES:
        return (statement,)
    check_partition(statement, parts)
    return tuple(
        _piece(statement, part.coalesce(), free_name(f"{statement.name}_{at}", taken))
        for at, part in enumerate(parts)
    )


def _hyperplanes(statement: Statement) -> Iterator[_Sides]:
    """Yield where a subscript of a read meets that of the write, and the domain is cut there."""
    known: list[isl.Set] = []
    own = [one for one in statement.reads if one.array == statement.write.array]
    for read in own:
        for written, one in zip(
            *(output_affs(a.relation) for a in (statement.write, read)), strict=True
        ):
            apart = written.sub(one).gist(statement.domain)
            form = affine_form(apart)
            if form is None or not form.coefficients:
                continue
            zero = isl.PwAff.zero_on_domain(apart.get_domain_space().to_local_space())
            sides = apart.lt_set(zero), apart.eq_set(zero), apart.gt_set(zero)
            met = [side for side in sides if not side.intersect(statement.domain).is_empty()]
            if len(met) > 1 and not any(sides[1].is_equal(other) for other in known):
                known.append(sides[1])
                yield sides


def check_partition(statement: Statement, parts: Sequence[isl.Set]) -> None:
    """Check that parts are disjoint, and together all that a statement runs.

    Raises:
        InternalError: ``EATSS-P901``.
    """
    whole = parts[0]
    for part in parts[1:]:
        if not whole.is_disjoint(part):
            break
        whole = whole.union(part)
    else:
        if whole.is_equal(statement.domain):
            return
    message = f"the pieces of {statement.name} do not run every instance exactly once"
    raise internal_error("EATSS-P901", message, span=statement.span)


def _piece(statement: Statement, part: isl.Set, name: str) -> Statement:
    def own(relation: isl.Map) -> isl.Map:
        return relation.intersect_domain(part).set_tuple_name(IN, name)

    def of(access: Access) -> Access:
        return replace(access, relation=own(access.relation))

    space = part.set_tuple_name(name).get_space()
    same = isl.MultiAff.identity_on_domain_space(space).set_tuple_name(OUT, statement.name)

    def value(node: Expression) -> Expression:
        if isinstance(node, AffineValue):
            return replace(node, value=node.value.pullback_multi_aff(same))
        return rebuilt(node, value)

    counts = any(isinstance(node, AffineValue) for node in preorder(statement.value))
    return replace(
        statement,
        name=name,
        domain=part.set_tuple_name(name),
        schedule=own(statement.schedule),
        accesses=tuple(map(of, statement.accesses)),
        value=value(statement.value) if counts else statement.value,
        recomputed=tuple(map(of, statement.recomputed)),
        piece_of=statement.piece_of or statement.name,
    )


# -- launches ----------------------------------------------------------------------------------


def frees_pieces(before: ScheduledScop, after: ScheduledScop) -> bool:
    """Tell whether a piece of a statement has more parallel loops than the statement."""
    first, then = (
        {name: len(kernel.parallel_loops) for kernel in one.kernels for name in kernel.statements}
        for one in (before, after)
    )
    return any(
        then.get(one.name, 0) > first.get(one.piece_of, 0)
        for one in after.scop.statements
        if one.piece_of
    )


def with_shared_launches(scheduled: ScheduledScop) -> ScheduledScop:
    """Return a region of split statements in which pieces share launches.

    The region itself where none of its statements is split, or no launches can be shared.
    """
    if not any(one.piece_of for one in scheduled.scop.statements):
        return scheduled
    for in_turn in (True, False):
        root = _shared(scheduled, scheduled.schedule.get_root(), in_turn)
        with suppress(InternalError):
            return cut_again(scheduled, root.get_schedule())
    return scheduled


@fixed
class _Launch:
    """Instances that run together: the functions of their parallel loops, none for one point."""

    domain: isl.UnionSet
    members: tuple[isl.UnionPwAff, ...]

    def with_(self, other: _Launch) -> _Launch:
        """Return both as one launch."""
        pairs = zip(self.members, other.members, strict=True)
        members = tuple(one.union_add(another) for one, another in pairs)
        return _Launch(self.domain.union(other.domain), members)

    def at_leaf(self, leaf: isl.ScheduleNode) -> isl.ScheduleNode:
        """Put its band at a leaf."""
        if not self.members:
            return leaf
        band = leaf.insert_partial_schedule(_together(self.members))
        return marked(band, permutable=True, parallel=[True] * len(self.members))


def _shared(scheduled: ScheduledScop, node: isl.ScheduleNode, in_turn: bool) -> isl.ScheduleNode:
    """Return a node of a tree in which launches below loops of the host are shared.

    ``in_turn`` says that the first launch of a step joins the last of the step before.
    """
    if is_tilable(node):
        return node
    launches = _launches(node.get_child(0)) if node_kind(node) == "band" else None
    if launches is None or len(launches) < 2:
        for at in range(node.n_children()):
            node = _shared(scheduled, node.get_child(at), in_turn).parent()
        return node
    layers = _layers(scheduled, node.get_child(0), launches)
    steps = [_in_outer_counters(scheduled.scop, step) for step in functions(node)]
    ends = [one for layer in (layers[0], layers[-1]) for one in layer]
    if in_turn and len(steps) == 1 and len(layers) > 2 and len(ends) == 2:
        first, last = ends
        if len(first.members) == len(last.members) > 0:
            sooner = isl.UnionPwAff.val_on_domain(first.domain, isl.Val(1, first.domain.get_ctx()))
            steps = [steps[0].sub(sooner).union_add(steps[0].subtract_domain(first.domain))]
            layers = [*layers[1:-1], [last.with_(first)]]
    band = node.get_child(0).cut().parent().delete()
    band = band.insert_partial_schedule(_together(steps)).band_set_permutable(1)
    order = [one for layer in layers for one in layer]
    domains = [one.domain for one in order]
    leaf = band.get_child(0)
    filled = with_parts(leaf, domains, lambda at, below: order[at].at_leaf(below), in_order=True)
    return filled.parent()


def _launches(node: isl.ScheduleNode) -> list[_Launch] | None:
    """Return the launches of a step in their order, ``None`` where some have loops inside."""
    if node_kind(node) in PARTED:
        parts = [_launches(one) for one in branches(node)]
        return None if None in parts else [one for part in parts if part for one in part]
    if node_kind(node) == "leaf":
        return [_Launch(node.get_domain().universe(), ())]
    plain = is_tilable(node) and all(coincident(node)) and node_kind(node.get_child(0)) == "leaf"
    return [_Launch(node.get_domain().universe(), tuple(functions(node)))] if plain else None


def _layers(
    scheduled: ScheduledScop, node: isl.ScheduleNode, launches: Sequence[_Launch]
) -> list[list[_Launch]]:
    """Return launches in layers that need nothing of each other; those of as many loops are one."""
    dependences = scheduled.dependences
    needed = local_dependences(dependences.memory_based.union(dependences.forced), node)
    layers: list[list[_Launch]] = []
    for one in launches:
        before = needed.intersect_range(one.domain).domain()
        depth = 0
        for at, layer in enumerate(layers, start=1):
            if any(not each.domain.is_disjoint(before) for each in layer):
                depth = at
        layers += [[]] * (depth == len(layers))
        layers[depth] = [*layers[depth], one]
    return [_joined(scheduled.scop, layer) for layer in layers]


def _joined(scop: Scop, layer: Sequence[_Launch]) -> list[_Launch]:
    """Return launches that need nothing of each other, those of as many loops as one."""
    found: list[_Launch] = []
    for one in (_beside(scop, one, layer) for one in layer):
        alike = [each for each in found if len(each.members) == len(one.members) > 0]
        found = [each for each in found if each not in alike] + [reduce(_Launch.with_, alike, one)]
    return found


def _beside(scop: Scop, point: _Launch, others: Sequence[_Launch]) -> _Launch:
    """Return a launch of one point as one of those that other pieces of its statement run in."""
    names = set_names(point.domain)
    own = next((one for one in scop.statements if (one.name,) == names and one.piece_of), None)
    if point.members or own is None:
        return point
    for other in others:
        for name in set_names(other.domain) if other.members else ():
            piece = scop.statement(name)
            if piece.piece_of == own.piece_of:
                same = isl.MultiAff.identity_on_domain_space(own.domain.get_space())
                same = same.set_tuple_name(OUT, name)
                found = (function_on(one, piece.domain) for one in other.members)
                here = (isl.UnionPwAff.from_pw_aff(one.pullback_multi_aff(same)) for one in found)
                return _Launch(point.domain, tuple(here))
    return point


def _in_outer_counters(scop: Scop, step: isl.UnionPwAff) -> isl.UnionPwAff:
    """Return a loop around statements; on a piece with ``i = k`` it is the outer one of the two."""
    for own in (one for one in scop.statements if one.piece_of):
        here = function_on(step, own.domain)
        space = isl.LocalSpace.from_space(own.domain.get_space())
        for at in range(len(own.loops)):
            counter = isl.PwAff.from_aff(isl.Aff.var_on_domain(space, SET, at))
            if own.domain.is_subset(here.eq_set(counter)):
                every = isl.Set.universe(own.domain.get_space()).to_union_set()
                other = isl.UnionPwAff.from_pw_aff(counter)
                step = step.subtract_domain(every).union_add(other)
                break
    return step


def _together(members: Sequence[isl.UnionPwAff]) -> isl.MultiUnionPwAff:
    return reduce(isl.MultiUnionPwAff.flat_range_product, map(alone, members))

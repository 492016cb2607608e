"""What has to run before what, from launch to launch of one piece.

Decisions ask for every dependence between instances, also those that live ranges would let go; the
check of the outcome asks what the schedule itself was checked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from eatss.lower.schedule.pieces import LoopMember, Piece
from eatss.polyhedral import Dependences
from eatss.polyhedral.isl_names import function_on, named_map, universes, without_parameters
from eatss.polyhedral.scheduling import live_ranges_overlap
from eatss.polyhedral.tree import alone


def within_launch(piece: Piece, dependences: Dependences) -> isl.UnionMap:
    """Return every dependence between instances of one launch, the host loops as parameters."""
    here = instances(piece)
    return every_dependence(dependences).intersect_domain(here).intersect_range(here)


def instances(piece: Piece) -> isl.UnionSet:
    """Return the instances of a launch of a piece, the host loops as parameters."""
    band = [loop.name for loop in piece.band]
    found = isl.UnionSet.empty(piece.placed[0].get_space().params())
    for domain in piece.placed:
        found = found.union(without_parameters(domain, band))
    return found


def never_runs_back(piece: Piece, loop: LoopMember, dependences: Dependences) -> bool:
    """Tell whether no dependence of a launch leads to an earlier iteration of a loop.

    All iterations of such a loop may run one after another, whatever runs inside: the loop may
    stand outermost.
    """
    inside = within_launch(piece, dependences)
    return inside.lex_gt_at_multi_union_pw_aff(alone(loop.member.function)).is_empty()


def may_follow(
    piece: Piece, first: Sequence[str], then: Sequence[str], dependences: Dependences
) -> bool:
    """Tell whether all instances of some statements of a launch may run after all of others."""
    here = instances(piece)

    def of(names: Sequence[str]) -> isl.UnionSet:
        domains = (piece.statement(name).domain for name in names)
        return here.intersect(universes(isl.UnionSet.empty(here.get_space()), domains))

    backwards = within_launch(piece, dependences).intersect_domain(of(then))
    return backwards.intersect_range(of(first)).is_empty()


def only_updates(piece: Piece, dependences: Dependences) -> bool:
    """Tell whether a launch does nothing but add to elements whose sums none of it reads.

    Every dependence then joins updates of one element by one statement, and what is added is read
    where the launch does not write. So the updates may run in any order, those of
    different elements at once.
    """
    same = isl.UnionMap.empty(instances(piece).get_space())
    for statement in piece.statements:
        element = statement.write.relation.intersect_domain(statement.domain)
        same = same.union(element.apply_range(element.reverse()))
    return within_launch(piece, dependences).is_subset(same) and not _reads_results(piece)


def _reads_results(piece: Piece) -> bool:
    """Tell whether a launch reads what it writes other than to take up the element it updates."""
    band = [loop.name for loop in piece.band]
    updates = {reduction.statement for reduction in piece.kernel.reductions}
    written = read = isl.UnionSet.empty(instances(piece).get_space())
    for statement, placed in zip(piece.statements, piece.placed, strict=True):
        here = without_parameters(placed, band)
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


def launches_respect(piece: Piece, launches: Sequence[Piece], dependences: Dependences) -> bool:
    """Tell whether pieces launched one after another respect the dependences between them.

    Args:
        piece: what they were made from.
        launches: the pieces in their order, all under the host loops of ``piece`` and the same
            further ones.
        dependences: of the region.
    """
    time = isl.MultiUnionPwAff.from_union_map(_launch_times(piece, launches))
    here = instances(piece)
    needed = dependences.validity.intersect_domain(here).intersect_range(here)
    if not needed.lex_gt_at_multi_union_pw_aff(time).is_empty():
        return False
    order, flow = (
        tied_between(relation, here) for relation in (dependences.order, dependences.tagged_flow)
    )
    if order.is_empty():
        return True
    tagged = order.domain().union(order.range())
    tagger = tagged.universe().unwrap().domain_map_union_pw_multi_aff()
    swapped = order.lex_gt_at_multi_union_pw_aff(time.pullback_union_pw_multi_aff(tagger))
    return not live_ranges_overlap(swapped, flow, time)


def tied_between(relation: isl.UnionMap, tied: isl.UnionSet) -> isl.UnionMap:
    """Keep of a relation between tagged instances what is between instances in ``tied``."""
    tagged = relation.domain().union(relation.range())
    if tagged.is_empty():
        return relation
    tagger = tagged.universe().unwrap().domain_map_union_pw_multi_aff()
    inside = tied.preimage_union_pw_multi_aff(tagger)
    return relation.intersect_domain(inside).intersect_range(inside)


def every_dependence(dependences: Dependences) -> isl.UnionMap:
    """Return every dependence between instances of a region."""
    return dependences.memory_based.union(dependences.forced)


def _launch_times(piece: Piece, launches: Sequence[Piece]) -> isl.UnionMap:
    """Return which launch runs each instance: further host loops, then the number of the piece."""
    times = isl.UnionMap.empty(piece.placed[0].get_space().params())
    for number, launch in enumerate(launches):
        further = launch.host[len(piece.host) :]
        for statement in launch.statements:
            space = isl.LocalSpace.from_space(statement.domain.get_space())
            which = isl.Val.int_from_si(space.get_ctx(), number)
            constant = isl.PwAff.from_aff(isl.Aff.zero_on_domain(space).set_constant_val(which))
            functions = [function_on(loop.member.function, statement.domain) for loop in further]
            named = named_map(statement.domain, [*functions, constant], "launch", ())
            times = times.union(named)
    return times

"""Statements are cut where they meet what they read: a cycle of dependences less.

``for (k …) for (i …) for (j …) A[i][j] = f(A[i][j], A[i][k], A[k][j]);`` writes row and column
``k``, which all instances of step ``k`` read. Cut at ``i = k`` and ``j = k``, it is nine pieces:
four read the row or the column before or after it is written, and each is parallel. It is known as
index set splitting [Griebl, Feautrier and Lengauer, 2000].

Pieces run what the statement runs, and nothing is assumed of values. Their order is isl's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations

import islpy as isl

from eatss.base.diagnostics import internal_error
from eatss.base.frozen import distinct
from eatss.base.memo import remembered
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import spelled
from eatss.polyhedral.expression import pulled_back
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    affine_form,
    dim_names,
    output_affs,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Access, Scop, Statement

_MOST_PIECES = 9
"""Pieces of one statement: two hyperplanes, three parts each."""

_Sides = tuple[isl.Set, isl.Set, isl.Set]
"""The instances of a statement before a hyperplane, on it and behind it."""

# -- pieces ------------------------------------------------------------------------------------


@remembered
def with_split_sets(scop: Scop) -> Scop:
    """Return a region whose statements are cut where they meet what they read of their own array.

    The region itself where there is no such place.

    Raises:
        InternalError: ``EATSS-P901``, the pieces are not the statement.
    """
    taken = scop.names
    statements = tuple(piece for one in scop.statements for piece in _pieces(one, taken, scop))
    if len(statements) == len(scop.statements):
        return scop
    return replace(scop, statements=statements, written=scop.written or scop)


def _pieces(statement: Statement, taken: set[str], scop: Scop) -> tuple[Statement, ...]:
    """Return the pieces of a statement in the order of their sides, itself where there is one.

    What runs at no sizes of the region is none: isl leaves it out of schedules.
    """
    sizes, parts = scop.context, [statement.domain]
    for sides in _hyperplanes(statement):
        cuts = (one.intersect(side) for one in parts for side in sides)
        parts = [one for one in cuts if not one.intersect_params(sizes).is_empty()]
        if len(parts) > _MOST_PIECES:
            break
    if not 1 < len(parts) <= _MOST_PIECES:
        return (statement,)
    whole = replace(statement, domain=statement.domain.intersect_params(sizes))
    check_partition(whole, [one.intersect_params(sizes) for one in parts])
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
    whole = isl.Map.from_multi_aff(instance).intersect_domain(domain)

    def of(access: Access) -> Access:
        return spelled(access, whole.apply_range(access.relation), domain)

    return replace(
        statement,
        name=domain.get_tuple_name(),
        loops=dim_names(domain),
        domain=domain,
        schedule=whole.apply_range(statement.schedule),
        accesses=tuple(map(of, statement.accesses)),
        value=pulled_back(statement.value, instance),
        recomputed=tuple(map(of, statement.recomputed)),
        piece_of=statement.piece_of or statement.name,
    )


def written_by(scop: Scop) -> isl.UnionMap:
    """Return which instances write which elements."""
    writes = (one.write.relation.to_union_map() for one in scop.statements)
    return reduce(isl.UnionMap.union, writes)


def writes_in_order(scop: Scop) -> isl.UnionMap:
    """Return which instances write an element, and which do later."""
    found = scop.no_relation
    for array in distinct(one.write.array for one in scop.statements):  # isl orders all it has
        statements = tuple(one for one in scop.statements if one.write.array == array)
        own = replace(scop, statements=statements)
        pairs = written_by(own).apply_range(written_by(own).reverse())
        found = found.union(pairs.intersect(own.schedule.lex_lt_union_map(own.schedule)))
    return found


def frees_parts(before: ScheduledScop, after: ScheduledScop) -> bool:
    """Tell whether a piece of a statement, or its chunks, have more parallel loops than it has."""
    loops = {name: len(one.parallel_loops) for name, one in before.kernel_of.items()}
    return any(
        (own.chunk or own.piece_of)
        and len(one.parallel_loops) > loops.get(own.name, loops.get(own.piece_of, 0))
        for name, one in after.kernel_of.items()
        for own in (after.scop.statement(name),)
    )

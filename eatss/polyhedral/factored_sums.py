"""A factor that a sum inside of a sum has in all of its terms is taken out of it.

    for (b …) for (i …) for (j …) y[b] += x[b][i] * W[i][j] * z[b][j];

    for (b …) for (i …) for (j …) T[b][i] += W[i][j] * z[b][j];
    for (b …) for (i …) y[b] += x[b][i] * T[b][i];

Distributivity: what is left inside may be a product of matrices. Where it is the same for other
loops, there are fewer terms: ``D[i][l] += A[i][j] * B[j][k] * C[k][l]`` has four loops, either of
its two products three. Else a factor less alone is no gain: a sum that is no product waits for
memory (on an H200 ``x'Ay`` of 16 384 doubles takes 0.63 ms so, 0.55 ms as it is).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import Names, frozen
from eatss.base.memo import remembered
from eatss.base.trees import free_name
from eatss.polyhedral.chunked_pairs import reduced
from eatss.polyhedral.expression import Binary, Expression, factors, product_of
from eatss.polyhedral.isl_names import (
    IN,
    involved_dims,
    map_between,
    output_affs,
    with_names,
)
from eatss.polyhedral.parts import (
    PLACES,
    New,
    keeps_reads,
    keeps_writes,
    kind_of,
    later,
    literal,
    local_array,
    moved_by,
    readers_of,
    sources_of,
)
from eatss.polyhedral.scop import Access, Scop, Statement

_Factor: TypeAlias = tuple[Expression, frozenset[str]]
"""A factor and the loops that move it."""


@remembered
def with_factored_sums(scop: Scop) -> Scop:
    """Return a region whose sums have factors taken out, itself if none has such factors."""
    for cut in chain(*(_cuts(scop, one) for one in scop.statements)):
        after = cut.region()
        if _computes_the_same(scop, after, cut):
            return with_factored_sums(replace(after, written=scop.written or scop))
    return scop


@frozen
class _Cut:
    """Factors ``outside`` and ``inside`` of a sum over some of the loops of a ``statement``.

    ``loops`` are those along which the sum inside differs, ``summed`` those that it is over.
    """

    scop: Scop
    statement: Statement
    outside: tuple[Expression, ...]
    inside: tuple[Expression, ...]
    loops: Names
    summed: Names

    @property
    def names(self) -> Names:
        """The array of sums inside, and the statements that begin one and add to it."""
        own = self.statement
        taken = self.scop.names.union(*(one.loops for one in self.scop.statements))
        wanted = (f"{own.write.array}_sums", f"{own.name}_first", f"{own.name}_all")
        return tuple(free_name(one, taken) for one in wanted)

    @property
    def terms(self) -> dict[str, isl.Map]:
        """Of each statement what maps its instances to the terms that they are for."""
        own, (_, first, every) = self.statement, self.names
        outer = tuple(one for one in own.loops if one not in self.summed)
        loops = {first: self.loops, every: (*self.loops, *self.summed), own.name: outer}
        maps = (map_between(own.domain, one, (own.name, own.loops)) for one in loops.items())
        return {
            name: with_names(maps.intersect_range(own.domain), IN, loops[name])
            for name, maps in zip(loops, maps, strict=True)
        }

    def region(self) -> Scop:
        """Return the region with sums inside."""
        own, scop, terms, at = self.statement, self.scop, self.terms, 0
        times = {name: one.apply_range(own.schedule).lexmin() for name, one in terms.items()}
        while self.loops[: at + 1] == own.loops[: at + 1] and at < len(self.loops):
            at += 1
        kind = scop.types[own.write.array]
        first, every, used = news = [New(own, one) for one in terms.values()]
        begun, added, read = (one.element(self.names[0], self.loops) for one in news)
        target, outside = used.moved(own.write), [*map(used.copied, self.outside)]
        inside = _added(every.read(added), map(every.copied, self.inside))
        whole = _added(used.read(target), [*outside, used.read(read)])
        made = (
            (first.statement(begun, literal(0.0, kind)), 0),
            (every.statement(added, inside), 1),
            (used.statement(target, whole), PLACES - 1),
        )
        timed = [
            replace(
                later(replace(one, schedule=times[one.name]), 2 * at, 0, place),
                text=f"{one.write.text}: of {own.text}",
                reordered=True,
            )
            for one, place in made
        ]
        statements = (timed if one is own else [later(one, 2 * at, 0)] for one in scop.statements)
        return replace(
            scop,
            arrays=(*scop.arrays, local_array(begun, kind)),
            statements=tuple(chain(*statements)),
        )


def _added(before: Expression, parts: Iterable[Expression]) -> Expression:
    return Binary("+", before, product_of([*parts]))


def _cuts(scop: Scop, statement: Statement) -> list[_Cut]:
    """Return the ways to take factors out that leave fewer operations, the fewest first."""
    found, kind = reduced(scop, statement), scop.types[statement.write.array]
    if found is None or found[1] != "+" or kind_of(found[2], scop, statement) is not kind:
        return []
    parts = [(one, moved_by(statement, one)) for one in factors(found[2])]
    own = {name for one in output_affs(statement.write.relation) for name in involved_dims(one)}
    summed = [one for one in statement.loops if one not in own]
    cuts = []
    for over in chain(*(combinations(summed, count) for count in range(1, len(summed) + 1))):
        inside = [one for one in parts if not one[1].isdisjoint(over)]
        outside = tuple(one for one, moved in parts if moved.isdisjoint(over))
        moving = frozenset[str]().union(*(moved for _, moved in inside)).difference(over)
        fewer = len(moving) + len(over) < len(statement.loops)
        apart = len(over) < len(summed) and not _is_product(parts, own)
        if inside and outside and (fewer or (apart and _is_product(inside, moving))):
            cut = _Cut(
                scop=scop,
                statement=statement,
                outside=outside,
                inside=tuple(one for one, _ in inside),
                loops=tuple(one for one in statement.loops if one in moving),
                summed=over,
            )
            cuts.append(cut)
    last = statement.loops.index
    return sorted(cuts, key=lambda one: (len(one.loops), -len(one.summed), -last(one.summed[-1])))


def _is_product(parts: Sequence[_Factor], loops: Collection[str]) -> bool:
    """Tell whether factors are those of a product of matrices: in two groups by what moves them."""
    return any(
        all(not moved.issuperset(two) for _, moved in parts) for two in combinations(loops, 2)
    )


def _computes_the_same(before: Scop, after: Scop, cut: _Cut) -> bool:
    """Tell whether a region with sums inside computes what it did, from the values that it read.

    What uses a sum wants all terms that are in it, and each sum is of all of its terms, one after
    the other; operands have the values that they had, and elements are written in the same order.
    """
    own, terms, (array, _, every) = cut.statement, cut.terms, cut.names
    times, back = terms[own.name].apply_range(own.schedule), own.schedule.reverse()
    begins, ends = (one.apply_range(back) for one in (times.lexmin(), times.lexmax()))
    sources = sources_of(before, after, {own.name: ends})

    def repeats(statement: Statement, access: Access) -> list[tuple[isl.Map, Statement]]:
        if statement.name not in terms:
            return [(statement.domain.identity(), statement)]
        is_target = access.relation.is_equal(statement.write.relation)
        return [(begins if is_target else terms[statement.name], own)]

    found = readers_of(after, array, after.statement(every))
    return (
        found is not None
        and found[own.name].is_equal(terms[own.name].apply_range(terms[every].reverse()))
        and keeps_writes(before, after, sources)
        and keeps_reads(before, after, sources, repeats)
    )

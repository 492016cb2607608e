"""Sums in scalars as a user would write them without: each adds up where its value goes."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from eatss.frozen import frozen
from eatss.polyhedral.expansion import expanded_arrays, with_expanded_scalars
from eatss.scops import Access, Read, Scop, Statement


@frozen
class SumInPlace:
    """A scalar that a sum adds up in, and the reference that can take its place.

    ``statements`` are those that use these values of it. ``reference`` is the text of an element
    of an array that the value is only copied to, ``None`` where there is none: then the scalar
    needs an array of its own, with an element for each iteration of ``loops``.
    """

    scalar: str
    statements: tuple[str, ...]
    loops: tuple[str, ...]
    reference: str | None


def with_sums_in_place(scop: Scop) -> tuple[Scop, tuple[SumInPlace, ...]]:
    """Return a region whose sums add up in arrays instead of local scalars, and which those are.

    The region itself where no scalar has a sum whose values stay in iterations of some loops.
    """
    expanded = with_expanded_scalars(scop)
    if expanded is scop:
        return scop, ()
    found = []
    own = {one.name for one in scop.arrays}
    changed = replace(expanded, context=scop.context)  # PPCG does not know that sums have terms
    for name in expanded_arrays(scop, expanded):
        last = _copied_to(changed, name)
        array = expanded.array(name)
        using = [s for s in expanded.statements if _uses(s, name)]
        reference = None
        if last is not None:
            reference = last.write.text
            changed = _in_the_place_of(changed, name, last)
        scalar = name if name in own else array.source_name
        found.append(
            SumInPlace(
                scalar=scalar,
                statements=tuple(s.name for s in using),
                loops=using[0].loops[: array.n_dims],
                reference=reference,
            )
        )
    return changed, tuple(found)


def _uses(statement: Statement, name: str) -> bool:
    return any(access.array == name for access in statement.accesses)


def _copied_to(scop: Scop, name: str) -> Statement | None:
    """Return the statement that copies the sum to an array that nothing else uses, if there is."""
    readers = [s for s in scop.statements if any(read.array == name for read in s.reads)]
    last = [s for s in readers if s.write.array != name]
    if len(last) != 1 or not isinstance(last[0].value, Read):
        return None
    (copy,) = last
    others = [s for s in scop.statements if s is not copy and _uses(s, copy.write.array)]
    same_type = scop.array(name).element_type is scop.array(copy.write.array).element_type
    place = copy.reads[0].relation.reverse().apply_range(copy.write.relation)
    fits = place.is_single_valued() and place.is_injective() and not others and same_type
    return copy if fits and scop.array(name).extent.is_subset(place.domain()) else None


def _in_the_place_of(scop: Scop, name: str, copy: Statement) -> Scop:
    """Return the region with the elements that ``copy`` writes instead of those of an array."""
    place = copy.reads[0].relation.reverse().apply_range(copy.write.relation)
    return replace(
        scop,
        statements=tuple(
            replace(s, accesses=tuple(_moved(a, name, copy.write, place) for a in s.accesses))
            for s in scop.statements
            if s is not copy
        ),
        arrays=tuple(array for array in scop.arrays if array.name != name),
    )


def _moved(access: Access, name: str, to: Access, place: isl.Map) -> Access:
    if access.array != name:
        return access
    relation = access.relation.apply_range(place)
    return replace(access, array=to.array, text=to.text, relation=relation)

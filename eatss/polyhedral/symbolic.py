"""Sizes that are numbers in the source become parameters while the region is scheduled.

With ``N`` a macro for 4000 the scheduler would see 4000 itself: its integer programs grow with such
numbers (minutes instead of milliseconds), and it might exploit that two unrelated sizes are
equal. What holds for every size holds for the one in the source, so the region is generalised,
scheduled, and the sizes are put back.

Which constants are one size follows from the source where one macro spells them all, else
from the arrays: a loop and the dimensions it subscripts share their sizes, as do loops
bounded by one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import islpy as isl
from networkx.utils import UnionFind  # type: ignore[import-untyped]

from eatss.polyhedral.accesses import first_equal
from eatss.polyhedral.isl_names import (
    Bound,
    affine_form,
    basic_parts,
    bounds_of,
    coalesced,
    fix_parameters,
    node_kind,
    output_affs,
    rebuild_with_sizes,
    with_parameters,
)
from eatss.polyhedral.nodes import (
    alone,
    branches,
    children,
    functions,
    marked_like,
    with_parts,
)
from eatss.polyhedral.program import Dependences
from eatss.polyhedral.scops import Access, Scop, Statement

_LARGE = 16  # smaller constants are offsets (A[i - 1]) unless they bound a loop from above
_NEAR = 16  # constants this near to a size are that size and an offset (N - 2)

_Place = tuple[str, str]  # (statement, loop) or (array, dimension)


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A region with its numeric sizes as parameters, and the numbers they stand for."""

    scop: Scop
    values: tuple[tuple[str, int], ...]


def generalise(scop: Scop) -> Symbolic:
    """Replace the numeric sizes of ``scop`` by parameters."""
    sizes = _Sizes(scop)
    if not sizes.names:
        return Symbolic(scop=scop, values=())
    parameters = tuple(sizes.names)
    statements = tuple(_statement(s, sizes, parameters) for s in scop.statements)
    symbolic = replace(
        scop,
        parameters=scop.parameters + parameters,
        context=with_parameters(scop.context, parameters),
        statements=statements,
    )
    return Symbolic(scop=symbolic, values=tuple(sizes.names.items()))


class _Sizes:
    """Finds the sizes: classes of loops and array dimensions, and the constants in each."""

    def __init__(self, scop: Scop) -> None:
        self._classes = _classes(scop)
        self._clusters: dict[int, list[tuple[int, str]]] = {}
        self.names: dict[str, int] = {}
        taken = {*scop.parameters, *(array.name for array in scop.arrays)}
        fresh = (name for k in count() if (name := f"size{k}") not in taken)
        macros = [pair for pair in _macros_that_help_fusion(scop) if pair[0] not in taken]
        constants = self._constants(scop)
        spelled = {v: _spelled(v, macros) for values in constants.values() for v in values}
        for place in sorted(constants):
            self._clusters[place] = []
            for value in sorted(constants[place], reverse=True):
                if not self._near(place, value):
                    macro = spelled[value]
                    # the largest number of a macro leaves its bounds without an offset
                    size = max(v for v in spelled if v == value or (macro and spelled[v] == macro))
                    name = macro or next(fresh)
                    self.names[name] = size
                    self._clusters[place].append((size, name))

    def _constants(self, scop: Scop) -> dict[int, set[int]]:
        """Return the constants of the domains' constraints that are sizes, by class."""
        constants: dict[int, set[int]] = {}
        for statement in scop.statements:
            for bound in _bounds(statement.domain):
                place = self._class_of(statement, None, bound)
                if place is not None and _is_size(bound):
                    constants.setdefault(place, set()).add(abs(bound.constant))
        return constants

    def _class_of(self, statement: Statement, access: Access | None, bound: Bound) -> int | None:
        places = {self._classes.get((statement.name, dim)) for dim, _ in bound.inputs}
        if access is not None:
            places |= {self._classes.get((access.array, dim)) for dim, _ in bound.outputs}
        return next(iter(places)) if len(places) == 1 else None

    def _near(self, place: int, value: int) -> tuple[int, str] | None:
        for size, name in self._clusters.get(place, ()):
            if size == value or (value >= _LARGE and abs(size - value) <= _NEAR):
                return size, name
        return None

    def size_in(
        self, statement: Statement, access: Access | None, bound: Bound
    ) -> tuple[str, int] | None:
        """Return the size in the constant of a constraint, as parameter and value."""
        place = self._class_of(statement, access, bound)
        if place is None or not (_is_size(bound) or abs(bound.constant) >= _LARGE):
            return None
        found = self._near(place, abs(bound.constant))
        return None if found is None else (found[1], found[0])


def _macros_that_help_fusion(scop: Scop) -> tuple[tuple[str, int], ...]:
    """Return the macros worth knowing: all, unless every statement is in equally many loops.

    That two dimensions of an array are one size lets isl fuse a loop over one with a
    loop over the other, as between statements of different depth. Elsewhere it only makes the
    scheduler's integer programs harder (heat-3d: 0.06 s with a size for each dimension,
    0.8 s with one for all three).
    """
    depths = {len(statement.loops) for statement in scop.statements}
    return scop.size_macros if len(depths) > 1 else ()


def _spelled(value: int, macros: Sequence[tuple[str, int]]) -> str | None:
    """Return the macro that spells a constant, if there is one only with a number near it."""
    if value < _LARGE:
        return None
    near = [name for name, size in macros if 0 <= size - value <= _NEAR]
    return near[0] if len(near) == 1 else None


def _is_size(bound: Bound) -> bool:
    """Tell whether a constraint is ``loop <= constant`` or has a large constant."""
    upper = not bound.equality and not bound.outputs and bound.constant >= 1
    above = upper and len(bound.inputs) == 1 and bound.inputs[0][1] == -1
    return above or abs(bound.constant) >= _LARGE


def _bounds(domain: isl.Set) -> Iterator[Bound]:
    for part in basic_parts(domain):
        yield from bounds_of(part)


def _classes(scop: Scop) -> dict[_Place, int]:
    """Number the classes of loops and array dimensions that share their sizes."""
    tied = UnionFind()
    for statement in scop.statements:
        for loop in statement.loops:
            tied.union((statement.name, loop))
        _tie_shared_loops(tied, statement)
        for bound in _bounds(statement.domain):
            tied.union(*((statement.name, dim) for dim, _ in bound.inputs))
        for access in (statement.accesses[k] for k in sorted(set(first_equal(statement.accesses)))):
            for k, function in enumerate(output_affs(access.relation)):
                form = affine_form(function)
                for loop, _ in form.coefficients if form else ():
                    tied.union((access.array, f"d{k}"), (statement.name, loop))
    classes = sorted(tied.to_sets(), key=min)
    return {place: number for number, places in enumerate(classes) for place in places}


def _tie_shared_loops(tied: Any, statement: Statement) -> None:
    """Tie the loops of a statement to the textual loops they are, which others may share."""
    place = ""
    for function in output_affs(statement.schedule):
        form = affine_form(function)
        if form is not None and not form.coefficients:
            place += f".{form.constant}"
        elif form is not None:
            place += ".*"
            for loop, _ in form.coefficients:
                tied.union(("", place), (statement.name, loop))


def _statement(statement: Statement, sizes: _Sizes, parameters: tuple[str, ...]) -> Statement:
    domain = rebuild_with_sizes(
        statement.domain, parameters, lambda bound: sizes.size_in(statement, None, bound)
    )
    firsts = first_equal(statement.accesses)
    relations = {
        k: _relation(statement, statement.accesses[k], sizes, parameters, domain)
        for k in sorted(set(firsts))
    }
    accesses = tuple(
        replace(access, relation=relations[first])
        for access, first in zip(statement.accesses, firsts, strict=True)
    )
    schedule = with_parameters(statement.schedule, parameters)
    free = isl.Map.from_multi_aff(
        isl.PwMultiAff.from_map(schedule).gist(schedule.domain()).as_multi_aff()
    )
    return replace(
        statement,
        domain=domain,
        accesses=accesses,
        schedule=free.intersect_domain(domain),
        recomputed=tuple(
            replace(access, relation=_relation(statement, access, sizes, parameters, domain))
            for access in statement.recomputed
        ),
    )


def _relation(
    statement: Statement,
    access: Access,
    sizes: _Sizes,
    parameters: tuple[str, ...],
    domain: isl.Set,
) -> isl.Map:
    """Return the access of the generalised statement."""
    function = isl.PwMultiAff.from_map(access.relation).gist(statement.domain)
    relation = rebuild_with_sizes(
        isl.Map.from_pw_multi_aff(function),
        parameters,
        lambda bound: sizes.size_in(statement, access, bound),
    )
    return relation.intersect_domain(domain)


_Values = Sequence[tuple[str, int]]


def instantiate_dependences(dependences: Dependences, values: _Values) -> Dependences:
    """Give the parameters of ``dependences`` their values."""
    if not values:
        return dependences
    return dependences.each(lambda relation: coalesced(fix_parameters(relation, values)))


def instantiate_schedule(schedule: isl.Schedule, scop: Scop, values: _Values) -> isl.Schedule:
    """Give the parameters of ``schedule`` their values; ``scop`` is the region it is for."""
    if not values:
        return schedule
    target = isl.Schedule.from_domain(scop.domain).get_root().get_child(0)
    return _copy(schedule.get_root().get_child(0), target, values).get_schedule()


def _copy(source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values) -> isl.ScheduleNode:
    """Insert the subtree at ``source`` at the leaf ``target``; return the node inserted."""
    kind = node_kind(source)
    if kind == "leaf":
        return target
    if kind == "band":
        target = _copy_band(source, target, values)
        return _copy(source.get_child(0), target.get_child(0), values).parent()
    below = branches(source)
    filters = (child.filter_get_filter() for child in children(source))
    return with_parts(
        target,
        [fix_parameters(one.identity(), values).domain() for one in filters],
        lambda at, leaf: _copy(below[at], leaf, values),
        in_order=kind == "sequence",
    )


def _copy_band(
    source: isl.ScheduleNode, target: isl.ScheduleNode, values: _Values
) -> isl.ScheduleNode:
    fixed: isl.MultiUnionPwAff | None = None
    for function in functions(source):
        relation = isl.UnionMap.from_union_pw_aff(function)
        member = isl.UnionPwMultiAff.from_union_map(fix_parameters(relation, values))
        single = alone(member.get_union_pw_aff(0))
        fixed = single if fixed is None else fixed.flat_range_product(single)
    if fixed is None:
        return target
    return marked_like(target.insert_partial_schedule(fixed), source)

"""Scalars that keep loops from being shared: readers take values from elsewhere, or they expand.

A scalar may carry a value within one iteration only; readers take it from elsewhere:

    for (j …) { e = exp(S[i][j] - m); O[i][j] = e; z += e; }
    for (j …) { d = S[i][j] - m; v += d * d; }

What joins two statements by a scalar of each thread has to stay in one thread, a sum among it. A
value that is stored anyway is read from where it is stored: ``O[i][j] = exp(S[i][j] - m);
z += O[i][j];``. Any other is computed where it is read, ``v += (S[i][j] - m) * (S[i][j] - m);``,
once by each statement that reads it.

Of other scalars each iteration that has a value in one gets an element of its own.

``double acc = 0; for (l …) acc += …; C[i][j] = acc;`` adds up in one scalar, whose reuse keeps isl
from tiling ``l`` together with ``i`` and ``j``. By live ranges no value leaves its iteration of
``i`` and ``j``, so ``acc`` may as well be ``acc[i][j]`` [Verdoolaege and Cohen, *Live-range
reordering*]: the same program as one that adds up in ``C[i][j]``. Nor have the statements of a row
that a scalar joins (its maximum, its sum) to stay in the same loop then. In generated code the
elements are registers where one kernel uses them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from eatss.base.classes import Classes
from eatss.base.frozen import Names, frozen, their_names
from eatss.base.memo import remembered
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import (
    dependent_accesses,
    first_equal,
    flow_of,
    tag_accesses,
    with_accesses,
)
from eatss.polyhedral.expression import Array, Call, Read, preorder
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    equal_leading_dims,
    maps_of,
    universes,
    with_inputs_in_front,
)
from eatss.polyhedral.recomputed_producers import with_values_anew
from eatss.polyhedral.scop import Access, Place, Scop, Statement


@frozen
class LiveRange:
    """Accesses of a scalar or an array that values join.

    ``places`` are the statements and, of accesses spelled alike, the first. ``flow`` maps the
    instances that write to those that read. ``depth`` is how many outer loops tell the iterations
    apart that values stay in (0: none, or a value is from before the region), ``deepest`` how many
    loops are around the innermost of the statements.
    """

    array: Array
    places: frozenset[Place]
    flow: isl.UnionMap
    depth: int
    deepest: int


def live_ranges(scop: Scop, arrays: Collection[Array]) -> Iterator[LiveRange]:
    """Yield the live ranges of some scalars or arrays."""
    if not arrays:
        return
    accesses = tag_accesses(scop)
    places = {f"__ref{item.number}": item.place for item in dependent_accesses(scop)}
    own = universes(scop.no_points, (one.extent for one in arrays))
    flow = flow_of(
        accesses.reads.intersect_range(own),
        accesses.schedule,
        must=accesses.writes.intersect_range(own),
    )
    from_before = {places[_tag(one.domain())] for one in maps_of(flow.get_may_no_source())}
    values = [
        (places[_tag(one.domain())], places[_tag(one.range())], one.factor_domain())
        for one in maps_of(flow.get_may_dependence())
    ]
    joined = Classes[tuple[str, int]]()
    for written, read, _ in values:
        joined.join(written, read)
    for group in joined.sets():
        inside = scop.no_relation
        for written, _, relation in values:
            if written in group:
                inside = inside.union(relation)
        loops = [len(scop.statement(name).loops) for name, _ in group]
        yield LiveRange(
            array=scop.array(scop.access(next(iter(group))).array),
            places=frozenset(group),
            flow=inside,
            depth=_depth(inside, min(loops)) if group.isdisjoint(from_before) else 0,
            deepest=max(loops),
        )


def _tag(tagged: isl.Set) -> str:
    """Return the name of the access in ``[S[i] -> __ref3[]]``."""
    return str(tagged.unwrap().get_tuple_name(OUT))


def _depth(values: isl.UnionMap, most: int) -> int:
    """Return how many outer loops, up to ``most``, have one value where one is written and read."""
    same = (k for k in range(most, 0, -1) if values.is_subset(equal_leading_dims(values, k)))
    return next(same, 0)


def with_expanded_scalars(scop: Scop) -> Scop:
    """Return a region in which scalars have an element for each iteration that values stay in.

    The region itself where there is nothing to expand. Expanded are scalars that are dead after
    the region and live through a loop inside such an iteration, with what else they hold; where
    values of one scalar have nothing to do with each other, each gets an array. The context says
    that a loop that adds up runs: without it, isl could not put what comes before the sum and after
    it into one band.
    """
    known = [*live_ranges(scop, _scalars(scop))]
    scalars = {one.array.name for one in known if _expands(scop, one)}
    ranges = [one for one in known if one.array.name in scalars and _may_expand(scop, one)]
    if not ranges:
        return scop
    expanded, names = with_elements(scop, [(one, range(one.depth)) for one in ranges])
    context = expanded.context
    for name in names:
        context = context.intersect(_with_terms(scop, name, expanded.statements))
    return replace(expanded, context=context)


def with_elements(
    scop: Scop, ranges: Sequence[tuple[LiveRange, Collection[int]]]
) -> tuple[Scop, Names]:
    """Return a region in which live ranges have elements for each iteration of loops, by number.

    And the arrays that have them, one for each range: that of the source where nothing else is
    in it, nor sees it.
    """
    left = _places(scop).difference(*(one.places for one, _ in ranges))
    used = {scop.access(place).array for place in left}
    used |= {one.name for one in scop.arrays if not scop.is_dead_after(one)}
    taken = scop.names
    arrays = {one.name: one for one in scop.arrays}
    named = dict[str, tuple[LiveRange, Collection[int]]]()
    for values, loops in ranges:
        name = values.array.name
        own = free_name(name, taken) if name in used or name in named else name
        named[own] = values, loops
    statements = scop.statements
    for name, (values, loops) in named.items():
        statements = tuple(_expanded(one, values.places, loops, name) for one in statements)
    for name, (values, loops) in named.items():
        arrays[name] = _array(values.array, len(loops), name, statements)
    return replace(scop, arrays=tuple(arrays.values()), statements=statements), tuple(named)


def _scalars(scop: Scop) -> list[Array]:
    """Return the scalars that are dead after the region."""
    return [one for one in scop.arrays if not one.n_dims and scop.is_dead_after(one)]


def expanded_arrays(before: Scop, after: Scop) -> Names:
    """Return the arrays of one region that are scalars in the other, or part of one."""
    n_dims = {array.name: array.n_dims for array in before.arrays}
    return tuple(
        a.name for a in after.arrays if a.n_dims and not a.copy_of and not n_dims.get(a.name)
    )


def _expands(scop: Scop, values: LiveRange) -> bool:
    """Tell whether there is a loop inside the iterations that values stay in."""
    return values.depth < values.deepest and _may_expand(scop, values)


def _may_expand(scop: Scop, values: LiveRange) -> bool:
    return values.depth > 0 and all(
        counts_up_from_zero(scop, values, loop) for loop in range(values.depth)
    )


def counts_up_from_zero(scop: Scop, values: LiveRange, loop: int) -> bool:
    """Tell whether a counter, by number, is never negative: it may become a subscript."""
    return all(
        scop.statement(name).domain.dim_min_val(loop).is_nonneg() for name, _ in values.places
    )


def _places(scop: Scop) -> frozenset[Place]:
    """Return all accesses, of those spelled alike the first."""
    return frozenset((one.name, at) for one in scop.statements for at in first_equal(one.accesses))


def _expanded(
    statement: Statement, places: Collection[Place], loops: Collection[int], name: str
) -> Statement:
    """Return a statement with elements of the array ``name`` in the places of a live range."""

    def expanded(access: Access) -> Access:
        relation = with_inputs_in_front(access.relation, loops).set_tuple_name(OUT, name)
        text = access.text
        if access.relation.dim(OUT):
            counters = "".join(f"[{statement.loops[loop]}]" for loop in loops)
            text = name + counters + text[text.find("[") :]
        relation = relation.intersect_domain(statement.domain)
        return replace(access, array=name, relation=relation, text=text)

    return with_accesses(statement, places, expanded)


def _array(of: Array, n_loops: int, name: str, statements: Sequence[Statement]) -> Array:
    """Return the array of the elements that statements name."""
    accesses = (access for statement in statements for access in statement.accesses)
    touched = (access.relation.range() for access in accesses if access.array == name)
    extent = reduce(isl.Set.union, touched)
    return replace(
        of,
        name=name,
        extent=extent.coalesce(),
        n_dims=of.n_dims + n_loops,
        is_local=True,
        origin="local",
        source_name=of.source_name if name == of.name or not of.n_dims else name,
        declared=None,
    )


def _with_terms(scop: Scop, name: str, statements: Sequence[Statement]) -> isl.Set:
    """Return the sizes for which a sum has terms wherever it is begun."""
    known = isl.Set.universe(scop.context.get_space())
    own = [one for one in statements if one.uses(name)]
    for update in own:
        if update.write.array == name and update.reads_from(name):
            terms = update.domain.params()
            for other in own:
                known = known.intersect(terms.gist(other.domain.params()))
    return known.coalesce()


@remembered
def with_private_scalars(scop: Scop) -> tuple[Scop, ...]:
    """Return a region with scalars forwarded and expanded, none where none can be.

    A second one calls functions again for each reader of a value, where the first does not.
    """
    found: dict[int, Scop] = {}
    for again in (False, True) if any(map(calls, scop.statements)) else (False,):
        forwarded = _with_forwarded_scalars(scop, again=again)
        changed = with_expanded_scalars(forwarded)
        if changed is not scop:
            found.setdefault(len(changed.statements), changed)
    return tuple(found.values())


@remembered
def without_scalars(scop: Scop) -> Scop:
    """Return a region in which all scalars are forwarded that can be, not only those of sums."""
    return with_expanded_scalars(_with_forwarded_scalars(scop, again=True, every=True))


def _with_forwarded_scalars(scop: Scop, *, again: bool, every: bool = False) -> Scop:
    """Return a region whose sums read no scalars that carry a value within one iteration.

    The region itself where they read none. ``again`` says whether functions may be called by each
    of several readers, ``every`` whether other statements are not to read any either.
    """
    found, changed = scop, _forwarded(scop, again, every)
    while changed is not None:
        found, changed = changed, _forwarded(changed, again, every)
    if found is scop:
        return scop
    used = found.used_arrays
    arrays = tuple(one for one in found.arrays if one.n_dims or one.name in used)
    return replace(found, arrays=arrays, written=scop.written or scop)


def _forwarded(scop: Scop, again: bool, every: bool) -> Scop | None:
    """Return the region with the last such scalar gone, ``None`` if there is none."""
    if not every and not any(map(_adds_up, scop.statements)):
        return None
    for values in reversed([*live_ranges(scop, _scalars(scop))]):
        writer = _writer(scop, values)
        readers = _readers(values)
        wanted = every or any(_adds_up(scop.statement(name)) for name in readers)
        if writer is None or not wanted:
            continue
        found = _stored(scop, values, writer)
        if found is None and (again or len(readers) == 1 or not calls(writer)):
            found = with_values_anew(scop, _reads(values))
        if found is not None:
            return found
    return None


def _adds_up(statement: Statement) -> bool:
    return statement.reads_from(statement.write.array)


def _writer(scop: Scop, values: LiveRange) -> Statement | None:
    """Return the one statement that gives a scalar the values, which stay in its iteration."""
    names = {name for name, at in values.places if not at}
    if len(names) != 1 or names <= _readers(values):
        return None
    writer = scop.statement(names.pop())
    return writer if values.depth == len(writer.loops) else None


def _reads(values: LiveRange) -> list[Place]:
    return sorted((name, at) for name, at in values.places if at)


def _readers(values: LiveRange) -> set[str]:
    return {name for name, _ in _reads(values)}


def calls(statement: Statement) -> bool:
    """Tell whether a statement calls functions."""
    return any(isinstance(node, Call) for node in preorder(statement.value))


def _stored(scop: Scop, values: LiveRange, writer: Statement) -> Scop | None:
    """Return the region with a value written to where it is stored, ``None`` if it is not.

    The statement that stores it goes. In between nothing reads or writes that array, and up to the
    last reader of the value nothing writes it.
    """
    names = their_names(scop.statements)
    first, last = names.index(writer.name), max(names.index(name) for name in _readers(values))
    for name, at in _reads(values):
        storing = scop.statement(name)
        array = scop.array(storing.write.array)
        place = names.index(name)
        between = scop.statements[first + 1 : place]
        after = scop.statements[place + 1 : last + 1]
        if (
            storing.value == Read(at)
            and array.n_dims
            and array.element_type is values.array.element_type
            and storing.domain.set_tuple_name(writer.name).is_equal(writer.domain)
            and not any(other.uses(array.name) for other in between)
            and not any(other.write.array == array.name for other in after)
        ):
            return _written_there(scop, values, writer, storing)
    return None


def _written_there(scop: Scop, values: LiveRange, writer: Statement, storing: Statement) -> Scop:
    """Return the region in which the writer stores its value where another statement did."""
    write = replace(
        storing.write,
        relation=storing.write.relation.set_tuple_name(IN, writer.name),
    )
    changed = {writer.name: replace(writer, accesses=(write, *writer.reads))}
    for name in _readers(values) - {storing.name}:
        reader = scop.statement(name)
        changed[name] = _reading(reader, values, write)
    return replace(
        scop,
        statements=tuple(
            changed.get(one.name, one) for one in scop.statements if one is not storing
        ),
    )


def _reading(reader: Statement, values: LiveRange, write: Access) -> Statement:
    """Return a reader that gets the value from where it is written to."""
    instances = values.flow.intersect_range(reader.domain).reverse()
    (relation,) = maps_of(instances.apply_range(write.relation))
    return with_accesses(
        reader,
        values.places,
        lambda access: replace(access, array=write.array, relation=relation, text=write.text),
    )

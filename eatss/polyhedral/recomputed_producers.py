"""Producers are computed anew where they are read: a pass over memory less.

``for (i …) T[i] = f(A[i]);`` and then ``for (i …) B[i] = T[i + 1] - T[i];`` become
``for (i …) B[i] = f(A[i + 1]) - f(A[i]);``, known as forward substitution or inlining of producers
[Halide, *compute inline*]. An array that is dead after the region and that nobody reads any more
goes away; one that others see is still stored by its own statement, which then depends on nothing
that the region computes.

Every operation stays what it is, operands, order and rounding. What is computed twice is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import Names, distinct, frozen
from eatss.base.memo import remembered
from eatss.polyhedral.dependences import (
    at_most,
    first_equal,
    flow_by_read,
    flow_of,
    tag_accesses,
)
from eatss.polyhedral.expression import (
    Expression,
    Read,
    mapped,
    operands,
    pulled_back,
    reads_in,
)
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    AffineForm,
    affine_form,
    affine_text,
    coalesced,
    maps_of,
    output_affs,
    with_names,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Access, Place, Scop, Statement

_OPERATIONS = 500_000
"""isl operations to find out what an array is computed from."""

_MAX_NODES = 512
"""Nodes of a value as it is printed: chains of stencils must not grow without end."""

_MAX_DEPTH = 128
"""Nodes above each other in a value: a sum of so many terms nests as deeply."""

_MAX_READS = 64
"""Different elements that a statement reads then."""

Flow: TypeAlias = Mapping[Place, isl.UnionMap]
"""For each access the instances that its values are from, as maps to those that read them."""


@frozen
class Source:
    """The one statement that a read gets its values from, and which instance of it.

    ``instance`` maps the reader's instances to the producer's, and so does ``relation``.
    """

    producer: Statement
    instance: isl.MultiAff
    relation: isl.Map

    def elements(self, operand: Access) -> isl.Map:
        """Return the elements of an operand of the producer by the instances of the reader."""
        return self.relation.apply_range(operand.relation)


def recomputable_arrays(scop: Scop) -> Names:
    """Return the arrays whose readers may compute the elements anew, in the order of their writers.

    Those before one in the result are computed anew where it is tried.
    """
    found, region = [], scop
    for name in _written_arrays(scop):
        changed = _without(region, name)
        if changed is not None:
            region = changed
            found.append(name)
    return tuple(found)


@remembered
def with_recomputed_producers(scop: Scop, arrays: Names) -> Scop | None:
    """Return a region in which the readers of some arrays compute the elements anew.

    ``None`` where that is not proven to give the same values. ``written`` of the result is the
    region as it was.
    """
    region = scop
    for name in (one for one in _written_arrays(scop) if one in arrays):
        changed = _without(region, name)
        if changed is None:
            return None
        region = changed
    return replace(_without_dead(region, arrays), written=scop.written or scop)


def with_values_anew(scop: Scop, places: Collection[Place]) -> Scop | None:
    """Return a region in which some reads of a scalar are computed anew.

    ``None`` where that is not proven to give the same values. What nobody reads then goes.
    """
    found = _anew(scop, sorted(places))
    scalars = {scop.access(place).array for place in places}
    return None if found is None else _without_dead(found, scalars)


def recomputed_arrays(scop: Scop) -> Names:
    """Return the arrays whose readers compute the elements anew."""
    return distinct(one.array for own in scop.statements for one in own.recomputed)


def keeps_loops(before: ScheduledScop, after: ScheduledScop) -> bool:
    """Tell whether each statement has as many parallel loops then, and no other loop on the host.

    In ``A[i] = A[i] + A[i + 1]`` instances are in order that are not with a copy of ``A`` before.
    """
    then = after.kernel_of
    return all(
        len(then[name].parallel_loops) >= len(kernel.parallel_loops)
        and {*then[name].host_loops} <= {*kernel.host_loops}
        for name, kernel in before.kernel_of.items()
        if name in then
    )


def _written_arrays(scop: Scop) -> Names:
    """Return the arrays that are written, in the order of their first writers."""
    named = dict.fromkeys(statement.write.array for statement in scop.statements)
    return tuple(name for name in named if scop.array(name).n_dims)


@remembered
def _without(scop: Scop, name: str) -> Scop | None:
    """Return a region with all reads of an array replaced, ``None`` if that is not proven.

    The statements that write the array stay.
    """
    places = [
        (one.name, first)
        for one in scop.statements
        for first in sorted({*first_equal(one.accesses)} - {0})
        if one.accesses[first].array == name
    ]
    writers = {one.name for one in scop.statements if one.write.array == name}
    if not places or any(reader in writers for reader, _ in places):
        return None  # nobody reads it, or it is added to
    return _anew(scop, places)


def _anew(scop: Scop, places: Sequence[Place]) -> Scop | None:
    """Return a region with some reads replaced, ``None`` if that is not proven."""
    with suppress(isl.Error), at_most(scop.isl_context, _OPERATIONS):
        return _substituted(scop, places)
    return None


def _substituted(scop: Scop, places: Sequence[Place]) -> Scop | None:
    flow, sources = flow_to_reads(scop), {}
    for place in places:
        source = source_of(scop, place)
        if source is None:
            return None
        sources[place] = source
    statements, reads = [], {}
    for statement in scop.statements:
        own = {at: one for (reader, at), one in sources.items() if reader == statement.name}
        anew = reading_anew(statement, own) if own else (statement, {})
        if anew is None:
            return None
        statements.append(anew[0])
        reads[statement.name] = anew[1]
    found = replace(scop, statements=tuple(statements))
    after = flow_to_reads(found)
    for (name, at), source in sources.items():
        here = source.relation.reverse().to_union_map()
        for operand, read in reads[name][at].items():
            # the same value: from the same instance, or both from before the region
            expected = flow[source.producer.name, operand].apply_range(here)
            if not after[name, read].is_equal(expected):
                return None
    return found


# -- where values come from -------------------------------------------------------------


@remembered
def flow_to_reads(scop: Scop) -> Flow:
    """Return for each read the instances that its values are from; reads spelled alike share one.

    Values of arrays that nothing writes are from nowhere.
    """
    accesses = tag_accesses(scop)
    tagged = flow_of(accesses.reads, accesses.schedule, must=accesses.writes).get_may_dependence()
    known = flow_by_read(scop, tagged)
    empty = scop.no_relation
    return {
        (statement.name, position): known.get((statement.name, first), empty)
        for statement in scop.statements
        for position, first in enumerate(first_equal(statement.accesses))
    }


def source_of(scop: Scop, place: Place) -> Source | None:
    """Return where all values of a read are from, ``None`` unless one statement has them all.

    The instance is an affine function of the reader's counters. No two instances have one: each
    element is computed anew once for each read.
    """
    reader = scop.statement(place[0])
    found = maps_of(flow_to_reads(scop)[place])
    if len(found) != 1:
        return None
    back = coalesced(found[0].reverse())
    whole = back.is_single_valued() and reader.domain.is_subset(back.domain())
    if not (whole and back.is_injective()):
        return None
    function = isl.PwMultiAff.from_map(back).gist(reader.domain).coalesce()
    if function.n_piece() != 1:
        return None
    producer = scop.statement(back.get_tuple_name(OUT))
    instance = function.as_multi_aff()
    if any(affine_form(instance.get_at(k).to_pw_aff()) is None for k in range(len(producer.loops))):
        return None
    relation = isl.Map.from_multi_aff(instance).intersect_domain(reader.domain)
    return Source(producer=producer, instance=instance, relation=relation)


# -- expressions --------------------------------------------------------------------------


def reading_anew(
    statement: Statement, sources: Mapping[int, Source]
) -> tuple[Statement, Mapping[int, Mapping[int, int]]] | None:
    """Return a statement that computes what it reads anew.

    And for each read that is replaced the reads that the producer's operands become, by number.
    ``None`` if that is too much, or has subscripts that C would not have.
    """
    values = (statement.value, *(source.producer.value for source in sources.values()))
    if any(map(_is_large, values)):
        return None
    firsts = first_equal(statement.accesses)
    kept = [k for k, first in enumerate(firsts) if first not in sources]
    accesses = [statement.accesses[k] for k in kept]
    read = dict.fromkeys(firsts[number] for number in reads_in(statement.value))
    reads = _operands_read(statement, {at: sources[at] for at in read if at in sources}, accesses)
    if reads is None:
        return None
    new = {old: position for position, old in enumerate(kept)}
    produced = {
        at: pulled_back(sources[at].producer.value, sources[at].instance, own)
        for at, own in reads.items()
    }

    def own(node: Expression) -> Expression:
        """Return a part of the value: what is produced is one object each time."""
        if not isinstance(node, Read):
            return node
        at = firsts[node.access]
        return produced[at] if at in produced else Read(new[node.access])

    value = mapped(statement.value, own)
    if _is_large(value) or len(accesses) > _MAX_READS:
        return None
    lost = [statement.accesses[at] for at in sorted(sources)]
    for _, source in sorted(sources.items()):
        lost += [replace(one, relation=source.elements(one)) for one in source.producer.recomputed]
    recomputed = (*statement.recomputed, *lost)
    return replace(statement, accesses=tuple(accesses), value=value, recomputed=recomputed), reads


def _operands_read(
    reader: Statement, sources: Mapping[int, Source], accesses: list[Access]
) -> dict[int, dict[int, int]] | None:
    """Add the operands of producers to the accesses of a reader; return which access each is."""
    known: dict[_Element, int] = {}
    for position, access in enumerate(accesses):
        if not access.is_write:
            known.setdefault(_element(access.array, access.relation, reader), position)
    reads: dict[int, dict[int, int]] = {at: {} for at in sources}
    for at, source in sources.items():
        for number in dict.fromkeys(reads_in(source.producer.value)):
            operand = source.producer.accesses[number]
            relation = source.elements(operand)
            element = array, subscripts = _element(operand.array, relation, reader)
            if None in subscripts:
                return None
            if element not in known:
                text = array + "".join(f"[{affine_text(form)}]" for form in subscripts if form)
                span = reader.accesses[at].span
                known[element] = len(accesses)
                accesses.append(replace(operand, relation=relation, text=text, span=span))
            reads[at][number] = known[element]
    return reads


def _is_large(value: Expression) -> bool:
    """Tell whether a value is printed with too many nodes, or nests too deeply to go through."""
    todo = [(value, 1)]
    nodes = 0
    while todo:
        node, depth = todo.pop()
        nodes += 1
        if nodes > _MAX_NODES or depth > _MAX_DEPTH:
            return True
        todo += [(operand, depth + 1) for operand in operands(node)]
    return False


_Element: TypeAlias = tuple[str, tuple[AffineForm | None, ...]]
"""An array, and subscripts; ``None`` where one is in pieces or divides."""


def _element(array: str, relation: isl.Map, reader: Statement) -> _Element:
    functions = output_affs(with_names(relation, IN, reader.loops))
    return array, tuple(map(affine_form, functions))


# -- what nobody reads any more -----------------------------------------------------------


def _without_dead(scop: Scop, arrays: Collection[str]) -> Scop:
    """Return a region without the statements and arrays of which nothing is ever seen."""
    read = {access.array for one in scop.statements for access in one.reads}
    dead = {
        array.name
        for array in scop.arrays
        if array.name in arrays and array.name not in read and scop.is_dead_after(array)
    }
    if not dead:
        return scop
    return replace(
        scop,
        arrays=tuple(one for one in scop.arrays if one.name not in dead),
        statements=tuple(one for one in scop.statements if one.write.array not in dead),
    )

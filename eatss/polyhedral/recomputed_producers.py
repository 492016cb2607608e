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
from functools import cached_property
from typing import TypeAlias

import islpy as isl

from eatss.base.frozen import frozen
from eatss.polyhedral.dependences import (
    Place,
    at_most,
    first_equal,
    flow_by_read,
    flow_of,
    tag_accesses,
)
from eatss.polyhedral.expression import AffineValue, Expression, Read, operands, rebuilt
from eatss.polyhedral.isl_names import (
    OUT,
    AffineForm,
    affine_form,
    coalesced,
    maps_of,
    name_inputs,
    output_affs,
)
from eatss.polyhedral.kernel import ScheduledScop
from eatss.polyhedral.scop import Access, Scop, Statement

_OPERATIONS = 500_000
"""isl operations to find out what an array is computed from."""

_MAX_NODES = 512
"""Nodes of a value as it is printed: chains of stencils must not grow without end."""

_MAX_DEPTH = 128
"""Nodes above each other in a value: a sum of so many terms nests as deeply."""

_MAX_READS = 64
"""Different elements that a statement reads then."""

_Flow: TypeAlias = Mapping[Place, isl.UnionMap]
"""For each access the instances that its values are from, as maps to those that read them."""


@frozen
class _Source:
    """The one statement that a read gets its values from, and which instance of it.

    ``instance`` maps the reader's instances to the producer's, and so does ``relation``.
    """

    producer: Statement
    instance: isl.MultiAff
    relation: isl.Map

    def elements(self, operand: Access) -> isl.Map:
        """Return the elements of an operand of the producer by the instances of the reader."""
        return self.relation.apply_range(operand.relation)


def recomputable_arrays(scop: Scop) -> tuple[str, ...]:
    """Return the arrays whose readers may compute the elements anew, in the order of their writers.

    Those before one in the result are computed anew where it is tried.
    """
    found: list[str] = []
    region = _Region(scop)
    for name in _written_arrays(scop):
        changed = region.without(name)
        if changed is not None:
            region = changed
            found.append(name)
    return tuple(found)


def with_recomputed_producers(scop: Scop, arrays: Collection[str]) -> Scop | None:
    """Return a region in which the readers of some arrays compute the elements anew.

    ``None`` where that is not proven to give the same values. ``written`` of the result is the
    region as it was.
    """
    region = _Region(scop)
    for name in (one for one in _written_arrays(scop) if one in arrays):
        changed = region.without(name)
        if changed is None:
            return None
        region = changed
    return replace(_without_dead(region.scop, arrays), written=scop.written or scop)


def with_values_anew(scop: Scop, places: Collection[Place]) -> Scop | None:
    """Return a region in which some reads of a scalar are computed anew.

    ``None`` where that is not proven to give the same values. What nobody reads then goes.
    """
    found = _Region(scop).anew(sorted(places))
    names = {scop.statement(name).accesses[at].array for name, at in places}
    return None if found is None else _without_dead(found.scop, names)


def recomputed_arrays(scop: Scop) -> tuple[str, ...]:
    """Return the arrays whose readers compute the elements anew."""
    return tuple(
        dict.fromkeys(one.array for statement in scop.statements for one in statement.recomputed)
    )


def keeps_loops(before: ScheduledScop, after: ScheduledScop) -> bool:
    """Tell whether each statement has as many parallel loops then, and no other loop on the host.

    In ``A[i] = A[i] + A[i + 1]`` instances are in order that are not with a copy of ``A`` before.
    """
    first, then = (
        {name: kernel for kernel in one.kernels for name in kernel.statements}
        for one in (before, after)
    )
    return all(
        len(then[name].parallel_loops) >= len(kernel.parallel_loops)
        and {*then[name].host_loops} <= {*kernel.host_loops}
        for name, kernel in first.items()
        if name in then
    )


def _written_arrays(scop: Scop) -> tuple[str, ...]:
    """Return the arrays that are written, in the order of their first writers."""
    named = dict.fromkeys(statement.write.array for statement in scop.statements)
    return tuple(name for name in named if scop.array(name).n_dims)


class _Region:
    """A region, and where its reads get their values from, found once."""

    def __init__(self, scop: Scop) -> None:
        self.scop = scop

    @cached_property
    def flow(self) -> _Flow:
        """Where values come from."""
        return _flow(self.scop)

    def without(self, name: str) -> _Region | None:
        """Return the region with all reads of an array replaced, ``None`` if that is not proven.

        The statements that write the array stay.
        """
        places = _reads_of(self.scop, name)
        writers = {one.name for one in self.scop.statements if one.write.array == name}
        if not places or any(reader in writers for reader, _ in places):
            return None  # nobody reads it, or it is added to
        return self.anew(places)

    def anew(self, places: Sequence[Place]) -> _Region | None:
        """Return the region with some reads replaced, ``None`` if that is not proven."""
        with suppress(isl.Error), at_most(self.scop.isl_context, _OPERATIONS):
            return self._substituted(places)
        return None

    def _substituted(self, places: Sequence[Place]) -> _Region | None:
        sources: dict[Place, _Source] = {}
        for place in places:
            source = _source(self.scop, place, self.flow)
            if source is None:
                return None
            sources[place] = source
        statements = []
        for statement in self.scop.statements:
            own = {at: one for (reader, at), one in sources.items() if reader == statement.name}
            changed = _reading_anew(statement, own) if own else statement
            if changed is None:
                return None
            statements.append(changed)
        found = _Region(replace(self.scop, statements=tuple(statements)))
        same = _same_values(found.scop, sources, self.flow, found.flow)
        return found if same else None


def _reads_of(scop: Scop, name: str) -> list[Place]:
    """Return the reads of an array, of those spelled alike the first."""
    return [
        (statement.name, first)
        for statement in scop.statements
        for first in sorted(set(first_equal(statement.accesses)))
        if first and statement.accesses[first].array == name
    ]


# -- where values come from -------------------------------------------------------------


def _flow(scop: Scop) -> _Flow:
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


def _source(scop: Scop, place: Place, flow: _Flow) -> _Source | None:
    """Return where all values of a read are from, ``None`` unless one statement has them all.

    The instance is an affine function of the reader's counters that no two instances share: each
    element is computed anew once for each read.
    """
    reader = scop.statement(place[0])
    found = maps_of(flow[place])
    if len(found) != 1:
        return None
    back = coalesced(found[0].reverse())
    if not (
        back.is_single_valued() and back.is_injective() and reader.domain.is_subset(back.domain())
    ):
        return None
    function = isl.PwMultiAff.from_map(back).gist(reader.domain).coalesce()
    if function.n_piece() != 1:
        return None
    producer = scop.statement(back.get_tuple_name(OUT))
    instance = function.as_multi_aff()
    if any(affine_form(instance.get_at(k).to_pw_aff()) is None for k in range(len(producer.loops))):
        return None
    relation = isl.Map.from_multi_aff(instance).intersect_domain(reader.domain)
    return _Source(producer=producer, instance=instance, relation=relation)


def _same_values(after: Scop, sources: Mapping[Place, _Source], flow: _Flow, now: _Flow) -> bool:
    """Tell whether readers now find every operand as the producers found it.

    The value of an operand is the same if it is from the same instance, or if both are from before
    the region. Nothing wrote the element in between then.
    """
    for (name, _), source in sources.items():
        reader, producer = after.statement(name), source.producer
        here = source.relation.reverse().to_union_map()
        reads = _reads(reader)
        for position, operand in enumerate(producer.accesses):
            if operand.is_write:
                continue
            subscripts = _subscripts(source.elements(operand), reader.loops)
            assert subscripts is not None
            at = reads[operand.array, subscripts]
            expected = flow[producer.name, position].apply_range(here)
            if not now[name, at].is_equal(expected):
                return False
    return True


# -- expressions --------------------------------------------------------------------------


class _TooLargeError(Exception):
    """A value would have too many operations or reads, or subscripts that C would not have."""


class _Reader:
    """Builds the statement that computes what it reads anew."""

    def __init__(self, statement: Statement, sources: Mapping[int, _Source]) -> None:
        self._statement = statement
        self._sources = sources
        self._firsts = first_equal(statement.accesses)
        kept = [k for k, first in enumerate(self._firsts) if first not in sources]
        self._new = {old: new for new, old in enumerate(kept)}
        self._accesses = [statement.accesses[old] for old in kept]
        self._reads = _reads(replace(statement, accesses=tuple(self._accesses)))
        self._produced: dict[int, Expression] = {}

    def statement(self) -> Statement:
        """Return the statement.

        Raises:
            _TooLargeError: its value is too long.
        """
        value = self._own(self._statement.value)
        if _is_large(value) or len(self._accesses) > _MAX_READS:
            raise _TooLargeError
        lost = [self._statement.accesses[at] for at in sorted(self._sources)]
        for _, source in sorted(self._sources.items()):
            lost += [
                replace(one, relation=source.elements(one)) for one in source.producer.recomputed
            ]
        return replace(
            self._statement,
            accesses=tuple(self._accesses),
            value=value,
            recomputed=(*self._statement.recomputed, *lost),
        )

    def _own(self, node: Expression) -> Expression:
        """Return a part of the value of the statement: what is produced is one object each time."""
        if not isinstance(node, Read):
            return rebuilt(node, self._own)
        at = self._firsts[node.access]
        if at not in self._sources:
            return Read(access=self._new[node.access])
        if at not in self._produced:
            self._produced[at] = self._of_producer(at)
        return self._produced[at]

    def _of_producer(self, at: int) -> Expression:
        """Return the value of a producer in the counters of the statement."""
        source = self._sources[at]

        def part(node: Expression) -> Expression:
            if isinstance(node, Read):
                return Read(access=self._access(source, node.access, at))
            if isinstance(node, AffineValue):
                return replace(node, value=node.value.pullback_multi_aff(source.instance))
            return rebuilt(node, part)

        return part(source.producer.value)

    def _access(self, source: _Source, number: int, at: int) -> int:
        """Return the number of the access that an operand of a producer becomes."""
        operand = source.producer.accesses[number]
        relation = source.elements(operand)
        subscripts = _subscripts(relation, self._statement.loops)
        if subscripts is None:
            raise _TooLargeError
        place = (operand.array, subscripts)
        if place not in self._reads:
            self._reads[place] = len(self._accesses)
            self._accesses.append(
                replace(
                    operand,
                    relation=relation,
                    text=operand.array + "".join(f"[{_text(form)}]" for form in subscripts),
                    span=self._statement.accesses[at].span,
                )
            )
        return self._reads[place]


def _reading_anew(statement: Statement, sources: Mapping[int, _Source]) -> Statement | None:
    """Return a statement that computes what it reads anew, ``None`` if that is too much."""
    values = (statement.value, *(source.producer.value for source in sources.values()))
    if any(map(_is_large, values)):
        return None
    try:
        return _Reader(statement, sources).statement()
    except _TooLargeError:
        return None


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


def _subscripts(relation: isl.Map, loops: Sequence[str]) -> tuple[AffineForm, ...] | None:
    """Return the subscripts of an access, ``None`` where one is in pieces or divides."""
    forms = [affine_form(function) for function in output_affs(name_inputs(relation, loops))]
    known = tuple(form for form in forms if form is not None)
    return known if len(known) == len(forms) else None


def _reads(statement: Statement) -> dict[tuple[str, tuple[AffineForm, ...]], int]:
    """Return the first of the reads of each element, by array and subscripts."""
    found: dict[tuple[str, tuple[AffineForm, ...]], int] = {}
    for position, access in enumerate(statement.accesses):
        subscripts = _subscripts(access.relation, statement.loops)
        if not access.is_write and subscripts is not None:
            found.setdefault((access.array, subscripts), position)
    return found


def _text(form: AffineForm) -> str:
    """Return an affine function as C spells it: ``i + 1``, ``2 * i - j``, ``n - 1``."""
    terms = [*form.coefficients, *form.parameters]
    if form.constant or not terms:
        terms.append(("", form.constant))
    text = ""
    for name, factor in sorted(terms, key=lambda term: not term[0]):
        size = abs(factor)
        own = str(size) if not name else name if size == 1 else f"{size} * {name}"
        if text:
            text += f" - {own}" if factor < 0 else f" + {own}"
        else:
            text = f"-{own}" if factor < 0 else own
    return text


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

"""Producers are computed anew where they are read: a pass over memory less.

``for (i …) T[i] = f(A[i]);`` and then ``for (i …) B[i] = T[i + 1] - T[i];`` become
``for (i …) B[i] = f(A[i + 1]) - f(A[i]);``, known as forward substitution or inlining of producers
[Halide, *compute inline*]. An array that is dead after the region and that nobody reads any more
goes away; one that others see is still stored by its own statement, which then depends on nothing
that the region computes.

Every operation stays what it is, operands, order and rounding. What is computed twice is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import islpy as isl

from eatss.isl_names import (
    AffineForm,
    affine_form,
    coalesced,
    maps_of,
    name_inputs,
    output_affs,
)
from eatss.polyhedral.accesses import first_equal
from eatss.polyhedral.dependences import flow_of, tag_accesses
from eatss.polyhedral.isl_limits import at_most
from eatss.scops import (
    Access,
    AffineValue,
    Binary,
    Call,
    Cast,
    Expression,
    Read,
    Scop,
    Select,
    Statement,
    Unary,
)

_OPERATIONS = 500_000
"""isl operations to find out what an array is computed from."""

_MAX_NODES = 512
"""Nodes of a value as it is printed: chains of stencils must not grow without end."""

_MAX_READS = 64
"""Different elements that a statement reads then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The one statement that a read gets its values from, and which instance of it.

    ``instance`` maps the reader's instances to the producer's.
    """

    producer: Statement
    instance: isl.MultiAff
    relation: isl.Map


def recomputable_arrays(scop: Scop) -> tuple[str, ...]:
    """Return the arrays whose readers may compute the elements anew, in the order of their writers.

    Those before one in the result are computed anew where it is tried.
    """
    found: list[str] = []
    with suppress(isl.Error), at_most(scop.isl_context, _OPERATIONS):
        for name in _written_arrays(scop):
            changed = _substituted(scop, name)
            if changed is not None:
                scop = changed
                found.append(name)
    return tuple(found)


def with_recomputed_producers(scop: Scop, arrays: Collection[str]) -> Scop | None:
    """Return a region in which the readers of some arrays compute the elements anew.

    ``None`` where that is not proven to give the same values. ``written`` of the result is the
    region as it was.
    """
    found = scop
    try:
        with at_most(scop.isl_context, _OPERATIONS):
            for name in (one for one in _written_arrays(scop) if one in arrays):
                changed = _substituted(found, name)
                if changed is None:
                    return None
                found = changed
    except isl.Error:
        return None
    return replace(_without_dead(found, arrays), written=scop.written or scop)


def recomputed_arrays(scop: Scop) -> tuple[str, ...]:
    """Return the arrays whose readers compute the elements anew."""
    return tuple(
        dict.fromkeys(one.array for statement in scop.statements for one in statement.recomputed)
    )


def _written_arrays(scop: Scop) -> tuple[str, ...]:
    """Return the arrays that are written, in the order of their first writers."""
    named = dict.fromkeys(statement.write.array for statement in scop.statements)
    return tuple(name for name in named if scop.array(name).n_dims)


def _substituted(scop: Scop, name: str) -> Scop | None:
    """Return the region with all reads of an array replaced, ``None`` where that is not proven.

    The statements that write the array stay.
    """
    places = [
        (statement.name, first)
        for statement in scop.statements
        for first in sorted(set(first_equal(statement.accesses)))
        if first and statement.accesses[first].array == name
    ]
    writers = {one.name for one in scop.statements if one.write.array == name}
    if not places or any(reader in writers for reader, _ in places):
        return None  # nobody reads it, or it is added to
    flow = _flow(scop)
    sources: dict[tuple[str, int], _Source] = {}
    for place in places:
        source = _source(scop, place, flow)
        if source is None:
            return None
        sources[place] = source
    statements = []
    for statement in scop.statements:
        own = {at: source for (reader, at), source in sources.items() if reader == statement.name}
        changed = _reading_anew(statement, own) if own else statement
        if changed is None:
            return None
        statements.append(changed)
    found = replace(scop, statements=tuple(statements))
    return found if _same_values(scop, found, sources, flow) else None


# -- where values come from -------------------------------------------------------------


def _flow(scop: Scop) -> Mapping[tuple[str, int], isl.UnionMap]:
    """Return for each read the instances that its values are from; reads spelled alike share one.

    Values of arrays that nothing writes are from nowhere.
    """
    accesses = tag_accesses(scop)
    tagged = flow_of(accesses.reads, accesses.schedule, must=accesses.writes).get_may_dependence()
    by_tag: dict[tuple[str, str], isl.UnionMap] = {}
    empty = isl.UnionMap.empty(scop.context.get_space())
    for relation in maps_of(tagged):
        sink = relation.range().unwrap()
        instance, tag = (sink.get_tuple_name(k) for k in (isl.dim_type.in_, isl.dim_type.out))
        plain = isl.UnionMap.from_map(relation).factor_domain()
        by_tag[instance, tag] = by_tag.get((instance, tag), empty).union(plain)
    found: dict[tuple[str, int], isl.UnionMap] = {}
    number = 0
    for statement in scop.statements:
        for position, first in enumerate(first_equal(statement.accesses)):
            key = (statement.name, f"__ref{number - position + first}")
            found[statement.name, position] = by_tag.get(key, empty)
            number += 1
    return found


def _source(
    scop: Scop, place: tuple[str, int], flow: Mapping[tuple[str, int], isl.UnionMap]
) -> _Source | None:
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
        back.is_single_valued()
        and back.is_injective()
        and reader.domain.is_subset(back.domain())
    ):
        return None
    function = isl.PwMultiAff.from_map(back).gist(reader.domain).coalesce()
    if function.n_piece() != 1:
        return None
    producer = scop.statement(back.get_tuple_name(isl.dim_type.out))
    instance = function.as_multi_aff()
    if any(_form(instance.get_at(k).to_pw_aff()) is None for k in range(len(producer.loops))):
        return None
    relation = isl.Map.from_multi_aff(instance).intersect_domain(reader.domain)
    return _Source(producer=producer, instance=instance, relation=relation)


def _same_values(
    before: Scop,
    after: Scop,
    sources: Mapping[tuple[str, int], _Source],
    flow: Mapping[tuple[str, int], isl.UnionMap],
) -> bool:
    """Tell whether readers now find every operand as the producers found it.

    The value of an operand is the same if it is from the same instance, or if both are from before
    the region. Nothing wrote the element in between then.
    """
    now = _flow(after)
    for (name, _), source in sources.items():
        reader, producer = after.statement(name), source.producer
        here = source.relation.reverse().to_union_map()
        for position, operand in enumerate(producer.accesses):
            if operand.is_write:
                continue
            relation = _operand_relation(source, operand)
            at = _same_access(reader.accesses, operand.array, relation)
            assert at is not None
            expected = flow[producer.name, position].apply_range(here)
            if not now[name, at].is_equal(expected):
                return False
    return True


# -- expressions --------------------------------------------------------------------------


class _TooLargeError(Exception):
    """A value would be printed with too many operations or reads."""


class _Reader:
    """Builds the statement that computes what it reads anew."""

    def __init__(self, statement: Statement, sources: Mapping[int, _Source]) -> None:
        self._statement = statement
        self._sources = sources
        self._firsts = first_equal(statement.accesses)
        kept = [k for k, first in enumerate(self._firsts) if first not in sources]
        self._new = {old: new for new, old in enumerate(kept)}
        self.accesses = [statement.accesses[old] for old in kept]
        self._done: dict[int, Expression] = {}
        self._sizes: dict[int, int] = {}

    def statement(self) -> Statement:
        value, nodes = self._own(self._statement.value)
        if nodes > _MAX_NODES or len(self.accesses) > _MAX_READS:
            raise _TooLargeError
        lost = [self._statement.accesses[at] for at in sorted(self._sources)]
        for _, source in sorted(self._sources.items()):
            lost += [
                replace(one, relation=_operand_relation(source, one))
                for one in source.producer.recomputed
            ]
        return replace(
            self._statement,
            accesses=tuple(self.accesses),
            value=value,
            recomputed=(*self._statement.recomputed, *lost),
        )

    def _own(self, node: Expression) -> tuple[Expression, int]:
        """Return a part of the value of the statement, and how many nodes it is printed with."""
        if isinstance(node, Read):
            at = self._firsts[node.access]
            if at not in self._sources:
                return Read(access=self._new[node.access]), 1
            return self._produced(at)
        return _rebuilt(node, self._own)

    def _produced(self, at: int) -> tuple[Expression, int]:
        """Return the value of a producer in the counters of the statement: one object each time."""
        if at not in self._done:
            source = self._sources[at]

            def part(node: Expression) -> tuple[Expression, int]:
                if isinstance(node, Read):
                    operand = source.producer.accesses[node.access]
                    return Read(access=self._access(source, operand, at)), 1
                if isinstance(node, AffineValue):
                    value = node.value.pullback_multi_aff(source.instance)
                    return replace(node, value=value), 1
                return _rebuilt(node, part)

            self._done[at], self._sizes[at] = part(source.producer.value)
        return self._done[at], self._sizes[at]

    def _access(self, source: _Source, operand: Access, at: int) -> int:
        """Return the number of the access that an operand of a producer becomes."""
        relation = _operand_relation(source, operand)
        found = _same_access(self.accesses, operand.array, relation)
        if found is None:
            found = len(self.accesses)
            forms = [
                _form(one) for one in output_affs(name_inputs(relation, self._statement.loops))
            ]
            known = [form for form in forms if form is not None]
            if len(known) < len(forms):
                raise _TooLargeError
            self.accesses.append(
                replace(
                    operand,
                    relation=relation,
                    text=operand.array + "".join(f"[{_text(form)}]" for form in known),
                    span=self._statement.accesses[at].span,
                )
            )
        return found


def _reading_anew(statement: Statement, sources: Mapping[int, _Source]) -> Statement | None:
    """Return a statement that computes what it reads anew, ``None`` if that is too much."""
    try:
        return _Reader(statement, sources).statement()
    except _TooLargeError:
        return None


def _rebuilt(node: Expression, part: Callable[[Expression], tuple[Expression, int]]) -> tuple[Expression, int]:
    """Return a node with its operands replaced, and the nodes that all of it has."""
    if isinstance(node, Unary | Cast):
        operand, size = part(node.operand)
        return replace(node, operand=operand), size + 1
    if isinstance(node, Binary):
        (left, first), (right, second) = part(node.left), part(node.right)
        return replace(node, left=left, right=right), first + second + 1
    if isinstance(node, Select):
        condition, yes, no = map(part, (node.condition, node.if_true, node.if_false))
        whole = replace(node, condition=condition[0], if_true=yes[0], if_false=no[0])
        return whole, condition[1] + yes[1] + no[1] + 1
    if isinstance(node, Call):
        arguments = tuple(map(part, node.arguments))
        size = sum(size for _, size in arguments) + 1
        return replace(node, arguments=tuple(one for one, _ in arguments)), size
    return node, 1


def _operand_relation(source: _Source, operand: Access) -> isl.Map:
    """Return the elements of a producer's operand by the instances of the reader."""
    return source.relation.apply_range(operand.relation)


def _same_access(accesses: Sequence[Access], array: str, relation: isl.Map) -> int | None:
    """Return the read of the same elements of an array, if there is one."""
    for position, access in enumerate(accesses):
        same = not access.is_write and access.array == array
        if same and access.relation.is_equal(relation):
            return position
    return None


def _form(function: isl.PwAff) -> AffineForm | None:
    return affine_form(function)


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

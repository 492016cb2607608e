"""Recurrences along a loop are cut into chunks that run at once: scans of one pass become three.

``for (t …) y[t] = a[t] * y[t - 1] + b[t];`` runs step by step. Chunks of ``T`` steps do not: what a
chunk makes of the element before it is an affine function, whose composition is associative
[Blelloch 1990]:

    for (k …) for (t in chunk k) F[k] *= a[t], V[k] = a[t] * V[k] + b[t];
    for (k …) y[last of k] = F[k] * y[last of k - 1] + V[k];
    for (k …) for (t in chunk k but its last) y[t] = a[t] * y[t - 1] + b[t];

Running sums, products, maxima and minima need no ``F``, and add up ``V`` in any order. Steps within
a chunk run as they did. What is not finite in ``F`` or ``V`` alone may show in ``y``, as in sums
that are added up in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import prod
from typing import TypeAlias

import islpy as isl

from eatss.base.diagnostics import internal_error
from eatss.base.frozen import Names, frozen
from eatss.base.trees import free_name
from eatss.polyhedral.expression import (
    FLOATING,
    AffineValue,
    Array,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    combiner_of,
    reads_in,
    rebuilt,
)
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    AffineForm,
    affine_form,
    affine_text,
    at_values,
    big_value,
    dims_as_parameters,
    integer,
    leading_dims,
    maps_of,
    output_affs,
    parameter_bound,
    parameter_names,
    with_names,
)
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scop import Access, AccessKind, Scop, Statement
from eatss.polyhedral.split_sets import writes_in_order
from eatss.program.expression import SizePairs

_ONE = Literal(text="1.0f", element_type=ElementType.FLOAT)
_ZERO = replace(_ONE, text="0.0f")
_PLACES = 8
"""Places among the statements of a body that what a scan becomes takes."""


@frozen
class Recurrence:
    """A statement each of whose instances but the first of a row reads what the one before wrote.

    ``at`` is the loop along rows, by its number, and ``start`` where rows begin; the step is 1 up
    or -1 down. ``before`` are the accesses that read the instance before. ``operator`` is what
    combines them with the rest in any order, else the value is ``factor`` times what is read and
    ``term``.
    """

    statement: Statement
    at: int
    step: int
    start: AffineForm
    before: frozenset[int]
    operator: str | None
    factor: Expression
    term: Expression

    @property
    def is_along_rows(self) -> bool:
        """Whether neighbours are neighbours in memory."""
        written = output_affs(self.statement.write.relation)
        form = affine_form(written[-1])
        return form is not None and self.loop in dict(form.coefficients)

    @property
    def loop(self) -> str:
        """The name of the loop along rows."""
        return self.statement.loops[self.at]


# -- what is a recurrence ----------------------------------------------------------------------


def recurrences(scop: Scop) -> Iterator[Recurrence]:
    """Yield the recurrences of a region that may be cut into chunks."""
    flow = None
    for statement in scop.statements:
        found = _recurrence(scop, statement)
        if found is None or not is_alone(scop, found.statement, found.at):
            continue
        flow = flow_to_reads(scop) if flow is None else flow
        before = (flow[statement.name, at] for at in found.before)
        if all(_is_from_step_before(found, one) for one in before):
            yield found


def shape_of(statement: Statement, along: str, still: Names, sizes: SizePairs) -> tuple[int, int]:
    """Return how many steps rows along a loop have at some sizes, and how many rows there are.

    Rows of ``still`` loops are not counted. Both are 0 where no instance runs, or where there is no
    end of them.
    """
    domain = at_values(statement.domain, sizes)
    if domain.is_empty() or not domain.is_bounded():
        return 0, 0
    extents = {
        loop: integer(domain.dim_max_val(at)) - integer(domain.dim_min_val(at)) + 1
        for at, loop in enumerate(statement.loops)
        if loop not in still
    }
    return extents[along], prod(extents.values()) // extents[along]


def _recurrence(scop: Scop, statement: Statement) -> Recurrence | None:
    """Return what a statement is by its subscripts and its value."""
    array, kind = statement.write.array, scop.array(statement.write.array).element_type
    own = [k for k, one in enumerate(statement.accesses) if k and one.array == array]
    relations = [one.relation for one in statement.accesses]
    before = frozenset(k for k in own if not relations[k].is_equal(relations[0]))
    steps = _moved(statement, [relations[k] for k in before])
    if len(steps) != 1 or kind is ElementType.HALF or not _is_injective(statement):
        return None
    (at, step), operator = steps[0], _operator(statement, own, before, kind)
    start = _start(statement, at, step)
    parts: _Affine = _ONE, _ZERO
    try:
        if operator is None:
            parts = _affine(statement.value, before, kind)
    except _NotAffineError:
        return None
    if start is None or (operator is None and (kind not in FLOATING or parts[0] == _ZERO)):
        return None
    return Recurrence(
        statement=statement,
        at=at,
        step=step,
        start=start,
        before=before,
        operator=operator,
        factor=parts[0],
        term=parts[1],
    )


def _moved(statement: Statement, reads: Sequence[isl.Map]) -> list[tuple[int, int]]:
    """Return along which loops, and which way, all reads are of what the instance before wrote."""
    write = statement.write.relation
    written, *others = (
        [affine_form(one) for one in output_affs(relation)] for relation in (write, *reads)
    )
    if not others or None in written or any(one != others[0] for one in others):
        return []
    pairs = [(w, o) for w, o in zip(written, others[0], strict=True) if w and o]
    if len(pairs) < max(1, len(written)) or any(w[:2] != o[:2] for w, o in pairs):
        return []
    return [
        (at, step)
        for at, loop in enumerate(statement.loops)
        for step in (1, -1)
        if all(
            o.constant - w.constant == -step * dict(w.coefficients).get(loop, 0) for w, o in pairs
        )
    ]


def _operator(
    statement: Statement, own: Sequence[int], before: frozenset[int], kind: ElementType
) -> str | None:
    """Return what combines the element before with the rest, in any order; ``None``: nothing."""
    write = statement.write.relation
    accesses = (
        replace(one, relation=write) if k in before
        else replace(one, array="") if k in own  # an old value is as any other operand
        else one
        for k, one in enumerate(statement.accesses)
    )  # fmt: skip
    operator = update_of(replace(statement, accesses=tuple(accesses)), kind)
    return operator if operator and combiner_of(operator, kind) else None


def _start(statement: Statement, at: int, step: int) -> AffineForm | None:
    """Return where rows begin, by outer loops and sizes, ``None`` where that is not one form.

    Every instance that has none before it in its row has to be there.
    """
    outer, loop = statement.loops[:at], statement.loops[at]
    rows = dims_as_parameters(leading_dims(statement.domain, at + 1), (*outer, loop))
    form = affine_form(parameter_bound(rows, loop, upper=step < 0).coalesce())
    if form is None:
        return None
    begins = _instances(statement, f"{loop} = {affine_text(form)}")
    first = statement.domain.subtract(_within_rows(statement, at, step).range())
    return form if first.is_subset(begins) else None


def _within_rows(statement: Statement, at: int, step: int) -> isl.Map:
    """Map each instance to the next of its row."""
    own = statement.domain
    return _steps(statement, at, step).intersect_domain(own).intersect_range(own)


def _instances(statement: Statement, condition: str) -> isl.Set:
    """Return the instances of a statement for which a condition on its counters holds."""
    parameters = ", ".join(parameter_names(statement.domain))
    point = f"{statement.name}[{', '.join(statement.loops)}]"
    text = f"[{parameters}] -> {{ {point} : {condition} }}"
    return isl.Set.read_from_str(statement.domain.get_ctx(), text)


def _steps(statement: Statement, at: int, step: int) -> isl.Map:
    """Return what maps each instance to the next of its row, there or not."""
    loops = statement.loops
    then = [f"{one} + {step}" if k == at else one for k, one in enumerate(loops)]
    text = f"{{ {statement.name}[{', '.join(loops)}] -> {statement.name}[{', '.join(then)}] }}"
    return isl.Map.read_from_str(statement.domain.get_ctx(), text)


def _is_injective(statement: Statement) -> bool:
    """Tell whether each instance writes an element of its own, between loops that move it."""
    relation = statement.write.relation
    for loop in still_loops(statement):
        relation = relation.insert_dims(OUT, 0, 1)
        relation = relation.equate(IN, statement.loops.index(loop), OUT, 0)
    return bool(relation.is_injective())


def still_loops(statement: Statement) -> Names:
    """Return the loops that do not move what a statement writes."""
    forms = map(affine_form, output_affs(statement.write.relation))
    moves = {name for form in forms if form is not None for name, _ in form.coefficients}
    return tuple(one for one in statement.loops if one not in moves)


class _NotAffineError(Exception):
    """A value is no affine function of the element before."""


_Affine: TypeAlias = tuple[Expression, Expression]
"""By what a value multiplies the element before, and what it adds to that."""


def _affine(value: Expression, before: frozenset[int], kind: ElementType) -> _Affine:
    """Return a value that is stored as a type as an affine function of the element before.

    Raises:
        _NotAffineError: it is none.
    """
    if before.isdisjoint(reads_in(value)):
        return _ZERO, value
    match value:
        case Read():
            return _ONE, _ZERO
        case Unary(operator="-", operand=operand):
            parts = (_sum("-", _ZERO, own) for own in _affine(operand, before, kind))
        case Cast(element_type=wide, operand=operand) if _keeps(wide, kind):
            parts = (_converted(value, own) for own in _affine(operand, before, kind))
        case Binary(operator="+" | "-" as sign, left=left, right=right):
            sides = (_affine(one, before, kind) for one in (left, right))
            parts = (_sum(sign, *pair) for pair in zip(*sides, strict=True))
        case Binary(operator="*", left=left, right=right) if before.isdisjoint(reads_in(left)):
            parts = (_product("*", left, own) for own in _affine(right, before, kind))
        case Binary(operator="*" | "/" as sign, left=left, right=right) if before.isdisjoint(
            reads_in(right)
        ):
            parts = (_product(sign, own, right) for own in _affine(left, before, kind))
        case _:
            raise _NotAffineError
    factor, term = parts
    return factor, term


def _keeps(wide: ElementType, kind: ElementType) -> bool:
    """Tell whether a conversion to one type keeps what is stored as another."""
    return wide in FLOATING and wide.size_bytes >= kind.size_bytes


def _converted(conversion: Cast, value: Expression) -> Expression:
    return value if value in (_ZERO, _ONE) else replace(conversion, operand=value)


def _sum(sign: str, one: Expression, other: Expression) -> Expression:
    if other == _ZERO:
        return one
    if one != _ZERO:
        return Binary(operator=sign, left=one, right=other)
    return other if sign == "+" else Unary(operator="-", operand=other)


def _product(sign: str, one: Expression, other: Expression) -> Expression:
    if one == _ZERO or (sign == "*" and other == _ZERO):
        return _ZERO
    if other == _ONE or (sign == "*" and one == _ONE):
        return one if other == _ONE else other
    return Binary(operator=sign, left=one, right=other)


def is_alone(scop: Scop, statement: Statement, at: int) -> bool:
    """Tell whether nothing else runs in a loop of a statement, by number."""
    place = _body(statement, at)
    others = (one for one in scop.statements if one is not statement)
    return place is not None and all(_body(one, at) != place for one in others)


def _body(statement: Statement, at: int) -> tuple[int, ...] | None:
    """Return the positions of a statement in ``at`` loops, and of the next loop inside."""
    forms = [affine_form(one) for one in output_affs(statement.schedule)[: 2 * at + 1 : 2]]
    if not all(form is not None and not form.coefficients for form in forms):
        return None
    return tuple(form.constant for form in forms if form is not None)


def _is_from_step_before(found: Recurrence, flow: isl.UnionMap) -> bool:
    """Tell whether each instance that has one before it in its row reads what that wrote."""
    steps = _within_rows(found.statement, found.at, found.step)
    own = [one for one in maps_of(flow) if one.get_tuple_name(IN) == found.statement.name]
    return len(own) == 1 and bool(own[0].is_equal(steps)) and not steps.is_empty()


# -- chunks ------------------------------------------------------------------------------------


def with_chunked_scans(scop: Scop, lengths: Mapping[str, int]) -> Scop | None:
    """Return a region whose recurrences are cut into chunks.

    Args:
        scop: the region.
        lengths: the steps of a chunk, at least 2, by the name of the statement.

    Returns:
        The region; ``None`` where a statement is no recurrence, or has no whole chunk.

    Raises:
        InternalError: ``EATSS-P901``, it would compute something else.
    """
    changed = scop
    for name, length in lengths.items():
        found = {one.statement.name: one for one in recurrences(changed)}
        if name not in found:
            return None
        chunks = _Chunks(changed, found[name], length)
        if chunks.parts[chunks.ends].is_empty():
            return None
        changed, before = chunks.region(), changed
        check_chunks(before, changed, chunks)
    return replace(changed, written=scop.written or scop) if lengths else scop


def ends_of(name: str) -> str:
    """Return what the recurrence over the ends of a statement's chunks is called."""
    return f"{name}_ends"


class _Chunks:
    """Makes chunks of one recurrence of a region.

    ``parts`` map instances of new statements to those of the source: of the statement inside of
    chunks and at the ends of them, which write what it writes, and of those that work out what a
    chunk comes to. ``begins`` maps ends of chunks to their first steps.
    """

    def __init__(self, scop: Scop, found: Recurrence, length: int) -> None:
        self.scop, self.found, self.length, self.old = scop, found, length, found.statement
        taken = scop.names.union(*(one.loops for one in scop.statements))
        own, at = self.old.loops, found.at
        self._chunk = free_name(f"{found.loop}_chunk", taken)
        self._steps = (*own[:at], self._chunk, *own[at:])
        self._whole = (*own[:at], self._chunk, *own[at + 1 :])
        array, name = self.old.write.array, self.old.name
        self._arrays = [free_name(f"{array}_chunks", taken)]
        if found.operator is None:
            self._arrays.append(free_name(f"{array}_factors", taken))
        self._first = [free_name(f"{name}_first", taken) for _ in self._arrays]
        self._all = [free_name(f"{name}_all", taken) for _ in self._arrays]
        self.ends = free_name(ends_of(name), taken)
        ends = self._instances(self.ends, self._whole, str(length - 1))
        complete = ends.domain().set_tuple_name(self.ends)
        self._complete = complete
        inside = self._instances(name, self._steps, found.loop)
        self.parts = {name: self._within(inside, length - 2), self.ends: ends}
        for own_name in self._all:  # of whole chunks
            steps = self._relation(own_name, self._steps, found.loop)
            there = complete.insert_dims(SET, self.position, 1).set_tuple_name(own_name)
            self.parts[own_name] = self._within(steps.intersect_domain(there), length - 1)
        begins = self._relation(self.ends, self._whole, "0")
        self.begins = begins.intersect_domain(complete)

    @property
    def position(self) -> int:
        """The number of the loop over the steps of a chunk."""
        return self.found.at + 1

    def region(self) -> Scop:
        """Return the region with chunks."""
        made = []
        for number, array in enumerate(self._arrays):
            made += [self._beginning(number, array), self._combining(number, array)]
        made += [self._at_ends(), self._inside()]
        statements = (
            made if one is self.old else [self._later(one)] for one in self.scop.statements
        )
        arrays = (*self.scop.arrays, *map(self._array, self._arrays))
        return replace(self.scop, arrays=arrays, statements=tuple(chain(*statements)))

    def repeats(self, statement: Statement, _: Access) -> Sequence[tuple[isl.Map, Statement]]:
        """Return what a read of a statement repeats."""
        if statement.name == self.ends:
            return [(self.begins, self.old)]
        part = self.parts.get(statement.name)
        own = (statement.domain.identity(), statement)
        return [own if part is None else (part, self.old)]

    # -- instances

    def _read(self, text: str) -> isl.Map:
        return map_of(self.old, text)

    def _relation(self, name: str, loops: Names, within: str) -> isl.Map:
        """Map instances to those of the recurrence, whether they are there or not."""
        start, sign = affine_text(self.found.start), "+" if self.found.step > 0 else "-"
        step = f"{start} {sign} ({self.length} * {self._chunk} + {within})"
        then = [step if one == self.found.loop else one for one in self.old.loops]
        return self._read(f"{name}[{', '.join(loops)}] -> {self.old.name}[{', '.join(then)}]")

    def _instances(self, name: str, loops: Names, within: str) -> isl.Map:
        relation = self._relation(name, loops, within).intersect_range(self.old.domain)
        domain = _from_zero(relation.domain(), self.found.at)
        return relation.intersect_domain(domain)

    def _within(self, relation: isl.Map, last: int) -> isl.Map:
        """Keep the steps of a chunk up to one."""
        domain = _from_zero(relation.domain(), self.position)
        last_step = big_value(domain.get_ctx(), last)
        return relation.intersect_domain(domain.upper_bound_val(SET, self.position, last_step))

    def first_step(self, name: str) -> isl.Map:
        """Map the ends of chunks to the instances of the source with which they begin."""
        zero = isl.Val.zero(self.old.domain.get_ctx())
        fixed = self.parts[name].fix_val(IN, self.position, zero)
        return fixed.project_out(IN, self.position, 1).set_tuple_name(IN, self.ends)

    # -- statements

    def _beginning(self, number: int, array: str) -> Statement:
        """Return what sets what a chunk comes to to that of no steps."""
        kind = self.scop.array(self.old.write.array).element_type
        combiner = combiner_of(self.found.operator or "", kind)
        neutral = number if combiner is None else combiner.neutral(kind)
        name = self._first[number]
        maps = self.parts[self.ends].set_tuple_name(IN, name)
        target = self._element(array, maps, AccessKind.WRITE)
        return self._made(maps, 2 * number, literal(neutral, kind), {}, target)

    def _combining(self, number: int, array: str) -> Statement:
        """Return what adds a step to what a chunk comes to: its values, or its factors."""
        found, maps = self.found, self.parts[self._all[number]]
        target = self._element(array, maps, AccessKind.WRITE)
        before = Read(access=min(found.before))
        value = self.old.value
        if found.operator is None and number:
            value = Binary(operator="*", left=before, right=found.factor)
        elif found.operator is None:
            value = _sum("+", _product("*", found.factor, before), found.term)
        own = dict.fromkeys(found.before, replace(target, kind=AccessKind.READ))
        return self._made(maps, 2 * number + 1, value, own, target)

    def _at_ends(self) -> Statement:
        """Return what sets the last element of each chunk."""
        old, ends = self.old, self.parts[self.ends]
        before = self._moved(old.accesses[min(self.found.before)], self.begins)
        target = self._moved(old.write, ends)
        chunks = [self._element(one, ends, AccessKind.READ) for one in self._arrays]
        if self.found.operator is None:
            value = _sum("+", _product("*", Read(access=3), Read(access=1)), Read(access=2))
        else:
            value = combined(self.found.operator, Read(access=1), Read(access=2))
        made = self._made(ends, _PLACES - 2, _ZERO, {}, target)
        return replace(made, accesses=(target, before, *chunks), value=value)

    def _inside(self) -> Statement:
        old = self.old
        maps = self.parts[old.name]
        moved = {k: self._moved(one, maps) for k, one in enumerate(old.accesses)}
        made = self._made(maps, _PLACES - 1, old.value, moved, moved[0], every=True)
        return replace(
            made, text=old.text, recomputed=tuple(self._moved(one, maps) for one in old.recomputed)
        )

    def _made(
        self,
        maps: isl.Map,
        place: int,
        value: Expression,
        others: Mapping[int, Access],
        target: Access,
        *,
        every: bool = False,
    ) -> Statement:
        """Return a statement that writes a target, at a place among those of the recurrence.

        Args:
            maps: its instances, to those of the recurrence.
            place: its place.
            value: what it writes, by the accesses of the recurrence.
            others: what it accesses instead.
            target: what it writes.
            every: whether accesses keep their numbers, whatever the value reads.
        """
        old = self.old
        reads = range(1, len(old.accesses)) if every else dict.fromkeys(reads_in(value))
        accesses = [others.get(k) or self._moved(old.accesses[k], maps) for k in reads]
        numbers = {k: at for at, k in enumerate(reads, start=1)}
        loops, domain = self._loops_of(maps), maps.domain()
        return replace(
            old,
            name=domain.get_tuple_name(),
            loops=loops,
            domain=with_names(domain, SET, loops),
            schedule=self._time(loops, place, domain),
            accesses=(target, *accesses),
            value=self._anew(value, maps, numbers),
            text=f"{target.text}: {self.length} steps of {old.text}",
            ppcg_name="",
            recomputed=(),
            chunk=self.length,
        )

    def _loops_of(self, maps: isl.Map) -> Names:
        return self._steps if maps.dim(IN) == len(self._steps) else self._whole

    def _moved(self, access: Access, maps: isl.Map) -> Access:
        return moved(access, maps, self._loops_of(maps))

    def _element(self, array: str, maps: isl.Map, kind: AccessKind) -> Access:
        """Return the access to the element of a chunk."""
        found = element_of(self.old, maps.domain(), self._loops_of(maps), array, self._moving())
        return replace(found, kind=kind)

    def _moving(self) -> Names:
        """Return the loops that tell chunks apart: those that move what is written."""
        still = still_loops(self.old)
        return tuple(one for one in self._whole if one not in still)

    def _array(self, name: str) -> Array:
        touched = self._element(name, self.parts[self.ends], AccessKind.WRITE)
        return local_array(touched, self.scop.array(self.old.write.array).element_type)

    def _anew(self, value: Expression, maps: isl.Map, reads: Mapping[int, int]) -> Expression:
        """Return a value in the counters of a new statement."""
        return anew(value, maps, lambda k: Read(access=reads[k]))

    # -- time

    def _time(self, loops: Names, place: int, domain: isl.Set) -> isl.Map:
        """Return when a new statement runs: place by place, chunk by chunk."""
        at = 2 * self.found.at
        forms = map(affine_form, output_affs(self.old.schedule))
        texts = ["0" if form is None else affine_text(form) for form in forms]
        within = self.found.loop if loops == self._steps else "0"
        own = f"{_PLACES} * ({texts[at]}) + {place}"
        times = [*texts[:at], own, self._chunk, "0", within, *texts[at + 2 :]]
        name = domain.get_tuple_name()
        relation = self._read(f"{name}[{', '.join(loops)}] -> [{', '.join(times)}]")
        return relation.intersect_domain(domain)

    def _later(self, statement: Statement) -> Statement:
        """Return another statement of the region, with room between places and a longer time."""
        times = [f"t{k}" for k in range(statement.schedule.dim(OUT))]
        at = 2 * self.found.at
        then = [f"{_PLACES} * {one}" if k == at else one for k, one in enumerate(times)]
        longer = self._read(f"[{', '.join(times)}] -> [{', '.join([*then, '0', '0'])}]")
        return replace(statement, schedule=statement.schedule.apply_range(longer))


def map_of(statement: Statement, text: str) -> isl.Map:
    """Return a map of the instances of a statement, or of what is made of them."""
    parameters = ", ".join(parameter_names(statement.domain))
    return isl.Map.read_from_str(statement.domain.get_ctx(), f"[{parameters}] -> {{ {text} }}")


def element_of(
    old: Statement, domain: isl.Set, loops: Names, array: str, subscripts: Sequence[str]
) -> Access:
    """Return the read of an element by a new statement that is made of an old one."""
    name = domain.get_tuple_name()
    relation = map_of(old, f"{name}[{', '.join(loops)}] -> {array}[{', '.join(subscripts)}]")
    return Access(
        array=array,
        kind=AccessKind.READ,
        relation=with_names(relation.intersect_domain(domain), IN, loops),
        text=array + "".join(f"[{one}]" for one in subscripts),
        span=old.write.span,
    )


def anew(
    value: Expression,
    maps: isl.Map,
    read: Callable[[int], Expression],
    swaps: Mapping[int, Expression] | None = None,
) -> Expression:
    """Return a value in the counters of a new statement, some nodes swapped by their identity.

    Args:
        value: of an old statement.
        maps: the instances of the new one, to those of the old one.
        read: returns what stands where the access of a number is read.
        swaps: what stands where a node is.
    """
    function = isl.PwMultiAff.from_map(maps).gist(maps.domain()).as_multi_aff()

    def part(node: Expression) -> Expression:
        if swaps and id(node) in swaps:
            return swaps[id(node)]
        if isinstance(node, Read):
            return read(node.access)
        if isinstance(node, AffineValue):
            return replace(node, value=node.value.pullback_multi_aff(function))
        return rebuilt(node, part)

    return part(value)


def local_array(written: Access, kind: ElementType) -> Array:
    """Return the array of a region's own that an access writes all of."""
    elements = written.relation.range().coalesce()
    extent = with_names(elements, SET, (f"d{k}" for k in range(elements.n_dim())))
    return Array(
        name=written.array,
        element_type=kind,
        extent=extent,
        n_dims=extent.n_dim(),
        is_local=True,
        origin="local",
        source_name=written.array,
    )


def moved(access: Access, maps: isl.Map, loops: Names) -> Access:
    """Return what instances of a new statement, with some loops, access as those they map to."""
    relation = with_names(maps.apply_range(access.relation), IN, loops)
    forms = [affine_form(one) for one in output_affs(relation)]
    subscripts = "".join(f"[{affine_text(one)}]" for one in forms if one is not None)
    text = access.text if None in forms else access.array + subscripts
    return replace(access, relation=relation, text=text)


def combined(operator: str, before: Expression, chunk: Expression) -> Expression:
    """Return two values combined: the one before a chunk, and what the chunk comes to."""
    if operator in ("max", "min"):
        sign = ">" if operator == "max" else "<"
        passes = Binary(operator=sign, left=chunk, right=before)
        return Select(condition=passes, if_true=chunk, if_false=before)
    if operator.startswith("f"):
        return Call(function=operator, arguments=(before, chunk))
    return Binary(operator=operator, left=before, right=chunk)


def literal(value: float, kind: ElementType) -> Expression:
    """Return a number as C spells it: what is not finite a product, the least a difference."""
    suffix = _SUFFIXES.get(kind, "")
    large = "1e38f * 1e38f" if suffix == "f" else "1e308 * 1e308"
    if not kind.is_floating:
        text = f"{int(value)}{suffix}" if value >= 0 else f"(-{-int(value) - 1}{suffix} - 1)"
    elif math.isnan(value):
        text = f"({large} * 0.0{suffix})"
    elif math.isinf(value):
        text = f"({large})" if value > 0 else f"(-({large}))"
    else:
        text = f"{value:.1f}{suffix}"
    return Literal(text=text, element_type=kind)


_SUFFIXES = {
    ElementType.FLOAT: "f",
    ElementType.UINT32: "u",
    ElementType.INT64: "l",
    ElementType.UINT64: "ul",
}


# -- checks ------------------------------------------------------------------------------------


def check_chunks(before: Scop, after: Scop, chunks: _Chunks) -> None:
    """Check that a region with chunks computes what it did, from the values that it read.

    What writes the recurrence's elements is a partition of it; what a chunk comes to is of all of
    its steps, one after the other; operands have the values that they had, and each element is
    written in the same order.

    Raises:
        InternalError: ``EATSS-P901``.
    """
    sources = sources_of(before, after, chunks.parts)
    faults = {
        "runs other instances": _is_partition(chunks),
        "combines other steps": _are_whole(after, chunks),
        "writes in another order": keeps_writes(before, after, sources),
        "reads other values": keeps_reads(before, after, sources, chunks.repeats),
    }
    for fault, fine in faults.items():
        if not fine:
            message = f"{chunks.old.name} in chunks {fault}"
            raise internal_error("EATSS-P901", message, span=chunks.old.span)


def _is_partition(chunks: _Chunks) -> bool:
    inside, ends = chunks.parts[chunks.old.name], chunks.parts[chunks.ends]
    whole = inside.range().union(ends.range())
    return (
        inside.range().is_disjoint(ends.range())
        and whole.is_equal(chunks.old.domain)
        and all(one.is_injective() for one in chunks.parts.values())
    )


def _are_whole(after: Scop, chunks: _Chunks) -> bool:
    """Tell whether what is combined is all steps of a chunk, and comes to its end."""
    steps = _steps(chunks.old, chunks.found.at, chunks.found.step)
    flow, ends = flow_to_reads(after), after.statement(chunks.ends)
    fine = True
    for name in [*chunks.parts][2:]:
        own, part = after.statement(name), chunks.parts[name]
        array = own.write.array
        to_ends = part.intersect_domain(_at(own.domain, chunks.position, chunks.length - 1))
        to_ends = to_ends.apply_range(chunks.parts[chunks.ends].reverse())
        fine = fine and flow[chunks.ends, _read_of(ends, array)].is_equal(to_ends.to_union_map())
        fine = fine and to_ends.range().is_equal(ends.domain)
        fine = fine and chunks.first_step(name).is_equal(chunks.begins)
        taken_up = flow[name, _read_of(own, array)]
        fine = fine and taken_up.range().is_equal(own.domain.to_union_set())
        for one in maps_of(taken_up.intersect_domain(own.domain.to_union_set())):
            fine = fine and one.apply_domain(part).apply_range(part).is_subset(steps)
    return fine


def _read_of(statement: Statement, array: str) -> int:
    """Return which access of a statement reads an array."""
    return next(k for k, one in enumerate(statement.accesses) if k and one.array == array)


def _from_zero(domain: isl.Set, position: int) -> isl.Set:
    return domain.lower_bound_val(SET, position, isl.Val.zero(domain.get_ctx()))


def _at(domain: isl.Set, position: int, value: int) -> isl.Set:
    return domain.fix_val(SET, position, big_value(domain.get_ctx(), value))


Repeats: TypeAlias = Callable[[Statement, Access], Sequence[tuple[isl.Map, Statement]]]
"""What a read of a changed region repeats: instances of a statement of the source, by its own."""


def keeps_writes(before: Scop, after: Scop, sources: isl.UnionMap) -> bool:
    """Tell whether elements are written in the order of the source by what does there."""
    found = writes_in_order(after).apply_domain(sources).apply_range(sources)
    still = sources.range()
    return bool(
        found.is_equal(writes_in_order(before).intersect_domain(still).intersect_range(still))
    )


def sources_of(before: Scop, after: Scop, parts: Mapping[str, isl.Map]) -> isl.UnionMap:
    """Map what writes an array of the source to the instances that do there.

    Statements of ``parts`` are changed: these are their instances.
    """
    arrays = before.used_arrays
    found = before.no_relation
    for one in after.statements:
        if one.write.array in arrays:
            found = found.union(parts.get(one.name, one.domain.identity()))
    return found


def keeps_reads(before: Scop, after: Scop, sources: isl.UnionMap, repeats: Repeats) -> bool:
    """Tell whether each read of the source's arrays has the values of all that it repeats."""
    first, then = flow_to_reads(before), flow_to_reads(after)
    for one in after.statements:
        for at, access in enumerate(one.accesses):
            if not at or access.array not in before.used_arrays:
                continue
            found = then[one.name, at].apply_domain(sources)
            for part, source in repeats(one, access):
                was = _place_of(access.relation, part, source)
                if was is None:
                    return False
                expected = first[source.name, was].intersect_range(part.range().to_union_set())
                if not found.apply_range(part.to_union_map()).is_equal(expected):
                    return False
    return True


def _place_of(relation: isl.Map, part: isl.Map, source: Statement) -> int | None:
    """Return which read of the source is of the same elements, ``None`` where none is."""
    return next(
        (
            at
            for at, one in enumerate(source.accesses)
            if at and relation.is_equal(part.apply_range(one.relation))
        ),
        None,
    )

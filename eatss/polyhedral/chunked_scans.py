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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import islpy as isl

from eatss.base.diagnostics import internal_error
from eatss.base.frozen import Names, frozen
from eatss.base.trees import free_name
from eatss.polyhedral.expression import (
    FLOATING,
    Binary,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Unary,
    combiner_of,
    preorder,
    reads_in,
)
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    AffineForm,
    affine_form,
    affine_text,
    at_values,
    dims_as_parameters,
    integer,
    leading_dims,
    map_between,
    maps_of,
    output_affs,
    parameter_bound,
    with_names,
)
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.parts import (
    PLACES,
    New,
    Parts,
    combined,
    keeps_reads,
    keeps_writes,
    moved,
    sources_of,
    still_loops,
)
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.program.expression import SizePairs

_ONE = Literal(text="1.0f", element_type=ElementType.FLOAT)
_ZERO = replace(_ONE, text="0.0f")


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
    own, start = (statement.name, statement.loops), f"{loop} = {affine_text(form)}"
    begins = map_between(statement.domain, own, own, start).domain()
    first = statement.domain.subtract(_within_rows(statement, at, step).range())
    return form if first.is_subset(begins) else None


def _within_rows(statement: Statement, at: int, step: int) -> isl.Map:
    """Map each instance to the next of its row."""
    own = statement.domain
    return _steps(statement, at, step).intersect_domain(own).intersect_range(own)


def _steps(statement: Statement, at: int, step: int) -> isl.Map:
    """Return what maps each instance to the next of its row, there or not."""
    loops = statement.loops
    then = [f"{one} + {step}" if k == at else one for k, one in enumerate(loops)]
    return map_between(statement.domain, (statement.name, loops), (statement.name, then))


def _is_injective(statement: Statement) -> bool:
    """Tell whether each instance writes an element of its own, between loops that move it."""
    relation = statement.write.relation
    for loop in still_loops(statement):
        relation = relation.insert_dims(OUT, 0, 1)
        relation = relation.equate(IN, statement.loops.index(loop), OUT, 0)
    return bool(relation.is_injective())


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


class _Chunks(Parts):
    """Makes chunks of one recurrence of a region.

    ``parts`` map instances of new statements to those of the source: of the statement inside of
    chunks and at the ends of them, which write what it writes, and of those that work out what a
    chunk comes to. ``starts`` maps ends of chunks to their first steps.
    """

    def __init__(self, scop: Scop, found: Recurrence, length: int) -> None:
        own, loop = found.statement, found.loop
        called = ("chunks",) if found.operator else ("chunks", "factors")
        super().__init__(
            scop, [own for _ in called], found.at, found.start, length, called,
            step=found.step, told=f"{length} steps",
        )  # fmt: skip
        self.found, self.ends = found, free_name(ends_of(own.name), self.taken)
        inside = self.map(own, own.name, loop, f"0 <= {loop} < {length - 1}")
        ends = self.map(own, self.ends, str(length - 1))
        self.parts = {own.name: inside, self.ends: ends}
        for _, every in self.names:  # of whole chunks
            there = ends.domain().insert_dims(SET, found.at + 1, 1).set_tuple_name(every)
            self.parts[every] = super().steps(own, every).intersect_domain(there)
        self.starts = self.map(own, self.ends, "0").intersect_domain(ends.domain())

    def repeats(self, statement: Statement, _: Access) -> Sequence[tuple[isl.Map, Statement]]:
        """Return what a read of a statement repeats."""
        if statement.name == self.ends:
            return [(self.starts, self.old)]
        part = self.parts.get(statement.name)
        own = (statement.domain.identity(), statement)
        return [own if part is None else (part, self.old)]

    def steps(self, own: Statement, name: str) -> isl.Map:
        """Map the steps of whole chunks to the instances of the recurrence."""
        return self.parts[name]

    def begins(self, own: Statement, name: str) -> isl.Map:
        """Map whole chunks to their first steps."""
        return with_names(self.starts.set_tuple_name(IN, name), IN, self.loops(own, every=False))

    def to_step(self, name: str, step: int) -> isl.Map:
        """Map the ends of chunks to a step of them, instances of a statement of ``all`` steps."""
        every, whole = (self.loops(self.old, every=one) for one in (True, False))
        then = [str(step) if one == self.found.loop else one for one in every]
        ends = self.parts[self.ends].domain()
        return map_between(ends, (self.ends, whole), (name, then)).intersect_domain(ends)

    def subscripts(self, own: Statement) -> Names:
        """Return the loops that tell chunks apart: those that move what is written."""
        still = still_loops(own)
        return tuple(one for one in self.loops(own, every=False) if one not in still)

    def neutral(self, number: int) -> float:
        """Return what no steps come to, a value or a factor."""
        kind = self.scop.types[self.old.write.array]
        combiner = combiner_of(self.found.operator or "", kind)
        return number if combiner is None else combiner.neutral(kind)

    def taking_in(self, number: int, new: New, before: Read) -> Expression:
        """Return what a chunk comes to with a step more: its value, or its factor."""
        found, value = self.found, self.old.value
        read: Expression = Read(access=min(found.before))
        if found.operator is None and number:
            value = Binary(operator="*", left=read, right=found.factor)
        elif found.operator is None:
            value = _sum("+", _product("*", found.factor, read), found.term)
        own = (one for one in preorder(value) if isinstance(one, Read))
        return new.copied(value, {id(one): before for one in own if one.access in found.before})

    def in_use(self, own: Statement) -> list[Statement]:
        """Return what sets the last element of each chunk, and all others."""
        if own is not self.old:
            return [self.later(own)]
        new = New(own, self.parts[self.ends])
        before = moved(own.accesses[min(self.found.before)], self.starts, new.loops)
        parts = (self.element(number, new) for number in range(len(self.arrays)))
        first, chunk, *factor = map(new.read, (before, *parts))
        if self.found.operator is None:
            value = _sum("+", _product("*", factor[0], first), chunk)
        else:
            value = combined(self.found.operator, first, chunk)
        ends = self.made(new, new.moved(own.write), value, PLACES - 2)
        new = New(own, self.parts[own.name])
        value = new.copied(own.value)
        inside = self.made(new, new.moved(own.write), value, PLACES - 1)
        recomputed = tuple(map(new.moved, own.recomputed))
        return [ends, replace(inside, text=own.text, recomputed=recomputed)]


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
    flow, ends, fine = flow_to_reads(after), after.statement(chunks.ends), True
    for _, name in chunks.names:
        own, part = after.statement(name), chunks.parts[name]
        array, last = own.write.array, chunks.to_step(name, chunks.length - 1)
        before = flow[name, _read_of(own, array)]
        fine = (
            fine
            and flow[chunks.ends, _read_of(ends, array)].is_equal(last.reverse().to_union_map())
            and last.apply_range(part).is_equal(chunks.parts[chunks.ends])
            and chunks.to_step(name, 0).apply_range(part).is_equal(chunks.starts)
            and before.range().is_equal(own.domain.to_union_set())
            and all(
                one.apply_domain(part).apply_range(part).is_subset(steps)
                for one in maps_of(before.intersect_domain(own.domain.to_union_set()))
            )
        )
    return fine


def _read_of(statement: Statement, array: str) -> int:
    """Return which access of a statement reads an array."""
    return next(k for k, one in enumerate(statement.accesses) if k and one.array == array)

"""Recurrences along a loop are cut into chunks that run at once: scans of one pass become three.

``for (t …) y[t] = a[t] * y[t - 1] + b[t];`` runs step by step. Chunks of ``T`` steps do not: what a
chunk makes of the element before it is an affine function, whose composition is associative
[Blelloch 1990]:

    for (k …) for (t in chunk k) F[k] *= a[t], V[k] = a[t] * V[k] + b[t];
    for (k …) y[last of k] = F[k] * y[last of k - 1] + V[k];
    for (k …) for (t in chunk k but its last) y[t] = a[t] * y[t - 1] + b[t];

Running sums, products, maxima and minima need no ``F``, and add up ``V`` in any order. A recurrence
of order ``m``, ``a1[t] * y[t - 1] + … + am[t] * y[t - m] + b[t]``, takes ``m`` steps an iteration:
``V`` is ``m`` elements in turn, each the last of its steps and in place of that ``m`` steps before,
and ``F`` as many for each of the ``m`` elements in front of a chunk. Its last ``m`` are ends.

    for (K …) for (k in chunk K) W[k] = F[k] * W[k - 1] + V[k];      (matrices, W of no ends first)
    for (K …) y[last ends of K] = W[last of K] * y[last ends of K - 1];
    for (K …) for (k in chunk K but its last) y[ends of k] = W[k] * y[last ends of K - 1];

Steps within a chunk run as they did. What is not finite in ``F`` or ``V`` alone may show in ``y``,
as in sums that are added up in another order: ``F`` is a product of a chunk's matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations
from math import prod
from typing import TypeAlias

import islpy as isl

from eatss.base.diagnostics import internal_error
from eatss.base.frozen import Names, Numbers, frozen, their_names
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
from eatss.polyhedral.scop import MOST_ORDER, Access, Place, Scop, Statement
from eatss.program.expression import SizePairs

_ONE = Literal(text="1.0f", element_type=ElementType.FLOAT)
_ZERO = replace(_ONE, text="0.0f")


@frozen
class Recurrence:
    """A statement whose instances read what a few before them in their row wrote.

    ``at`` is the loop along rows, by its number, and ``start`` where rows begin; the step is 1 up
    or -1 down. ``before`` are the accesses that do, each with how many steps before; the most is
    the ``order``. ``operator`` is what combines what the one before wrote with the rest in any
    order, else the value is the sum of ``parts``: of products of each with what was written so
    many steps before, and of what stands at 0.
    """

    statement: Statement
    at: int
    step: int
    start: AffineForm
    before: tuple[tuple[int, int], ...]
    operator: str | None
    parts: _Affine

    @property
    def loop(self) -> str:
        """The name of the loop along rows."""
        return self.statement.loops[self.at]

    @property
    def order(self) -> int:
        """How many elements before it a step needs."""
        return max(steps for _, steps in self.before)

    @property
    def furthest(self) -> int:
        """The access that reads the element that is the most steps before."""
        return next(access for access, steps in self.before if steps == self.order)


# -- what is a recurrence ----------------------------------------------------------------------


def recurrences(scop: Scop) -> Iterator[Recurrence]:
    """Yield the recurrences of a region that may be cut into chunks."""
    flow = None
    for statement in scop.statements:
        found = _recurrence(scop, statement)
        if found is None or not is_alone(scop, found.statement, found.at):
            continue
        flow = flow_to_reads(scop) if flow is None else flow
        before = ((flow[statement.name, at], steps) for at, steps in found.before)
        if all(_is_from_steps_before(found, *one) for one in before):
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
    read = [k for k in own if not relations[k].is_equal(relations[0])]
    ways = _moved(statement, [relations[k] for k in read])
    if len(ways) != 1 or kind is ElementType.HALF or not _is_injective(statement):
        return None
    at, step, distances = ways[0]
    before, operator = dict(zip(read, distances, strict=True)), None
    if {*distances} == {1}:
        operator = _operator(statement, own, before, kind)
    start = _start(statement, at, step)
    parts: _Affine = {}
    try:
        if operator is None:
            affine = _affine(statement.value, before, kind)
            parts = {steps: one for steps, one in affine.items() if one != _ZERO}
    except _NotAffineError:
        return None
    if start is None or (operator is None and (kind not in FLOATING or max(parts, default=0) == 0)):
        return None
    return Recurrence(
        statement=statement,
        at=at,
        step=step,
        start=start,
        before=tuple(before.items()),
        operator=operator,
        parts=parts,
    )


def _moved(statement: Statement, reads: Sequence[isl.Map]) -> list[tuple[int, int, Numbers]]:
    """Return along which loops, and which way, all reads are of what steps before wrote.

    With how many steps before for each.
    """
    write = statement.write.relation
    written, *others = (
        [affine_form(one) for one in output_affs(relation)] for relation in (write, *reads)
    )
    pairs = [[(w, o) for w, o in zip(written, one, strict=True) if w and o] for one in others]
    if not others or any(
        len(one) < max(1, len(written)) or any(w[:2] != o[:2] for w, o in one) for one in pairs
    ):
        return []
    found = list[tuple[int, int, Numbers]]()
    for at, loop in enumerate(statement.loops):
        for step in (1, -1):
            distances = [
                steps
                for one in pairs
                for steps in range(1, MOST_ORDER + 1)
                if all(
                    o.constant - w.constant == -step * steps * dict(w.coefficients).get(loop, 0)
                    for w, o in one
                )
            ]
            if len(distances) == len(pairs):
                found.append((at, step, tuple(distances)))
    return found


def _operator(
    statement: Statement, own: Sequence[int], before: Collection[int], kind: ElementType
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
    """Map each instance to the one of its row a step on, or several."""
    own = statement.domain
    return _steps(statement, at, step).intersect_domain(own).intersect_range(own)


def _steps(statement: Statement, at: int, step: int) -> isl.Map:
    """Return what maps each instance to the one of its row a step on, there or not."""
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
    """A value is no affine function of the elements before."""


_Affine: TypeAlias = Mapping[int, Expression]
"""By what a value multiplies elements so many steps before, and at 0 what it adds to that."""


def _affine(value: Expression, before: Mapping[int, int], kind: ElementType) -> _Affine:
    """Return a value that is stored as a type as an affine function of the elements before.

    Raises:
        _NotAffineError: it is none.
    """
    if not _needs(value, before):
        return {0: value}
    made: Callable[[Expression], Expression]
    match value:
        case Read(access=access):
            return {before[access]: _ONE}
        case Binary(operator="+" | "-" as sign, left=left, right=right):
            one, other = (_affine(own, before, kind) for own in (left, right))
            return {
                steps: _sum(sign, one.get(steps, _ZERO), other.get(steps, _ZERO))
                for steps in sorted({*one, *other})
            }
        case Unary(operator="-", operand=inner):
            made = partial(_sum, "-", _ZERO)
        case Cast(element_type=wide, operand=inner) if _keeps(wide, kind):
            made = partial(_converted, value)
        case Binary(operator="*", left=left, right=inner) if not _needs(left, before):
            made = partial(_product, "*", left)
        case Binary(operator="*" | "/" as sign, left=inner, right=right) if not _needs(
            right, before
        ):
            made = partial(_scaled, sign, right)
        case _:
            raise _NotAffineError
    return {steps: made(one) for steps, one in _affine(inner, before, kind).items()}


def _needs(value: Expression, before: Mapping[int, int]) -> bool:
    return not before.keys().isdisjoint(reads_in(value))


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


def _scaled(sign: str, by: Expression, one: Expression) -> Expression:
    return _product(sign, one, by)


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


def _is_from_steps_before(found: Recurrence, flow: isl.UnionMap, steps: int) -> bool:
    """Tell whether each instance that has one so many steps before it reads what that wrote."""
    pairs = _within_rows(found.statement, found.at, steps * found.step)
    own = [one for one in maps_of(flow) if one.get_tuple_name(IN) == found.statement.name]
    return len(own) == 1 and bool(own[0].is_equal(pairs)) and not pairs.is_empty()


# -- chunks ------------------------------------------------------------------------------------


def with_chunked_scans(scop: Scop, lengths: Mapping[str, int]) -> Scop | None:
    """Return a region whose recurrences are cut into chunks.

    Args:
        scop: the region.
        lengths: the steps of a chunk, by the name of the statement: at least two for each element
            before that one needs, as many for all.

    Returns:
        The region; ``None`` where a statement is no recurrence, or no chunk has ends.

    Raises:
        InternalError: ``EATSS-P901``, it would compute something else.
    """
    changed, several = scop, dict[str, _Chunks]()
    for name, length in lengths.items():
        chunks: _Chunks | _Ends | None = None
        if name in several:
            chunks = _Ends(changed, several[name], length)
        else:
            found = {one.statement.name: one for one in recurrences(changed)}
            if name in found and length % found[name].order == 0:
                chunks = _Chunks(changed, found[name], length)
                if chunks.order > 1:
                    several[chunks.ends[-1]] = chunks
        if chunks is None or chunks.parts[chunks.ends[-1]].is_empty():
            return None
        changed, before = chunks.region(), changed
        check_chunks(before, changed, chunks)
    return replace(changed, written=scop.written or scop) if lengths else scop


def ends_of(name: str) -> str:
    """Return what the recurrence over the ends of a statement's chunks is called."""
    return f"{name}_ends"


class _Cut(Parts):
    """Makes chunks of what each needs the ``order`` elements before it.

    What these are read as in a chunk is known by a value and ``order`` factors for each.
    """

    order: int

    def subscripts(self, own: Statement) -> Names:
        """Return the loops that tell chunks apart: those that move what is written."""
        still = still_loops(own)
        return tuple(one for one in self.loops(own, every=False) if one not in still)

    def neutral(self, number: int) -> float:
        """Return what no steps come to, a value or a factor."""
        by, at = divmod(number, self.order)
        return float(by == self.order - at)

    def takes_all_before(self, end: Statement) -> bool:
        """Tell whether an end of chunks reads all elements in front of its chunk."""
        read = [one.relation for one in end.accesses[1:] if one.array == self.old.write.array]
        apart = not any(one.is_equal(other) for one, other in combinations(read, 2))
        return apart and len(read) == self.order


class _Chunks(_Cut):
    """Makes chunks of one recurrence of a region.

    ``parts`` map instances of new statements to those of the source: of the statement inside of
    chunks and at the ``ends`` of them, which write what it writes, and of those that work out what
    a chunk comes to: for each of its ends a value, and a factor for each element before it.
    """

    def __init__(self, scop: Scop, found: Recurrence, length: int) -> None:
        own, loop, self.order = found.statement, found.loop, found.order
        called = ["chunks"] * self.order
        if not found.operator:
            called += ["factors"] * self.order**2
        super().__init__(
            scop, [own for _ in called], found.at, found.start, length, called,
            step=found.step, beside=self.order, told=f"{length} steps",
        )  # fmt: skip
        self.found, turns = found, length // self.order
        inside = self.map(own, own.name, loop, f"0 <= {loop} < {length - self.order}")
        self.ends = [free_name(ends_of(own.name), self.taken) for _ in range(self.order)][::-1]
        self.parts = {own.name: inside}
        for at, end in enumerate(self.ends):
            self.parts[end] = self.map(own, end, str(length - self.order + at))
        first = self.parts[self.ends[0]].domain()
        for number, (_, every) in enumerate(self.names):  # of chunks with ends
            at = number % self.order
            turn = self.map(own, every, f"{self.order} * {loop} + {at}", f"0 <= {loop} < {turns}")
            there = first.insert_dims(SET, found.at + 1, 1).set_tuple_name(every)
            self.parts[every] = turn.intersect_domain(there)

    def to_step(self, name: str, step: int) -> isl.Map:
        """Map chunks that have an end, or the first of theirs, to a step of theirs."""
        ends = self.parts[name if name in self.ends else self.ends[0]].domain()
        whole = self.map(self.old, name, str(step))
        return whole.intersect_domain(ends.set_tuple_name(name))

    def before(self, end: str) -> list[tuple[isl.Map, Access]]:
        """Return what an end reads of what is before its chunk, the nearest first, and who did."""
        access, steps = self.old.accesses[self.found.furthest], range(self.order)[::-1]
        read = [self.to_step(end, step) for step in steps]
        return [(one, moved(access, one, self.loops(self.old, every=False))) for one in read]

    def repeats(self, statement: Statement, access: Access) -> Sequence[tuple[isl.Map, Statement]]:
        """Return what a read of a statement repeats."""
        if statement.name in self.ends:
            *nearer, (furthest, _) = self.before(statement.name)
            same = (by for by, one in nearer if one.relation.is_equal(access.relation))
            return [(next(same, furthest), self.old)]
        part = self.parts.get(statement.name)
        own = (statement.domain.identity(), statement)
        return [own if part is None else (part, self.old)]

    def steps(self, own: Statement, name: str) -> isl.Map:
        """Map what a chunk's steps are taken in by to the instances of the recurrence."""
        return self.parts[name]

    def begins(self, own: Statement, name: str) -> isl.Map:
        """Map chunks with ends to their first steps."""
        return self.to_step(name, 0)

    def to_turn(self, end: str, name: str, turn: int) -> isl.Map:
        """Map an end of chunks to what takes in a step of them, one of those in turn."""
        every, whole = (self.loops(self.old, every=one) for one in (True, False))
        then = [str(turn) if one == self.found.loop else one for one in every]
        ends = self.parts[end].domain()
        return map_between(ends, (end, whole), (name, then)).intersect_domain(ends)

    def neutral(self, number: int) -> float:
        """Return what no steps come to, a value or a factor."""
        kind = self.scop.types[self.old.write.array]
        combiner = combiner_of(self.found.operator or "", kind)
        return super().neutral(number) if combiner is None else combiner.neutral(kind)

    def taking_in(self, number: int, new: New, before: Read) -> Expression:
        """Return what a chunk comes to with a step more: a value of it, or a factor."""
        found, (by, at) = self.found, divmod(number, self.order)
        swaps = dict[int, Expression]()
        if found.operator is not None:
            accesses = dict(found.before)
            reads = (one for one in preorder(self.old.value) if isinstance(one, Read))
            swaps |= {id(one): before for one in reads if one.access in accesses}
            return new.copied(self.old.value, swaps)
        value = _ZERO if by else found.parts.get(0, _ZERO)
        for steps in sorted({*found.parts} - {0}, reverse=True):
            one, factor = Read(access=found.furthest), found.parts[steps]
            there = self.order * by + (at - steps) % self.order
            swaps[id(one)] = before if there == number else new.read(self.element(there, new))
            scaled = _product("*", factor, one)
            if by:
                scaled = Binary(operator="*", left=one, right=factor)
            value = _sum("+", scaled, value)
        return new.copied(value, swaps)

    def in_use(self, own: Statement) -> list[Statement]:
        """Return what sets the last elements of each chunk, and all others."""
        if own is not self.old:
            return [self.later(own)]
        ends = [self._end(end, at) for at, end in enumerate(self.ends)]
        new = New(own, self.parts[own.name])
        value = new.copied(own.value)
        inside = self.made(new, new.moved(own.write), value, PLACES - 1)
        recomputed = tuple(map(new.moved, own.recomputed))
        return [*ends, replace(inside, text=own.text, recomputed=recomputed)]

    def _end(self, end: str, at: int) -> Statement:
        new = New(self.old, self.parts[end])
        before = [new.read(one) for _, one in self.before(end)]
        numbers = range(at, len(self.arrays), self.order)
        chunk, *factors = (new.read(self.element(number, new)) for number in numbers)
        value = _applied(factors, before, chunk)
        if self.found.operator is not None:
            value = combined(self.found.operator, before[0], chunk)
        return self.made(new, new.moved(self.old.write), value, PLACES - 2, at)

    # checks

    def pieces(self) -> list[tuple[Statement, Names]]:
        """Return the statements that are cut, and what runs their instances."""
        return [(self.old, (self.old.name, *self.ends))]

    def are_whole(self, after: Scop) -> bool:
        """Tell whether what is combined is all steps of a chunk, and comes to its ends."""
        flow, turns = flow_to_reads(after), self.length // self.order
        fine = all(self.takes_all_before(after.statement(end)) for end in self.ends)
        for number, (_, name) in enumerate(self.names):
            by, at = divmod(number, self.order)
            own, end, part = after.statement(name), after.statement(self.ends[at]), self.parts[name]
            last, first = (self.to_turn(end.name, name, turn) for turn in (turns - 1, 0))
            came = _read(self.scop, flow, end, own.write.array)
            fine = (
                fine
                and came.is_equal(last.reverse().to_union_map())
                and last.apply_range(part).is_equal(self.parts[end.name])
                and first.apply_range(part).is_equal(self.to_step(end.name, at))
            )
            for other in range(self.order):
                array = self.arrays[self.order * by + other]
                if any(one.array == array for one in own.accesses[1:]):
                    fine = fine and self._are_steps(own, number, other - at, flow)
        return fine

    def _are_steps(
        self, own: Statement, number: int, behind: int, flow: Mapping[Place, isl.UnionMap]
    ) -> bool:
        """Tell whether what takes in a step has what another did as many before, if one did."""
        _, name = self.names[number + behind]
        later = own.domain
        if behind >= 0:
            later = later.subtract(self.to_turn(self.ends[0], own.name, 0).range())
        steps = (-behind) % self.order or self.order
        on = _steps(self.old, self.found.at, steps * self.found.step)
        read = _read(self.scop, flow, own, self.arrays[number + behind])
        return _come_from(read, self.parts[name], self.parts[own.name], later, on)


class _Ends(_Cut):
    """Makes chunks of the several ends of chunks.

    What the first ends of a chunk of them come to is known for each of them: a value, and a factor
    for each element before the chunk. So its last ends, which are ``ends``, are a recurrence, and
    all others are at once. ``parts`` are as those of chunks.
    """

    def __init__(self, scop: Scop, chunks: _Chunks, length: int) -> None:
        self.order, self.found = chunks.order, chunks.found
        ends = [scop.statement(one) for one in chunks.ends]
        numbers = len(chunks.arrays)
        at = chunks.found.at
        super().__init__(
            scop, [ends[k % self.order] for k in range(numbers)], at,
            AffineForm(coefficients=(), parameters=(), constant=0), length,
            [*["ends"] * self.order, *["ends_factors"] * (numbers - self.order)],
            beside=self.order, told=f"{length} ends",
        )  # fmt: skip
        self.every, self.loop = ends, ends[0].loops[at]
        self.ends = [free_name(ends_of(one.name), self.taken) for one in ends]
        self.within = f"0 <= {self.loop} < {length - 1}"
        self.parts = {own.name: self.map(own, own.name, self.loop, self.within) for own in ends} | {
            name: self.map(own, name, str(length - 1))
            for own, name in zip(ends, self.ends, strict=True)
        }
        for own, (_, name) in zip(self.owns, self.names, strict=True):
            self.parts[name] = self.steps(own, name)

    def begins(self, own: Statement, name: str) -> isl.Map:
        """Map chunks to their first ends, also where those have the first of several only."""
        return super().begins(self.every[0], name).set_tuple_name(OUT, own.name)

    def begin(self, own: Statement, name: str) -> isl.Map:
        """Map instances of new statements to the first end of their chunk."""
        inside = self.within if name == own.name else ""
        found = self.map(own, name, "0", inside)
        return found.intersect_domain(self.parts[name].domain())

    def repeats(self, statement: Statement, access: Access) -> Sequence[tuple[isl.Map, Statement]]:
        """Return what a read of a statement repeats."""
        for own, end in zip(self.every, self.ends, strict=True):
            if statement.name in (own.name, end):
                return [(self.begin(own, statement.name), own)]
        for own, (_, name) in zip(self.owns, self.names, strict=True):
            if statement.name == name:
                return [(self.parts[name], own)]
        return [(statement.domain.identity(), statement)]

    def element(self, number: int, new: New) -> Access:
        """Return the access to what ends so far come to, at first none."""
        name, inside = new.maps.get_tuple_name(IN), f"{self.loop} + 1"
        if name in self.ends:
            inside = str(self.length)
        elif any(name == first for first, _ in self.names):
            inside = "0"
        return new.element(self.arrays[number], [*self.subscripts(new.own), inside])

    def known(self, number: int, new: New) -> Access:
        """Return the access to what the ends before come to."""
        return new.element(self.arrays[number], [*self.subscripts(new.own), self.loop])

    def taking_in(self, number: int, new: New, before: Read) -> Expression:
        """Return what ends come to with those of a chunk more: a value of them, or a factor."""
        by, at = divmod(number, self.order)
        _, *reads = new.own.accesses
        chunk, *factors = (new.read(new.moved(one)) for one in reads[self.order :])
        known = [
            before if there == at else new.read(self.known(self.order * by + there, new))
            for there in range(self.order)[::-1]
        ]
        return _applied(factors, known, _ZERO if by else chunk)

    def in_use(self, own: Statement) -> list[Statement]:
        """Return what sets the last ends of each chunk, and all others."""
        if own not in self.every:
            return [self.later(own)]
        at, made = self.every.index(own), list[Statement]()
        for name, place in ((self.ends[at], PLACES - 2), (own.name, PLACES - 1)):
            new = New(own, self.parts[name])
            begin, reads = self.begin(own, name), own.accesses[1 : self.order + 1]
            before = [new.read(moved(one, begin, new.loops)) for one in reads]
            numbers = range(at, len(self.arrays), self.order)
            chunk, *factors = (new.read(self.element(number, new)) for number in numbers)
            value = _applied(factors, before, chunk)
            made.append(self.made(new, new.moved(own.write), value, place, at))
        return made

    # checks

    def pieces(self) -> list[tuple[Statement, Names]]:
        """Return the statements that are cut, and what runs their instances."""
        pairs = zip(self.every, self.ends, strict=True)
        return [(own, (own.name, end)) for own, end in pairs]

    def are_whole(self, after: Scop) -> bool:
        """Tell whether what is combined is all ends of a chunk up to one, and comes to that."""
        flow, ends = flow_to_reads(after), (*their_names(self.every), *self.ends)
        fine = all(self.takes_all_before(after.statement(end)) for end in ends)
        for number, (_, name) in enumerate(self.names):
            by, at = divmod(number, self.order)
            for reader in (self.every[at].name, self.ends[at]):
                read = _read(self.scop, flow, after.statement(reader), self.arrays[number])
                came = read.apply_domain(self.parts[name].to_union_map())
                fine = fine and came.is_equal(self.parts[reader].reverse().to_union_map())
            own = after.statement(name)
            first = self.map(self.every[at], name, "0", f"{self.loop} = 0")
            later = own.domain.subtract(first.domain())
            for other in range(self.order):
                there = self.order * by + other
                read = _read(self.scop, flow, own, self.arrays[there])
                parts = self.parts[self.names[there][1]], self.parts[name]
                fine = fine and _come_from(read, *parts, later, self._on(other, at))
        return fine

    def _on(self, one: int, other: int) -> isl.Map:
        """Map ends of a chunk to another end of the next."""
        own, then = self.every[one], self.every[other]
        loops = [f"{name} + 1" if name == self.loop else name for name in own.loops]
        return map_between(own.domain, (own.name, own.loops), (then.name, loops))


def _applied(
    factors: Sequence[Expression], before: Sequence[Expression], value: Expression
) -> Expression:
    """Return the sum of products of factors with what is before, the nearest last, and a value."""
    for factor, read in reversed([*zip(factors, before, strict=False)]):
        value = _sum("+", _product("*", factor, read), value)
    return value


# -- checks ------------------------------------------------------------------------------------


def check_chunks(before: Scop, after: Scop, chunks: _Chunks | _Ends) -> None:
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
        "combines other steps": chunks.are_whole(after),
        "writes in another order": keeps_writes(before, after, sources),
        "reads other values": keeps_reads(before, after, sources, chunks.repeats),
    }
    for fault, fine in faults.items():
        if not fine:
            message = f"{chunks.old.name} in chunks {fault}"
            raise internal_error("EATSS-P901", message, span=chunks.old.span)


def _is_partition(chunks: _Chunks | _Ends) -> bool:
    fine = all(one.is_injective() for one in chunks.parts.values())
    for own, names in chunks.pieces():
        pieces = [chunks.parts[one].range() for one in names]
        apart = all(one.is_disjoint(other) for one, other in combinations(pieces, 2))
        fine = fine and apart and reduce(isl.Set.union, pieces).is_equal(own.domain)
    return fine


def _come_from(
    read: isl.UnionMap, source: isl.Map, reader: isl.Map, later: isl.Set, on: isl.Map
) -> bool:
    """Tell whether all of a reader has a value, and what is later that of a source before it."""
    found = read.intersect_domain(source.domain().to_union_set())
    there = found.apply_domain(source.to_union_map()).apply_range(reader.to_union_map())
    return bool(
        read.range().is_equal(reader.domain().to_union_set())
        and found.range().is_equal(later.to_union_set())
        and there.is_subset(on.to_union_map())
    )


def _read(
    scop: Scop, flow: Mapping[Place, isl.UnionMap], statement: Statement, array: str
) -> isl.UnionMap:
    """Return where what a statement reads of an array comes from."""
    reads = enumerate(statement.accesses)
    found = (flow[statement.name, k] for k, one in reads if k and one.array == array)
    return reduce(isl.UnionMap.union, found, scop.no_relation)

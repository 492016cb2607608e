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
    preorder,
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
    dim_names,
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
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scop import Access, AccessKind, Scop, Statement
from eatss.polyhedral.split_sets import writes_in_order
from eatss.program.expression import SizePairs

_ONE = Literal(text="1.0f", element_type=ElementType.FLOAT)
_ZERO = replace(_ONE, text="0.0f")
PLACES = 8
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
        kinds = ("chunks",) if found.operator else ("chunks", "factors")
        name, loop = self.old.name, found.loop
        self._arrays = [free_name(f"{self.old.write.array}_{one}", taken) for one in kinds]
        self._first = [free_name(f"{name}_first", taken) for _ in kinds]
        self._all = [free_name(f"{name}_all", taken) for _ in kinds]
        self.ends = free_name(ends_of(name), taken)
        inside, ends = self.map(name, loop, length - 1), self.map(self.ends, str(length - 1))
        inside, ends = (one.intersect_range(self.old.domain) for one in (inside, ends))
        self.parts = {name: inside, self.ends: ends}
        for one in self._all:  # of whole chunks
            there = ends.domain().insert_dims(SET, at + 1, 1).set_tuple_name(one)
            self.parts[one] = self.map(one, loop, length).intersect_domain(there)
        self.begins = self.map(self.ends, "0").intersect_domain(ends.domain())

    def region(self) -> Scop:
        """Return the region with chunks."""
        made = []
        for number, array in enumerate(self._arrays):
            made += [self._beginning(number, array), self._combining(number, array)]
        kind = self.scop.types[self.old.write.array]
        arrays = [local_array(one.write, kind) for one in made[::2]]
        made += [self._at_ends(), self._inside()]
        statements = (
            made if one is self.old else [later(one, 2 * self.found.at, 2)]
            for one in self.scop.statements
        )
        return replace(
            self.scop,
            arrays=(*self.scop.arrays, *arrays),
            statements=tuple(chain(*statements)),
        )

    def repeats(self, statement: Statement, _: Access) -> Sequence[tuple[isl.Map, Statement]]:
        """Return what a read of a statement repeats."""
        if statement.name == self.ends:
            return [(self.begins, self.old)]
        part = self.parts.get(statement.name)
        own = (statement.domain.identity(), statement)
        return [own if part is None else (part, self.old)]

    # -- instances

    def map(self, name: str, step: str, steps: int = 0) -> isl.Map:
        """Map instances to a step of their chunk, of the first ``steps`` if it is a counter's."""
        start, sign = affine_text(self.found.start), "+" if self.found.step > 0 else "-"
        at = f"{start} {sign} ({self.length} * {self._chunk} + {step})"
        then = [at if one == self.found.loop else one for one in self.old.loops]
        loops = self._steps if steps else self._whole
        bounds = f" and 0 <= {self.found.loop} < {steps}" if steps else ""
        there, whole = f"{self._chunk} >= 0{bounds}", (self.old.name, then)
        return map_between(self.old.domain, (name, loops), whole, there)

    def to_step(self, name: str, step: int) -> isl.Map:
        """Map the ends of chunks to a step of them, instances of a statement of ``all`` steps."""
        then = [str(step) if one == self.found.loop else one for one in self._steps]
        ends = self.parts[self.ends].domain()
        return map_between(ends, (self.ends, self._whole), (name, then)).intersect_domain(ends)

    # -- statements

    def _beginning(self, number: int, array: str) -> Statement:
        """Return what sets what a chunk comes to to that of no steps."""
        kind = self.scop.types[self.old.write.array]
        combiner = combiner_of(self.found.operator or "", kind)
        neutral = number if combiner is None else combiner.neutral(kind)
        new = self._new(self.parts[self.ends].set_tuple_name(IN, self._first[number]))
        target = new.element(array, self._moving())
        return self._made(new, 2 * number, target, literal(neutral, kind))

    def _combining(self, number: int, array: str) -> Statement:
        """Return what adds a step to what a chunk comes to: its values, or its factors."""
        found, new = self.found, self._new(self.parts[self._all[number]])
        target = new.element(array, self._moving())
        before: Expression = Read(access=min(found.before))
        value = self.old.value
        if found.operator is None and number:
            value = Binary(operator="*", left=before, right=found.factor)
        elif found.operator is None:
            value = _sum("+", _product("*", found.factor, before), found.term)
        own = {
            id(one): new.read(target)
            for one in preorder(value)
            if isinstance(one, Read) and one.access in found.before
        }
        return self._made(new, 2 * number + 1, target, new.copied(value, own))

    def _at_ends(self) -> Statement:
        """Return what sets the last element of each chunk."""
        old, new = self.old, self._new(self.parts[self.ends])
        before = moved(old.accesses[min(self.found.before)], self.begins, new.loops)
        parts = (new.element(one, self._moving()) for one in self._arrays)
        first, chunk, *factor = map(new.read, (before, *parts))
        if self.found.operator is None:
            value = _sum("+", _product("*", factor[0], first), chunk)
        else:
            value = combined(self.found.operator, first, chunk)
        return self._made(new, PLACES - 2, new.moved(old.write), value)

    def _inside(self) -> Statement:
        old, new = self.old, self._new(self.parts[self.old.name])
        value, write = new.copied(old.value), new.moved(old.write)
        made = self._made(new, PLACES - 1, write, value)
        return replace(made, text=old.text, recomputed=tuple(map(new.moved, old.recomputed)))

    def _new(self, maps: isl.Map) -> New:
        loops = self._steps if maps.dim(IN) == len(self._steps) else self._whole
        return New(self.old, with_names(maps, IN, loops))

    def _made(self, new: New, place: int, target: Access, value: Expression) -> Statement:
        """Return a statement that writes a target, at a place among those of the recurrence."""
        made = new.statement(target, value)
        return replace(
            made,
            schedule=self._time(new.loops, place, made.domain),
            text=f"{target.text}: {self.length} steps of {self.old.text}",
            chunk=self.length,
        )

    def _moving(self) -> Names:
        """Return the loops that tell chunks apart: those that move what is written."""
        still = still_loops(self.old)
        return tuple(one for one in self._whole if one not in still)

    # -- time

    def _time(self, loops: Names, place: int, domain: isl.Set) -> isl.Map:
        """Return when a new statement runs: place by place, chunk by chunk."""
        at = 2 * self.found.at
        forms = map(affine_form, output_affs(self.old.schedule))
        texts = ["0" if form is None else affine_text(form) for form in forms]
        within = self.found.loop if loops == self._steps else "0"
        own = f"{PLACES} * ({texts[at]}) + {place}"
        times = [*texts[:at], own, self._chunk, "0", within, *texts[at + 2 :]]
        point = domain.get_tuple_name(), loops
        return map_between(self.old.domain, point, ("", times)).intersect_domain(domain)


def later(statement: Statement, at: int, more: int, place: int = PLACES - 1) -> Statement:
    """Return another statement of a region, behind what is new at its place, with a longer time.

    Args:
        statement: as it is.
        at: where in its time new statements have places of their own.
        more: how much longer it is.
        place: its own there.
    """
    times = [f"t{k}" for k in range(statement.schedule.dim(OUT))]
    places = [f"{PLACES} * {t} + {place}" if k == at else t for k, t in enumerate(times)]
    longer = map_between(statement.domain, ("", times), ("", [*places, *["0"] * more]))
    return replace(statement, schedule=statement.schedule.apply_range(longer))


class New:
    """A statement that is made of one of the source, and what it reads so far.

    ``maps`` are its instances, to those of the ``own`` statement; their loops have names.
    """

    def __init__(self, own: Statement, maps: isl.Map) -> None:
        self.own, self.maps, self.loops = own, maps, dim_names(maps.domain())
        self._reads: list[Access] = []

    def read(self, access: Access) -> Read:
        """Return a read of what an access says."""
        self._reads.append(replace(access, kind=AccessKind.READ))
        return Read(access=len(self._reads))

    def moved(self, access: Access) -> Access:
        """Return what instances access as those of the source do that they map to."""
        return moved(access, self.maps, self.loops)

    def element(self, array: str, subscripts: Sequence[str]) -> Access:
        """Return the access to an element by counters."""
        domain = self.maps.domain()
        point = domain.get_tuple_name(), self.loops
        relation = map_between(self.own.domain, point, (array, subscripts))
        return Access(
            array=array,
            kind=AccessKind.READ,
            relation=with_names(relation.intersect_domain(domain), IN, self.loops),
            text=array + "".join(f"[{one}]" for one in subscripts),
            span=self.own.write.span,
        )

    def copied(
        self, value: Expression, swaps: Mapping[int, Expression] | None = None
    ) -> Expression:
        """Return a value in the counters of the new statement, nodes swapped by their identity."""
        maps = self.maps

        def part(node: Expression) -> Expression:
            if swaps and id(node) in swaps:
                return swaps[id(node)]
            if isinstance(node, Read):
                return self.read(self.moved(self.own.accesses[node.access]))
            if isinstance(node, AffineValue):
                (own,) = output_affs(maps.apply_range(isl.Map.from_pw_aff(node.value)))
                return replace(node, value=own.gist(maps.domain()))
            return rebuilt(node, part)

        return part(value)

    def statement(self, target: Access, value: Expression) -> Statement:
        """Return the statement that writes a value."""
        domain = self.maps.domain()
        return replace(
            self.own,
            name=domain.get_tuple_name(),
            loops=self.loops,
            domain=with_names(domain, SET, self.loops),
            accesses=(replace(target, kind=AccessKind.WRITE), *self._reads),
            value=value,
            ppcg_name="",
            recomputed=(),
        )


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
    flow, ends, fine = flow_to_reads(after), after.statement(chunks.ends), True
    for name in chunks._all:
        own, part = after.statement(name), chunks.parts[name]
        array, last = own.write.array, chunks.to_step(name, chunks.length - 1)
        before = flow[name, _read_of(own, array)]
        fine = (
            fine
            and flow[chunks.ends, _read_of(ends, array)].is_equal(last.reverse().to_union_map())
            and last.apply_range(part).is_equal(chunks.parts[chunks.ends])
            and chunks.to_step(name, 0).apply_range(part).is_equal(chunks.begins)
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

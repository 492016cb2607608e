"""Sums that need another sum of the same terms are added up in the same pass, by parts of rows.

    for (i …) m += x[i];                 for (k …) for (i in part k) M[k] += x[i];
    m /= N;                              for (k …) for (i in part k) D[k] += sq(x[i] - M[k] / n);
    for (i …) v += sq(x[i] - m);         for (k …) m += M[k];
                                         m /= N;
                                         for (k …) v += D[k] + n * sq(M[k] / n - m);

A part of ``n`` elements is short: what is read for the one sum is still on the chip for the other.
Squares of distances from any value ``m`` are those from the part's own mean, and ``n`` times that
mean's [Chan, Golub, LeVeque 1983]; products of two distances likewise. Exponentials of distances
from any value are those from the part's own maximum times one exponential [Milakov, Gimelshein
2018], which is in range where ``m`` is the maximum of all. A part whose maximum is not finite takes
the least number instead, so that elements of minus infinity count nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import islpy as isl

from eatss.base.frozen import Names, fixed
from eatss.base.trees import free_name
from eatss.polyhedral.chunked_scans import (
    PLACES,
    New,
    combined,
    keeps_reads,
    keeps_writes,
    later,
    literal,
    local_array,
    moved,
    sources_of,
    still_loops,
)
from eatss.polyhedral.expression import (
    FLOATING,
    AffineValue,
    Binary,
    Call,
    Cast,
    ElementType,
    Expression,
    Literal,
    Read,
    Select,
    Unary,
    added_to,
    combiner_of,
    label,
    math_type,
    operands,
    preorder,
    reads_in,
)
from eatss.polyhedral.isl_names import (
    IN,
    SET,
    AffineForm,
    affine_form,
    affine_text,
    constant_value,
    dim_names,
    dims_as_parameters,
    involved_dims,
    map_between,
    output_affs,
    parameter_bound,
    with_names,
)
from eatss.polyhedral.kernels import update_of
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scop import Access, Scop, Statement

_GREATEST = {ElementType.FLOAT: "3.402823466e38f", ElementType.DOUBLE: "1.7976931348623157e308"}
"""The greatest number of a type."""


@fixed
class _Distance:
    """How far a term is from a value that all terms of a row share: ``node`` is the difference.

    That value is ``on_right`` of it, or on the left.
    """

    node: Binary
    on_right: bool

    @property
    def term(self) -> Expression:
        """What differs from element to element."""
        return self.node.left if self.on_right else self.node.right


@fixed
class Pair:
    """A sum over rows, and the sums or extremes of the same terms that stand before it.

    ``statement`` adds up ``added``, in which ``distances`` are those of terms from values that rows
    share: two factors, or the exponent where ``exponential``. ``scaled`` is what of it is another
    number where the shared value is: all, or the exponential. ``firsts`` are the statements that
    reduce their terms, with operator and term, one for each distance. ``still`` are the loops that
    rows are along, ``within`` is the one along which what terms read are neighbours in memory, with
    where it begins and ends as ``bounds``.
    """

    statement: Statement
    added: Expression
    scaled: Expression
    exponential: bool
    distances: tuple[_Distance, ...]
    firsts: tuple[tuple[Statement, str, Expression], ...]
    still: Names
    within: str
    bounds: tuple[AffineForm, AffineForm]


def pairs(scop: Scop) -> Iterator[Pair]:
    """Yield the sums of a region that another pass over the same terms stands before."""
    terms = [one for one in (reduced(scop, own) for own in scop.statements) if one]
    for at, (statement, operator, added) in enumerate(terms):
        if operator == "+":
            found = _pair(scop, statement, added, terms[:at])
            if found is not None:
                yield found


def reduced(scop: Scop, statement: Statement) -> tuple[Statement, str, Expression] | None:
    """Return a statement that reduces floating-point numbers, how, and what."""
    kind = scop.array(statement.write.array).element_type
    operator = update_of(statement, kind) if kind in FLOATING else None
    if operator is None or combiner_of(operator, kind) is None:
        return None
    term = _term(scop, statement, operator)
    return None if term is None else (statement, operator, term)


def _term(scop: Scop, statement: Statement, operator: str) -> Expression | None:
    """Return what a statement that reduces adds, or compares."""
    own = _own_reads(statement)

    def is_target(node: Expression) -> bool:
        return isinstance(_bare(node), Read) and not own.isdisjoint(reads_in(node))

    value = _bare(statement.value)
    if operator == "+":
        types = scop.types
        return added_to(value, is_target, lambda k: types[statement.accesses[k].array])
    sides = operands(value)[-2:]  # of a call, or behind a condition
    others = [one for one in sides if not is_target(one)]
    return others[0] if len(others) == 1 else None


def _own_reads(statement: Statement) -> frozenset[int]:
    """Return the accesses that read what a statement writes."""
    written = statement.write
    return frozenset(
        k
        for k, one in enumerate(statement.accesses)
        if k and one.array == written.array and one.relation.is_equal(written.relation)
    )


def _bare(node: Expression, kinds: Sequence[ElementType] = FLOATING) -> Expression:
    """Return what conversions to some types are of."""
    while isinstance(node, Cast) and node.element_type in kinds:
        node = node.operand
    return node


def _pair(
    scop: Scop,
    statement: Statement,
    added: Expression,
    before: Sequence[tuple[Statement, str, Expression]],
) -> Pair | None:
    still = still_loops(statement)
    read = _Reads(statement, still)
    distances, scaled = read.distances(added)
    if not distances or not any(one is added for one in preorder(statement.value)):
        return None
    exponential = len(distances) == 1
    wanted = "+" if not exponential else "max" if distances[0].on_right else "min"
    firsts, places = [], [*map(statement.loops.index, still)]
    for one in distances:
        alike = (
            own
            for own in before
            if scop.types[own[0].write.array] is scop.types[statement.write.array]
            and own[1].removeprefix("f").removesuffix("f") == wanted
            and len(own[0].loops) == len(statement.loops)
            and [*map(own[0].loops.index, still_loops(own[0]))] == places
            and own[0].domain.set_tuple_name(statement.name).is_equal(statement.domain)
            and _alike(own[0], own[2], statement, one.term)
        )
        first = next(alike, None)
        if first is None:
            return None
        firsts.append(first)
    within = read.neighbours(distances)
    bounds = None if within is None else _bounds(statement, within)
    if within is None or bounds is None:
        return None
    return Pair(
        statement=statement,
        added=added,
        scaled=scaled,
        exponential=exponential,
        distances=tuple(distances),
        firsts=tuple(firsts),
        still=still,
        within=within,
        bounds=bounds,
    )


@fixed
class _Reads:
    """The value of a statement whose rows are along some loops."""

    statement: Statement
    still: Names

    def is_shared(self, node: Expression) -> bool:
        """Tell whether a value is the same for a whole row."""
        return moved_by(self.statement, node).isdisjoint(self.still)

    def distances(self, added: Expression) -> tuple[list[_Distance], Expression]:
        """Return the distances that a term is a product of, or one and the exponential of it."""
        factors, divisors = list[Expression](), list[Expression]()
        todo = [added]
        while todo:
            node = _bare(todo.pop())
            if isinstance(node, Binary) and node.operator in ("*", "/"):
                (todo if node.operator == "*" else divisors).append(node.right)
                todo.append(node.left)
            elif isinstance(node, Unary) and node.operator == "-":
                todo.append(node.operand)
            else:
                factors.append(node)
        exponents = [
            (found, one)
            for one in factors
            if isinstance(one, Call) and one.function in ("exp", "expf")
            for found in [self._distance(_bare(one.arguments[0]))]
            if found is not None
        ]
        if len(exponents) == 1:
            ((distance, scaled),) = exponents
            return [distance], scaled
        found = [self._distance(one) for one in factors]
        rest = [one for one, own in zip(factors, found, strict=True) if own is None]
        own = [one for one in found if one is not None]
        if len(own) != 2 or not all(map(self.is_shared, (*rest, *divisors))):
            return [], added
        return own, added

    def _distance(self, node: Expression) -> _Distance | None:
        if not isinstance(node, Binary) or node.operator != "-":
            return None
        left, right = map(self.is_shared, (node.left, node.right))
        return _Distance(node=node, on_right=right) if left != right else None

    def neighbours(self, distances: Sequence[_Distance]) -> str | None:
        """Return the loop of a row along which all that terms read are neighbours, if there is."""
        found = set[str | None]()
        for access in (self.statement.accesses[k] for one in distances for k in reads_in(one.term)):
            *_, last = map(affine_form, output_affs(access.relation)) or [None]
            loops = {} if last is None else dict(last.coefficients)
            near = [one for one in self.still if abs(loops.get(one, 0)) == 1]
            found.add(near[0] if len(near) == 1 else None)
        return found.pop() if len(found) == 1 else None


def moved_by(statement: Statement, node: Expression) -> frozenset[str]:
    """Return the loops that move a value of a statement."""
    functions = list[isl.PwAff]()
    for one in preorder(node):
        if isinstance(one, AffineValue):
            functions.append(one.value)
        elif isinstance(one, Read):
            functions += output_affs(statement.accesses[one.access].relation)
    return frozenset(name for one in functions for name in involved_dims(one))


def _alike(one: Statement, value: Expression, other: Statement, its: Expression) -> bool:
    """Tell whether two statements compute the same of what they read, instance by instance."""
    value, its = _bare(value, (ElementType.DOUBLE,)), _bare(its, (ElementType.DOUBLE,))
    if isinstance(value, Read) and isinstance(its, Read):
        first, then = one.accesses[value.access], other.accesses[its.access]
        here = first.relation.set_tuple_name(IN, other.name)
        return first.array == then.array and bool(here.is_equal(then.relation))
    if isinstance(value, AffineValue) and isinstance(its, AffineValue):
        same = one.domain.identity().set_tuple_name(IN, other.name)
        own = value.value.pullback_pw_multi_aff(isl.PwMultiAff.from_map(same))
        return bool(own.is_equal(its.value)) and value.element_type is its.element_type
    return label(value) == label(its) and all(
        _alike(one, a, other, b) for a, b in zip(operands(value), operands(its), strict=True)
    )


def _bounds(statement: Statement, within: str) -> tuple[AffineForm, AffineForm] | None:
    """Return where a loop begins and ends, by the others, ``None`` where it has holes."""
    free = dims_as_parameters(statement.domain, statement.loops)
    low, high = (
        affine_form(parameter_bound(free, within, upper=upper).coalesce())
        for upper in (False, True)
    )
    if low is None or high is None:
        return None
    at = statement.loops.index(within)
    others = statement.domain.project_out(SET, at, 1).insert_dims(SET, at, 1)
    own, row = (
        (statement.name, statement.loops),
        f"{affine_text(low)} <= {within} <= {affine_text(high)}",
    )
    whole = map_between(statement.domain, own, own, row).domain()
    whole = whole.intersect(others.set_tuple_name(statement.name))
    return (low, high) if whole.is_equal(statement.domain) else None


# -- parts ------------------------------------------------------------------------------------


def with_chunked_pairs(scop: Scop, lengths: Mapping[str, int]) -> Scop | None:
    """Return a region in which sums and what they need are added up by parts of rows.

    Args:
        scop: the region.
        lengths: the elements of a part by the name of the statement, 0 for a row of the loop along
            which elements are neighbours.

    Returns:
        The region; ``None`` where a statement is no such sum, or something else would be computed.
    """
    changed = scop
    for name, length in lengths.items():
        found = next((one for one in pairs(changed) if one.statement.name == name), None)
        if found is None:
            return None
        parts = Parts(changed, found, length)
        changed, before = parts.region(), changed
        if not computes_the_same(before, changed, parts):
            return None
    return replace(changed, written=scop.written or scop) if lengths else scop


class Parts:
    """Makes parts of the rows of a pair of a region.

    ``owns`` are the statements of the pair, the one with distances last; ``names`` are what begins
    a part's value of each and what takes in its elements, ``arrays`` have these values.
    """

    def __init__(self, scop: Scop, found: Pair, length: int) -> None:
        self.scop, self.found, self.length, self.old = scop, found, length, found.statement
        taken = scop.names.union(*(one.loops for one in scop.statements))
        self.at = self.old.loops.index(found.within)
        self.chunk: Names = (free_name(f"{found.within}_chunk", taken),) if length else ()
        first = [one for one in scop.statements if any(one is own for own, *_ in found.firsts)]
        self.owns = (*first, self.old)
        self.arrays = [free_name(f"{one.write.array}_parts", taken) for one in self.owns]
        self.names = [
            (free_name(f"{one.name}_first", taken), free_name(f"{one.name}_all", taken))
            for one in self.owns
        ]

    # -- instances

    def loops(self, own: Statement, *, every: bool) -> Names:
        """Return the loops over the parts of a statement's rows, or over ``every`` element."""
        inside = (own.loops[self.at],) if every else ()
        return (*own.loops[: self.at], *self.chunk, *inside, *own.loops[self.at + 1 :])

    def steps(self, own: Statement, name: str) -> isl.Map:
        """Map the elements of parts to the instances of a statement."""
        loop = own.loops[self.at]
        within = f"0 <= {loop} < {self.length} and {self.chunk[0]} >= 0" if self.chunk else "true"
        return self._map(own, name, loop if self.chunk else None, within)

    def begins(self, own: Statement, name: str) -> isl.Map:
        """Map parts to their first instances of a statement."""
        return self._map(own, name, "0", f"{self.chunk[0]} >= 0" if self.chunk else "true")

    def all_of(self, own: Statement, name: str) -> isl.Map:
        """Map parts to all of their instances of a statement."""
        at = self.at + len(self.chunk)
        found = self.steps(own, name).project_out(IN, at, 1).set_tuple_name(IN, name)
        return with_names(found, IN, self.loops(own, every=False))

    def repeats(self, statement: Statement, access: Access) -> list[tuple[isl.Map, Statement]]:
        """Return what a read repeats: that of every element of a part, or of its first."""
        for own, (first, every) in zip(self.owns, self.names, strict=True):
            if statement.name in (first, every):
                return [(self.steps(own, every), own)]
            if statement.name == own.name:
                maps = self.begins if access.array == own.write.array else self.all_of
                return [(maps(own, own.name), own)]
        return [(statement.domain.identity(), statement)]

    def _map(self, own: Statement, name: str, step: str | None, condition: str) -> isl.Map:
        """Map instances to those so many steps into their part; ``None``: parts are rows."""
        loops = self.loops(own, every=step != "0")
        then = own.loops[self.at] if step is None else f"{self._begin(own)} + {step}"
        whole = [then if k == self.at else one for k, one in enumerate(own.loops)]
        maps = map_between(own.domain, (name, loops), (own.name, whole), condition)
        return with_names(maps.intersect_range(own.domain), IN, loops)

    def _begin(self, own: Statement) -> str:
        """Return where a part begins."""
        low = _text(self.found.bounds[0], self.old, own)
        return f"({low}) + {self.length} * {self.chunk[0]}" if self.chunk else f"({low})"

    def _left(self, own: Statement) -> str:
        """Return how many elements of a row there are from the begin of a part on."""
        return f"({_text(self.found.bounds[1], self.old, own)}) - ({self._begin(own)}) + 1"

    def count(self, own: Statement, domain: isl.Set, kind: ElementType) -> Expression:
        """Return how many elements a part has, in the loops of a new statement, as a number."""
        point = domain.get_tuple_name(), dim_names(domain)
        (left,) = output_affs(map_between(own.domain, point, ("", [self._left(own)])))
        if self.chunk:
            (whole,) = output_affs(map_between(own.domain, point, ("", [str(self.length)])))
            left = left.min(whole)
        number = constant_value(left.gist(domain).coalesce())
        found: Expression = AffineValue(value=left, element_type=ElementType.INT64)
        if number is not None:
            found = Literal(text=f"{number}l", element_type=ElementType.INT64)
        return Cast(element_type=kind, operand=found)

    # -- statements

    def region(self) -> Scop:
        """Return the region with parts."""
        made = [
            self._reducing(at, every=every)
            for at in range(len(self.owns))
            for every in (False, True)
        ]
        arrays = (
            local_array(first.write, self.scop.types[own.write.array])
            for own, first in zip(self.owns, made[::2], strict=True)
        )
        at = 2 * min(map(self.old.loops.index, self.found.still))
        statements = (
            [
                *(made if one is self.owns[0] else ()),
                later(self._together(one), at, 2 * len(self.chunk)),
            ]
            for one in self.scop.statements
        )
        return replace(
            self.scop,
            arrays=(*self.scop.arrays, *arrays),
            statements=tuple(chain(*statements)),
        )

    def _reducing(self, at: int, *, every: bool) -> Statement:
        """Return what sets a part's value to that of no elements, or takes in ``every`` element."""
        own, name = self.owns[at], self.names[at][every]
        maps = self.steps(own, name) if every else self.begins(own, name)
        new = _New(self, own, maps)
        target = new.of_part(self.arrays[at])
        if every:
            before = new.read(new.of_part(self.arrays[at]))
            swaps: dict[int, Expression] = {
                id(one): before for one in preorder(own.value) if _is_own(one, own)
            }
            if own is self.old:
                swaps |= new.distances(shared=True)
            value = new.copied(own.value, swaps)
        else:
            kind = self.scop.types[own.write.array]
            how = next((how for one, how, _ in self.found.firsts if one is own), "+")
            combiner = combiner_of(how, kind)
            assert combiner is not None  # or it would be no pair
            value = literal(combiner.neutral(kind), kind)
        made = new.statement(target, value)
        return replace(made, name=name, schedule=self._time(new, 2 * at + every))

    def _together(self, own: Statement) -> Statement:
        """Return what puts the values of parts together, another statement as it is."""
        if own not in self.owns:
            return own
        new = _New(self, own, self.begins(own, own.name))
        kind = self.scop.types[own.write.array]
        part: Expression = new.read(new.of_part(self.arrays[self.owns.index(own)]))
        added, how = self.found.added, "+"
        if own is self.old:
            wide = kind_of(added, self.scop, own)
            part, kind = self._scaled(new, _as(wide, part, kind), wide), wide
        else:
            added, how = next((term, how) for one, how, term in self.found.firsts if one is own)
        if how == "+":
            part = _as(kind_of(added, self.scop, own), part, kind)
            value = new.copied(own.value, {id(added): part})
        else:
            before = next(one for one in preorder(own.value) if _is_own(one, own))
            value = combined(how, new.copied(before, {}), part)
        made = new.statement(moved(own.write, new.maps, new.loops), value)
        return replace(made, schedule=new.maps.apply_range(own.schedule))

    def _scaled(self, new: _New, part: Expression, wide: ElementType) -> Expression:
        """Return what a part comes to from the value that rows share instead of its own."""
        found = self.found
        from_own = new.copied(found.scaled, new.distances(shared=False))
        if found.exponential:
            by = _as(wide, from_own, kind_of(found.scaled, self.scop, new.own))
            return Binary(operator="*", left=part, right=by)
        count = self.count(new.own, new.maps.domain(), wide)
        apart = Binary(operator="*", left=count, right=from_own)
        return Binary(operator="+", left=part, right=apart)

    # -- time

    def _time(self, new: _New, place: int) -> isl.Map:
        """Return when a new statement runs: before all of the first that reduces."""
        like, own = self.owns[0], new.own
        outer = min(map(self.old.loops.index, self.found.still))
        forms = map(affine_form, output_affs(like.schedule))
        texts = ["0" if form is None else _text(form, like, own) for form in forms]
        inner = chain(*((loop, "0") for loop in new.loops[outer:]))
        times = [*texts[: 2 * outer], f"{PLACES} * ({texts[2 * outer]}) + {place}", *inner]
        times += ["0"] * (len(texts) + 2 * len(self.chunk) - len(times))
        domain = new.maps.domain()
        point = domain.get_tuple_name(), new.loops
        return map_between(own.domain, point, ("", times)).intersect_domain(domain)


class _New(New):
    """A statement of parts."""

    def __init__(self, parts: Parts, own: Statement, maps: isl.Map) -> None:
        super().__init__(own, maps)
        self.parts = parts

    def of_part(self, array: str) -> Access:
        """Return the access to a part's value."""
        parts, own = self.parts, self.own.loops
        still = [one in parts.found.still for one in parts.old.loops]
        names = [parts.chunk if k == parts.at else (one,) for k, one in enumerate(own)]
        text = [
            name
            for first in (True, False)
            for of_row, loops in zip(still, names, strict=True)
            for name in loops
            if of_row is first
        ]
        return self.element(array, text)

    def distances(self, *, shared: bool) -> dict[int, Expression]:
        """Return distances by identity, a part's value in the place of one of their sides."""
        found = dict[int, Expression]()
        for one, (first, how, _) in zip(
            self.parts.found.distances, self.parts.found.firsts, strict=True
        ):
            part = self._own_value(one.node, first, how)
            if one.on_right == shared:
                sides = self.copied(one.node.left, {}), part
            else:
                sides = part, self.copied(one.node.right, {})
            found[id(one.node)] = replace(one.node, left=sides[0], right=sides[1])
        return found

    def _own_value(self, node: Binary, first: Statement, how: str) -> Expression:
        """Return the mean or the extreme of a part, to take the place of a side of a distance."""
        scop, wide = self.parts.scop, kind_of(node, self.parts.scop, self.own)
        kind = scop.types[first.write.array]
        array = self.parts.arrays[self.parts.owns.index(first)]
        value = _as(wide, self.read(self.of_part(array)), kind)
        if how == "+":
            count = self.parts.count(self.own, self.maps.domain(), wide)
            return Binary(operator="/", left=value, right=count)
        least: Expression = Literal(text=_GREATEST[wide], element_type=wide)
        if "max" in how:
            least = Unary(operator="-", operand=least)
        suffix = "f" if wide is ElementType.FLOAT else ""
        function = ("fmax" if "max" in how else "fmin") + suffix
        return Call(function=function, arguments=(value, least))

    def statement(self, target: Access, value: Expression) -> Statement:
        """Return the statement that writes a value."""
        return replace(
            super().statement(target, value),
            text=f"{target.text}: parts of {self.own.text}",
            chunk=self.parts.length,
            one_pass=tuple(one.write.array for one in self.parts.owns),
        )


def _as(wide: ElementType, value: Expression, kind: ElementType) -> Expression:
    return value if kind is wide else Cast(element_type=wide, operand=value)


def _is_own(node: Expression, statement: Statement) -> bool:
    return isinstance(node, Read) and node.access in _own_reads(statement)


def kind_of(node: Expression, scop: Scop, statement: Statement) -> ElementType:
    """Return the type of a value."""
    match node:
        case Read(access=access):
            return scop.types[statement.accesses[access].array]
        case Literal() | Cast() | AffineValue():
            return node.element_type
        case Call(function=function):
            return math_type(function)
        case Select(if_true=operand) | Unary(operand=operand) | Binary(left=operand):
            return kind_of(operand, scop, statement)


def _text(form: AffineForm, own: Statement, other: Statement) -> str:
    """Return a function of one statement's counters by those of another with the same loops."""
    names = dict(zip(own.loops, other.loops, strict=True))
    terms = (*form.coefficients, *form.parameters)
    renamed = tuple((names.get(name, name), by) for name, by in terms)
    return affine_text(form._replace(coefficients=renamed, parameters=()))


# -- checks -----------------------------------------------------------------------------------


def computes_the_same(before: Scop, after: Scop, parts: Parts) -> bool:
    """Tell whether a region with parts computes what it did, from the values that it read.

    Parts are a partition of the rows; what a part comes to is of all of its elements, one after the
    other, and is what is read where parts are put together; operands have the values that they had,
    and each element is written in the same order.
    """
    ends = {one.name: parts.all_of(one, one.name).lexmax() for one in parts.owns}
    sources = sources_of(before, after, ends)
    return (
        _is_partition(parts)
        and _are_whole(after, parts)
        and keeps_writes(before, after, sources)
        and keeps_reads(before, after, sources, parts.repeats)
    )


def _is_partition(parts: Parts) -> bool:
    steps = (
        (parts.steps(own, every), own)
        for own, (_, every) in zip(parts.owns, parts.names, strict=True)
    )
    return all(
        one.is_single_valued() and one.is_injective() and one.range().is_equal(own.domain)
        for one, own in steps
    )


def _are_whole(after: Scop, parts: Parts) -> bool:
    """Tell whether a part's value is of all of its elements wherever it is read."""
    flow = flow_to_reads(after)
    for own, (first, every), array in zip(parts.owns, parts.names, parts.arrays, strict=True):
        steps = parts.steps(own, every).domain()
        to_part = _to_parts(parts, after.statement(every), first)
        of_part = to_part.intersect_domain(steps).reverse()
        loops = parts.loops(own, every=True)
        at = parts.at + len(parts.chunk)
        then = [f"{one} + 1" if k == at else one for k, one in enumerate(loops)]
        step = map_between(own.domain, (every, loops), (every, then))
        fold = of_part.lexmin().to_union_map()
        fold = fold.union(step.intersect_domain(steps).intersect_range(steps))
        for reader in after.statements:
            for k, access in enumerate(reader.accesses):
                if not k or access.array != array:
                    continue
                last = _to_parts(parts, reader, first).apply_range(of_part.lexmax())
                expected = fold if reader.name == every else last.reverse().to_union_map()
                if not flow[reader.name, k].is_equal(expected):
                    return False
    return True


def _to_parts(parts: Parts, reader: Statement, first: str) -> isl.Map:
    """Map the instances of a new statement to the parts that they are of."""
    at = parts.at + len(parts.chunk)
    every = len(reader.loops) > len(parts.loops(parts.old, every=False))
    kept = [one for k, one in enumerate(reader.loops) if not every or k != at]
    own = reader.domain
    return map_between(own, (reader.name, reader.loops), (first, kept)).intersect_domain(own)

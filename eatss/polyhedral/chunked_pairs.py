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
from functools import reduce
from itertools import chain, compress
from operator import not_

import islpy as isl

from eatss.base.frozen import Names, fixed
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
    Unary,
    added_to,
    combiner_of,
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
    map_between,
    output_affs,
    parameter_bound,
    with_names,
)
from eatss.polyhedral.kernels import alike, update_of
from eatss.polyhedral.parts import (
    New,
    Parts,
    combined,
    keeps_reads,
    keeps_writes,
    kind_of,
    moved_by,
    readers_of,
    sources_of,
    still_loops,
    text_for,
)
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


def _narrow(node: Expression) -> Expression:
    return _bare(node, (ElementType.DOUBLE,))


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
        matching = (
            own
            for own in before
            if scop.types[own[0].write.array] is scop.types[statement.write.array]
            and own[1].removeprefix("f").removesuffix("f") == wanted
            and len(own[0].loops) == len(statement.loops)
            and [*map(own[0].loops.index, still_loops(own[0]))] == places
            and own[0].domain.set_tuple_name(statement.name).is_equal(statement.domain)
            and alike(own[0], own[2], one.term, statement, _narrow)
        )
        first = next(matching, None)
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
        parts = _Sums(changed, found, length)
        changed, before = parts.region(), changed
        if not computes_the_same(before, changed, parts):
            return None
    return replace(changed, written=scop.written or scop) if lengths else scop


class _Sums(Parts):
    """Makes parts of the rows of a pair of a region, the statement with distances last."""

    def __init__(self, scop: Scop, found: Pair, length: int) -> None:
        own, self.found = found.statement, found
        first = [one for one in scop.statements if any(one is other for other, *_ in found.firsts)]
        owns = (*first, own)
        super().__init__(
            scop, owns, own.loops.index(found.within), found.bounds[0], length,
            ["parts" for _ in owns], outer=min(map(own.loops.index, found.still)),
            one_pass=tuple(one.write.array for one in owns),
        )  # fmt: skip

    # -- instances

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

    def count(self, own: Statement, domain: isl.Set, kind: ElementType) -> Expression:
        """Return how many elements a part has, in the loops of a new statement, as a number."""
        point, high = (domain.get_tuple_name(), dim_names(domain)), self.found.bounds[1]
        left = f"({text_for(high, self.old, own)}) - ({self.place(own, '0')}) + 1"
        ends = [left, str(self.length)] if self.chunk else [left]
        whole = (output_affs(map_between(own.domain, point, ("", [one]))) for one in ends)
        value = reduce(isl.PwAff.min, chain(*whole))
        number = constant_value(value.gist(domain).coalesce())
        found: Expression = AffineValue(value=value, element_type=ElementType.INT64)
        if number is not None:
            found = Literal(text=f"{number}l", element_type=ElementType.INT64)
        return Cast(element_type=kind, operand=found)

    def subscripts(self, own: Statement) -> list[str]:
        """Return the loops over parts, those that rows are along first."""
        still = [one in self.found.still for one in self.old.loops]
        names = [self.chunk if k == self.at else (one,) for k, one in enumerate(own.loops)]
        rows, others = (compress(names, own) for own in (still, map(not_, still)))
        return [*chain(*rows, *others)]

    # -- statements

    def _how(self, own: Statement) -> tuple[str, Expression]:
        """Return how a statement reduces, and what."""
        firsts = ((how, term) for one, how, term in self.found.firsts if one is own)
        return next(firsts, ("+", self.found.added))

    def neutral(self, number: int) -> float:
        """Return what no elements come to."""
        own = self.owns[number]
        kind = self.scop.types[own.write.array]
        combiner = combiner_of(self._how(own)[0], kind)
        assert combiner is not None  # or it would be no pair
        return combiner.neutral(kind)

    def taking_in(self, number: int, new: New, before: Read) -> Expression:
        """Return what a part comes to with an element more."""
        own = self.owns[number]
        swaps: dict[int, Expression] = {
            id(one): before for one in preorder(own.value) if _is_own(one, own)
        }
        if own is self.old:
            swaps |= self.distances(new, shared=True)
        return new.copied(own.value, swaps)

    def in_use(self, own: Statement) -> list[Statement]:
        """Return what puts the values of parts together, another statement as it is."""
        if own not in self.owns:
            return [self.later(own)]
        new = New(own, self.begins(own, own.name))
        kind = self.scop.types[own.write.array]
        part: Expression = new.read(self.element(self.owns.index(own), new))
        how, added = self._how(own)
        if own is self.old:
            wide = kind_of(added, self.scop, own)
            part, kind = self._scaled(new, _as(wide, part, kind), wide), wide
        if how == "+":
            part = _as(kind_of(added, self.scop, own), part, kind)
            value = new.copied(own.value, {id(added): part})
        else:
            before = next(one for one in preorder(own.value) if _is_own(one, own))
            value = combined(how, new.copied(before, {}), part)
        return [self.later(self.made(new, new.moved(own.write), value))]

    def _scaled(self, new: New, part: Expression, wide: ElementType) -> Expression:
        """Return what a part comes to from the value that rows share instead of its own."""
        found = self.found
        from_own = new.copied(found.scaled, self.distances(new, shared=False))
        if found.exponential:
            by = _as(wide, from_own, kind_of(found.scaled, self.scop, new.own))
            return Binary(operator="*", left=part, right=by)
        count = self.count(new.own, new.maps.domain(), wide)
        apart = Binary(operator="*", left=count, right=from_own)
        return Binary(operator="+", left=part, right=apart)

    def distances(self, new: New, *, shared: bool) -> dict[int, Expression]:
        """Return distances by identity, a part's value in the place of one of their sides."""
        found = dict[int, Expression]()
        for one, (first, how, _) in zip(self.found.distances, self.found.firsts, strict=True):
            part = self._own_value(new, one.node, first, how)
            if one.on_right == shared:
                sides = new.copied(one.node.left, {}), part
            else:
                sides = part, new.copied(one.node.right, {})
            found[id(one.node)] = replace(one.node, left=sides[0], right=sides[1])
        return found

    def _own_value(self, new: New, node: Binary, first: Statement, how: str) -> Expression:
        """Return the mean or the extreme of a part, to take the place of a side of a distance."""
        wide, kind = kind_of(node, self.scop, new.own), self.scop.types[first.write.array]
        value = _as(wide, new.read(self.element(self.owns.index(first), new)), kind)
        if how == "+":
            count = self.count(new.own, new.maps.domain(), wide)
            return Binary(operator="/", left=value, right=count)
        least: Expression = Literal(text=_GREATEST[wide], element_type=wide)
        if "max" in how:
            least = Unary(operator="-", operand=least)
        suffix = "f" if wide is ElementType.FLOAT else ""
        function = ("fmax" if "max" in how else "fmin") + suffix
        return Call(function=function, arguments=(value, least))


def _as(wide: ElementType, value: Expression, kind: ElementType) -> Expression:
    return value if kind is wide else Cast(element_type=wide, operand=value)


def _is_own(node: Expression, statement: Statement) -> bool:
    return isinstance(node, Read) and node.access in _own_reads(statement)


# -- checks -----------------------------------------------------------------------------------


def computes_the_same(before: Scop, after: Scop, parts: _Sums) -> bool:
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


def _is_partition(parts: _Sums) -> bool:
    steps = (
        (parts.steps(own, every), own)
        for own, (_, every) in zip(parts.owns, parts.names, strict=True)
    )
    return all(
        one.is_single_valued() and one.is_injective() and one.range().is_equal(own.domain)
        for one, own in steps
    )


def _are_whole(after: Scop, parts: _Sums) -> bool:
    """Tell whether a part's value is of all of its elements wherever it is read."""
    for own, (first, every), array in zip(parts.owns, parts.names, parts.arrays, strict=True):
        found = readers_of(after, array, after.statement(every))
        steps = parts.steps(own, every).domain()
        of_part = _to_parts(parts, after.statement(every), first).intersect_domain(steps).reverse()
        if found is None or not all(
            wanted.is_equal(_to_parts(parts, after.statement(name), first).apply_range(of_part))
            for name, wanted in found.items()
        ):
            return False
    return True


def _to_parts(parts: _Sums, reader: Statement, first: str) -> isl.Map:
    """Map the instances of a new statement to the parts that they are of."""
    at = parts.at + len(parts.chunk)
    every = len(reader.loops) > len(parts.loops(parts.old, every=False))
    kept = [one for k, one in enumerate(reader.loops) if not every or k != at]
    own = reader.domain
    return map_between(own, (reader.name, reader.loops), (first, kept)).intersect_domain(own)

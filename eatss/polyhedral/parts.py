"""What rewrites are made of: new statements, parts of rows, and proofs that they compute the same.

    for (i …) m += x[i];                 for (k …) M[k] = 0;
                                         for (k …) for (i in part k) M[k] += x[i];
                                         for (k …) m += M[k];

A rewrite says which instances of the source each new statement runs, as a map. From there on a
proof is the same for all: sums are of all of their terms, reads get the values that they got, and
each element is written in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any, TypeAlias

import islpy as isl

from eatss.base.frozen import Names
from eatss.base.trees import free_name
from eatss.polyhedral.dependences import spelled
from eatss.polyhedral.expression import (
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
    math_type,
    preorder,
    rebuilt,
)
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    AffineForm,
    affine_form,
    affine_text,
    dim_names,
    involved_dims,
    map_between,
    output_affs,
    with_names,
)
from eatss.polyhedral.recomputed_producers import flow_to_reads
from eatss.polyhedral.scop import Access, AccessKind, Scop, Statement
from eatss.polyhedral.split_sets import writes_in_order

PLACES = 16
"""Places among the statements of a body that what a statement becomes takes."""

# -- new statements ----------------------------------------------------------------------------


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
        return Read(len(self._reads))

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


def local_array(written: Access, kind: ElementType, *more: Access) -> Array:
    """Return the array of a region's own that an access writes all of, or several do."""
    writes = (one.relation.range() for one in (written, *more))
    elements = reduce(isl.Set.union, writes).coalesce()
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
    return spelled(access, with_names(maps.apply_range(access.relation), IN, loops))


def combined(operator: str, before: Expression, chunk: Expression) -> Expression:
    """Return two values combined: the one before a chunk, and what the chunk comes to."""
    if operator in ("max", "min"):
        sign = ">" if operator == "max" else "<"
        passes = Binary(sign, chunk, before)
        return Select(passes, chunk, before)
    if operator.startswith("f"):
        return Call(operator, (before, chunk))
    return Binary(operator, before, chunk)


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
    return Literal(text, kind)


_SUFFIXES = {
    ElementType.FLOAT: "f",
    ElementType.UINT32: "u",
    ElementType.INT64: "l",
    ElementType.UINT64: "ul",
}


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


def still_loops(statement: Statement) -> Names:
    """Return the loops that do not move what a statement writes."""
    forms = map(affine_form, output_affs(statement.write.relation))
    moves = {name for form in forms if form is not None for name, _ in form.coefficients}
    return tuple(one for one in statement.loops if one not in moves)


def moved_by(statement: Statement, node: Expression) -> frozenset[str]:
    """Return the loops that move a value of a statement."""
    functions = list[isl.PwAff]()
    for one in preorder(node):
        if isinstance(one, AffineValue):
            functions.append(one.value)
        elif isinstance(one, Read):
            functions += output_affs(statement.accesses[one.access].relation)
    return frozenset(name for one in functions for name in involved_dims(one))


def text_for(form: AffineForm, own: Statement, other: Statement) -> str:
    """Return a function of one statement's counters by those of another with the same loops."""
    names = dict(zip(own.loops, other.loops, strict=True))
    terms = (*form.coefficients, *form.parameters)
    renamed = tuple((names.get(name, name), by) for name, by in terms)
    return affine_text(form._replace(coefficients=renamed, parameters=()))


# -- parts -------------------------------------------------------------------------------------


class Parts:
    """Makes parts of the rows of statements of a region.

    What parts of each of ``owns`` come to is in one of the ``arrays``. ``names`` are the statements
    that begin it, and that take in an element. Rows are along the loop number ``at``, and begin at
    ``low``, by the loops of the last statement, up, or down where ``step`` is -1. Parts have
    ``length`` elements and ``chunk`` is the loop over them; of the length 0 they are whole rows.
    New statements run at places of the loop number ``outer``, so many parts ``beside`` each other
    in one loop, and have ``marks``.
    """

    def __init__(
        self,
        scop: Scop,
        owns: Sequence[Statement],
        at: int,
        low: AffineForm,
        length: int,
        called: Sequence[str],
        *,
        step: int = 1,
        outer: int | None = None,
        beside: int = 1,
        told: str = "parts",
        **marks: Any,
    ) -> None:
        self.scop, self.owns, self.old, self.at = scop, tuple(owns), owns[-1], at
        self.low, self.length, self.step = low, length, step
        self.outer, self.beside = at if outer is None else outer, beside
        self.told, self.marks = told, {"chunk": length, **marks}
        self.taken = scop.names.union(*(one.loops for one in scop.statements))
        loop = self.old.loops[at]
        self.chunk: Names = (free_name(f"{loop}_chunk", self.taken),) if length else ()
        pairs = zip(owns, called, strict=True)
        self.arrays = [free_name(f"{one.write.array}_{own}", self.taken) for one, own in pairs]
        self.names = [
            (free_name(f"{one.name}_first", self.taken), free_name(f"{one.name}_all", self.taken))
            for one in owns
        ]

    # what is another for each rewrite

    def subscripts(self, own: Statement) -> Sequence[str]:
        """Return the subscripts of what a part of a statement's rows comes to."""
        raise NotImplementedError

    def neutral(self, number: int) -> float:
        """Return what no elements come to."""
        raise NotImplementedError

    def taking_in(self, number: int, new: New, before: Read) -> Expression:
        """Return what a part comes to with an element more than ``before``."""
        raise NotImplementedError

    def in_use(self, own: Statement) -> list[Statement]:
        """Return what puts the values of parts to use, another statement as it is."""
        raise NotImplementedError

    # instances

    def loops(self, own: Statement, *, every: bool) -> Names:
        """Return the loops over the parts of a statement's rows, or over ``every`` element."""
        inside = (own.loops[self.at],) if every else ()
        return (*own.loops[: self.at], *self.chunk, *inside, *own.loops[self.at + 1 :])

    def place(self, own: Statement, step: str) -> str:
        """Return where an element so many steps into a part is."""
        low, sign = text_for(self.low, self.old, own), "+" if self.step > 0 else "-"
        inside = [*(f"{self.length} * {one}" for one in self.chunk), step]
        return f"{low} {sign} ({' + '.join(inside)})"

    def map(self, own: Statement, name: str, step: str, within: str = "") -> isl.Map:
        """Map parts to an element so many steps in, with bounds of a counter every element."""
        loops, whole = self.loops(own, every=bool(within)), [*own.loops]
        if self.chunk or not within:
            whole[self.at] = self.place(own, step)
        there = " and ".join([*(f"{one} >= 0" for one in self.chunk), within or "true"])
        maps = map_between(own.domain, (name, loops), (own.name, whole), there)
        return with_names(maps.intersect_range(own.domain), IN, loops)

    def steps(self, own: Statement, name: str) -> isl.Map:
        """Map the elements of parts to the instances of a statement."""
        loop = own.loops[self.at]
        return self.map(own, name, loop, f"0 <= {loop} < {self.length}" if self.chunk else "true")

    def begins(self, own: Statement, name: str) -> isl.Map:
        """Map parts to their first instances of a statement."""
        return self.map(own, name, "0")

    # statements

    def region(self) -> Scop:
        """Return the region with parts."""
        numbers = range(len(self.owns))
        made = [self._part(at, every=every) for at in numbers for every in (False, True)]
        types = self.scop.types
        arrays = (
            local_array(first.write, types[own.write.array], every.write)
            for own, first, every in zip(self.owns, made[::2], made[1::2], strict=True)
        )
        statements = (
            [*(made if one is self.owns[0] else ()), *self.in_use(one)]
            for one in self.scop.statements
        )
        return replace(
            self.scop,
            arrays=(*self.scop.arrays, *arrays),
            statements=tuple(chain(*statements)),
        )

    def _part(self, number: int, *, every: bool) -> Statement:
        """Return what sets a part's value to that of no elements, or takes in ``every`` element."""
        own, name = self.owns[number], self.names[number][every]
        new = New(own, self.steps(own, name) if every else self.begins(own, name))
        target = self.element(number, new)
        if every:
            value = self.taking_in(number, new, new.read(self.known(number, new)))
        else:
            value = literal(self.neutral(number), self.scop.types[own.write.array])
        place, behind = divmod(number, self.beside)
        return self.made(new, target, value, 2 * place + every, behind)

    def element(self, number: int, new: New) -> Access:
        """Return the access of a new statement to a part's value."""
        return new.element(self.arrays[number], self.subscripts(new.own))

    def known(self, number: int, new: New) -> Access:
        """Return the access to a part's value before it takes in an element."""
        return self.element(number, new)

    def made(
        self,
        new: New,
        target: Access,
        value: Expression,
        place: int | None = None,
        behind: int = 0,
    ) -> Statement:
        """Return a statement that writes a target, at a place among those of the first.

        ``behind`` so many others of that place in its innermost loop.
        """
        found = new.statement(target, value)
        time = (
            new.maps.apply_range(new.own.schedule)
            if place is None
            else self.time(new, place, behind)
        )
        text = f"{target.text}: {self.told} of {new.own.text}"
        return replace(found, schedule=time, text=text, **self.marks)

    def time(self, new: New, place: int, behind: int = 0) -> isl.Map:
        """Return when a new statement runs: place by place, part by part."""
        like, outer, more = self.owns[0], self.outer, 2 * len(self.chunk)
        forms = map(affine_form, output_affs(like.schedule))
        texts = ["0" if form is None else text_for(form, like, new.own) for form in forms]
        inner = [*chain(*((loop, "0") for loop in new.loops[outer:]))]
        inner[-1:] = [str(behind)] if inner else []
        times = [*texts[: 2 * outer], f"{PLACES} * ({texts[2 * outer]}) + {place}", *inner]
        times += ["0"] * (len(texts) + more - len(times))
        domain = new.maps.domain()
        point = domain.get_tuple_name(), new.loops
        return map_between(new.own.domain, point, ("", times)).intersect_domain(domain)

    def later(self, statement: Statement) -> Statement:
        """Return another statement of the region behind what is new at its place."""
        return later(statement, 2 * self.outer, 2 * len(self.chunk))


# -- proofs ------------------------------------------------------------------------------------


def readers_of(after: Scop, array: str, every: Statement) -> dict[str, isl.Map] | None:
    """Return for the readers of an array which instances of ``every`` they want the sum of.

    These add to its elements, one after the other. ``None`` where some reader does not get all.
    """
    flow, own = flow_to_reads(after), every.domain.to_union_set()
    reads = [
        (one, at)
        for one in after.statements
        for at, access in enumerate(one.accesses)
        if at and access.array == array
    ]
    (fold, *more) = (flow[every.name, at] for one, at in reads if one.name == every.name)
    began = fold.subtract_domain(own).range()  # each element once, or its sum is in pieces
    once = every.write.relation.to_union_map().intersect_domain(began).is_injective()
    fine = not more and once and fold.range().is_equal(own) and fold.is_bijective()
    found, back = dict[str, isl.Map](), every.write.relation.reverse()
    for reader, at in reads:
        if reader.name == every.name:
            continue
        use, wanted = flow[reader.name, at], reader.accesses[at].relation.apply_range(back)
        fine = (
            fine
            and found.setdefault(reader.name, wanted).is_equal(wanted)
            and use.range().is_equal(reader.domain.to_union_set())
            and use.domain().is_subset(own)
            and use.domain().is_disjoint(fold.domain())
        )
    return found if fine else None


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

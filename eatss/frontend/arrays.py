"""Arrays of a region with their subscripts, and the ``Scop`` made of all that was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product

import islpy as isl

from eatss.base.frozen import frozen, their_names
from eatss.frontend.affine import Common, RawAccess, RegionReader
from eatss.frontend.declarations import Variable
from eatss.frontend.loops import RawStatement
from eatss.frontend.refusals import NotAffineError, Reporter, reference_text
from eatss.frontend.regions import origin_of
from eatss.frontend.tree import Node
from eatss.frontend.values import Poly, Value, ValueAlgebra
from eatss.polyhedral.expression import AffineValue, Array, Expression, mapped
from eatss.polyhedral.isl_names import (
    box,
    parameter_is_bounded,
    parameter_names,
    parameters_as_dims,
    parameters_as_function_inputs,
    parameters_as_inputs,
    tuple_of_functions,
    without_parameters,
)
from eatss.polyhedral.scop import Access, Statement

# -- delinearise -------------------------------------------------------------------------------
# The dimensions of every array, those recovered from linearised subscripts included.
#
# ``A[i*N + j]`` becomes ``A[i][j]`` with inner size ``N`` where ``0 <= j < N`` is proven for all
# references to ``A`` in the region; then the two forms name the same elements one to one. Candidate
# sizes are the factors by which the source multiplies. With a constant ``N`` that cannot be proven
# the array stays one-dimensional. Of a parametric ``N``, a leading dimension, it is assumed if that
# bounds no size: where ``j`` runs to ``M``, launchers check ``M <= N``, as they check that all
# references stay inside the dimensions found here.


_MAX_INNER = 3
_MAX_FACTORS = 4


@frozen
class Delinearised:
    """An array with its dimensions as the polyhedral part is to see them.

    ``sizes`` are outermost first, ``None`` where not known; ``from_zero`` says whether the first
    dimension starts at 0, as all others do. ``splits`` has the subscripts that changed, by the
    ``id`` of their reference.
    """

    variable: Variable
    sizes: tuple[Value | None, ...]
    from_zero: bool = True
    splits: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)

    def subscripts(self, access: RawAccess) -> tuple[Value, ...]:
        """Return the subscripts of a reference in these dimensions."""
        return self.splits.get(id(access), access.subscripts)


@frozen
class _Use:
    """A reference with the domain and the counters of its statement."""

    access: RawAccess
    domain: isl.Set
    counters: frozenset[str]


def delinearise(common: Common, statements: tuple[RawStatement, ...]) -> tuple[Delinearised, ...]:
    """Find the dimensions of all arrays that are referenced, in order of first reference."""
    uses: dict[Variable, list[_Use]] = {}
    for raw in statements:
        counters = frozenset(their_names(raw.loops))
        for access in raw.accesses:
            use = _Use(access=access, domain=raw.domain, counters=counters)
            uses.setdefault(access.variable, []).append(use)
    worker = _Delineariser(common)
    return tuple(worker.array(variable, found) for variable, found in uses.items())


class _Delineariser(RegionReader):
    def array(self, variable: Variable, uses: list[_Use]) -> Delinearised:
        """Return the array with its dimensions."""
        sizes = tuple(map(self._size, variable.shape.sizes))
        found = self._split(variable, uses, sizes) if len(sizes) == 1 else None
        if found is None:
            for use in uses:
                self._check_affine(use.access)
            found = Delinearised(variable=variable, sizes=tuple(map(_unless_product, sizes)))
        is_pointer = sizes and variable.shape.is_pointer
        from_zero = not is_pointer or all(self._is_from_zero(use, found) for use in uses)
        return replace(found, from_zero=from_zero)

    def _size(self, size: int | Node | None) -> Value | None:
        if not isinstance(size, Node):
            return None if size is None else Poly.constant(size)
        try:
            return self._affine.value(size, self._algebra.everywhere)
        except NotAffineError:
            return None

    def _is_from_zero(self, use: _Use, array: Delinearised) -> bool:
        """Return whether no first subscript of a pointer is negative."""
        try:
            holds = self._algebra.at_least(array.subscripts(use.access)[0], 0)
        except NotAffineError:
            return True
        return use.domain.subtract(holds).is_empty()

    def _check_affine(self, access: RawAccess) -> None:
        for value in access.subscripts:
            try:
                self._algebra.function(value)
            except NotAffineError as error:
                found = error
                if not error.code and len(access.subscripts) == 1:
                    found = NotAffineError(
                        None,
                        "linearised",
                        text=self._quoted(access.node),
                        name=access.variable.name,
                    )
                self._reporter.not_affine(found, access.node, "subscript")

    # -- splitting --------------------------------------------------------------------

    def _split(
        self, variable: Variable, uses: list[_Use], sizes: tuple[Value | None, ...]
    ) -> Delinearised | None:
        values = [one for use in uses if isinstance(one := use.access.subscripts[0], Poly)]
        if len(values) < len(uses):
            return None
        factors = []
        for factor in (one for pair in zip(uses, values, strict=True) for one in _factors(*pair)):
            if factor not in factors:
                factors.append(factor)
        for assumes in (False, True) if any(not one.is_linear for one in values) else (False,):
            for length in range(_MAX_INNER, 0, -1):
                for inner in product(factors[:_MAX_FACTORS], repeat=length):
                    splits = self._split_all(uses, values, inner, assumes=assumes)
                    if splits is not None:
                        return Delinearised(
                            variable=variable,
                            sizes=(_quotient_of(sizes[0], inner), *reversed(inner)),
                            splits=splits,
                        )
        return None

    def _split_all(
        self, uses: list[_Use], values: list[Poly], inner: tuple[Poly, ...], *, assumes: bool
    ) -> dict[int, tuple[Value, ...]] | None:
        splits: dict[int, tuple[Value, ...]] = {}
        moves_outside, moves_inside = False, any(one.constant_value is None for one in inner)
        for use, value in zip(uses, values, strict=True):
            rest, parts = value, list[Poly]()
            for size in inner:
                divided = self._divide(rest, size, use, assumes=assumes)
                if divided is None:
                    return None
                rest, remainder = divided
                parts.insert(0, remainder)
            if not rest.is_linear:
                return None
            splits[id(use.access)] = (rest, *parts)
            moves_inside |= any(part.unknowns & use.counters for part in parts)
            moves_outside |= rest.constant_value is None
        return splits if moves_inside and moves_outside else None

    def _divide(
        self, poly: Poly, size: Poly, use: _Use, *, assumes: bool
    ) -> tuple[Poly, Poly] | None:
        """Write ``poly`` as ``quotient * size + remainder`` with ``0 <= remainder < size``."""
        quotient, remainder = _divide(poly, size)
        for shift in (0, -1, 1):
            candidate = remainder.plus(size, -shift)
            if candidate.is_linear and self._lies_below(candidate, size, use, assumes=assumes):
                return quotient.plus(Poly.constant(shift)), candidate
        return None

    def _lies_below(self, value: Poly, size: Poly, use: _Use, *, assumes: bool) -> bool:
        if value.constant_value is not None and value.constant_value < 0:
            return False
        below = self._algebra.at_least(value, 0).intersect(self._algebra.at_least(size, value, 1))
        outside = use.domain.subtract(below)
        if outside.is_empty():
            return True
        return assumes and size.constant_value is None and _may_be_assumed(outside, use)


def _unless_product(size: Value | None) -> Value | None:
    """Return a size as isl may know it."""
    return None if isinstance(size, Poly) and not size.is_linear else size


def _may_be_assumed(outside: isl.Set, use: _Use) -> bool:
    """Return whether sizes for which no point lies outside are any number, and large."""
    domain = without_parameters(use.domain, use.counters)
    allowed = domain.subtract(without_parameters(outside, use.counters))
    domain = domain.align_params(allowed.get_space())
    names = {*parameter_names(allowed)}

    def grows(sizes: isl.Set, name: str) -> bool:
        others = {*parameter_names(sizes)} - {name}
        return not parameter_is_bounded(without_parameters(sizes, others), name, above=True)

    return not allowed.is_empty() and all(
        grows(allowed, name) or not grows(domain, name) for name in names
    )


def _factors(use: _Use, value: Poly) -> Iterator[Poly]:
    """Yield the values other than 1 by which a subscript multiplies counters and parameters."""
    known: list[Poly] = []

    def degree(counter: str) -> int:
        return max(map(len, value.beside(counter).terms), default=0)

    products = sorted({name for monomial in value.terms if len(monomial) > 1 for name in monomial})
    sides = [value.beside(counter) for counter in sorted(use.counters, key=degree)]
    for side in (*sides, *map(Poly.unknown, products)):
        factor = side.scaled(-1) if all(c < 0 for c in side.terms.values()) else side
        for size in known:
            quotient, remainder = _divide(factor, size)
            factor = quotient if remainder.constant_value == 0 else factor
        constant = factor.constant_value
        is_size = constant is None or constant > 1
        if is_size and factor.is_linear and not factor.unknowns & use.counters:
            known.append(factor)
            yield factor


def _quotient_of(total: Value | None, inner: tuple[Poly, ...]) -> Value | None:
    """Return the outer size of an array of ``total`` elements, where it divides evenly."""
    for size in inner:
        if not isinstance(total, Poly):
            return None
        total, remainder = _divide(total, size)
        if remainder.constant_value != 0:
            return None
    return total if isinstance(total, Poly) and total.is_linear else None


def _divide(poly: Poly, size: Poly) -> tuple[Poly, Poly]:
    """Divide by the leading term of ``size`` as often as it goes.

    The constant of a numeric division is rounded down, all other coefficients only move
    to the quotient where they divide evenly.
    """
    lead = max(size.terms, key=lambda monomial: (len(monomial), monomial))
    factor = size.terms[lead]
    quotient, remainder = Poly({}), poly
    for monomial, coefficient in sorted(poly.terms.items(), key=lambda item: -len(item[0])):
        rest = Counter(monomial)
        rest.subtract(lead)
        is_even = coefficient % factor == 0 or not (monomial or lead)
        if is_even and min(rest.values(), default=0) >= 0:
            step = Poly({tuple(sorted(rest.elements())): 1}).scaled(coefficient // factor)
            quotient = quotient.plus(step)
            remainder = remainder.plus(step.times(size), -1)
    return quotient, remainder


# -- assemble ----------------------------------------------------------------------------------
# Makes a ``Scop`` of what was read: counters become dimensions, references relations.


@frozen
class Assembler:
    """Builds the nouns of one region.

    ``facts`` are what is known of its parameters, ``space`` is that of them.
    """

    algebra: ValueAlgebra
    reporter: Reporter
    facts: isl.Set
    space: isl.Space
    arrays: Mapping[Variable, Delinearised]

    def statement(self, number: int, raw: RawStatement, depth: int) -> Statement:
        """Return a statement of a region that has so many loops around one at most."""
        name, loops = f"S{number}", their_names(raw.loops)

        def restricted(params: isl.Set) -> isl.Set:
            made = parameters_as_dims(params.gist(self.facts), loops, name)
            return made.align_params(self.space)

        domain = restricted(raw.domain)

        def relation(values: Sequence[Value], target: str | None, within: isl.Set) -> isl.Map:
            functions = tuple(self.algebra.function(value) for value in values)
            element = tuple_of_functions(self.algebra.context, target, functions)
            found = parameters_as_inputs(element, loops, name)
            return found.intersect_domain(within).align_params(self.space)

        def access(one: RawAccess) -> Access:
            array = one.variable.unique_name
            subscripts = self.arrays[one.variable].subscripts(one)
            is_whole = raw.domain.is_subset(one.domain)
            within = domain if is_whole else domain.intersect(restricted(one.domain))
            return Access(
                array=array,
                kind=one.kind,
                relation=relation(subscripts, array, within),
                text=self._access_text(one),
                span=self.reporter.span(one.node),
            )

        def with_dims(node: Expression) -> Expression:
            """Turn counters into dimensions in an affine part."""
            if not isinstance(node, AffineValue):
                return node
            function = parameters_as_function_inputs(node.value, loops, name)
            return replace(node, value=function.align_params(self.space))

        time = [Poly.constant(raw.positions[0])]
        for level, position in zip(raw.loops, raw.positions[1:], strict=True):
            time += [Poly.unknown(level.name).scaled(level.sign), Poly.constant(position)]
        time += [Poly.constant(0)] * (2 * depth + 1 - len(time))
        return Statement(
            name=name,
            loops=loops,
            domain=domain,
            schedule=relation(time, None, domain),
            accesses=tuple(map(access, raw.accesses)),
            value=mapped(raw.value, with_dims),
            text=self.reporter.text(raw.node) + ";",
            span=self.reporter.span(raw.node),
            written_in=self.reporter.source.written_in,
            ppcg_name=raw.ppcg_name,
        )

    def _access_text(self, access: RawAccess) -> str:
        if access.node.name and not access.variable.shape.sizes:
            return access.variable.name
        in_macro = self.reporter.in_macro(access.node)
        return (reference_text if in_macro else self.reporter.text)(access.node)

    def array(self, array: Delinearised, *, ppcg_kills: bool) -> Array:
        """Return an array with its dimensions."""
        variable = array.variable
        element = variable.shape.element.element
        assert element is not None
        bounds = tuple(
            (at > 0 or array.from_zero, None if size is None else self.algebra.function(size))
            for at, size in enumerate(array.sizes)
        )
        extent = box(self.algebra.context, variable.unique_name, bounds)
        return Array(
            name=variable.unique_name,
            element_type=element,
            extent=extent.align_params(self.space),
            n_dims=len(bounds),
            is_local=variable.is_local,
            origin=origin_of(variable),
            source_name=variable.name,
            ppcg_kills=ppcg_kills,
        )

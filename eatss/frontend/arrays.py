"""Arrays of a region with their subscripts, and the ``Scop`` made of all that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import islpy as isl

from eatss.base.frozen import frozen
from eatss.base.polynomial import Monomial
from eatss.frontend.affine import AffineReader, RawAccess, RawStatement, RegionReader
from eatss.frontend.declarations import SymbolTable, Variable
from eatss.frontend.refusals import NotAffineError, Reporter, reference_text
from eatss.frontend.signature import origin_of
from eatss.frontend.tree import Node
from eatss.frontend.values import NonLinearError, Poly, TooManyPiecesError, Value, ValueAlgebra
from eatss.polyhedral.expression import AffineValue, Array, Binary, Expression, rebuilt
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

    ``sizes`` are outermost first, ``None`` where not known; ``from_zero`` says for each
    dimension whether it starts at 0. ``splits`` gives the subscripts of references that changed.
    """

    variable: Variable
    sizes: tuple[Value | None, ...]
    from_zero: tuple[bool, ...]
    splits: tuple[tuple[RawAccess, tuple[Value, ...]], ...] = ()

    def subscripts(self, access: RawAccess) -> tuple[Value, ...]:
        """Return the subscripts of a reference in these dimensions."""
        for known, subscripts in self.splits:
            if known is access:
                return subscripts
        return access.subscripts


@frozen
class _Use:
    """A reference with the domain and the counters of its statement."""

    access: RawAccess
    domain: isl.Set
    counters: frozenset[str]


def delinearise(
    affine: AffineReader,
    symbols: SymbolTable,
    reporter: Reporter,
    statements: tuple[RawStatement, ...],
) -> tuple[Delinearised, ...]:
    """Find the dimensions of all arrays that are referenced, in order of first reference."""
    uses: dict[Variable, list[_Use]] = {}
    for raw in statements:
        counters = frozenset(level.name for level in raw.loops)
        for access in raw.accesses:
            use = _Use(access=access, domain=raw.domain, counters=counters)
            uses.setdefault(access.variable, []).append(use)
    worker = _Delineariser(symbols, affine, reporter)
    return tuple(worker.array(variable, found) for variable, found in uses.items())


class _Delineariser(RegionReader):
    _assumes = False

    def array(self, variable: Variable, uses: list[_Use]) -> Delinearised:
        """Return the array with its dimensions."""
        sizes = tuple(self._size(size) for size in variable.shape.sizes)
        found = self._split(variable, uses, sizes) if len(sizes) == 1 else None
        if found is None and len(sizes) == 1 and self._has_products(uses):
            self._assumes = True
            found = self._split(variable, uses, sizes)
            self._assumes = False
        if found is None:
            self._refuse_products(variable, uses)
            found = Delinearised(variable=variable, sizes=sizes, from_zero=(True,) * len(sizes))
        return self._with_origin(found, uses)

    def _size(self, size: int | Node | None) -> Value | None:
        if size is None:
            return None
        if isinstance(size, int):
            return Poly.constant(size)
        try:
            return self._affine.value(size, self._algebra.everywhere)
        except NotAffineError:
            return None

    # -- splitting --------------------------------------------------------------------

    def _split(
        self, variable: Variable, uses: list[_Use], sizes: tuple[Value | None, ...]
    ) -> Delinearised | None:
        if not all(isinstance(use.access.subscripts[0], Poly) for use in uses):
            return None
        factors = self._factors(uses)
        for length in range(_MAX_INNER, 0, -1):
            for inner in product(factors, repeat=length):
                splits = self._split_all(uses, inner)
                if splits is not None:
                    outer = _quotient_of(sizes[0], inner)
                    return Delinearised(
                        variable=variable,
                        sizes=(outer, *reversed(inner)),
                        from_zero=(True,) * (length + 1),
                        splits=splits,
                    )
        return None

    @staticmethod
    def _factors(uses: list[_Use]) -> list[Poly]:
        """Return the values by which subscripts multiply, which may be sizes."""
        found: list[Poly] = []
        for factor in (one for use in uses for one in _coefficients(use)):
            if all(factor.terms != known.terms for known in found):
                found.append(factor)
        return found[:_MAX_FACTORS]

    def _split_all(
        self, uses: list[_Use], inner: tuple[Poly, ...]
    ) -> tuple[tuple[RawAccess, tuple[Value, ...]], ...] | None:
        splits = []
        moves_inside = moves_outside = False
        for use in uses:
            parts = self._split_one(use, inner)
            if parts is None:
                return None
            splits.append((use.access, parts))
            moves_inside = moves_inside or any(
                isinstance(part, Poly) and part.unknowns & use.counters for part in parts[1:]
            )
            outermost = parts[0]
            is_fixed = isinstance(outermost, Poly) and outermost.constant_value is not None
            moves_outside = moves_outside or not is_fixed
        if not moves_outside:
            return None
        is_parametric = any(factor.constant_value is None for factor in inner)
        return tuple(splits) if moves_inside or is_parametric else None

    def _split_one(self, use: _Use, inner: tuple[Poly, ...]) -> tuple[Value, ...] | None:
        rest = use.access.subscripts[0]
        assert isinstance(rest, Poly)
        parts: list[Value] = []
        for size in inner:
            divided = self._divide(rest, size, use)
            if divided is None:
                return None
            rest, remainder = divided
            parts.append(remainder)
        if not rest.is_linear:
            return None
        parts.append(rest)
        return tuple(reversed(parts))

    def _divide(self, poly: Poly, size: Poly, use: _Use) -> tuple[Poly, Poly] | None:
        """Write ``poly`` as ``quotient * size + remainder`` with ``0 <= remainder < size``."""
        quotient, remainder = _divide(poly, size)
        for shift in (0, -1, 1):
            candidate = remainder.plus(size, -shift)
            if candidate.is_linear and self._lies_below(candidate, size, use):
                return quotient.plus(Poly.constant(shift)), candidate
        return None

    def _lies_below(self, value: Poly, size: Poly, use: _Use) -> bool:
        if value.constant_value is not None and value.constant_value < 0:
            return False
        below = self._algebra.at_least(value, 0).intersect(self._algebra.at_least(size, value, 1))
        outside = use.domain.subtract(below)
        if outside.is_empty():
            return True
        return self._assumes and size.constant_value is None and self._may_assume(outside, use)

    def _may_assume(self, outside: isl.Set, use: _Use) -> bool:
        """Return whether sizes for which no point lies outside are any number, and large."""
        domain = without_parameters(use.domain, use.counters)
        allowed = domain.subtract(without_parameters(outside, use.counters))
        domain = domain.align_params(allowed.get_space())
        names = set(parameter_names(allowed))
        return not allowed.is_empty() and all(
            parameter_is_bounded(without_parameters(domain, names - {name}), name, above=True)
            or not parameter_is_bounded(
                without_parameters(allowed, {*parameter_names(allowed)} - {name}), name, above=True
            )
            for name in names
        )

    def _has_products(self, uses: list[_Use]) -> bool:
        values = [use.access.subscripts[0] for use in uses]
        return any(isinstance(value, Poly) and not value.is_linear for value in values)

    # -- the rest -----------------------------------------------------------------------

    def _refuse_products(self, variable: Variable, uses: list[_Use]) -> None:
        for use in uses:
            for value in use.access.subscripts:
                try:
                    self._algebra.function(value)
                except TooManyPiecesError:
                    self._error(
                        "EATSS-F009",
                        use.access.node,
                        f"subscript of {self._quoted(use.access.node)} has too many cases",
                        "use fewer min, max and ?: in one subscript",
                    )
                except NonLinearError:
                    self._refuse_product(variable, use)

    def _refuse_product(self, variable: Variable, use: _Use) -> None:
        quoted = self._quoted(use.access.node)
        if len(variable.shape.sizes) != 1:
            self._error(
                "EATSS-F012",
                use.access.node,
                f"subscript of {quoted} is not affine: product of variables",
                "use sums of counters and parameters with constant factors",
            )
            return
        self._error(
            "EATSS-F036",
            use.access.node,
            f"cannot prove that {quoted} is a linearised array: an inner subscript may leave its "
            "row",
            f"declare the array with its dimensions, e.g. double {variable.name}[n][m], or fix "
            "the size with a macro or --param",
        )

    def _with_origin(self, array: Delinearised, uses: list[_Use]) -> Delinearised:
        """Drop the lower bound 0 of a pointer that may be used with negative subscripts."""
        is_pointer = array.sizes and array.variable.shape.is_pointer
        if not is_pointer or all(
            self._is_non_negative(array.subscripts(use.access)[0], use.domain) for use in uses
        ):
            return array
        return replace(array, from_zero=(False, *array.from_zero[1:]))

    def _is_non_negative(self, value: Value, domain: isl.Set) -> bool:
        try:
            holds = self._algebra.at_least(value, 0)
        except (NonLinearError, TooManyPiecesError):
            return True
        return domain.subtract(holds).is_empty()


def _coefficients(use: _Use) -> Iterator[Poly]:
    """Yield the values other than 1 by which a subscript multiplies counters and parameters."""
    value = use.access.subscripts[0]
    assert isinstance(value, Poly)
    known: list[Poly] = []

    def degree(counter: str) -> int:
        return max((len(monomial) for monomial in value.beside(counter).terms), default=0)

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
    if not isinstance(total, Poly):
        return None
    rest = total
    for size in inner:
        rest, remainder = _divide(rest, size)
        if remainder.constant_value != 0:
            return None
    return rest if rest.is_linear else None


def _divide(poly: Poly, size: Poly) -> tuple[Poly, Poly]:
    """Divide by the leading term of ``size`` as often as it goes.

    The constant of a numeric division is rounded down, all other coefficients only move
    to the quotient where they divide evenly.
    """
    lead = max(size.terms, key=lambda monomial: (len(monomial), monomial))
    factor = size.terms[lead]
    quotient = Poly({})
    remainder = poly
    for monomial, coefficient in sorted(poly.terms.items(), key=lambda item: -len(item[0])):
        reduced = _quotient(monomial, lead)
        if reduced is None:
            continue
        if coefficient % factor and (monomial or lead):
            continue
        step = Poly({reduced: coefficient // factor} if coefficient // factor else {})
        quotient = quotient.plus(step)
        remainder = remainder.plus(step.times(size), -1)
    return quotient, remainder


def _quotient(monomial: Monomial, lead: Monomial) -> Monomial | None:
    rest = list(monomial)
    for name in lead:
        if name not in rest:
            return None
        rest.remove(name)
    return tuple(rest)


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
        name, loops = f"S{number}", tuple(level.name for level in raw.loops)

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
            """Turn counters into dimensions in affine parts; left-deep chains do not recurse."""
            spine: list[Binary] = []
            while isinstance(node, Binary):
                spine.append(node)
                node = node.left
            if isinstance(node, AffineValue):
                function = parameters_as_function_inputs(node.value, loops, name)
                node = replace(node, value=function.align_params(self.space))
            node = rebuilt(node, with_dims)
            for parent in reversed(spine):
                node = replace(parent, left=node, right=with_dims(parent.right))
            return node

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
            value=with_dims(raw.value),
            text=self.reporter.text(raw.node) + ";",
            span=self.reporter.span(raw.node),
            ppcg_name=raw.ppcg_name,
        )

    def _access_text(self, access: RawAccess) -> str:
        if access.node.name and not access.variable.shape.sizes:
            return access.variable.name
        text = reference_text(access.node) if self.reporter.in_macro(access.node) else None
        return text or self.reporter.text(access.node)

    def array(self, array: Delinearised, *, ppcg_kills: bool) -> Array:
        """Return an array with its dimensions."""
        variable = array.variable
        element = variable.shape.element.element
        assert element is not None
        bounds = tuple(
            (from_zero, None if size is None else self.algebra.function(size))
            for from_zero, size in zip(array.from_zero, array.sizes, strict=True)
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

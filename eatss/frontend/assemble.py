"""Makes a ``Scop`` of what was read: counters become dimensions, references relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from eatss.base.frozen import frozen
from eatss.frontend.delinearise import Delinearised
from eatss.frontend.reading import RawAccess, RawStatement
from eatss.frontend.report import Reporter, reference_text
from eatss.frontend.signature import origin_of
from eatss.frontend.symbols import Variable
from eatss.frontend.values import Poly, Value, ValueAlgebra
from eatss.polyhedral.isl_names import (
    box,
    parameters_as_dims,
    parameters_as_function_inputs,
    parameters_as_inputs,
    tuple_of_functions,
)
from eatss.polyhedral.scops import Access, AffineValue, Array, Binary, Expression, Statement
from eatss.polyhedral.scops.expression import rebuilt


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

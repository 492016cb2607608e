"""Makes a ``Scop`` of what was read: counters become dimensions, references relations."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from eatss.diagnostics import SourceSpan
from eatss.frontend.affine import AffineReader
from eatss.frontend.delinearise import Delinearised
from eatss.frontend.reading import RawAccess, RawStatement
from eatss.frontend.report import Reporter, reference_text
from eatss.frontend.signature import origin_of
from eatss.frontend.symbols import Variable
from eatss.frontend.values import Poly, Value
from eatss.frozen import frozen
from eatss.isl_names import (
    box,
    parameter_space,
    parameters_as_dims,
    parameters_as_function_inputs,
    parameters_as_inputs,
    tuple_of_functions,
)
from eatss.scops import (
    Access,
    AffineValue,
    Array,
    Binary,
    Expression,
    FunctionParameter,
    ParameterDeclaration,
    Scop,
    SizeCondition,
    Statement,
)
from eatss.scops.expression import rebuilt


@frozen
class RegionReading:
    """All that is known of a region before its ``Scop`` is made."""

    file: str
    function: str
    index: int
    span: SourceSpan
    statements: tuple[RawStatement, ...]
    arrays: tuple[Delinearised, ...]
    parameters: tuple[ParameterDeclaration, ...]
    facts: isl.Set
    context: isl.Set
    size_macros: tuple[tuple[str, int], ...]
    function_parameters: tuple[FunctionParameter, ...]
    whole_function: bool
    ppcg_killed: frozenset[Variable]
    ppcg_counters: tuple[str, ...]
    ppcg_steps: tuple[tuple[str, int], ...]
    ppcg_wholes: tuple[str, ...]
    conditions: tuple[SizeCondition, ...]


class Assembler:
    """Builds the nouns of one region."""

    def __init__(self, reading: RegionReading, affine: AffineReader, reporter: Reporter) -> None:
        self._reading = reading
        self._algebra = affine.algebra
        self._reporter = reporter
        self._parameters = tuple(parameter.name for parameter in reading.parameters)
        self._space = parameter_space(self._algebra.context, self._parameters)
        self._arrays = {array.variable: array for array in reading.arrays}

    def scop(self) -> Scop:
        """Return the region as a ``Scop``."""
        reading = self._reading
        depth = max((len(raw.loops) for raw in reading.statements), default=0)
        statements = tuple(
            self._statement(number, raw, depth) for number, raw in enumerate(reading.statements)
        )
        return Scop(
            file=reading.file,
            function=reading.function,
            index=reading.index,
            parameters=self._parameters,
            context=reading.context.align_params(self._space),
            arrays=tuple(self._array(array) for array in reading.arrays),
            statements=statements,
            span=reading.span,
            size_macros=reading.size_macros,
            function_parameters=reading.function_parameters,
            whole_function=reading.whole_function,
            parameter_declarations=reading.parameters,
            ppcg_counters=reading.ppcg_counters,
            ppcg_steps=reading.ppcg_steps,
            ppcg_wholes=reading.ppcg_wholes,
            conditions=reading.conditions,
        )

    def _statement(self, number: int, raw: RawStatement, depth: int) -> Statement:
        name = f"S{number}"
        loops = tuple(level.name for level in raw.loops)
        params = raw.domain.gist(self._reading.facts)
        domain = parameters_as_dims(params, loops, name).align_params(self._space)
        accesses = tuple(self._access(raw, access, loops, name, domain) for access in raw.accesses)
        return Statement(
            name=name,
            loops=loops,
            domain=domain,
            schedule=self._schedule(raw, depth, loops, name, domain),
            accesses=accesses,
            value=self._with_dims(raw.value, loops, name),
            text=self._statement_text(raw),
            span=self._reporter.span(raw.node),
            ppcg_name=raw.ppcg_name,
        )

    def _statement_text(self, raw: RawStatement) -> str:
        return self._reporter.text(raw.node) + ";"

    def _access(
        self,
        raw: RawStatement,
        access: RawAccess,
        loops: tuple[str, ...],
        name: str,
        domain: isl.Set,
    ) -> Access:
        array = self._arrays[access.variable]
        subscripts = array.subscripts(access)
        relation = self._relation(subscripts, access.variable.unique_name, loops, name)
        if not raw.domain.is_subset(access.domain):
            made = parameters_as_dims(access.domain.gist(self._reading.facts), loops, name)
            domain = domain.intersect(made.align_params(self._space))
        return Access(
            array=access.variable.unique_name,
            kind=access.kind,
            relation=relation.intersect_domain(domain).align_params(self._space),
            text=self._access_text(access),
            span=self._reporter.span(access.node),
        )

    def _access_text(self, access: RawAccess) -> str:
        if access.node.name and not access.variable.shape.sizes:
            return access.variable.name
        if self._reporter.in_macro(access.node):
            return reference_text(access.node) or self._reporter.text(access.node)
        return self._reporter.text(access.node)

    def _relation(
        self, values: tuple[Value, ...], target: str | None, loops: tuple[str, ...], name: str
    ) -> isl.Map:
        functions = tuple(self._algebra.function(value) for value in values)
        element = tuple_of_functions(self._algebra.context, target, functions)
        return parameters_as_inputs(element, loops, name)

    def _schedule(
        self,
        raw: RawStatement,
        depth: int,
        loops: tuple[str, ...],
        name: str,
        domain: isl.Set,
    ) -> isl.Map:
        time: list[Value] = [Poly.constant(raw.positions[0])]
        for level, position in zip(raw.loops, raw.positions[1:], strict=True):
            time.append(Poly.unknown(level.name).scaled(level.sign))
            time.append(Poly.constant(position))
        time.extend(Poly.constant(0) for _ in range(2 * depth + 1 - len(time)))
        relation = self._relation(tuple(time), None, loops, name)
        return relation.intersect_domain(domain).align_params(self._space)

    def _with_dims(self, root: Expression, loops: tuple[str, ...], name: str) -> Expression:
        """Turn counters into dimensions in the affine parts; left-deep chains do not recurse."""

        def with_dims(node: Expression) -> Expression:
            spine: list[Binary] = []
            while isinstance(node, Binary):
                spine.append(node)
                node = node.left
            if isinstance(node, AffineValue):
                function = parameters_as_function_inputs(node.value, loops, name)
                node = replace(node, value=function.align_params(self._space))
            node = rebuilt(node, with_dims)
            for parent in reversed(spine):
                node = replace(parent, left=node, right=with_dims(parent.right))
            return node

        return with_dims(root)

    def _array(self, array: Delinearised) -> Array:
        variable: Variable = array.variable
        element = variable.shape.element.element
        assert element is not None
        bounds = tuple(
            (from_zero, None if size is None else self._algebra.function(size))
            for from_zero, size in zip(array.from_zero, array.sizes, strict=True)
        )
        extent = box(self._algebra.context, variable.unique_name, bounds)
        return Array(
            name=variable.unique_name,
            element_type=element,
            extent=extent.align_params(self._space),
            n_dims=len(bounds),
            is_local=variable.is_local,
            origin=origin_of(variable),
            source_name=variable.name,
            ppcg_kills=variable in self._reading.ppcg_killed,
        )

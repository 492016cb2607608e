"""A region of affine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from eatss.diagnostics import SourceSpan
from eatss.scops.array import Array
from eatss.scops.signature import FunctionParameter, ParameterDeclaration
from eatss.scops.statement import Statement

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeProduct:
    """A parameter that is a product of others and of numbers: ``NA_NB = NA * NB``.

    Negative factors count as 0: loops over them do not run.
    """

    name: str
    factors: tuple[int | str, ...]

    def value(self, sizes: Mapping[str, int]) -> int | None:
        """Return its value, ``None`` where that of a factor is not known."""
        values = [sizes.get(one) if isinstance(one, str) else one for one in self.factors]
        known = [max(0, value) for value in values if value is not None]
        return prod(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCondition:
    """Sizes for which a region is what was read, and what is the case for others."""

    sizes: isl.Set
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scop:
    """One ``#pragma scop`` region: all that later passes know of the C program.

    All isl objects live in one ``isl.Context``, ``isl_context``, made for this run,
    so that runs in different threads share nothing. ``context`` is what is known
    about the parameters. Statements stand in source order. ``index`` counts the
    regions of the file from 0. ``size_macros`` are the macros that spell numbers in the
    bounds of the loops, with their values: bounds spelled alike are one size.

    ``function_parameters`` are those of the C function. ``whole_function`` says that the function
    does nothing that can be observed but this region. ``parameter_declarations`` tells what
    each of ``parameters`` is in C. ``ppcg_counters`` are counters whose last values PPCG takes for
    results of the region, because the function names them again after it. ``ppcg_steps`` are the
    statements by which PPCG has counters set, each with its name and how many loops are around it.
    ``ppcg_wholes`` is the text of conditions and calls that PPCG takes for one statement, with all
    that is below them.
    ``products`` are those of ``parameters`` that callers do not pass: products of others.
    ``written`` is the region of the source where statements compute anew what they read there
    (``None``: this is it). ``conditions`` are part of ``context``: what runs the region's code has
    to check them.
    """

    file: str
    function: str
    index: int
    parameters: tuple[str, ...]
    context: isl.Set
    arrays: tuple[Array, ...]
    statements: tuple[Statement, ...]
    span: SourceSpan
    size_macros: tuple[tuple[str, int], ...] = ()
    function_parameters: tuple[FunctionParameter, ...] = ()
    whole_function: bool = False
    parameter_declarations: tuple[ParameterDeclaration, ...] = ()
    ppcg_counters: tuple[str, ...] = ()
    ppcg_steps: tuple[tuple[str, int], ...] = ()
    ppcg_wholes: tuple[str, ...] = ()
    products: tuple[SizeProduct, ...] = ()
    written: Scop | None = None
    conditions: tuple[SizeCondition, ...] = ()

    @property
    def isl_context(self) -> isl.Context:
        """The isl context all sets and maps of this scop live in."""
        return self.context.get_ctx()

    @property
    def sizes(self) -> tuple[str, ...]:
        """The parameters that callers give a value, directly or as a macro."""
        products = {one.name for one in self.products}
        return tuple(name for name in self.parameters if name not in products)

    def with_products(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Return the values of sizes, and those of the products of known ones."""
        products = {one.name: one.value(sizes) for one in self.products}
        return {**sizes, **{name: value for name, value in products.items() if value is not None}}

    def array(self, name: str) -> Array:
        """Return the array called ``name``; ``KeyError`` if there is none."""
        for array in self.arrays:
            if array.name == name:
                return array
        raise KeyError(name)

    def statement(self, name: str) -> Statement:
        """Return the statement called ``name``; ``KeyError`` if there is none."""
        for statement in self.statements:
            if statement.name == name:
                return statement
        raise KeyError(name)

    def is_dead_after(self, array: Array) -> bool:
        """Tell whether nothing outside the region sees the values that an array has after it."""
        unseen = self.whole_function or (array.ppcg_kills and not array.n_dims)
        return array.is_local or (array.origin == "local" and unseen)

    @property
    def domain(self) -> isl.UnionSet:
        """The union of all statement domains."""
        import islpy as isl  # noqa: PLC0415 - the nouns do without

        union = isl.UnionSet.empty(self.context.get_space())
        for statement in self.statements:
            union = union.union(isl.UnionSet.from_set(statement.domain))
        return union

    @property
    def schedule(self) -> isl.UnionMap:
        """The original order of execution, all statements together."""
        import islpy as isl  # noqa: PLC0415 - the nouns do without

        union = isl.UnionMap.empty(self.context.get_space())
        for statement in self.statements:
            union = union.union(isl.UnionMap.from_map(statement.schedule))
        return union

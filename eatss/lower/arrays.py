"""Arrays as the generated text sees them: C names, shapes, addresses, types of indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import islpy as isl

from eatss.base.free_names import free_name
from eatss.base.frozen import frozen
from eatss.lower.isl_text import expression_of, value_of
from eatss.lower.kernel.nodes import Buffer, Element, Extents
from eatss.lower.schedule.names import NameTable
from eatss.plan.stage import may_be_aligned
from eatss.polyhedral.expression import Array
from eatss.polyhedral.isl_names import (
    affine_form,
    dim_names,
    dims_as_parameters,
    function_of_parameters,
    output_affs,
    parameter_bound,
    parameter_is_bounded,
    without_parameters,
)
from eatss.polyhedral.scop import Access, Scop
from eatss.program import (
    Constant,
    IntExpr,
    Name,
    evaluate,
    substitute,
)


@frozen
class DeviceArray:
    """An array in device memory: its C name, and its extents, outermost first.

    A scalar that the region only reads is passed by value; any other scalar is a cell of one
    element. ``declared`` are the extents in the source, where ``shape`` may count several
    dimensions as one.
    """

    array: Array
    name: str
    shape: tuple[IntExpr, ...]
    declared: tuple[IntExpr, ...]
    by_value: bool

    @property
    def buffer(self) -> Buffer:
        """What kernels see of it."""
        return Buffer(
            name=self.name,
            space="argument" if self.by_value else "global",
            element_type=self.array.element_type,
            layout=Extents(self.shape),
        )

    def element(self, subscripts: Sequence[IntExpr]) -> Element:
        """Return an element."""
        return Element(buffer=self.buffer, subscripts=tuple(subscripts))

    def may_be_aligned(self, width: int) -> bool:
        """Tell whether rows may all begin at multiples of several elements."""
        extents = [one.value if isinstance(one, Constant) else None for one in self.shape]
        return may_be_aligned(extents, width)

    def size(self, values: dict[str, int]) -> int:
        """Return the number of elements for values of the parameters."""
        return prod(evaluate(extent, values) for extent in self.shape)


def device_arrays(scop: Scop, names: NameTable) -> dict[str, DeviceArray]:
    """Return the arrays of a region by name, as generated text calls them.

    Args:
        scop: the region.
        names: what is taken; the names of the arrays are added.
    """
    written = frozenset(statement.write.array for statement in scop.statements)
    return {
        array.name: DeviceArray(
            array=array,
            name=names.fresh(array.source_name if array.source_name.isidentifier() else array.name),
            shape=shape_of(scop, array),
            declared=declared_shape(scop, array),
            by_value=array.n_dims == 0 and array.name not in written,
        )
        for array in scop.arrays
    }


def shape_of(scop: Scop, array: Array) -> tuple[IntExpr, ...]:
    """Return the extents of an array; where the source leaves one open, what the region uses."""
    taken = set(scop.parameters)
    names = tuple(free_name(f"d{k}", taken) for k in range(array.n_dims))
    bound = dims_as_parameters(array.extent, names)
    touched: isl.Set | None = None
    extents = []
    for name in names:
        space = bound
        if not _is_bounded(bound, name, names):
            touched = touched if touched is not None else _touched(scop, array, names)
            space = touched
        line = _only(space, name, names)
        highest = parameter_bound(line, name, upper=True)
        extents.append(value_of(highest, highest.params()) + 1)
    return tuple(extents)


def declared_shape(scop: Scop, array: Array) -> tuple[IntExpr, ...]:
    """Return the extents of an array in the source."""
    if array.declared is None:
        return shape_of(scop, array)
    n_dims = len(dim_names(array.declared))
    return shape_of(scop, replace(array, extent=array.declared, n_dims=n_dims, declared=None))


def _only(params: isl.Set, name: str, names: Sequence[str]) -> isl.Set:
    return without_parameters(params, [other for other in names if other != name])


def _is_bounded(params: isl.Set, name: str, names: Sequence[str]) -> bool:
    return parameter_is_bounded(_only(params, name, names), name, above=True)


def _touched(scop: Scop, array: Array, names: Sequence[str]) -> isl.Set:
    found: isl.Set | None = None
    for statement in scop.statements:
        for access in statement.accesses:
            if access.array == array.name:
                image = dims_as_parameters(access.relation.range(), names)
                found = image if found is None else found.union(image)
    assert found is not None
    return found


def subscripts_of(access: Access, values: dict[str, IntExpr]) -> tuple[IntExpr, ...]:
    """Return the subscripts of an access where the statement's counters have ``values``."""
    return tuple(affine_text(function, values) for function in output_affs(access.relation))


def affine_text(function: isl.PwAff, values: dict[str, IntExpr]) -> IntExpr:
    """Return a function of a statement's counters as an expression of their ``values``."""
    form = affine_form(function)
    if form is None:
        return _general(function, values)
    result: IntExpr = Constant(0)
    terms = [(values[name], coefficient) for name, coefficient in form.coefficients]
    terms += [(Name(name), coefficient) for name, coefficient in form.parameters]
    for term, coefficient in sorted(terms, key=lambda pair: pair[1] < 0):
        if coefficient < 0:
            result = result - -coefficient * term if result != Constant(0) else coefficient * term
        else:
            product = coefficient * term
            result = product if result == Constant(0) else result + product
    return result + form.constant


def _general(function: isl.PwAff, values: dict[str, IntExpr]) -> IntExpr:
    names = dim_names(function.domain())
    free = function_of_parameters(function)
    build = isl.AstBuild.from_context(free.domain())
    return substitute(expression_of(build.expr_from_pw_aff(free)), {n: values[n] for n in names})

"""The arguments of an entry: those of the original function, and what it reaches besides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from eatss.lower.arrays import DeviceArray, device_arrays
from eatss.lower.schedule.names import NameTable
from eatss.polyhedral.expression import Array
from eatss.polyhedral.scop import FunctionParameter, ParameterDeclaration, Scop
from eatss.program import Argument, Constant, Interface, InterfaceEntry, Parameter, Temporary
from eatss.program.plan import Place, Role
from eatss.program.source_names import SHARED, size_macro


def names_of(scop: Scop, macros: Iterable[str]) -> NameTable:
    """Return the names that arrays of a region cannot have in generated text.

    ``macros`` are the sizes of all regions that macros name.
    """
    return NameTable((scop.function, *scop.parameters, *macros, SHARED))


def interface_of(scops: Sequence[Scop], macros: Sequence[tuple[str, int]]) -> Interface:
    """Return what callers of the program made of regions pass, before it is made.

    Args:
        scops: the regions over symbolic sizes.
        macros: sizes that macros name, with their values.
    """
    return Interface(
        parameters=parameters_of([(scop, True) for scop in scops], dict(macros)),
        entries=tuple(
            InterfaceEntry(
                function=scop.function,
                arguments=entry_arguments(
                    scop,
                    device_arrays(scop, names_of(scop, dict(macros))),
                    frozenset(statement.write.array for statement in scop.statements),
                ),
            )
            for scop in scops
        ),
    )


def parameters_of(
    regions: Sequence[tuple[Scop, bool]],
    macros: Mapping[str, int],
    tiles: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Parameter, ...]:
    """Return the sizes a program is generic over.

    Args:
        regions: each with whether its code is for any sizes; else all macros are sizes of it.
        macros: sizes that macros name, with their values.
        tiles: the largest tile along each size.
    """
    found: dict[str, Parameter] = {}
    for scop, generic in regions:
        for name in scop.sizes if generic else (*scop.sizes, *macros):
            found.setdefault(
                name,
                Parameter(
                    name=name,
                    kind="macro" if name in macros else "argument",
                    default=macros.get(name),
                    tile=tiles.get(name, 0),
                    defined_as=size_macro(name) if name in macros else None,
                ),
            )
    return tuple(found.values())


def taken_names(scop: Scop) -> tuple[str, ...]:
    """Return the names of the C source that generated names must not be."""
    names = {scop.function, *scop.parameters, *(p.name for p in scop.function_parameters)}
    names |= {declaration.source_name for declaration in scop.parameter_declarations}
    return tuple(sorted(names))


def entry_arguments(
    scop: Scop, arrays: Mapping[str, DeviceArray], written: frozenset[str]
) -> tuple[Argument, ...]:
    """Return the arguments of the function that runs a region, in order.

    First the parameters of the original function, then global variables, then what the
    function keeps locally and sets before the region.
    """
    by_source = {
        (array.array.source_name or array.array.name): array
        for array in arrays.values()
        if array.array.origin == "parameter"
    }
    argument = partial(_argument, scop, written)
    declarations = scop.parameter_declarations
    found: list[Argument] = []
    for parameter in scop.function_parameters:
        sizes = [one for one in declarations if _is_member(one, parameter)]
        parts = [array for array in arrays.values() if _is_member(array.array, parameter)]
        members = [
            replace(one, position=parameter.position, structure=parameter.c_type)
            for one in (*map(_size, sizes), *map(argument, parts))
        ]
        array = by_source.get(parameter.name)
        if members:
            found += members
        elif array is not None:
            found.append(replace(argument(array), position=parameter.position))
        else:
            found.append(_parameter(scop, parameter))
    found += (
        argument(array)
        for array in arrays.values()
        if array.array.origin not in ("parameter", "member") and not _is_temporary(scop, array)
    )
    found += (
        _size(one) for one in declarations if one.origin not in ("parameter", "member", "macro")
    )
    return tuple(found)


def _is_member(one: ParameterDeclaration | Array, parameter: FunctionParameter) -> bool:
    """Tell whether a parameter is or points to the structure that something is a member of."""
    owner = re.split(r"\W", one.source_name, maxsplit=1)[0]
    return one.origin == "member" and owner == parameter.name


def _parameter(scop: Scop, parameter: FunctionParameter) -> Argument:
    names = {d.source_name: d.name for d in scop.parameter_declarations if d.origin == "parameter"}
    element = "char" if parameter.element_type is None else parameter.element_type.value
    role: Role = "array" if parameter.is_pointer else "scalar"
    is_structure = parameter.element_type is None and not parameter.is_pointer
    return Argument(
        name=names.get(parameter.name) or NameTable().fresh(parameter.name),
        role="parameter" if parameter.name in names else role,
        element_type=element,
        shape=(Constant(1),) if parameter.is_pointer else (),
        reads=parameter.name in names,
        writes=False,
        source="parameter",
        source_name=parameter.name,
        position=parameter.position,
        structure=parameter.c_type if is_structure else "",
    )


def _size(declaration: ParameterDeclaration) -> Argument:
    return Argument(
        name=declaration.name,
        role="parameter",
        element_type=declaration.element_type.value,
        shape=(),
        reads=True,
        writes=False,
        source=_SOURCES.get(declaration.origin, "local"),
        source_name=declaration.source_name,
        position=None,
    )


_SOURCES: Mapping[str, Place] = {"parameter": "parameter", "member": "member", "global": "global"}


def _argument(scop: Scop, written: frozenset[str], array: DeviceArray) -> Argument:
    noun = array.array
    role: Role = "scalar" if array.by_value else "cell" if noun.n_dims == 0 else "array"
    reads = any(
        access.array == noun.name and not access.is_write
        for statement in (scop.written or scop).statements
        for access in statement.accesses
    )
    by_value = role == "cell" and noun.origin == "parameter"  # pointers are arrays
    return Argument(
        name=array.name,
        role=role,
        element_type=noun.element_type.value,
        shape=array.declared,
        reads=reads,
        writes=noun.name in written,
        source="local" if by_value else _SOURCES.get(noun.origin, "local"),
        source_name=noun.source_name or noun.name,
        position=None,
    )


def temporaries_of(scop: Scop, arrays: Mapping[str, DeviceArray]) -> tuple[Temporary, ...]:
    """Return the device memory an entry allocates for arrays local to the region or function."""
    return tuple(
        Temporary(
            name=array.name, element_type=array.array.element_type.value, shape=array.declared
        )
        for array in arrays.values()
        if _is_temporary(scop, array)
    )


def outside_arrays(scop: Scop, arrays: Mapping[str, DeviceArray]) -> tuple[str, ...]:
    """Return the names of the arrays in device memory whose values others see."""
    return tuple(
        name
        for name, array in arrays.items()
        if not array.by_value and not _is_temporary(scop, array)
    )


def _is_temporary(scop: Scop, array: DeviceArray) -> bool:
    """Tell whether nothing outside the region sees an array."""
    noun = array.array
    local = noun.origin == "local" and scop.whole_function
    return (noun.is_local or local) and not array.by_value

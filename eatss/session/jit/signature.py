"""What a callable takes: the arguments of all regions of a program, each once, by their C names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from eatss.base.diagnostics import input_error
from eatss.base.frozen import Names, Numbers, frozen
from eatss.base.text import NamedTexts, counted, equations
from eatss.program import Argument, Interface, IntExpr, c_text, evaluate, names_in
from eatss.program.expression import OwnSizes, Sizes
from eatss.verify.data import dtype_of

Role: TypeAlias = Literal["array", "cell", "scalar", "size"]
Shape: TypeAlias = tuple[IntExpr, ...]

KEYWORD = "stream"
"""The argument of a call that names its stream, where the program has none of that name."""


@frozen
class CallArgument:
    """An argument of a callable.

    ``name`` is that of the C source. An ``array`` has ``shapes`` in the program's sizes, one for
    each way that regions see it, which all have to hold; a ``cell`` is an array of one element, a
    ``scalar`` a number. A ``size`` is a whole number called ``size`` in shapes; ``default`` is its
    value in the source, ``None`` if it has none there. What no region reads or writes is not
    ``used`` and may be left out.
    """

    name: str
    role: Role
    dtype: np.dtype[Any]
    shapes: tuple[Shape, ...] = ((),)
    writes: bool = False
    size: str = ""
    default: int | None = None
    used: bool = True

    def __str__(self) -> str:
        return self.name if self.default is None else f"{self.name}={self.default}"

    @property
    def shape(self) -> Shape:
        """The shape as the first region sees it."""
        return self.shapes[0]


Arguments: TypeAlias = Mapping[str, CallArgument]


@dataclass(frozen=True, kw_only=True)
class CallSignature:
    """The arguments of a callable: the function's in their order, then what it reaches besides.

    ``names`` says, for each region, what its launch plan calls the argument of a name.
    """

    arguments: tuple[CallArgument, ...]
    names: tuple[NamedTexts, ...]

    def __getitem__(self, name: str) -> CallArgument:
        return next(argument for argument in self.arguments if argument.name == name)

    def __str__(self) -> str:
        positional = [str(one) for one in self.arguments if one.role != "size" or not one.default]
        sizes = [str(one) for one in self.arguments if one.role == "size" and one.default]
        return ", ".join([*positional, *(["*", *sizes] if sizes else [])])

    @cached_property
    def known(self) -> frozenset[str]:
        """The names of all arguments."""
        return frozenset(one.name for one in self.arguments)

    @cached_property
    def arrays(self) -> Arguments:
        """The arrays and cells that are used, by name, in their order."""
        return self._of("array", "cell")

    @cached_property
    def scalars(self) -> Arguments:
        """The scalars that are used."""
        return self._of("scalar")

    @cached_property
    def sizes(self) -> Arguments:
        """The sizes."""
        return self._of("size")

    @cached_property
    def written(self) -> Names:
        """The names of the arrays and cells that are written."""
        return tuple(one.name for one in self.arrays.values() if one.writes)

    def _of(self, *roles: Role) -> Arguments:
        return {one.name: one for one in self.arguments if one.role in roles and one.used}


def signature_of(interface: Interface) -> CallSignature:
    """Return what a callable takes.

    Raises:
        InputError: ``EATSS-J014``, two functions call different things by one name.
    """
    found: dict[str, CallArgument] = {}
    names: list[NamedTexts] = []
    defaults = {parameter.name: parameter.default for parameter in interface.parameters}
    for entry in interface.entries:
        pairs = []
        for argument in sorted(
            entry.arguments, key=lambda one: (one.position is None, one.position or 0)
        ):
            mine = _argument(argument, defaults)
            known = found.get(mine.name, mine)
            if known.used and mine.used and _kind(known) != _kind(mine):
                raise input_error(
                    "EATSS-J014",
                    f"'{mine.name}' is {_described(known)} in one region and "
                    f"{_described(mine)} in '{entry.function}'",
                    hint=f"make a callable of one function, function='{entry.function}'",
                )
            found[mine.name] = _joined(known, mine)
            pairs.append((mine.name, argument.name))
        names.append(tuple(pairs))
    passed = {argument.size for argument in found.values()}
    for name, value in defaults.items():
        if name not in passed:
            found[name] = CallArgument(
                name=name, role="size", dtype=np.dtype(np.int32), size=name, default=value
            )
    return CallSignature(arguments=tuple(found.values()), names=tuple(names))


def _argument(argument: Argument, defaults: Mapping[str, int | None]) -> CallArgument:
    name, is_size = argument.source_name, argument.role == "parameter"
    return CallArgument(
        name=name if name.isidentifier() else argument.name,
        role="size" if argument.role == "parameter" else argument.role,
        dtype=dtype_of(argument),
        shapes=(argument.shape,),
        writes=argument.writes,
        size=argument.name if is_size else "",
        default=defaults.get(argument.name) if is_size else None,
        used=is_size or argument.reads or argument.writes,
    )


def _kind(one: CallArgument) -> tuple[object, ...]:
    return one.role, one.dtype, one.size, len(one.shape)


def _joined(one: CallArgument, other: CallArgument) -> CallArgument:
    if not (one.used and other.used):
        return one if one.used else other
    return replace(
        one,
        shapes=tuple(dict.fromkeys((*one.shapes, *other.shapes))),
        writes=one.writes or other.writes,
    )


def _dimensions(shape: Sequence[object]) -> str:
    return counted(len(shape), "dimension")


def _described(one: CallArgument) -> str:
    kind = {"array": f"an array of {_dimensions(one.shape)}", "cell": "a scalar it writes"}
    return f"{kind.get(one.role, 'a ' + one.role)} of {one.dtype.name}"


_EXACT = 32
"""Sizes up to this are classes of their own: a filter's 3 is no 4."""

_DIGITS = 4
"""Binary digits of a size that tell its class: eight classes between a number and its double."""


def class_of(value: int) -> int:
    """Return the size that stands for all of a class: the least of them.

    Equal classes get equal programs, so that the model is asked once for all of them.

    Example:
        >>> class_of(4000), class_of(4095), class_of(4096), class_of(7)
        (3840, 3840, 4096, 7)
    """
    if value <= _EXACT:
        return value
    step = 1 << (value.bit_length() - _DIGITS)
    return value // step * step


def infer_sizes(signature: CallSignature, shapes: Mapping[str, Numbers], given: Sizes) -> OwnSizes:
    """Return all sizes: those given, those that shapes determine, and those of the source.

    Args:
        signature: what the callable takes.
        shapes: by the names of arrays, their shapes in elements.
        given: sizes that the caller names.

    Raises:
        InputError: ``EATSS-J003`` a shape fits no sizes or not those of the other arrays, or a
            size is not determined.
    """
    names = {one.size: one.name for one in signature.sizes.values()}
    sizes = {size: given[name] for size, name in names.items() if name in given}
    extents = []
    for name, shape in shapes.items():
        takes = f"the program takes {name}[{_shape_text(signature[name].shape)}]"
        if len(shape) != len(signature[name].shape):
            raise input_error("EATSS-J003", f"'{name}' has {_dimensions(shape)}", hint=takes)
        for seen in signature[name].shapes:
            extents += [(name, *one) for one in zip(range(len(shape)), seen, shape, strict=True)]
    while found := _determined(extents, sizes):
        sizes |= found
    for one in signature.sizes.values():
        if one.size not in sizes:
            if one.default is None:
                raise input_error(
                    "EATSS-J003",
                    f"no array determines the size '{one.name}', and it is not given",
                    hint=f"call with {one.name}=VALUE",
                )
            sizes[one.size] = one.default
    for name, axis, expression, extent in extents:
        needed = max(0, evaluate(expression, sizes))
        if needed != extent:
            shape = shapes[name]
            at = equations((names[size], sizes[size]) for size in names_in(expression))
            raise input_error(
                "EATSS-J003",
                f"'{name}' has the shape {shape}, and {(*shape[:axis], needed, *shape[axis + 1 :])}"
                f" is needed: dimension {axis} is {c_text(expression)}{at and f', {at}'}",
                hint=f"the program takes {name}[{_shape_text(signature[name].shape)}]",
            )
    return sizes


def _shape_text(shape: Shape) -> str:
    return " × ".join(c_text(extent) for extent in shape) or "one element"


def _determined(extents: Sequence[tuple[str, int, IntExpr, int]], sizes: Sizes) -> OwnSizes:
    """Return a size that an extent determines, and its value; if there is one."""
    for _, _, expression, extent in extents:
        unknown = {*names_in(expression)} - sizes.keys()
        if len(unknown) == 1:
            (size,) = unknown
            value = _solved(expression, size, sizes, extent)
            if value is not None:
                return {size: value}
    return {}


def _solved(expression: IntExpr, name: str, sizes: Sizes, extent: int) -> int | None:
    """Return the value of a size at which a line in it is an extent, if it is a line."""
    at = [evaluate(expression, {**sizes, name: value}) for value in (1000, 1001, 1002)]
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope:
        return None
    value = 1000 + (extent - at[0]) // slope
    return value if evaluate(expression, {**sizes, name: value}) == extent else None


def whole_number(name: str, value: Any) -> int:
    """Return a size as an ``int``.

    Raises:
        InputError: ``EATSS-J011``, it is none.
    """
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise input_error(
            "EATSS-J011",
            f"the size '{name}' is {value!r}, which is not a whole number",
            hint=f"give an int, {name}=1000",
        ) from None

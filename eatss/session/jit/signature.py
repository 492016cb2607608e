"""What a callable takes: the arguments of all regions of a program, each once, by their C names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.program import Argument, Interface, IntExpr, c_text, evaluate, names_in
from eatss.verify.data import dtype_of

Role: TypeAlias = Literal["array", "cell", "scalar", "size"]


@frozen
class CallArgument:
    """An argument of a callable.

    ``name`` is that of the C source. An ``array`` has ``shape`` in the program's sizes, a ``cell``
    is an array of one element, a ``scalar`` a number. ``others`` are the shapes that other regions
    see, which have to hold as well. A ``size`` is a whole number called ``size`` in shapes;
    ``default`` is its value in the source, ``None`` if it has none there. What no region reads or
    writes is not ``used`` and may be left out.
    """

    name: str
    role: Role
    dtype: np.dtype[Any]
    shape: tuple[IntExpr, ...] = ()
    others: tuple[tuple[IntExpr, ...], ...] = ()
    reads: bool = True
    writes: bool = False
    size: str = ""
    default: int | None = None
    used: bool = True

    def __str__(self) -> str:
        if self.role == "size":
            return self.name if self.default is None else f"{self.name}={self.default}"
        return self.name


@frozen
class CallSignature:
    """The arguments of a callable: the function's in their order, then what it reaches besides.

    ``names`` says, for each region, what its launch plan calls the argument of a name.
    """

    arguments: tuple[CallArgument, ...]
    names: tuple[tuple[tuple[str, str], ...], ...]

    def __getitem__(self, name: str) -> CallArgument:
        return next(argument for argument in self.arguments if argument.name == name)

    def __str__(self) -> str:
        positional = [str(one) for one in self.arguments if one.role != "size" or not one.default]
        sizes = [str(one) for one in self.arguments if one.role == "size" and one.default]
        return ", ".join([*positional, *(["*", *sizes] if sizes else [])])

    @property
    def shaping(self) -> frozenset[str]:
        """The sizes that shapes of arrays are made of, as shapes call them."""
        return frozenset(
            name
            for one in self.arguments
            for shape in (one.shape, *one.others)
            for extent in shape
            for name in names_in(extent)
        )

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the arrays and cells that are written."""
        return tuple(one.name for one in self.of_role("array", "cell") if one.writes)

    def of_role(self, *roles: Role) -> tuple[CallArgument, ...]:
        """Return the arguments of some roles that are used."""
        return tuple(one for one in self.arguments if one.role in roles and one.used)


def signature_of(interface: Interface) -> CallSignature:
    """Return what a callable takes.

    Raises:
        InputError: ``EATSS-J014``, two functions call different things by one name.
    """
    found: dict[str, CallArgument] = {}
    names: list[tuple[tuple[str, str], ...]] = []
    defaults = {parameter.name: parameter.default for parameter in interface.parameters}
    for entry in interface.entries:
        pairs = []
        ordered = sorted(entry.arguments, key=lambda one: (one.position is None, one.position or 0))
        for argument in ordered:
            mine = _argument(argument, defaults)
            known = found.get(mine.name)
            if known is not None and not _alike(known, mine):
                raise input_error(
                    "EATSS-J014",
                    f"'{mine.name}' is {_described(known)} in one region and "
                    f"{_described(mine)} in '{entry.function}'",
                    hint=f"make a callable of one function, function='{entry.function}'",
                )
            found[mine.name] = mine if known is None else _joined(known, mine)
            pairs.append((mine.name, argument.name))
        names.append(tuple(pairs))
    passed = {argument.size for argument in found.values()}
    for parameter in interface.parameters:
        if parameter.name not in passed:
            found[parameter.name] = CallArgument(
                name=parameter.name,
                role="size",
                dtype=np.dtype(np.int32),
                size=parameter.name,
                default=parameter.default,
            )
    return CallSignature(arguments=tuple(found.values()), names=tuple(names))


def sizes_of(signature: CallSignature) -> Iterator[CallArgument]:
    """Yield the sizes."""
    return (one for one in signature.arguments if one.role == "size")


def _argument(argument: Argument, defaults: dict[str, int | None]) -> CallArgument:
    dtype, name = dtype_of(argument), argument.source_name
    name = name if name.isidentifier() else argument.name
    if argument.role == "parameter":
        return CallArgument(
            name=name,
            role="size",
            dtype=dtype,
            size=argument.name,
            default=defaults.get(argument.name),
        )
    return CallArgument(
        name=name,
        role=argument.role,
        dtype=dtype,
        shape=argument.shape,
        reads=argument.reads,
        writes=argument.writes,
        used=argument.reads or argument.writes,
    )


def _alike(one: CallArgument, other: CallArgument) -> bool:
    if not (one.used and other.used):
        return True
    same = (one.role, one.dtype, one.size) == (other.role, other.dtype, other.size)
    return same and len(one.shape) == len(other.shape)


def _joined(one: CallArgument, other: CallArgument) -> CallArgument:
    if not one.used:
        return other
    if not other.used:
        return one
    others = one.others
    if other.shape not in (one.shape, *others):
        others = (*others, other.shape)
    return replace(
        one, others=others, reads=one.reads or other.reads, writes=one.writes or other.writes
    )


def _described(one: CallArgument) -> str:
    dimensions = "1 dimension" if len(one.shape) == 1 else f"{len(one.shape)} dimensions"
    kind = {"array": f"an array of {dimensions}", "cell": "a scalar it writes"}
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


def coarse_class_of(value: int) -> int:
    """Return the size that stands for a number of which no shape is made: a power of two.

    Steps in time, or an offset, say less about the best sizes than the extents of arrays do.
    """
    return value if abs(value) <= 1 else (1 << (abs(value).bit_length() - 1)) * (-1) ** (value < 0)


def infer_sizes(
    signature: CallSignature, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int]
) -> dict[str, int]:
    """Return all sizes: those given, those that shapes determine, and those of the source.

    Args:
        signature: what the callable takes.
        shapes: by the names of arrays, their shapes in elements.
        given: sizes that the caller names.

    Raises:
        InputError: ``EATSS-J003`` a shape fits no sizes or not those of the other arrays,
            ``EATSS-J003`` a size is not determined.
    """
    _check_dimensions(signature, shapes)
    sizes = {one.size: given[one.name] for one in sizes_of(signature) if one.name in given}
    names = {one.size: one.name for one in sizes_of(signature)}
    extents = [
        (name, axis, expression, shape[axis])
        for name, shape in shapes.items()
        for wanted in (signature[name].shape, *signature[name].others)
        for axis, expression in enumerate(wanted)
    ]
    by: dict[str, str] = {size: f"{names[size]}={value}" for size, value in sizes.items()}
    solved = True
    while solved:
        solved = False
        for name, _, expression, extent in extents:
            unknown = sorted(set(names_in(expression)) - sizes.keys())
            if len(unknown) != 1:
                continue
            value = _solved(expression, unknown[0], sizes, extent)
            if value is not None:
                sizes[unknown[0]] = value
                by[unknown[0]] = f"'{name}' makes {names[unknown[0]]} {value}"
                solved = True
    for one in sizes_of(signature):
        if one.size not in sizes:
            if one.default is None:
                raise _not_determined(one.name)
            sizes[one.size] = one.default
            by[one.size] = f"{one.name} is {one.default} in the source"
    for name, axis, expression, extent in extents:
        wanted_extent = max(0, evaluate(expression, sizes))
        if wanted_extent != extent:
            because = "; ".join(by[size] for size in names_in(expression) if size in by)
            where = (axis, expression, wanted_extent)
            raise _wrong_shape(signature, name, shapes[name], where, because)
    return sizes


def shape_text(shape: tuple[IntExpr, ...]) -> str:
    """Return a shape in the program's sizes, ``NI × NK``."""
    return " × ".join(c_text(extent) for extent in shape) or "one element"


def _check_dimensions(signature: CallSignature, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        wanted = signature[name].shape
        if len(shape) != len(wanted):
            raise input_error(
                "EATSS-J003",
                f"'{name}' has {_dimensions(len(shape))}, the program's has {len(wanted)}: "
                f"{shape_text(wanted)}",
                hint="reshape it; a view costs nothing",
            )


def _solved(expression: IntExpr, name: str, sizes: Mapping[str, int], extent: int) -> int | None:
    """Return the value of a size at which a line in it is an extent, if it is a line."""
    at: list[int] = [evaluate(expression, {**sizes, name: value}) for value in (1000, 1001, 1002)]
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope:
        return None
    value, rest = divmod(extent - at[0], slope)
    value += 1000
    if rest or evaluate(expression, {**sizes, name: value}) != extent:
        return None
    return value


def _wrong_shape(
    signature: CallSignature,
    name: str,
    shape: tuple[int, ...],
    where: tuple[int, IntExpr, int],
    because: str,
) -> InputError:
    axis, expression, extent = where
    wanted = (*shape[:axis], extent, *shape[axis + 1 :])
    return input_error(
        "EATSS-J003",
        f"'{name}' has the shape {shape}, and {wanted} is needed: dimension {axis} is "
        f"{c_text(expression)}" + (f", and {because}" if because else ""),
        hint=f"the program takes {name}[{shape_text(signature[name].shape)}]",
    )


def _not_determined(name: str) -> InputError:
    return input_error(
        "EATSS-J003",
        f"no array determines the size '{name}', and it is not given",
        hint=f"call with {name}=VALUE",
    )


def _dimensions(count: int) -> str:
    return "1 dimension" if count == 1 else f"{count} dimensions"


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

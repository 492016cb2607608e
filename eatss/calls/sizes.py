"""Shapes of arrays in, sizes of the problem out; and the class that a size belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eatss.calls.signature import CallSignature, sizes_of
from eatss.diagnostics import InputError, input_error
from eatss.program import IntExpr, c_text, evaluate, names_in

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
            ``EATSS-J008`` a size is not determined.
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
        "EATSS-J008",
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

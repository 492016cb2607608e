"""Arguments of a call, checked: missing, of another type, elsewhere, or in the way of others."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from math import prod
from typing import Any

from eatss.calls.arrays import ArrayView
from eatss.calls.signature import CallArgument, CallSignature, sizes_of
from eatss.diagnostics import input_error


def check_names(name: str, signature: CallSignature, values: Mapping[str, Any]) -> None:
    """Refuse a call without an argument, or with one that the program does not have.

    Raises:
        InputError: ``EATSS-J001`` one is missing, ``EATSS-J002`` there is none of a name.
    """
    _check_known(name, [one.name for one in signature.arguments], values, str(signature))
    missing = [
        one.name
        for one in signature.of_role("array", "cell", "scalar")
        if values.get(one.name) is None
    ]
    if missing:
        names = ", ".join(f"'{one}'" for one in missing)
        raise input_error(
            "EATSS-J001",
            f"'{name}' is called without {names}",
            hint=f"it takes {signature}",
        )


def check_sizes(name: str, signature: CallSignature, values: Mapping[str, Any]) -> None:
    """Refuse sizes that the program does not have.

    Raises:
        InputError: ``EATSS-J002``.
    """
    known = [one.name for one in sizes_of(signature)]
    _check_known(name, known, values, ", ".join(known) or "no sizes")


def _check_known(name: str, known: list[str], values: Mapping[str, Any], all_: str) -> None:
    for given in values:
        if given not in known:
            close = get_close_matches(given, known, 1)
            raise input_error(
                "EATSS-J002",
                f"'{name}' has no argument '{given}'",
                hint=f"did you mean '{close[0]}'?" if close else f"it takes {all_}",
            )


def check_view(argument: CallArgument, view: ArrayView) -> None:
    """Refuse an array that the kernels would take for something else.

    Raises:
        InputError: ``EATSS-J003`` shape of a cell, ``EATSS-J004`` type, ``EATSS-J005`` gaps or
            another order, ``EATSS-J013`` it must not be written.
    """
    name = argument.name
    if prod(view.shape) and not view.pointer:
        raise input_error(
            "EATSS-J010",
            f"'{name}' has elements and no memory",
            hint="its memory was released, or never there; make it anew",
        )
    if view.dtype != argument.dtype:
        seen = view.dtype.name
        if not view.dtype.isnative:
            seen = f"{view.dtype.str}, whose bytes are in the other order"
        raise input_error(
            "EATSS-J004",
            f"'{name}' is of {seen}, and the program computes it in {argument.dtype.name}",
            hint=f"convert it, {name}.astype('{argument.dtype.name}'), or spell the type in C by "
            "a macro: #ifndef DATA_TYPE, #define DATA_TYPE double, #endif",
        )
    if not view.contiguous:
        raise input_error(
            "EATSS-J005",
            f"'{name}' has gaps, or its last dimension is not the one that lies together",
            hint=f"copy it, numpy.ascontiguousarray({name}); for results copy back afterwards",
        )
    if argument.writes and not view.writable:
        raise input_error(
            "EATSS-J013",
            f"'{name}' is written by the program, and the array is read-only",
            hint=f"give a copy, {name}.copy()",
        )
    if argument.role == "cell" and prod(view.shape) != 1:
        raise input_error(
            "EATSS-J003",
            f"'{name}' is a scalar that the program writes, and the array has the shape "
            f"{view.shape}",
            hint="give an array of one element",
        )


def checked_place(views: Mapping[str, ArrayView]) -> int | None:
    """Return the card that all arrays are on, ``None`` for the memory of the host.

    Raises:
        InputError: ``EATSS-J006``, they are in several places.
    """
    places = {name: view.device for name, view in views.items() if prod(view.shape)}
    if len(set(places.values())) > 1:
        first, *rest = places.items()
        other = next(pair for pair in rest if pair[1] != first[1])
        raise input_error(
            "EATSS-J006",
            f"'{first[0]}' is {_place(first[1])}, and '{other[0]}' is {_place(other[1])}",
            hint="bring all arrays to one place",
        )
    every = [view.device for view in views.values()]
    return next(iter(places.values()), every[0] if every else None)


def check_aliases(signature: CallSignature, views: Mapping[str, ArrayView]) -> None:
    """Refuse arrays that share memory where one of them is written.

    Raises:
        InputError: ``EATSS-J007``.
    """
    arrays = signature.of_role("array", "cell")
    for number, one in enumerate(arrays):
        for other in arrays[number + 1 :]:
            if not (one.writes or other.writes):
                continue
            a, b = views[one.name], views[other.name]
            if a.pointer < b.pointer + _bytes(b) and b.pointer < a.pointer + _bytes(a):
                written = one.name if one.writes else other.name
                raise input_error(
                    "EATSS-J007",
                    f"'{one.name}' and '{other.name}' share memory, and '{written}' is written",
                    hint=f"give a copy of one: the kernels take them for different arrays, and "
                    f"results would depend on the order of threads ({other.name}.copy())",
                )


def _bytes(view: ArrayView) -> int:
    return prod(view.shape) * view.dtype.itemsize


def _place(device: int | None) -> str:
    return "in the memory of the host" if device is None else f"on card {device}"

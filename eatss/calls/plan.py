"""A program at some sizes as the launches of one call, every number known.

What changes from call to call, addresses and scalars, has a slot of eight bytes each; what a
launch takes is a list of addresses of slots, in the order of the kernel's parameters.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from eatss.calls.signature import CallArgument, CallSignature
from eatss.diagnostics import input_error
from eatss.frozen import frozen
from eatss.measurement.arguments import temporaries_of
from eatss.measurement.launches import ResolvedLaunch, launches
from eatss.program import Program

MOST_LAUNCHES_OF_A_CALL = 1_000_000
"""A call keeps what each of its launches takes; a million are 400 MB."""

_SLOT = 8
_FORMATS = {
    "f8": "d",
    "f4": "f4x",
    "f2": "e6x",
    "i8": "q",
    "i4": "i4x",
    "i2": "h6x",
    "i1": "b7x",
    "u8": "Q",
    "u4": "I4x",
    "u2": "H6x",
    "u1": "B7x",
    "b1": "?7x",
}


@frozen
class Workspace:
    """Device memory that a call works in: bytes of each temporary array.

    Those that are ``zeroed`` have zeros before each call, and after it.
    """

    bytes: tuple[int, ...]
    zeroed: tuple[bool, ...]


@frozen
class ArgumentList:
    """Slots of what a call passes: arrays and cells, then temporaries, then scalars."""

    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    temporaries: tuple[tuple[int, str], ...]
    format: str

    @property
    def bytes(self) -> int:
        """Size of all slots."""
        return struct.calcsize(self.format)


def argument_list(signature: CallSignature, program: Program) -> ArgumentList:
    """Return the slots of a program's calls."""
    arrays = tuple(one.name for one in signature.of_role("array", "cell"))
    scalars = signature.of_role("scalar")
    temporaries = tuple(
        (number, temporary.name)
        for number, entry in enumerate(program.entries)
        for temporary in entry.temporaries
    )
    format_ = f"={len(arrays) + len(temporaries)}Q" + "".join(map(_format, scalars))
    return ArgumentList(
        arrays=arrays,
        scalars=tuple(one.name for one in scalars),
        types=tuple(one.dtype for one in scalars),
        temporaries=temporaries,
        format=format_,
    )


def _format(scalar: CallArgument) -> str:
    return _FORMATS[f"{scalar.dtype.kind}{scalar.dtype.itemsize}"]


def check_scalar(name: str, dtype: np.dtype[Any], value: Any) -> None:
    """Refuse a scalar that is no number of its type, on a card and on the CPU alike.

    Raises:
        InputError: ``EATSS-J011``.
    """
    try:
        struct.pack(_FORMATS[f"{dtype.kind}{dtype.itemsize}"], value)
    except (struct.error, TypeError, OverflowError):
        wanted = "a number" if dtype.kind == "f" else "a whole number"
        raise input_error(
            "EATSS-J011",
            f"the scalar '{name}' is {value!r}, and {wanted} that {dtype.name} holds is needed",
            hint="give a number of Python or NumPy; an element of an array on a card has to be "
            "fetched first",
        ) from None


def workspace_of(program: Program, sizes: Mapping[str, int]) -> Workspace:
    """Return what memory a call needs besides its arguments."""
    return Workspace(
        bytes=tuple(
            max(_SLOT, key.bytes)
            for entry in program.entries
            for key in temporaries_of(entry, sizes)
        ),
        zeroed=tuple(one.zeroed for entry in program.entries for one in entry.temporaries),
    )


def resolved_launches(program: Program, sizes: Mapping[str, int]) -> tuple[ResolvedLaunch, ...]:
    """Return the launches of one call: all regions in order.

    Raises:
        InputError: ``EATSS-J012``, they are too many to keep.
    """
    found = tuple(islice(launches(program, sizes), MOST_LAUNCHES_OF_A_CALL + 1))
    if len(found) > MOST_LAUNCHES_OF_A_CALL:
        raise input_error(
            "EATSS-J012",
            f"a call of '{program.name}' would be more than {MOST_LAUNCHES_OF_A_CALL} launches",
            hint="call it several times, with fewer steps each",
        )
    return found


class Slots:
    """Memory of what launches take: one part changes from call to call, the other never.

    ``parameters[k]`` is the address of the list of addresses that launch ``k`` is given.
    """

    def __init__(
        self,
        arguments: ArgumentList,
        signature: CallSignature,
        launches: Sequence[ResolvedLaunch],
        index_bits: int,
    ) -> None:
        self._arguments = arguments
        self.changing = ctypes.create_string_buffer(max(_SLOT, arguments.bytes))
        base = ctypes.addressof(self.changing)
        index = np.dtype(np.int32 if index_bits == 32 else np.int64)
        numbers: dict[int, int] = {}
        for launch in launches:
            for _, value in launch.integers:
                numbers.setdefault(value, len(numbers))
        self._numbers = np.zeros(max(1, len(numbers)), np.int64)
        for value, place in numbers.items():
            self._numbers[place : place + 1].view(index)[0] = value
        fixed = self._numbers.ctypes.data
        slots = {
            name: base + _SLOT * place
            for place, name in enumerate(
                [*arguments.arrays, *arguments.temporaries, *arguments.scalars]
            )
        }
        addresses: list[int] = []
        starts: list[int] = []
        by_entry = [{inner: outer for outer, inner in pairs} for pairs in signature.names]
        for launch in launches:
            starts.append(len(addresses))
            integers = dict(launch.integers)
            for name in launch.arguments:
                if name in integers:
                    addresses.append(fixed + _SLOT * numbers[integers[name]])
                elif (launch.entry, name) in slots:
                    addresses.append(slots[launch.entry, name])
                else:
                    addresses.append(slots[by_entry[launch.entry][name]])
        self._lists = np.array(addresses or [0], np.uint64)
        first = self._lists.ctypes.data
        self.parameters = tuple(first + _SLOT * start for start in starts)

    def fill(self, values: Sequence[Any]) -> None:
        """Put in what a call passes: addresses, then scalars, in the order of the slots.

        Raises:
            InputError: ``EATSS-J011``, a scalar is no number of its type.
        """
        try:
            struct.pack_into(self._arguments.format, self.changing, 0, *values)
        except (struct.error, TypeError, OverflowError):
            self._refuse_scalar(values)

    def _refuse_scalar(self, values: Sequence[Any]) -> NoReturn:
        arguments = self._arguments
        first = len(arguments.arrays) + len(arguments.temporaries)
        for name, dtype, value in zip(
            arguments.scalars, arguments.types, values[first:], strict=True
        ):
            check_scalar(name, dtype, value)
        raise AssertionError("all scalars fit")

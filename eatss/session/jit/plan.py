"""A program at some sizes as the launches of one call, every number known.

What changes from call to call, addresses and scalars, has a slot of eight bytes each; what a
launch takes is a list of addresses of slots, in the order of the kernel's parameters.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from eatss.base.diagnostics import input_error
from eatss.measurement.arguments import temporaries_of
from eatss.measurement.launches import ResolvedLaunch, launches
from eatss.program import Program
from eatss.session.jit.signature import CallSignature

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


def _format(dtype: np.dtype[Any]) -> str:
    """Return how ``struct`` calls a type, filled to a slot."""
    return _FORMATS[f"{dtype.kind}{dtype.itemsize}"]


def check_scalar(name: str, dtype: np.dtype[Any], value: Any) -> None:
    """Refuse a scalar that is no number of its type, on a card and on the CPU alike.

    Raises:
        InputError: ``EATSS-J011``.
    """
    try:
        struct.pack(_format(dtype), value)
    except (struct.error, TypeError, OverflowError):
        wanted = "a number" if dtype.kind == "f" else "a whole number"
        raise input_error(
            "EATSS-J011",
            f"the scalar '{name}' is {value!r}, and {wanted} that {dtype.name} holds is needed",
            hint="give a number of Python or NumPy; an element of an array on a card has to be "
            "fetched first",
        ) from None


def workspace_of(program: Program, sizes: Mapping[str, int]) -> tuple[tuple[int, bool], ...]:
    """Return what memory a call needs besides its arguments: bytes of each temporary array.

    The other entry says whether it has zeros before each call, and after it.
    """
    return tuple(
        (max(_SLOT, key.bytes), one.zeroed)
        for entry in program.entries
        for key, one in zip(temporaries_of(entry, sizes), entry.temporaries, strict=True)
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
        self, program: Program, signature: CallSignature, launches: Sequence[ResolvedLaunch]
    ) -> None:
        # arrays and cells, then temporaries, then scalars
        names: list[object] = [one.name for one in signature.of_role("array", "cell")]
        names += [
            (number, temporary.name)
            for number, entry in enumerate(program.entries)
            for temporary in entry.temporaries
        ]
        self._scalars, self._addresses = signature.of_role("scalar"), len(names)
        self._format = f"={len(names)}Q" + "".join(_format(one.dtype) for one in self._scalars)
        names += [one.name for one in self._scalars]
        self.changing = ctypes.create_string_buffer(max(_SLOT, struct.calcsize(self._format)))
        base = ctypes.addressof(self.changing)
        slots = {name: base + _SLOT * place for place, name in enumerate(names)}
        values = dict.fromkeys(value for launch in launches for _, value in launch.integers)
        numbers = {value: place for place, value in enumerate(values)}
        index = np.dtype(np.int32 if program.index_bits == 32 else np.int64)
        self._numbers = np.zeros(max(1, len(numbers)), np.int64)
        for value, place in numbers.items():
            self._numbers[place : place + 1].view(index)[0] = value
        fixed = self._numbers.ctypes.data
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
            struct.pack_into(self._format, self.changing, 0, *values)
        except (struct.error, TypeError, OverflowError):
            for one, value in zip(self._scalars, values[self._addresses :], strict=True):
                check_scalar(one.name, one.dtype, value)
            raise

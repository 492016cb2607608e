"""Random arguments with guard zones around every array."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.diagnostics import input_error
from eatss.base.frozen import Numbers
from eatss.program import Argument, Entry, Temporary, evaluate
from eatss.program.expression import IntExpr, Sizes

_NAMES: Mapping[str, str] = {
    "_Float16": "f2",
    "float": "f4",
    "double": "f8",
    "_Bool": "?",
    "signed char": "i1",
    "char": "i1",
    "unsigned char": "u1",
    "short": "i2",
    "unsigned short": "u2",
    "int": "i4",
    "unsigned int": "u4",
    "unsigned": "u4",
    "long": "i8",
    "unsigned long": "u8",
    "long long": "i8",
    "unsigned long long": "u8",
}


def numpy_name(argument: Argument | Temporary) -> str:
    """Return what NumPy calls the type of an argument's elements: a letter, and bytes.

    Raises:
        InputError: ``EATSS-V004``, the plan names another type.
    """
    if argument.element_type not in _NAMES:
        raise input_error(
            "EATSS-V004",
            f"the launch plan gives '{argument.name}' the type '{argument.element_type}'",
            hint="generate the program again with this version of eatss",
        )
    return _NAMES[argument.element_type]


def limits_of(argument: Argument) -> tuple[int, int]:
    """Return the least and the greatest value of an integer argument."""
    if (name := numpy_name(argument)) == "?":
        return 0, 1
    known = np.iinfo(name)
    return int(known.min), int(known.max)


Flavour: TypeAlias = Literal[
    "uniform", "dominant", "small", "offset", "signed", "infinite", "extreme"
]

FLAVOURS: tuple[Flavour, ...] = ("uniform", "dominant", "offset", "small")
"""Kinds of floating-point data, in the order in which they are tried: in [0, 1); the same with a
heavy diagonal in matrices (factorisations stay finite); in [1, 2); in [0, 1/n) where n is
the longest extent (recurrences do not grow)."""

SIGNED: Flavour = "signed"
"""Data in [-1, 1), integers from -9 to 9: a minimum of ``x`` and ``x + x`` is not always ``x``."""

INFINITE: Flavour = "infinite"
"""Data in [0, 1) with one infinity in each array: code that looks for one finds it."""

EXTREME: Flavour = "extreme"
"""Numbers of all sizes and both signs: subnormal ones, zeros, infinities. What a division does with
these, another way to divide may not."""

_RARE = 0.06
_ALIGNMENT = 256
_LEAST_GUARD, _MOST_GUARD = 4096, 1 << 20


@dataclass(frozen=True, slots=True)
class Buffer:
    """Host memory for an argument: a guard zone, the elements, a guard zone."""

    argument: Argument
    number: int
    raw: npt.NDArray[np.uint8]
    guard: int
    shape: Numbers

    @property
    def array(self) -> npt.NDArray[Any]:
        """The elements, writable."""
        inner = self.raw[self.guard : self.raw.size - self.guard]
        return inner.view(dtype_of(self.argument)).reshape(self.shape)

    @property
    def elements(self) -> npt.NDArray[Any]:
        """The elements in at least one dimension."""
        return np.atleast_1d(self.array)

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self.raw.ctypes.data + self.guard

    def copy(self) -> Buffer:
        """Return the same with memory of its own."""
        raw = _aligned(self.raw.size)
        raw[:] = self.raw
        return Buffer(self.argument, self.number, raw, self.guard, self.shape)

    def first_stray_write(self) -> int | None:
        """Return where a guard zone was written: bytes from the first element, or ``None``."""
        pattern = _guard_pattern(dtype_of(self.argument), self.number, self.guard)
        inner = self.raw.size - self.guard
        for start, stop in ((inner, self.raw.size), (0, self.guard)):
            written = np.flatnonzero(self.raw[start:stop] != pattern)
            if written.size:
                return int(written[0]) + start - self.guard
        return None


Buffers: TypeAlias = Sequence[Buffer]
"""The arguments of an entry, in order."""


def dtype_of(argument: Argument | Temporary) -> np.dtype[Any]:
    """Return the NumPy type of an argument's elements."""
    return np.dtype(numpy_name(argument))


def shape_at(shape: Sequence[IntExpr], sizes: Sizes) -> Numbers:
    """Return the extents of an array at sizes; none is negative."""
    return tuple(max(0, evaluate(extent, sizes)) for extent in shape)


def make_buffers(
    entry: Entry,
    sizes: Sizes,
    flavour: Flavour,
    seed: int,
    shifted: Collection[int] = (),
    endless: int | None = None,
) -> tuple[Buffer, ...]:
    """Return random data for every argument of an entry; the same for the same seed.

    Floating-point numbers as ``flavour`` says, integers from 1 to 9 (of both signs where it is
    ``signed``), parameters as in ``sizes``. The arguments of the numbers ``shifted`` start one
    element behind where several can be moved at a time, as parts of arrays may; the scalar of
    number ``endless`` is infinite.
    """
    rng = np.random.default_rng(seed)
    buffers = tuple(
        _buffer(blank_buffer(argument, number, sizes, number in shifted), sizes, flavour, rng)
        for number, argument in enumerate(entry.arguments)
    )
    if endless is not None:
        buffers[endless].array[...] = np.inf
    return buffers


def as_parameter(value: np.generic[Any]) -> ctypes._SimpleCData[Any]:
    """Return a number as C passes it by value; a half, a structure of its bits, as these."""
    bits: np.generic[Any] = value.view(np.uint16) if value.dtype == np.float16 else value
    c_type = np.ctypeslib.as_ctypes_type(np.dtype(bits.dtype.str))
    passed: ctypes._SimpleCData[Any] = c_type(bits.item())
    return passed


def blank_buffer(argument: Argument, number: int, sizes: Sizes, shifted: bool = False) -> Buffer:
    """Return memory for an argument, all elements 0, between guard zones that no other has.

    Args:
        argument: of an entry.
        number: its place there.
        sizes: those of the problem.
        shifted: whether it starts one element behind a multiple of 16 bytes.
    """
    shape = shape_at(argument.shape, sizes)
    dtype = dtype_of(argument)
    bytes_ = prod(shape) * dtype.itemsize
    guard = -(-min(_MOST_GUARD, max(_LEAST_GUARD, bytes_)) // _ALIGNMENT) * _ALIGNMENT
    guard += dtype.itemsize if shifted else 0
    raw = _aligned(2 * guard + bytes_)
    raw[:guard] = raw[guard + bytes_ :] = _guard_pattern(dtype, number, guard)
    return Buffer(argument, number, raw, guard, shape)


def _buffer(buffer: Buffer, sizes: Sizes, flavour: Flavour, rng: np.random.Generator) -> Buffer:
    """Fill the memory of an argument."""
    argument, array = buffer.argument, buffer.array
    kind = array.dtype.kind
    if argument.role == "parameter":
        array[...] = sizes[argument.name]
        return buffer
    if kind == "f":
        extreme = flavour == EXTREME
        array[...] = _extreme(array, rng) if extreme else _floats(buffer.shape, flavour, rng)
    else:
        array[...] = rng.integers(kind != "b", 2 if kind == "b" else 10, buffer.shape)
        if flavour == SIGNED and kind == "i":
            array[...] *= rng.choice(np.array([-1, 1], array.dtype), buffer.shape)
    if flavour == SIGNED and kind in "fi":
        first = array.reshape(-1)[:1]
        first[...] = -abs(first)  # an array of one element has a negative one
    return buffer


def _floats(
    shape: Sequence[int], flavour: Flavour, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    values = np.asarray(rng.random(tuple(shape)))
    longest = max(shape, default=1)
    if flavour == "offset":
        values = values + 1.0
    elif flavour == SIGNED:
        values = 2.0 * values - 1.0
    elif flavour == INFINITE and values.ndim and values.size:
        values.reshape(-1)[rng.integers(values.size)] = np.inf
    elif flavour == "small" and shape:
        values = values / max(1, longest)
    elif flavour == "dominant" and len(shape) >= 2:
        diagonal = np.arange(min(shape[-2:]))
        values[..., diagonal, diagonal] += 2.0 * longest
    return values


def _extreme(array: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return numbers of all sizes that an array's type has, in the first half of rows tiny ones."""
    known, shape = np.finfo(array.dtype), array.shape
    near = np.arange(shape[-1] if shape else 1) < (shape[-1] if shape else 1) // 2
    most = np.where(near, known.minexp + 2 * known.nmant, known.maxexp)
    powers = rng.integers(known.minexp - known.nmant, np.broadcast_to(most, shape or (1,)))
    values = np.ldexp(1.0 + rng.random(powers.shape), powers)
    values[~near & (rng.random(powers.shape) < _RARE)] = np.inf
    values[rng.random(powers.shape) < _RARE] = 0.0
    return np.reshape(values * rng.choice([-1.0, 1.0], powers.shape), shape)


def _guard_pattern(dtype: np.dtype[Any], number: int, size: int) -> npt.NDArray[np.uint8]:
    """Return what fills a guard zone of ``size`` bytes: signalling NaNs, no two alike.

    What is computed from one is a quiet NaN, and what is copied from another array or place is
    another one, so that writes show whatever is written.
    """
    count = size // dtype.itemsize
    element = np.arange(count, dtype=np.uint64)
    tag = np.uint64(number % 16 + 1)
    if dtype == np.float64:
        words = np.uint64(0x7FF0 << 48) | (tag << np.uint64(40)) | element
    elif dtype == np.float32:
        words = np.uint64(0x7F80 << 16) | (tag << np.uint64(16)) | (element & np.uint64(0xFFFF))
    else:
        words = element ^ (tag * np.uint64(0xA5A5A5A5A5A5A5A5 >> 8))
    return words.astype(f"u{dtype.itemsize}").view(np.uint8)


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Return memory that a process shares with those it forks, aligned to pages."""
    return np.frombuffer(mmap.mmap(-1, size), np.uint8)

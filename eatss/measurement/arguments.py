"""Arguments of programs in device memory: seeded data, poison, and who shares what.

``xp`` is the module CuPy; tests pass NumPy, which has the same functions.

``Program`` and sizes in, the launches of one run out, as the generated host code makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from eatss.base.frozen import Numbers, frozen
from eatss.base.text import Texts
from eatss.program import (
    Argument,
    Entry,
    HostIf,
    HostStep,
    Launch,
    Program,
    Temporary,
    evaluate,
)
from eatss.program.expression import SizePairs, Sizes
from eatss.verify.data import FLAVOURS, Flavour, dtype_of, limits_of, shape_at

Array: TypeAlias = Any
"""An array of CuPy, or of NumPy in tests."""

CHUNK = 1 << 24
"""Elements looked at in one go, so that looking at an array takes little memory besides it."""

_POISON = {8: 0x7FF8_EA75_5BAD_DA7A, 4: 0x7FC5_DA7A, 2: 0x7E5B, 1: 0x5B}
"""Bits of elements that nothing wrote, by size; for floating-point numbers a NaN that no operation
of a card returns, which knows one NaN only."""


@frozen
class ArrayKey:
    """What memory is shared by: equal keys are the same memory. ``shape`` in elements."""

    name: str
    shape: Numbers
    dtype: np.dtype[Any]
    seed: int

    @property
    def bytes(self) -> int:
        """Size of the array."""
        return prod(self.shape) * self.dtype.itemsize

    def random_seed(self) -> int:
        """Return the seed of the data: one that no other array has, the same on every machine."""
        text = f"{self.seed} {self.name} {self.shape} {self.dtype.str}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


@frozen
class MemoryUse:
    """An array and what one run of the program does to it."""

    key: ArrayKey
    reads: bool
    writes: bool

    @property
    def overwritten(self) -> bool:
        """Whether a run changes what the next one reads."""
        return self.reads and self.writes


def key_of(argument: Argument | Temporary, sizes: Sizes, seed: int) -> ArrayKey:
    """Return the key of an array or cell."""
    shape = shape_at(argument.shape, sizes)
    return ArrayKey(name=argument.name, shape=shape, dtype=dtype_of(argument), seed=seed)


def memory_of(program: Program, sizes: Sizes, seed: int) -> tuple[MemoryUse, ...]:
    """Return the arrays of a program, each once; entries share those of equal keys."""
    found: dict[ArrayKey, MemoryUse] = {}
    for argument in chain(*(entry.arguments for entry in program.entries)):
        if argument.role in ("array", "cell"):
            key = key_of(argument, sizes, seed)
            known = found.get(key, argument)
            found[key] = MemoryUse(
                key=key,
                reads=argument.reads or known.reads,
                writes=argument.writes or known.writes,
            )
    return tuple(found.values())


def temporaries_of(entry: Entry, sizes: Sizes) -> tuple[ArrayKey, ...]:
    """Return the keys of the memory an entry works in, whose data mean nothing."""
    keys = (key_of(one, sizes, 0) for one in entry.temporaries)
    return tuple(replace(key, name=f"temporary {key.name}") for key in keys)


def scalar_value(argument: Argument, seed: int, flavour: Flavour) -> np.generic[Any]:
    """Return the value of a scalar, as the type it is passed in."""
    key = key_of(argument, {}, seed)
    rng = np.random.default_rng(key.random_seed())
    drawn = rng.random() + (flavour == "offset") if key.dtype.kind == "f" else rng.integers(1, 10)
    value: np.generic[Any] = key.dtype.type(drawn)
    return value


class SharedArguments:
    """Device memory of a program's arguments: working copies, and originals to restore.

    Variants of the program share it; ``flavour`` is the kind of data in it.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._working: dict[ArrayKey, Array] = {}
        self._originals: dict[ArrayKey, Array] = {}
        self._untouched: set[ArrayKey] = set()
        self.flavour: Flavour = FLAVOURS[0]

    def take(self, flavour: Flavour) -> None:
        """Have runs begin with data of a kind from now on."""
        if flavour != self.flavour:
            self.flavour = flavour
            self._originals.clear()
            self._untouched.clear()

    def array(self, key: ArrayKey) -> Array:
        """Return the working copy, allocated if need be."""
        if key not in self._working:
            self._working[key] = self._xp.empty(key.shape, key.dtype)
        return self._working[key]

    def original(self, key: ArrayKey) -> Array:
        """Return the data that an array which is overwritten begins with, made if need be."""
        if key not in self._originals:
            self._originals[key] = array = self._xp.empty(key.shape, key.dtype)
            fill(self._xp, array, key, self.flavour)
        return self._originals[key]

    def begin(self, use: MemoryUse) -> None:
        """Put into a working copy what a run has to begin with: its data, or poison."""
        array = self.array(use.key)
        if use.overwritten:
            self._xp.copyto(array, self.original(use.key))
        elif use.writes:
            poison(self._xp, array)
        elif use.key not in self._untouched:
            fill(self._xp, array, use.key, self.flavour)
        if use.writes:
            self._untouched.discard(use.key)
        else:
            self._untouched.add(use.key)


def fill(xp: Any, array: Array, key: ArrayKey, flavour: Flavour) -> None:
    """Put random data into an array: the same for the same key and flavour.

    Floating-point numbers as the flavours of :mod:`eatss.verify.data` say, integers 1 to 9.
    """
    rng = xp.random.default_rng(key.random_seed())
    longest = max(key.shape, default=1)
    floating = key.dtype.kind == "f"
    drawn_as = key.dtype if key.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    for part in chunks(array):
        if floating:
            drawn = rng.random(size=part.size, dtype=drawn_as)
            if flavour == "offset":
                drawn += 1
            elif flavour == "small" and key.shape:
                drawn /= max(1, longest)
        else:
            drawn = rng.integers(1, 10, size=part.size)
        part[...] = drawn
    if flavour == "dominant" and len(key.shape) >= 2 and floating:
        diagonal = xp.arange(min(key.shape[-2:]))
        array[..., diagonal, diagonal] += 2.0 * longest


def poison(xp: Any, array: Array) -> None:
    """Put the pattern of what nothing wrote into an array."""
    pattern = _POISON[array.dtype.itemsize]
    for part in chunks(array):
        unsigned = np.dtype(f"u{part.dtype.itemsize}")
        part.view(unsigned)[...] = xp.asarray(pattern, dtype=unsigned)


def chunks(array: Array) -> Iterator[Array]:
    """Yield the elements in order, flat, a part at a time, as views."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        yield flat[start : start + CHUNK]


@frozen
class Health:
    """What became of the values of an array.

    ``broken`` counts infinities and NaN, ``faint`` denormal numbers and zeros; what nothing wrote
    since it was poisoned counts as neither.
    """

    elements: int
    broken: int
    faint: int


def health(xp: Any, array: Array) -> Health:
    """Look at every element; integers are always well."""
    broken = faint = 0
    if array.dtype.kind == "f":
        least = float(np.finfo(array.dtype).tiny)
        pattern = np.dtype(f"u{array.dtype.itemsize}").type(_POISON[array.dtype.itemsize])
        for part in chunks(array):
            unwritten = part.view(pattern.dtype) == pattern
            broken += int(xp.count_nonzero(~(xp.isfinite(part) | unwritten)))
            faint += int(xp.count_nonzero(xp.abs(part) < least))
    return Health(elements=int(array.size), broken=broken, faint=faint)


@frozen
class DataChoice:
    """The data of programs with the same arguments, and what one run makes of them."""

    flavour: Flavour
    after_one_run: Mapping[ArrayKey, Health]

    @property
    def harm(self) -> tuple[int, float]:
        """Infinities and NaN, and the share of denormal numbers and zeros."""
        found = self.after_one_run.values()
        elements, faint = sum(one.elements for one in found), sum(one.faint for one in found)
        return sum(one.broken for one in found), faint / max(1, elements)


Group: TypeAlias = tuple[str | ArrayKey, ...]
"""The name of a program and its arrays: variants of it have the same, and get the same data."""

Kept: TypeAlias = Mapping[ArrayKey, tuple[Array, float]]
"""Copies of what a program wrote, and how rounding errors of each grow, in units of ε."""


@dataclass(slots=True, kw_only=True)
class CardMemory:
    """What workloads of one card share: CuPy, the stream, arguments, and the choice of data.

    ``current`` makes the card and its stream the current ones in a block. ``arguments`` last as
    long as a workload has them.
    """

    cupy: Any
    stream: Any
    current: Callable[[], AbstractContextManager[Any]]
    arguments: WeakValueDictionary[Group, SharedArguments] = field(
        default_factory=WeakValueDictionary
    )
    choices: dict[Group, DataChoice] = field(default_factory=dict)


@frozen
class ResolvedLaunch:
    """A launch with every number known.

    ``shared_bytes`` is dynamic shared memory a block. ``arguments`` are the names the kernel
    takes, in order: arguments and temporaries of entry number ``entry``, sizes and counters of
    host loops. ``integers`` are the values of the latter two, of the type of the program's
    indices.
    """

    entry: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: Texts
    integers: SizePairs


def refusal(program: Program, sizes: Sizes) -> str:
    """Say which assumption of an entry the sizes break, "" if none."""
    for entry in program.entries:
        for argument in entry.arguments:
            if argument.role != "parameter":
                continue
            least, most = limits_of(argument)
            if not least <= sizes[argument.name] <= most:
                return f"{argument.name}={sizes[argument.name]} is no {argument.element_type}"
        for assumption in entry.assumptions:
            if not evaluate(assumption.condition, sizes):
                return assumption.message
    return ""


def launches(program: Program, sizes: Sizes) -> Iterator[ResolvedLaunch]:
    """Yield the launches of one run: all entries in order, the values of all parameters given.

    A grid with an extent that is not positive launches nothing.
    """
    kernels = {kernel.name: kernel for kernel in program.kernels}

    def walked(number: int, steps: Sequence[HostStep], values: Sizes) -> Iterator[ResolvedLaunch]:
        for step in steps:
            if isinstance(step, Launch):
                x, y, z = (evaluate(extent, values) for extent in step.grid)
                if min(x, y, z) > 0:
                    kernel = kernels[step.kernel]
                    passed = kernel.arguments
                    yield ResolvedLaunch(
                        entry=number,
                        kernel=kernel.name,
                        grid=(x, y, z),
                        block=kernel.block,
                        shared_bytes=kernel.shared_bytes if kernel.dynamic_shared else 0,
                        arguments=passed,
                        integers=tuple((name, values[name]) for name in passed if name in values),
                    )
            elif isinstance(step, HostIf):
                if evaluate(step.condition, values):
                    yield from walked(number, step.body, values)
            else:
                lower, upper = evaluate(step.lower, values), evaluate(step.upper, values)
                for counter in range(lower, upper + 1, step.step):
                    yield from walked(number, step.body, {**values, step.counter: counter})

    for number, entry in enumerate(program.entries):
        yield from walked(number, entry.body, sizes)

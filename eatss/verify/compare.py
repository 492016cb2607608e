"""Compares what the generated program left in its arguments with what the original left.

How far rounding may take an element follows from the operations of the original: it runs a second
time over numbers that carry, with their value, the sum of the magnitudes of what was added up and a
bound on the error (``shim/eatss_number.hpp``). The bound holds for any order of the additions of a
sum; the original and the generated program may each err by it, so they may differ by twice as much.

A program whose instructions round factors of products, or sums, more than C does says so in its
plan (``RoundedSums``). Its own bound is then that of a run in which each product that is added to
something is off by as much, and each addition counts as so many roundings. It does not depend on
which statements the instructions compute: it holds for all of the program.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.program import Program
from eatss.program.expression import Sizes
from eatss.verify.data import Buffer, Buffers, dtype_of
from eatss.verify.result import Difference, SizeResult

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Truths: TypeAlias = npt.NDArray[np.bool_]
Bounds: TypeAlias = Sequence[Floats | None]
"""How far each element of each argument may be from an exact result."""


def compare(
    expected: Buffers,
    actual: Buffers,
    bounds: Bounds,
    result: SizeResult,
    *,
    alike: bool = False,
) -> SizeResult:
    """Return a result with what comparing element by element finds.

    Args:
        expected: arguments as the original left them.
        actual: arguments as the generated program left them.
        bounds: for each argument the absolute error allowed to each element; ``None`` where
            every bit has to be equal. A NaN has to be a NaN, an infinity the same infinity,
            except where the bound is infinite itself.
        result: what is known so far; of both orders the larger error stays.
        alike: whether a NaN may be an infinity, and the other way round.
    """
    result = replace(result, compared=0, not_finite=0, loose=0)
    for before, after, bound in zip(expected, actual, bounds, strict=True):
        if before.argument.role in ("scalar", "parameter"):
            continue
        left, right = before.elements, after.elements
        wrong = _bits_differ(left, right)
        if alike and left.dtype.kind == "f":
            wrong &= np.isfinite(left) | np.isfinite(right)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(left.astype(np.float64) - right.astype(np.float64))
        error = np.where(wrong & np.isfinite(error), error, 0.0)
        allowed = np.zeros(left.shape) if bound is None else np.atleast_1d(bound)
        loose = 0
        if bound is not None:
            finite = np.isfinite(left) & np.isfinite(right)
            wrong &= ~((finite & (error <= bound)) | (left == right) | np.isinf(bound))
            loose = int(np.count_nonzero((allowed > np.abs(left)) & (left != 0)))
        at = np.unravel_index(int(np.argmax(error)), error.shape) if error.size else ()
        if error.size and error[at] > result.worst_error:
            result = replace(result, worst_error=float(error[at]), bound=float(allowed[at]))
        result = replace(
            result,
            compared=result.compared + left.size,
            not_finite=result.not_finite + count_not_finite(left),
            loose=result.loose + loose,
            difference=result.difference or _first(before, left, right, wrong),
        )
    return result


def bits_equal(expected: Buffers, actual: Buffers) -> bool:
    """Return whether all elements of all arrays are the same, one NaN like another."""
    pairs = zip(expected, actual, strict=True)
    return not any(_bits_differ(one.elements, other.elements).any() for one, other in pairs)


def _bits_differ(left: Array, right: Array) -> Truths:
    if left.dtype.kind != "f":
        return np.asarray(left != right)
    same_bits = left.view(f"u{left.itemsize}") == right.view(f"u{left.itemsize}")
    return np.asarray(~(same_bits | (np.isnan(left) & np.isnan(right))))


def count_not_finite(values: Array) -> int:
    """Return how many values are infinite or no number; integers never are."""
    if values.dtype.kind != "f":
        return 0
    return int(values.size - np.count_nonzero(np.isfinite(values)))


def _first(buffer: Buffer, left: Array, right: Array, wrong: Truths) -> Difference | None:
    for at in np.argwhere(wrong)[:1]:
        place = tuple(map(int, at))
        return Difference(
            array=buffer.argument.name,
            indices=place[: len(buffer.shape)],
            expected=str(left[place].item()),
            actual=str(right[place].item()),
        )
    return None


_PERTURBED = 3
_SAFETY = 8.0

_UNIT = {"_Float16": 2.0**-11, "float": 2.0**-24, "double": 2.0**-53}


_Figures: TypeAlias = tuple[float, float, float, float, float]
Roundings: TypeAlias = Mapping[str, _Figures]
"""By type, how the generated program rounds: how far a product that is added may be off, as a share
of it, the roundings of a sum for each product, how far a subnormal factor may be off, the roundings
of a quotient, and what numbers are 0 below."""

EXACT_FACTORS: _Figures = (0.0, 1.0, 0.0, 1.0, 0.0)
"""The same of C."""

_FAST: _Figures = (0.0, 1.0, 0.0, 4.0, float(np.finfo(np.float32).tiny))
"""The same of floats that are approximate: quotients are within 2 units in the last place [CUDA C++
Programming Guide, mathematical functions]."""


def roundings_of(program: Program) -> Roundings:
    """Return how a program rounds, where it does so more than C."""
    found: dict[str, _Figures] = {"float": _FAST} if program.fast_math else {}
    for kernel in program.kernels:
        for one in kernel.rounded_sums:
            own = (one.product_error, one.sum_roundings, one.least)
            before = found.get(one.element_type, EXACT_FACTORS)
            product, sums, least = map(max, zip(own, before[:3], strict=True))
            found[one.element_type] = (product, sums, least, *before[3:])
    return found


Pointers: TypeAlias = "ctypes.Array[ctypes.c_void_p]"
Call: TypeAlias = Callable[[Pointers], object]
"""Runs the original over numbers, on pointers to its arguments."""


def bounds_by_running(
    buffers: Buffers, library: ctypes.CDLL, call: Call, roundings: Roundings
) -> Bounds:
    """Run the original over numbers with bounds.

    Args:
        buffers: the arguments before the run.
        library: the original over numbers.
        call: runs it.
        roundings: how the generated program rounds where it does so more than C.

    Returns:
        For each argument the error allowed to each element, the original's and that of the
        generated program; ``None`` for integers and for what is not written.
    """
    own = theirs = _bounds(buffers, call)
    if roundings:
        _round_as(library, roundings)
        theirs = _bounds(buffers, call)
        _round_as(library, dict.fromkeys(roundings, EXACT_FACTORS))
    return [
        None if one is None or other is None else one + other
        for one, other in zip(own, theirs, strict=True)
    ]


def _round_as(library: ctypes.CDLL, roundings: Roundings) -> None:
    for kind, figures in roundings.items():
        (ctypes.c_double * len(figures)).in_dll(library, f"eatss_rounds_{kind}")[:] = list(figures)


def _bounds(buffers: Buffers, call: Call) -> list[Floats | None]:
    """Return how far each element may be from an exact result."""
    shadows = [_numbers(buffer) for buffer in buffers]
    call((ctypes.c_void_p * len(shadows))(*(shadow.ctypes.data for shadow in shadows)))
    return [_bound_of(buffer, shadow) for buffer, shadow in zip(buffers, shadows, strict=True)]


def bounds_by_perturbing(
    before: Buffers,
    expected: Buffers,
    sizes: Sizes,
    run: Callable[[Buffers], object],
    roundings: Roundings,
) -> Bounds:
    """Bound the error of programs that do not compile as C++.

    For sums of at most n products of numbers up to X in size an error is at most
    2 n u · n X², with n the sum of all sizes, longer than any one sum is where each size
    bounds one loop of it. Where the generated program rounds products and sums more, its error is
    that of its roundings, and of its products; both are allowed.

    Rounding is also as good as a relative change of the data by at most n u (backward error). The
    original runs on data changed so, at random; ``_SAFETY`` times the furthest that an element
    moves is added: where a quotient by a small number, or a matrix without full rank, turns a
    little into much, much is allowed.

    Args:
        before: the arguments before the run.
        expected: the arguments as the original left them.
        sizes: values of the parameters.
        run: runs the original on arguments.
        roundings: how the generated program rounds.
    """
    length = max(2, sum(max(0, value) for value in sizes.values()))
    floats = [one.array for one in expected if one.array.dtype.kind == "f"]
    sizes_of_values = [np.abs(one[np.isfinite(one)]).max(initial=1.0) for one in floats]
    most = float(max(sizes_of_values, default=1.0)) ** 2 * length

    def share(buffer: Buffer, times: float) -> float | None:
        """Return how much so many times the roundings of a sum, and a product, change a number."""
        kind = buffer.argument.element_type
        product, sums, *_ = roundings.get(kind, EXACT_FACTORS)
        return times * (1.0 + sums) * length * _UNIT[kind] + product if kind in _UNIT else None

    found: list[Floats | None] = [
        np.full(buffer.shape, own * most)
        if buffer.argument.writes and (own := share(buffer, 2.0)) is not None
        else None
        for buffer in expected
    ]
    for seed in range(_PERTURBED):
        rng = np.random.default_rng(seed)
        changed = [buffer.copy() for buffer in before]
        for buffer in changed:
            if (change := share(buffer, 1.0)) is not None:
                signs = rng.choice(np.array([-1.0, 1.0]), buffer.shape)
                buffer.array[...] *= 1.0 + change * signs
        run(changed)
        for bound, one, other in zip(found, changed, expected, strict=True):
            if bound is not None:
                with np.errstate(invalid="ignore"):
                    moved = np.abs(one.array - other.array)
                np.add(bound, _SAFETY * np.where(np.isnan(moved), np.inf, moved), out=bound)
    return found


def _numbers(buffer: Buffer) -> Array:
    """Return the elements as the C++ side has them; integers are the same on both."""
    if buffer.argument.element_type not in _UNIT:
        return np.ascontiguousarray(buffer.array).copy()
    own = np.dtype(
        {
            "names": ["v", "size", "leaf", "adds", "product"],
            "formats": [dtype_of(buffer.argument), "f8", "f8", "f8", "f8"],
            "offsets": [0, 8, 16, 24, 32],
            "itemsize": 40,
        }
    )
    shadow = np.zeros(buffer.shape, own)
    shadow["v"] = buffer.array
    shadow["size"] = np.abs(buffer.array)
    return shadow


def _bound_of(buffer: Buffer, shadow: Array) -> Floats | None:
    unit = _UNIT.get(buffer.argument.element_type)
    if unit is None or not buffer.argument.writes:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        bound = shadow["leaf"] + shadow["adds"] * unit * shadow["size"]
    return np.asarray(np.where(np.isnan(bound), np.inf, bound), np.float64)

"""How far rounding may take every element, from the operations the original does.

The original runs a second time over numbers that carry, with their value, the sum of the
magnitudes of what was added up and a bound on the error (``shim/eatss_number.hpp``). The bound
holds for any order of the additions of a sum; the original and the generated program may each
err by it, so they may differ by twice as much.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.verify.data import Buffer, dtype_of

_PERTURBED = 3
_SAFETY = 8.0

_UNIT = {"float": 2.0**-24, "double": 2.0**-53}


def bounds_by_running(
    buffers: Sequence[Buffer], call: Callable[[ctypes.Array[ctypes.c_void_p]], object]
) -> tuple[npt.NDArray[np.float64] | None, ...]:
    """Run the original over numbers with bounds.

    Args:
        buffers: the arguments before the run.
        call: runs it on pointers to its arguments.

    Returns:
        For each argument the error allowed to each element; ``None`` for integers and for what
        is not written.
    """
    shadows = [_numbers(buffer) for buffer in buffers]
    pointers = (ctypes.c_void_p * len(shadows))(*(shadow.ctypes.data for shadow in shadows))
    call(pointers)
    return tuple(_allowed(buffer, shadow) for buffer, shadow in zip(buffers, shadows, strict=True))


def bounds_by_length(
    expected: Sequence[Buffer], sizes: Mapping[str, int]
) -> tuple[npt.NDArray[np.float64] | None, ...]:
    """Bound the error of programs that do not compile as C++.

    For sums of at most n products of numbers up to X in size an error is at most
    2 n u · n X², with n the sum of all sizes, longer than any one sum is where each size
    bounds one loop of it; twice that is allowed. It says nothing of quotients by small numbers.
    """
    length = max(2, sum(max(0, value) for value in sizes.values()))
    largest = 1.0
    for buffer in expected:
        values = buffer.array
        if values.dtype.kind == "f" and values.size:
            finite = np.abs(values[np.isfinite(values)])
            largest = max(largest, float(finite.max(initial=0.0)))
    found: list[npt.NDArray[np.float64] | None] = []
    for buffer in expected:
        unit = _UNIT.get(buffer.argument.element_type)
        if unit is None or not buffer.argument.writes:
            found.append(None)
        else:
            found.append(np.full(buffer.shape, 4.0 * length * unit * length * largest**2))
    return tuple(found)


def with_perturbed(
    bounds: Sequence[npt.NDArray[np.float64] | None],
    before: Sequence[Buffer],
    expected: Sequence[Buffer],
    sizes: Mapping[str, int],
    run: Callable[[Sequence[Buffer]], object],
) -> tuple[npt.NDArray[np.float64] | None, ...]:
    """Widen bounds by how far results move when the data are changed as much as rounding may.

    Rounding in sums of n numbers is as good as a relative change of the data by at most n u
    (backward error), with n the sum of all sizes. The original runs on data changed so, at random;
    ``_SAFETY`` times the furthest that an element moves is added: where a quotient by a small
    number, or a matrix without full rank, turns a little into much, much is allowed.

    Args:
        bounds: for each argument, as :func:`bounds_by_length` returns them.
        before: the arguments before the run.
        expected: the arguments as the original left them.
        sizes: values of the parameters.
        run: runs the original on arguments.
    """
    length = max(2, sum(max(0, value) for value in sizes.values()))
    found = [None if bound is None else bound.copy() for bound in bounds]
    for seed in range(_PERTURBED):
        rng = np.random.default_rng(seed)
        changed = [buffer.copy() for buffer in before]
        for buffer in changed:
            unit = _UNIT.get(buffer.argument.element_type)
            if unit is not None:
                signs = rng.choice(np.array([-1.0, 1.0]), buffer.shape)
                buffer.array[...] *= 1.0 + 2.0 * length * unit * signs
        run(changed)
        for place, bound in enumerate(found):
            if bound is not None:
                with np.errstate(invalid="ignore"):
                    moved = np.abs(changed[place].array - expected[place].array)
                np.add(bound, _SAFETY * np.where(np.isnan(moved), np.inf, moved), out=bound)
    return tuple(found)


def _number_type(buffer: Buffer) -> np.dtype[np.void]:
    return np.dtype(
        {
            "names": ["v", "size", "leaf", "adds"],
            "formats": [dtype_of(buffer.argument), "f8", "f8", "f8"],
            "offsets": [0, 8, 16, 24],
            "itemsize": 32,
        }
    )


def _numbers(buffer: Buffer) -> npt.NDArray[Any]:
    """Return the elements as the C++ side has them; integers are the same on both."""
    if buffer.argument.element_type not in _UNIT:
        return np.ascontiguousarray(buffer.array).copy()
    shadow = np.zeros(buffer.shape, _number_type(buffer))
    shadow["v"] = buffer.array
    shadow["size"] = np.abs(buffer.array)
    return shadow


def _allowed(buffer: Buffer, shadow: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    unit = _UNIT.get(buffer.argument.element_type)
    if unit is None or not buffer.argument.writes:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        bound = 2.0 * (shadow["leaf"] + shadow["adds"] * unit * shadow["size"])
    return np.asarray(np.where(np.isnan(bound), np.inf, bound), np.float64)

"""Results of two programs compared in device memory.

Programs made from the same C with other tile sizes may add in another order or contract other
products, so results may differ by rounding. In the worst case the error of a sum of d products
grows like d ε Σ|x||y|; with roundings that are random and independent it grows like √d ε Σ|x||y|
[Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Sec. 2.8; Higham and Mary, A New
Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41, 2019], ε being twice
the unit roundoff u. The worst case of a long sum would hide whole tiles that are left out, so the
second law is the bound here: an element may differ by 8 √d ε max|b|, b being the reference's array.

For data without a sign, as arguments have, Σ|x||y| is the element itself, at most max|b|. The
partial sums of d such terms err by a standard deviation of √d u b / 3 at most, two programs by
0.24 √d ε b. The largest of 2^31 elements is 6.3 deviations out: 1.5 √d ε b. The factor 8 leaves
room for sums that are longer than the mean (triangular nests: up to three times, √3) and for
results that are computed from other long sums (three in a row: √3).

What it sees: of d terms of like size, one that is left out is 1/d of the element; this shows where
1/d > 8 √d ε, so up to some 10 000 terms in float and in double always. What it cannot see: errors
in elements far below the largest of their array, such as those beside the heavy diagonals of
``dominant`` data, and few lost terms of longer sums in float.

Two kinds of programs are bound by the worst case, 8 d ε max|b|, which is all but blind for long
sums in float. Those that divide or take roots multiply errors by a condition number that nobody
knows here. And from 1/(8 ε) terms on, a million in float, additions lose terms, and roundings are
random no more. Cancellation, recurrences that are worse conditioned still, and roundings that all
go one way (the same constants added again and again) are not covered by either law.

Instructions may round factors of products and sums more than C does; a plan says by how much
(``RoundedSums``). Products that are off by p of themselves make sums that are off by p Σ|x||y|, and
tensor cores cut off what does not fit, so that all errors go one way: s d u Σ|x||y|. That much is
added, three times p for chains of sums.

A difference beyond the bound is therefore held against what the program makes of the least change
of its inputs, ε of each: a condition number met on the way, times ε. What d roundings on the way
may do is 8 √d times that. Only where the difference is below it is it taken for rounding, and the
measurement says so: for such a program the comparison at full size says little.

A generated program on the card compared with the original C on the CPU, at reduced sizes.

``eatss.verify`` does the comparing, in a process of its own, whose machine is here: the same
compiler and the same launches as those that are measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, prod, sqrt
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eatss.base.codec import decode, encode
from eatss.base.diagnostics import InputError, InternalError
from eatss.base.text import equations
from eatss.measurement.arguments import CHUNK, Array, chunks, launches, temporaries_of
from eatss.measurement.assemble import count_work
from eatss.measurement.card import (
    CompileError,
    Difference,
    LaunchError,
    NotComparedError,
    WrongResultError,
    import_cupy,
    translated,
)
from eatss.measurement.compile import CompileTarget, Kernels
from eatss.program import Entry, Program
from eatss.program.expression import SizePairs, Sizes
from eatss.verify.build import CompileError as VerifyCompileError
from eatss.verify.data import Buffer
from eatss.verify.device import Launched
from eatss.verify.result import Verification
from eatss.verify.run import verify
from eatss.verify.sizes import choose_sizes, estimated_work, expected_code

_SLACK = 8.0
"""See above: 1.5 for the law, √3 · √3 for longer sums and chains of them, the rest is margin."""

_CHAIN = 3.0
"""Sums of products of sums that are allowed for."""

_RANDOM_UNTIL = 1 / 8
"""Roundings of a sum of d terms are taken to be random while d ε is below this."""

_CONDITIONED = frozenset({"divide", "square root", "function"})
"""Kinds of operations of solvers, factorisations and normalisations, which multiply errors by a
condition number."""


def rounding_growth(
    program: Program, sizes: Sizes, shape: Sequence[int], dtype: np.dtype[Any]
) -> float:
    """Return how rounding errors of an array's elements grow, in units of ε: √d, or d.

    Args:
        program: whose results are compared.
        sizes: values of its parameters.
        shape: extents of the array.
        dtype: type of its elements, floating-point.
    """
    length = accumulation_length(program, sizes, shape)
    epsilon = float(np.finfo(dtype).eps)
    random = length * epsilon < _RANDOM_UNTIL
    in_order = dtype == np.float16  # whoever adds up in halves does so in the order of the source
    growth = sqrt(length) if (random or in_order) and not _divides(program, sizes) else length
    return growth + _rounded_growth(program, dtype, length, epsilon) / _SLACK


def _rounded_growth(program: Program, dtype: np.dtype[Any], length: float, epsilon: float) -> float:
    """Return what instructions that round more than C add to it, in units of ε."""
    of_type = {2: "_Float16", 4: "float", 8: "double"}.get(dtype.itemsize)
    every = chain(*(kernel.rounded_sums for kernel in program.kernels))
    found = [one for one in every if one.element_type == of_type]
    product = max((one.product_error for one in found), default=0.0)
    sums = max((one.sum_roundings for one in found), default=0.0)
    return _CHAIN * product / epsilon + sums * length / 2


def accumulation_length(program: Program, sizes: Sizes, shape: Sequence[int]) -> float:
    """Return d, the number of terms that go into an element of an array, at least 2.

    All additions of the program, as the plan counts them, over the elements of the array: what an
    element would get if they all went into this array. A sum over one loop is no longer than the
    largest size, so that is the least; sums over several loops are longer, and additions tell. With
    a plan that does not count them the sum of all sizes stands in.
    """
    extents = [float(max(0, value)) for value in (*sizes.values(), *shape)]
    counts = _counts(program, sizes)
    if counts is None:
        return max(2.0, sum(max(0, value) for value in sizes.values()), *extents)
    return max(2.0, counts.get("add", 0) / max(1, prod(shape)), *extents)


def _counts(program: Program, sizes: Sizes) -> dict[str, int] | None:
    """Return how many operations of each kind a run does, ``None`` where they are not counted."""
    operations = count_work(program, sizes).operations
    return None if operations is None else {one.kind: one.count for one in operations}


def _divides(program: Program, sizes: Sizes) -> bool:
    """Return whether results are divided or roots taken, or whether that is not known."""
    counts = _counts(program, sizes)
    return counts is None or not _CONDITIONED.isdisjoint(counts)


def difference(xp: Any, name: str, mine: Array, theirs: Array, growth: float) -> Difference:
    """Compare an array with the reference's; ``growth`` is that of :func:`rounding_growth`."""
    error, at, largest = 0.0, 0, 0.0
    floating = mine.dtype.kind == "f"
    for number, (left, right) in enumerate(zip(chunks(mine), chunks(theirs), strict=True)):
        differ = left != right
        if floating:
            finite = xp.isfinite(left) & xp.isfinite(right)
            differ &= ~(finite | (xp.isnan(left) & xp.isnan(right)))
        if bool(differ.any()):
            return _reported(name, mine, theirs, number * CHUNK + int(xp.argmax(differ)), inf, "")
        if not floating:
            continue
        values = xp.where(finite, right, 0).astype(np.float64)
        errors = xp.abs(xp.where(finite, left, 0).astype(np.float64) - values)
        place = int(xp.argmax(errors))
        if float(errors[place]) > error:
            error, at = float(errors[place]), number * CHUNK + place
        largest = max(largest, float(xp.abs(values).max()))
    if not error:
        return Difference(equal=True, argument=name, worst=0.0, message="")
    allowed = _SLACK * growth * float(np.finfo(mine.dtype).eps) * largest
    worst = error / allowed if allowed else inf
    if worst <= 1:
        return Difference(equal=True, argument=name, worst=worst, message="")
    return _reported(name, mine, theirs, at, worst, f"; rounding allows {allowed:.3g}")


def change_last_bits(array: Array) -> None:
    """Change floating-point numbers by ε of themselves: of three, one up and one down."""
    if array.dtype.kind == "f":
        flat, step = array.reshape(-1), float(np.finfo(array.dtype).eps)
        flat[::3] *= 1 + step
        flat[1::3] *= 1 - step


def magnified(
    found: Difference,
    moved: Difference,
    program: Program,
    sizes: Sizes,
    shape: Sequence[int],
) -> str:
    """Say that a difference is of rounding that the program magnifies, "" if it is not.

    Args:
        found: the difference from another program's result.
        moved: how far the result moves where its inputs change in their last bit.
        program: whose results are compared.
        sizes: values of its parameters.
        shape: extents of the array in which they differ.
    """
    room = _SLACK * sqrt(accumulation_length(program, sizes, shape))
    if not 1 < found.worst <= room * moved.worst < inf:
        return ""
    return (
        f"{found.argument} differs by {found.worst:.2g} times what rounding usually does, and by "
        f"{moved.worst:.2g} times that where inputs change in their last bit"
    )


def _reported(
    name: str, mine: Array, theirs: Array, at: int, worst: float, allowed: str
) -> Difference:
    indices = np.unravel_index(at, mine.shape) if mine.shape else ()
    place = "".join(f"[{int(index)}]" for index in indices)
    here, there = (array.reshape(-1)[at].item() for array in (mine, theirs))
    return Difference(
        equal=False,
        argument=name,
        worst=worst,
        message=f"{name}{place} is {here!r}, the reference has {there!r}{allowed}",
    )


_MACHINE = "eatss.measurement.correctness:make_machine"
_ABOVE = 7
"""So much larger than a tile is a size that gives a whole tile and a partial one."""

_MOST_OPERATIONS = 1e9
"""Of the original: half a second, and ten times that for the bounds on rounding."""


def compare_with_original(
    program: Program,
    directory: Path,
    seed: int,
    timeout_s: float,
    target: CompileTarget,
) -> str:
    """Compare at a few sizes that between them give whole and partial tiles.

    Args:
        program: what is measured.
        directory: its folder, which holds the original.
        seed: of the data.
        timeout_s: limit of one run of either program.
        target: where it is measured.

    Returns:
        What it was compared with, in words.

    Raises:
        WrongResultError: results differ.
        NotComparedError: the original cannot be called or compiled, or the process that compares
            fails, which says nothing of the program.
        LaunchError: a kernel cannot be launched, fails or hangs.
        CompileError: the program does not compile at these sizes.
    """
    sizes = reduced_sizes(program)
    if not sizes:
        raise NotComparedError("its sizes are fixed, and so large that the original takes too long")

    def compile_ahead(each: Sizes) -> None:
        with suppress(CompileError):  # it is said where the program is to run
            target.compile(program, each)

    with ThreadPoolExecutor(len(sizes)) as pool:  # the process that compares finds them made
        list(pool.map(compile_ahead, sizes))
    try:
        found = verify(
            directory,
            device="gpu",
            sizes=sizes,
            seed=seed,
            timeout_s=timeout_s,
            machine=(_MACHINE, json.dumps(encode(target))),
        )
    except (InputError, InternalError) as error:
        raise NotComparedError(error.message) from error
    return verdict(found)


def reduced_sizes(program: Program) -> tuple[Sizes, ...]:
    """Return a few of the sizes that verification on a CPU would run, from the largest down.

    Those stay below some tiles, because a CPU that stands in for a card is slow. With a card
    only the original is: sizes that just exceed every tile come first where it can afford them.
    There are none where sizes are fixed and too large for the original.
    """
    every = choose_sizes(program)
    if not every:
        return ()
    places = {len(every) - 1, 3 * len(every) // 4, len(every) // 2}
    chosen = [every[place] for place in sorted(places, reverse=True)]
    above = {p.name: max(chosen[0][p.name], p.tile + _ABOVE) for p in program.parameters}
    allowed = not any(expected_code(entry, above) for entry in program.entries)
    if above != chosen[0] and allowed and _operations(program, above) <= _MOST_OPERATIONS:
        chosen.insert(0, above)
    return tuple(chosen)


def _operations(program: Program, sizes: Sizes) -> float:
    """Return the operations of a run, an estimate where the plan does not count them."""
    counts = _counts(program, sizes)
    return estimated_work(program, sizes) if counts is None else sum(counts.values())


def verdict(found: Verification) -> str:
    """Return in words what was compared; raise if something failed."""
    failed = next((result for result in found.results if result.status != "ok"), None)
    if failed is None:
        runs = dict.fromkeys(_sizes_text(result.sizes) for result in found.results)
        return f"the original C at {'; '.join(runs)}"
    said = f"at {_sizes_text(failed.sizes)}: {failed.message}"
    if failed.status in ("wrong result", "out of bounds", "not refused"):
        raise WrongResultError(said)
    if failed.status == "compile error":
        raise CompileError(said)
    raise LaunchError(said, timed_out=failed.status == "timeout")


def _sizes_text(sizes: SizePairs) -> str:
    return equations(sizes) or "its fixed sizes"


def make_machine(program: Program, sizes: Sizes, target: str) -> CupyMachine:
    """Return what runs entries of a program at these sizes; called in the comparing process."""
    card = decode(CompileTarget, json.loads(target))
    try:
        path = card.compile(program, sizes)
    except CompileError as error:
        raise VerifyCompileError(str(error)) from None
    cupy = import_cupy()
    cupy.cuda.Device(card.device).use()
    return CupyMachine(cupy, program, sizes, path)


@dataclass(frozen=True)
class CupyMachine:
    """A :class:`eatss.verify.device.Machine` on CuPy, for one choice of sizes."""

    orders: ClassVar[tuple[bool, ...]] = (False,)

    cupy: Any
    program: Program
    sizes: Sizes
    path: Path

    def launch(self, entry: Entry, buffers: Sequence[Buffer], *, backward: bool) -> Launched:
        """Run an entry on copies in device memory, guard zones included."""
        assert not backward
        if refused := expected_code(entry, self.sizes):
            return Launched(refused, "ok", "")
        try:
            with translated(f"running {entry.launcher}"):
                self._launch(entry, buffers)
        except LaunchError as error:
            return Launched(0, "launch error", str(error))
        return Launched(0, "ok", "")

    def _launch(self, entry: Entry, buffers: Sequence[Buffer]) -> None:
        cupy, program, sizes = self.cupy, self.program, self.sizes
        kernels = Kernels(cupy, program, self.path)
        bound = {
            temporary.name: (cupy.zeros if temporary.zeroed else cupy.empty)(key.shape, key.dtype)
            for key, temporary in zip(temporaries_of(entry, sizes), entry.temporaries, strict=True)
        }
        memory = [(buffer, cupy.asarray(buffer.raw)) for buffer in buffers]
        for buffer, device in memory:
            by_value = buffer.argument.role in ("scalar", "parameter")
            pointer = np.uint64(device.data.ptr + buffer.guard)
            bound[buffer.argument.name] = buffer.array.reshape(-1)[0] if by_value else pointer
        for launch in launches(replace(program, entries=(entry,)), sizes):
            kernels.launch(launch, bound)
        cupy.cuda.runtime.deviceSynchronize()
        for buffer, device in memory:
            buffer.raw[:] = device.get()

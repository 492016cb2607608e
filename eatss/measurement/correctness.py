"""A generated program on the card compared with the original C on the CPU, at reduced sizes.

``eatss.verify`` does the comparing, in a process of its own, whose machine is here: the same
compiler and the same launches as those that are measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eatss.base.codec import decode, encode
from eatss.base.diagnostics import InputError, InternalError
from eatss.measurement.arguments import temporaries_of
from eatss.measurement.card import CompileError, LaunchError, NotComparedError, WrongResultError
from eatss.measurement.compile import CompileTarget
from eatss.measurement.cupy_module import import_cupy
from eatss.measurement.kernels import Kernels
from eatss.measurement.launches import entry_launches
from eatss.program import Entry, Program, evaluate
from eatss.program.expression import Sizes
from eatss.verify import Verification, choose_sizes, estimated_work, verify
from eatss.verify.build import CompileError as VerifyCompileError
from eatss.verify.data import Buffer
from eatss.verify.device import Launched
from eatss.verify.sizes import broken_assumption

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
        raise NotComparedError(error.diagnostics[0].message) from error
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
    allowed = all(broken_assumption(entry, above) is None for entry in program.entries)
    if above != chosen[0] and allowed and _operations(program, above) <= _MOST_OPERATIONS:
        chosen.insert(0, above)
    return tuple(chosen)


def _operations(program: Program, sizes: Sizes) -> float:
    """Return the operations of a run, an estimate where the plan does not count them."""
    total = 0
    for entry in program.entries:
        if entry.work is None or entry.work.operations is None:
            return estimated_work(program, sizes)
        total += sum(evaluate(kind.count, sizes) for kind in entry.work.operations)
    return total


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


def _sizes_text(sizes: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes) or "its fixed sizes"


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
        broken = broken_assumption(entry, self.sizes)
        if broken is not None:
            return Launched(-broken - 1, "ok", "")
        try:
            self._launch(entry, buffers)
        except LaunchError as error:
            return Launched(0, "launch error", str(error))
        except RuntimeError as error:
            code = getattr(error, "status", None)
            if not isinstance(code, int):
                raise
            return Launched(code, "crash", f"a kernel failed: {error}")
        return Launched(0, "ok", "")

    def _launch(self, entry: Entry, buffers: Sequence[Buffer]) -> None:
        cupy, program, sizes = self.cupy, self.program, self.sizes
        kernels = Kernels(cupy, program, self.path)
        bound: dict[str, Any] = {
            temporary.name: (cupy.zeros if temporary.zeroed else cupy.empty)(key.shape, key.dtype)
            for key, temporary in zip(temporaries_of(entry, sizes), entry.temporaries, strict=True)
        }
        memory = [(buffer, cupy.asarray(buffer.raw)) for buffer in buffers]
        for buffer, device in memory:
            by_value = buffer.argument.role in ("scalar", "parameter")
            pointer = np.uint64(device.data.ptr + buffer.guard)
            bound[buffer.argument.name] = buffer.array.reshape(-1)[0] if by_value else pointer
        codes = {code.name: code for code in program.kernels}
        for launch in entry_launches(entry, program.entries.index(entry), codes, sizes):
            kernels.launch(launch, bound)
        cupy.cuda.runtime.deviceSynchronize()
        for buffer, device in memory:
            buffer.raw[:] = device.get()

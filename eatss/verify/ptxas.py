"""What the CUDA compiler made of the kernels, and whether a card can launch them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from math import prod
from pathlib import Path

from eatss.base.compilers import find_nvcc
from eatss.base.diagnostics import Diagnostic, InputError, Severity, input_error
from eatss.base.frozen import frozen
from eatss.base.targets import CUDA
from eatss.program import KernelCode, Program
from eatss.program.plan import stack_warnings

_REGISTER_UNIT = 256
"""Registers are given to a warp in units of this many (compute capability 3.0 to 12.1)."""


@frozen
class KernelResources:
    """What one kernel needs, as the compiler reports it.

    ``registers`` are those of a thread; the spill and stack sizes are bytes of a thread;
    ``static_shared_bytes`` are those of a block, without what is passed at launch.
    """

    kernel: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_shared_bytes: int


def compile_report(program: Program, *, nvcc: str | None = None) -> tuple[KernelResources, ...]:
    """Compile the kernels of a program for its card and read what they need.

    Args:
        program: The program.
        nvcc: The CUDA compiler, a command or a path; by default that of this machine.

    Returns:
        The resources of every kernel, in the order of ``program.kernels``.

    Raises:
        InputError: There is no such compiler (EATSS-V010), or it refuses the text (V041).
    """
    found = {resources.kernel: resources for resources in _parse(_compile(program, nvcc))}
    missing = [kernel.name for kernel in program.kernels if kernel.name not in found]
    if missing:
        several = f"kernel{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        raise input_error(
            "EATSS-V041",
            f"nvcc reports nothing of {several}: '{program.file}' and its launch "
            "plan do not belong together",
            hint="generate the program again",
        )
    return tuple(found[kernel.name] for kernel in program.kernels)


def check_launchable(
    program: Program,
    resources: Sequence[KernelResources],
    *,
    registers_per_block: int,
    threads_per_block: int,
    shared_bytes_per_block: int,
) -> tuple[Diagnostic, ...]:
    """Check that a block of every kernel fits an SM.

    Args:
        program: The program.
        resources: What its kernels need, as :func:`compile_report` returns it.
        registers_per_block: The card's limit.
        threads_per_block: The card's limit.
        shared_bytes_per_block: The card's limit after opting in.

    Returns:
        A warning for every kernel that spills registers, and for every one with much stack.

    Raises:
        InputError: With a finding for every limit a kernel exceeds (EATSS-V042).
    """
    errors: list[Diagnostic] = []
    warnings: list[Diagnostic] = []
    for needed in resources:
        kernel = program.kernel(needed.kernel)
        threads = prod(kernel.block)
        launched = kernel.shared_bytes if kernel.dynamic_shared else 0
        warps = registers_per_block // max(1, registers_of_block(needed.registers, CUDA.lanes))
        rows = (
            (
                f"{threads} threads of {needed.registers} registers take",
                registers_of_block(needed.registers, threads),
                registers_per_block,
                "registers",
                f"use a block of at most {warps * CUDA.lanes} threads",
            ),
            (
                "its block needs",
                needed.static_shared_bytes + launched,
                shared_bytes_per_block,
                "bytes of shared memory",
                "leave an array out of shared memory",
            ),
            ("its block has", threads, threads_per_block, "threads", "use a smaller block"),
        )
        errors += [
            Diagnostic(
                code="EATSS-V042",
                message=f"kernel '{kernel.name}' cannot be launched: {what} {amount} {unit}, and a "
                f"block may have {limit}",
                hint=f"{hint}, or smaller tiles{_tiles(kernel)}",
            )
            for what, amount, limit, unit, hint in rows
            if amount > limit
        ]
        stored, loaded = needed.spill_store_bytes, needed.spill_load_bytes
        if stored or loaded:
            warnings.append(
                Diagnostic(
                    code="EATSS-V045",
                    severity=Severity.WARNING,
                    message=f"kernel '{needed.kernel}' spills registers: {stored} bytes stored and "
                    f"{loaded} loaded by a thread, at {needed.registers} registers",
                    hint="use smaller tiles, or more threads for the same tile",
                )
            )
        warnings.extend(stack_warnings([(needed.kernel, needed.stack_bytes)]))
    if errors:
        raise InputError(*errors)
    return tuple(warnings)


def _tiles(kernel: KernelCode) -> str:
    tiles = ", ".join(f"{loop}={size}" for loop, size in kernel.tile_sizes)
    return f", now {tiles}" if tiles else ""


def registers_of_block(registers: int, threads: int) -> int:
    """Return the registers a block takes: whole warps, each rounded up to the unit."""
    warps = -(-threads // CUDA.lanes)
    of_warp = -(-registers * CUDA.lanes // _REGISTER_UNIT) * _REGISTER_UNIT
    return warps * of_warp


# -- the compiler ------------------------------------------------------------------------


def _compile(program: Program, nvcc: str | None) -> str:
    """Return what the compiler says when it compiles the kernels."""
    command = find_nvcc(nvcc).path
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.cu").write_text(program.text, encoding="utf-8")
        arguments = ["-O3", f"-arch=sm_{program.compute_capability}", "-Xptxas", "-v"]
        arguments += program.flags
        done = subprocess.run(  # noqa: S603
            [command, *arguments, "-cubin", "-o", "kernels.cubin", "kernels.cu"],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    output = done.stdout + done.stderr
    if done.returncode != 0:
        raise _refusal(program, command, output)
    return output


def _refusal(program: Program, nvcc: str, output: str) -> InputError:
    """Return the error for a compilation that failed."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in said if re.search(r"\b(error|fatal)\b", line)] or said
    told = "; ".join(errors[:3]) or "no message"
    return input_error(
        "EATSS-V041",
        f"'{nvcc}' does not compile '{program.file}' for sm_{program.compute_capability}: {told}",
        hint="the compiler has to know the card (nvcc --list-gpu-arch) and every option given",
    )


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


def _parse(output: str) -> list[KernelResources]:
    """Read the report of ``ptxas -v``."""
    found = []
    name: str | None = None
    stack = stores = loads = 0
    for line in output.splitlines():
        if match := _ENTRY.search(line):
            name, stack, stores, loads = plain_name(match[1]), 0, 0, 0
        elif match := _STACK.search(line):
            stack, stores, loads = (int(number) for number in match.groups())
        elif (match := _USED.search(line)) and name is not None:
            shared = _SHARED.search(match[2])
            found.append(
                KernelResources(
                    kernel=name,
                    registers=int(match[1]),
                    spill_store_bytes=stores,
                    spill_load_bytes=loads,
                    stack_bytes=stack,
                    static_shared_bytes=sum(int(n or 0) for n in shared.groups()) if shared else 0,
                )
            )
            name = None
    return found


def plain_name(symbol: str) -> str:
    """Return the name of a function as written: ``_Z3addPd`` is ``add``."""
    match = re.match(r"_Z(\d+)", symbol)
    return symbol[match.end() :][: int(match[1])] if match else symbol

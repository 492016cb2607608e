"""A program loaded from machine code: kernels that CuPy launches, or its compiled launchers."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eatss.measurement.card import LaunchError
from eatss.measurement.launches import ResolvedLaunch
from eatss.measurement.measurement import KernelResources
from eatss.program import Argument, KernelCode, Program
from eatss.program.expression import Sizes
from eatss.verify.data import as_parameter, dtype_of


class Kernels:
    """Kernels on the current card."""

    def __init__(self, cupy: Any, program: Program, path: Path) -> None:
        """Load a cubin.

        Raises:
            LaunchError: the card cannot run a block of one of them.
        """
        self._index = np.int32 if program.index_bits == 32 else np.int64
        module = cupy.RawModule(path=str(path))
        self._by_name = {code.name: _loaded(module, code) for code in program.kernels}
        self._cupy = cupy
        self._codes = program.kernels

    def launch(self, launch: ResolvedLaunch, bound: Mapping[str, Any]) -> None:
        """Launch a kernel on the current stream.

        Args:
            launch: what to launch.
            bound: arrays and scalars of the launch's entry by name, as CuPy passes them.
        """
        integers = dict(launch.integers)
        passed = tuple(
            self._index(integers[name]) if name in integers else bound[name]
            for name in launch.arguments
        )
        kernel = self._by_name[launch.kernel]
        kernel(launch.grid, launch.block, passed, shared_mem=launch.shared_bytes)

    def resources(self) -> tuple[KernelResources, ...]:
        """Return what each kernel takes of the card."""
        return tuple(map(self._resources, self._codes))

    def _resources(self, code: KernelCode) -> KernelResources:
        kernel = self._by_name[code.name]
        threads = code.block[0] * code.block[1] * code.block[2]
        dynamic = code.shared_bytes if code.dynamic_shared else 0
        return KernelResources(
            kernel=code.name,
            registers=int(kernel.num_regs),
            local_bytes=int(kernel.local_size_bytes),
            shared_bytes=int(kernel.shared_size_bytes) + dynamic,
            threads=threads,
            occupancy=_occupancy(self._cupy, kernel, threads, dynamic),
        )


def _occupancy(cupy: Any, kernel: Any, threads: int, dynamic: int) -> float | None:
    """Return the share of an SM's threads that blocks keep busy; ``None`` if it is not told."""
    try:
        driver = cupy.cuda.driver
        blocks = driver.occupancyMaxActiveBlocksPerMultiprocessor(
            kernel.kernel.ptr, threads, dynamic
        )
        most = cupy.cuda.Device().attributes["MaxThreadsPerMultiProcessor"]
    except (AttributeError, KeyError, RuntimeError):  # of an older CuPy, or the driver's
        return None
    return float(blocks * threads / most)


def _loaded(module: Any, code: KernelCode) -> Any:
    kernel = module.get_function(code.name)
    threads = code.block[0] * code.block[1] * code.block[2]
    if threads > kernel.max_threads_per_block:
        raise LaunchError(
            f"kernel {code.name} takes {kernel.num_regs} registers a thread: on this card its "
            f"blocks may have {kernel.max_threads_per_block} threads, not {threads}"
        )
    if code.dynamic_shared:
        kernel.max_dynamic_shared_size_bytes = code.shared_bytes
    return kernel


class HostCode:
    """A shared library with the launchers of a program, on the current card."""

    def __init__(self, program: Program, path: Path) -> None:
        """Load what :func:`eatss.measurement.compile.compile_host_code` made.

        Raises:
            LaunchError: it does not load.
        """
        self._program = program
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise LaunchError(f"the host code of {program.name} does not load: {error}") from None

    def run(self, bound: Sequence[Mapping[str, Any]], sizes: Sizes, stream: int) -> None:
        """Enqueue one run: every entry in order.

        Args:
            bound: arrays and scalars of each entry by name.
            sizes: values of the program's parameters.
            stream: address of the stream.

        Raises:
            LaunchError: a launcher refuses.
        """
        for entry, values in zip(self._program.entries, bound, strict=True):
            passed = [_passed(argument, values, sizes) for argument in entry.arguments]
            code = int(getattr(self._library, entry.launcher)(*passed, ctypes.c_void_p(stream)))
            if code < 0:
                message = entry.assumptions[-code - 1].message
                raise LaunchError(f"the launcher refuses these sizes: {message}")
            if code:
                raise LaunchError(f"{entry.launcher} returned CUDA error {code}", lost=True)


def _passed(argument: Argument, values: Mapping[str, Any], sizes: Sizes) -> Any:
    if argument.role in ("array", "cell"):
        return ctypes.c_void_p(values[argument.name].data.ptr)
    if argument.role == "parameter":
        return as_parameter(dtype_of(argument).type(sizes[argument.name]))
    return as_parameter(values[argument.name])

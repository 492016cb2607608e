"""The kernels of a program, loaded from machine code and launched with CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eatss.measurement.card import LaunchError
from eatss.measurement.launches import ResolvedLaunch
from eatss.measurement.measurement import KernelResources
from eatss.program import KernelCode, Program


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

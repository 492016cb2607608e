"""NumPy dressed up as CuPy: streams that do everything at once, graphs, and kernels in Python."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

KernelBody = Callable[..., None]


class CudaError(RuntimeError):
    """An error of CUDA, as CuPy raises it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class FakeStream:
    """A stream; while it captures, launches are kept instead of done."""

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def __enter__(self) -> FakeStream:
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    def begin_capture(self) -> None:
        self._cupy.captured = []

    def end_capture(self) -> FakeGraph:
        graph = FakeGraph(self._cupy, self._cupy.captured or [])
        self._cupy.captured = None
        return graph

    def synchronize(self) -> None:
        pass


class FakeGraph:
    def __init__(self, cupy: FakeCupy, launches: list[Callable[[], None]]) -> None:
        self._cupy = cupy
        self.launches = launches

    def upload(self, stream: FakeStream) -> None:
        pass

    def launch(self, stream: FakeStream) -> None:
        self._cupy.graph_launches.append(len(self.launches))
        for launch in self.launches:
            launch()


class FakeEvent:
    """An event; its time is that of the fake clock, which launches move on."""

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy
        self.time_s: float | None = None

    def record(self, stream: FakeStream) -> None:
        self.time_s = self._cupy.clock_s

    def synchronize(self) -> None:
        assert self.time_s is not None


class FakeKernel:
    max_threads_per_block = 1024
    num_regs = 32
    local_size_bytes = 0
    shared_size_bytes = 0
    max_dynamic_shared_size_bytes = 49152

    def __init__(self, cupy: FakeCupy, name: str) -> None:
        self._cupy = cupy
        self._name = name

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        *,
        shared_mem: int,
    ) -> None:
        def launch() -> None:
            self._cupy.clock_s += self._cupy.launch_s
            self._cupy.launched.append(self._name)
            self._cupy.bodies[self._name](*args)

        if self._cupy.captured is None:
            launch()
        else:
            self._cupy.captured.append(launch)


class FakeCupy:
    """Stands in for the module; ``bodies`` are kernels by name, called with their arguments."""

    def __init__(self, bodies: dict[str, KernelBody], launch_s: float = 1e-3) -> None:
        self.bodies = bodies
        self.launch_s = launch_s
        self.clock_s = 0.0
        self.copy_s = 0.0
        self.launched: list[str] = []
        self.graph_launches: list[int] = []
        self.captured: list[Callable[[], None]] | None = None
        self.kernels: dict[str, FakeKernel] = {}
        self.memory_bytes = 10**12
        self.cuda = SimpleNamespace(
            Event=lambda: FakeEvent(self),
            Stream=lambda **_: FakeStream(self),
            get_elapsed_time=lambda start, end: 1e3 * (end.time_s - start.time_s),
            runtime=SimpleNamespace(memGetInfo=lambda: (self.memory_bytes, 10**12)),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        if int(np.prod(shape)) * dtype.itemsize > self.memory_bytes:
            raise MemoryError("out of memory")
        return np.empty(shape, dtype)

    def copyto(self, into: Any, source: Any) -> None:
        def copy() -> None:
            self.clock_s += self.copy_s
            np.copyto(into, source)

        if self.captured is None:
            copy()
        else:
            self.captured.append(copy)

    def RawModule(self, *, path: str) -> Any:
        def get_function(name: str) -> FakeKernel:
            return self.kernels.setdefault(name, FakeKernel(self, name))

        return SimpleNamespace(get_function=get_function)

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(free_all_blocks=lambda: None)

"""CuPy without a card: memory of the host, streams that do all but clearing at once, and kernels.

A kernel gets what a card would read: the parameters at the addresses that a launch is given, copied
when it is enqueued or captured. Machine code is the CUDA text with NVRTC's options; it is compiled
by g++ against the header that ``eatss verify`` uses.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.verify.build import SHIM

_MOST_ARGUMENTS = 64
_HEAD = """#include <utility>
#define __constant__
#define __builtin_assume(condition) do if (!(condition)) __builtin_trap(); while (0)
"""
_CALLER = """
template <class... A> unsigned fake_packed(void (*)(A...), void **from, uint64_t *to) {
    unsigned count = 0;
    ((to[count] = 0, memcpy(&to[count], from[count], sizeof(A)), count++), ...);
    return count;
}
template <class... A, size_t... I>
void fake_called(const char *name, void (*kernel)(A...), dim3 grid, dim3 block, size_t bytes,
                 uint64_t *values, std::index_sequence<I...>) {
    eatss::launch_call(name, (const void *)kernel, grid, block, bytes,
                       [&] { kernel(*(A *)&values[I]...); });
}
template <class... A>
void fake_call(const char *name, void (*kernel)(A...), dim3 grid, dim3 block, size_t bytes,
               uint64_t *values) {
    fake_called(name, kernel, grid, block, bytes, values, std::index_sequence_for<A...>());
}
"""
_KERNEL = """
extern "C" unsigned fake_pack_{0}(void **from, uint64_t *to) {{
    return fake_packed({0}, from, to);
}}
extern "C" void fake_run_{0}(const unsigned *d, size_t bytes, uint64_t *values) {{
    fake_call("{0}", {0}, dim3(d[0], d[1], d[2]), dim3(d[3], d[4], d[5]), bytes, values);
}}
extern "C" int fake_allow_{0}(int bytes) {{
    return cudaFuncSetAttribute({0}, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}}
"""


class DriverError(RuntimeError):
    """Stands for ``CUDADriverError``."""


class RuntimeApiError(RuntimeError):
    """Stands for ``CUDARuntimeError``."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch as the card saw it: ``values`` are the parameters, eight bytes each."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: int
    device: int
    values: tuple[int, ...]


class FakeArray:
    """Stands for ``cupy.ndarray``; ``host`` is where the elements are."""

    def __init__(self, host: npt.NDArray[Any], device: int = 0) -> None:
        self.host = host
        self.shape = host.shape
        self.dtype = host.dtype
        self.flags = SimpleNamespace(c_contiguous=host.flags.c_contiguous)
        self.data = SimpleNamespace(ptr=host.ctypes.data, device_id=device)


@dataclass
class FakeStream:
    """A stream; ``with`` makes it the current one."""

    cupy: FakeCupy
    ptr: int
    before: list[FakeStream] = field(default_factory=list)
    pending: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> FakeStream:
        self.before.append(self.cupy.current_stream())
        self.cupy.here.stream = self
        return self

    def __exit__(self, *raised: object) -> None:
        self.cupy.here.stream = self.before.pop()

    def begin_capture(self, mode: int = 0) -> None:
        self.cupy.captures[self.ptr] = []

    def end_capture(self) -> FakeGraph:
        return FakeGraph(self.cupy, self.cupy.captures.pop(self.ptr))

    def record(self, event: FakeEvent) -> FakeEvent:
        event.record(self)
        return event

    def synchronize(self) -> None:
        self.cupy.log.append(("synchronized", self.ptr))
        while self.pending:
            self.pending.pop(0)()

    def wait_event(self, event: FakeEvent) -> None:
        self.cupy.log.append(("wait", self.ptr, event.recorded_on))


@dataclass
class FakeEvent:
    cupy: FakeCupy
    recorded_on: int | None = None

    def record(self, stream: FakeStream) -> None:
        self.recorded_on = stream.ptr

    def synchronize(self) -> None:
        self.cupy.log.append(("synchronized", self.recorded_on))


@dataclass
class FakeGraph:
    cupy: FakeCupy
    launches: list[tuple[Launched, Any]]

    def launch(self, stream: FakeStream) -> None:
        self.cupy.log.append(("graph", stream.ptr, len(self.launches)))
        for launched, run in self.launches:
            self.cupy.run(launched, run)


class FakeModule:
    """Machine code that is loaded."""

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def load(self, cubin: bytes) -> None:
        self.library = ctypes.CDLL(str(self._cupy.library(cubin)))
        self._cupy.loaded.append(cubin)

    def get_global_var(self, name: str) -> SimpleNamespace:
        try:
            return SimpleNamespace(ptr=ctypes.addressof(ctypes.c_int.in_dll(self.library, name)))
        except ValueError:
            raise DriverError("CUDA_ERROR_NOT_FOUND: named symbol not found") from None

    def get_function(self, name: str) -> SimpleNamespace:
        functions = self._cupy.functions
        functions.append((self.library, name))
        return SimpleNamespace(ptr=len(functions) - 1)


class FakeCupy(ModuleType):
    """Stands for the module; ``launched`` are all launches that ran, in their order.

    ``most_threads`` is what a kernel's registers allow, ``stack_bytes`` a thread's local memory,
    ``breaks`` what the next launch raises.
    ``log`` are graphs that were launched, streams that waited, events that were waited for.
    """

    ndarray = FakeArray
    __version__ = "0.fake"

    def __init__(self, folder: Path, devices: int = 2) -> None:
        super().__init__("cupy")
        self.folder = folder
        self.here = threading.local()
        self.devices = devices
        self.launched: list[Launched] = []
        self.log: list[tuple[Any, ...]] = []
        self.captures: dict[int, list[tuple[Launched, Any]]] = {}
        self.functions: list[tuple[ctypes.CDLL, str]] = []
        self.loaded: list[bytes] = []
        self.allocated: list[npt.NDArray[np.uint8]] = []
        self.attributes: list[tuple[int, int, int]] = []
        self.compiled: list[str] = []
        self.breaks: Exception | None = None
        self.most_threads = 1024
        self.stack_bytes = 0
        self._streams = 0x1000
        self._lock = threading.Lock()
        self.cuda = SimpleNamespace(
            Device=lambda number: _Device(self, number),
            Event=lambda disable_timing=False: FakeEvent(self),
            ExternalStream=lambda address: FakeStream(self, address),
            Stream=self._new_stream,
            alloc=self._alloc,
            get_current_stream=lambda device=None: self.current_stream(),
            nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
            function=SimpleNamespace(Module=lambda: FakeModule(self)),
            driver=SimpleNamespace(
                CUDADriverError=DriverError,
                launchKernel=self._launch_kernel,
                funcSetAttribute=self._set_attribute,
                funcGetAttribute=lambda which, function: {
                    0: self.most_threads,
                    3: self.stack_bytes,
                }[which],
            ),
            runtime=SimpleNamespace(
                CUDARuntimeError=RuntimeApiError,
                getDevice=self.device,
                setDevice=lambda number: setattr(self.here, "device", number),
                free=lambda address: setattr(self.here, "context", True),
                deviceSynchronize=lambda: self.log.append(("all done", self.device())),
                streamIsCapturing=lambda address: address in self.captures,
                memcpy=lambda to, source, count, kind: ctypes.memmove(to, source, count),
                runtimeGetVersion=lambda: 13000,
                getDeviceProperties=lambda number: {"name": b"Fake card"},
                pointerGetAttributes=lambda pointer: SimpleNamespace(device=0),
                getDeviceCount=lambda: self.devices,
            ),
        )

    def array(self, host: npt.NDArray[Any], device: int = 0) -> FakeArray:
        """Return an array on a card that holds these elements; they are not copied."""
        return FakeArray(host, device)

    def from_dlpack(self, value: Any) -> FakeArray:
        return FakeArray(value.host)

    asarray = from_dlpack

    def device(self) -> int:
        return int(getattr(self.here, "device", 0))

    def current_stream(self) -> FakeStream:
        return getattr(self.here, "stream", None) or FakeStream(self, 0)

    def compile_text(self, text: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
        """Stand for NVRTC: the machine code is what it is made of."""
        self.compiled.append(name)
        return json.dumps({"text": text, "options": options}).encode(), ""

    def library(self, cubin: bytes) -> Path:
        """Return the machine code for the CPU."""
        path = self.folder / f"{hashlib.sha256(cubin).hexdigest()[:24]}.so"
        with self._lock:
            if not path.exists():
                made = json.loads(cubin)
                _compile(made["text"], made["options"], path)
        return path

    def run(self, launched: Launched, run: Any) -> None:
        """Run a launch: now, or when the graph that it is in is launched."""
        with self._lock:
            self.launched.append(launched)
            run()

    def _new_stream(self, *, non_blocking: bool = False) -> FakeStream:
        self._streams += 0x10
        return FakeStream(self, self._streams)

    def _alloc(self, count: int) -> SimpleNamespace:
        memory = np.full(count, 0xFF, np.uint8)
        self.allocated.append(memory)

        def memset(value: int, size: int, stream: FakeStream) -> None:
            assert stream.ptr not in self.captures
            self.log.append(("set", stream.ptr, value))
            memory[:size].fill(value)

        return SimpleNamespace(
            ptr=memory.ctypes.data,
            memory=memory,
            memset_async=memset,
        )

    def _set_attribute(self, function: int, which: int, value: int) -> None:
        self.attributes.append((function, which, value))
        library, name = self.functions[function]
        assert getattr(library, f"fake_allow_{name}")(value) == 0

    def _launch_kernel(
        self,
        function: int,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared_bytes: int,
        stream: int,
        parameters: int,
        extra: int,
    ) -> None:
        if self.breaks is not None:
            error, self.breaks = self.breaks, None
            raise error
        if not getattr(self.here, "context", False):
            raise DriverError("CUDA_ERROR_INVALID_CONTEXT: invalid device context")
        library, name = self.functions[function]
        values = (ctypes.c_uint64 * _MOST_ARGUMENTS)()
        count = getattr(library, f"fake_pack_{name}")(ctypes.c_void_p(parameters), values)
        launched = Launched(
            name,
            (gx, gy, gz),
            (bx, by, bz),
            shared_bytes,
            stream,
            self.device(),
            tuple(values[:count]),
        )

        def run() -> None:
            extents = (ctypes.c_uint * 6)(gx, gy, gz, bx, by, bz)
            library.eatss_cpu_reset(0, 0)
            getattr(library, f"fake_run_{name}")(extents, ctypes.c_size_t(shared_bytes), values)
            library.eatss_cpu_error.restype = ctypes.c_char_p
            assert library.eatss_cpu_error() is None

        if stream in self.captures:
            self.captures[stream].append((launched, run))
        else:
            self.run(launched, run)


class _Device:
    def __init__(self, cupy: FakeCupy, number: int) -> None:
        self._cupy = cupy
        self._number = number
        self.compute_capability = "90"

    def __enter__(self) -> _Device:
        self._before = self._cupy.device()
        self._cupy.here.device = self._number
        return self

    def __exit__(self, *raised: object) -> None:
        self._cupy.here.device = self._before


def _compile(text: str, options: Sequence[str], path: Path) -> None:
    kernels = re.findall(r"__global__[^;{]*?(\w+)\s*\([^)]*\)\s*\{", text)
    callers = "".join(_KERNEL.format(name) for name in kernels)
    source = path.with_suffix(".cpp")
    source.write_text(f"{_HEAD}{text}\n{_CALLER}{callers}")
    command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-ffp-contract=off"]
    command += ["-D__CUDACC_RTC__", "-DEATSS_CPU"]
    command += ["-include", str(SHIM / "eatss_cpu.hpp")]
    defines = [one for one in options if one.startswith("-D")]
    beside = path.with_suffix(".making")
    subprocess.run([*command, *defines, str(source), "-o", str(beside)], check=True)
    beside.rename(path)

"""A program at some sizes as the launches of one call, every number known.

What changes from call to call, addresses and scalars, has a slot of eight bytes each; what a
launch takes is a list of addresses of slots, in the order of the kernel's parameters.

Streams of CUDA: the one that a call goes to.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from eatss.base.diagnostics import input_error, warn_caller
from eatss.measurement.arguments import MOST_LAUNCHES, ResolvedLaunch, launches, temporaries_of
from eatss.program import KernelCode, Program
from eatss.program.plan import stack_warnings
from eatss.session.jit.arrays import cupy_for
from eatss.session.jit.signature import CallSignature

MOST_LAUNCHES_OF_A_CALL = 1_000_000
"""A call keeps what each of its launches takes; a million are 400 MB."""

_SLOT = 8
_FORMATS = {
    "f8": "d",
    "f4": "f4x",
    "f2": "e6x",
    "i8": "q",
    "i4": "i4x",
    "i2": "h6x",
    "i1": "b7x",
    "u8": "Q",
    "u4": "I4x",
    "u2": "H6x",
    "u1": "B7x",
    "b1": "?7x",
}


def _format(dtype: np.dtype[Any]) -> str:
    """Return how ``struct`` calls a type, filled to a slot."""
    return _FORMATS[f"{dtype.kind}{dtype.itemsize}"]


def check_scalar(name: str, dtype: np.dtype[Any], value: Any) -> None:
    """Refuse a scalar that is no number of its type, on a card and on the CPU alike.

    Raises:
        InputError: ``EATSS-J011``.
    """
    try:
        struct.pack(_format(dtype), value)
    except (struct.error, TypeError, OverflowError):
        wanted = "a number" if dtype.kind == "f" else "a whole number"
        raise input_error(
            "EATSS-J011",
            f"the scalar '{name}' is {value!r}, and {wanted} that {dtype.name} holds is needed",
            hint="give a number of Python or NumPy; an element of an array on a card has to be "
            "fetched first",
        ) from None


def workspace_of(program: Program, sizes: Mapping[str, int]) -> tuple[tuple[int, bool], ...]:
    """Return what memory a call needs besides its arguments: bytes of each temporary array.

    The other entry says whether it has zeros before each call, and after it.
    """
    return tuple(
        (max(_SLOT, key.bytes), one.zeroed)
        for entry in program.entries
        for key, one in zip(temporaries_of(entry, sizes), entry.temporaries, strict=True)
    )


def resolved_launches(program: Program, sizes: Mapping[str, int]) -> tuple[ResolvedLaunch, ...]:
    """Return the launches of one call: all regions in order.

    Raises:
        InputError: ``EATSS-J012``, they are too many to keep.
    """
    found = tuple(islice(launches(program, sizes), MOST_LAUNCHES_OF_A_CALL + 1))
    if len(found) > MOST_LAUNCHES_OF_A_CALL:
        raise input_error(
            "EATSS-J012",
            f"a call of '{program.name}' would be more than {MOST_LAUNCHES_OF_A_CALL} launches",
            hint="call it several times, with fewer steps each",
        )
    return found


class Slots:
    """Memory of what launches take: one part changes from call to call, the other never.

    ``parameters[k]`` is the address of the list of addresses that launch ``k`` is given.
    """

    def __init__(
        self, program: Program, signature: CallSignature, launches: Sequence[ResolvedLaunch]
    ) -> None:
        # arrays and cells, then temporaries, then scalars
        names: list[object] = [one.name for one in signature.of_role("array", "cell")]
        names += [
            (number, temporary.name)
            for number, entry in enumerate(program.entries)
            for temporary in entry.temporaries
        ]
        self._scalars, self._addresses = signature.of_role("scalar"), len(names)
        self._format = f"={len(names)}Q" + "".join(_format(one.dtype) for one in self._scalars)
        names += [one.name for one in self._scalars]
        self.changing = ctypes.create_string_buffer(max(_SLOT, struct.calcsize(self._format)))
        base = ctypes.addressof(self.changing)
        slots = {name: base + _SLOT * place for place, name in enumerate(names)}
        values = dict.fromkeys(value for launch in launches for _, value in launch.integers)
        numbers = {value: place for place, value in enumerate(values)}
        index = np.dtype(np.int32 if program.index_bits == 32 else np.int64)
        self._numbers = np.zeros(max(1, len(numbers)), np.int64)
        for value, place in numbers.items():
            self._numbers[place : place + 1].view(index)[0] = value
        fixed = self._numbers.ctypes.data
        addresses: list[int] = []
        starts: list[int] = []
        by_entry = [{inner: outer for outer, inner in pairs} for pairs in signature.names]
        for launch in launches:
            starts.append(len(addresses))
            integers = dict(launch.integers)
            for name in launch.arguments:
                if name in integers:
                    addresses.append(fixed + _SLOT * numbers[integers[name]])
                elif (launch.entry, name) in slots:
                    addresses.append(slots[launch.entry, name])
                else:
                    addresses.append(slots[by_entry[launch.entry][name]])
        self._lists = np.array(addresses or [0], np.uint64)
        first = self._lists.ctypes.data
        self.parameters = tuple(first + _SLOT * start for start in starts)

    def fill(self, values: Sequence[Any]) -> None:
        """Put in what a call passes: addresses, then scalars, in the order of the slots.

        Raises:
            InputError: ``EATSS-J011``, a scalar is no number of its type.
        """
        try:
            struct.pack_into(self._format, self.changing, 0, *values)
        except (struct.error, TypeError, OverflowError):
            for one, value in zip(self._scalars, values[self._addresses :], strict=True):
                check_scalar(one.name, one.dtype, value)
            raise


KEYWORD = "stream"
"""The argument of a call that names its stream, where the program has none of that name."""


def stream_of_call(
    given: Any, values: Mapping[str, Any], arrays: Sequence[str], device: int
) -> int:
    """Return the address of the stream of a call.

    Args:
        given: what the caller names; ``None`` for the current one.
        values: the arguments.
        arrays: the names of those that are arrays.
        device: the card.

    Raises:
        InputError: ``EATSS-J019`` the libraries of the arrays have different current streams,
            ``EATSS-J011`` what is given is no stream.
    """
    if given is not None:
        return stream_address(given)
    torch, cupy = sys.modules.get("torch"), cupy_for(arrays[0])
    own: int = cupy.cuda.get_current_stream(device).ptr
    if torch is None:
        return own
    theirs = [isinstance(values[name], torch.Tensor) for name in arrays]
    if not any(theirs):
        return own
    address = _torch_stream(torch, device)
    if address != own and not all(theirs):
        raise input_error(
            "EATSS-J019",
            "the arrays are of PyTorch and of another library, whose current streams differ",
            hint="say which one it is: stream=torch.cuda.current_stream()",
        )
    return address


def stream_address(stream: Any) -> int:
    """Return the address of a stream of CuPy, PyTorch or CUDA.

    Raises:
        InputError: ``EATSS-J011``, it is none.
    """
    for name in ("ptr", "cuda_stream"):
        found = getattr(stream, name, None)
        if found is not None:
            return int(found)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    raise input_error(
        "EATSS-J011",
        f"stream is {type(stream).__name__}, which is no stream",
        hint="give a stream of CuPy or PyTorch, or its address",
    )


class _Address:
    """A stream by its address, as CUDA's protocol for streams wants it."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


def stream_at(cupy: Any, address: int) -> Any:
    """Return CuPy's stream of an address; CuPy 13 has another word for it."""
    made = getattr(cupy.cuda.Stream, "from_external", None)
    return cupy.cuda.ExternalStream(address) if made is None else made(_Address(address))


def _torch_stream(torch: Any, device: int) -> int:
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if quick is not None:
        return int(quick(device))
    return int(torch.cuda.current_stream(device).cuda_stream)


GRAPH_FROM = 8
"""Calls of fewer launches are not replayed as graphs: it would save less than a call takes."""

_MOST_GRAPHS = 8
"""Graphs kept at a time for one program at some sizes: sets of arguments that come back."""

_PER_THREAD = 2
"""``cudaStreamPerThread``: another stream in each thread."""

_MOST_THREADS, _LOCAL_BYTES, _DYNAMIC_SHARED = 0, 3, 8
"""``CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK``, ``_LOCAL_SIZE_BYTES``,
``_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""

_RELAXED = 2
"""``cudaStreamCaptureModeRelaxed``: other threads may go on as they like."""


class CardPlan:
    """A program at some sizes on a card.

    Args:
        cupy: the module.
        program: what is called.
        signature: what its callers pass.
        sizes: the sizes of the problem.
        cubin: its machine code.
        device: number of the card, which has to be the current one.

    Raises:
        InputError: ``EATSS-J016``, the card cannot run it.

    Warns:
        EatssWarning: ``EATSS-V047``, threads have much stack.
    """

    def __init__(
        self,
        cupy: Any,
        program: Program,
        signature: CallSignature,
        sizes: Mapping[str, int],
        cubin: bytes,
        device: int,
    ) -> None:
        self._cupy = cupy
        self._driver = cupy.cuda.driver
        self._runtime = cupy.cuda.runtime
        self.device = device
        self.program = program
        self._module = cupy.cuda.function.Module()
        self._module.load(cubin)
        kernels = {code.name: self._function(code) for code in program.kernels}
        attribute = self._driver.funcGetAttribute
        stacks = ((name, int(attribute(_LOCAL_BYTES, one.ptr))) for name, one in kernels.items())
        warn_caller(stack_warnings(stacks))
        launches = resolved_launches(program, sizes)
        self._slots = Slots(program, signature, launches)
        self._launches = [
            ((kernels[one.kernel].ptr, *one.grid, *one.block, one.shared_bytes), parameters)
            for one, parameters in zip(launches, self._slots.parameters, strict=True)
        ]
        self._functions = tuple(kernels.values())
        self._workspace = workspace_of(program, sizes)
        self._workspaces: dict[tuple[int, int], _Memory] = {}
        self._spare: list[_Memory] = []
        self._kept: list[_Memory] = []
        self._launched = False
        self._replays = GRAPH_FROM <= len(launches) <= MOST_LAUNCHES
        self._graphs: OrderedDict[bytes, _Graph | None] = OrderedDict()
        self._streams: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._ready = threading.local()

    @property
    def launches(self) -> int:
        """Launches of one call."""
        return len(self._launches)

    @property
    def graphs(self) -> int:
        """Graphs that are kept for calls to come."""
        with self._lock:
            return sum(graph is not None for graph in self._graphs.values())

    def reserve(self) -> None:
        """Do for this thread what a call may not do that is captured: make a context, allocate."""
        with self._lock, self._cupy.cuda.Device(self.device):
            self._runtime.setDevice(self.device)
            self._runtime.free(0)
            self._ready.context = True
            if self._workspace and not self._spare:
                self._spare.append(self._allocated())

    def launch(self, pointers: Sequence[int], scalars: Sequence[Any], stream: int) -> None:
        """Enqueue one call on a stream.

        Args:
            pointers: addresses of arrays and cells, in the order of the signature.
            scalars: numbers, likewise.
            stream: address of the stream, 0 for the default one.

        Raises:
            InputError: ``EATSS-J011`` a scalar is none, ``EATSS-J016`` the card refuses.
        """
        if self._runtime.getDevice() != self.device or not hasattr(self._ready, "context"):
            with self._cupy.cuda.Device(self.device):
                self._runtime.setDevice(self.device)
                if not self._capturing(stream):
                    self._runtime.free(0)  # gives a thread that CUDA does not know its context
                    self._ready.context = True
                self._enqueue(pointers, scalars, stream)
        else:
            self._enqueue(pointers, scalars, stream)

    def __del__(self) -> None:
        """Wait until the card is done with all calls: their machine code and memory go now."""
        if getattr(self, "_launched", False):
            with suppress(Exception), self._cupy.cuda.Device(self.device):
                self._runtime.deviceSynchronize()

    # -----------------------------------------------------------------------------------------

    def _enqueue(self, pointers: Sequence[int], scalars: Sequence[Any], stream: int) -> None:
        try:
            with self._lock:
                self._launched = True
                if not self._replays and not self._workspace:
                    self._slots.fill((*pointers, *scalars))
                    self._launch_all(stream)
                else:
                    self._replayed(pointers, scalars, stream)
        except (
            self._driver.CUDADriverError,
            self._runtime.CUDARuntimeError,
            MemoryError,
        ) as error:
            raise input_error(
                "EATSS-J016",
                f"'{self.program.name}' does not run on this card: {str(error).splitlines()[0]}",
                hint="other errors of kernels before it show here, too: see what ran before; "
                "'eatss doctor' says what this machine has",
            ) from None

    def _capturing(self, stream: int) -> bool:
        """Tell whether the caller captures a graph on a stream; the default one cannot."""
        return bool(self._runtime.streamIsCapturing(stream)) if stream else False

    def _launch_all(self, stream: int) -> None:
        launch = self._driver.launchKernel
        for head, parameters in self._launches:
            launch(*head, stream, parameters, 0)

    def _replayed(self, pointers: Sequence[int], scalars: Sequence[Any], stream: int) -> None:
        capturing = self._capturing(stream)
        graph = None
        if self._replays and not capturing:
            graph = self._graph(pointers, scalars)
        if graph is not None:
            graph.replay(self._stream(stream))
            return
        memory = self._memory(stream, capturing=capturing)
        self._slots.fill((*pointers, *memory.addresses, *scalars))
        self._launch_all(stream)
        if memory.addresses and not capturing:
            memory.used(self._stream(stream))

    def _graph(self, pointers: Sequence[int], scalars: Sequence[Any]) -> _Graph | None:
        """Return the graph of a call; ``None`` the first time, as most never come back."""
        self._slots.fill((*pointers, *[0] * len(self._workspace), *scalars))
        key = bytes(self._slots.changing)
        graph = self._graphs.get(key)
        if graph is None:
            if key in self._graphs:
                graph = self._captured(pointers, scalars)
            self._graphs[key] = graph
            if len(self._graphs) > _MOST_GRAPHS:
                _, oldest = self._graphs.popitem(last=False)
                if oldest is not None:
                    oldest.memory.wait()
        self._graphs.move_to_end(key)
        return graph

    def _captured(self, pointers: Sequence[int], scalars: Sequence[Any]) -> _Graph:
        """Capture a call on a stream of its own; nothing runs."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        memory = self._allocated()
        self._slots.fill((*pointers, *memory.addresses, *scalars))
        stream.begin_capture(_RELAXED)
        try:
            self._launch_all(stream.ptr)
        finally:
            graph = stream.end_capture()
        return _Graph(graph, memory)

    def _memory(self, stream: int, *, capturing: bool) -> _Memory:
        """Return the temporary arrays of a call on a stream.

        Calls on one stream follow one another, so that they share them; a graph that the caller
        captures is replayed on any stream, and gets memory that lasts as long as this plan.
        """
        if capturing:
            self._kept.append(self._spare.pop() if self._spare else self._allocated())
            return self._kept[-1]
        thread = threading.get_ident() if stream == _PER_THREAD else 0
        place = (stream, thread)
        if place not in self._workspaces:
            self._workspaces[place] = self._allocated()
        return self._workspaces[place]

    def _allocated(self) -> _Memory:
        blocks = tuple(self._cupy.cuda.alloc(count) for count, _ in self._workspace)
        if any(zeroed for _, zeroed in self._workspace):
            # CuPy gives away what the current stream may still be working on
            stream = self._cupy.cuda.get_current_stream()
            if self._capturing(stream.ptr):
                stream = self._cupy.cuda.Stream(non_blocking=True)
            for block, (count, zeroed) in zip(blocks, self._workspace, strict=True):
                if zeroed:
                    block.memset_async(0, count, stream)
            stream.synchronize()
        return _Memory(blocks, self._cupy.cuda.Event(disable_timing=True))

    def _stream(self, stream: int) -> Any:
        if stream not in self._streams:
            self._streams[stream] = stream_at(self._cupy, stream)
        return self._streams[stream]

    def _function(self, code: KernelCode) -> Any:
        function = self._module.get_function(code.name)
        if code.dynamic_shared:
            self._driver.funcSetAttribute(function.ptr, _DYNAMIC_SHARED, code.shared_bytes)
        most = self._driver.funcGetAttribute(_MOST_THREADS, function.ptr)
        threads = prod(code.block)
        if threads > most:
            raise input_error(
                "EATSS-J016",
                f"kernel {code.name} has blocks of {threads} threads, and with its registers this "
                f"card takes {most}",
                hint="give a smaller block, block=(8, 32)",
            )
        return function


class _Memory:
    """Device memory that calls work in, and an event after the last of them."""

    def __init__(self, blocks: tuple[Any, ...], event: Any) -> None:
        self._blocks = blocks
        self._event = event
        self.addresses = tuple(int(block.ptr) for block in blocks)

    def used(self, stream: Any) -> None:
        """Note that a call that uses it was enqueued."""
        self._event.record(stream)

    def wait(self) -> None:
        """Wait until no call uses it."""
        self._event.synchronize()


class _Graph:
    """A captured call, with the memory it works in."""

    def __init__(self, graph: Any, memory: _Memory) -> None:
        self._graph = graph
        self.memory = memory

    def replay(self, stream: Any) -> None:
        """Enqueue it on a stream."""
        self._graph.launch(stream)
        self.memory.used(stream)

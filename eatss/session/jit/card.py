"""A program at some sizes on a card, as the launches of one call, every number known.

What changes from call to call, addresses and scalars, has a slot of eight bytes each; what a
launch takes is a list of addresses of slots, in the order of the kernel's parameters.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np

from eatss.base.diagnostics import input_error, warn_caller
from eatss.base.frozen import Numbers
from eatss.measurement.arguments import ResolvedLaunch, launches, temporaries_of
from eatss.program import KernelCode, Program
from eatss.program.expression import Sizes
from eatss.program.plan import GRAPH_FROM, MOST_GRAPHS, MOST_LAUNCHES, stack_warnings
from eatss.session.jit.arrays import Values, cupy_for
from eatss.session.jit.signature import KEYWORD, CallSignature

_SLOT = 8


def _format(dtype: np.dtype[Any]) -> str:
    """Return how ``struct`` calls a type, filled to a slot."""
    return f"{dtype.char}{_SLOT - dtype.itemsize}x"


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


class Slots:
    """Memory of what launches take: addresses and scalars, which calls pass, then fixed integers.

    ``parameters[k]`` is the address of the list of addresses that launch ``k`` is given.
    """

    def __init__(
        self, program: Program, signature: CallSignature, launches: Sequence[ResolvedLaunch]
    ) -> None:
        self._scalars = signature.scalars
        addresses: list[object] = [*signature.arrays]
        for number, entry in enumerate(program.entries):
            addresses += [(number, temporary.name) for temporary in entry.temporaries]
        integers = {value for launch in launches for _, value in launch.integers}
        keys = (*addresses, *self._scalars, *integers)
        scalars = "".join(_format(one.dtype) for one in self._scalars.values())
        self._format = f"@{len(addresses)}Q{scalars}"
        self.changing = ctypes.create_string_buffer(_SLOT * max(1, len(keys)))
        index = _format(np.dtype(np.int32 if program.index_bits == 32 else np.int64))
        fixed = _SLOT * (len(keys) - len(integers))
        struct.pack_into(f"@{index * len(integers)}", self.changing, fixed, *integers)
        first = ctypes.addressof(self.changing)
        slots = {key: first + _SLOT * place for place, key in enumerate(keys)}
        for number, pairs in enumerate(signature.names):
            slots |= {(number, inner): slots[outer] for outer, inner in pairs if outer in slots}
        lists: list[int] = []
        starts = []
        for launch in launches:
            starts.append(len(lists))
            known = dict(launch.integers)
            lists += (slots[known.get(name, (launch.entry, name))] for name in launch.arguments)
        self._lists = np.array([*lists, 0], np.uint64)
        self.parameters = [self._lists.ctypes.data + _SLOT * start for start in starts]

    def fill(self, values: tuple[Any, ...]) -> None:
        """Put in what a call passes: addresses, then scalars, in the order of the slots.

        Raises:
            InputError: ``EATSS-J011``, a scalar is no number of its type.
        """
        try:
            struct.pack_into(self._format, self.changing, 0, *values)
        except (struct.error, TypeError, OverflowError):
            scalars = values[len(values) - len(self._scalars) :]
            for one, value in zip(self._scalars.values(), scalars, strict=True):
                check_scalar(one.name, one.dtype, value)
            raise


def stream_of_call(values: Values, signature: CallSignature, device: int) -> int:
    """Return the address of the stream of a call: the one that it names, or the current one.

    Args:
        values: the arguments.
        signature: what they are.
        device: the card.

    Raises:
        InputError: ``EATSS-J006`` the libraries of the arrays have different current streams,
            ``EATSS-J011`` what is given is no stream.
    """
    given = None if KEYWORD in signature.known else values.get(KEYWORD)
    if given is not None:
        return _address_of(given)
    torch: Any
    torch, cupy = sys.modules.get("torch"), cupy_for(next(iter(signature.arrays)))
    own: int = cupy.cuda.get_current_stream(device).ptr
    arrays = () if torch is None else signature.arrays
    theirs = [isinstance(values[name], torch.Tensor) for name in arrays]
    if not any(theirs):
        return own
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    address = int(quick(device) if quick else torch.cuda.current_stream(device).cuda_stream)
    if address != own and not all(theirs):
        raise input_error(
            "EATSS-J006",
            "the arrays are of PyTorch and of another library, whose current streams differ",
            hint="say which one it is: stream=torch.cuda.current_stream()",
        )
    return address


def _address_of(stream: Any) -> int:
    """Return the address of a stream of CuPy, PyTorch or CUDA.

    Raises:
        InputError: ``EATSS-J011``, it is none.
    """
    for name in ("ptr", "cuda_stream"):
        stream = getattr(stream, name, stream)
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
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


_PER_THREAD = 2
"""``cudaStreamPerThread``: another stream in each thread."""

_MOST_THREADS, _LOCAL_BYTES, _DYNAMIC_SHARED = 0, 3, 8
"""``CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK``, ``_LOCAL_SIZE_BYTES``,
``_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""

_RELAXED = 2
"""``cudaStreamCaptureModeRelaxed``: other threads may go on as they like."""


class _Memory(NamedTuple):
    """Device memory that calls work in, and an event after the last of them."""

    blocks: tuple[Any, ...]
    addresses: Numbers
    used: Any


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
        InputError: ``EATSS-J015``, the card cannot run it.

    Warns:
        EatssWarning: ``EATSS-V047``, threads have much stack.
    """

    def __init__(
        self,
        cupy: Any,
        program: Program,
        signature: CallSignature,
        sizes: Sizes,
        cubin: bytes,
        device: int,
    ) -> None:
        self._cupy = cupy
        self._driver, self._runtime = cupy.cuda.driver, cupy.cuda.runtime
        self.device = device
        self.program = program
        self._module = cupy.cuda.function.Module()
        self._module.load(cubin)
        kernels = {code.name: self._function(code) for code in program.kernels}
        attribute = self._driver.funcGetAttribute
        stacks = ((name, int(attribute(_LOCAL_BYTES, one.ptr))) for name, one in kernels.items())
        warn_caller(stack_warnings(stacks))
        resolved = tuple(launches(program, sizes))
        self._slots = Slots(program, signature, resolved)
        self._launches = [
            ((kernels[one.kernel].ptr, *one.grid, *one.block, one.shared_bytes), parameters)
            for one, parameters in zip(resolved, self._slots.parameters, strict=True)
        ]
        self._functions = tuple(kernels.values())
        self._workspace = [
            (max(_SLOT, key.bytes), one.zeroed)
            for entry in program.entries
            for key, one in zip(temporaries_of(entry, sizes), entry.temporaries, strict=True)
        ]
        self._workspaces: dict[tuple[int, int], _Memory] = {}
        self._spare: list[_Memory] = []
        self._kept: list[_Memory] = []
        self._launched = False
        self._replays = GRAPH_FROM <= len(resolved) <= MOST_LAUNCHES
        self._graphs: OrderedDict[bytes, tuple[Any, _Memory] | None] = OrderedDict()
        self._streams: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._ready = threading.local()

    @property
    def graphs(self) -> int:
        """Graphs that are kept for calls to come."""
        with self._lock:
            return sum(graph is not None for graph in self._graphs.values())

    def reserve(self) -> None:
        """Do for this thread what a call may not do that is captured: make a context, allocate."""
        with self._lock, self._cupy.cuda.Device(self.device):
            self._make_context()
            if self._workspace and not self._spare:
                self._spare.append(self._allocated())

    def launch(self, pointers: Sequence[int], scalars: Sequence[Any], stream: int) -> None:
        """Enqueue one call on a stream.

        Args:
            pointers: addresses of arrays and cells, in the order of the signature.
            scalars: numbers, likewise.
            stream: address of the stream, 0 for the default one.

        Raises:
            InputError: ``EATSS-J011`` a scalar is none, ``EATSS-J015`` the card refuses.
        """
        if self._runtime.getDevice() != self.device or not hasattr(self._ready, "context"):
            with self._cupy.cuda.Device(self.device):
                self._runtime.setDevice(self.device)
                if not self._capturing(stream):
                    self._make_context()
                self._enqueue(pointers, scalars, stream)
        else:
            self._enqueue(pointers, scalars, stream)

    def __del__(self) -> None:
        """Wait until the card is done with all calls: their machine code and memory go now."""
        if getattr(self, "_launched", False):
            with suppress(Exception), self._cupy.cuda.Device(self.device):
                self._runtime.deviceSynchronize()

    def _make_context(self) -> None:
        """Give a thread that CUDA does not know its context."""
        self._runtime.setDevice(self.device)
        self._runtime.free(0)
        self._ready.context = True

    def _capturing(self, stream: int) -> bool:
        """Tell whether the caller captures a graph on a stream; the default one cannot."""
        return bool(self._runtime.streamIsCapturing(stream)) if stream else False

    def _enqueue(self, pointers: Sequence[int], scalars: Sequence[Any], stream: int) -> None:
        try:
            with self._lock:
                self._launched = True
                if self._replays or self._workspace:
                    self._replay(pointers, scalars, stream)
                else:
                    self._slots.fill((*pointers, *scalars))
                    self._launch_all(stream)
        except (
            self._driver.CUDADriverError,
            self._runtime.CUDARuntimeError,
            MemoryError,
        ) as error:
            raise input_error(
                "EATSS-J015",
                f"'{self.program.name}' does not run on this card: {str(error).splitlines()[0]}",
                hint="other errors of kernels before it show here, too: see what ran before; "
                "'eatss doctor' says what this machine has",
            ) from None

    def _launch_all(self, stream: int) -> None:
        launch = self._driver.launchKernel
        for head, parameters in self._launches:
            launch(*head, stream, parameters, 0)

    def _replay(self, pointers: Sequence[int], scalars: Sequence[Any], stream: int) -> None:
        """Launch the graph of a call, or all its launches, with memory to work in."""
        capturing = self._capturing(stream)
        found = None if capturing or not self._replays else self._graph(pointers, scalars)
        if found is not None:
            graph, memory = found
            graph.launch(self._stream(stream))
        else:
            memory = self._memory(stream, capturing=capturing)
            self._slots.fill((*pointers, *memory.addresses, *scalars))
            self._launch_all(stream)
        if not capturing and (found is not None or memory.addresses):
            memory.used.record(self._stream(stream))

    def _graph(self, pointers: Sequence[int], scalars: Sequence[Any]) -> tuple[Any, _Memory] | None:
        """Return the graph of a call; ``None`` the first time, as most never come back."""
        self._slots.fill((*pointers, *[0] * len(self._workspace), *scalars))
        key = bytes(self._slots.changing)
        if self._graphs.get(key) is None:
            self._graphs[key] = self._captured(pointers, scalars) if key in self._graphs else None
            if len(self._graphs) > MOST_GRAPHS:
                _, oldest = self._graphs.popitem(last=False)
                if oldest is not None:
                    oldest[1].used.synchronize()
        self._graphs.move_to_end(key)
        return self._graphs[key]

    def _captured(self, pointers: Sequence[int], scalars: Sequence[Any]) -> tuple[Any, _Memory]:
        """Capture a call on a stream of its own; nothing runs."""
        stream, memory = self._cupy.cuda.Stream(non_blocking=True), self._allocated()
        self._slots.fill((*pointers, *memory.addresses, *scalars))
        stream.begin_capture(_RELAXED)
        try:
            self._launch_all(stream.ptr)
        finally:
            graph = stream.end_capture()
        return graph, memory

    def _memory(self, stream: int, *, capturing: bool) -> _Memory:
        """Return the temporary arrays of a call on a stream.

        Calls on one stream follow one another, so that they share them; a graph that the caller
        captures is replayed on any stream, and gets memory that lasts as long as this plan.
        """
        if capturing:
            self._kept.append(self._spare.pop() if self._spare else self._allocated())
            return self._kept[-1]
        place = (stream, threading.get_ident() if stream == _PER_THREAD else 0)
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
        addresses = tuple(int(block.ptr) for block in blocks)
        return _Memory(blocks, addresses, self._cupy.cuda.Event(disable_timing=True))

    def _stream(self, stream: int) -> Any:
        """Return CuPy's stream of an address; CuPy 13 has another word for it."""
        if stream not in self._streams:
            kind = self._cupy.cuda.Stream
            self._streams[stream] = (
                kind.from_external(_Address(stream))
                if hasattr(kind, "from_external")
                else self._cupy.cuda.ExternalStream(stream)
            )
        return self._streams[stream]

    def _function(self, code: KernelCode) -> Any:
        function = self._module.get_function(code.name)
        if code.dynamic_shared:
            self._driver.funcSetAttribute(function.ptr, _DYNAMIC_SHARED, code.shared_bytes)
        most = self._driver.funcGetAttribute(_MOST_THREADS, function.ptr)
        if prod(code.block) > most:
            raise input_error(
                "EATSS-J015",
                f"kernel {code.name} has blocks of {prod(code.block)} threads, and with its "
                f"registers this card takes {most}",
                hint="give a smaller block, block=(8, 32)",
            )
        return function

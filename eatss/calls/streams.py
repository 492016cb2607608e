"""Streams of CUDA: the one that a call goes to, and those that it has to wait for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eatss.calls.arrays import ArrayView, cupy_for
from eatss.diagnostics import input_error

KEYWORD = "stream"
"""The argument of a call that names its stream, where the program has none of that name."""

_LEGACY = 0
"""The default stream as CUDA's driver counts; the array interface calls it 1."""


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
            ``EATSS-J021`` what is given is no stream.
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
        InputError: ``EATSS-J021``, it is none.
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
        "EATSS-J021",
        f"stream is {type(stream).__name__}, which is no stream",
        hint="give a stream of CuPy or PyTorch, or its address",
    )


def written_on(views: Iterable[ArrayView]) -> tuple[int, ...]:
    """Return the streams on which arrays of other libraries are written."""
    found = {view.stream for view in views} - {None}
    return tuple(sorted(_LEGACY if one == 1 else one for one in found if one is not None))


def wait_for_others(streams: Sequence[int], stream: int, device: int) -> None:
    """Have a stream wait for others."""
    others = [one for one in streams if one != stream]
    if not others:
        return
    cupy = cupy_for("stream")
    with cupy.cuda.Device(device):
        for other in others:
            written = cupy.cuda.Event(disable_timing=True)
            written.record(stream_at(cupy, other))
            stream_at(cupy, stream).wait_event(written)


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

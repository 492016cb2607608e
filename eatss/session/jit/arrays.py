"""Arrays of other libraries: where they lie, their shapes and types, without copying them.

CuPy and PyTorch are read by their own attributes, which takes tenths of a microsecond; anything
else through ``__cuda_array_interface__`` or DLPack. None of them is imported here unless an
argument of its kind has been made, so that it is loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import combinations
from math import prod
from typing import Any, TypeAlias

import numpy as np

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.text import one_line
from eatss.session.jit.signature import CallArgument, CallSignature

_DLPACK_CPU = 1


@frozen
class ArrayView:
    """An array as a kernel sees it.

    ``pointer`` is the address of the first element, ``device`` the number of the card as CUDA
    counts, ``None`` for the memory of the host. ``contiguous`` is C order without gaps. ``stream``
    is one that wrote it, as ``__cuda_array_interface__`` says, ``None`` where nothing is to be
    waited for. ``owner`` keeps the memory alive.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    contiguous: bool
    device: int | None
    writable: bool
    library: str
    stream: int | None = None
    owner: Any = None

    @property
    def bytes(self) -> int:
        """How many the elements take."""
        return prod(self.shape) * self.dtype.itemsize


Print: TypeAlias = tuple[int, Hashable]
"""Pointer of an array, and all else that calls are told apart by."""

Reader: TypeAlias = Callable[[Any], Print]


def _refused(name: str, what: str, hint: str) -> InputError:
    return input_error("EATSS-J010", f"'{name}' {what}", hint=hint)


def view_of(name: str, value: Any) -> ArrayView:
    """Return an argument as an array.

    Raises:
        InputError: ``EATSS-J010``, it is no array.
    """
    kind = type(value).__name__
    try:
        library = library_of(value)
        if library == "numpy":
            return _numpy_view(value)
        if library == "torch":
            return _torch_view(name, value)
        if library == "cupy":
            return _cupy_view(value)
        if getattr(value, "__cuda_array_interface__", None) is not None:
            return _interface_view(name, value)
        if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            return _dlpack_view(name, value)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, RuntimeError) as error:
        why = f"is {kind}, which cannot be read as an array: {one_line(error)}"
        raise _refused(name, why, "give a dense array of numbers") from None
    raise _refused(
        name,
        f"is {kind}, which is no array",
        "give an array of CuPy, PyTorch or NumPy, or one with DLPack or __cuda_array_interface__",
    )


def library_of(value: Any) -> str:
    """Return the library that an array is of: numpy, cupy, torch, or "" for another."""
    if isinstance(value, np.ndarray):
        return "numpy"
    for library, kind in (("cupy", "ndarray"), ("torch", "Tensor")):
        loaded = sys.modules.get(library)
        if loaded is not None and isinstance(value, getattr(loaded, kind, ())):
            return library
    return ""


def reader_of(value: Any) -> Reader | None:
    """Return the fast way to read arrays of a kind; ``None`` where there is none."""
    library = library_of(value)
    if library == "cupy" and type(value) is sys.modules["cupy"].ndarray:
        return _read_cupy
    if library == "torch" and value.is_cuda:
        return _read_torch
    if not library and hasattr(value, "__cuda_array_interface__"):
        return _read_interface
    return None


def _read_cupy(array: Any) -> Print:
    memory = array.data
    return memory.ptr, (array.shape, array.dtype, array.flags.c_contiguous, memory.device_id)


def _read_torch(tensor: Any) -> Print:
    seen = (tensor.shape, tensor.dtype, tensor.is_contiguous(), tensor.get_device())
    return tensor.data_ptr(), (seen, tensor.is_neg())


def _read_interface(value: Any) -> Print:
    """Read version 3 of the CUDA array interface.

    Raises:
        KeyError: it is masked, which the slow way refuses.
    """
    found = value.__cuda_array_interface__
    if found.get("mask") is not None:
        raise KeyError("mask")
    pointer, read_only = found["data"]
    place = sys.modules["cupy"].cuda.runtime.pointerGetAttributes(pointer) if pointer else None
    seen = (found["shape"], found["typestr"], found.get("strides"), read_only, found.get("stream"))
    return pointer, (seen, None if place is None else place.device)


def note_written(values: Mapping[str, Any], names: Sequence[str]) -> None:
    """Tell PyTorch which tensors were written, so that no gradient is made of old values."""
    torch = sys.modules.get("torch")
    graph = getattr(getattr(torch, "autograd", None), "graph", None)
    note = getattr(graph, "increment_version", None)
    if torch is None or note is None:
        return
    for name in names:
        value = values[name]
        if isinstance(value, torch.Tensor) and not value.is_inference():
            note(value)


def _numpy_view(array: np.ndarray[Any, Any], library: str = "numpy") -> ArrayView:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("it has a mask; give its data")
    return ArrayView(
        pointer=array.ctypes.data,
        shape=array.shape,
        dtype=array.dtype,
        contiguous=array.flags.c_contiguous,
        device=None,
        writable=array.flags.writeable,
        library=library,
        owner=array,
    )


def _cupy_view(array: Any) -> ArrayView:
    return ArrayView(
        pointer=array.data.ptr,
        shape=array.shape,
        dtype=array.dtype,
        contiguous=array.flags.c_contiguous,
        device=array.data.device_id,
        writable=True,
        library="cupy",
        owner=array,
    )


def _torch_view(name: str, tensor: Any) -> ArrayView:
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_neg() or tensor.is_conj():
        what = "is a tensor whose memory does not hold its values as they are"
        raise _refused(name, what, f"give {name}.to_dense() or {name}.resolve_neg()")
    try:
        dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
    except TypeError:  # bfloat16 and others that NumPy does not have
        dtype = np.dtype(f"V{tensor.element_size()}")
    if not tensor.is_cuda and tensor.device.type != "cpu":
        what = f"is on the device '{tensor.device}'"
        raise _refused(name, what, "bring it to a card, or to the CPU")
    if not tensor.is_cuda:
        return _numpy_view(tensor.detach().numpy(), "torch")
    return ArrayView(
        pointer=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        dtype=dtype,
        contiguous=tensor.is_contiguous(),
        device=tensor.get_device(),
        writable=True,
        library="torch",
        owner=tensor,
    )


def _interface_view(name: str, value: Any) -> ArrayView:
    """Read version 3 of the CUDA array interface."""
    interface, cupy = value.__cuda_array_interface__, cupy_for(name)
    pointer, read_only = interface["data"]
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides")
    if interface.get("mask") is not None:
        raise _refused(name, "is masked", "give its data without a mask")
    attributes = cupy.cuda.runtime.pointerGetAttributes(pointer) if pointer else None
    return ArrayView(
        pointer=int(pointer),
        shape=shape,
        dtype=dtype,
        contiguous=strides is None or _is_packed(shape, strides, dtype.itemsize),
        device=0 if attributes is None else int(attributes.device),
        writable=not read_only,
        library=type(value).__module__.partition(".")[0],
        stream=interface.get("stream"),
        owner=value,
    )


def _dlpack_view(name: str, value: Any) -> ArrayView:
    kind, _ = value.__dlpack_device__()
    library = type(value).__module__.partition(".")[0]
    if int(kind) == _DLPACK_CPU:
        return _numpy_view(np.from_dlpack(value), library)
    cupy = cupy_for(name)
    view = _cupy_view(cupy.from_dlpack(value))
    # the stream on which CuPy has its maker's work waited for
    stream = int(cupy.cuda.get_current_stream(view.device).ptr)
    return replace(view, library=library, stream=stream)


def _is_packed(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Tell whether elements follow one another in C order; the stride of one element is free."""
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


def cupy_for(name: str) -> Any:
    """Return the module CuPy, for an array on a card.

    Raises:
        InputError: ``EATSS-J015``, it does not load.
    """
    try:
        import cupy  # noqa: PLC0415 - only arrays on a card need it
    except ImportError as error:
        raise input_error(
            "EATSS-J015",
            f"'{name}' is on a card, and CuPy, which launches kernels, does not load: {error}",
            hint="pip install 'eatss[gpu]'",
        ) from None
    return cupy


def check_names(name: str, signature: CallSignature, values: Mapping[str, Any]) -> None:
    """Refuse a call without an argument, or with one that the program does not have.

    Raises:
        InputError: ``EATSS-J001`` one is missing, ``EATSS-J002`` there is none of a name.
    """
    check_known(name, [one.name for one in signature.arguments], values, str(signature))
    needed = [one.name for one in signature.of_role("array", "cell", "scalar")]
    missing = ", ".join(f"'{one}'" for one in needed if values.get(one) is None)
    if missing:
        raise input_error(
            "EATSS-J001", f"'{name}' is called without {missing}", hint=f"it takes {signature}"
        )


def check_known(name: str, known: list[str], values: Mapping[str, Any], all_: str) -> None:
    """Refuse arguments that are not known; ``all_`` says which there are.

    Raises:
        InputError: ``EATSS-J002``.
    """
    for given in values:
        if given not in known:
            close = get_close_matches(given, known, 1)
            raise input_error(
                "EATSS-J002",
                f"'{name}' has no argument '{given}'",
                hint=f"did you mean '{close[0]}'?" if close else f"it takes {all_}",
            )


def check_view(argument: CallArgument, view: ArrayView) -> None:
    """Refuse an array that the kernels would take for something else.

    Raises:
        InputError: ``EATSS-J003`` shape of a cell, ``EATSS-J004`` type, ``EATSS-J005`` gaps or
            another order, ``EATSS-J013`` it must not be written.
    """
    name = argument.name
    if prod(view.shape) and not view.pointer:
        hint = "its memory was released, or never there; make it anew"
        raise _refused(name, "has elements and no memory", hint)
    if view.dtype != argument.dtype:
        seen = view.dtype.name
        if not view.dtype.isnative:
            seen = f"{view.dtype.str}, whose bytes are in the other order"
        raise input_error(
            "EATSS-J004",
            f"'{name}' is of {seen}, and the program computes it in {argument.dtype.name}",
            hint=f"convert it, {name}.astype('{argument.dtype.name}'), or spell the type in C by "
            "a macro: #ifndef DATA_TYPE, #define DATA_TYPE double, #endif",
        )
    if not view.contiguous:
        raise input_error(
            "EATSS-J005",
            f"'{name}' has gaps, or its last dimension is not the one that lies together",
            hint=f"copy it, numpy.ascontiguousarray({name}); for results copy back afterwards",
        )
    if argument.writes and not view.writable:
        raise input_error(
            "EATSS-J013",
            f"'{name}' is written by the program, and the array is read-only",
            hint=f"give a copy, {name}.copy()",
        )
    if argument.role == "cell" and prod(view.shape) != 1:
        raise input_error(
            "EATSS-J003",
            f"'{name}' is a scalar that the program writes, and the array has the shape "
            f"{view.shape}",
            hint="give an array of one element",
        )


def checked_place(views: Mapping[str, ArrayView]) -> int | None:
    """Return the card that all arrays are on, ``None`` for the memory of the host.

    Raises:
        InputError: ``EATSS-J006``, they are in several places.
    """

    def words(device: int | None) -> str:
        return "in the memory of the host" if device is None else f"on card {device}"

    every = {name: view.device for name, view in views.items()}
    places = {name: device for name, device in every.items() if prod(views[name].shape)}
    first = next(iter(places or every), "")
    for other, device in places.items():
        if device != every[first]:
            raise input_error(
                "EATSS-J006",
                f"'{first}' is {words(every[first])}, and '{other}' is {words(device)}",
                hint="bring all arrays to one place",
            )
    return every.get(first)


def check_aliases(signature: CallSignature, views: Mapping[str, ArrayView]) -> None:
    """Refuse arrays that share memory where one of them is written.

    Raises:
        InputError: ``EATSS-J007``.
    """
    for one, other in combinations(signature.of_role("array", "cell"), 2):
        a, b = views[one.name], views[other.name]
        apart = a.pointer >= b.pointer + b.bytes or b.pointer >= a.pointer + a.bytes
        if (one.writes or other.writes) and not apart:
            written = one.name if one.writes else other.name
            raise input_error(
                "EATSS-J007",
                f"'{one.name}' and '{other.name}' share memory, and '{written}' is written",
                hint=f"give a copy of one: the kernels take them for different arrays, and "
                f"results would depend on the order of threads ({other.name}.copy())",
            )

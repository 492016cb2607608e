"""Arrays of other libraries: where they lie, their shapes and types, without copying them.

CuPy and PyTorch are read by their own attributes, which takes tenths of a microsecond; anything
else through ``__cuda_array_interface__`` or DLPack. None of them is imported here unless an
argument of its kind has been made, so that it is loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations
from math import prod
from typing import Any, TypeAlias

import numpy as np

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import Numbers, frozen
from eatss.base.text import one_line
from eatss.session.jit.signature import KEYWORD, CallArgument, CallSignature

_DLPACK_CPU = 1


@frozen
class ArrayView:
    """An array as a kernel sees it.

    ``pointer`` is the address of the first element, ``device`` the number of the card as CUDA
    counts, ``None`` for the memory of the host. ``contiguous`` is C order without gaps. ``owner``
    keeps the memory alive.
    """

    pointer: int
    shape: Numbers
    dtype: np.dtype[Any]
    contiguous: bool
    device: int | None
    writable: bool
    owner: Any

    @property
    def bytes(self) -> int:
        """How many the elements take."""
        return prod(self.shape) * self.dtype.itemsize


Values: TypeAlias = Mapping[str, Any]
"""What a call passes, by the names of the parameters."""

Print: TypeAlias = tuple[int, Hashable]
"""Pointer of an array, and all else that calls are told apart by."""

Reader: TypeAlias = Callable[[Any], Print]


def _refused(name: str, what: str, hint: str) -> InputError:
    return input_error("EATSS-J004", f"'{name}' {what}", hint=hint)


def view_of(name: str, value: Any) -> ArrayView:
    """Return an argument as an array.

    Raises:
        InputError: ``EATSS-J004``, it is no array.
    """
    kind = type(value).__name__
    try:
        match _library_of(value):
            case "numpy":
                return _numpy_view(value)
            case "torch":
                return _torch_view(name, value)
            case "cupy":
                return _cupy_view(value, owner=value)
        interface = getattr(value, "__cuda_array_interface__", None)
        if interface is not None:
            if interface.get("mask") is not None:
                raise TypeError("it has a mask; give its data")
            found, read_only = cupy_for(name).asarray(value), interface["data"][1]
        elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
            if int(value.__dlpack_device__()[0]) == _DLPACK_CPU:
                return _numpy_view(np.from_dlpack(value))
            found, read_only = cupy_for(name).from_dlpack(value), False
        else:
            raise _refused(
                name,
                f"is {kind}, which is no array",
                "give an array of CuPy, PyTorch or NumPy, or one with DLPack or "
                "__cuda_array_interface__",
            )
        # CuPy waits on its current stream for who wrote it; this waits for that
        cupy_for(name).cuda.get_current_stream().synchronize()
        return _cupy_view(found, owner=value, writable=not read_only)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, RuntimeError) as error:
        why = f"is {kind}, which cannot be read as an array: {one_line(error)}"
        raise _refused(name, why, "give a dense array of numbers") from None


def _library_of(value: Any) -> str:
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
    library = _library_of(value)
    if library == "cupy" and type(value) is sys.modules["cupy"].ndarray:
        return _read_cupy
    return _read_torch if library == "torch" and value.is_cuda else None


def _read_cupy(array: Any) -> Print:
    memory = array.data
    return memory.ptr, (array.shape, array.dtype, array.flags.c_contiguous, memory.device_id)


def _read_torch(tensor: Any) -> Print:
    seen = (tensor.shape, tensor.dtype, tensor.is_contiguous(), tensor.get_device())
    return tensor.data_ptr(), (seen, tensor.is_neg())


def note_written(values: Values, names: Sequence[str]) -> None:
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


def _numpy_view(array: np.ndarray[Any, Any]) -> ArrayView:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("it has a mask; give its data")
    return _view(array, array.ctypes.data, None, owner=array, writable=array.flags.writeable)


def _cupy_view(array: Any, *, owner: Any, writable: bool = True) -> ArrayView:
    memory = array.data
    return _view(array, memory.ptr, memory.device_id, owner=owner, writable=writable)


def _view(array: Any, pointer: int, device: int | None, *, owner: Any, writable: bool) -> ArrayView:
    return ArrayView(
        pointer=pointer,
        shape=array.shape,
        dtype=array.dtype,
        contiguous=array.flags.c_contiguous,
        device=device,
        writable=writable,
        owner=owner,
    )


def _torch_view(name: str, tensor: Any) -> ArrayView:
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_neg() or tensor.is_conj():
        what = "is a tensor whose memory does not hold its values as they are"
        raise _refused(name, what, f"give {name}.to_dense() or {name}.resolve_neg()")
    if not tensor.is_cuda:
        return _numpy_view(tensor.detach().numpy())
    try:
        dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
    except TypeError:  # bfloat16 and others that NumPy does not have
        dtype = np.dtype(f"V{tensor.element_size()}")
    return ArrayView(
        pointer=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        dtype=dtype,
        contiguous=tensor.is_contiguous(),
        device=tensor.get_device(),
        writable=True,
        owner=tensor,
    )


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


def check_names(name: str, signature: CallSignature, values: Values) -> None:
    """Refuse a call without an argument, or with one that the program does not have.

    Raises:
        InputError: ``EATSS-J001``, one is missing, or there is none of a name.
    """
    check_known(name, signature.known | {KEYWORD}, values, str(signature))
    needed = [one for one in signature.arguments if one.used and one.role != "size"]
    missing = ", ".join(f"'{one.name}'" for one in needed if values.get(one.name) is None)
    if missing:
        raise input_error(
            "EATSS-J001", f"'{name}' is called without {missing}", hint=f"it takes {signature}"
        )


def check_known(name: str, known: Iterable[str], given: Iterable[str], every: str) -> None:
    """Refuse arguments that are not known; ``every`` says which there are.

    Raises:
        InputError: ``EATSS-J001``.
    """
    for one in {*given} - {*known}:
        close = get_close_matches(one, known, 1)
        raise input_error(
            "EATSS-J001",
            f"'{name}' has no argument '{one}'",
            hint=f"did you mean '{close[0]}'?" if close else f"it takes {every}",
        )


def check_view(argument: CallArgument, view: ArrayView) -> None:
    """Refuse an array that the kernels would take for something else.

    Raises:
        InputError: ``EATSS-J003`` shape of a cell; ``EATSS-J004`` type, gaps or another order, or
            it must not be written.
    """
    name, wanted = argument.name, argument.dtype.name
    if prod(view.shape) and not view.pointer:
        hint = "its memory was released, or never there; make it anew"
        raise _refused(name, "has elements and no memory", hint)
    if view.dtype != argument.dtype:
        swapped = f"{view.dtype.str}, whose bytes are in the other order"
        seen = view.dtype.name if view.dtype.isnative else swapped
        raise _refused(
            name,
            f"is of {seen}, and the program computes it in {wanted}",
            f"convert it, {name}.astype('{wanted}'), or spell the type in C by a macro: "
            "#ifndef DATA_TYPE, #define DATA_TYPE double, #endif",
        )
    if not view.contiguous:
        raise _refused(
            name,
            "has gaps, or its last dimension is not the one that lies together",
            f"copy it, numpy.ascontiguousarray({name}); for results copy back afterwards",
        )
    if argument.writes and not view.writable:
        what = "is written by the program, and the array is read-only"
        raise _refused(name, what, f"give a copy, {name}.copy()")
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
    filled = {name: view for name, view in views.items() if view.bytes} or views
    places: dict[int | None, str] = {}
    for name, view in filled.items():
        places.setdefault(view.device, name)
    if len(places) > 1:
        where = [
            f"'{name}' is " + ("in the memory of the host" if one is None else f"on card {one}")
            for one, name in places.items()
        ]
        raise input_error("EATSS-J006", ", and ".join(where), hint="bring all arrays to one place")
    return next(iter(places), None)


def check_aliases(signature: CallSignature, views: Mapping[str, ArrayView]) -> None:
    """Refuse arrays that share memory where one of them is written.

    Raises:
        InputError: ``EATSS-J006``.
    """
    for one, other in written_pairs(signature):
        a, b = views[one.name], views[other.name]
        if a.pointer < b.pointer + b.bytes and b.pointer < a.pointer + a.bytes:
            written = one.name if one.writes else other.name
            raise input_error(
                "EATSS-J006",
                f"'{one.name}' and '{other.name}' share memory, and '{written}' is written",
                hint=f"give a copy of one: the kernels take them for different arrays, and "
                f"results would depend on the order of threads ({other.name}.copy())",
            )


def written_pairs(signature: CallSignature) -> list[tuple[CallArgument, CallArgument]]:
    """Return the pairs of arrays of which one is written."""
    pairs = combinations(signature.arrays.values(), 2)
    return [(one, other) for one, other in pairs if one.writes or other.writes]

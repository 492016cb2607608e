"""A program as a function of arrays: ``gemm(A=A, B=B, C=C, alpha=1.5, beta=1.2)``."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from eatss.cache import Cache
from eatss.calls.arrays import ArrayView, Reader, cupy_for, reader_of, view_of
from eatss.calls.card import CardPlan, stream_at
from eatss.calls.checks import (
    check_aliases,
    check_names,
    check_sizes,
    check_view,
    checked_place,
)
from eatss.calls.machine_code import cubin_of, size_constant
from eatss.calls.once import Once
from eatss.calls.options import CallOptions
from eatss.calls.plan import check_scalar, refusal_of
from eatss.calls.programs import Maker, Sizes
from eatss.calls.signature import CallSignature, signature_of, sizes_of
from eatss.calls.sizes import infer_sizes, whole_number
from eatss.diagnostics import input_error
from eatss.frontend.options import DtypeName
from eatss.gpu import GpuProfile
from eatss.program import Program, evaluate

if TYPE_CHECKING:
    from eatss.calls.host import HostProgram

ProfileOf: TypeAlias = Callable[[int | None], GpuProfile | None]
"""The profile of a card by its number, ``None`` for the CPU; none where nothing is selected."""

_DTYPES: dict[str, DtypeName] = {"float32": "float", "float64": "double"}
_MOST_PLANS = 256
_MOST_SEEN = 4096
_MOST_CUBINS = 16
_KEYWORD = "stream"

_LEGACY = 0
"""The default stream as CUDA's driver counts; the array interface calls it 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """What a callable has made so far: programs selected and generated, sizes they are ready for,
    sets of arguments that are told apart, and CUDA graphs kept.
    """  # noqa: D205

    programs: int
    plans: int
    seen: int
    graphs: int


class ArraySpec(NamedTuple):
    """Shape and type of an array: what ``numpy.empty`` takes, in its order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class _Bound:
    """What is known of calls with arguments of some shapes and types.

    ``spans`` are pairs of arrays by their places that must not overlap, with their bytes.
    ``written_on`` are streams of other libraries that are to be waited for.
    """

    plan: CardPlan
    spans: tuple[tuple[int, int, int, int], ...]
    written_on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Fast:
    """What a call looks at when all goes well."""

    known: frozenset[str]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    sizes: tuple[str, ...]
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that was checked: its arrays, sizes, and where they lie."""

    signature: CallSignature
    dtype: DtypeName | None
    views: Mapping[str, ArrayView]
    sizes: Mapping[str, int]
    device: int | None


class JitFunction:
    """A program that is called with arrays; safe from several threads at once.

    Arrays on a card are used where they are, and the call returns when it is enqueued on the
    caller's stream: the current one of PyTorch for its tensors, else that of CuPy, or ``stream=``.
    Arrays of NumPy run on the CPU. What is written is written into the arrays given; nothing is
    returned. The first call with a class of sizes and a type selects, generates and compiles.

    ``__signature__`` and :func:`help` say what it takes.
    """

    def __init__(
        self, maker: Maker, profile_of: ProfileOf, options: CallOptions, cache: Cache | None
    ) -> None:
        self._maker = maker
        self._profile_of = profile_of
        self._options = options
        self._cache = cache
        self._signatures: Once[CallSignature] = Once(4)
        self._programs: Once[Program] = Once(_MOST_PLANS)
        self._plans: Once[CardPlan] = Once(_MOST_PLANS, self._dropped)
        self._hosts: Once[HostProgram] = Once(_MOST_PLANS)
        self._cubins: Once[bytes] = Once(_MOST_CUBINS)
        self._seen: dict[Hashable, _Bound] = {}
        self._readers: dict[type, Reader] = {}
        self._fast: _Fast | None = None
        self._captured: list[CardPlan] = []
        self._files: str | None = None
        self._lock = threading.Lock()
        self.__name__ = maker.name

    def __repr__(self) -> str:
        return f"<eatss.jit {self._maker.name}({self._signature()})>"

    @property
    def __signature__(self) -> inspect.Signature:
        """The arguments, for :func:`inspect.signature` and completion."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(one.name, kind)
            for one in self._signature().arguments
            if one.default is None
        ]
        parameters += [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default)
            for one in self._signature().arguments
            if one.default is not None
        ]
        return inspect.Signature(parameters)

    def __call__(self, /, *arguments: Any, **values: Any) -> None:
        """Run the program on arrays and numbers, by their names in C, or in their order there.

        Raises:
            InputError: ``EATSS-J0xx``, an argument does not fit; what :func:`eatss.codegen` raises
                on the first call with sizes of a class.
            NoSolutionError: no tile sizes satisfy the limits of the card.
        """
        fast = self._fast
        if arguments:
            values = self._named(arguments, values)
        if fast is not None:
            stream = values.get(_KEYWORD) if _KEYWORD not in fast.known else None
            found = self._lookup(fast, values)
            if found is not None:
                bound, pointers = found
                scalars = [values.get(name) for name in fast.scalars]
                if not any(one is None for one in scalars):  # the slow way says what is missing
                    for one, its, other, others in bound.spans:
                        a, b = pointers[one], pointers[other]
                        if a < b + others and b < a + its:
                            break
                    else:
                        device = bound.plan.device
                        where = self._stream(stream, values, fast.arrays, device)
                        if bound.written_on:
                            _wait_for_others(bound.written_on, where, device)
                        bound.plan.launch(pointers, scalars, where)
                        _note_written(values, fast.written)
                        return
        self._slow(values)

    def prepare(self, /, *arguments: Any, **values: Any) -> None:
        """Do all that the first such call would do, but run: select, generate, compile, load.

        Call it before capturing a CUDA graph, which must not wait for a compiler.

        Raises:
            InputError: as for a call.
        """
        call = self._checked(self._without_stream(self._named(arguments, values)))
        if call.device is None:
            self._hosts_program(call)
        else:
            self._plan(call).reserve()

    def program_for(self, /, *arguments: Any, **values: Any) -> Program:
        """Return the program that such a call runs: its text, kernels and recipe.

        Raises:
            InputError: as for a call.
        """
        return self._program(self._checked(self._without_stream(self._named(arguments, values))))

    def arrays(self, **sizes: int) -> dict[str, ArraySpec]:
        """Return shapes and types of the arrays at some sizes, by name, to allocate them.

            specs = gemm.arrays(NI=4000, NJ=4000, NK=4000)
            C = cupy.empty(*specs["C"])

        Args:
            **sizes: by their names in C; others have the values of the source.

        Raises:
            InputError: ``EATSS-J008`` a size is missing, ``EATSS-J011`` one is no whole number.
        """
        signature = self._signature()
        given = {name: whole_number(name, value) for name, value in sizes.items()}
        check_sizes(self._maker.name, signature, given)
        values = infer_sizes(signature, {}, given)
        return {
            one.name: ArraySpec(
                tuple(max(0, evaluate(extent, values)) for extent in one.shape), one.dtype
            )
            for one in signature.of_role("array", "cell")
        }

    def info(self) -> CallInfo:
        """Return what was made so far."""
        return CallInfo(
            programs=len(self._programs),
            plans=len(self._plans) + len(self._hosts),
            seen=len(self._seen),
            graphs=sum(plan.graphs for plan in self._plans.values()),
        )

    def clear(self) -> None:
        """Forget all programs, and the source; what is on disk stays.

        CUDA graphs of yours that calls were captured in must not be replayed any more.
        """
        with self._lock:
            self._seen.clear()
            self._captured.clear()
            self._files = None
        self._plans.clear()
        self._hosts.clear()
        self._cubins.clear()
        self._programs.clear()
        self._signatures.clear()

    # -- the fast way -------------------------------------------------------------------------

    def _lookup(self, fast: _Fast, values: Mapping[str, Any]) -> tuple[_Bound, list[int]] | None:
        """Return what is known of such a call, and the addresses of its arrays."""
        readers = self._readers
        pointers: list[int] = []
        key: list[Hashable] = []
        try:
            for name in fast.arrays:
                value = values[name]
                pointer, seen = readers[type(value)](value)
                pointers.append(pointer)
                key.append(seen)
            key.extend(map(values.get, fast.sizes))
            bound = self._seen[tuple(key)]
        except (KeyError, TypeError, RuntimeError):
            return None
        if 0 in pointers:  # of arrays without elements, or of memory that was released
            return None
        return (bound, pointers) if values.keys() - fast.known <= {_KEYWORD} else None

    def _stream(
        self,
        given: Any,
        values: Mapping[str, Any],
        arrays: Sequence[str],
        device: int,
    ) -> int:
        """Return the address of the stream of a call."""
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

    # -- the slow way -------------------------------------------------------------------------

    def _slow(self, values: Mapping[str, Any]) -> None:
        given = self._given_stream(values)
        values = self._without_stream(values)
        call = self._checked(values)
        signature = call.signature
        scalars = [values[one.name] for one in signature.of_role("scalar")]
        if call.device is None:
            program = self._hosts_program(call)
            arrays = {name: view.owner for name, view in call.views.items()}
            numbers = {
                one.name: _as_scalar(one.name, one.dtype, values[one.name])
                for one in signature.of_role("scalar")
            }
            program.run({**arrays, **numbers}, call.sizes)
            _note_written(values, _written(signature))
            return
        plan = self._plan(call)
        order = [one.name for one in signature.of_role("array", "cell")]
        self._note(call, plan, values, order)
        where = self._stream(given, values, order, call.device)
        _wait_for_others(_written_on(call), where, call.device)
        plan.launch([call.views[name].pointer for name in order], scalars, where)
        _note_written(values, _written(signature))

    def _checked(self, values: Mapping[str, Any]) -> _Call:
        """Return a call with everything about it checked.

        Raises:
            InputError: ``EATSS-J0xx``.
        """
        signature, dtype = self._fitting(values)
        check_names(self._maker.name, signature, values)
        views = {
            one.name: view_of(one.name, values[one.name])
            for one in signature.of_role("array", "cell")
        }
        for one in signature.of_role("array", "cell"):
            check_view(one, views[one.name])
        device = checked_place(views)
        shapes = {one.name: views[one.name].shape for one in signature.of_role("array")}
        given = {
            one.name: whole_number(one.name, values[one.name])
            for one in sizes_of(signature)
            if values.get(one.name) is not None
        }
        sizes = infer_sizes(signature, shapes, given)
        check_aliases(signature, views)
        return _Call(signature, dtype, views, sizes, device)

    def _fitting(self, values: Mapping[str, Any]) -> tuple[CallSignature, DtypeName | None]:
        """Return what the program takes in the type of the arrays, and that type."""
        usual = self._signature()
        found: set[np.dtype[Any]] = set()
        mismatch = False
        for one in usual.of_role("array", "cell"):
            if values.get(one.name) is not None and one.dtype.kind == "f":
                dtype = view_of(one.name, values[one.name]).dtype
                found.add(dtype)
                mismatch = mismatch or dtype != one.dtype
        if not mismatch or len(found) != 1:
            return usual, None
        dtype_name = _DTYPES.get(found.pop().name)
        if dtype_name is None:
            return usual, None
        other = self._signature(dtype_name)
        return (usual, None) if other == usual else (other, dtype_name)

    def _signature(self, dtype: DtypeName | None = None) -> CallSignature:
        return self._signatures.get(dtype, lambda: self._signature_read(dtype))

    def _signature_read(self, dtype: DtypeName | None) -> CallSignature:
        self._check_unchanged()
        return signature_of(self._maker.interface(dtype))

    def _check_unchanged(self) -> None:
        """Refuse to make programs of a source that is another one by now.

        Raises:
            InputError: ``EATSS-J022``.
        """
        files = self._maker.files()
        with self._lock:
            known = self._files = files if self._files is None else self._files
        if files != known:
            raise input_error(
                "EATSS-J022",
                f"'{self._maker.name}' has changed since it was called first",
                hint="make a new callable of it, or call clear() on this one",
            )

    def _made(
        self, call: _Call, sizes: Sizes, profile: GpuProfile | None, *, wide: bool
    ) -> Program:
        """Return the program for a class of sizes; the winner of a measurement where one is due."""
        self._check_unchanged()
        seconds = self._options.tune_s()
        job = self._maker.job(call.dtype, sizes, profile, wide=wide)
        if seconds is not None and call.device is not None and job is not None:
            from eatss.calls.tuning import tuned  # noqa: PLC0415 - needs SciPy

            name = _card_name(cupy_for(next(iter(call.views))), call.device)
            winner = tuned(job, call.sizes, call.device, name, seconds, self._cache)
            if winner is not None:
                return self._maker.made(replace(job, recipe=winner.recipe))
        return self._maker.program(call.dtype, sizes, profile, wide=wide)

    def _program(self, call: _Call) -> Program:
        """Return the program of a call: that of its class, or where it does not do, of its sizes.

        Raises:
            InputError: ``EATSS-J012``, no program runs at these sizes.
        """
        profile = self._profile_of(call.device)
        made = self._maker.class_of(call.signature, call.sizes)
        exact = tuple((one.name, call.sizes[one.size]) for one in sizes_of(call.signature))
        said = ""
        for sizes, wide in ((made, False), (made, True), (exact, False), (exact, True)):
            program = self._programs.get(
                (call.dtype, sizes, wide, profile, call.device),
                lambda at=sizes, wide=wide: self._made(call, at, profile, wide=wide),  # type: ignore[misc]
            )
            said = refusal_of(program, call.sizes)
            if not said:
                return program
        at = ", ".join(f"{name}={value}" for name, value in exact)
        raise input_error(
            "EATSS-J012",
            f"'{self._maker.name}' does not run at {at}: {said}",
            hint="call it with other sizes",
        )

    def _plan(self, call: _Call) -> CardPlan:
        """Return the program of a call, loaded on its card."""
        device = call.device
        assert device is not None
        program = self._program(call)
        specialize = self._options.specialize
        sizes = tuple(sorted(call.sizes.items()))
        return self._plans.get(
            (program.text, program.flags, sizes, device),
            lambda: self._loaded(program, call, device, specialize=specialize),
        )

    def _loaded(self, program: Program, call: _Call, device: int, *, specialize: bool) -> CardPlan:
        cupy = cupy_for(next(iter(call.views)))
        with cupy.cuda.Device(device) as card:
            capability = int(card.compute_capability)
            compiled_for = tuple(sorted(call.sizes.items())) if specialize else ()
            cubin = self._cubins.get(
                (program.text, program.flags, compiled_for, capability),
                lambda: cubin_of(
                    program, call.sizes, capability, cupy, self._cache, specialize=specialize
                ),
            )
            constants = {
                size_constant(one.name): call.sizes[one.name]
                for one in program.parameters
                if one.kind == "macro" and not specialize
            }
            return CardPlan(cupy, program, call.signature, call.sizes, cubin, device, constants)

    def _hosts_program(self, call: _Call) -> HostProgram:
        from eatss.calls.host import HostProgram  # noqa: PLC0415 - arrays on a card need no compiler

        program = self._program(call)
        return self._hosts.get(
            (program.text, call.dtype), lambda: HostProgram(program, call.signature)
        )

    def _note(
        self, call: _Call, plan: CardPlan, values: Mapping[str, Any], order: Sequence[str]
    ) -> None:
        """Remember a call, so that the next one like it takes the fast way."""
        readers = {type(values[name]): reader_of(values[name]) for name in order}
        if any(reader is None for reader in readers.values()):
            return
        usual = self._signature()
        fast = _Fast(
            known=frozenset(one.name for one in usual.arguments),
            arrays=tuple(order),
            scalars=tuple(one.name for one in usual.of_role("scalar")),
            sizes=tuple(one.name for one in sizes_of(usual)),
            written=_written(usual),
        )
        key: list[Hashable] = []
        for name in order:
            reader = readers[type(values[name])]
            assert reader is not None
            try:
                key.append(reader(values[name])[1])
            except KeyError:  # it has to be waited for: the next one may, too
                return
        key.extend(map(values.get, fast.sizes))
        spans = []
        places = {name: place for place, name in enumerate(order)}
        for one in call.signature.of_role("array", "cell"):
            for other in call.signature.of_role("array", "cell"):
                a, b = places[one.name], places[other.name]
                if (one.writes or other.writes) and a < b:
                    spans.append((a, _bytes(call, one.name), b, _bytes(call, other.name)))
        with self._lock:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            for kind, reader in readers.items():
                assert reader is not None
                self._readers[kind] = reader
            self._seen[tuple(key)] = _Bound(plan, tuple(spans), _written_on(call))
            self._fast = fast

    def _dropped(self, plan: CardPlan) -> None:
        """Let go of a plan that was not called for long, but for one that the user captured."""
        with self._lock:
            for key in [key for key, bound in self._seen.items() if bound.plan is plan]:
                del self._seen[key]
            if plan.captured:
                self._captured.append(plan)

    # -- words --------------------------------------------------------------------------------

    def _named(self, arguments: Sequence[Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name.

        Raises:
            InputError: ``EATSS-J002``, they are too many, or one is given twice.
        """
        names = [one.name for one in self._signature().arguments if one.default is None]
        if len(arguments) > len(names):
            raise input_error(
                "EATSS-J002",
                f"'{self._maker.name}' takes {len(names)} arguments in order, and "
                f"{len(arguments)} are given",
                hint=f"it is called as {self._maker.name}({self._signature()})",
            )
        named = dict(zip(names, arguments, strict=False))
        twice = next((name for name in named if name in values), None)
        if twice is not None:
            raise input_error(
                "EATSS-J002",
                f"'{twice}' is given twice, in order and by name",
                hint="leave one of them out",
            )
        return {**named, **values}

    def _given_stream(self, values: Mapping[str, Any]) -> Any:
        return values.get(_KEYWORD) if self._takes_stream() else None

    def _without_stream(self, values: Mapping[str, Any]) -> dict[str, Any]:
        takes = self._takes_stream()
        return {name: value for name, value in values.items() if name != _KEYWORD or not takes}

    def _takes_stream(self) -> bool:
        """Tell whether ``stream`` is the word for the stream, and no argument of the program."""
        return all(one.name != _KEYWORD for one in self._signature().arguments)


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


def _card_name(cupy: Any, device: int) -> str:
    """Return the kind of a card: winners are for all of a kind."""
    name = cupy.cuda.runtime.getDeviceProperties(device)["name"]
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _written(signature: CallSignature) -> tuple[str, ...]:
    return tuple(one.name for one in signature.of_role("array", "cell") if one.writes)


def _note_written(values: Mapping[str, Any], names: Sequence[str]) -> None:
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


def _torch_stream(torch: Any, device: int) -> int:
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if quick is not None:
        return int(quick(device))
    return int(torch.cuda.current_stream(device).cuda_stream)


def _written_on(call: _Call) -> tuple[int, ...]:
    """Return the streams on which arrays of other libraries are written."""
    found = {view.stream for view in call.views.values()} - {None}
    return tuple(sorted(_LEGACY if one == 1 else one for one in found if one is not None))


def _wait_for_others(streams: Sequence[int], stream: int, device: int) -> None:
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


def _bytes(call: _Call, name: str) -> int:
    shape = tuple(max(0, evaluate(one, call.sizes)) for one in call.signature[name].shape)
    return prod(shape) * call.signature[name].dtype.itemsize


def _as_scalar(name: str, dtype: np.dtype[Any], value: Any) -> Any:
    """Return a scalar in its type.

    Raises:
        InputError: ``EATSS-J011``, it is no number of that type.
    """
    check_scalar(name, dtype, value)
    return np.asarray(value, dtype=dtype).reshape(())[()]

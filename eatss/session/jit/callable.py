"""Calls like those before: all was checked then, so that little is left to look at.

What calls are told apart by is read from the arrays themselves, in tenths of a microsecond each.
Whatever is not as before is left to the slow way, which says what is wrong.

A program as a function of arrays: ``gemm(A=A, B=B, C=C, alpha=1.5, beta=1.2)``.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from eatss.base.cache import Cache
from eatss.base.diagnostics import EatssError, input_error
from eatss.base.frozen import frozen
from eatss.base.shown import ExpectedRun, Shown
from eatss.cards import GpuProfile
from eatss.frontend.options import DtypeName
from eatss.measurement.arguments import refusal
from eatss.program import Program, evaluate
from eatss.session.jit.arrays import (
    ArrayView,
    Reader,
    check_aliases,
    check_known,
    check_names,
    check_view,
    checked_place,
    cupy_for,
    note_written,
    reader_of,
    view_of,
)
from eatss.session.jit.card import (
    KEYWORD,
    CardPlan,
    check_scalar,
    stream_of_call,
)
from eatss.session.jit.options import CallOptions, Once
from eatss.session.jit.programs import Maker, Sizes, cubin_of
from eatss.session.jit.signature import (
    CallSignature,
    infer_sizes,
    signature_of,
    sizes_of,
    whole_number,
)

if TYPE_CHECKING:
    from eatss.session.jit.programs import HostProgram


_MOST_SEEN = 4096


@dataclass(frozen=True, slots=True)
class _Bound:
    """What is known of calls with arguments of some shapes and types.

    ``spans`` are pairs of arrays by their places that must not overlap, with their bytes.
    """

    plan: CardPlan
    spans: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """The arguments that a call has, and those of each kind in the order of the signature."""

    known: frozenset[str]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    sizes: tuple[str, ...]
    written: tuple[str, ...]

    @classmethod
    def of(cls, signature: CallSignature) -> _Names:
        return cls(
            known=frozenset(one.name for one in signature.arguments),
            arrays=tuple(one.name for one in signature.of_role("array", "cell")),
            scalars=tuple(one.name for one in signature.of_role("scalar")),
            sizes=tuple(one.name for one in sizes_of(signature)),
            written=signature.written,
        )


class KnownCalls:
    """The calls of one callable on cards; safe from several threads at once."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, _Bound] = {}
        self._readers: dict[type, Reader] = {}
        self._names: _Names | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._seen)

    def launch(self, values: Mapping[str, Any]) -> bool:
        """Launch a call if there was one like it; tell whether there was.

        Args:
            values: all arguments by name.

        Raises:
            InputError: ``EATSS-J011``, ``J016`` or ``J019``, as for any call.
        """
        names = self._names
        if names is None:
            return False
        pointers: list[int] = []
        key: list[Hashable] = []
        try:
            for name in names.arrays:
                value = values[name]
                pointer, seen = self._readers[type(value)](value)
                pointers.append(pointer)
                key.append(seen)
            key.extend(map(values.get, names.sizes))
            bound = self._seen[tuple(key)]
        except (KeyError, TypeError, RuntimeError):
            return False
        scalars = [values.get(name) for name in names.scalars]
        missing = 0 in pointers or any(one is None for one in scalars)
        if missing or values.keys() - names.known - {KEYWORD}:
            return False
        for one, its, other, others in bound.spans:
            a, b = pointers[one], pointers[other]
            if a < b + others and b < a + its:
                return False
        device = bound.plan.device
        given = None if KEYWORD in names.known else values.get(KEYWORD)
        stream = stream_of_call(given, values, names.arrays, device)
        bound.plan.launch(pointers, scalars, stream)
        note_written(values, names.written)
        return True

    def note(
        self,
        signature: CallSignature,
        plan: CardPlan,
        values: Mapping[str, Any],
        views: Mapping[str, ArrayView],
    ) -> None:
        """Remember a call that was checked, if its arrays are of kinds that are quick to read."""
        names = _Names.of(signature)
        readers = {type(values[name]): reader_of(values[name]) for name in names.arrays}
        key: list[Hashable] = []
        for name in names.arrays:
            reader = readers[type(values[name])]
            if reader is None:
                return
            key.append(reader(values[name])[1])
        key.extend(map(values.get, names.sizes))
        bound = _Bound(plan, tuple(_spans(signature, views)))
        with self._lock:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._readers.update({kind: one for kind, one in readers.items() if one is not None})
            self._seen[tuple(key)] = bound
            self._names = names

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._seen.clear()


def _spans(
    signature: CallSignature, views: Mapping[str, ArrayView]
) -> list[tuple[int, int, int, int]]:
    """Return the pairs of arrays of which one is written: places and bytes of both."""
    sized = [
        (place, prod(views[one.name].shape) * one.dtype.itemsize, one.writes)
        for place, one in enumerate(signature.of_role("array", "cell"))
    ]
    return [
        (a, a_bytes, b, b_bytes)
        for (a, a_bytes, a_written), (b, b_bytes, b_written) in combinations(sized, 2)
        if a_written or b_written
    ]


ProfileOf: TypeAlias = Callable[[int | None], GpuProfile | None]
"""The profile of a card by its number, ``None`` for the CPU; none where nothing is selected."""

_DTYPES: dict[str, DtypeName] = {
    "float16": "_Float16",
    "float32": "float",
    "float64": "double",
}


@frozen
class CallInfo:
    """What a callable has made so far: programs selected and generated, sizes they are ready for,
    sets of arguments that are told apart, CUDA graphs kept, and what is expected of the programs.
    """  # noqa: D205

    programs: int
    plans: int
    seen: int
    graphs: int
    expected: tuple[ExpectedRun, ...] = ()


class ArraySpec(NamedTuple):
    """Shape and type of an array: what ``numpy.empty`` takes, in its order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that was checked: its arrays, sizes, and where they lie."""

    signature: CallSignature
    dtype: DtypeName | None
    views: Mapping[str, ArrayView]
    sizes: Mapping[str, int]
    device: int | None


class _Arguments:
    """``__signature__`` of a callable: its arguments; of the class, or of a source that cannot be
    read, nothing of its own.
    """  # noqa: D205

    def __get__(self, function: JitFunction | None, owner: type | None = None) -> Any:
        if function is None:
            return None
        try:
            return function._arguments()
        except EatssError:
            return None


class JitFunction(Shown):
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
        self._signatures: Once[CallSignature] = Once()
        self._programs: Once[Program] = Once()
        self._plans: Once[CardPlan] = Once()
        self._hosts: Once[HostProgram] = Once()
        self._cubins: Once[bytes] = Once()
        self._known = KnownCalls()
        self._files: str | None = None
        self.__name__ = maker.name

    shown_by = "eatss.report.selection:jit_parts"
    __signature__ = _Arguments()

    def __repr__(self) -> str:
        """Never fails: a source that cannot be read is told when the function is called."""
        try:
            arguments = str(self._signature())
        except EatssError as error:
            return f"<eatss.jit {self._maker.name}: {error.message} [{error.code}]>"
        return f"<eatss.jit {self._maker.name}({arguments})>"

    def _arguments(self) -> inspect.Signature:
        """Return the arguments, for :func:`inspect.signature` and completion."""
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
        if arguments:
            values = self._named(arguments, values)
        if not self._known.launch(values):
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
            InputError: ``EATSS-J003`` a size is missing, ``EATSS-J011`` one is no whole number.
        """
        signature = self._signature()
        given = {name: whole_number(name, value) for name, value in sizes.items()}
        known = [one.name for one in sizes_of(signature)]
        check_known(self._maker.name, known, given, ", ".join(known) or "no sizes")
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
            seen=len(self._known),
            graphs=sum(plan.graphs for plan in self._plans.values()),
            expected=tuple(
                one.expected for one in self._programs.values() if one.expected is not None
            ),
        )

    def clear(self) -> None:
        """Forget all programs, and the source; what is on disk stays.

        CUDA graphs of yours that calls were captured in must not be replayed any more.
        """
        self._known.clear()
        self._files = None
        self._plans.clear()
        self._hosts.clear()
        self._cubins.clear()
        self._programs.clear()
        self._signatures.clear()

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
            note_written(values, signature.written)
            return
        plan = self._plan(call)
        order = [one.name for one in signature.of_role("array", "cell")]
        self._known.note(signature, plan, values, call.views)
        where = stream_of_call(given, values, order, call.device)
        plan.launch([call.views[name].pointer for name in order], scalars, where)
        note_written(values, signature.written)

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
        if self._files is None:
            self._files = files
        if files != self._files:
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
            from eatss.session.jit.tuning import NotTunedError, tuned  # noqa: PLC0415 - needs SciPy

            name = _card_name(cupy_for(next(iter(call.views))), call.device)
            try:
                winner = tuned(job, call.sizes, call.device, name, seconds, self._cache)
            except NotTunedError as reason:
                warnings.warn(
                    f"'{self._maker.name}' was not tuned, the model's choice stands: {reason}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            else:
                return self._maker.made(replace(job, recipe=winner.recipe))
        return self._maker.made(job)

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
            said = refusal(program, call.sizes)
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
        sizes = tuple(sorted(call.sizes.items()))
        return self._plans.get(
            (program.text, program.flags, sizes, device),
            lambda: self._loaded(program, call, device),
        )

    def _loaded(self, program: Program, call: _Call, device: int) -> CardPlan:
        cupy = cupy_for(next(iter(call.views)))
        with cupy.cuda.Device(device) as card:
            capability = int(card.compute_capability)
            cubin = self._cubins.get(
                (program.text, program.flags, tuple(sorted(call.sizes.items())), capability),
                lambda: cubin_of(program, call.sizes, capability, cupy, self._cache),
            )
            return CardPlan(cupy, program, call.signature, call.sizes, cubin, device)

    def _hosts_program(self, call: _Call) -> HostProgram:
        from eatss.session.jit.programs import HostProgram  # noqa: PLC0415 - arrays on a card need no compiler

        program = self._program(call)
        return self._hosts.get(
            (program.text, call.dtype), lambda: HostProgram(program, call.signature)
        )

    # -- words --------------------------------------------------------------------------------

    def _named(self, arguments: Sequence[Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name.

        Raises:
            InputError: ``EATSS-J001``, they are too many, or one is given twice.
        """
        names = [one.name for one in self._signature().arguments if one.default is None]
        if len(arguments) > len(names):
            raise input_error(
                "EATSS-J001",
                f"'{self._maker.name}' takes {len(names)} arguments in order, and "
                f"{len(arguments)} are given",
                hint=f"it is called as {self._maker.name}({self._signature()})",
            )
        named = dict(zip(names, arguments, strict=False))
        twice = next((name for name in named if name in values), None)
        if twice is not None:
            raise input_error(
                "EATSS-J001",
                f"'{twice}' is given twice, in order and by name",
                hint="leave one of them out",
            )
        return {**named, **values}

    def _given_stream(self, values: Mapping[str, Any]) -> Any:
        return values.get(KEYWORD) if self._takes_stream() else None

    def _without_stream(self, values: Mapping[str, Any]) -> dict[str, Any]:
        takes = self._takes_stream()
        return {name: value for name, value in values.items() if name != KEYWORD or not takes}

    def _takes_stream(self) -> bool:
        """Tell whether ``stream`` is the word for the stream, and no argument of the program."""
        return all(one.name != KEYWORD for one in self._signature().arguments)


def _card_name(cupy: Any, device: int) -> str:
    """Return the kind of a card: winners are for all of a kind."""
    name = cupy.cuda.runtime.getDeviceProperties(device)["name"]
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _as_scalar(name: str, dtype: np.dtype[Any], value: Any) -> Any:
    """Return a scalar in its type.

    Raises:
        InputError: ``EATSS-J011``, it is no number of that type.
    """
    check_scalar(name, dtype, value)
    return np.asarray(value, dtype=dtype).reshape(())[()]

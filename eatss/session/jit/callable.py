"""A program as a function of arrays: ``gemm(A=A, B=B, C=C, alpha=1.5, beta=1.2)``.

A call like one before was checked then, so that little is left to look at: what calls are told
apart by is read from the arrays themselves, in tenths of a microsecond each. Whatever is not as
before goes the slow way, which says what is wrong.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from eatss.base.diagnostics import EatssError, input_error
from eatss.base.frozen import Numbers, frozen
from eatss.base.text import equations
from eatss.cards import GpuProfile
from eatss.frontend.options import DtypeName
from eatss.measurement.arguments import refusal
from eatss.program import Program
from eatss.program.expression import SizePairs, Sizes
from eatss.session.jit.arrays import (
    ArrayView,
    Reader,
    Values,
    check_aliases,
    check_known,
    check_names,
    check_view,
    checked_place,
    cupy_for,
    note_written,
    reader_of,
    view_of,
    written_pairs,
)
from eatss.session.jit.card import CardPlan, check_scalar, stream_of_call
from eatss.session.jit.programs import Maker, cubin_of
from eatss.session.jit.signature import (
    KEYWORD,
    CallSignature,
    infer_sizes,
    signature_of,
    whole_number,
)
from eatss.verify.data import shape_at

if TYPE_CHECKING:
    from eatss.session.jit.programs import HostProgram

T = TypeVar("T")

_MOST_SEEN = 4096

_DTYPES: dict[str, DtypeName] = {"float16": "_Float16", "float32": "float", "float64": "double"}

ProfileOf: TypeAlias = Callable[[int | None], GpuProfile | None]
"""The profile of a card by its number, ``None`` for the CPU; none where nothing is selected."""


class Once(Generic[T]):
    """Things by key: who asks first makes one, others wait for it; what fails is tried again."""

    def __init__(self) -> None:
        self.things: dict[Hashable, T] = {}
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the thing of a key, made if need be."""
        with self._making.setdefault(key, threading.Lock()):
            if key not in self.things:
                self.things[key] = make()
            return self.things[key]


@frozen
class _Call:
    """A call that was checked: its arrays, sizes, and where they lie."""

    signature: CallSignature
    dtype: DtypeName | None
    views: Mapping[str, ArrayView]
    sizes: Sizes
    device: int | None

    @property
    def exact(self) -> SizePairs:
        """The sizes by their names in C."""
        return tuple((name, self.sizes[one.size]) for name, one in self.signature.sizes.items())


class KnownCalls:
    """The calls of one callable on cards; safe from several threads at once."""

    def __init__(self) -> None:
        self.seen: dict[Hashable, tuple[CardPlan, list[tuple[int, int, int, int]]]] = {}
        self._readers: dict[type, Reader] = {}
        self._signature: CallSignature | None = None

    def launch(self, values: Values) -> bool:
        """Launch a call if there was one like it; tell whether there was.

        Args:
            values: all arguments by name.

        Raises:
            InputError: ``EATSS-J011``, ``J015`` or ``J006``, as for any call.
        """
        signature = self._signature
        if signature is None:
            return False
        pointers = []
        key = []
        try:
            for name in signature.arrays:
                value = values[name]
                pointer, seen = self._readers[type(value)](value)
                pointers.append(pointer)
                key.append(seen)
            key.extend(map(values.get, signature.sizes))
            plan, spans = self.seen[tuple(key)]
        except (KeyError, TypeError, RuntimeError):
            return False
        scalars = [values.get(name) for name in signature.scalars]
        missing = 0 in pointers or any(one is None for one in scalars)
        if missing or values.keys() - signature.known - {KEYWORD}:
            return False
        for one, its, other, others in spans:
            a, b = pointers[one], pointers[other]
            if a < b + others and b < a + its:
                return False
        plan.launch(pointers, scalars, stream_of_call(values, signature, plan.device))
        note_written(values, signature.written)
        return True

    def note(self, call: _Call, plan: CardPlan, values: Values) -> None:
        """Remember a call that was checked, if its arrays are of kinds that are quick to read."""
        signature = call.signature
        key = []
        for name in signature.arrays:
            reader = reader_of(values[name])
            if reader is None:
                return
            self._readers[type(values[name])] = reader
            key.append(reader(values[name])[1])
        key.extend(map(values.get, signature.sizes))
        places = {name: place for place, name in enumerate(signature.arrays)}
        spans = [
            (places[a.name], call.views[a.name].bytes, places[b.name], call.views[b.name].bytes)
            for a, b in written_pairs(signature)
        ]
        if len(self.seen) >= _MOST_SEEN:
            self.seen.clear()
        self.seen[tuple(key)] = plan, spans
        self._signature = signature


@frozen
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

    shape: Numbers
    dtype: np.dtype[Any]


class _Arguments:
    """``__signature__`` of a callable: its arguments; of the class, or of a source that cannot be
    read, nothing of its own.
    """  # noqa: D205

    def __get__(self, function: JitFunction | None, owner: type | None = None) -> Any:
        if function is None:
            return None
        try:
            arguments = function._signature().arguments
        except EatssError:
            return None
        plain, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(one.name, plain) for one in arguments if one.default is None]
            + [
                inspect.Parameter(one.name, keyword, default=one.default)
                for one in arguments
                if one.default is not None
            ]
        )


class JitFunction:
    """A program that is called with arrays; safe from several threads at once.

    Arrays on a card are used where they are, and the call returns when it is enqueued on the
    caller's stream: the current one of PyTorch for its tensors, else that of CuPy, or ``stream=``.
    Arrays of NumPy run on the CPU. What is written is written into the arrays given; nothing is
    returned. The first call with a class of sizes and a type selects, generates and compiles.

    ``__signature__`` and :func:`help` say what it takes.
    """

    def __init__(self, maker: Maker, profile_of: ProfileOf) -> None:
        self._maker = maker
        self._profile_of = profile_of
        self.__name__ = maker.name
        self._forget()

    __signature__ = _Arguments()

    def _forget(self) -> None:
        self._signatures: Once[CallSignature] = Once()
        self._programs: Once[Program] = Once()
        self._plans: Once[CardPlan] = Once()
        self._hosts: Once[HostProgram] = Once()
        self._cubins: Once[bytes] = Once()
        self._known = KnownCalls()
        self._files: str | None = None

    def __repr__(self) -> str:
        """Never fails: a source that cannot be read is told when the function is called."""
        try:
            return f"<eatss.jit {self._maker.name}({self._signature()})>"
        except EatssError as error:
            return f"<eatss.jit {self._maker.name}: {error.message} [{error.code}]>"

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
        call = self._checked(self._named(arguments, values))
        if call.device is None:
            self._host(call)
        else:
            self._plan(call, call.device).reserve()

    def program_for(self, /, *arguments: Any, **values: Any) -> Program:
        """Return the program that such a call runs: its text, kernels and recipe.

        Raises:
            InputError: as for a call.
        """
        return self._program(self._checked(self._named(arguments, values)))

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
        known = signature.sizes
        check_known(self._maker.name, known, given, ", ".join(known) or "no sizes")
        values = infer_sizes(signature, {}, given)
        return {
            name: ArraySpec(shape_at(its.shape, values), its.dtype)
            for name, its in signature.arrays.items()
        }

    def info(self) -> CallInfo:
        """Return what was made so far."""
        programs, plans = [*self._programs.things.values()], [*self._plans.things.values()]
        return CallInfo(
            programs=len(programs),
            plans=len(plans) + len(self._hosts.things),
            seen=len(self._known.seen),
            graphs=sum(plan.graphs for plan in plans),
        )

    def clear(self) -> None:
        """Forget all programs, and the source; what is on disk stays.

        CUDA graphs of yours that calls were captured in must not be replayed any more.
        """
        self._forget()

    # -- the slow way -------------------------------------------------------------------------

    def _slow(self, values: Values) -> None:
        call = self._checked(values)
        signature = call.signature
        scalars = {name: values[name] for name in signature.scalars}
        if call.device is None:
            arrays = {name: view.owner for name, view in call.views.items()}
            for name, one in signature.scalars.items():
                check_scalar(name, one.dtype, values[name])
                scalars[name] = np.asarray(values[name], dtype=one.dtype).reshape(())[()]
            self._host(call).run({**arrays, **scalars}, call.sizes)
        else:
            plan = self._plan(call, call.device)
            self._known.note(call, plan, values)
            pointers = [call.views[name].pointer for name in signature.arrays]
            stream = stream_of_call(values, signature, call.device)
            plan.launch(pointers, [*scalars.values()], stream)
        note_written(values, signature.written)

    def _checked(self, values: Values) -> _Call:
        """Return a call with everything about it checked.

        Raises:
            InputError: ``EATSS-J0xx``.
        """
        signature, dtype = self._fitting(values)
        check_names(self._maker.name, signature, values)
        views = {name: view_of(name, values[name]) for name in signature.arrays}
        for name, one in signature.arrays.items():
            check_view(one, views[name])
        device = checked_place(views)
        shapes = {
            name: views[name].shape for name, one in signature.arrays.items() if one.role == "array"
        }
        given = {
            name: whole_number(name, values[name])
            for name in signature.sizes
            if values.get(name) is not None
        }
        sizes = infer_sizes(signature, shapes, given)
        check_aliases(signature, views)
        return _Call(signature=signature, dtype=dtype, views=views, sizes=sizes, device=device)

    def _fitting(self, values: Values) -> tuple[CallSignature, DtypeName | None]:
        """Return what the program takes in the type of the arrays, and that type."""
        usual = self._signature()
        floating = {
            name: one.dtype
            for name, one in usual.arrays.items()
            if values.get(name) is not None and one.dtype.kind == "f"
        }
        given = {view_of(name, values[name]).dtype for name in floating}
        if len(given) != 1 or given == {*floating.values()}:
            return usual, None
        name = _DTYPES.get(given.pop().name)
        other = usual if name is None else self._signature(name)
        return (usual, None) if other == usual else (other, name)

    def _signature(self, dtype: DtypeName | None = None) -> CallSignature:
        def read() -> CallSignature:
            self._check_unchanged()
            return signature_of(self._maker.interface(dtype))

        return self._signatures.get(dtype, read)

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

    def _program(self, call: _Call) -> Program:
        """Return the program of a call: that of its class, or where it does not do, of its sizes.

        Raises:
            InputError: ``EATSS-J012``, no program runs at these sizes.
        """
        profile, said = self._profile_of(call.device), ""
        for sizes in (self._maker.class_of(call.exact), call.exact):
            for wide in (False, True):
                maker = self._maker.at(call.dtype, sizes, profile, wide=wide)
                key = (call.dtype, sizes, wide, profile, call.device)
                program = self._programs.get(key, lambda maker=maker: self._made(maker))  # type: ignore[misc]
                said = refusal(program, call.sizes)
                if not said:
                    return program
        at = equations(call.exact)
        raise input_error(
            "EATSS-J012",
            f"'{self._maker.name}' does not run at {at}: {said}",
            hint="call it with other sizes",
        )

    def _made(self, maker: Maker) -> Program:
        self._check_unchanged()
        return maker.made()

    def _plan(self, call: _Call, device: int) -> CardPlan:
        """Return the program of a call, loaded on its card."""
        program = self._program(call)
        at = (program.text, program.flags, call.exact)

        def loaded() -> CardPlan:
            cupy = cupy_for(next(iter(call.views)))
            with cupy.cuda.Device(device) as card:
                capability = int(card.compute_capability)
                cubin = self._cubins.get(
                    (*at, capability),
                    lambda: cubin_of(program, call.sizes, capability, cupy, self._maker.cache),
                )
                return CardPlan(cupy, program, call.signature, call.sizes, cubin, device)

        return self._plans.get((*at, device), loaded)

    def _host(self, call: _Call) -> HostProgram:
        from eatss.session.jit.programs import HostProgram  # noqa: PLC0415 - arrays on a card need no compiler

        program = self._program(call)
        return self._hosts.get(
            (program.text, call.dtype), lambda: HostProgram(program, call.signature)
        )

    def _named(self, arguments: Sequence[Any], values: Values) -> dict[str, Any]:
        """Return all arguments by name.

        Raises:
            InputError: ``EATSS-J001``, they are too many, or one is given twice.
        """
        names = [one.name for one in self._signature().arguments if one.default is None]
        named = dict(zip(names, arguments, strict=False))
        twice = [f"'{name}' twice" for name in named if name in values]
        if twice or len(arguments) > len(names):
            many = twice[0] if twice else f"{len(arguments)} arguments in order"
            raise input_error(
                "EATSS-J001",
                f"'{self._maker.name}' is given {many}",
                hint=f"it is called as {self._maker.name}({self._signature()})",
            )
        return {**named, **values}

"""A generated program on a card: its kernels, its arguments, its runs and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from eatss.measurement.arguments import (
    Array,
    ArrayKey,
    CardMemory,
    DataChoice,
    Group,
    Health,
    Kept,
    SharedArguments,
    health,
    key_of,
    launches,
    memory_of,
    refusal,
    scalar_value,
    temporaries_of,
)
from eatss.measurement.card import Difference, LaunchError, is_out_of_memory, translated
from eatss.measurement.compile import CompileTarget, Kernels, Runner
from eatss.measurement.correctness import (
    change_last_bits,
    compare_with_original,
    difference,
    magnified,
    rounding_growth,
)
from eatss.measurement.measurement import CompilerName, KernelResources, LaunchedBy
from eatss.program import Entry, Program
from eatss.program.expression import Sizes
from eatss.verify.data import FLAVOURS, Flavour

_MOST_FAINT = 0.5
"""Share of denormal numbers and zeros after one run above which other data are tried."""

_DRIFT = 0.05
"""Share of denormal numbers and zeros that may come on top of those after one run."""


class CupyWorkload:
    """A program loaded with CuPy; what stands in for it has the same methods.

    Workloads of one card that have the same arguments share their memory, so one runs at a time
    and :meth:`reset` comes before the first run after another one's.
    """

    def __init__(
        self,
        memory: CardMemory,
        program: Program,
        directory: Path,
        sizes: Sizes,
        seed: int,
        cubin: Path,
        target: CompileTarget,
    ) -> None:
        self._memory = memory
        self._program = program
        self._directory = directory
        self._sizes = dict(sizes)
        self._seed = seed
        self._target = target
        self._choice: DataChoice | None = None
        if refused := refusal(program, sizes):
            raise LaunchError(f"the launcher refuses these sizes: {refused}")
        self._uses = memory_of(program, sizes, seed)
        self._written = tuple(use.key for use in self._uses if use.writes)
        self._group: Group = (program.name, *(use.key for use in self._uses))
        with self._at("loading"):
            self._kernels = Kernels(memory.cupy, program, cubin)
        self._arguments: SharedArguments | None
        self._arguments = memory.arguments.setdefault(self._group, SharedArguments(memory.cupy))
        known = memory.choices.get(self._group)
        with self._at("making the arguments of"):
            try:
                self._bind(FLAVOURS[0] if known is None else known.flavour)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                raise self._too_large() from error
        self._runner = Runner(memory.cupy, memory.stream, self._launch)
        self._restorer = Runner(memory.cupy, memory.stream, self._restore)

    @property
    def compiler(self) -> CompilerName:
        """What compiled it."""
        return self._target.toolchain.name

    @property
    def launched_by(self) -> LaunchedBy:
        """How a run is launched; known from the first :meth:`reset` on."""
        return self._runner.launched_by

    @property
    def overwrites_inputs(self) -> bool:
        """Whether a run changes memory that the next run reads."""
        return any(use.overwritten for use in self._uses)

    @property
    def flavour(self) -> Flavour | None:
        """Kind of data, as :mod:`eatss.verify.data` names them; ``None`` before the first reset."""
        return None if self._choice is None else self._choice.flavour

    def reset(self) -> None:
        """Put random data into everything that is read and poison what is only written.

        The first time also captures graphs, which takes a few runs. Where this is the first
        program with these arguments, one run on each kind of data shows which kind stays finite.

        Raises:
            LaunchError: a kernel cannot be launched or fails.
        """
        with self._at("running"):
            if self._choice is None:
                self._choice = self._prepare()
            self._begin()

    def restore(self, count: int = 1) -> None:
        """Enqueue copies of the original data into the inputs that a run overwrites.

        ``count`` times over, through graphs as runs are, so that the card need not wait.
        """
        with self._at("restoring"):
            self._restorer.run(count)

    def timed(self, count: int, *, restoring: bool = False) -> float:
        """Run and wait; return the seconds of all runs by the card's clock.

        Raises:
            LaunchError: the card refused or a kernel failed.
        """
        with self._at("running"):
            if restoring:
                return self._runner.timed_apart(count, lambda: self._restorer.run(1))
            return self._runner.timed(lambda: self._runner.run(count))

    def drifted(self) -> str:
        """Say what is wrong with the values now in memory, "" if nothing."""
        assert self._choice is not None
        after_one_run = self._choice.after_one_run
        with self._at("looking at results"):
            found = self._healths()
        for key, now in found.items():
            if now.broken:
                return f"{now.broken} of {now.elements} elements of {key.name} are infinite or NaN"
            before = after_one_run[key].faint
            if now.faint > before + _DRIFT * now.elements:
                return (
                    f"{now.faint} of {now.elements} elements of {key.name} are zero or denormal, "
                    f"{before} were after one run"
                )
        return ""

    def keep(self) -> Kept:
        """Return a copy of the outputs, a reference for :meth:`difference`."""
        with self._at("keeping results"):
            return {key: (self._array(key).copy(), self._growth(key)) for key in self._written}

    def difference(self, reference: Kept) -> Difference:
        """Compare the outputs with what :meth:`keep` of another workload returned."""
        worst = Difference(equal=True, argument="", worst=0.0, message="")
        with self._at("comparing results"):
            for key in self._written:
                if key not in reference:
                    message = f"the reference has no {key.name} of this shape, type and data"
                    return Difference(equal=False, argument=key.name, worst=inf, message=message)
                found = self._difference(key, *reference[key])
                if not found.equal:
                    return found
                worst = max(worst, found, key=lambda each: each.worst)
        return worst

    def _difference(self, key: ArrayKey, array: Array, growth: float) -> Difference:
        growth = max(self._growth(key), growth)
        return difference(self._memory.cupy, key.name, self._array(key), array, growth)

    def magnified(self, found: Difference) -> str:
        """Say that a difference is of rounding which the program magnifies, "" if it is not."""
        own = [(key, kept) for key, kept in self.keep().items() if key.name == found.argument]
        if len(own) != 1 or found.worst == inf:
            return ""
        ((key, kept),) = own
        self.reset()
        with self._at("changing inputs"):
            for use in self._uses:
                if use.reads:
                    change_last_bits(self._array(use.key))
        self.timed(1)
        with self._at("comparing results"):
            moved = self._difference(key, *kept)
        self.reset()
        return magnified(found, moved, self._program, self._sizes, key.shape)

    def check(self, timeout_s: float) -> str:
        """Compare with the original C at reduced sizes; return what was compared, in words.

        It is done in a process of its own, so that a kernel that fails or hangs there leaves
        this one its card.

        Raises:
            WrongResultError: results differ.
            NotComparedError: the original cannot be compared with.
            LaunchError: a kernel cannot be launched, fails or hangs.
            CompileError: the program does not compile at the sizes compared at.
        """
        return compare_with_original(
            self._program, self._directory, self._seed, timeout_s, self._target
        )

    def resources(self) -> tuple[KernelResources, ...]:
        """Return what each kernel takes of the card."""
        with self._at("looking at kernels"):
            return self._kernels.resources()

    def close(self) -> None:
        """Free what only this workload needs; nothing happens the second time."""
        if self._arguments is not None:
            del self._runner, self._restorer, self._kernels, self._bound
            self._arguments = None
            with self._at("freeing memory"):
                self._memory.cupy.get_default_memory_pool().free_all_blocks()

    # -----------------------------------------------------------------------------------------

    @contextmanager
    def _at(self, doing: str) -> Iterator[None]:
        """Make the card and its stream the current ones, and put its errors in words."""
        with translated(f"{doing} {self._program.name}"), self._memory.current():
            yield

    @property
    def _shared(self) -> SharedArguments:
        assert self._arguments is not None
        return self._arguments

    def _array(self, key: ArrayKey) -> Array:
        return self._shared.array(key)

    def _prepare(self) -> DataChoice:
        """Choose the data, capture graphs; leaves something or other in memory."""
        choices = self._memory.choices
        if self._group not in choices:
            choices[self._group] = self._choose()
        choice = choices[self._group]
        self._bind(choice.flavour)
        self._runner.prepare(self._first_run_s())
        if self.overwrites_inputs:
            self._restorer.prepare(self._runner.timed(self._restorer.launch_once))
        return choice

    def _choose(self) -> DataChoice:
        """Return the first kind of data that stays finite, the best one if none does."""
        tried = list[DataChoice]()
        for flavour in FLAVOURS:
            self._bind(flavour)
            self._first_run_s()
            tried.append(DataChoice(flavour=flavour, after_one_run=self._healths()))
            if tried[-1].harm <= (0, _MOST_FAINT):
                break
        return min(tried, key=lambda one: one.harm)

    def _first_run_s(self) -> float:
        """Run launch by launch on fresh data; return the seconds."""
        self._begin()
        return self._runner.timed(self._runner.launch_once)

    def _begin(self) -> None:
        for use in self._uses:
            self._shared.begin(use)

    def _restore(self) -> Iterator[None]:
        """Enqueue the copies of one restoring, one a step."""
        for use in self._uses:
            if use.overwritten:
                self._memory.cupy.copyto(self._array(use.key), self._shared.original(use.key))
                yield

    def _healths(self) -> dict[ArrayKey, Health]:
        return {key: health(self._memory.cupy, self._array(key)) for key in self._written}

    def _growth(self, key: ArrayKey) -> float:
        """Return how rounding errors of an array grow; integers have none."""
        if key.dtype.kind != "f":
            return 0.0
        return rounding_growth(self._program, self._sizes, key.shape, key.dtype)

    def _bind(self, flavour: Flavour) -> None:
        """Take the memory of all arguments, with data of a kind."""
        self._shared.take(flavour)
        for use in self._uses:
            self._array(use.key)
            if use.overwritten:
                self._shared.original(use.key)
        self._bound = [self._bound_of(entry, flavour) for entry in self._program.entries]

    def _bound_of(self, entry: Entry, flavour: Flavour) -> dict[str, Any]:
        """Return the memory and values of an entry's names."""
        bound: dict[str, Any] = {}
        keys = temporaries_of(entry, self._sizes)
        for key, temporary in zip(keys, entry.temporaries, strict=True):
            bound[temporary.name] = memory = self._array(key)
            if temporary.zeroed:
                memory.fill(0)
        for argument in entry.arguments:
            if argument.role in ("array", "cell"):
                bound[argument.name] = self._array(key_of(argument, self._sizes, self._seed))
            elif argument.role == "scalar":
                bound[argument.name] = scalar_value(argument, self._seed, flavour)
        return bound

    def _too_large(self) -> LaunchError:
        wanted = sum(use.key.bytes * (2 if use.overwritten else 1) for use in self._uses)
        return LaunchError(
            f"the arguments of {self._program.name} and copies of what it overwrites take "
            f"{wanted / 1e9:.2f} GB, more than is free on the card: choose smaller sizes"
        )

    def _launch(self) -> Iterator[None]:
        """Launch the kernels of one run on the current stream, one a step."""
        for launch in launches(self._program, self._sizes):
            self._kernels.launch(launch, self._bound[launch.entry])
            yield

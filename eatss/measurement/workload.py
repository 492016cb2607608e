"""A generated program on a card: its kernels, its arguments, its runs and what becomes of them.

One window: how many runs it takes, and what a run took by it.

Time. The runs of a window are one call of :meth:`Workload.timed`, so the card's queue is never
empty in it, and the time of a run is the card's own time over the number of runs.

Energy. Before the window the same load runs for half a second (``settle_s``), so that clocks and
power are those of the load when the window begins. The meter is read at its own updates inside the
window, which gives the mean power P; the energy of a run is P times the time of a run. A run longer
than ``LONGEST_SETTLE_S`` is not repeated for settling, and a window of few long runs is cut at
updates that are not the edges of runs, which adds at most the time between two updates at either
end.

Where inputs are restored inside the window, every run is preceded by a restoring. The window
lasted D seconds by the clock of the meters and held n runs, so a run with its restoring took
``P D / n`` joules. Restoring alone, repeated for windows of its own, takes ``P_r D_r / n_r``
joules; the mean of these over its windows is subtracted. Time needs no such subtraction, as
:meth:`Workload.timed` leaves restoring out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from eatss.base.frozen import frozen
from eatss.measurement.arguments import (
    Array,
    ArrayKey,
    CardMemory,
    DataChoice,
    Group,
    Health,
    Kept,
    health,
    key_of,
    launches,
    memory_of,
    refusal,
    scalar_value,
    temporaries_of,
)
from eatss.measurement.card import Difference, LaunchError, SteadyLoad
from eatss.measurement.compile import CompileTarget, Kernels, Runner
from eatss.measurement.correctness import (
    change_last_bits,
    compare_with_original,
    difference,
    magnified,
    rounding_growth,
)
from eatss.measurement.cupy_module import is_out_of_memory, translated
from eatss.measurement.measurement import (
    CardState,
    CompilerName,
    KernelResources,
    LaunchedBy,
    LoadState,
    Reading,
    Window,
)
from eatss.measurement.metering import Metering, Span, load_state, most_power_w
from eatss.measurement.options import MeasureOptions
from eatss.program import Entry, Program
from eatss.program.expression import Sizes
from eatss.verify.data import FLAVOURS, Flavour

_MOST_FAINT = 0.5
"""Share of denormal numbers and zeros after one run above which other data are tried."""

_DRIFT = 0.05
"""Share of denormal numbers and zeros that may come on top of those after one run."""


class CupyWorkload:
    """A program loaded with CuPy; see :class:`eatss.measurement.card.Workload`."""

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
        self._closed = False
        self._choice: DataChoice | None = None
        refused = refusal(program, sizes)
        if refused:
            raise LaunchError(f"the launcher refuses these sizes: {refused}")
        self._uses = memory_of(program, sizes, seed)
        self._written = tuple(use.key for use in self._uses if use.writes)
        self._group: Group = (program.name, *(use.key for use in self._uses))
        self._acquired: list[ArrayKey] = []
        with self._at("loading"):
            self._kernels = Kernels(memory.cupy, program, cubin)
        known = memory.choices.get(self._group)
        self._acquire(FLAVOURS[0] if known is None else known.flavour)
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
        self._need_data()
        with self._at("restoring"):
            self._restorer.run(count)

    def timed(self, count: int, *, restoring: bool = False) -> float:
        """Run and wait; return the seconds of all runs by the card's clock.

        Raises:
            LaunchError: the card refused or a kernel failed.
        """
        self._need_data()
        with self._at("running"):
            if restoring:
                return self._runner.timed_apart(count, lambda: self._restorer.run(1))
            return self._runner.timed(lambda: self._runner.run(count))

    def drifted(self) -> str:
        """Say what is wrong with the values now in memory, "" if nothing."""
        self._need_data()
        assert self._choice is not None
        with self._at("looking at results"):
            found = self._healths()
        for key, now in found.items():
            if now.broken:
                return f"{now.broken} of {now.elements} elements of {key.name} are infinite or NaN"
            after_one = self._choice.after_one_run[key]
            if now.faint > after_one.faint + _DRIFT * now.elements:
                return (
                    f"{now.faint} of {now.elements} elements of {key.name} are zero or denormal, "
                    f"{after_one.faint} were after one run"
                )
        return ""

    def keep(self) -> Kept:
        """Return a copy of the outputs, a reference for :meth:`difference`."""
        with self._at("keeping results"):
            return Kept(
                arrays=tuple(
                    (key, self._arrays[key].copy(), self._growth(key)) for key in self._written
                )
            )

    def difference(self, reference: object) -> Difference:
        """Compare the outputs with what :meth:`keep` of another workload returned."""
        assert isinstance(reference, Kept)
        theirs = {key: (array, growth) for key, array, growth in reference.arrays}
        worst = Difference(equal=True, argument="", worst=0.0, message="")
        with self._at("comparing results"):
            for key in self._written:
                if key not in theirs:
                    message = f"the reference has no {key.name} of this shape, type and data"
                    return Difference(equal=False, argument=key.name, worst=inf, message=message)
                found = self._difference(key, *theirs[key])
                if not found.equal:
                    return found
                worst = max(worst, found, key=lambda each: each.worst)
        return worst

    def _difference(self, key: ArrayKey, array: Array, growth: float) -> Difference:
        growth = max(self._growth(key), growth)
        return difference(self._memory.cupy, key.name, self._arrays[key], array, growth)

    def magnified(self, found: Difference) -> str:
        """Say that a difference is of rounding which the program magnifies, "" if it is not."""
        own = [one for one in self.keep().arrays if one[0].name == found.argument]
        if len(own) != 1 or found.worst == inf:
            return ""
        (kept,) = own
        self.reset()
        with self._at("changing inputs"):
            for use in self._uses:
                if use.reads:
                    change_last_bits(self._arrays[use.key])
        self.timed(1)
        with self._at("comparing results"):
            moved = self._difference(*kept)
        self.reset()
        return magnified(found, moved, self._program, self._sizes, kept[0].shape)

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
        if self._closed:
            return
        self._closed = True
        del self._runner, self._restorer, self._kernels
        self._release()
        with self._at("freeing memory"):
            self._memory.cupy.get_default_memory_pool().free_all_blocks()

    # -----------------------------------------------------------------------------------------

    @contextmanager
    def _at(self, doing: str) -> Iterator[None]:
        """Make the card and its stream the current ones, and put its errors in words."""
        with translated(f"{doing} {self._program.name}"), self._memory.current():
            yield

    def _need_data(self) -> None:
        if self._choice is None:
            self.reset()

    def _prepare(self) -> DataChoice:
        """Choose the data, capture graphs; leaves something or other in memory."""
        choice = self._memory.choices.get(self._group)
        if choice is None:
            choice, run_s = self._choose()
            self._memory.choices[self._group] = choice
        else:
            if self._flavour != choice.flavour:  # found after this one was loaded
                self._acquire(choice.flavour)
            self._begin()
            run_s = self._runner.timed(self._runner.launch_once)
        self._runner.prepare(run_s)
        if self.overwrites_inputs:
            self._restorer.prepare(self._runner.timed(self._restorer.launch_once))
        return choice

    def _choose(self) -> tuple[DataChoice, float]:
        """Return the first kind of data that stays finite, and how long a run took."""
        tried: list[DataChoice] = []
        run_s = 0.0
        for flavour in FLAVOURS:
            self._acquire(flavour)
            self._begin()
            run_s = self._runner.timed(self._runner.launch_once)
            found = DataChoice(flavour=flavour, after_one_run=self._healths())
            if not found.broken and found.faint_share <= _MOST_FAINT:
                return found, run_s
            tried.append(found)
        best = min(tried, key=lambda one: (one.broken, one.faint_share))
        if self._flavour != best.flavour:
            self._acquire(best.flavour)
        return best, run_s

    def _begin(self) -> None:
        for use in self._uses:
            self._memory.store.begin(replace(use, key=self._with_data(use.key)))

    def _restore(self) -> Iterator[None]:
        """Enqueue the copies of one restoring, one a step."""
        for use in self._uses:
            if use.overwritten:
                original = self._memory.store.original(self._with_data(use.key))
                self._memory.cupy.copyto(self._arrays[use.key], original)
                yield

    def _healths(self) -> dict[ArrayKey, Health]:
        return {key: health(self._memory.cupy, self._arrays[key]) for key in self._written}

    def _growth(self, key: ArrayKey) -> float:
        """Return how rounding errors of an array grow; integers have none."""
        if key.dtype.kind != "f":
            return 0.0
        return rounding_growth(self._program, self._sizes, key.shape, key.dtype)

    def _with_data(self, key: ArrayKey) -> ArrayKey:
        return replace(key, flavour=self._flavour)

    def _acquire(self, flavour: Flavour) -> None:
        """Take the memory of all arguments, with data of a kind.

        Raises:
            LaunchError: it is more than the card has.
        """
        self._release()
        self._flavour: Flavour = flavour
        store = self._memory.store
        self._arrays: dict[ArrayKey, Array] = {}
        self._bound: list[dict[str, Any]] = []
        try:
            with self._memory.current():
                for use in self._uses:
                    self._arrays[use.key] = self._acquire_one(self._with_data(use.key))
                    if use.overwritten:
                        store.original(self._with_data(use.key))
                self._bound += (self._bound_of(entry) for entry in self._program.entries)
        except Exception as error:
            if is_out_of_memory(error):
                raise self._too_large() from error
            with translated(f"making the arguments of {self._program.name}"):
                raise

    def _bound_of(self, entry: Entry) -> dict[str, Any]:
        """Return the memory and values of an entry's names."""
        bound: dict[str, Any] = {}
        for key, temporary in zip(
            temporaries_of(entry, self._sizes), entry.temporaries, strict=True
        ):
            bound[temporary.name] = memory = self._acquire_one(key)
            if temporary.zeroed:
                memory.fill(0)
        for argument in entry.arguments:
            if argument.role in ("array", "cell"):
                key = key_of(argument, self._sizes, self._seed)
                bound[argument.name] = self._arrays[key]
            elif argument.role == "scalar":
                bound[argument.name] = scalar_value(argument, self._seed, self._flavour)
        return bound

    def _acquire_one(self, key: ArrayKey) -> Array:
        array = self._memory.store.acquire(key)
        self._acquired.append(key)
        return array

    def _release(self) -> None:
        self._arrays, self._bound = {}, []
        for key in self._acquired:
            self._memory.store.release(key)
        self._acquired = []

    def _too_large(self) -> LaunchError:
        wanted = sum(use.key.bytes * (2 if use.overwritten else 1) for use in self._uses)
        self._release()
        held = self._memory.store.bytes()
        free, total = self._memory.cupy.cuda.runtime.memGetInfo()
        return LaunchError(
            f"the arguments of {self._program.name} and copies of what it overwrites take "
            f"{wanted / 1e9:.2f} GB; of the card's {total / 1e9:.2f} GB other programs here hold "
            f"{held / 1e9:.2f} GB and {free / 1e9:.2f} GB are free: choose smaller sizes"
        )

    def _launch(self) -> Iterator[None]:
        """Launch the kernels of one run on the current stream, one a step."""
        for launch in launches(self._program, self._sizes):
            self._kernels.launch(launch, self._bound[launch.entry])
            yield


SETTLE_S = 0.5
LONGEST_SETTLE_S = 10.0
"""In a run that takes longer the card comes to power early enough to be of no weight."""

MARGIN = 1.02
"""Windows are planned this much longer, so that a slightly faster card does not cut them short."""

SHORT_FACTOR = 1.1
"""Windows of a variant are planned this much longer once one was too short, for good: to take one
again since its runs were fast, time and again, would leave the slow ones in the mean."""

GAP_LIMIT = 0.01
"""Share of a window in which the card did nothing that is worth a remark. Where restorings are
subtracted, energy is not known then: what the card drew waiting is of neither."""

LOOK_S = 0.2
"""Time between looks at clocks while a load runs; each takes the driver a millisecond."""


@frozen
class Pace:
    """How long a run takes by the meters' clock, and how long settling and windows are to last."""

    run_s: float
    window_s: float
    settle_s: float = SETTLE_S

    @property
    def runs(self) -> int:
        """Runs of a window."""
        return max(1, math.ceil(self.window_s * MARGIN / self.run_s))

    @property
    def settling_runs(self) -> int:
        """Runs before a window."""
        return 0 if self.run_s > LONGEST_SETTLE_S else max(1, math.ceil(self.settle_s / self.run_s))

    @property
    def expected_s(self) -> float:
        """Seconds that settling and the window take."""
        return (self.runs + self.settling_runs) * self.run_s


@frozen
class RawWindow:
    """A window before energies are those of a run.

    ``most_power_w`` is the highest value in it of a sensor of power, ``None`` without one.
    """

    span: Span
    runs: int
    card_s: float
    readings: tuple[Reading, ...]
    no_energy: str
    before: CardState
    after: CardState
    during: LoadState
    most_power_w: float | None = None

    @property
    def time_s(self) -> float:
        """Seconds of one run by the card's clock."""
        return self.card_s / self.runs

    @property
    def power_w(self) -> float | None:
        """Mean power, ``None`` where ``no_energy`` says why."""
        return None if self.no_energy else self.readings[0].power_w

    def gap(self, restoring_s: float) -> float:
        """Return the share of the window in which the card did nothing.

        ``restoring_s`` is the time of a restoring before each run, 0 without.
        """
        return 1 - (self.card_s + self.runs * restoring_s) / self.span.duration_s


def least_window_s(options: MeasureOptions, period_s: float | None) -> float:
    """Return how long windows are: the updates at both edges do not count as inside."""
    if period_s is None:
        return options.least_window_s
    return max(options.least_window_s, (options.least_updates + 2) * period_s)


def take_window(
    metering: Metering, workload: SteadyLoad, pace: Pace, *, restoring: bool
) -> RawWindow:
    """Take one window of runs.

    Raises:
        LaunchError: the card refused or a kernel failed.
    """
    card = metering.card
    before = card.state()
    workload.reset()
    card.wait()
    with metering.recording() as traces:
        load_begin_s = card.now()
        if pace.settling_runs:
            workload.timed(pace.settling_runs, restoring=restoring)
        with card.sampled_states(LOOK_S) as seen:
            begin_s = card.now()
            card_s = workload.timed(pace.runs, restoring=restoring)
            end_s = card.now()
        after = card.state()
    span = Span(load_begin_s=load_begin_s, begin_s=begin_s, end_s=end_s)
    readings, why = metering.readings(traces, span)
    return RawWindow(
        span=span,
        runs=pace.runs,
        card_s=card_s,
        readings=readings,
        no_energy=why,
        before=before,
        after=after,
        during=load_state(seen),
        most_power_w=most_power_w(traces, span),
    )


def too_short(raw: RawWindow, options: MeasureOptions) -> bool:
    """Return whether the window lasts too short or its meter moved too few times."""
    return raw.span.duration_s < options.least_window_s or _too_few(raw, options)


def _too_few(raw: RawWindow, options: MeasureOptions) -> bool:
    return not raw.no_energy and any(
        one.updates < options.least_updates for one in raw.readings[:1]
    )


def longer(pace: Pace, raw: RawWindow, options: MeasureOptions) -> Pace:
    """Return the pace after a window that was too short or gave no reading."""
    wanted_s = pace.window_s
    if raw.no_energy:
        wanted_s *= 1.5
    elif raw.span.duration_s < options.least_window_s:
        wanted_s *= SHORT_FACTOR
    elif _too_few(raw, options):
        reading = raw.readings[0]
        lost_s = raw.span.duration_s - reading.span_s
        per_update_s = reading.span_s / reading.updates
        wanted_s = max(wanted_s, lost_s + (options.least_updates + 1) * per_update_s)
    return follow(replace(pace, window_s=wanted_s), raw)


def follow(pace: Pace, raw: RawWindow) -> Pace:
    """Return the pace for the next window, from how long the runs of this one took."""
    return replace(pace, run_s=raw.span.duration_s / raw.runs)


def finish_window(
    raw: RawWindow, *, origin_s: float, restoring_j: float | None, no_energy: str
) -> Window:
    """Return a window with the energy of one run.

    Args:
        raw: as taken.
        origin_s: when the measurement began.
        restoring_j: energy of one restoring where inputs were restored inside the window.
        no_energy: why the energy is not known, "" if it is.
    """
    energy_j: float | None = None
    if raw.power_w is not None and not no_energy:
        if restoring_j is None:
            energy_j = raw.power_w * raw.time_s
        else:
            energy_j = raw.power_w * raw.span.duration_s / raw.runs - restoring_j
    return Window(
        begin_s=raw.span.begin_s - origin_s,
        duration_s=raw.span.duration_s,
        runs=raw.runs,
        time_s=raw.time_s,
        energy_j=energy_j,
        power_w=None if energy_j is None else energy_j / raw.time_s,
        readings=raw.readings,
        before=raw.before,
        after=raw.after,
        during=raw.during,
    )


def idle_power_w(metering: Metering, *, pause_s: float, seconds: float) -> float | str:
    """Return the power of the card doing nothing, or why it is not known.

    Args:
        metering: meters of the card.
        pause_s: time that is left out first, for the card to come to rest.
        seconds: time that is measured.
    """
    sleep = metering.card.sleep
    return metering.power_w(partial(sleep, pause_s), partial(sleep, seconds))

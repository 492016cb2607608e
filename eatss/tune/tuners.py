"""Optuna's samplers as strategies, through Optuna's own ask and tell.

Numbers are given to it by their position among the values of their name, so that it knows their
order and not their distances. What it proposes outside the space, or again, goes to the nearest
point that is new; it is told of the point that was measured.

Kernel Tuner's own strategies, ``kernel-tuner:genetic_algorithm`` and others.

They call a runner for what they want to be measured, and go on when it returns. Here they run in a
thread, and the runner hands points over and waits for what they cost. Either that thread or the one
that asks is at work, never both.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from math import isfinite
from queue import SimpleQueue
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.stats  # noqa: F401 - loading it draws numbers, which a strategy shall not see

from eatss.base.diagnostics import InputError, input_error
from eatss.tune.points import Configuration, Point, variant_key
from eatss.tune.strategy import WAIT, Asked, KnownPoints, Strategy, StrategyJob, needed

_OPTUNA = "eatss[optuna]"
SAMPLERS = {
    "tpe": ("TPESampler", ""),
    "random": ("RandomSampler", ""),
    "cmaes": ("CmaEsSampler", "cmaes"),
    "gp": ("GPSampler", "torch"),
}
"""Samplers by our names: Optuna's, and the package that it needs besides."""


def optuna_strategy(job: StrategyJob) -> Strategy:
    """Return Optuna's sampler ``job.choice``, ``tpe`` where none is named.

    Raises:
        InputError: ``EATSS-T001`` there is no such sampler, ``EATSS-T002`` Optuna or what the
            sampler needs is not installed.
    """
    choice = job.choice or "tpe"
    if choice not in SAMPLERS:
        raise input_error(
            "EATSS-T001",
            f"the strategy 'optuna' has no choice '{choice}'",
            hint=f"choose one of: {', '.join(f'optuna:{name}' for name in SAMPLERS)}",
        )
    sampler, besides = SAMPLERS[choice]
    optuna = needed("optuna", f"optuna:{choice}", _OPTUNA)
    if besides:
        needed(besides, f"optuna:{choice}", besides)
    return OptunaStrategy(optuna, sampler, job)


class OptunaStrategy:
    """A study of Optuna."""

    def __init__(self, optuna: Any, sampler: str, job: StrategyJob) -> None:
        self._optuna = optuna
        self._known = KnownPoints(job.space, job.seed)
        self._trials: dict[str, Any] = {}
        said = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            make = getattr(optuna.samplers, sampler)
            self._study = optuna.create_study(direction="minimize", sampler=make(seed=job.seed))
        optuna.logging.set_verbosity(said)
        self._over = {name: self._distribution(name) for name in self._known.names}

    def ask(self) -> Asked:
        """Return what Optuna proposes, or the new point that is nearest to it."""
        trial = self._study.ask(self._over)
        places = [trial.params[name] for name in self._known.names]
        values = self._known.values
        point = {n: values[n][place] for n, place in zip(self._known.names, places, strict=True)}
        if self._known.is_new(point):
            self._trials[variant_key(point)] = trial
        else:
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            nearest = self._known.nearest_new(point)
            if nearest is None:
                return None
            point = nearest
        self._known.use(point)
        return point

    def tell(self, point: Point, cost: float) -> None:
        """Let Optuna know what a point costs, whoever proposed it."""
        self._known.use(point)
        trial = self._trials.pop(variant_key(point), None)
        if trial is not None:
            self._study.tell(trial, cost)
        elif self._known.holds(point):
            places = dict(zip(self._known.names, self._known.places(point), strict=True))
            self._study.add_trial(
                self._optuna.trial.create_trial(params=places, distributions=self._over, value=cost)
            )

    def _distribution(self, name: str) -> Any:
        count = len(self._known.values[name])
        if self._known.is_number(name):
            return self._optuna.distributions.IntDistribution(0, count - 1)
        return self._optuna.distributions.CategoricalDistribution(tuple(range(count)))


_KERNEL_TUNER = "eatss[kernel-tuner]"
_OTHERS = ("brute_force", "nsga2", "nsga3", "pyatf_strategies")
"""Not offered: what ``exhaustive`` is, those of several objectives, one with a space of its own."""

_MS = 1e3
_MAX_THREADS = 1 << 30
_REPEATS = 300


def kernel_tuner_strategy(job: StrategyJob) -> Strategy:
    """Return Kernel Tuner's strategy ``job.choice``.

    Raises:
        InputError: ``EATSS-T001`` it has no such strategy, ``EATSS-T002`` it is not installed.
    """
    name = f"kernel-tuner:{job.choice}"
    interface = needed("kernel_tuner.interface", name, _KERNEL_TUNER)
    names = [one for one in interface.strategy_map if one not in _OTHERS]
    if job.choice not in names:
        raise input_error(
            "EATSS-T001",
            f"the strategy 'kernel-tuner' has no choice '{job.choice}'"
            if job.choice
            else "the strategy 'kernel-tuner' needs one of Kernel Tuner's behind a colon",
            hint=f"choose one of: {', '.join(f'kernel-tuner:{one}' for one in names)}",
        )
    try:
        tune = interface.strategy_map[job.choice].tune
    except ImportError as error:
        raise _missing(job.choice, error) from None
    return KernelTunerStrategy(tune, job)


def _missing(choice: str, error: ImportError) -> InputError:
    return input_error(
        "EATSS-T002",
        f"the strategy 'kernel-tuner:{choice}' needs a package that does not load: {error}",
        hint="install it, or choose another strategy",
    )


class KernelTunerStrategy:
    """A strategy of Kernel Tuner at work in a thread, which begins when it is first asked.

    While it works ``random`` and NumPy throw dice of its own, from the seed, and what it prints
    goes to standard error.
    """

    def __init__(self, tune: Any, job: StrategyJob) -> None:
        self._name = job.choice
        self._known = KnownPoints(job.space, job.seed)
        self._handover = _Handover()
        self._thread = Thread(
            target=self._handover.work, args=(tune, self._known, job.seed), daemon=True
        )
        self._dice = _Dice(job.seed)
        self._costs: dict[str, float] = {}
        self._batch: list[Configuration] = []
        self._to_ask: deque[Configuration] = deque()
        self._ended = False
        self._repeats = 0

    def ask(self) -> Asked:
        """Return a point of those that the strategy waits for; ``WAIT`` until all are told.

        Raises:
            InputError: ``EATSS-T005``, the strategy failed.
        """
        while not self._ended:
            while self._to_ask:
                point = self._to_ask.popleft()
                if variant_key(point) not in self._costs:
                    return point
            if not all(variant_key(point) in self._costs for point in self._batch):
                return WAIT
            self._go_on()
        return None

    def tell(self, point: Point, cost: float) -> None:
        """Learn a cost, for when the strategy wants it."""
        self._costs[variant_key(point)] = cost

    def close(self) -> None:
        """End the thread."""
        if self._thread.is_alive() and not self._ended:
            with self._dice.thrown():
                self._handover.costs.put(None)
                self._thread.join(timeout=10)
        self._ended = True

    def _go_on(self) -> None:
        """Let the strategy work until it wants something or ends."""
        with self._dice.thrown():
            if self._thread.ident is None:
                self._thread.start()
            else:
                self._handover.costs.put([self._costs[variant_key(one)] for one in self._batch])
            wanted = self._handover.wanted.get()
        if isinstance(wanted, ImportError):
            self._ended = True
            raise _missing(self._name, wanted) from wanted
        if isinstance(wanted, Exception):
            self._ended = True
            raise input_error(
                "EATSS-T005",
                f"Kernel Tuner's strategy '{self._name}' failed: {type(wanted).__name__}: {wanted}",
                hint="choose another strategy; what was measured is kept",
            ) from wanted
        if wanted is None:
            self._ended = True
            return
        self._batch = wanted
        different = {variant_key(point): point for point in wanted}
        self._to_ask = deque(one for key, one in different.items() if key not in self._costs)
        self._repeats = 0 if self._to_ask else self._repeats + 1
        if self._repeats > _REPEATS:  # it is going round in circles
            self.close()


class _Handover:
    """The two ends of the thread: points that are wanted go out, what they cost comes in.

    ``wanted`` ends with ``None`` or with the error of the strategy; ``None`` among ``costs`` tells
    the strategy that its budget is spent.
    """

    def __init__(self) -> None:
        self.wanted: SimpleQueue[list[Configuration] | Exception | None] = SimpleQueue()
        self.costs: SimpleQueue[Sequence[float] | None] = SimpleQueue()

    def work(self, tune: Any, known: KnownPoints, seed: int) -> None:
        """Run the strategy to its end; the thread."""
        interface = needed("kernel_tuner.interface", "kernel-tuner", _KERNEL_TUNER)
        util = needed("kernel_tuner.util", "kernel-tuner", _KERNEL_TUNER)
        searchspace = needed("kernel_tuner.searchspace", "kernel-tuner", _KERNEL_TUNER)
        try:
            rows = {str(row): point for row, point in enumerate(known.points)}
            space = searchspace.Searchspace(
                None, None, None, from_cache={"tune_params": known.values, "cache": rows}
            )
            most = len(known.points)
            options = interface.Options(
                strategy_options=interface.Options(max_fevals=most),
                max_fevals=most,
                budget=util.TuningBudget(None, most),
                objective=["time"],
                objective_higher_is_better=[False],
                tune_params=known.values,
                restrictions=None,
                restrictions_unmodified=None,
                cache={},
                cachefile=None,
                metrics=None,
                observers=None,
                verbose=False,
                seed=seed,
            )
            tune(space, Runner(self, known, util), options)
        except util.StopCriterionReached:
            pass
        except Exception as error:  # of another package: anything may come of it
            self.wanted.put(error)
            return
        self.wanted.put(None)


class Runner:
    """What Kernel Tuner's strategies take for a runner."""

    def __init__(self, handover: _Handover, known: KnownPoints, util: Any) -> None:
        self.dev = SimpleNamespace(max_threads=_MAX_THREADS)
        self.simulation_mode = False
        self.units = {"time": "ms"}
        self._handover = handover
        self._known = known
        self._util = util
        self._visited: set[str] = set()
        self._stopped = False

    def add_strategy_time(self, seconds: float) -> None:
        """Take note of nothing."""

    def available_parallelism(self) -> int:
        """Return how many configurations are measured at once."""
        return 1

    def get_device_info(self) -> SimpleNamespace:
        """Return a device without limits."""
        return self.dev

    def get_environment(self, tuning_options: Any) -> dict[str, Any]:
        """Return nothing about the machine."""
        del tuning_options
        return {}

    def shutdown(self) -> None:
        """Do nothing."""

    def run(self, parameter_space: Iterable[Any], tuning_options: Any) -> list[dict[str, Any]]:
        """Return what configurations cost, as soon as that is known.

        Raises:
            StopCriterionReached: nothing more will be measured.
        """
        names = self._known.names
        points = [dict(zip(names, one, strict=True)) for one in parameter_space]
        wanted = [point for point in points if self._known.holds(point)]
        if self._stopped or (costs := self._costs(wanted)) is None:
            self._stopped = True
            raise self._util.StopCriterionReached("the budget is spent")
        found = {variant_key(one): cost for one, cost in zip(wanted, costs, strict=True)}
        new = found.keys() - self._visited
        self._visited |= new
        tuning_options.budget.add_evaluations(len(new))
        return [self._result(point, found.get(variant_key(point))) for point in points]

    def _costs(self, wanted: list[Configuration]) -> Sequence[float] | None:
        if not wanted:
            return ()
        self._handover.wanted.put(wanted)
        return self._handover.costs.get()

    def _result(self, point: Configuration, cost: float | None) -> dict[str, Any]:
        times = dict.fromkeys(("compile_time", "verification_time", "benchmark_time"), 0.0)
        if cost is None:
            return {**point, **times, "__error__": self._util.InvalidConfig()}
        if not isfinite(cost):
            return {**point, **times, "__error__": self._util.RuntimeFailedConfig()}
        return {**point, **times, "time": cost * _MS}


class _Dice:
    """The dice of ``random`` and NumPy that a strategy has for itself.

    Generators that NumPy would seed from the system are seeded by these dice too.
    """

    def __init__(self, seed: int) -> None:
        self._python = random.Random(seed).getstate()  # noqa: S311 - no secret
        self._numpy = np.random.RandomState(seed % 2**32).get_state()

    @contextmanager
    def thrown(self) -> Iterator[None]:
        """Have these dice, and nothing on standard output, within."""
        before = random.getstate(), np.random.get_state()
        fresh = np.random.default_rng
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        np.random.default_rng = lambda seed=None: fresh(_drawn() if seed is None else seed)
        try:
            with redirect_stdout(sys.stderr), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # theirs are about their own arithmetic
                yield
        finally:
            self._python, self._numpy = random.getstate(), np.random.get_state()
            np.random.default_rng = fresh
            random.setstate(before[0])
            np.random.set_state(before[1])


def _drawn() -> int:
    return int(np.random.randint(2**31))

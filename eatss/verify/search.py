"""Which runs of our own choice come to code of the kernels that none ran, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from math import inf, log2
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from eatss.base.frozen import Names, Numbers, their_names
from eatss.program import Program
from eatss.program.expression import Sizes
from eatss.verify.conditions import Conditions, Reached
from eatss.verify.data import EXTREME, INFINITE, SIGNED, Flavour
from eatss.verify.device import CpuMachine
from eatss.verify.instrumentation import instrumented_text
from eatss.verify.result import Run, Untaken
from eatss.verify.sizes import (
    ASKS_QUOTIENTS,
    ASKS_START,
    TESTS_VALUES,
    boundary_sizes,
    estimated_points,
    launched_kernels,
    varied_sizes,
)

_BUDGET_STEPS, _SEARCH_STEPS, _SURE_STEPS = 6e8, 3e9, 1.5e10
"""Events of generated code, some 4e8 a second, at which no further run begins: while all code ran;
of runs that may come to code that none ran; of those that surely do."""

_SPARE = Run(entry=0, sizes=(), limit_s=1.0, spare=True)
"""A run that need not be."""

_MOST_TRIED, _MOST_VAIN, _GROWTH = 3, 8, 1.15
"""Runs that surely come to a place; those in a row that perhaps do and show nothing, and how much
larger they become, in points."""

_SHARE = 3
"""A run that may be left out takes at most this part of what is left."""

Way: TypeAlias = tuple[int, bool]
"""The number of a branch, and what holds there."""


class Search:
    """Chooses runs of a program.

    Args:
        program: the program.
        beside: steps that a run takes beside those of generated code.
    """

    def __init__(self, program: Program, beside: int) -> None:
        self._program = program
        self._beside = beside
        self.branches = instrumented_text(program)[1]
        self.machines: dict[object, CpuMachine] = {}
        self._conditions = Conditions(program, self.branches)
        asked = ASKS_START.findall(program.text)
        self._shifts: list[tuple[Numbers, ...]] = [
            ((), *((k,) for k, one in enumerate(entry.arguments) if one.name in asked))
            for entry in program.entries
        ]
        kernels = {kernel.name for kernel in program.kernels}
        self._in_kernels = [k for k, one in enumerate(self.branches) if one.function in kernels]
        self._aimed: set[Run] = set()
        self.too_long: list[Run] = []
        self._steps, self._spent, self._ran = 0, 0.0, 0.0
        self._points = cache(lambda sizes: estimated_points(program, dict(sizes)))
        self._launched = cache(lambda at, sizes: launched_kernels(program.entries[at], dict(sizes)))
        self._to = cache(self._runs_to)
        self._varied = cache(lambda: varied_sizes(program))

    def steps(self) -> int:
        """Return the events that all libraries have counted together; 0 on a card."""
        return sum(machine.steps for machine in self.machines.values())

    def untaken(self) -> list[Way]:
        """Return the ways out of branches of kernels that no thread took; none on a card."""
        taken = self._taken()
        ways = product(self._in_kernels, (False, True))
        return [(k, way) for k, way in ways if not taken[k, int(way)]]

    def note(self, run: Run) -> None:
        """Learn from a run how long others will take, in steps that all machines count alike."""
        if not run.probe:
            taken = self.steps() - self._steps
            self._steps += taken
            self._spent += taken + self._beside
            self._ran += self._points(run.sizes) if taken else 0.0

    def aimed(self) -> Iterator[Run]:
        """Yield the cheapest run that comes to code that none ran, surely or else perhaps.

        Places behind conditions that none met are not tried by chance. What was tried so has to
        grow until it shows something.
        """
        tried: Counter[Way] = Counter()
        fewest, vain, least = inf, 0, 0.0
        while True:
            unrun = self._unrun()
            if len(unrun) < fewest:
                fewest, vain, least = len(unrun), 0, 0.0
            sure = [(*way, False) for way in unrun if tried[way] < _MOST_TRIED]
            run = self._cheapest("surely", sure, _SURE_STEPS)
            if run is not None:
                tried.update(way for way in unrun if self._reached(run, *way) == "surely")
                yield run
                continue
            open_ = [
                (k, way, True)
                for k, way in unrun
                if self.branches[k].kind != "part" and not {*self.branches[k].inside} & {*unrun}
            ]
            if vain < _MOST_VAIN:
                run = self._cheapest("perhaps", open_, _SEARCH_STEPS, least)
            if run is None:
                return
            vain += 1
            if vain % len(self._shifts[run.entry]) == 0:
                least = _GROWTH * self._points(run.sizes)
            yield run

    def others(self) -> Iterator[Run]:
        """Yield cheap runs whose sizes no condition asks for, in an order of chance."""
        varied = [*self._varied()]
        Random(0).shuffle(varied)  # noqa: S311 - not for secrets
        every = product((*boundary_sizes(self._program), *varied), range(len(self._shifts)))
        for number, (sizes, entry) in enumerate(every):
            shifts = self._shifts[entry]
            run = replace(
                _SPARE,
                entry=entry,
                sizes=tuple(sizes.items()),
                flavour=SIGNED if number % 2 == 0 else "uniform",
                shifted=shifts[number % len(shifts)],
            )
            is_cheap = _SHARE * self._price(run) <= _BUDGET_STEPS - self._spent
            if is_cheap and run not in self._aimed:
                yield run

    def idle(self) -> Names:
        """Return the kernels that never ran; none on a card."""
        machines = self.machines.values()
        names = their_names(self._program.kernels) if machines else ()
        return tuple(one for one in names if not any(machine.ran(one) for machine in machines))

    def untaken_branches(self, *, ended_early: bool) -> tuple[Untaken, ...]:
        """Return branches that no run took; none on a card.

        Args:
            ended_early: nothing more was looked for, so that no code counts as never run.
        """
        if not self.machines:
            return ()
        taken = self._taken()
        unrun = set() if ended_early else {number for number, _ in self._reachable()}
        return tuple(
            Untaken(
                function=branch.function,
                line=branch.line,
                condition=branch.condition,
                never="false" if true else "true" if false else "reached",
                unrun=number in unrun,
            )
            for number, branch in enumerate(self.branches)
            for false, true in [taken[number]]
            if branch.kind != "part" and not (false and true)
        )

    # -----------------------------------------------------------------------------------------

    def _taken(self) -> npt.NDArray[np.uint64]:
        """Return what all libraries have counted of each branch, as :meth:`CpuMachine.taken`."""
        counts = [machine.taken(len(self.branches)) for machine in self.machines.values()]
        return sum(counts[1:], counts[0]) if counts else np.ones((len(self.branches), 2), np.uint64)

    def _unrun(self) -> list[Way]:
        """Return the ways to code that none ran."""
        return [(k, way) for k, way in self.untaken() if way in self.branches[k].ways]

    def _cheapest(
        self,
        certainty: Reached,
        places: Sequence[tuple[int, bool, bool]],
        most_steps: float,
        least_points: float = 0.0,
    ) -> Run | None:
        """Return the cheapest run to one of some places, and mark it as done."""
        found = []
        for number, way, anywhere in places:
            for run in self._to(number, way, anywhere):
                if run in self._aimed or self._points(run.sizes) < least_points:
                    continue
                if self._reached(run, number, way) == certainty:
                    found.append(run)
                    break
        best = min(found, key=self._price, default=None)
        if best is None or self._price(best) > most_steps - self._spent:
            return None
        self._aimed.add(best)
        return best

    def _runs_to(self, number: int, way: bool, anywhere: bool) -> list[Run]:
        """Return runs at sizes that a place asks for, or ``anywhere``, about the cheapest first.

        Of those alike, one with more elements is first.
        """
        more = self._varied() if anywhere else ()

        def order(run: Run) -> tuple[int, float, bool]:
            elements = sum(value for _, value in run.sizes)
            return round(2 * log2(self._points(run.sizes))), -elements, bool(run.shifted)

        return sorted(self._runs_at(number, way, more), key=order)

    def _runs_at(
        self, number: int, way: bool, more: Sequence[Sizes] = (), *, affordable: bool = True
    ) -> Iterator[Run]:
        """Yield runs of each entry at sizes, with arrays that start where a place depends on."""
        inside = self.branches[number].inside
        least = [self._conditions.least_sizes(number, True)]
        if not way:  # sizes may be too small for it to hold, or larger than it needs
            least.insert(0, self._conditions.least_sizes(*inside[-1]) if inside else {})
        chosen = [
            sizes
            for one in least
            for sizes in varied_sizes(self._program, one, affordable=affordable)
        ]
        chosen += more
        chain = (number, *(k for k, _ in inside))
        asks = self._conditions.asks_where_arrays_start(number)
        conditions = [self.branches[k].condition for k in chain]
        flavour: Flavour = "uniform"
        if any(map(ASKS_QUOTIENTS.search, conditions)):
            flavour = EXTREME
        elif any(TESTS_VALUES in one for one in conditions):
            flavour = INFINITE
        for entry, shifts in enumerate(self._shifts):
            for shifted, sizes in product(shifts if asks else ((),), chosen):
                yield replace(
                    _SPARE,
                    entry=entry,
                    sizes=tuple(sizes.items()),
                    flavour=flavour,
                    shifted=shifted,
                )

    def _reachable(self) -> Iterator[Way]:
        """Yield ways to code that none ran, to which conditions say that some sizes come.

        They need not be little work. Where conditions do not tell whether a place is come to, its
        own has to hold at some sizes and to ask for no remainder (which of two ways to copy), and
        no other place of the kernel that asks for the same ran: a loop asks in all of its versions
        which buffer is next, and whether there is another tile.
        """
        untaken = {*self.untaken()}
        ran = {
            (self.branches[k].function, self.branches[k].condition, way)
            for k in self._in_kernels
            for way in (False, True)
            if (k, way) not in untaken
        }
        for number, way in self._unrun():
            branch = self.branches[number]
            if branch.kind == "part":
                continue
            tried = []
            found = set()
            for run in self._runs_at(number, way, affordable=False):
                tried.append(run)
                found.add(self._reached(run, number, way))
                if "surely" in found:
                    break
            if "surely" in found or (
                "perhaps" in found
                and "%" not in branch.condition
                and (branch.function, branch.condition, way) not in ran
                and any(self._reached(run, number, way, alone=True) == "surely" for run in tried)
            ):
                yield number, way

    def _price(self, run: Run) -> float:
        """Return the steps that a run will take, judged by those that ran.

        Where the original took too long, it does so at sizes of which none is smaller, too.
        """
        for one in self.too_long:
            pairs = zip(one.sizes, run.sizes, strict=True)
            if one.entry == run.entry and all(less <= size for (_, less), (_, size) in pairs):
                return inf
        return self._beside + self._points(run.sizes) * self._steps / max(1.0, self._ran)

    def _reached(self, run: Run, number: int, way: bool, *, alone: bool = False) -> Reached:
        """Tell whether a run takes a way; ``alone``, whatever stands before it."""
        if self.branches[number].function not in self._launched(run.entry, run.sizes):
            return "never"
        arguments = self._program.entries[run.entry].arguments
        shifted = frozenset(arguments[argument].name for argument in run.shifted)
        return self._conditions.reached(number, way, run.sizes, shifted, alone=alone)

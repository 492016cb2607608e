"""What a verification has covered: what ran, in which tiles, and which branches nobody took."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from eatss.verify.instrumentation import Branch
from eatss.verify.result import Coverage, KernelCoverage, SizeResult, Untaken


@dataclass(frozen=True, slots=True)
class Counts:
    """What libraries have counted since they were loaded.

    For every branch of :func:`eatss.verify.instrumentation.instrumented_text`: how many threads
    found it false and true, how many blocks. For every kernel that ran: blocks in which every
    condition held in every thread, and others.
    """

    branches: tuple[tuple[int, int, int, int], ...]
    blocks: tuple[tuple[str, int, int], ...]

    def untaken(self, numbers: Sequence[int]) -> tuple[tuple[int, bool], ...]:
        """Return the ways out of some branches that no thread took: numbers, and what holds."""
        return tuple(
            (number, bool(way))
            for number in numbers
            for way, threads in enumerate(self.branches[number][:2])
            if threads == 0
        )


@dataclass(frozen=True, slots=True)
class Further:
    """Runs that are right and not told one by one."""

    runs: int = 0
    compared: int = 0
    changed: int = 0
    accepted: int = 0
    refusals: int = 0

    def plus(self, result: SizeResult) -> Further:
        """Return the same with a run more."""
        return Further(
            self.runs + (result.compared > 0),
            self.compared + result.compared,
            self.changed + result.changed,
            self.accepted + (result.compared == 0 and not result.refused),
            self.refusals + result.refused,
        )


def coverage_of(
    results: Sequence[SizeResult],
    further: Further,
    branches: Sequence[Branch],
    kernels: Sequence[str],
    sizes: Sequence[str],
    counts: Counts | None,
    unaffordable: Set[tuple[int, bool]] = frozenset(),
) -> Coverage:
    """Put together what runs, told one by one and not, have covered."""
    compared = [result for result in results if result.compared]
    return Coverage(
        runs=len(compared) + further.runs,
        elements=sum(result.compared for result in compared) + further.compared,
        changed=sum(result.changed for result in compared) + further.changed,
        refusals=sum(result.refused for result in results) + further.refusals,
        accepted=further.accepted,
        kernels=None if counts is None else _kernels(branches, kernels, counts),
        branches=None if counts is None else sum(one.kind != "part" for one in branches),
        untaken=()
        if counts is None
        else _untaken(branches, frozenset(kernels), frozenset(sizes), counts, unaffordable),
    )


def sum_of(counts: Sequence[Counts]) -> Counts:
    """Return what several libraries of one text have counted together."""
    blocks: dict[str, tuple[int, int]] = {}
    for each in counts:
        for name, whole, partial in each.blocks:
            before = blocks.get(name, (0, 0))
            blocks[name] = before[0] + whole, before[1] + partial
    columns = zip(*(each.branches for each in counts), strict=True)
    branches = [[sum(ways) for ways in zip(*column, strict=True)] for column in columns]
    return Counts(
        tuple(
            (false, true, false_blocks, true_blocks)
            for false, true, false_blocks, true_blocks in branches
        ),
        tuple((name, *both) for name, both in blocks.items()),
    )


def _kernels(
    branches: Sequence[Branch], kernels: Sequence[str], counts: Counts
) -> tuple[KernelCoverage, ...]:
    found: list[KernelCoverage] = []
    blocks = {name: (whole, partial) for name, whole, partial in counts.blocks}
    for kernel in kernels:
        full, partial = blocks.get(kernel, (0, 0))
        versions = [
            taken
            for branch, taken in zip(branches, counts.branches, strict=True)
            if branch.function == kernel and branch.has_else
        ]
        if versions:
            full, partial = sum(v[3] for v in versions), sum(v[2] for v in versions)
        found.append(KernelCoverage(kernel=kernel, full_tiles=full, partial_tiles=partial))
    return tuple(found)


def is_of_sizes(condition: str, sizes: frozenset[str]) -> bool:
    """Tell whether a condition can be made to hold by sizes: it compares sums with these, or flags.

    What compares counters with each other may hold nowhere: bounds of triangles.
    """
    for part in condition.split(" && "):
        words = part.split(" ")
        is_sum = all(re.fullmatch(r"\w+|[+*]|<|<=|>|>=|==", word) for word in words)
        is_flag = len(words) == 1 and words[0] == "plain"
        is_round = words[0].startswith("stage") and words[1:2] == ["=="]
        if not is_round and not is_flag and not (is_sum and sizes.intersection(words)):
            return False
    return True


def _same(branch: Branch) -> tuple[str, str]:
    """Return what a place is known by: those of a kernel that ask for the same are one.

    A loop asks in all of its versions which buffer comes next, and whether there is another tile:
    if it has come round in one, it has been in its steady state.
    """
    return branch.function, branch.condition


def _untaken(
    branches: Sequence[Branch],
    kernels: frozenset[str],
    sizes: frozenset[str],
    counts: Counts,
    unaffordable: Set[tuple[int, bool]],
) -> tuple[Untaken, ...]:
    ran: Counter[tuple[tuple[str, str], bool]] = Counter()
    for branch, (false, true, _, _) in zip(branches, counts.branches, strict=True):
        ran.update({(_same(branch), False): false, (_same(branch), True): true})
    found: list[Untaken] = []
    for number, branch in enumerate(branches):
        false, true = counts.branches[number][:2]
        if branch.kind == "part" or (false and true):
            continue
        never: Literal["true", "false", "reached"] = (
            "reached" if not (false or true) else "false" if true else "true"
        )
        is_alone = is_of_sizes(branch.condition, sizes) and any(
            not ran[_same(branch), way] for way in branch.ways
        )
        is_unaffordable = any((number, way) in unaffordable for way in branch.ways)
        found.append(
            Untaken(
                function=branch.function,
                line=branch.line,
                condition=branch.condition,
                never=never,
                unrun=branch.function in kernels and (is_alone or is_unaffordable),
            )
        )
    return tuple(found)

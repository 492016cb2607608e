"""What a verification has covered: what ran, in which tiles, and which branches nobody took."""

from __future__ import annotations

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
    counts: Counts | None,
    reachable: Set[tuple[int, bool]] = frozenset(),
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
        untaken=() if counts is None else _untaken(branches, frozenset(kernels), counts, reachable),
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


def _untaken(
    branches: Sequence[Branch],
    kernels: frozenset[str],
    counts: Counts,
    reachable: Set[tuple[int, bool]],
) -> tuple[Untaken, ...]:
    found: list[Untaken] = []
    for number, branch in enumerate(branches):
        false, true = counts.branches[number][:2]
        if branch.kind == "part" or (false and true):
            continue
        never: Literal["true", "false", "reached"] = (
            "reached" if not (false or true) else "false" if true else "true"
        )
        is_reachable = any((number, way) in reachable for way in branch.ways)
        found.append(
            Untaken(
                function=branch.function,
                line=branch.line,
                condition=branch.condition,
                never=never,
                unrun=branch.function in kernels and is_reachable,
            )
        )
    return tuple(found)

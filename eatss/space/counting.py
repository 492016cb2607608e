"""How many points a space has, and what each filter removes: exact."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from eatss.diagnostics import Diagnostic, NoSolutionError
from eatss.gpu.findings import finding
from eatss.space.completions import Completions
from eatss.space.findings import origin_of
from eatss.space.levels import Block, Levels, Test, root
from eatss.space.nouns import FilterCount, Space, SpaceCount
from eatss.space.weights import repeated, total

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many of the raw points are done, and of how many."""


def counted(space: Space, levels: Levels, progress: Progress | None = None) -> SpaceCount:
    """Count a space, prefix by prefix.

    A filter removes prefixes as soon as all that it names is known; prefixes that nothing later
    tells apart are counted together, and iterators that nothing names are not enumerated.
    """
    began = time.perf_counter()
    completions = Completions(levels)
    start = root()
    raw = total(completions.after(-1, start.columns, start.rows))
    removed: Counter[str] = Counter()

    def note(test: Test, block: Block) -> None:
        ways = completions.after(test.step, block.columns, block.rows)
        removed[test.name] += total(repeated(block.weights, ways))
        if progress is not None:
            progress(removed.total(), raw)

    first = levels.passed(-1, start, note)
    blocks = iter([first] if first.rows else [])
    for step in range(len(levels.dimensions)):
        blocks = levels.walked(blocks, step, removed=note)
    kept = 0
    for block in blocks:
        kept += total(block.weights)
        if progress is not None:
            progress(removed.total() + kept, raw)
    return SpaceCount(
        name=space.name,
        raw=raw,
        kept=kept,
        filters=tuple(
            FilterCount(name=one.name, condition=one.condition, removed=removed[one.name])
            for one in space.filters
        ),
        seconds=time.perf_counter() - began,
    )


def emptiness(space: Space, levels: Levels, count: SpaceCount) -> NoSolutionError | None:
    """Return why a space has no points, ``None`` if it has some."""
    if count.kept:
        return None
    if not count.raw:
        return NoSolutionError(_without_values(space, levels))
    removed = {one.name: one.removed for one in count.filters}
    tried = sorted(levels.tests, key=lambda test: test.step)
    last = [test.name for test in tried if removed[test.name]][-1]
    message = f'no point is left: "{last}" removes the last {removed[last]} of {count.raw}'
    hint = "eatss space counts what each filter removes"
    found = finding("EATSS-S017", message, ("filters", last), origin_of(space), hint)
    return NoSolutionError(found)


def _without_values(space: Space, levels: Levels) -> Diagnostic:
    """Return which iterator has no values below any prefix of the ones before it."""
    start = root()
    names = [dimension.name for dimension in levels.dimensions]
    for step in range(len(names)):
        first = Levels(
            constants=levels.constants, dimensions=levels.dimensions[: step + 1], tests=()
        )
        if not total(Completions(first).after(-1, start.columns, start.rows)):
            break
    message = f"{names[step]} has no values"
    return finding("EATSS-S016", message, ("iterators", names[step]), origin_of(space))

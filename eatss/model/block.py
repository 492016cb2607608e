"""The threads of a block: how the points of a tile are dealt out."""

from __future__ import annotations

from math import prod

from eatss.analysis.facts import KernelFacts
from eatss.gpu.profile import GpuProfile
from eatss.model.build import MAX_BLOCK_LOOPS

_REGISTER_UNIT = 8  # registers are allotted to threads in multiples of eight


def max_launchable_threads(profile: GpuProfile) -> int:
    """Return the threads of a block that launch whatever the compiler does.

    Even with the most registers a thread may have, so many threads fit the registers of a
    block. A whole number of warps.
    """
    per_thread = -(-profile.registers_per_thread // _REGISTER_UNIT) * _REGISTER_UNIT
    threads = min(profile.registers_per_block // per_thread, profile.threads_per_block)
    warp = profile.threads_per_warp
    return max(1, threads - threads % warp if threads >= warp else threads)


def choose_block(
    facts: KernelFacts, sizes: dict[str, int], profile: GpuProfile
) -> tuple[tuple[str, int], ...]:
    """Return the block size of each loop that maps to threads, the last one to ``x``.

    The leading parallel loops of the band map to threads, three at most, as PPCG has it.
    Each size divides its tile, so no thread idles. Among the choices that launch:
    first a full warp along ``x`` (neighbours in memory are loaded together), then
    the most threads, then the squarest share of points a thread, which reuses
    operands most, then the widest ``x``.
    """
    loops: list[str] = []
    for loop in facts.loops[:MAX_BLOCK_LOOPS]:
        if not loop.parallel:
            break
        loops.append(loop.name)
    if not loops:
        return ()
    budget = max_launchable_threads(profile)
    tiles = tuple(sizes[name] for name in loops)
    choices: list[tuple[int, ...]] = [()]
    for tile in tiles:
        choices = [
            (*choice, size)
            for choice in choices
            for size in _divisors(tile)
            if prod(choice) * size <= budget
        ]

    def merit(choice: tuple[int, ...]) -> tuple[int, ...]:
        points = sum(tile // size for tile, size in zip(tiles, choice, strict=True))
        along_x = min(choice[-1], profile.threads_per_warp)
        return (along_x, prod(choice), -points, *reversed(choice))

    best: tuple[int, ...] = max(choices, key=merit)
    return tuple(zip(loops, best, strict=True))


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]

"""How many steps of products are unrolled: all of a turn, or parts that run one after the other.

    for (k_part = 0; k_part < 12; k_part += 6) for (k_step < 6) { … }  for (k_step = 12; …) { … }

A cache of instructions has to keep what is unrolled. The generator cuts turns by this, and the
prediction knows by it which turns are unrolled.
"""

from __future__ import annotations

from eatss.analysis.structure import STEPS_LOADED, Numbers

MOST_IN_A_TURN = 2048
"""Products of a thread in one turn at most. On an H100 a gemm of 4000 floats takes 2.76 ms with 16
steps of 128 products, 2.84 with 32 and 2.90 with 64 (``benchmarks/results/h100/library-parts``)."""

MOST_UNROLLED = 1280
"""Products that are unrolled at most."""

UNROLLED_A_THREAD = 8
"""Products that are unrolled at most for each thread of a block."""


def unrolled(steps: Numbers, products: Numbers, threads: Numbers) -> Numbers:
    """Return where a turn of steps with so many products of a thread each is unrolled.

    It is in parts if need be [:func:`steps_of_a_part`].
    """
    whole, least = steps * products, 2 * STEPS_LOADED * products
    kept = _is_kept(whole, threads) | _is_kept(least, threads)
    found: Numbers = (whole <= MOST_IN_A_TURN) & kept
    return found


def _is_kept(products: Numbers, threads: Numbers) -> Numbers:
    """Return where a cache keeps instructions for so many products.

    Warps of one block use the same of it at nearly the same time, other blocks of the SM others:
    fewer where blocks have few threads.
    """
    found: Numbers = products <= most_unrolled(threads)
    return found


def most_unrolled(threads: Numbers) -> Numbers:
    """Return how many products of a thread are unrolled at most in blocks of so many threads."""
    more = threads * UNROLLED_A_THREAD - MOST_UNROLLED
    found: Numbers = MOST_UNROLLED + more * (more < 0)
    return found


def steps_of_a_part(steps: int, products: int, threads: int) -> int:
    """Return of how many steps parts are that run one after the other in a loop.

    Some steps are left behind the loop: two, or what else does not make a part. There are as few
    parts as a cache of instructions allows then.

    Args:
        steps: an even number.
        products: of a thread in each of them.
        threads: of the block.

    Returns:
        An even number; 0 where all steps are unrolled.
    """
    if _is_kept(steps * products, threads):
        return 0
    sizes = range(STEPS_LOADED, steps, STEPS_LOADED)
    parts = {size: (steps - STEPS_LOADED) // size for size in sizes}
    kept = [
        size
        for size, count in parts.items()
        if _is_kept((steps - (count - 1) * size) * products, threads)
    ]
    return min(kept, key=lambda size: (parts[size], -size), default=0)


def parts_behind(steps: int, products: int, threads: int) -> tuple[int, int]:
    """Return how many steps stand in front of parts, and of how many steps the parts are.

    Copies stand in those in front: half of the turn is left for them to arrive. Parts are as in
    :func:`steps_of_a_part`, of which the arguments are.

    Returns:
        Even numbers, 0 where a cache of instructions does not keep any in front of parts.
    """
    for first in range(steps // 4 // STEPS_LOADED * STEPS_LOADED, 0, -STEPS_LOADED):
        behind = steps - first
        for count in range(2, behind):
            size = (behind - STEPS_LOADED) // count // STEPS_LOADED * STEPS_LOADED
            if size and _is_kept((steps - (count - 1) * size) * products, threads):
                return first, size
            if not size:
                break
    return 0, 0

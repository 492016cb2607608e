"""Steps of products are unrolled as far as a cache of instructions keeps them, in equal parts.

Those of turns with too many products are not.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eatss.plan.contract import (
    MOST_IN_A_TURN,
    MOST_UNROLLED,
    STEPS_LOADED,
    UNROLLED_A_THREAD,
    steps_of_a_part,
    unrolled,
)

EVEN = st.integers(1, 150).map(lambda half: 2 * half)
PRODUCTS = st.one_of(st.integers(1, 400), st.sampled_from([16, 32, 64, 128, 320, 321]))
THREADS = st.one_of(st.sampled_from([32, 64, 128, 160, 256, 512, 1024]), st.integers(1, 300))


def bound(threads: int) -> int:
    """Return how many products of a block's threads are unrolled at most."""
    return min(MOST_UNROLLED, UNROLLED_A_THREAD * threads)


def ways(steps: int, products: int, threads: int) -> dict[int, int]:
    """Return the sizes of parts that a cache keeps, with the steps behind them, and their numbers.

    As many steps as possible are in parts, but for the last two.
    """
    found = {}
    for size in range(2, steps, 2):
        end = max(at for at in range(0, steps - 1, size))  # up to two steps before the last
        if end and (size + steps - end) * products <= bound(threads):
            found[size] = end // size
    return found


@given(EVEN, PRODUCTS, THREADS)
def test_parts_are_as_few_as_a_cache_keeps(steps: int, products: int, threads: int) -> None:
    size = steps_of_a_part(steps, products, threads)
    if steps * products <= bound(threads):
        assert size == 0
        return
    possible = ways(steps, products, threads)
    assert (size in possible) if possible else size == 0
    if not possible:
        return
    assert size % STEPS_LOADED == 0
    fewest = min(possible.values())
    assert possible[size] == fewest > 1  # in one part would be all
    assert size == max(one for one, count in possible.items() if count == fewest)


@given(EVEN, PRODUCTS, THREADS)
def test_parts_and_the_rest_are_all_steps(steps: int, products: int, threads: int) -> None:
    size = steps_of_a_part(steps, products, threads)
    if not size:
        return
    end = (steps - STEPS_LOADED) // size * size
    rest = range(end, steps)
    assert [*(part + own for part in range(0, end, size) for own in range(size)), *rest] == [
        *range(steps)
    ]
    assert len(rest) >= STEPS_LOADED
    assert len(rest) % STEPS_LOADED == 0
    assert (size + len(rest)) * products <= bound(threads)


@given(EVEN, PRODUCTS, THREADS)
def test_steps_of_a_turn_are_unrolled_where_all_are_kept_or_parts_of_them(
    steps: int, products: int, threads: int
) -> None:
    whole = steps * products <= bound(threads)
    in_parts = steps_of_a_part(steps, products, threads) > 0
    assert not (whole and in_parts)
    few = steps * products <= MOST_IN_A_TURN
    assert unrolled(steps, products, threads) == (few and (whole or in_parts))


def test_turns_have_so_many_products_at_most() -> None:
    assert MOST_IN_A_TURN >= MOST_UNROLLED
    for steps in (8, 16, 64, 256):
        assert unrolled(steps, MOST_IN_A_TURN // steps, 256)
        assert not unrolled(steps, MOST_IN_A_TURN // steps + 1, 256)

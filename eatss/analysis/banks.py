"""Banks of shared memory: how often they are asked, and the padding with the fewest conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

COPIED_BYTES = 16
"""Bytes that a thread copies at a time where rows allow it."""

_BANK_BYTES = 4
_BANKS = 32


def bank_cycles(places: Sequence[int], element_bytes: int) -> int:
    """Return the cycles in which the lanes of a warp read elements, by their places in a buffer.

    As many lanes as the banks have room for are served at once; those that want different words
    of one bank wait for each other.
    """
    together = min(len(places), _BANKS * _BANK_BYTES // element_bytes)
    cycles = 0
    for first in range(0, len(places), together):
        asked: dict[int, int] = {}
        for place in set(places[first : first + together]):
            bank = place * element_bytes // _BANK_BYTES % _BANKS
            asked[bank] = asked.get(bank, 0) + 1
        cycles += max(asked.values())
    return cycles


def best_padding(cycles: Callable[[int], int], row: int, element_bytes: int) -> int:
    """Return the elements to pad rows by that take the fewest cycles, the fewest of several.

    Rows begin at multiples of 16 bytes, so that so many can be copied at a time.

    Args:
        cycles: of a padding.
        row: elements of a row.
        element_bytes: of an element.
    """
    together = max(1, COPIED_BYTES // element_bytes)
    paddings = range(-row % together, _BANKS * _BANK_BYTES // element_bytes, together)
    return min(paddings, key=lambda one: (cycles(one), one))

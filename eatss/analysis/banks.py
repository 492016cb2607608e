"""Banks of shared memory: how often they are asked, and the padding with the fewest conflicts.

A warp loads vectors in two halves of 16 lanes. A half takes one wavefront where lanes ``l`` and
``l ^ 1`` want the same vector, for all ``l``, or lanes ``l`` and ``l ^ 2`` do; else it takes two
[measured on an H100]. Threads are numbered along ``x`` first, so with 16 x 16 of them what moves
along ``y`` alone takes 2 wavefronts, and what moves along ``x`` takes 4.

Where lanes are interleaved, bits 0, 3 and 4 of a lane's number are its place along ``x``, and bits
1 and 2 that along ``y``. Then ``l`` and ``l ^ 1`` have the same place along ``y``, ``l`` and
``l ^ 2`` along ``x``, and both kinds of vectors take 2.

The generator lays out lanes by this, and the model counts by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eatss.analysis.structure import Numbers

COPIED_BYTES = 16
"""Bytes that a thread copies at a time where rows allow it."""

_BANK_BYTES = 4
_BANKS = 32

MOST_PADDING_BYTES = _BANKS * _BANK_BYTES
"""Rows are padded by less: banks repeat then."""


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
    paddings = range(-row % together, MOST_PADDING_BYTES // element_bytes, together)
    return min(paddings, key=lambda one: (cycles(one), one))


ALONG_X = 8
"""Lanes of a warp along ``x`` where they are interleaved."""

ALONG_Y = 4
"""Lanes of a warp along ``y`` where they are interleaved."""

_ONE_BY_ONE = 4
"""Wavefronts of a load whose halves take two each."""

_IN_PAIRS = 2
"""Wavefronts of a load whose halves take one each."""


def vector_wavefronts(threads: Sequence[Numbers], moves: Sequence[bool]) -> Numbers:
    """Return the wavefronts of one load of vectors where threads are numbered as they come.

    Args:
        threads: of a block along each axis, the fastest first.
        moves: for each axis whether what is loaded moves along it.
    """
    one: Any = True  # whether l and l ^ 1 have the same places along all that move
    two: Any = True
    before: Any = 1
    for count, moved in zip(threads, moves, strict=True):
        if moved:
            one = one & ((count == 1) | (before % 2 == 0))
            by_turns = (before == 1) & (count == 2)  # places 0, 1, 0, 1
            two = two & ((count == 1) | (before % 4 == 0) | by_turns)
        before = before * count
    found: Numbers = _ONE_BY_ONE - (_ONE_BY_ONE - _IN_PAIRS) * (one | two)
    return found


def interleaved_wavefronts(*, along_x: bool, along_y: bool) -> int:
    """Return the wavefronts of one load of vectors where lanes are interleaved.

    Args:
        along_x: whether what is loaded moves along the first of the two axes.
        along_y: whether it moves along the second.
    """
    return _ONE_BY_ONE if along_x and along_y else _IN_PAIRS


def interleaves(
    threads: Sequence[Numbers],
    along: tuple[int, int],
    loads: Sequence[tuple[Sequence[bool], Numbers | bool]],
) -> Numbers:
    """Return where lanes are interleaved along two axes: loads of vectors take fewer wavefronts.

    They are the two fastest axes that have several threads, and warps are whole boxes of them.

    Args:
        threads: of a block along each axis, the fastest first.
        along: which axes.
        loads: what is loaded in vectors: along which axes it moves, and where it is loaded so.
    """
    first, second = along
    fits: Any = (threads[first] % ALONG_X == 0) & (threads[second] % ALONG_Y == 0)
    for at in range(second):
        if at != first:
            fits = fits & (threads[at] == 1)
    saved: Any = 0
    for moves, on in loads:
        after = interleaved_wavefronts(along_x=moves[first], along_y=moves[second])
        saved = saved + on * (vector_wavefronts(threads, moves) - after)
    found: Numbers = fits & (saved > 0)
    return found

"""Which sums registers keep, and how many registers there are for them."""

from __future__ import annotations

from typing import Protocol

from eatss.plan.numbers import Flag, Number, least

MOST_POINTS = 128
"""Points of a thread that are unrolled, and of which registers keep what they add up."""

ROOM_BESIDE_SUMS = 72
"""Registers of a thread beside those of its sums, to which a compiler may be bound so that more
blocks run at a time. On an H100 products with 96 sums and 72 registers beside them took 0.70 to
1.08 times the time so, those with 64 sums and 64 registers 1.09 to 1.17 (``library-resident``)."""


class RegisterFile(Protocol):
    """What of a card decides how many registers a thread may have."""

    @property
    def registers_per_thread(self) -> int:
        """Those that an instruction can name."""

    @property
    def registers_per_block(self) -> int:
        """Those of all threads of a block."""


def registers_of_a_thread(card: RegisterFile, threads: Number) -> Number:
    """Return the registers that a thread of a block of so many may have."""
    return least(card.registers_per_block // threads, card.registers_per_thread)


def held_words(registers: Number) -> Number:
    """Return the words that points may keep of a thread's registers.

    A quarter is left for addresses and operands.
    """
    return registers * 3 // 4


def are_held(points: Number, words: Number, left: Number) -> Flag:
    """Return where registers keep what so many points of a thread add up.

    Args:
        points: of a thread.
        words: of all that they add up.
        left: of those that points may keep (:func:`held_words`).
    """
    return (points <= MOST_POINTS) & (words <= left)

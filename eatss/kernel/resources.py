"""What a kernel takes of a multiprocessor, read off its nodes."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.kernel.nodes import Kernel
from eatss.kernel.uses import registers_of

_OTHER_WORDS = 24
"""Registers of 32 bits for addresses and counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Threads of a block, its bytes of shared memory, and 32-bit registers of a thread.

    Registers are an estimate: the compiler decides.
    """

    threads: int
    shared_bytes: int
    register_words: int


def resources_of(kernel: Kernel) -> Resources:
    """Return what a block and a thread of a kernel take."""
    words = sum(
        max(1, buffer.element_type.size_bytes // 4) * (buffer.layout.elements or 1)
        for buffer in registers_of(kernel.body)
    )
    return Resources(
        threads=kernel.threads,
        shared_bytes=kernel.shared_bytes,
        register_words=words + _OTHER_WORDS,
    )

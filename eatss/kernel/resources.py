"""What a kernel takes of a multiprocessor, read off its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eatss.kernel.nodes import Buffer, Declare, Kernel, Node
from eatss.kernel.uses import buffers_of, inside

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
    return Resources(
        threads=kernel.threads,
        shared_bytes=kernel.shared_bytes,
        register_words=_live_words(kernel.body) + _OTHER_WORDS,
    )


def _live_words(nodes: Sequence[Node]) -> int:
    """Return the most words of registers that hold something at a time, as nodes stand."""
    used = [buffers_of((node,)) for node in nodes]
    live: list[tuple[int, int, int]] = []
    for at, node in enumerate(nodes):
        if isinstance(node, Declare):
            last = max((n for n, own in enumerate(used) if node.buffer in own), default=at)
            live.append((at, last, _words(node.buffer)))
    most = 0
    for at, node in enumerate(nodes):
        here = sum(words for first, last, words in live if first <= at <= last)
        most = max([most, *(here + _live_words(body) for body in inside(node)), here])
    return most


def _words(buffer: Buffer) -> int:
    return max(1, buffer.element_type.size_bytes // 4) * (buffer.layout.elements or 1)

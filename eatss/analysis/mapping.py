"""Which loops of a kernel go to blocks and threads, and along which axes: said here only.

The model chooses sizes for what is mapped and the generator carries it out; both read it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eatss.base.targets import AXES, Axis

if TYPE_CHECKING:
    from eatss.analysis.facts import KernelFacts
    from eatss.polyhedral.kernel import Loop


def mapped_loops(facts: KernelFacts) -> tuple[Loop, ...]:
    """Return the loops whose tiles go to blocks, in the order of threads: along ``x`` last.

    All parallel loops of the band: it is permutable, so one that stands behind a serial loop may
    stand in front of it. Neighbours in memory go to neighbouring threads, so the loop along
    which memory is contiguous comes last.
    """
    return tuple(sorted(facts.parallel_loops, key=lambda loop: loop.name == facts.cma_loop))


def reordering_loops(facts: KernelFacts) -> tuple[str, ...]:
    """Return the serial loops whose tiles of several iterations take a sum in another order.

    Of a sum over several loops of the band those are all but the last.
    """
    serial = [loop.name for loop in facts.loops if not loop.parallel]
    found: dict[str, None] = {}
    for reduction in facts.reductions:
        found |= dict.fromkeys([name for name in serial if name in reduction.loops][:-1])
    return tuple(found)


def thread_axes(threads: Sequence[int]) -> tuple[Axis, ...]:
    """Return the axis of each mapped loop's threads.

    The last loop has ``x``. Up to three loops have an axis each. Of more, the last other one that
    has several threads has ``y``, and the rest share ``z``.

    Args:
        threads: along each loop, in the order of ``mapped_loops``.
    """
    if len(threads) <= len(AXES):
        return AXES[: len(threads)][::-1]
    several = [at for at, size in enumerate(threads[:-1]) if size > 1]
    along_y = several[-1] if several else None
    axes: list[Axis] = ["y" if at == along_y else "z" for at in range(len(threads) - 1)]
    return (*axes, "x")


def grid_axes(count: int) -> tuple[Axis, ...]:
    """Return the axis along which the tiles of each mapped loop go to blocks.

    Up to three loops have an axis each. Of more, the first two have ``z`` and ``y``, and the rest
    share ``x``, which may have the most blocks.

    Args:
        count: how many loops are mapped.
    """
    if count <= len(AXES):
        return AXES[:count][::-1]
    axes: list[Axis] = ["x"] * (count - 2)
    return ("z", "y", *axes)


def threads_along(axis: Axis, threads: Sequence[int], axes: Sequence[Axis]) -> int:
    """Return the threads of a block along an axis that loops may share."""
    total = 1
    for size, own in zip(threads, axes, strict=True):
        if own == axis:
            total *= size
    return total

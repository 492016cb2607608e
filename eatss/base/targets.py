"""What makes code from sizes: a row each in ``TARGETS``, which options name.

A row says whose kernels they are, and of which :class:`Language` the code is. What a language calls
things and asks of a card is said in its row, so another one of CUDA's kind is a row here and a
printer of kernels beside ``eatss/cuda/kernel_printer.py``. Names of coordinates in the nodes of a
kernel are CUDA's, whatever it is printed as.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from eatss.base.frozen import frozen

TargetName: TypeAlias = Literal["ppcg", "cuda"]
SweepTarget: TypeAlias = Literal["cuda", "ppcg"]
"""The same of a sweep, where ``cuda`` is the default."""

Cut: TypeAlias = Literal["ppcg", "eatss"]
"""Whose kernels a program is cut into: PPCG's, or those of eatss."""

Axis: TypeAlias = Literal["x", "y", "z"]
AXES: tuple[Axis, ...] = get_args(Axis)

Capability: TypeAlias = tuple[int, int]
"""Major and minor compute capability."""


@frozen
class Language:
    """How code is spelled that runs on cards of a kind, and what those need for it.

    ``thread``, ``block``, ``threads`` and ``blocks`` are coordinates, without their axis: the
    number of a thread in its block, that of a block in the grid, and how many there are. A warp has
    ``lanes``. ``most_threads`` and ``most_blocks`` are limits along an axis. ``copies_ahead`` is
    what a card needs to copy to shared memory while a thread goes on; those from the first to below
    the second of ``warpgroups`` run instructions of four warps together.
    """

    name: str
    thread: str
    block: str
    threads: str
    blocks: str
    lanes: int
    most_threads: Mapping[Axis, int]
    most_blocks: Mapping[Axis, int]
    copies_ahead: Capability
    warpgroups: tuple[Capability, Capability]

    @property
    def coordinates(self) -> tuple[str, ...]:
        """What every name of a coordinate begins with."""
        return (self.thread, self.block, self.threads, self.blocks)


CUDA = Language(
    name="CUDA",
    thread="threadIdx.",
    block="blockIdx.",
    threads="blockDim.",
    blocks="gridDim.",
    lanes=32,
    most_threads={"x": 1024, "y": 1024, "z": 64},
    most_blocks={"x": 2**31 - 1, "y": 65535, "z": 65535},
    copies_ahead=(8, 0),
    warpgroups=((9, 0), (12, 0)),
)


@frozen
class Target:
    """Whose code is made: ``cut`` says who cuts a program into kernels and plans them.

    ``on_host`` says that statements without a parallel loop run there.
    """

    name: TargetName
    cut: Cut
    on_host: bool
    language: Language = CUDA

    @property
    def own(self) -> bool:
        """Whether eatss generates the code itself."""
        return self.cut == "eatss"


TARGETS: Mapping[str, Target] = {
    one.name: one
    for one in (
        Target(name="ppcg", cut="ppcg", on_host=True),
        Target(name="cuda", cut="eatss", on_host=False),
    )
}

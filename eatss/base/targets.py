"""What options choose from: whose code is made, and what is to be least of a run.

``TARGETS`` has a row for PPCG and for eatss; what CUDA calls things and asks of a card is ``CUDA``,
whose names of coordinates those in the nodes of a kernel are. ``MEASURES`` has a row for each
objective: how it follows from time and energy. Another one is a name in ``ObjectiveName`` and a
row here; selections, sweeps, replays, results, help and completion know it then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Literal, TypeAlias, get_args

from eatss.base.frozen import frozen

TargetName: TypeAlias = Literal["ppcg", "cuda"]
SweepTarget: TypeAlias = Literal["cuda", "ppcg"]
"""The same of a sweep, where ``cuda`` is the default."""

Cut: TypeAlias = Literal["ppcg", "eatss"]
"""Whose kernels a program is cut into: PPCG's, or those of eatss."""

Fusion: TypeAlias = Literal["none", "rows", "users", "sums", "all", "source", "beside", "steps"]
"""Which nests become one kernel: none, those of which one uses what the other makes, or also those
that read the same array; ``rows`` are ``users`` where loops that take turns are nests of their own,
and ``source`` has steps of a loop on the host in the order of the source. With
``sums`` reductions of what a nest makes share its parallel loops, too. Recurrences are ``beside``
each other where they need nothing of each other; in their ``steps`` runs what uses what they make.
"""

FUSIONS: tuple[Fusion, ...] = ("users", "sums", "rows", "all", "source", "beside", "steps")
"""What is tried beside none."""

Axis: TypeAlias = Literal["x", "y", "z"]
AXES: tuple[Axis, ...] = get_args(Axis)

CardNumber: TypeAlias = int | str
"""A card of this machine: its number as CUDA counts those it sees, or its UUID."""

Capability: TypeAlias = tuple[int, int]
"""Major and minor compute capability."""


class CUDA:
    """How code is spelled that runs on cards, and what those need for it.

    ``thread``, ``block``, ``threads`` and ``blocks`` are coordinates, without their axis: the
    number of a thread in its block, that of a block in the grid, and how many there are. A warp has
    ``lanes``. ``most_threads`` and ``most_blocks`` are limits along an axis. ``copies_ahead`` is
    what a card needs to copy to shared memory while a thread goes on; those from the first to below
    the second of ``warpgroups`` run instructions of four warps together.
    """

    thread = "threadIdx."
    block = "blockIdx."
    threads = "blockDim."
    blocks = "gridDim."
    coordinates = (thread, block, threads, blocks)
    lanes = 32
    most_threads: Mapping[Axis, int] = {"x": 1024, "y": 1024, "z": 64}
    most_blocks: Mapping[Axis, int] = {"x": 2**31 - 1, "y": 65535, "z": 65535}
    copies_ahead: Capability = (8, 0)
    warpgroups: tuple[Capability, Capability] = ((9, 0), (12, 0))


@frozen
class Target:
    """Whose code is made: ``cut`` says who cuts a program into kernels and plans them.

    ``on_host`` says that statements without a parallel loop run there.
    """

    name: TargetName
    cut: Cut
    on_host: bool

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


ObjectiveName: TypeAlias = Literal["energy", "time", "edp"]


@frozen
class Measure:
    """A number of a run that is to be small.

    ``value`` takes time in s and energy in J, numbers or columns, and gives a number of ``unit``;
    ``scale`` ones of a ``small_unit`` are one of it. ``reads`` says which of the two it takes,
    ``title`` what it is, ``about`` what its name means.
    """

    value: Callable[[Any, Any], Any]
    unit: str
    scale: float
    small_unit: str
    reads: tuple[Literal["time", "energy"], ...]
    title: str
    about: str = ""
    default: bool = False

    def of(self, time_s: float | None, energy_j: float | None) -> float:
        """Return the number of a run, infinite where what it reads is not known."""
        known = {"time": time_s, "energy": energy_j}
        if any(known[name] is None for name in self.reads):
            return inf
        return float(self.value(time_s, energy_j))

    @property
    def what(self) -> str:
        """What it reads, in words."""
        words = [f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in self.reads]
        return f"both {' and '.join(words)}" if len(words) > 1 else words[0]


MEASURES: Mapping[str, Measure] = {
    "energy": Measure(
        value=lambda _, energy_j: energy_j,
        unit="J",
        scale=1e9,
        small_unit="nJ",
        reads=("energy",),
        title="energy of a run",
        default=True,
    ),
    "time": Measure(
        value=lambda time_s, _: time_s,
        unit="s",
        scale=1e12,
        small_unit="ps",
        reads=("time",),
        title="time of a run",
    ),
    "edp": Measure(
        value=lambda time_s, energy_j: energy_j * time_s,
        unit="J s",
        scale=1e12,
        small_unit="pJ s",
        reads=("time", "energy"),
        title="energy times time of a run",
        about="energy × time",
    ),
}
"""All of them by name."""


def told() -> str:
    """Return all names with what is told of them: ``energy (the default), time``."""
    notes = ((name, "the default" if own.default else own.about) for name, own in MEASURES.items())
    return ", ".join(f"{name} ({note})" if note else name for name, note in notes)

"""Phases of blocks that take rows through several kernels, and what threads keep of a row.

    out[i][j] = exp(in[i][j] - most[i]);    out_k[rj] = exp(in[i][j] - most_v);
    … barrier …                             …
    sum_r += out[i][j];                     sum_r += out_k[rj];

Where one tile holds a whole row, a thread has the same elements of it in every phase. A register in
the place of such an element has at each moment what the element would have in memory. What a row
has one value of, its maximum or its sum, all of its lanes have in a register each.
"""

from __future__ import annotations

from eatss.analysis.structure import LaunchFacts
from eatss.frozen import frozen
from eatss.plan.numbers import Flag, Number
from eatss.plan.registers import are_held, held_words
from eatss.plan.rows import element_words


@frozen
class RowPhase:
    """What blocks do with their rows between two barriers, as a launch of its own.

    ``kernel`` is the one that it is of. ``rows`` are the loops over rows, ``lane_loop`` is the one
    whose iterations the lanes of a row share, if there is one. ``length`` is how many elements of a
    row that is, where code knows it.
    """

    kernel: str
    launch: LaunchFacts
    rows: tuple[str, ...]
    lane_loop: str | None
    length: int | None


@frozen
class KeptRow:
    """An array of which threads may keep their elements of a row from phase to phase.

    Its rows are touched from element ``begin`` to element ``end``, in phases ``first`` to ``last``.
    They are loaded as phase ``load_in`` reads them, if they are; memory gets what phases of
    ``stores`` write. ``places`` are the accesses that registers answer in each phase, by statement
    and number, ``references`` the same by index of those of the kernel.
    """

    array: str
    element_bytes: int
    begin: int
    end: int
    first: int
    last: int
    load_in: int | None
    stores: tuple[int, ...]
    places: tuple[frozenset[tuple[str, int]], ...]
    references: tuple[tuple[int, ...], ...]


@frozen
class RowValue:
    """An array of which all lanes of a row have its element; memory gets it from some phases."""

    array: str
    stores: tuple[int, ...]


@frozen
class RowStorage:
    """What registers may have of rows while blocks go through phases."""

    kept: tuple[KeptRow, ...] = ()
    values: tuple[RowValue, ...] = ()


@frozen
class RowRun:
    """Kernels that follow each other and share rows: they, or some of them, can become one.

    ``storage`` is what registers may have, by the kernels that become one.
    """

    kernels: tuple[str, ...]
    phases: tuple[RowPhase, ...]
    storage: tuple[tuple[tuple[str, ...], RowStorage], ...] = ()

    def part(self, start: int, end: int) -> RowRun:
        """Return some of the kernels, in the same order."""
        kernels = self.kernels[start:end]
        phases = tuple(phase for phase in self.phases if phase.kernel in kernels)
        return RowRun(kernels=kernels, phases=phases, storage=self.storage)

    @property
    def registers(self) -> RowStorage:
        """What registers may have where all of the kernels are one."""
        return dict(self.storage).get(self.kernels, RowStorage())


def slots_of(tile: Number, lanes: Number) -> Number:
    """Return how many elements of a tile of a row a thread has."""
    return -(-tile // lanes)


def kept_rows(storage: RowStorage, tile: Number, lanes: Number, registers: Number) -> list[Flag]:
    """Return for each row that may be kept where it is: one tile has it, and registers have room.

    Args:
        storage: what may be kept.
        tile: elements of a row that lanes take at a time.
        lanes: threads of a row.
        registers: that a thread may have.
    """
    left, slots = held_words(registers), slots_of(tile, lanes)
    found: list[Flag] = []
    for own in storage.kept:
        words = slots * element_words(own.element_bytes)
        whole = own.begin // tile == own.end // tile
        on = whole & (lanes > 1) & are_held(slots, words, left)
        left = left - words * on
        found.append(on)
    return found

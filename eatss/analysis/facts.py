"""What the model needs to know of a kernel; free of isl, hashable, safe to share.

What accesses touch is counted in sectors of 32 bytes, which memory moves. A box has the whole index
range of a launch; of several accesses the union is counted, so that halos count once and
``c[0][i][j]`` and ``c[1][i][j]`` are two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from math import gcd, prod
from typing import TypeAlias

import numpy as np

from eatss.base.frozen import Names, frozen
from eatss.base.polynomial import Polynomial
from eatss.polyhedral.kernel import Loop, Reduction
from eatss.program.expression import SizePairs
from eatss.program.linear import Coefficients

# -- what accesses touch ------------------------------------------------------------------------

SECTOR_BYTES = 32

_MOST_CELLS = 1 << 16
"""Cells that boxes are cut into; of what has more, the largest box counts."""

Values = tuple[int, int, int]
"""Values of a loop: the first one, the step, how many."""

CountedOperations: TypeAlias = tuple[tuple[str, int], ...]
"""How often each kind of operation is done."""


@frozen
class TouchedBox:
    """Sectors that one access touches in a launch.

    ``intervals`` are half open, the last one along a row, in sectors. Boxes of the same ``form``
    lie in the same space: what steps and pieces they have along each dimension. ``fill`` is the
    share of the box that is touched, ``row_sectors`` how many a row of the array has.
    """

    form: tuple[object, ...]
    intervals: tuple[tuple[int, int], ...]
    fill: float
    row_sectors: float

    @property
    def sectors(self) -> float:
        """How many sectors it has."""
        return prod(end - start for start, end in self.intervals) * self.fill * self.of_rows

    @property
    def of_rows(self) -> float:
        """The share of sectors that is left where rows share those at their ends."""
        start, end = self.intervals[-1]
        return min(1.0, self.row_sectors / max(1, end - start))


def touched_box(
    subscripts: Sequence[tuple[Coefficients, int]],
    values: Mapping[str, Values],
    row_elements: int,
    element_bytes: int,
    launch: tuple[object, ...],
) -> TouchedBox:
    """Return the whole box of one access.

    Args:
        subscripts: for each dimension the coefficients of loops and the constant.
        values: of each loop in one launch, or over all where launches differ.
        row_elements: elements of a row of the array.
        element_bytes: width of an element.
        launch: what else the subscripts move by, from launch to launch.
    """
    form: list[object] = [launch]
    intervals: list[tuple[int, int]] = []
    for at, (terms, offset) in enumerate(subscripts):
        elements = max(1, SECTOR_BYTES // element_bytes) if at == len(subscripts) - 1 else 1
        own, found = _along(terms, offset, values, elements)
        form.append(own)
        intervals += found
    row = row_elements * element_bytes / SECTOR_BYTES
    return TouchedBox(form=tuple(form), intervals=tuple(intervals), fill=1.0, row_sectors=row)


def _along(
    terms: Iterable[tuple[str, int]], first: int, values: Mapping[str, Values], elements: int
) -> tuple[object, list[tuple[int, int]]]:
    """Return the form of one dimension and its intervals; ``elements`` of it are one piece.

    Steps that leave no piece between them out are one run. Others begin runs of their own.
    """
    steps = []
    for name, factor in terms:
        start, step, count = values[name]
        first += factor * start + min(0, factor * step * (count - 1))
        if count > 1:
            steps.append((abs(factor * step), count))
    apart, span = 0, 0
    runs: list[tuple[int, int]] = []
    for step, count in sorted(steps):
        apart = apart or step
        if step > span + max(elements, apart):
            runs.append((step, count))
            continue
        if apart > elements:
            apart = gcd(apart, step)
        span += step * (count - 1)
    if apart <= elements:  # no piece is left out
        interval = (first // elements, (first + span) // elements + 1)
        return tuple(runs), [(0, count) for _, count in runs] + [interval]
    inside, at = first % apart // elements, first // apart
    intervals = [(inside, inside + 1), *((0, count) for _, count in runs)]
    return (apart, *runs), [*intervals, (at, at + span // apart + 1)]


def touched_bytes(boxes: Iterable[TouchedBox]) -> float:
    """Return the bytes of the sectors in a union of boxes, at least.

    Of boxes in different spaces, which may overlap, the largest union counts.
    """
    alike: dict[tuple[object, ...], list[TouchedBox]] = {}
    for box in dict.fromkeys(boxes):
        alike.setdefault(box.form, []).append(box)
    return max((_sectors(own) for own in alike.values()), default=0.0) * SECTOR_BYTES


def _sectors(boxes: Sequence[TouchedBox]) -> float:
    """Return the sectors of the union of boxes of one form: cells between all their bounds."""
    if len(boxes) == 1:
        return boxes[0].sectors
    bounds = [
        sorted({end for interval in along for end in interval})
        for along in zip(*(box.intervals for box in boxes), strict=True)
    ]
    if prod(len(along) - 1 for along in bounds) > _MOST_CELLS:
        return max(box.sectors for box in boxes)
    filled = np.zeros([len(along) - 1 for along in bounds])
    for box in boxes:
        inside = tuple(
            slice(along.index(start), along.index(end))
            for along, (start, end) in zip(bounds, box.intervals, strict=True)
        )
        filled[inside] = np.maximum(filled[inside], box.fill)
    for at, along in enumerate(bounds):
        shape = [-1 if position == at else 1 for position in range(len(bounds))]
        filled = filled * np.diff(along).reshape(shape)
    return float(filled.sum()) * min(box.of_rows for box in boxes)


# -- the work of a kernel -----------------------------------------------------------------------


@frozen
class AccessFacts:
    """A distinct array reference of one statement, read, written or both.

    ``reference`` is its position in ``KernelFacts.references``. ``strides`` pairs the kernel's
    loops, those below the band included, with the elements that the address moves by when the
    loop makes a step; loops that do not move it are left out. ``subscripts`` has, for each
    dimension of the array, the coefficients of the loops and the constant. ``origin`` is the last
    subscript where all loops have their first values, 0 where that is open. What is read or written
    ``converts`` from or to a type in which nothing is computed: a half. What may be
    ``loaded_ahead`` of the statement is floating-point, and each instance reads it, whatever its
    conditions are. ``touched`` is what it touches in one launch, ``None`` where that is not known.
    """

    reference: int
    array: str
    element_bytes: int
    reads: int
    writes: bool
    strides: Coefficients
    subscripts: tuple[tuple[Coefficients, int], ...]
    affine: bool
    origin: int = 0
    converts: bool = False
    loaded_ahead: bool = True
    touched: TouchedBox | None = None

    @property
    def moving(self) -> dict[str, int]:
        """How many elements the address moves by with each loop that moves it."""
        return dict(self.strides)

    @property
    def terms(self) -> tuple[Coefficients, ...]:
        """The coefficients of the loops for each dimension."""
        return tuple(terms for terms, _ in self.subscripts)


@frozen
class Arithmetic:
    """Operations of an instance, as in :class:`StatementFacts`."""

    operations: CountedOperations
    repeated: tuple[tuple[Names, CountedOperations], ...]
    integer_products: int


@frozen
class StatementFacts:
    """One statement of a kernel.

    ``loops`` are the kernel's loops its instances move along. ``instances`` counts them over all
    launches, ``None`` where they cannot be counted. ``operations`` pairs kinds of floating-point
    operations with how many one instance runs. ``element_bytes`` is the width they are in.
    ``coupled`` are the loops whose values depend on those of others, as in a triangle; ``late`` is
    the share of its instances in the second half of the kernel's first loop, if that is one of them
    and all is one launch. ``tied`` says that its instances move along more of the kernel's loops
    than they have counters of their own, as on the diagonal of a nest over both subscripts.
    ``repeated`` are those of the operations whose value stays the same along some of ``loops``, by
    the loops it moves along: a compiler that sees several steps of such a loop at a time runs them
    once. ``in_sum`` is the arithmetic that is left where scalar factors of what it adds wait until
    the sum is there, and others are multiplied in another order; ``None`` where that is the same.
    ``integer_products`` are no floating-point operations, and take as long.
    """

    name: str
    loops: Names
    instances: int | None
    operations: CountedOperations
    element_bytes: int
    accesses: tuple[AccessFacts, ...]
    coupled: Names = ()
    late: float = 0.5
    tied: bool = False
    repeated: tuple[tuple[Names, CountedOperations], ...] = ()
    in_sum: Arithmetic | None = None
    integer_products: int = 0

    def with_epilogue_scaling(self) -> StatementFacts:
        """Return the statement with the arithmetic that is left in its sum."""
        if self.in_sum is None:
            return self
        return replace(
            self,
            operations=self.in_sum.operations,
            repeated=self.in_sum.repeated,
            integer_products=self.in_sum.integer_products,
        )

    def fill(self, trips: Mapping[str, float], launches: float) -> float:
        """Return the share of the box of its loops that it runs at, in one of its launches.

        ``trips`` are those of the loops that a launch runs.
        """
        if self.instances is None:
            return 1.0
        box = prod(trips[name] for name in self.loops if name in trips)
        return min(1.0, self.instances / max(1.0, box * launches))


@frozen
class ArrayFacts:
    """An array that a kernel touches: its extents (``None`` where open) and element width.

    ``elements`` are those at the assumed sizes.
    """

    name: str
    element_bytes: int
    extents: tuple[int | None, ...]
    elements: int


@frozen
class KernelWork:
    """The work of a kernel.

    ``launches`` is how often the host loops launch it, ``None`` where it cannot be counted.
    ``trips`` are those of all its loops over all launches; ``spans`` those of loops beside which
    statements that do not move along them stand, with these: ``for (j = 1; ...)`` after what is at
    0. Where the source leaves sizes open, all numbers are at those of ``eatss.analysis.work``.
    """

    launches: int | None = 1
    statements: tuple[StatementFacts, ...] = ()
    arrays: tuple[ArrayFacts, ...] = ()
    trips: SizePairs = ()
    spans: SizePairs = ()

    @property
    def coupled(self) -> frozenset[str]:
        """The statements of which loops bound each other."""
        return frozenset(one.name for one in self.statements if one.coupled)


# -- the facts of a kernel ----------------------------------------------------------------------


class Memory(Enum):
    """Where a reference is kept [EATSS, Sec. IV-E]."""

    L1 = "l1"
    SHARED = "shared"


@frozen
class ReferenceFacts:
    """One reference, as in Table II of EATSS.

    ``temporal`` are the loops along which the same element is touched again, the
    outermost loop of the nest left out, because what it reuses has been evicted
    by a full sweep of the others; ``invariant`` are all loops the reference does
    not move along. ``spatial`` are the loops that walk the fastest-varying
    subscript with stride one. ``elements`` are those that a tile touches, the product of its sizes
    [EATSS, Sec. IV-C]; it is ``exact`` where the tile touches no fewer.
    """

    array: str
    access: str
    statements: Names
    reads: bool
    writes: bool
    memory: Memory
    cma: bool
    temporal: Names
    invariant: Names
    spatial: Names
    elements: Polynomial
    exact: bool


@frozen
class KernelFacts:
    """A kernel as the model sees it.

    ``element_bytes`` is the width of the kernel's widest element. ``stride_one``
    counts, for each tile loop, the references in which it is the fastest-varying subscript
    (the unscaled ``H_i`` of Sec. IV-K). ``distinct_references`` counts those that
    touch different cache lines, in the statement with the most [Sec. IV-G]. ``work`` is what
    the kernel does in numbers. ``overlaps`` are the pairs of references to a written array that may
    touch the same element in one launch. ``open_loops`` are the inner
    loops whose trips code for any size does not know.
    """

    name: str
    index: int
    statements: Names
    host_loops: Names
    loops: tuple[Loop, ...]
    inner_loops: tuple[Loop, ...]
    element_bytes: int
    cma_loop: str | None
    references: tuple[ReferenceFacts, ...]
    reductions: tuple[Reduction, ...]
    stride_one: tuple[tuple[str, int], ...]
    distinct_references: int
    work: KernelWork = field(default_factory=KernelWork)
    overlaps: frozenset[frozenset[int]] = frozenset()
    open_loops: Names = ()

    @property
    def parallel_loops(self) -> tuple[Loop, ...]:
        """The parallel tile loops, outermost first."""
        return tuple(loop for loop in self.loops if loop.parallel)

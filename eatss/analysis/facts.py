"""What the model needs to know of a kernel; free of isl, hashable, safe to share."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from eatss.analysis.work import KernelWork
from eatss.base.frozen import frozen
from eatss.base.polynomial import Polynomial
from eatss.polyhedral.kernel import Loop, Reduction


class Memory(Enum):
    """Where a reference is kept [EATSS, Sec. IV-E]."""

    L1 = "l1"
    SHARED = "shared"


class VolumeKind(Enum):
    """How the elements a tile touches are counted.

    ``PRODUCT`` multiplies the tile sizes of the loops a reference uses [EATSS,
    Sec. IV-C]; ``FOOTPRINT`` counts the isl image of the tile, references to one
    array together, so that halos count once.
    """

    PRODUCT = "product"
    FOOTPRINT = "footprint"


@frozen
class Volume:
    """Elements one tile touches through some references to one array.

    ``references`` are indices into ``KernelFacts.references``. ``exact`` is false
    for a product and for a footprint of which ``elements`` is only an upper bound.
    """

    array: str
    memory: Memory
    references: tuple[int, ...]
    elements: Polynomial
    exact: bool


@frozen
class ReferenceFacts:
    """One reference, as in Table II of EATSS.

    ``temporal`` are the loops along which the same element is touched again, the
    outermost loop of the nest left out, because what it reuses has been evicted
    by a full sweep of the others; ``invariant`` are all loops the reference does
    not move along. ``spatial`` are the loops that walk the fastest-varying
    subscript with stride one.
    """

    array: str
    access: str
    statements: tuple[str, ...]
    reads: bool
    writes: bool
    memory: Memory
    cma: bool
    temporal: tuple[str, ...]
    invariant: tuple[str, ...]
    spatial: tuple[str, ...]


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
    statements: tuple[str, ...]
    host_loops: tuple[str, ...]
    loops: tuple[Loop, ...]
    inner_loops: tuple[Loop, ...]
    element_bytes: int
    cma_loop: str | None
    references: tuple[ReferenceFacts, ...]
    reductions: tuple[Reduction, ...]
    volume_kind: VolumeKind
    volumes: tuple[Volume, ...]
    stride_one: tuple[tuple[str, int], ...]
    distinct_references: int
    work: KernelWork = field(default_factory=KernelWork)
    overlaps: frozenset[frozenset[int]] = frozenset()
    open_loops: tuple[str, ...] = ()

    @property
    def parallel_loops(self) -> tuple[Loop, ...]:
        """The parallel tile loops, outermost first."""
        return tuple(loop for loop in self.loops if loop.parallel)

"""The references of a kernel as a register tile sees them: accumulators, staged, through L1."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from eatss.analysis.facts import KernelFacts, ReferenceFacts
from eatss.analysis.mapping import AXES, mapped_loops
from eatss.model.build import inner_extent
from eatss.polyhedral.kernel import Loop
from eatss.polynomial import Polynomial

_UNKNOWN_TRIPS = 4096
_WARP = 32
_MOST_SWEEP = 1 << 30  # beyond it what is done once a sweep costs nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """References to one array that move along the same loops and contiguously along the same one.

    ``references`` are indices into the facts. ``elements`` are what a tile touches through all
    of them; ``copies`` is how many of them read each element at a point where ``elements`` counts
    it once. ``contiguous`` is the loop along which neighbours lie next to each other.
    ``accumulator`` lives in registers while the stepping loops run; ``stageable`` may be copied to
    shared memory.
    """

    array: str
    references: tuple[int, ...]
    statements: frozenset[str]
    loops: frozenset[str]
    contiguous: str | None
    elements: Polynomial
    copies: int
    accumulator: bool
    stageable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """A kernel as it is laid out: threads and points along ``mapped``, tiles of the ``serial``.

    ``mapped`` are in the order of threads, the one along ``x`` last. ``extents`` are the
    iterations of each inner loop that a tile holds at a time, ``swept`` all of them where known.
    ``sweep`` is how often a point is stepped through in all.
    """

    mapped: tuple[Loop, ...]
    serial: tuple[Loop, ...]
    extents: tuple[tuple[str, int], ...]
    swept: tuple[tuple[str, int], ...]
    sweep: int
    statements: tuple[str, ...]
    families: tuple[Family, ...]
    element_bytes: int

    @property
    def is_wide(self) -> bool:
        """Whether more loops are mapped than blocks and threads have axes.

        Such loops are short, so threads at the rim that have no point count: a warp issues its
        loads all the same.
        """
        return len(self.mapped) > len(AXES)

    @property
    def steps(self) -> frozenset[str]:
        """Names of the loops that each point steps through."""
        return frozenset(loop.name for loop in self.serial) | {name for name, _ in self.extents}

    @property
    def accumulators(self) -> int:
        """Elements a point keeps in registers while it is stepped through."""
        return sum(family.accumulator for family in self.families)

    @property
    def stageable(self) -> tuple[int, ...]:
        """Positions of the families that may be staged."""
        return tuple(at for at, family in enumerate(self.families) if family.stageable)


def nest_of(facts: KernelFacts, element_bytes: int) -> Nest:
    """Return how a kernel is laid out by the code generator, sizes aside."""
    mapped = mapped_loops(facts)
    serial = tuple(loop for loop in facts.loops if loop not in mapped)
    extents = tuple((loop.name, inner_extent(loop, _WARP)) for loop in facts.inner_loops)
    swept = tuple(
        (loop.name, inner_extent(loop, _WARP) if loop.trip_count is None else loop.trip_count)
        for loop in facts.inner_loops
    )
    return Nest(
        mapped=mapped,
        serial=serial,
        extents=extents,
        swept=swept,
        sweep=min(
            prod(max(1, loop.trip_count or _UNKNOWN_TRIPS) for loop in serial + facts.inner_loops),
            _MOST_SWEEP,
        ),
        statements=facts.statements,
        families=_families(facts, [loop.name for loop in mapped]),
        element_bytes=element_bytes,
    )


def _families(facts: KernelFacts, mapped: list[str]) -> tuple[Family, ...]:
    every = [loop.name for loop in facts.loops + facts.inner_loops]
    groups: dict[tuple[str, frozenset[str], tuple[str, ...]], list[int]] = {}
    for position, reference in enumerate(facts.references):
        loops = frozenset(every) - frozenset(reference.invariant)
        groups.setdefault((reference.array, loops, reference.spatial), []).append(position)
    volumes = {volume.references: volume.elements for volume in facts.volumes}
    steps = frozenset(every) - frozenset(mapped)
    streaming = {
        loop.name for loop in facts.inner_loops if inner_extent(loop, _WARP) != loop.trip_count
    } | set(facts.open_loops)  # a copy of unknown size has no room
    written = {reference.array for reference in facts.references if reference.writes}
    families = []
    for (array, loops, spatial), positions in groups.items():
        references = [facts.references[at] for at in positions]
        product = Polynomial.product(sorted(loops))
        elements = volumes.get(tuple(positions), product)
        shared_by_threads = bool(frozenset(mapped) - loops) or len(positions) > 1
        walked = bool(loops & steps) or (not steps and len(positions) > 1)
        families.append(
            Family(
                array=array,
                references=tuple(positions),
                statements=frozenset(name for r in references for name in r.statements),
                loops=loops,
                contiguous=_contiguous(spatial, facts.cma_loop, mapped),
                elements=elements,
                copies=len(positions) if elements == product else 1,
                accumulator=bool(steps)
                and not loops & steps
                and any(r.reads for r in references)
                and any(r.writes for r in references)
                and not _read_elsewhere(facts, array, positions),
                stageable=array not in written
                and shared_by_threads
                and walked
                and not loops & streaming,
            )
        )
    return tuple(families)


def _read_elsewhere(facts: KernelFacts, array: str, positions: list[int]) -> bool:
    others: list[ReferenceFacts] = [
        reference
        for at, reference in enumerate(facts.references)
        if reference.array == array and at not in positions
    ]
    return any(reference.reads for reference in others)


def _contiguous(spatial: tuple[str, ...], cma: str | None, mapped: list[str]) -> str | None:
    if cma in spatial:
        return cma
    return next((name for name in spatial if name in mapped), next(iter(spatial), None))

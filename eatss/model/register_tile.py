"""``--model register-tile``: threads, points a thread, tiles and placements chosen together.

For the code that eatss generates itself, where a thread computes several points of a tile and a
block stages what its threads share. Among all layouts that keep the card's limits the one that
moves data with the least energy for each iteration is taken. The space is finite and small, so
looking at every layout is the proof.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from eatss.analysis.facts import KernelFacts, Memory
from eatss.diagnostics import Diagnostic, NoSolutionError
from eatss.gpu.profile import GpuProfile
from eatss.model.build import element_bytes
from eatss.model.options import ModelOptions, exact
from eatss.model.register_energy import (
    SECTOR_BYTES,
    Shapes,
    approximate,
    energy_terms,
    exact_energy,
    tile_bytes,
)
from eatss.model.register_families import Nest, nest_of
from eatss.model.register_shapes import (
    MOST_POINTS,
    Limit,
    all_shapes,
    fills_card,
    hard_limits,
    occupancy_limits,
    staged_limits,
    with_serial_tiles,
)
from eatss.model.selection import KernelSelection, ReferenceSelection, Usage

MOST_STAGED = 4
"""Families among which the staged ones are chosen, those that move most first."""

FORMULA = (
    "least energy in fJ an iteration: L2 to SM + L1 or shared memory to registers + "
    "copies, barriers and starts of threads"
)

_SHOWN = (
    "threads",
    "registers_thread",
    "registers_resident",
    "words_in_flight",
    "shared_per_block",
    "shared_per_sm",
)

_NEARLY = 1e-9
"""Rounded energies so close are compared exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The best layout of a kernel: one row of ``shapes``, and the staged families."""

    nest: Nest
    shapes: Shapes
    staged: tuple[int, ...]
    energy_pj: Fraction
    compared: int

    def threads(self, loop: str) -> int:
        """Return the threads along a mapped loop."""
        return int(self.shapes.threads[loop][0])

    def points(self, loop: str) -> int:
        """Return the points of a thread along a mapped loop."""
        return int(self.shapes.points[loop][0])

    def tile(self, loop: str) -> int:
        """Return the tile size of a loop of the band."""
        return int(self.shapes.tiles[loop][0])


def select_register_tile(
    facts: KernelFacts, profile: GpuProfile, options: ModelOptions
) -> KernelSelection:
    """Select threads, points, tiles and placements of one kernel with a band.

    Raises:
        NoSolutionError: ``EATSS-M020``, no layout can launch on the card.
        InputError: the options do not fit the profile.
    """
    began = time.perf_counter()
    layout = best_layout(facts, profile, options)
    return _selection(facts, profile, options, layout, time.perf_counter() - began)


def best_layout(facts: KernelFacts, profile: GpuProfile, options: ModelOptions) -> Layout:
    """Return the best of all layouts.

    Equal energies are decided by, in this order: more threads a block; tiles along fewer loops; the
    tile with the fewest rows and sectors a row together; the smaller serial tiles, outermost first;
    fewer staged families; fewer threads along x where sums are kept in registers, more where not;
    the smaller tiles, outermost first.

    Raises:
        NoSolutionError: ``EATSS-M020``.
    """
    nest = nest_of(facts, element_bytes(facts, options))
    shapes = _launchable(facts, nest, profile)
    every = with_serial_tiles(nest, shapes)
    compared = 0
    best: tuple[tuple[Fraction, ...], tuple[int, ...], Shapes] | None = None
    for staged in _stagings(nest, options):
        limits = staged_limits(
            nest, every, profile, staged,
            block_bytes=options.shared_per_block(profile), sm_bytes=sm_bytes(profile, options),
        )  # fmt: skip
        kept = every.rows(np.logical_and.reduce([limit.kept for limit in limits]))
        if len(kept) == 0:
            continue
        compared += len(kept)
        terms = energy_terms(nest, kept, frozenset(staged))
        rough = approximate(terms)
        bound = float(rough.min()) * (1 + _NEARLY)
        if best is not None and float(best[0][0]) * (1 + _NEARLY) < float(rough.min()):
            continue
        for row in np.flatnonzero(rough <= bound):
            rank = (exact_energy(terms, int(row)), *_tie(nest, kept, staged, int(row)))
            if best is None or rank < best[0]:
                best = rank, staged, kept.rows(np.array([row]))
    assert best is not None  # nothing staged keeps every limit that depends on staging
    return Layout(
        nest=nest, shapes=best[2], staged=best[1], energy_pj=best[0][0], compared=compared
    )


def sm_bytes(profile: GpuProfile, options: ModelOptions) -> int:
    """Return the shared memory of an SM that may be used."""
    if options.split is None:
        return profile.shared_per_sm_bytes
    return min(int(exact(options.split) * profile.l1_shared_bytes), profile.shared_per_sm_bytes)


def _launchable(facts: KernelFacts, nest: Nest, profile: GpuProfile) -> Shapes:
    """Return the layouts within the limits that do not depend on staging."""
    shapes = all_shapes(nest, profile.threads_per_warp)
    shapes = shapes.rows(shapes.product(shapes.points) <= MOST_POINTS)
    limits = hard_limits(nest, shapes, profile)
    kept = np.logical_and.reduce([limit.kept for limit in limits])
    if not kept.any():
        raise _no_solution(facts, limits)
    shapes = shapes.rows(kept)
    host = bool(facts.host_loops)
    if not nest.accumulators:  # first of all blocks enough, else warps that are full
        shapes = shapes.rows(fills_card(nest, shapes, profile, host=host))
    for position in range(4):
        limit = occupancy_limits(nest, shapes, profile)[position]
        shapes = shapes.rows(limit.kept)
    return shapes.rows(fills_card(nest, shapes, profile, host=host))


def _no_solution(facts: KernelFacts, limits: tuple[Limit, ...]) -> NoSolutionError:
    broken = [limit for limit in limits if not limit.kept.any()] or list(limits)
    reasons = "; ".join(
        f"{limit.title}: the smallest layout needs {int(limit.used.min())}, {limit.detail}"
        for limit in broken
    )
    return NoSolutionError(
        Diagnostic(
            code="EATSS-M020",
            message=f"no tile sizes of kernel {facts.name} stay within the limits: {reasons}",
            hint="a narrower element type or a card with more of it would help",
        )
    )


def _stagings(nest: Nest, options: ModelOptions) -> Iterator[tuple[int, ...]]:
    """Yield every choice of families to stage, none first."""
    yield ()
    if options.split == 0:
        return
    positions = sorted(
        nest.stageable, key=lambda at: (-len(nest.families[at].loops & nest.steps), at)
    )[:MOST_STAGED]
    for count in range(1, len(positions) + 1):
        yield from combinations(sorted(positions), count)


def _tie(nest: Nest, shapes: Shapes, staged: tuple[int, ...], row: int) -> tuple[Fraction, ...]:
    threads = [int(shapes.threads[loop.name][row]) for loop in nest.mapped]
    points = [int(shapes.points[loop.name][row]) for loop in nest.mapped]
    tiles = [t * p for t, p in zip(threads, points, strict=True)]
    square = Fraction(0)
    if tiles:
        sectors = Fraction(tiles[-1] * nest.element_bytes, SECTOR_BYTES)
        square = sum((Fraction(size) for size in tiles[:-1]), sectors)
    along_x = threads[-1] if threads else 1
    total = int(shapes.product(shapes.threads)[row])
    return (
        Fraction(-total),
        Fraction(max(2, sum(size > 1 for size in tiles))),
        square,
        *(Fraction(int(shapes.tiles[loop.name][row])) for loop in nest.serial),
        Fraction(len(staged)),
        *(Fraction(at) for at in staged),
        Fraction(along_x if nest.accumulators else -along_x),
        *(Fraction(size) for size in tiles),
    )


def _selection(
    facts: KernelFacts,
    profile: GpuProfile,
    options: ModelOptions,
    layout: Layout,
    solve_time_s: float,
) -> KernelSelection:
    nest = layout.nest
    staged = {at for position in layout.staged for at in nest.families[position].references}
    used = usage(profile, options, layout)
    shared = next((u.used for u in used if u.name == "shared_per_sm"), 0)
    return KernelSelection(
        name=facts.name,
        index=facts.index,
        statements=facts.statements,
        host_loops=facts.host_loops,
        loops=tuple(loop.name for loop in facts.loops),
        parallel=tuple(loop.name for loop in facts.parallel_loops),
        inner_loops=tuple(loop.name for loop in facts.inner_loops),
        cma_loop=facts.cma_loop,
        tile_sizes=tuple((loop.name, layout.tile(loop.name)) for loop in facts.loops),
        objective=round(1000 * layout.energy_pj),
        objective_formula=FORMULA,
        weights=(),
        optimal="proven",
        split_factor=round(min(1.0, shared / profile.l1_shared_bytes), 3),
        warp_fraction=1.0,
        alignment=1,
        traffic=_traffic(layout),
        block=tuple((loop.name, layout.threads(loop.name)) for loop in nest.mapped),
        shared_limit_bytes=options.shared_per_block(profile),
        solver_calls=0,
        solve_time_s=solve_time_s,
        references=tuple(
            ReferenceSelection(
                array=reference.array,
                access=reference.access,
                statements=reference.statements,
                memory=reference.memory.value,
                placement=(Memory.SHARED if at in staged else Memory.L1).value,
                cma=reference.cma,
                temporal=reference.temporal,
                spatial=reference.spatial,
            )
            for at, reference in enumerate(facts.references)
        ),
        distinct_references=facts.distinct_references,
        usage=used,
        compared=layout.compared,
    )


def usage(profile: GpuProfile, options: ModelOptions, layout: Layout) -> tuple[Usage, ...]:
    """Return what a layout uses of each limit."""
    nest, shapes = layout.nest, layout.shapes
    limits = (
        *hard_limits(nest, shapes, profile),
        *occupancy_limits(nest, shapes, profile),
        *(
            staged_limits(
                nest, shapes, profile, layout.staged,
                block_bytes=options.shared_per_block(profile), sm_bytes=sm_bytes(profile, options),
            )
            if layout.staged
            else ()
        ),
    )  # fmt: skip
    return tuple(
        Usage(
            name=limit.name,
            title=limit.title,
            used=int(limit.used[0]),
            available=limit.available,
            unit=limit.unit,
            binding=2 * int(limit.used[0]) > limit.available,
        )
        for limit in limits
        if limit.name in _SHOWN
    )


def _traffic(layout: Layout) -> float:
    """Return the elements from L2 for each iteration."""
    nest, shapes = layout.nest, layout.shapes
    tile = int(shapes.product(shapes.tiles)[0])
    total = 0.0
    for at, family in enumerate(nest.families):
        in_shared = at in layout.staged
        inner = dict(nest.swept if in_shared else nest.extents)
        steps = tile
        for size in inner.values():
            steps *= size
        fetched = int(tile_bytes(nest, family, shapes, staged=in_shared)[0])
        if family.loops & nest.steps or not nest.steps:
            total += fetched / nest.element_bytes / steps
    return total

"""Where PPCG keeps each array of a kernel: private, shared or global memory.

PPCG puts the references to one array into groups. A group whose elements each belong to one
thread becomes private; one that is used again, or that neighbouring threads do not read as
neighbours, is copied to shared memory as a box, as long as there is room; the rest stays global.
These are facts of the kernel. Only the sizes of the boxes depend on the tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.frozen import frozen

MAX_GRID_LOOPS = 2
MAX_THREAD_LOOPS = 3

Coefficients = tuple[tuple[str, int], ...]


@frozen
class Use:
    """One access of one statement that belongs to a group."""

    statement: int
    access: AccessFacts


@frozen
class Group:
    """References to one array that PPCG treats alike.

    ``box`` gives each dimension of the array as the coefficients of the loops and the spread of
    the constants; ``None`` where no box of fixed size holds them. ``loops`` are those that move
    any of the references.
    """

    array: str
    element_bytes: int
    uses: tuple[Use, ...]
    loops: frozenset[str]
    private: bool
    shareable: bool
    box: tuple[tuple[Coefficients, int], ...] | None

    @property
    def reads(self) -> bool:
        """Whether any access reads."""
        return any(use.access.reads for use in self.uses)

    @property
    def writes(self) -> bool:
        """Whether any access writes."""
        return any(use.access.writes for use in self.uses)


@frozen
class PpcgKernel:
    """A kernel as PPCG maps it, sizes aside.

    ``grid`` and ``threads`` are the loops mapped to blocks and threads, the last one along ``x``;
    ``band`` are all loops that are tiled, ``inner`` those below, with their trips.
    """

    facts: KernelFacts
    band: tuple[str, ...]
    inner: tuple[tuple[str, int], ...]
    grid: tuple[str, ...]
    threads: tuple[str, ...]
    trips: dict[str, int]
    groups: tuple[Group, ...]

    @property
    def along_x(self) -> str | None:
        """The loop along ``threadIdx.x``."""
        return self.threads[-1] if self.threads else None


def ppcg_kernel(facts: KernelFacts) -> PpcgKernel:
    """Return how PPCG maps a kernel.

    The leading parallel loops of the band go to blocks (two at most) and threads (three at most),
    as PPCG 0.09 does.

    Args:
        facts: the kernel.
    """
    leading: list[str] = []
    for loop in facts.loops:
        if not loop.parallel:
            break
        leading.append(loop.name)
    threads = tuple(leading[:MAX_THREAD_LOOPS])
    trips = dict(facts.work.trips)
    return PpcgKernel(
        facts=facts,
        band=tuple(loop.name for loop in facts.loops),
        inner=tuple((loop.name, trips[loop.name]) for loop in facts.inner_loops),
        grid=tuple(leading[:MAX_GRID_LOOPS]),
        threads=threads,
        trips=trips,
        groups=_groups(facts, threads, trips),
    )


def _groups(
    facts: KernelFacts, threads: tuple[str, ...], trips: dict[str, int]
) -> tuple[Group, ...]:
    statements = facts.work.statements
    found: list[Group] = []
    for array in sorted(facts.work.arrays, key=lambda a: a.name):
        uses = [
            Use(statement=at, access=access)
            for at, statement in enumerate(statements)
            for access in statement.accesses
            if access.array == array.name
        ]
        found += [_group(members, statements, threads, trips) for members in _merged(uses, facts)]
    return tuple(_common_tiles(found))


def _merged(uses: list[Use], facts: KernelFacts) -> list[list[Use]]:
    """Put uses together that are one reference, or overlap where one of them writes."""
    by_reference: dict[int, list[Use]] = {}
    for use in uses:
        by_reference.setdefault(use.access.reference, []).append(use)
    groups: list[tuple[set[int], list[Use]]] = []
    for reference, members in by_reference.items():
        groups.append(({reference}, members))
        if any(use.access.writes for use in members) and any(use.access.reads for use in members):
            groups.append(({reference}, []))  # PPCG begins with its read and its write apart
    merging = True
    while merging:
        merging = False
        for one in range(len(groups)):
            for other in range(len(groups) - 1, one, -1):
                writes = any(u.access.writes for u in groups[one][1] + groups[other][1])
                overlap = any(
                    a == b or frozenset((a, b)) in facts.overlaps
                    for a in groups[one][0]
                    for b in groups[other][0]
                )
                if writes and overlap:
                    groups[one][0].update(groups[other][0])
                    groups[one][1].extend(groups[other][1])
                    # PPCG puts the last group into the place that became free
                    groups[other] = groups[-1]
                    del groups[-1]
                    merging = True
    return [members for _, members in groups]


def _group(
    uses: list[Use],
    statements: tuple[StatementFacts, ...],
    threads: tuple[str, ...],
    trips: dict[str, int],
) -> Group:
    references = {use.access.reference for use in uses}
    reuse = _reused(uses, statements, trips)
    coalesced = _coalesced(uses, statements, threads)
    box = _box(uses)
    moved = frozenset(loop for use in uses for loop, _ in use.access.strides)
    private = (
        reuse
        and len(references) == 1
        and box is not None
        and moved == frozenset(threads)
        and _rank(uses[0].access, threads) == len(threads)
    )
    return Group(
        array=uses[0].access.array,
        element_bytes=uses[0].access.element_bytes,
        uses=tuple(uses),
        loops=moved,
        private=private,
        shareable=bool(threads) and box is not None and (reuse or not coalesced),
        box=box,
    )


def _reused(
    uses: Sequence[Use], statements: tuple[StatementFacts, ...], trips: Mapping[str, int]
) -> bool:
    """Tell whether instances of a launch touch an element of a group more than once."""
    return (
        len({use.access.reference for use in uses}) > 1
        or len({use.statement for use in uses}) > 1
        or any(_repeats(use.access, statements[use.statement], trips) for use in uses)
    )


def staged_despite(kernel: PpcgKernel, group: Group, unit: frozenset[str]) -> bool:
    """Tell whether PPCG would stage a group though tiles along some loops are one iteration.

    What is read again in other tiles only is not used again within one.

    Args:
        kernel: the kernel of the group.
        group: one that may be staged.
        unit: loops whose tiles are one iteration.
    """
    statements = kernel.facts.work.statements
    trips = {**kernel.trips, **dict.fromkeys(unit, 1)}
    return _reused(group.uses, statements, trips) or not _coalesced(
        group.uses, statements, kernel.threads
    )


def _repeats(access: AccessFacts, statement: StatementFacts, trips: Mapping[str, int]) -> bool:
    """Tell whether instances of a statement in one launch touch an element again."""
    moving = [loop for loop in statement.loops if trips.get(loop, 2) > 1]
    return _rank(access, tuple(moving)) < len(moving)


def _has_neighbours(access: AccessFacts, loops: tuple[str, ...]) -> bool:
    """Tell whether an access ever touches two elements next to each other in a launch."""
    rows = [[dict(terms).get(loop, 0) for loop in loops] for terms, _ in access.subscripts]
    if not rows or not loops:
        return False
    matrix = np.array(rows)
    step = np.zeros((len(rows), 1), dtype=matrix.dtype)
    step[-1, 0] = 1
    wider = np.concatenate([matrix, step], axis=1)
    return bool(np.linalg.matrix_rank(wider) == np.linalg.matrix_rank(matrix))


def _rank(access: AccessFacts, loops: tuple[str, ...]) -> int:
    if not loops:
        return 0
    matrix = [[dict(terms).get(loop, 0) for loop in loops] for terms, _ in access.subscripts]
    return int(np.linalg.matrix_rank(np.array(matrix))) if matrix else 0


def _coalesced(
    uses: Sequence[Use], statements: tuple[StatementFacts, ...], threads: tuple[str, ...]
) -> bool:
    """Tell whether the next thread along ``x`` touches the next element, wherever there is one."""
    if not threads:
        return False
    along = threads[-1]
    for use in uses:
        if along not in statements[use.statement].loops:
            continue
        if not _has_neighbours(use.access, statements[use.statement].loops):
            continue
        *outer, (last, _) = use.access.subscripts
        if dict(last).get(along, 0) != 1 or any(dict(terms).get(along, 0) for terms, _ in outer):
            return False
    return len({use.access.reference for use in uses}) == 1


def _box(uses: list[Use]) -> tuple[tuple[Coefficients, int], ...] | None:
    """Return the box that holds what all uses touch in a tile, if they move alike."""
    if not all(use.access.affine for use in uses):
        return None
    first = max((use.access for use in uses), key=lambda a: sum(len(t) for t, _ in a.subscripts))
    box = []
    for position, (terms, _) in enumerate(first.subscripts):
        offsets = []
        for use in uses:
            others, offset = use.access.subscripts[position]
            if not set(others) <= set(terms):
                return None
            offsets.append(offset)
        box.append((terms, max(offsets) - min(offsets)))
    return tuple(box)


def _common_tiles(groups: list[Group]) -> list[Group]:
    """Join shareable groups of one array that move alike, so that a halo is copied once."""
    joined: list[Group] = []
    for group in groups:
        if group.shareable and not group.private:
            for at, other in enumerate(joined):
                if other.array != group.array or not other.shareable or other.private:
                    continue
                box = _box([*other.uses, *group.uses])
                if box is not None and all(spread < 16 for _, spread in box):
                    joined[at] = Group(
                        array=group.array,
                        element_bytes=group.element_bytes,
                        uses=other.uses + group.uses,
                        loops=other.loops | group.loops,
                        private=False,
                        shareable=True,
                        box=box,
                    )
                    break
            else:
                joined.append(group)
        else:
            joined.append(group)
    return joined

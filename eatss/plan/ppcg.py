"""Where PPCG keeps each array of a kernel: private, shared or global memory.

PPCG puts the references to one array into groups. A group whose elements each belong to one
thread becomes private; one that is used again, or that neighbouring threads do not read as
neighbours, is copied to shared memory as a box, as long as there is room; the rest stays global.
These are facts of the kernel. Only the sizes of the boxes depend on the tile.

What a launch of PPCG's code does: PPCG's rules in the place of those of eatss.

PPCG gives each block a tile, or several in turn where the grid is smaller; its threads deal out
the points of the tile one by one, cyclically. Loops that are not mapped run inside each thread.
Groups of references are private, shared or global (:mod:`eatss.plan.ppcg`). Where a private
array has more than one element a thread, PPCG unrolls the points of a thread inside the serial
loops; else the points are loops around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain, combinations, takewhile
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from eatss.analysis.facts import AccessFacts, KernelFacts, StatementFacts
from eatss.analysis.layout import Layout
from eatss.base.frozen import frozen
from eatss.plan.intervals import beyond, both, named
from eatss.plan.launch import Tiled
from eatss.plan.numbers import Flag, Number, all_of, any_of, chosen, no, nowhere

MAX_GRID_LOOPS = 2
MAX_THREAD_LOOPS = 3

_FEW_STEPS = 8
"""Steps of a loop that is unrolled around a division, at most: 192 registers with 8, 128 with 4."""

_MOST_SPREAD = 16
"""Constants of references that one box holds differ by less."""

Box = tuple[tuple[tuple[tuple[str, int], ...], int], ...]
"""Each dimension of an array as the coefficients of loops and the spread of the constants."""


@frozen
class Use:
    """One access of one statement that belongs to a group."""

    statement: int
    access: AccessFacts


@frozen
class Group:
    """References to one array that PPCG treats alike.

    ``box`` is ``None`` where none of fixed size holds them. ``loops`` are those that move any of
    the references.
    """

    array: str
    element_bytes: int
    uses: tuple[Use, ...]
    loops: frozenset[str]
    private: bool
    shareable: bool
    box: Box | None
    reads: bool

    @property
    def may_be_staged(self) -> bool:
        """Whether it is copied to shared memory where there is room."""
        return self.shareable and not self.private

    @property
    def writes(self) -> bool:
        """Whether any access writes."""
        return any(use.access.writes for use in self.uses)


@dataclass(frozen=True)
class PpcgKernel:
    """A kernel as PPCG 0.09 maps it, sizes aside."""

    facts: KernelFacts

    @cached_property
    def band(self) -> tuple[str, ...]:
        """All loops that are tiled."""
        return tuple(loop.name for loop in self.facts.loops)

    @cached_property
    def trips(self) -> dict[str, int]:
        """The trips of all loops, with what stands beside them."""
        return dict(self.facts.work.trips + self.facts.work.spans)

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """The leading parallel loops, which are mapped to threads, the last one along ``x``."""
        leading = takewhile(lambda loop: loop.parallel, self.facts.loops)
        return tuple(loop.name for loop in leading)[:MAX_THREAD_LOOPS]

    @property
    def grid(self) -> tuple[str, ...]:
        """Those that are mapped to blocks."""
        return self.threads[:MAX_GRID_LOOPS]

    @property
    def along_x(self) -> str | None:
        """The loop along ``threadIdx.x``."""
        return self.threads[-1] if self.threads else None

    def is_cut(self, loop: str, tile: Number, threads: Number = 1.0) -> Flag:
        """Return where the end of a loop cuts a tile, or a tile the threads of a block, off.

        So does the begin of one that begins beside another statement, unless a tile has it all.
        """
        trips = self.trips[loop]
        beside = loop in dict(self.facts.work.spans)
        inside = (tile > 1) & (tile < trips) & beside
        return (np.mod(trips, tile) > 0) | (np.mod(tile, threads) > 0) | inside

    @property
    def statements(self) -> tuple[StatementFacts, ...]:
        """The statements of the kernel."""
        return self.facts.work.statements

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order of the arrays' names.

        Shareable groups of one array that move alike are one, so that a halo is copied once.
        """
        joined: list[Group] = []
        for array in sorted(self.facts.work.arrays, key=lambda array: array.name):
            uses = [
                Use(statement=at, access=access)
                for at, statement in enumerate(self.statements)
                for access in statement.accesses
                if access.array == array.name
            ]
            for own in map(self._group, _merged(uses, self.facts.overlaps)):
                at, box = self._alike(joined, own)
                if box is None:
                    joined.append(own)
                else:
                    other = joined[at]
                    uses_of_both = other.uses + own.uses
                    loops = frozenset(loop for terms, _ in box for loop, _ in terms)
                    reads = self._needs_old(uses_of_both)
                    joined[at] = replace(own, uses=uses_of_both, loops=loops, box=box, reads=reads)
        return tuple(joined)

    def _group(self, uses: Sequence[Use]) -> Group:
        reuse, access = self._reused(uses, self.trips), uses[0].access
        box = _box(uses, self.trips)
        moved = frozenset(loop for use in uses for loop in use.access.moving)
        private = (
            reuse
            and len({use.access.reference for use in uses}) == 1
            and box is not None
            and moved == frozenset(self.threads)
            and _rank(_matrix(access, self.threads)) == len(self.threads)
        )
        shareable = bool(self.threads) and box is not None and (reuse or not self._coalesced(uses))
        return Group(
            array=access.array,
            element_bytes=access.element_bytes,
            uses=tuple(uses),
            loops=moved,
            private=private,
            shareable=shareable,
            box=box,
            reads=self._needs_old(uses),
        )

    def _alike(self, groups: Sequence[Group], own: Group) -> tuple[int, Box | None]:
        """Return the first group that shares a box with another one, and the box, if there is one.

        One that loops walk all over that are not tiled holds what others walk over tile by tile.
        """
        if own.may_be_staged:
            tied = {loop for one in self.statements for loop in one.coupled}
            inner = {loop.name for loop in self.facts.inner_loops} - tied
            for at, other in enumerate(groups):
                if other.array == own.array and other.may_be_staged:
                    box = _box([*other.uses, *own.uses], self.trips, inner)
                    if box is not None and all(spread < _MOST_SPREAD for _, spread in box):
                        return at, box
        return 0, None

    def _needs_old(self, uses: Sequence[Use]) -> bool:
        """Tell whether a tile reads of a group what it has not written itself.

        Where its first statement writes all that others use, PPCG copies nothing in.
        """
        first = min(uses, key=lambda use: (use.statement, -use.access.reads))
        begins, launches = self.statements[first.statement], float(self.facts.work.launches or 1)
        filled = begins.fill(self.trips, launches)
        if not any(use.access.reads for use in uses) or first.access.reads:
            return first.access.reads > 0
        return not all(
            use.access.subscripts == first.access.subscripts
            and {*begins.loops} <= {*one.loops}
            and one.fill(self.trips, launches) <= filled
            for use, one in ((use, self.statements[use.statement]) for use in uses)
        )

    @cached_property
    def _despite(self) -> dict[tuple[int, frozenset[str]], bool]:
        return {}

    def staged_despite(self, group: Group, unit: frozenset[str]) -> bool:
        """Tell whether PPCG would stage a group though tiles along some loops are one iteration.

        What is read again in other tiles only is not used again within one.

        Args:
            group: one of the kernel's that may be staged.
            unit: loops whose tiles are one iteration.
        """
        key = id(group), unit  # groups stay as long as their kernel
        if key not in self._despite:
            trips = {**self.trips, **dict.fromkeys(unit, 1)}
            reused = self._reused(group.uses, trips)
            self._despite[key] = reused or not self._coalesced(group.uses)
        return self._despite[key]

    def _reused(self, uses: Sequence[Use], trips: Mapping[str, int]) -> bool:
        """Tell whether instances of a launch touch an element of a group more than once.

        Statements of one iteration that touch the same element count as one.
        """
        if len({(use.access.reference, self._touches(use)) for use in uses}) > 1:
            return True
        for use in uses:
            loops = self.statements[use.statement].loops
            moving = [loop for loop in loops if trips.get(loop, 2) > 1]
            if _rank(_matrix(use.access, moving)) < len(moving):
                return True
        return False

    def _touches(self, use: Use) -> tuple[object, ...]:
        return use.access.subscripts, self.statements[use.statement].loops

    def _coalesced(self, uses: Sequence[Use]) -> bool:
        """Tell whether the next thread along ``x`` has the next element, wherever there is one."""
        if not self.threads:
            return False
        along = self.threads[-1]
        for use in uses:
            loops = self.statements[use.statement].loops
            if along in loops and _has_neighbours(_matrix(use.access, loops)):
                *outer, last = (dict(terms).get(along, 0) for terms in use.access.terms)
                if last != 1 or any(outer):
                    return False
        return len({use.access.reference for use in uses}) == 1


def has_branches(statement: StatementFacts, still: Collection[str] = ()) -> bool:
    """Tell whether the compiler puts branches into a statement: those of divisions and the like.

    What is the same in all steps of a loop that is ``still`` it computes in front of that.
    """
    left = Counter(dict(statement.operations))
    for loops, kinds in statement.repeated:
        if not {*still} <= {*loops}:
            left.subtract(dict(kinds))
    return any(left[kind] > 0 for kind in _WITH_BRANCHES)


_WITH_BRANCHES = frozenset({"divide", "quotient", "square root", "function"})


def _merged(uses: Sequence[Use], overlaps: frozenset[frozenset[int]]) -> list[list[Use]]:
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
                    a == b or frozenset((a, b)) in overlaps
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


def _matrix(access: AccessFacts, loops: Sequence[str]) -> npt.NDArray[Any]:
    """Return the coefficients of loops, a row a dimension of the array."""
    rows = [[dict(terms).get(loop, 0) for loop in loops] for terms in access.terms]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(loops))


def _rank(matrix: npt.NDArray[Any]) -> int:
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


def _has_neighbours(matrix: npt.NDArray[Any]) -> bool:
    """Tell whether an access ever touches two elements next to each other in a launch.

    Steps of loops are whole: ``A[i][c - 4 * t - 2 * i]`` touches every fourth element of a row.
    """
    columns = [column for column in matrix.T.tolist() if any(column)]
    for row in range(len(matrix) - 1):  # by Euclid's steps one column at most moves along it
        while len(moving := [column for column in columns if column[row]]) > 1:
            least = min(moving, key=lambda column: abs(column[row]))
            columns = [
                column
                if column is least
                else [a - column[row] // least[row] * b for a, b in zip(column, least, strict=True)]
                for column in columns
            ]
        columns = [column for column in columns if not column[row]]
    return gcd(*(column[-1] for column in columns)) == 1


def _box(uses: Sequence[Use], trips: Mapping[str, int], whole: Collection[str] = ()) -> Box | None:
    """Return the box that holds what all uses touch in a tile, if they move alike.

    Along a dimension of which loops that are ``whole`` in every tile touch all others may, too.
    """
    if not all(use.access.affine for use in uses):
        return None
    if len({use.access.touched.form for use in uses if use.access.touched is not None}) > 1:
        return None  # loops of the host move them apart
    widest = max((use.access for use in uses), key=lambda a: sum(map(len, a.terms)))
    box = []
    for position, along in enumerate(widest.terms):
        others = [use.access.subscripts[position] for use in uses]
        offsets, own = [offset for _, offset in others], along
        if not all({*one} <= {*own} for one, _ in others):
            whole_last = (({*dict(one)} <= {*whole}, one) for one, _ in others)
            every, own = max(whole_last, key=lambda one: (spanned(one[1], trips), one[0]))
            if not every or len({*offsets}) > 1:
                return None
        box.append((own, max(offsets) - min(offsets)))
    return tuple(box)


GRID_LIMITS = {1: (32768,), 2: (256, 256)}
"""Blocks that PPCG launches at most along each axis unless told otherwise."""


@frozen
class PpcgCandidates(Layout):
    """Layouts of one kernel in PPCG's code: each number is a column of them.

    ``shared_limit_bytes`` is what ``--max-shared-memory`` says; ``unroll`` is 1 with
    ``--unroll-gpu-tile``, else 0. No tile is larger than the trips, no block than the tile.
    ``staged_groups`` says of each group whether it is in shared memory, where that is decided.
    """

    shared_limit_bytes: Number
    unroll: Number
    staged_groups: tuple[Number, ...] | None = None
    points: tuple[tuple[str, Number], ...] = ()
    loops_cut: tuple[tuple[str, Flag], ...] = ()

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.shared_limit_bytes)


def ppcg_plan(kernel: PpcgKernel, candidates: PpcgCandidates) -> PpcgPlan:
    """Return what a launch of each candidate's code does."""
    trips = kernel.trips
    tile = dict(candidates.tile_sizes)
    cut = dict(candidates.loops_cut)
    steps = {n: _whole(trips[n] / tile[n], cut.get(n)) for n in kernel.band}
    threads = dict(candidates.block)
    blocks: Number = 1.0
    turns: dict[str, Number] = {}
    for name, most in zip(kernel.grid, GRID_LIMITS.get(len(kernel.grid), ()), strict=True):
        blocks = blocks * np.minimum(steps[name], most)
        turns[name] = np.maximum(1.0, steps[name] / most)
    return PpcgPlan(
        kernel=kernel,
        candidates=candidates,
        tile=tile,
        threads=threads,
        steps=steps,
        active=named("blocks", blocks),
        turns_along=turns,
        tiles=prod((steps[name] for name in kernel.grid), start=1.0),
    )


def _whole(quotient: Number, cut: Flag | None) -> Number:
    """Return a quotient rounded up, which it need not be where it is known that nothing is cut."""
    found = np.ceil(quotient)
    return found if cut is None else both(np.where(cut, found, quotient), found)


def spanned(
    terms: Iterable[tuple[str, int]], extents: Mapping[str, Number], spread: int = 0
) -> Number:
    """Return how many elements along a dimension loops of such extents span."""
    found: Number = 0.0
    left = 1 + spread
    for loop, factor in terms:
        if loop in extents:
            found, left = found + abs(factor) * extents[loop], left - abs(factor)
    return found + 1.0 * left if left >= 0 else beyond(found, -1.0 * left)


@dataclass(frozen=True, kw_only=True, eq=False)
class PpcgPlan(Tiled):
    """A launch of candidates for a kernel.

    There are ``active`` blocks of it, which take ``tiles`` in ``turns``, one after the other.
    """

    kernel: PpcgKernel
    candidates: PpcgCandidates
    active: Number
    turns_along: dict[str, Number]
    tiles: Number

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.candidates)

    @property
    def turns(self) -> Number:
        """Tiles that a block takes, one after the other."""
        return prod(self.turns_along.values(), start=1.0)

    def turns_beside(self, group: Group) -> Number:
        """Return for how many tiles in turn a block copies a group once: it is the same in all."""
        found: Number = 1.0
        moved: Flag = False
        for name in reversed(self.kernel.band):
            moved = moved | ((name in group.loops) & (self.steps[name] > 1))
            found = found * np.where(moved, 1.0, self.turns_along.get(name, 1.0))
        return found

    def extent(self, loop: str) -> Number:
        """Return the iterations of a loop within a tile."""
        return self.tile[loop] if loop in self.tile else self.kernel.trips[loop]

    def serial_loops(self, statement: StatementFacts) -> list[str]:
        """Return the loops of a statement that a thread runs itself, outermost first."""
        band = [name for name in self.kernel.band if name not in self.kernel.threads]
        inner = [loop.name for loop in self.kernel.facts.inner_loops]
        return [name for name in band + inner if name in statement.loops]

    def fill(self, statement: StatementFacts) -> float:
        """Return the share of the box of its loops that a statement runs at."""
        return statement.fill(self.kernel.trips, float(self.kernel.facts.work.launches or 1))

    # -- what is staged in shared memory ----------------------------------------------------------

    @cached_property
    def _staged(self) -> tuple[list[Number], Number]:
        left, used = self.candidates.shared_limit_bytes, np.zeros(len(self))
        staged: list[Number] = []
        decided = self.candidates.staged_groups
        for group in self.kernel.groups:
            fits: Number = np.zeros(len(self))
            if group.may_be_staged:
                size = prod(self.box(group)) * group.element_bytes
                if decided is None:
                    fits = (size <= left) * self._wanted(group)
                else:
                    fits = fits + decided[len(staged)]
                left = beyond(left, fits * size)
                used = used + fits * size
            staged.append(fits)
        return staged, used

    @property
    def staged(self) -> list[Number]:
        """For each group of the kernel 1 where it is in shared memory, 0 elsewhere.

        PPCG takes the groups in the order of the arrays' names; one that has no room left is
        skipped.
        """
        return self._staged[0]

    @property
    def shared_bytes(self) -> Number:
        """Shared memory of a block."""
        return self._staged[1]

    @property
    def is_ruled(self) -> Flag:
        """Where PPCG stages what is decided, if a block may have just as much as that takes.

        What it leaves out has no room beside what comes later, or is not wanted.
        """
        later: Number = 0.0
        found: Flag = True
        for group, on in zip(reversed(self.kernel.groups), reversed(self.staged), strict=True):
            if group.may_be_staged:
                size, wanted = prod(self.box(group)) * group.element_bytes, self._wanted(group) > 0
                here = on > 0
                found = (
                    found
                    & (no(here) | wanted)
                    & (here | (size / np.maximum(1.0, later) > 1) | no(wanted))
                )
                later = later + on * size
        return found

    def _wanted(self, group: Group) -> Number:
        """Return 1 where a group that may be staged is used again in a tile, or not coalesced."""
        found: Number = 1.0
        for still, here in self._still:
            if not self.kernel.staged_despite(group, still):
                found = chosen(here, 0.0, found)
        return found

    @cached_property
    def _still(self) -> list[tuple[frozenset[str], Flag]]:
        """The sets of loops whose tiles are one step, and where these are the ones."""
        names = [name for name in self.kernel.band if self.kernel.trips[name] > 1]
        ones = {name: self.tile[name] == 1 for name in names}
        counts = range(1, len(names) + 1)
        found = [
            (frozenset(still), all_of(ones[name] == (name in still) for name in names))
            for still in chain(*(combinations(names, count) for count in counts))
        ]
        return [(still, here) for still, here in found if not nowhere(here)]

    def box(self, group: Group) -> list[Number]:
        """Return the extents of the box that a group is copied as, outermost first.

        Loops that its statements tie together go as far as the shortest of them. A box begins at
        one place for all its references: of a loop that some of them do not move along all fits.
        """
        assert group.box is not None
        statements, sizes = [self.kernel.statements[use.statement] for use in group.uses], []
        tied = statements[0].coupled if all(one.tied for one in statements) else ()
        pairs = [*zip(group.uses, statements, strict=True)]
        still = frozenset(
            (at, name)
            for at, (terms, _) in enumerate(group.box)
            for name, _ in terms
            if not any(one.coupled for one in statements)
            and any(name in {*one.loops} - {*dict(u.access.terms[at])} for u, one in pairs)
        )
        key = group.box, tied, still
        if key in self._boxes:
            return self._boxes[key]
        least, trips = reduce(np.minimum, map(self.extent, tied), np.inf), self.kernel.trips
        for at, (terms, spread) in enumerate(group.box):
            extents = {n: 1.0 * trips[n] if (at, n) in still else self.extent(n) for n, _ in terms}
            extents |= {n: np.minimum(own, least) for n, own in extents.items() if n in tied}
            sizes.append(spanned(terms, extents, spread))
        self._boxes[key] = sizes
        return sizes

    @cached_property
    def _boxes(self) -> dict[object, list[Number]]:
        return {}

    # -- the points of a thread -------------------------------------------------------------------

    @cached_property
    def points(self) -> dict[str, Number]:
        """Points of a thread by mapped loop."""
        counted = super().points
        known, cut = dict(self.candidates.points), dict(self.candidates.loops_cut)
        if cut:  # of a box
            parts = {n: self.tile[n] / own for n, own in self.threads.items()}
            counted = {n: both(np.where(cut[n], own, parts[n]), own) for n, own in counted.items()}
        return {n: named(f"points {n}", both(own, known.get(n, own))) for n, own in counted.items()}

    @cached_property
    def unrolled(self) -> Number:
        """1 where the points of a thread stand in the text one by one."""
        private = any(group.private for group in self.kernel.groups)
        return 1.0 * ((self.all_points > 1) & (private | (self.candidates.unroll > 0)))

    @cached_property
    def local(self) -> Number:
        """1 where private arrays are indexed by a serial loop and so leave the registers.

        PPCG indexes them so where a statement ties a serial loop to a thread's points along
        another.
        """
        private = {u.statement for group in self.kernel.groups if group.private for u in group.uses}
        local: Number = 0.0
        for at, statement in enumerate(self.kernel.statements):
            if statement.tied and at in private:
                for name in self.kernel.threads:
                    if name in statement.coupled:
                        local = np.maximum(local, 1.0 * (self.points[name] > 1))
        return local

    def guarded(self, loops: Collection[str]) -> Number:
        """Return the share of a thread's points that stand behind tests along some loops.

        Where the end of a loop cuts tiles off, the points that may lie outside do.
        """
        free: Number = 1.0
        for name, points in self.points.items():
            if name not in loops:
                continue
            tile, count = self.tile[name], self.threads[name]
            left = np.mod(self.kernel.trips[name], tile)
            inside = np.where(left > 0, np.floor(left / count), points)
            inside = np.where(np.mod(tile, count) > 0, beyond(inside, 1.0), inside)
            # what is left is less than a tile
            inside = np.where(self.cut[name], np.minimum(inside, points - 1), points)
            free = free * np.where(points > 1, np.clip(inside / points, 0.0, 1.0), 1.0)
        return 1.0 - free

    def busy_warps(self, loops: Collection[str]) -> Number:
        """Return the share of the points of all threads along some loops that a warp runs.

        Where a tile is no multiple of its threads only the first of them have a last point.
        """
        share: Number = 1.0
        for (name, count), lanes in zip(self.axes, self.lanes, strict=True):
            if name in loops:
                tile, most = self.tile[name], count * self.points[name]
                run = np.minimum(np.ceil(tile / lanes) * lanes, most)
                share = share * np.maximum(tile, run) / most
        return share

    @cached_property
    def cut_off(self) -> Number:
        """1 where the end of a loop cuts a tile, or a tile the threads of a block, off."""
        return 1.0 * any_of(self.cut[name] for name in self.threads)

    @cached_property
    def cut(self) -> dict[str, Flag]:
        """By loop where its end cuts a tile, or a tile the threads of a block, off."""
        known = dict(self.candidates.loops_cut)
        kernel, threads = self.kernel, self.threads
        return {
            name: known[name]
            if name in known
            else kernel.is_cut(name, tile, threads.get(name, 1.0))
            for name, tile in self.tile.items()
        }

    def known(self, statement: StatementFacts, loop: str) -> Flag:
        """Where the compiler knows how often a loop of a statement runs, and would unroll it.

        Around a branch it does for a few steps only [machine code].
        """
        few = (self.extent(loop) <= _FEW_STEPS) | (not has_branches(statement, {loop}))
        return no(self.cut.get(loop, False)) & (loop not in statement.coupled) & few

    def tiles_cut(self, name: str) -> Flag:
        """Where a loop's end cuts a tile off."""
        alone = self.kernel.is_cut(name, self.tile[name])
        return self.cut[name] & alone if name in self.threads else self.cut[name]

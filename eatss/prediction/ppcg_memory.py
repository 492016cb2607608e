"""What caches and memory do for PPCG's code: requests, what L1 has, what comes from beyond L2."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np

from eatss.analysis.touched import touched_bytes
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.plan.numbers import Number
from eatss.prediction.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    box_wavefronts,
    line_wavefronts,
    lines,
    sectors,
    torn_sectors,
)
from eatss.prediction.ppcg_groups import Group
from eatss.prediction.ppcg_launch import PpcgLaunch

MOST_CROWDED = 16
"""Sets of L1 that lines a power of two apart miss, at most, for each one they meet in."""

_MOST_REUSED = 64

PAGE_PIECE_BYTES = 256

LEAST_FRESH = 0.05
"""Share of what a launch touches that comes from memory though all arrays fit L2."""


def alike(statement: StatementFacts) -> dict[object, int]:
    """Count the accesses of a statement that differ by constants only (``A[i-1]``, ``A[i]``)."""
    return Counter(form(access) for access in statement.accesses)


def form(access: AccessFacts) -> object:
    """Return what accesses that differ by constants only have in common."""
    return access.array, access.terms


# -- requests of a warp ---------------------------------------------------------------------------


def request(of: PpcgLaunch, access: AccessFacts) -> tuple[Number, Number]:
    """Return wavefronts and sectors of one request of a warp to global memory."""
    (steps, offset), width = _steps(of, access), access.element_bytes
    least, touched = of.card.warp * width / LINE_BYTES, lines(of.lanes, steps, width, offset)
    cycles = line_wavefronts(least, touched, of.constants.line_cycles)
    return cycles, sectors(of.lanes, steps, width, offset)


def _steps(of: PpcgLaunch, access: AccessFacts) -> tuple[list[float], int]:
    """Return the bytes between neighbours along each axis, and where rows begin."""
    strides, width = dict(access.strides), access.element_bytes
    steps = [float(strides.get(n, 0) * width) for n in reversed(of.kernel.threads)]
    along = bool(steps) and 0 < abs(steps[0]) <= SECTOR_BYTES
    return steps, access.origin * width if along else 0


def torn(of: PpcgLaunch, access: AccessFacts) -> Number:
    """Return the sectors that one store of a warp writes in part only."""
    steps, offset = _steps(of, access)
    return torn_sectors(of.lanes, steps, access.element_bytes, offset)


def bank_request(of: PpcgLaunch, group: Group, access: AccessFacts) -> Number:
    """Return the wavefronts of one request to a group's box in shared memory."""
    axes = [*reversed(of.kernel.threads)]
    return box_wavefronts(of.lanes, axes, access, of.box_sizes(group), group.element_bytes)


# -- L1 -------------------------------------------------------------------------------------------


def missing(
    of: PpcgLaunch, statement: StatementFacts, access: AccessFacts, sector: Number, wave: Number
) -> Number:
    """Return the share of a warp's sectors that L1 does not have yet.

    Neighbouring warps and the next steps of serial loops touch the same sectors again. They
    find them where what the resident blocks touch meanwhile fits L1: in one step for the line
    that is walked along, in a step of the loop that comes back for all that a tile touches.
    """
    moving, trips = dict(access.strides), of.kernel.trips
    distinct = of.ones
    for name in of.kernel.threads:
        if name in moving:
            distinct = distinct * of.block[name]
    sharing = of.threads / np.maximum(1.0, distinct)
    step_sectors = np.maximum(1.0, of.warps * sector)
    serial = of.serial_loops(statement)
    reuse = 1.0
    if serial:
        step = abs(moving.get(serial[-1], 0)) * access.element_bytes
        if step == 0:
            reuse = float(min(_MOST_REUSED, trips[serial[-1]]))
        elif step < SECTOR_BYTES:
            reuse = SECTOR_BYTES / step
    walked = 1.0 / np.minimum(sharing, step_sectors) / reuse
    near = _lines_stay(of, access, wave)
    short = walked * near + (1.0 - near)
    instances = of.points_of(n for n in of.kernel.threads if n in statement.loops)
    for name in serial:
        instances = instances * of.extent(name)
    touched = _tile_sectors(of, access, frozenset())
    tile = np.minimum(1.0, touched / np.maximum(1.0, instances * step_sectors))
    comes_back = [at for at, name in enumerate(serial) if name not in moving]
    fits = _stays(of, serial, comes_back[-1] if comes_back else -1)
    return np.asarray(np.minimum(short, tile * fits + short * (1.0 - fits)))


def waiting(of: PpcgLaunch, statement: StatementFacts, access: AccessFacts, wave: Number) -> Number:
    """Return the share of a thread's requests that wait for more than L1.

    A thread waits the first time it comes to a sector. It comes again along loops that do not
    move the address, and along one that moves it by less than a sector.
    """
    moving, serial = dict(access.strides), of.serial_loops(statement)
    waits = of.ones
    for position, name in enumerate(serial):
        step = abs(moving.get(name, 0)) * access.element_bytes
        innermost = position == len(serial) - 1
        if step == 0:
            stays = of.ones if innermost else _stays(of, serial, position)
            waits = waits * (1.0 - stays + stays / of.extent(name))
        elif innermost and step < SECTOR_BYTES:
            stays = _lines_stay(of, access, wave)
            waits = waits * (1.0 - stays + stays * step / SECTOR_BYTES)
    return waits


def sharing(of: PpcgLaunch, loops: frozenset[str]) -> Number:
    """Return how many of an SM's resident blocks fetch the same of a group of references.

    Blocks are dealt to SMs one by one, those along ``x`` first.
    """
    if len(of.kernel.grid) < len(("rows", "columns")):
        return of.ones
    rows, columns = of.kernel.grid
    across = np.maximum(1.0, of.steps[columns])
    resident = np.maximum(1.0, of.resident)
    sms = float(of.card.sms)
    if rows not in loops and columns in loops:
        different = np.minimum(resident, across / np.gcd(across.astype(np.int64), int(sms)))
    elif columns not in loops and rows in loops:
        different = np.minimum(resident, np.maximum(1.0, np.ceil(resident * sms / across)))
    else:
        return of.ones
    return 1.0 + of.constants.lockstep * (resident / np.maximum(1.0, different) - 1.0)


def _lines_stay(of: PpcgLaunch, access: AccessFacts, wave: Number) -> Number:
    """Return the share of the lines of one step that L1 keeps until the next step.

    Rows that lie a multiple of a large power of two apart meet in few of its sets.
    """
    along = of.kernel.along_x
    step = abs(dict(access.strides).get(along, 0)) * access.element_bytes if along else 0
    crowded = min(MOST_CROWDED, max(1, (step & -step) // LINE_BYTES)) if step else 1
    points = np.where(of.unrolled > 0, of.points_of(of.kernel.threads), 1.0)
    uses = of.warps * wave * LINE_BYTES * of.present * crowded * points
    return np.asarray(np.clip(of.l1_bytes / np.maximum(1.0, uses), 0.0, 1.0))


def _stays(of: PpcgLaunch, serial: list[str], position: int) -> Number:
    """Return the share of what one step of a serial loop touches that L1 keeps for the next.

    Lines go in the order they came: of twice what L1 has room for nothing is left.
    """
    still = frozenset(serial[: position + 1])
    if still not in of.kept:
        touched = of.zeros
        for group, on in zip(of.kernel.groups, of.staged, strict=True):
            if group.private:
                continue
            for access in {form(use.access): use.access for use in group.uses}.values():
                touched += (1.0 - on) * _tile_sectors(of, access, still) * SECTOR_BYTES
        room = 2 * of.l1_bytes / np.maximum(1.0, touched * of.present) - 1.0
        of.kept[still] = np.clip(room, 0.0, 1.0)
    return of.kept[still]


def _tile_sectors(of: PpcgLaunch, access: AccessFacts, still: frozenset[str]) -> Number:
    """Return the sectors that a tile touches through one access while some loops stand."""
    total = of.ones
    for position, (terms, _) in enumerate(access.subscripts):
        size = of.ones
        for loop, factor in terms:
            if loop not in still:
                size = size + abs(factor) * (of.extent(loop) - 1)
        if position == len(access.subscripts) - 1:
            size = np.ceil(size * access.element_bytes / SECTOR_BYTES)
        total = total * size
    return total


# -- beyond L2 ------------------------------------------------------------------------------------


def moved_bytes(of: PpcgLaunch, l2_bytes: Number) -> Number:
    """Return the bytes of one launch from and to memory.

    At least every sector once, unless all of it stays in L2 between launches. What blocks
    that do not run at the same time read again comes from memory where L2 cannot hold it.
    """
    total, least = of.zeros, 0.0
    for array in of.kernel.facts.work.arrays:
        whole = float(array.elements * array.element_bytes)
        groups = [group for group in of.kernel.groups if group.array == array.name]
        for writing in (False, True):
            mine = [g for g in groups if (g.writes if writing else g.reads)]
            if mine:
                total = total + np.maximum.reduce([_fetched(of, group) for group in mine])
            uses = (use.access for group in mine for use in group.uses)
            touched = [
                access.touched
                for access in uses
                if access.touched is not None and (access.writes if writing else access.reads)
            ]
            least += min(whole, touched_bytes(touched)) * _fresh(of)
    return np.maximum(np.minimum(total, np.maximum(l2_bytes, total * 0.02)), least)


def beyond_l1_cycles(of: PpcgLaunch, group: Group, l2_bytes: Number) -> Number:
    """Return the cycles of a load that L1 does not answer, beyond those of L1.

    ``l2_bytes`` are all that the loads of the group take from L2; what of it comes from memory
    takes longer.
    """
    share = np.clip(_fetched(of, group) / np.maximum(1.0, l2_bytes), 0.0, 1.0)
    card, constants = of.card, of.constants
    return constants.l2_wait * card.l2_cycles + share * constants.dram_wait * card.dram_cycles


def scatter(of: PpcgLaunch) -> Number:
    """Return how much longer memory takes because a block walks along its rows in steps.

    With one point a thread along ``x``, neighbouring blocks fetch neighbouring pieces of a
    page of memory at the same time. With more, each comes back to the page for every point,
    and where rows that are updated begin inside a sector, so do those between two points.
    It matters where points are loops around loads and stores of global memory.
    """
    along = of.kernel.along_x
    if along is None or not any(g.writes and not g.private for g in of.kernel.groups):
        return of.ones
    points = of.points[along]
    piece = of.block[along] * of.kernel.facts.element_bytes
    loops = np.where(of.unrolled > 0, 0.0, 1.0)
    steps = (points - 1.0) * PAGE_PIECE_BYTES / piece
    parts = (1.0 - 1.0 / points) * np.minimum(1.0, SECTOR_BYTES / piece)
    tears = max(of.constants.torn_updates * _tears(g, along) for g in of.kernel.groups)
    return np.asarray(1.0 + loops * (of.constants.page_steps * steps + tears * parts))


def _tears(group: Group, along: str) -> bool:
    """Tell whether rows that a group updates begin inside a sector."""
    return (
        not group.private
        and group.reads
        and any(
            use.access.writes
            and abs(dict(use.access.strides).get(along, 0)) == 1
            and bool(use.access.origin * group.element_bytes % SECTOR_BYTES)
            for use in group.uses
        )
    )


def _fresh(of: PpcgLaunch) -> float:
    """Return the share of what a launch touches that L2 has not kept from the one before."""
    work = of.kernel.facts.work
    everything = sum(a.elements * a.element_bytes for a in work.arrays)
    lost = 2 * everything / of.card.l2_bytes - 1.0
    return min(1.0, max(LEAST_FRESH, lost)) if (work.launches or 1) > 1 else 1.0


def _fetched(of: PpcgLaunch, group: Group) -> Number:
    """Return the bytes of a group's elements that one launch takes from memory.

    Blocks that run at the same time find them in L2. Where the whole does not fit it, those
    that run later fetch them again.
    """
    fresh, grid, touched = _fresh(of), of.kernel.grid, _touched_bytes(of, group)
    again = of.ones
    several = len(grid) >= len(("rows", "columns")) and grid[0] not in group.loops
    if fresh == 1.0 and several and touched > 0.5 * of.card.l2_bytes:
        rows, columns = grid
        resident = np.maximum(1.0, of.resident) * of.card.sms
        at_once = np.maximum(1.0, resident / of.steps[columns])
        again = np.maximum(1.0, of.steps[rows] / at_once)
    return touched * again * fresh


def _touched_bytes(of: PpcgLaunch, group: Group) -> float:
    """Return the bytes of a group's elements that one launch touches, about."""
    work = of.kernel.facts.work
    statements = [work.statements[use.statement] for use in group.uses]
    loops = {name for one in statements for name in one.loops}
    elements = prod(float(of.kernel.trips[name]) for name in group.loops if name in loops)
    fill = max(map(of.fill, statements))
    array = next(a for a in work.arrays if a.name == group.array)
    dense = min(elements * min(1.0, fill * 1.5), float(array.elements))
    walks = any(
        abs(step) * group.element_bytes <= SECTOR_BYTES // 2
        for use in group.uses
        for _, step in use.access.strides
    )
    return dense * (group.element_bytes if walks or elements <= 1 else SECTOR_BYTES)

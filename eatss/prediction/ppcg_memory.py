"""What of PPCG's code goes beyond L2: bytes of memory, how long loads wait for it, torn rows."""

from __future__ import annotations

from math import prod

import numpy as np

from eatss.analysis.touched import touched_bytes
from eatss.prediction.access import SECTOR_BYTES
from eatss.prediction.demand import Column
from eatss.prediction.ppcg_groups import Group
from eatss.prediction.ppcg_resources import CodeResources
from eatss.prediction.ppcg_shapes import fill_of

PAGE_PIECE_BYTES = 256

LEAST_FRESH = 0.05
"""Share of what a launch touches that comes from memory though all arrays fit L2."""


class Memory:
    """Answers for the groups of one kernel's candidates."""

    def __init__(self, setting: CodeResources) -> None:
        """Tell how much of all arrays L2 keeps from launch to launch."""
        self._of = setting
        work = setting.kernel.facts.work
        launches = work.launches or 1
        everything = sum(a.elements * a.element_bytes for a in work.arrays)
        lost = 2 * everything / setting.card.l2_bytes - 1.0
        self._fresh = min(1.0, max(LEAST_FRESH, lost)) if launches > 1 else 1.0

    def moved_bytes(self, l2_bytes: Column) -> Column:
        """Return the bytes of one launch from and to memory.

        At least every sector once, unless all of it stays in L2 between launches. What blocks
        that do not run at the same time read again comes from memory where L2 cannot hold it.
        """
        kernel = self._of.kernel
        total, least = np.zeros(len(self._of)), 0.0
        for array in kernel.facts.work.arrays:
            whole = float(array.elements * array.element_bytes)
            groups = [group for group in kernel.groups if group.array == array.name]
            for writing in (False, True):
                mine = [g for g in groups if (g.writes if writing else g.reads)]
                if mine:
                    total = total + np.maximum.reduce([self._fetched(group) for group in mine])
                uses = (use.access for group in mine for use in group.uses)
                touched = [
                    access.touched
                    for access in uses
                    if access.touched is not None and (access.writes if writing else access.reads)
                ]
                least += min(whole, touched_bytes(touched)) * self._fresh
        return np.maximum(np.minimum(total, np.maximum(l2_bytes, total * 0.02)), least)

    def cycles(self, group: Group, l2_bytes: Column) -> Column:
        """Return the cycles of a load that L1 does not answer, beyond those of L1.

        ``l2_bytes`` are all that the loads of the group take from L2; what of it comes from memory
        takes longer.
        """
        share = np.clip(self._fetched(group) / np.maximum(1.0, l2_bytes), 0.0, 1.0)
        card, constants = self._of.card, self._of.constants
        return constants.l2_wait * card.l2_cycles + share * constants.dram_wait * card.dram_cycles

    def scatter(self) -> Column:
        """Return how much longer memory takes because a block walks along its rows in steps.

        With one point a thread along ``x``, neighbouring blocks fetch neighbouring pieces of a
        page of memory at the same time. With more, each comes back to the page for every point,
        and where rows that are updated begin inside a sector, so do those between two points.
        It matters where points are loops around loads and stores of global memory.
        """
        of = self._of
        along = of.kernel.along_x
        if along is None or not any(g.writes and not g.private for g in of.kernel.groups):
            return np.ones(len(of))
        points = of.shape.points[along]
        piece = of.shape.block[along] * of.kernel.facts.element_bytes
        loops = np.where(of.unrolled > 0, 0.0, 1.0)
        steps = (points - 1.0) * PAGE_PIECE_BYTES / piece
        torn = (1.0 - 1.0 / points) * np.minimum(1.0, SECTOR_BYTES / piece)
        tears = max((self._tears(group, along) for group in of.kernel.groups), default=0.0)
        return np.asarray(1.0 + loops * (of.constants.page_steps * steps + tears * torn))

    def _tears(self, group: Group, along: str) -> float:
        """Return how much torn sectors cost where rows that a group updates begin inside one."""
        if group.private or not group.reads:
            return 0.0
        for use in group.uses:
            unaligned = use.access.origin * group.element_bytes % SECTOR_BYTES
            if use.access.writes and abs(dict(use.access.strides).get(along, 0)) == 1 and unaligned:
                return self._of.constants.torn_updates
        return 0.0

    def _fetched(self, group: Group) -> Column:
        """Return the bytes of a group's elements that one launch takes from memory."""
        return self._touched_bytes(group) * self._again(group) * self._fresh

    def _again(self, group: Group) -> Column:
        """Return how often a group's elements come from memory.

        Blocks that run at the same time find them in L2. Where the whole does not fit it, those
        that run later fetch them again.
        """
        of, grid = self._of, self._of.kernel.grid
        once = np.ones(len(of))
        if self._fresh < 1.0 or len(grid) < len(("rows", "columns")) or grid[0] in group.loops:
            return once
        if self._touched_bytes(group) <= 0.5 * of.card.l2_bytes:
            return once
        rows, columns = grid
        resident = np.maximum(1.0, of.resident) * of.card.sms
        at_once = np.maximum(1.0, resident / of.shape.steps[columns])
        return np.maximum(1.0, of.shape.steps[rows] / at_once)

    def _touched_bytes(self, group: Group) -> float:
        """Return the bytes of a group's elements that one launch touches, about."""
        kernel = self._of.kernel
        work = kernel.facts.work
        loops = {name for use in group.uses for name in work.statements[use.statement].loops}
        elements = prod(float(kernel.trips[name]) for name in group.loops if name in loops)
        fill = max(fill_of(kernel, work.statements[use.statement]) for use in group.uses)
        array = next(a for a in work.arrays if a.name == group.array)
        dense = min(elements * min(1.0, fill * 1.5), float(array.elements))
        walks = any(
            abs(step) * group.element_bytes <= SECTOR_BYTES // 2
            for use in group.uses
            for _, step in use.access.strides
        )
        return dense * (group.element_bytes if walks or elements <= 1 else SECTOR_BYTES)

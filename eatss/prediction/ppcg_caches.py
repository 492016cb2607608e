"""What L1 has of what PPCG's code reads, and what a request of a warp costs it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.prediction.access import (
    LINE_BYTES,
    SECTOR_BYTES,
    bank_wavefronts,
    line_wavefronts,
    sectors,
    torn_sectors,
)
from eatss.prediction.demand import Column
from eatss.prediction.ppcg_groups import Group
from eatss.prediction.ppcg_promotion import box_sizes
from eatss.prediction.ppcg_resources import CodeResources
from eatss.prediction.ppcg_shapes import serial_loops

MOST_CROWDED = 16
"""Sets of L1 that lines a power of two apart miss, at most, for each one they meet in."""

_MOST_REUSED = 64


def alike(statement: StatementFacts) -> dict[object, int]:
    """Count the accesses of a statement that differ by constants only (``A[i-1]``, ``A[i]``)."""
    return Counter(form(access) for access in statement.accesses)


def form(access: AccessFacts) -> object:
    """Return what accesses that differ by constants only have in common."""
    return access.array, tuple(terms for terms, _ in access.subscripts)


class Caches:
    """Answers for the accesses of one kernel's candidates."""

    def __init__(self, setting: CodeResources) -> None:
        """Begin with nothing known."""
        self._of = setting
        self._kept: dict[frozenset[str], Column] = {}

    def request(self, access: AccessFacts) -> tuple[Column, Column]:
        """Return wavefronts and sectors of one request of a warp to global memory."""
        of, width = self._of, access.element_bytes
        steps, offset = self._steps(access)
        return (
            line_wavefronts(of.lanes, steps, width, of.constants.line_cycles, offset),
            sectors(of.lanes, steps, width, offset),
        )

    def _steps(self, access: AccessFacts) -> tuple[list[float], int]:
        """Return the bytes between neighbours along each axis, and where rows begin."""
        strides, width = dict(access.strides), access.element_bytes
        steps = [float(strides.get(n, 0) * width) for n in reversed(self._of.kernel.threads)]
        along = bool(steps) and 0 < abs(steps[0]) <= SECTOR_BYTES
        return steps, access.origin * width if along else 0

    def torn(self, access: AccessFacts) -> Column:
        """Return the sectors that one store of a warp writes in part only."""
        of = self._of
        steps, offset = self._steps(access)
        return torn_sectors(of.lanes, steps, access.element_bytes, offset)

    def bank_request(self, group: Group, access: AccessFacts) -> Column:
        """Return the wavefronts of one request to a group's box in shared memory."""
        of, zero = self._of, np.zeros(len(self._of))
        sizes = box_sizes(of.kernel, group, of.shape.tile)
        steps: dict[str, Column] = {}
        apart = np.ones(len(of))
        for (terms, _), size in zip(reversed(access.subscripts), reversed(sizes), strict=True):
            for loop, factor in terms:
                steps[loop] = steps.get(loop, zero) + factor * apart
            apart = apart * size
        along = [steps.get(name, zero) for name in reversed(of.kernel.threads)]
        return bank_wavefronts(of.lanes, along, group.element_bytes)

    def missing(
        self, statement: StatementFacts, access: AccessFacts, sector: Column, wave: Column
    ) -> Column:
        """Return the share of a warp's sectors that L1 does not have yet.

        Neighbouring warps and the next steps of serial loops touch the same sectors again. They
        find them where what the resident blocks touch meanwhile fits L1: in one step for the line
        that is walked along, in a step of the loop that comes back for all that a tile touches.
        """
        of, moving = self._of, dict(access.strides)
        distinct = np.ones(len(of))
        for name in of.kernel.threads:
            if name in moving:
                distinct = distinct * of.shape.block[name]
        sharing = of.shape.threads / np.maximum(1.0, distinct)
        step_sectors = np.maximum(1.0, of.warps * sector)
        serial = serial_loops(of.kernel, statement)
        reuse = 1.0
        if serial:
            step = abs(moving.get(serial[-1], 0)) * access.element_bytes
            if step == 0:
                reuse = float(min(_MOST_REUSED, of.kernel.trips[serial[-1]]))
            elif step < SECTOR_BYTES:
                reuse = SECTOR_BYTES / step
        walked = 1.0 / np.minimum(sharing, step_sectors) / reuse
        near = self._lines_stay(access, wave)
        short = walked * near + (1.0 - near)
        instances = of.shape.points_of(n for n in of.kernel.threads if n in statement.loops)
        for name in serial:
            instances = instances * of.shape.extent(of.kernel, name)
        touched = self._tile_sectors(access, frozenset())
        tile = np.minimum(1.0, touched / np.maximum(1.0, instances * step_sectors))
        comes_back = [at for at, name in enumerate(serial) if name not in moving]
        fits = self._stays(serial, comes_back[-1] if comes_back else -1)
        return np.asarray(np.minimum(short, tile * fits + short * (1.0 - fits)))

    def waiting(self, statement: StatementFacts, access: AccessFacts, wave: Column) -> Column:
        """Return the share of a thread's requests that wait for more than L1.

        A thread waits the first time it comes to a sector. It comes again along loops that do not
        move the address, and along one that moves it by less than a sector.
        """
        of, moving = self._of, dict(access.strides)
        serial = serial_loops(of.kernel, statement)
        waits = np.ones(len(of))
        for position, name in enumerate(serial):
            step = abs(moving.get(name, 0)) * access.element_bytes
            innermost = position == len(serial) - 1
            if step == 0:
                stays = np.ones(len(of)) if innermost else self._stays(serial, position)
                waits = waits * (1.0 - stays + stays / of.shape.extent(of.kernel, name))
            elif innermost and step < SECTOR_BYTES:
                stays = self._lines_stay(access, wave)
                waits = waits * (1.0 - stays + stays * step / SECTOR_BYTES)
        return waits

    def sharing(self, loops: frozenset[str]) -> Column:
        """Return how many of an SM's resident blocks fetch the same of a group of references.

        Blocks are dealt to SMs one by one, those along ``x`` first.
        """
        of = self._of
        if len(of.kernel.grid) < len(("rows", "columns")):
            return np.ones(len(of))
        rows, columns = of.kernel.grid
        across = np.maximum(1.0, of.shape.steps[columns])
        resident = np.maximum(1.0, of.resident)
        sms = float(of.card.sms)
        if rows not in loops and columns in loops:
            different = np.minimum(resident, across / np.gcd(across.astype(np.int64), int(sms)))
        elif columns not in loops and rows in loops:
            different = np.minimum(resident, np.maximum(1.0, np.ceil(resident * sms / across)))
        else:
            return np.ones(len(of))
        return 1.0 + of.constants.lockstep * (resident / np.maximum(1.0, different) - 1.0)

    def _lines_stay(self, access: AccessFacts, wave: Column) -> Column:
        """Return the share of the lines of one step that L1 keeps until the next step.

        Rows that lie a multiple of a large power of two apart meet in few of its sets.
        """
        of, moving = self._of, dict(access.strides)
        along = of.kernel.along_x
        step = abs(moving.get(along, 0)) * access.element_bytes if along else 0
        crowded = min(MOST_CROWDED, max(1, (step & -step) // LINE_BYTES)) if step else 1
        points = np.where(of.unrolled > 0, of.shape.points_of(of.kernel.threads), 1.0)
        uses = of.warps * wave * LINE_BYTES * of.present * crowded * points
        return np.asarray(np.clip(of.l1_bytes / np.maximum(1.0, uses), 0.0, 1.0))

    def _stays(self, serial: list[str], position: int) -> Column:
        """Return the share of what one step of a serial loop touches that L1 keeps for the next.

        Lines go in the order they came: of twice what L1 has room for nothing is left.
        """
        of, still = self._of, frozenset(serial[: position + 1])
        if still not in self._kept:
            touched = np.zeros(len(of))
            for group, on in zip(of.kernel.groups, of.staged, strict=True):
                if group.private:
                    continue
                for access in {form(use.access): use.access for use in group.uses}.values():
                    touched += (1.0 - on) * self._tile_sectors(access, still) * SECTOR_BYTES
            room = 2 * of.l1_bytes / np.maximum(1.0, touched * of.present) - 1.0
            self._kept[still] = np.clip(room, 0.0, 1.0)
        return self._kept[still]

    def _tile_sectors(self, access: AccessFacts, still: frozenset[str]) -> Column:
        """Return the sectors that a tile touches through one access while some loops stand."""
        of = self._of
        total = np.ones(len(of))
        for position, (terms, _) in enumerate(access.subscripts):
            size = np.ones(len(of))
            for loop, factor in terms:
                if loop not in still:
                    size = size + abs(factor) * (of.shape.extent(of.kernel, loop) - 1)
            if position == len(access.subscripts) - 1:
                size = np.ceil(size * access.element_bytes / SECTOR_BYTES)
            total = total * size
        return total

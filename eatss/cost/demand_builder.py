"""The sums of what a launch asks for, as entries of its plan add to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Protocol

import numpy as np

from eatss.analysis.structure import TensorFormat
from eatss.analysis.work import AccessFacts, StatementFacts
from eatss.cost.access import LINE_BYTES, SECTOR_BYTES, box_wavefronts, torn_sectors
from eatss.cost.arithmetic import is_wide
from eatss.cost.card import Card
from eatss.cost.constants import CodeConstants
from eatss.cost.demand import TENSOR_COLUMNS, Demand
from eatss.plan.numbers import Number


class Planned(Protocol):
    """What requests of a warp depend on."""

    @property
    def active(self) -> Number:
        """Blocks that have work."""

    @property
    def block_threads(self) -> Number:
        """Threads of a block."""

    @property
    def axes(self) -> Sequence[tuple[str, Number]]:
        """Threads along ``x``, ``y`` and so on, with the loop each belongs to."""

    @property
    def lanes(self) -> Sequence[Number]:
        """Lanes of a warp along each axis."""


class DemandBuilder:
    """Sums over a launch, an entry a candidate; the names are those of ``Demand``.

    ``late`` are instructions, as if there were so many more. ``copied_bytes`` are the bytes that
    copies to shared memory fetch, ``held_bytes`` those that L2 moves for what registers keep.
    """

    instructions: Number = 0.0
    fp64: Number = 0.0
    fp32: Number = 0.0
    late: Number = 0.0
    l1_wavefronts: Number = 0.0
    shared_wavefronts: Number = 0.0
    operand_bytes: Number = 0.0
    l2_bytes: Number = 0.0
    torn_bytes: Number = 0.0
    copied_bytes: Number = 0.0
    held_bytes: Number = 0.0
    chain_cycles: Number = 0.0
    edge_cycles: Number = 0.0

    def __init__(self, plan: Planned, card: Card, constants: CodeConstants) -> None:
        """Begin at nothing; of a launch those warps count that have work."""
        self._plan, self.card, self.constants = plan, card, constants
        self.warps = np.ceil(plan.block_threads / card.warp)
        self.launched_warps = plan.active * self.warps

    # -- requests of a warp -----------------------------------------------------------------------

    def strides(self, access: AccessFacts) -> list[float]:
        """Return the bytes between neighbouring threads along each axis."""
        moving, width = access.moving, access.element_bytes
        return [float(moving.get(name, 0) * width) for name, _ in self._plan.axes]

    def begins(self, access: AccessFacts) -> int:
        """Return the bytes from the beginning of a sector to that of a row of lanes."""
        return 0

    def torn(self, access: AccessFacts) -> Number:
        """Return the sectors that one store of a warp writes in part only."""
        strides, offset = self.strides(access), self.begins(access)
        return torn_sectors(self._plan.lanes, strides, access.element_bytes, offset)

    def bank_request(self, access: AccessFacts, sizes: Sequence[Number], width: int) -> Number:
        """Return the cycles of one request to a tile of such sizes in shared memory."""
        axes = [name for name, _ in self._plan.axes]
        return box_wavefronts(self._plan.lanes, axes, access, sizes, width)

    # -- sums -------------------------------------------------------------------------------------

    def add_instructions(self, each: Number) -> None:
        """Add instructions of each warp."""
        self.instructions += self.launched_warps * each

    def add_arithmetic(self, statement: StatementFacts, instructions: Number) -> None:
        """Add floating-point instructions of each warp, in the width of a statement."""
        total = self.launched_warps * instructions
        if is_wide(statement):
            self.fp64 += total
        else:
            self.fp32 += total
        self.instructions += total

    def add_products(self, form: TensorFormat, each: Number, instructions: Number) -> None:
        """Add multiply-adds of tensor cores of each warp, over its lanes, by instructions."""
        column = TENSOR_COLUMNS[form]
        setattr(self, column, getattr(self, column, 0.0) + self.launched_warps * each)
        self.instructions += self.launched_warps * instructions

    def add_global(
        self, requests: Number, waves: Number, sectors: Number, missing: Number = 1.0
    ) -> None:
        """Add requests of each warp through L1, of whose sectors a share comes from L2."""
        total = self.launched_warps * requests
        self.l1_wavefronts += total * waves
        self.l2_bytes += total * sectors * SECTOR_BYTES * missing

    def add_stores(self, requests: Number, waves: Number, sectors: Number, torn: Number) -> None:
        """Add requests of each warp that write ``sectors`` each, ``torn`` of them in part only."""
        self.add_global(requests, waves, sectors)
        self.torn_bytes += self.launched_warps * requests * torn * SECTOR_BYTES

    def add_shared(self, requests: Number, waves: Number) -> None:
        """Add requests of each warp to shared memory."""
        self.shared_wavefronts += self.launched_warps * requests * waves

    def add_spills(self, words: Number, times: Number, missing: float) -> None:
        """Add words that registers do not hold: each is stored and loaded so many times.

        Of its lines L1 lacks a share.
        """
        traffic = self.launched_warps * words * times * 2
        self.instructions += traffic
        self.l1_wavefronts += traffic
        self.l2_bytes += traffic * LINE_BYTES * missing

    def demand(self, count: int, **own: Number) -> Demand:
        """Return the sums, and what else is said of so many candidates, else nothing."""
        plan = self._plan
        known = {field.name: getattr(self, field.name, 0.0) for field in fields(Demand)} | {
            "blocks": plan.active,
            "threads": plan.block_threads,
            "lanes": plan.block_threads / (self.warps * self.card.warp),
            **own,
        }
        return Demand(**{name: np.zeros(count) + column for name, column in known.items()})

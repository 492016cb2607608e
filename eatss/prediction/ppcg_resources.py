"""What is the same for all statements of a kernel's candidates: registers, blocks of an SM, L1."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from eatss.prediction.access import lanes_of
from eatss.prediction.card import Card
from eatss.prediction.code_constants import CodeConstants
from eatss.prediction.demand import Column
from eatss.prediction.occupancy import BLOCK_SHARED_BYTES, resident_blocks
from eatss.prediction.ppcg_groups import PpcgKernel
from eatss.prediction.ppcg_promotion import shared_groups
from eatss.prediction.ppcg_shapes import PpcgCandidates, Shape, guarded_share, shape_of

CARVE_OUTS_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Shared memory that an SM can be set to; what is left is L1 [CUDA C++ Programming Guide]."""

LEAST_L1_BYTES = 16 * 1024.0

_MOST_ADDRESSES = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeResources:
    """Candidates for a kernel on a card; every column has an entry a candidate.

    ``staged`` has a column for each group of the kernel, 1 where it is in shared memory.
    ``shared_bytes`` are those of a block. ``lanes`` are those of a warp along each axis, ``x``
    first; ``warps`` those of a block. ``unrolled`` is 1 where the points of a thread stand in the
    text one by one, ``local`` 1 where private arrays are indexed and so leave the registers,
    ``guarded`` the share of points behind tests of their own. ``registers`` are those of a thread,
    ``spilled_words`` those it lacks. ``resident`` blocks fit an SM, ``present`` ones are there.
    ``l1_bytes`` are those of an SM beside shared memory.
    """

    kernel: PpcgKernel
    card: Card
    constants: CodeConstants
    shape: Shape
    staged: list[Column]
    shared_bytes: Column
    lanes: list[Column]
    warps: Column
    unrolled: Column
    local: Column
    guarded: Column
    registers: Column
    spilled_words: Column
    resident: Column
    present: Column
    l1_bytes: Column

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.warps)

    @property
    def launched_warps(self) -> Column:
        """Warps of a launch."""
        return self.shape.blocks * self.warps


def resources_of(
    kernel: PpcgKernel, candidates: PpcgCandidates, card: Card, constants: CodeConstants
) -> CodeResources:
    """Return what holds for all statements of candidates."""
    shape = shape_of(kernel, candidates)
    staged, shared_bytes = shared_groups(kernel, candidates)
    unrolled = _unrolled(kernel, shape, candidates.unroll)
    local = _in_local_memory(kernel, shape)
    wanted = _registers(kernel, shape, unrolled, local, constants)
    registers = np.minimum(wanted, float(card.registers_per_thread))
    resident = resident_blocks(
        shape.threads, registers, shared_bytes, card, card.shared_per_block_bytes
    )
    carved = resident * (shared_bytes + BLOCK_SHARED_BYTES) * (shared_bytes > 0)
    return CodeResources(
        kernel=kernel,
        card=card,
        constants=constants,
        shape=shape,
        staged=staged,
        shared_bytes=shared_bytes,
        lanes=lanes_of([shape.block[name] for name in reversed(kernel.threads)]),
        warps=np.ceil(shape.threads / card.warp),
        unrolled=unrolled,
        local=local,
        guarded=guarded_share(kernel, shape),
        registers=registers,
        spilled_words=wanted - registers,
        resident=resident,
        present=np.clip(np.ceil(shape.blocks / card.sms), 1.0, resident),
        l1_bytes=l1_left(carved, card),
    )


def l1_left(shared_bytes: Column, card: Card) -> Column:
    """Return the bytes of L1 of an SM beside the shared memory of all blocks that fit it.

    The driver takes the least carve-out that keeps no block from running, even where fewer run.
    """
    sizes = np.array([kib * 1024.0 for kib in CARVE_OUTS_KIB])
    sizes = sizes[sizes <= card.shared_per_sm_bytes]
    at = np.minimum(np.searchsorted(sizes, shared_bytes), len(sizes) - 1)
    taken = np.maximum(sizes[at], shared_bytes)
    return np.asarray(np.maximum(LEAST_L1_BYTES, card.l1_shared_bytes - taken))


def _unrolled(kernel: PpcgKernel, shape: Shape, unroll: Column) -> Column:
    points = shape.points_of(kernel.threads)
    private = any(group.private for group in kernel.groups)
    return np.where((points > 1) & (private | (unroll > 0)), 1.0, 0.0)


def _in_local_memory(kernel: PpcgKernel, shape: Shape) -> Column:
    """Return 1 where private arrays are indexed by a serial loop and so leave the registers.

    PPCG indexes them so where a statement ties a serial loop to a thread's points along another.
    """
    local = np.zeros(len(shape.blocks))
    for at, statement in enumerate(kernel.facts.work.statements):
        uses_private = any(
            group.private and any(use.statement == at for use in group.uses)
            for group in kernel.groups
        )
        if statement.tied and uses_private:
            for name in kernel.threads:
                if name in statement.coupled:
                    local = np.maximum(local, (shape.points[name] > 1) * 1.0)
    return local


def _registers(
    kernel: PpcgKernel, shape: Shape, unrolled: Column, local: Column, constants: CodeConstants
) -> Column:
    """Return the registers that a thread would like to have."""
    width = max(1, kernel.facts.element_bytes // 4)
    operands = max(
        (sum(a.reads for a in s.accesses) for s in kernel.facts.work.statements), default=1
    )
    addresses = np.where(
        unrolled > 0, np.minimum(shape.points_of(kernel.threads), _MOST_ADDRESSES), 1.0
    )
    return np.asarray(
        constants.base_registers
        + _private_words(kernel, shape) * (1.0 - local) * constants.private_register_factor
        + operands * width * 2
        + addresses * constants.registers_per_point
    )


def _private_words(kernel: PpcgKernel, shape: Shape) -> Column:
    words = np.zeros(len(shape.blocks))
    for group in kernel.groups:
        if group.private:
            elements = prod(
                (shape.points[name] for name in kernel.threads), start=np.ones(len(words))
            )
            words = words + elements * max(1, group.element_bytes // 4)
    return words

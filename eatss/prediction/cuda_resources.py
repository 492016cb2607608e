"""What is the same for all statements of a launch: registers, blocks of an SM, L1, guards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eatss.analysis.structure import VECTOR_BYTES, RegisterTileFacts
from eatss.analysis.work import StatementFacts
from eatss.frozen import frozen
from eatss.plan.registers import (
    ROOM_BESIDE_SUMS,
    are_held,
    held_words,
    registers_of_a_thread,
)
from eatss.plan.rows import element_words
from eatss.prediction.card import REGISTER_STEP
from eatss.prediction.cuda_boxes import (
    GroupBox,
    group_boxes,
    line_words,
    shared_bytes,
    steps_together,
    working_bytes,
)
from eatss.prediction.cuda_launch import CudaLaunch
from eatss.prediction.cuda_products import fragment_words, is_product, loads_late, operand_words
from eatss.prediction.demand import Column
from eatss.prediction.occupancy import resident_blocks
from eatss.prediction.uniform_references import UniformSet

_WORD_BYTES = 4
_LEAST_L1_BYTES = 16 * 1024.0


@frozen
class CodeResources:
    """A launch on a card; every column has an entry a candidate.

    ``boxes`` are those of the stageable groups, ``shared_bytes`` those of a block. ``registers``
    are those of a thread, ``spilled_words`` those it lacks. ``resident`` blocks fit an SM,
    ``present`` ones are there. ``l1_bytes`` are those of an SM beside shared memory, and
    ``working_bytes`` what a block touches of them in a step. ``guarded`` is the share of blocks
    whose tile the end of a loop cuts off.
    """

    of: CudaLaunch
    boxes: list[GroupBox]
    shared_bytes: Column
    registers: Column
    spilled_words: Column
    resident: Column
    present: Column
    l1_bytes: Column
    working_bytes: Column
    guarded: Column


def resources_of(of: CudaLaunch) -> CodeResources:
    """Return what holds for all statements of a launch."""
    card, threads = of.card, of.shape.block_threads
    boxes = group_boxes(of)
    shared = shared_bytes(of, boxes)
    wanted, needed = _registers(of)
    room = np.floor(card.registers_per_block / np.maximum(float(card.warp), threads))
    most = np.floor(room / REGISTER_STEP) * REGISTER_STEP
    cap = np.minimum(card.registers_per_thread, most)
    bound = np.maximum(needed, held_registers(of) + ROOM_BESIDE_SUMS)
    wanted = np.where(_is_bound(of), np.minimum(wanted, bound), wanted)
    registers = np.minimum(wanted, cap)
    resident = resident_blocks(threads, registers, shared, card, card.shared_optin_bytes)
    streams = np.ceil(of.streams / card.sms)
    resident = np.where((streams > 0) & (streams <= resident), streams, resident)
    present = np.clip(np.ceil(of.active / card.sms), 1.0, resident)
    return CodeResources(
        of=of,
        boxes=boxes,
        shared_bytes=shared,
        registers=registers,
        spilled_words=np.maximum(0.0, needed - cap),
        resident=resident,
        present=present,
        l1_bytes=np.maximum(_LEAST_L1_BYTES, card.l1_shared_bytes - present * shared),
        working_bytes=working_bytes(of),
        guarded=_guarded_share(of),
    )


def _is_bound(of: CudaLaunch) -> npt.NDArray[np.bool_]:
    """Tell where a compiler is told how many blocks are to run at a time.

    Boxes are filled ahead, and what threads read of them is loaded ahead, too.
    """
    if any(is_product(of, one) for one in of.statements):
        return of.never
    late = np.logical_or.reduce([loads_late(of, one) for one in of.statements])
    return np.asarray((of.any_staged > 0) & (of.layout.boxes > 1) & ~late)


def fits(of: CudaLaunch) -> npt.NDArray[np.bool_]:
    """Tell where what points add up stays in registers."""
    words = of.zeros
    for own in of.cut.held:
        words = words + _held_words(of, own)
    room = held_words(registers_of_a_thread(of.card, of.shape.block_threads))
    return np.asarray(are_held(of.points(), words, room) | (words == 0))


def distinct(of: CudaLaunch, uniform: UniformSet) -> Column:
    """Return the elements that the points of a thread touch through a uniform set, at one step."""
    moving = dict(uniform.access.strides)
    named = [n for n in of.cut.mapped if n in moving]
    each, together = of.points_along(named), of.ones
    for (terms, _), span in zip(uniform.access.subscripts, uniform.spans, strict=True):
        loops = [n for n, factor in terms if n in named and abs(factor) == 1]
        if len(loops) == 1:
            points, threads = of.shape.points[loops[0]], of.shape.threads[loops[0]]
            together = together * np.where(
                threads == 1, points + span, points * min(span + 1, uniform.count)
            )
        else:
            together = together * min(span + 1, uniform.count)
    return np.minimum(each * uniform.count, together)


def _registers(of: CudaLaunch) -> tuple[Column, Column]:
    """Return the registers that a thread takes if it may, and those it cannot do without.

    Sums and addresses it needs, and of what it multiplies one operand of all points, and a vector
    of the others. Operands of all points are under way together, those of several steps where they
    are loaded together or ahead, without a serial loop half of those of one. Halves on their way to
    boxes have registers of their own.
    """
    most, least = of.zeros, of.zeros
    for statement in of.statements:
        if not is_product(of, statement):
            words = step_words(of, statement)
            most = np.maximum(most, operand_words(of, statement, words))
            least = np.maximum(least, _least_words(of, statement))
    held = of.code.base_registers + held_registers(of) + line_words(of)
    return held + np.maximum(most, fragment_words(of)), held + least


def _least_words(of: CudaLaunch, statement: StatementFacts) -> Column:
    """Return the registers without which a thread cannot multiply what it loads for a step."""
    own = [
        distinct(of, uniform) * element_words(uniform.access.element_bytes)
        for uniform in of.uniform_sets[statement.name]
        if not uniform.held and uniform.reads
    ]
    if len(own) < len(("rows", "columns")) or not of.cut.held:
        return of.zeros
    return np.asarray(np.minimum.reduce(own) + VECTOR_BYTES // _WORD_BYTES)


def held_registers(of: CudaLaunch) -> Column:
    """Return the registers of what a thread adds up."""
    return np.asarray(sum((_held_words(of, own) for own in of.cut.held), start=of.zeros))


def step_words(of: CudaLaunch, statement: StatementFacts) -> Column:
    """Return the registers of what a thread loads for a step of a statement."""
    serial = bool(of.serial(statement))
    words = of.zeros
    for uniform in of.uniform_sets[statement.name]:
        if not uniform.held:
            width = element_words(uniform.access.element_bytes)
            each = of.ones * uniform.count / 2
            if serial:
                each = distinct(of, uniform) * steps_together(of, statement, uniform)
            words = words + each * width
    return words


def _held_words(of: CudaLaunch, own: RegisterTileFacts) -> Column:
    return of.points() * element_words(own.element_bytes) * (not own.continued)


def _guarded_share(of: CudaLaunch) -> Column:
    free = of.ones
    for name in of.cut.mapped:
        cut = np.mod(of.trips[name], of.shape.tile[name]) > 0
        free = free * np.where(cut, 1.0 - 1.0 / of.shape.steps[name], 1.0)
    return 1.0 - free

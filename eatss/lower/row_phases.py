"""Kernels of the same rows as one: what each of them does is a phase of its blocks.

Every phase is lowered as a kernel of its own, whose blocks along ``x`` take rows as a whole. Blocks
of the same number have the same rows in all phases. So what a block does in one phase after the
other is right, if there are barriers where threads use what others left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eatss.analysis.layout import RowBlock
from eatss.base.frozen import frozen
from eatss.lower.bounds import union_of
from eatss.lower.isl_text import TRUE, condition_of
from eatss.lower.kernel.barriers import passed_on
from eatss.lower.kernel.nodes import Argument, Buffer, Declare, If, Scope
from eatss.lower.kernel.uses import buffers_of, names_of, with_buffers, without_unused
from eatss.lower.kernel_builder import KernelBuilder
from eatss.lower.kernel_context import BuiltKernel, KernelContext
from eatss.lower.planning import Unit
from eatss.lower.row_planning import RowPlanner
from eatss.lower.row_registers import LoweredPhase, with_row_values, with_rows_kept
from eatss.lower.schedule.names import NameTable
from eatss.lower.schedule.pieces import Piece
from eatss.plan.phases import RowStorage, kept_rows, slots_of
from eatss.polyhedral.isl_names import coalesced
from eatss.program.linear import strict


@frozen
class RowsInOne:
    """One kernel of several pieces; ``in_order`` says that its sums are added up as in the source.

    ``piece`` has the statements of all.
    """

    kernel: BuiltKernel
    piece: Piece
    tiles: tuple[tuple[str, int], ...]
    in_order: bool


def rows_in_one(
    name: str,
    pieces: Sequence[Piece],
    block: RowBlock,
    planner: RowPlanner,
    context: KernelContext,
) -> RowsInOne | None:
    """Return the kernel whose blocks take rows through several pieces, its barriers not put yet.

    Args:
        name: what it is called.
        pieces: what it does, in its order.
        block: rows and threads of a block.
        planner: decides the phases.
        context: what kernels of the region are made of.

    Returns:
        ``None`` where they cannot be one.
    """
    names = context.names.inner()
    for piece in pieces:
        names.reserve(*(loop.name for loop in (*piece.band, *piece.inner)))
    units = planner.phases(pieces, block, names)
    if units is None:
        return None
    built = [_built(name, unit, context) for unit in units]
    integers = (*context.parameters, *pieces[0].host_names)
    storage = planner.storage(units, block.loops)
    registers = planner.registers(block.threads)
    kernel = _joined(name, units, built, block, integers, storage, registers, context)
    if kernel is None:
        return None
    notes = [note for unit in units for note in unit.notes]
    phases = "; ".join(", ".join(s.name for s in unit.piece.statements) for unit in units)
    whole = replace(
        pieces[0],
        statements=tuple(s for piece in pieces for s in piece.statements),
        placed=tuple(p for piece in pieces for p in piece.placed),
        band=tuple(loop for piece in pieces for loop in piece.band),
    )
    tiles = {loop.source_name: loop.tile for unit in units for loop in unit.mapping.spread}
    rows = f"{block.rows} {'row' if block.rows == 1 else 'rows'}"
    return RowsInOne(
        kernel=replace(
            kernel, notes=(f"phases of {rows} a block: {phases}", *notes, *kernel.notes)
        ),
        piece=whole,
        tiles=tuple(tiles.items()),
        in_order=all(planner.in_order(unit) for unit in units),
    )


def _built(name: str, unit: Unit, context: KernelContext) -> BuiltKernel:
    """Return a phase as a kernel of its own. All that it reads it reads through L1."""
    return KernelBuilder(name, unit, frozenset(), context, sums_for_all=True).build()


def _joined(
    name: str,
    units: Sequence[Unit],
    phases: Sequence[BuiltKernel],
    block: RowBlock,
    integers: Sequence[str],
    storage: RowStorage,
    registers: int,
    context: KernelContext,
) -> BuiltKernel | None:
    """Return one kernel that runs those of phases one after another.

    ``None`` where blocks of the same number have other rows in one phase than in another.
    """
    first = phases[0]
    if any(phase.grid != first.grid or phase.origins != first.origins for phase in phases):
        return None
    launch = coalesced(union_of([phase.launch for phase in phases]))
    lowered: list[LoweredPhase] = []
    arrays: dict[str, Argument] = {}
    tiles: dict[str, int] = {}
    index = first.index
    boxes: list[Buffer] = []
    members = NameTable()
    for unit, phase in zip(units, phases, strict=True):
        for one in phase.kernel.arguments:
            if one.buffer is not None:
                known = arrays.get(one.name, one)
                arrays[one.name] = replace(one, read_only=one.read_only and known.read_only)
        for size, tile in phase.parameter_tiles:
            tiles[size] = max(tile, tiles.get(size, 0))
        index = index.joined(phase.index)
        own = {box: replace(box, name=members.fresh(box.name)) for box in phase.kernel.shared}
        boxes += own.values()
        nodes = with_buffers(phase.kernel.body, own)
        condition = condition_of(phase.launch, launch)
        if condition != TRUE:
            nodes = (If(conditions=(index(strict(condition)),), body=nodes),)
        lowered.append(LoweredPhase(unit, nodes))
    names = units[0].names.inner()
    declared, told = tuple[Declare, ...](), tuple[str, ...]()
    by_all: Sequence[LoweredPhase] = lowered
    if block.lanes > 1:
        values = [(one, context.arrays[one.array].buffer) for one in storage.values]
        declared, by_all, told = with_row_values(lowered, values, names)
    fits = kept_rows(storage, block.tile, block.lanes, registers)
    kept = [
        (one, context.arrays[one.array].buffer)
        for one, on in zip(storage.kept, fits, strict=True)
        if on
    ]
    slots = slots_of(block.tile, block.lanes)
    front, bodies, notes = with_rows_kept(by_all, kept, slots, names)
    scopes = (
        Scope(body=without_unused(body), phase=f"phase {at}") for at, body in enumerate(bodies)
    )
    body = (*declared, *front, *scopes)
    used, passed, met = names_of(body), buffers_of(body), passed_on(body)
    return replace(
        first,
        kernel=replace(
            first.kernel,
            name=name,
            threads=block.threads,
            arguments=(
                *(Argument(name=name) for name in integers if name in used),
                *(
                    replace(one, passed_on=one.buffer in met)
                    for one in arrays.values()
                    if one.buffer in passed
                ),
            ),
            shared=tuple(boxes),
            body=body,
        ),
        launch=launch,
        parameter_tiles=tuple(sorted(tiles.items())),
        notes=(*dict.fromkeys(note for phase in phases for note in phase.notes), *told, *notes),
        index=index,
    )

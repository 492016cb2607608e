"""The loop of whose turns blocks may take equal shares: what is chosen from, and what is made."""

from __future__ import annotations

from eatss.analysis import KernelFacts
from eatss.lower.planning import Unit
from eatss.polyhedral import ScheduledScop
from eatss.schedule.split_k import adds_only
from eatss.schedule.units import sums_of
from eatss.scops import ElementType


def stream_loop(unit: Unit, kernel: KernelFacts, scheduled: ScheduledScop) -> str | None:
    """Return the loop of whose turns blocks may take equal shares, ``None`` if there is none.

    It is the only serial loop around sums of products in registers, has as many turns in each
    tile, and no other statement of the launch comes before it that writes something else.

    Args:
        unit: what is launched.
        kernel: the kernel that it is of.
        scheduled: the region.
    """
    long = [part for part in unit.parts if part.serial]
    if unit.mapping.split or unit.mapping.shared or len(long) != 1:
        return None
    (part,) = long
    sums = {unit.piece.statement(name).write.array for name in part.statements}
    held = {place for own in unit.storage.registers for place in own.places}
    before = unit.parts[: unit.parts.index(part)]
    coupled = {one.name for one in kernel.work.statements if one.coupled}
    types = (scheduled.scop.array(name).element_type for name in sums)
    sources = {tile.name: tile.source_name for tile in unit.mapping.serial}
    alone = (
        len(part.serial) == 1
        and len(sums) == 1
        and all(one in (ElementType.FLOAT, ElementType.DOUBLE) for one in types)
        and coupled.isdisjoint(part.statements)
        and {(name, 0) for name in part.statements} <= held
        and all(
            unit.piece.statement(name).write.array in sums and (name, 0) in held
            for other in before
            for name in other.statements
        )
        and adds_only(
            unit.piece,
            part.statements,
            part.serial[0],
            sums_of(unit.piece, scheduled.scop, exact=False),
            scheduled.dependences,
        )
    )
    return sources[part.serial[0]] if alone and part.serial[0] in sources else None

"""What a launch is planned to do, for the one layout that code is made for, and that it does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from eatss.analysis import KernelFacts
from eatss.analysis.layout import Candidates, Layout
from eatss.analysis.structure import Structure
from eatss.cards.profile import GpuProfile
from eatss.cost.card import card_of
from eatss.lower.instructions import INSTRUCTIONS
from eatss.lower.instructions.products import LOADS
from eatss.lower.kernel.nodes import For, Kernel, Perform
from eatss.lower.kernel.uses import every_of
from eatss.lower.mapping import sizes_of
from eatss.lower.planning import Unit
from eatss.lower.products import WarpProducts, described
from eatss.lower.recipe import CodegenOptions
from eatss.lower.storage import Candidate
from eatss.lower.structures import launch_facts, references_at
from eatss.plan.launch import LaunchPlan, launch_plan
from eatss.plan.numbers import Number
from eatss.polyhedral.kernel import ScheduledScop

_MATRIX_LOADS = frozenset(load.name for loads in LOADS.values() for load in loads)


def launch_plan_of(
    unit: Unit,
    facts: KernelFacts,
    layout: Layout,
    staged: Sequence[Candidate],
    scheduled: ScheduledScop,
    profile: GpuProfile,
    options: CodegenOptions,
) -> LaunchPlan:
    """Return what the launch of a unit does, planned as for the model: of a column of one layout.

    Args:
        unit: the loops, mapped to blocks and threads.
        facts: what is known of its kernel.
        layout: what is chosen; ``stages`` as the card can have them.
        staged: what is copied into shared memory.
        scheduled: the region.
        profile: the card.
        options: what the user wants of the code.
    """
    cut, instruction, mapping = launch_facts(unit, facts, scheduled), None, unit.mapping
    if mapping.warps and layout.warps is not None:
        (rows, columns), row = mapping.warps, INSTRUCTIONS.get(layout.warps.instruction)
        instruction = described(row)
        found = WarpProducts(
            piece=unit.piece,
            facts=facts,
            cut=cut,
            loops=(rows.loop.source_name, columns.loop.source_name),
            instruction=row,
            types={array.name: array.element_type for array in scheduled.scop.arrays},
        )
        cut = replace(
            cut, products=tuple(one for part in unit.parts for one in found.of_part(part))
        )
    tiles, block = sizes_of(facts, layout, profile, options)
    if mapping.split is None:
        tiles = {**tiles, **dict(mapping.tiles)}
        in_order = sorted(mapping.mapped, key=lambda one: one.order)
        block = tuple((one.source_name, one.threads) for one in in_order)
    groups = dict.fromkeys(cut.stageable, 0)
    for one in staged:
        group = references_at(facts, unit.piece, one.places)
        if group in groups:
            groups[group] = 1
    host = [one.source_name for one in unit.piece.host]
    structure = Structure(
        launches=(cut,),
        host_loop=layout.host_loop if layout.host_loop in host else None,
        instruction=instruction,
        in_order=options.strict_fp,
    )
    chosen = {
        **layout.chosen(),
        "tile_sizes": tuple(tiles.items()),
        "block": block,
        "row_block": None,
    }
    one_row = Candidates(**chosen, structure=structure, staged=groups)
    column = one_row.map(lambda number: np.array([float(number)]))
    return launch_plan(facts, cut, column, card_of(profile))


def left_out(plan: LaunchPlan, kernel: Kernel) -> Iterator[str]:
    """Yield what a kernel does otherwise than planned: the prediction is of what was planned.

    Sizes that a model selects leave nothing out; tests hold it. Sizes that a user gives may.
    """
    performed = {node.instruction.name for node in every_of(kernel.body, Perform)}
    if _one(plan.block_threads) != kernel.threads:
        yield f"{_one(plan.block_threads):.0f} threads are planned, it has {kernel.threads}"
    for own in plan.contracts.values():
        if own.instruction.name not in performed:
            yield f"{own.instruction.name} is planned, and computes nothing"
        elif (own.instruction.factor_words < 1) != bool(_MATRIX_LOADS & performed):
            yield "its factors are not loaded as planned, as matrices or one by one"
    if kernel.streamed is None:
        loops = every_of(kernel.body, For)
        cycles = [loop.cycle.count for loop in loops if loop.cycle is not None]
        planned = max((_one(one.on * one.buffers) for one in plan.stages), default=1.0)
        if max(planned, 1.0) != max(cycles, default=1):
            yield f"{planned:.0f} buffers in turn are planned, it has {max(cycles, default=1)}"


def _one(number: Number) -> float:
    """Return the number of a column of one."""
    return float(np.broadcast_to(np.asarray(number), 1)[0])

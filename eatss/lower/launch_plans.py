"""What a launch is planned to do, for the one layout that code is made for, and that it does it.

The recipe says which reads are staged in shared memory, :mod:`eatss.plan.stage` which points of a
tile threads have for that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Mapping as Values
from dataclasses import replace

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import APART, Candidates, Layout
from eatss.analysis.variant import KernelVariant
from eatss.base.frozen import Names, distinct, their_names
from eatss.cards.profile import GpuProfile
from eatss.cost.card import card_of
from eatss.lower.instructions import of_warps
from eatss.lower.instructions.products import LOADS
from eatss.lower.kernel.nodes import Copy, For, Intrinsic, Kernel
from eatss.lower.kernel.uses import every_of
from eatss.lower.mapping import Mapping, sizes_of
from eatss.lower.planning import Unit
from eatss.lower.products import described, references_at
from eatss.lower.promotion import SharedTile
from eatss.lower.recipe import CodegenOptions, KernelRecipe
from eatss.lower.storage import Candidate
from eatss.lower.transform.point_groups import InterleavedPoints
from eatss.lower.variants import launch_facts, products_of
from eatss.plan.launch import Compute, LaunchPlan, launch_plan
from eatss.plan.numbers import Number, nowhere
from eatss.plan.stage import StagedReads, vector
from eatss.polyhedral.scop import Scop

_MATRIX_LOADS = frozenset(load.name for loads in LOADS.values() for load in loads)


def promoted_candidates(
    unit: Unit, recipe: KernelRecipe | None, facts: KernelFacts | None, options: CodegenOptions
) -> frozenset[Candidate]:
    """Return the candidates that go to shared memory; of split sums only what the user says."""
    found = set()
    if recipe is None or facts is None:
        return frozenset()
    for candidate in unit.storage.candidates:
        places = references_at(facts, unit.piece, candidate.places)
        own = [recipe.references[at] for at in places]
        memory: str | None = options.placed((candidate.array, *(one.access for one in own)))
        if memory is None and own and unit.mapping.split is None:
            memory = own[0].memory
        if memory == "shared":
            found.add(candidate)
    return frozenset(found)


def unpromoted_notes(unit: Unit, recipe: KernelRecipe | None, options: CodegenOptions) -> Names:
    """Say which references meant for shared memory are not staged: the kernel writes them."""
    staged = {candidate.array for candidate in unit.storage.candidates}
    here = {*their_names(unit.piece.statements)}
    return distinct(
        f"{one.access} is not staged: the kernel writes what it touches"
        for one in (() if recipe is None else recipe.references)
        if (options.placed((one.array, one.access)) or one.memory) == "shared"
        and one.array not in staged
        and not here.isdisjoint(one.statements)
    )


def with_vectors(mapping: Mapping, plan: LaunchPlan) -> Mapping:
    """Return a layout whose threads have neighbouring points, and lanes an order, as planned."""
    mapped = tuple(
        one if nowhere(plan.neighbours(one.source_name)) else replace(one, cyclic=False)
        for one in mapping.mapped
    )
    split, width = mapping.split, int(_one(plan.rows_loaded[1]))
    if split is not None and width > 1:
        split = replace(split, cyclic=False)
    return replace(
        mapping,
        mapped=mapped,
        split=split,
        interleaved=bool(plan.interleaved),
        scan_vector=width if mapping.scan is not None else 1,
    )


def neighbours_of(
    mapping: Mapping, staged: Values[Candidate, StagedReads], scop: Scop, plan: LaunchPlan
) -> tuple[InterleavedPoints, ...]:
    """Return the loops of which threads have several vectors of points that lie apart, as planned.

    All rows of shared memory that are read along one have vectors as long.
    """
    found = []
    for loop in mapping.mapped:
        if not plan.in_groups(loop.source_name):
            continue
        widths = {
            vector(scop.array(candidate.array).element_type.size_bytes)
            for candidate, reads in staged.items()
            if not loop.cyclic and loop.source_name in reads.along
        }
        if len(widths) == 1:
            found.append(InterleavedPoints(loop=loop, vector=widths.pop()))
    arrays, width = plan.rows_loaded
    split = mapping.split
    if split is not None and not split.cyclic:
        vector_of = int(_one(width))
        found.append(
            InterleavedPoints(
                loop=split, vector=vector_of, loads=arrays, always=mapping.scan is not None
            )
        )
    return tuple(found)


def launch_plan_of(
    unit: Unit,
    facts: KernelFacts,
    layout: Layout,
    staged: Collection[Candidate],
    profile: GpuProfile,
    options: CodegenOptions,
) -> LaunchPlan:
    """Return what the launch of a unit does, planned as for the model: of a column of one layout.

    Args:
        unit: the loops, mapped to blocks and threads.
        facts: what is known of its kernel.
        layout: what is chosen; ``stages`` as the card can have them.
        staged: what is copied into shared memory.
        profile: the card.
        options: what the user wants of the code.
    """
    cut, instruction, mapping = launch_facts(unit, facts), None, unit.mapping
    name = next(iter(options.instructions), layout.instruction)
    if mapping.warps and name is not None:
        rows, columns = (one.source_name for one in mapping.mapped if one.threads > 1)
        instruction = described(of_warps(name))
        products = products_of(unit, facts, cut, (rows, columns), name)
        cut = replace(cut, products=products)
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
    variant = KernelVariant(
        launches=(cut,),
        instruction=instruction,
        in_order=options.strict_fp,
    )
    chosen = {
        **layout.chosen(),
        "tile_sizes": tuple(tiles.items()),
        "block": block,
        **APART,
    }
    if mapping.split is not None and layout.spread is not None:
        chosen["spread"] = replace(layout.spread, tile=mapping.split.tile)
    one_row = Candidates(**chosen, variant=variant, staged=groups)
    column = one_row.map(lambda number: np.array([float(number)]))
    return launch_plan(facts, cut, column, card_of(profile))


def planned_reads(
    plan: LaunchPlan, staged: Collection[Candidate], unit: Unit, facts: KernelFacts
) -> dict[Candidate, StagedReads]:
    """Return what is known of the reads that are staged."""
    known = enumerate(zip(plan.cut.stageable, plan.staging, strict=True))
    groups = {group: reads for at, (group, reads) in known if plan.readers(at)}
    found = {one: references_at(facts, unit.piece, one.places) for one in staged}
    return {one: groups[group] for one, group in found.items() if group in groups}


def planned_padding(plan: LaunchPlan, tile: SharedTile, unit: Unit, facts: KernelFacts) -> int:
    """Return the elements by which rows of a tile are padded that lanes load fragments from."""
    group = references_at(facts, unit.piece, tile.candidate.places)
    stage = plan.stages[plan.cut.stageable.index(group)]
    return round(_one(stage.declared[-1]) - _one(stage.extents[-1]))


def left_out(plan: LaunchPlan, kernel: Kernel) -> Iterator[str]:
    """Yield what a kernel does otherwise than planned: the prediction is of what was planned.

    Sizes that a model selects leave nothing out; tests hold it. Sizes that a user gives may.
    """
    threads, shared_bytes = _one(plan.block_threads), _one(plan.shared_bytes)
    if threads != kernel.threads:
        yield f"{threads:.0f} threads are planned, it has {kernel.threads}"
    if shared_bytes != kernel.shared_bytes:
        most = plan.card.shared_optin_bytes
        yield (
            f"{shared_bytes:.0f} bytes of shared memory are planned, of at most {most}, it has "
            f"{kernel.shared_bytes}"
        )
        if shared_bytes > most:
            return
    windows = any(
        one.target.buffer.of_phases and one.source.buffer.space == "register"
        for one in every_of(kernel.body, Copy)
    )
    if windows != bool(_one(plan.row_windows)):
        yield f"steps along rows are{' not' if windows else ''} to be in registers"
    yield from _computed_otherwise(plan, kernel)
    if not kernel.regroups and any(map(_leaves_factors, plan.computes)):
        yield "factors that a sum shares are not multiplied at its end"
    yield from _copied_otherwise(plan, kernel)
    if kernel.streamed is None:
        cycles = [loop.cycle for loop in every_of(kernel.body, For) if loop.cycle is not None]
        planned = max((_one(one.on * one.buffers) for one in plan.stages), default=1.0)
        made = max((one.count for one in cycles), default=1)
        if max(planned, 1.0) != made:
            yield f"{planned:.0f} pipeline stages are planned, it has {made}"
        ahead = any(map(_one, (plan.register_prefetch_on, *(one.ahead for one in plan.computes))))
        if cycles and ahead != any(one.prefetches for one in cycles):
            yield f"a register prefetch is{'' if ahead else ' not'} planned"


def _computed_otherwise(plan: LaunchPlan, kernel: Kernel) -> Iterator[str]:
    """Yield what the instruction of a plan does not compute, or not as planned."""
    performed = {node.instruction.name for node in every_of(kernel.body, Intrinsic)}
    for own in plan.contracts.values():
        if own.instruction.name not in performed:
            yield f"{own.instruction.name} is planned, and computes nothing"
        elif own.whole != bool(_MATRIX_LOADS & performed):
            yield "its factors are not loaded as planned, as matrices or one by one"
    if plan.contracts and _one(plan.turns) != kernel.warps[-1].turns:
        yield f"{_one(plan.turns):.0f} matrices are to be interleaved, {kernel.warps[-1].turns} do"


def _leaves_factors(one: Compute) -> bool:
    """Tell whether threads add up a statement without the factors that its whole sum has."""
    sums = one.serial and any(use.held and use.writes for use in one.uses)
    own = sums and not one.plan.variant.in_order and one.contract is None
    return bool(own) and one.facts.in_sum is not None


def _copied_otherwise(plan: LaunchPlan, kernel: Kernel) -> Iterator[str]:
    """Yield the tiles that are not copied as planned: as wide, or through registers.

    A kernel may copy in vectors where the plan does not: it tests at run time where rows begin, and
    the plan is of the sizes that are known.
    """
    copies = [*every_of(kernel.body, Copy)]
    kinds = [(one.source.buffer, one.target.buffer) for one in copies]
    lines = any(
        (source.space, target.space) == ("register", "shared") and not target.of_phases
        for source, target in kinds
    )
    through_registers = _one(plan.transposed_in_registers) or _one(plan.register_staged_words)
    if plan.cut.sum_loop is None and lines != bool(through_registers):  # else parts of sums are
        yield f"copies through registers are{'' if through_registers else ' not'} planned"
    rows, together = plan.rows_loaded
    planned = [(name, _one(together)) for name in rows]
    for group, stage in enumerate(plan.stages):
        array = next((use.access.array for use in plan.readers(group)), "")
        planned.append((array, _one(stage.on * stage.width)))
    for array, width in planned:
        widths = (
            copy.width
            for copy, (source, target) in zip(copies, kinds, strict=True)
            if (source.name == array and target.space in ("shared", "register"))
            or (target.space == "global" and target.name == array and array in rows)
        )
        made = max(widths, default=1)
        if width > made:
            yield f"{array} is to be copied {width:.0f} elements at a time, it is {made}"


def _one(number: Number) -> float:
    """Return the number of a column of one."""
    return float(np.broadcast_to(np.asarray(number), 1)[0])

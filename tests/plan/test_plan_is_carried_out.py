"""What the plan says of products is what the kernel has: sums, instructions, operands ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest

from eatss.analysis.layout import WarpUse, mapped_loops
from eatss.analysis.structure import Structure
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose import KernelSelection, ModelOptions, Selection
from eatss.choose.cuda import candidate_of
from eatss.cost.card import card_of
from eatss.cuda.generate import Made, RegionBuilder, RegionInput
from eatss.frontend.options import Reading
from eatss.lower.kernel.nodes import Buffer, Compute, Declare, For, If, Kernel, Node, Perform, Scope
from eatss.lower.kernel.uses import constant_trips, every
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.structures import structures_for
from eatss.plan.launch import LaunchPlan, plan
from eatss.program import Apply, Constant
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import select_for

GPU = "h200"
Layout = tuple[tuple[int, int], tuple[int, int], int, int]
"""Points and threads along rows and columns, steps of a turn, stages."""


@cache
def analysed(kernel: str, dtype: str) -> tuple[SymbolicProgram, GpuProfile, Selection]:
    card = load_profile(GPU)
    source = data_directory("kernels") / f"{kernel}.c"
    symbolic = Session(source, Reading(defines={"DATA_TYPE": dtype})).symbolic
    return symbolic, card, select_for(symbolic.program, card, ModelOptions(target="cuda"))


@cache
def structures(kernel: str, dtype: str) -> tuple[Structure, ...]:
    """Return the ways to cut a kernel that leave its sums to the threads of a block."""
    symbolic, card, _ = analysed(kernel, dtype)
    (facts,) = symbolic.program.facts
    every_one = structures_for(symbolic.program, card)[facts.name]
    return tuple(one for one in every_one if not one.spreads and one.shared_loop is None)


def planned(
    kernel: str, dtype: str, layout: Layout, *, by_warps: bool
) -> tuple[KernelSelection, tuple[LaunchPlan, ...]]:
    """Return a layout, everything that can be in boxes, and what is planned of it."""
    symbolic, card, selection = analysed(kernel, dtype)
    (facts,), (selected,) = symbolic.program.facts, selection.kernels
    structure = next(one for one in structures(kernel, dtype) if bool(one.instruction) == by_warps)
    points, threads, steps, stages = layout
    mapped = [loop.name for loop in mapped_loops(facts)]
    tiles = {n: p * t for n, p, t in zip(mapped, points, threads, strict=True)}
    by = structure.instruction
    use = None if by is None else WarpUse(instruction=by.name, stages=stages)
    chosen = replace(
        selected,
        warps=use,
        stages=1 if use else stages,
        spread=None,
        shared_sum=None,
        host_loop=None,
        sum_loops=(),
        tile_sizes=tuple((name, tiles.get(name, steps)) for name, _ in selected.tile_sizes),
        block=tuple(zip(mapped, threads, strict=True)),
        references=tuple(replace(one, placement="shared") for one in selected.references),
    )
    return chosen, plan(facts, candidate_of(facts, structure, chosen), card_of(card))


def made(kernel: str, dtype: str, chosen: KernelSelection) -> list[Kernel]:
    """Return the kernels as they are printed."""
    symbolic, card, selection = analysed(kernel, dtype)
    (region,), (scop,) = symbolic.regions, symbolic.program.scops
    own = RegionInput(scheduled=region.scheduled, facts=scop.facts, generic=region.generic)
    recipe = recipe_of(replace(selection, kernels=(chosen,)), CodegenOptions())
    found = Made()
    RegionBuilder(own, recipe, card, 32, found).build(single=True, macros=dict(symbolic.values))
    return found.code


def adds(node: Node) -> bool:
    """Tell whether a node adds to a sum in registers something that it reads."""
    if isinstance(node, Compute):
        return node.target.buffer.space == "register" and node.target in node.reads
    return isinstance(node, Perform) and node.instruction.adds and not node.instruction.atomic


def trips(loop: For) -> int:
    """Return how often a loop runs, once if nobody knows."""
    end = loop.condition.operands[1] if isinstance(loop.condition, Apply) else None
    known = (loop.lower, end, loop.step)
    values = [one.value for one in known if isinstance(one, Constant)]
    return constant_trips(loop) or (len(range(*values)) if len(values) == len(known) else 1)


def in_a_turn(nodes: Sequence[Node], name: str) -> int:
    """Return how often a turn adds, by an instruction or plainly, in the branch with most."""
    found = 0
    for node in nodes:
        if isinstance(node, For):
            found += trips(node) * in_a_turn(node.body, name)
        elif isinstance(node, If):
            found += max(in_a_turn(node.body, name), in_a_turn(node.orelse, name))
        elif isinstance(node, Scope):
            found += in_a_turn(node.body, name)
        elif adds(node):
            found += name == (node.instruction.name if isinstance(node, Perform) else "")
    return found


def is_open(loop: For) -> bool:
    """Tell whether nobody knows how often a loop runs."""
    return constant_trips(loop) is None


def turns(nodes: Sequence[Node]) -> Iterator[For]:
    """Yield the loops over turns that add something; those over tiles are around them."""
    for node in nodes:
        if isinstance(node, For) and is_open(node) and isinstance(node.step, Constant):
            if any(map(adds, every(node.body))):
                yield node
        elif isinstance(node, For | If | Scope):
            yield from turns(node.body)


def sums(loop: For) -> set[Buffer]:
    """Return the registers that a turn adds to."""
    targets = (one.target for one in every([loop]) if isinstance(one, Compute) and adds(one))
    performed = (one for one in every([loop]) if isinstance(one, Perform) and adds(one))
    written = (each for one in performed for each in one.named(one.instruction.written))
    return {one.buffer for own in (targets, written) for one in own}


LAYOUTS: list[Layout] = [
    ((8, 8), (16, 16), 16, 2),
    ((12, 6), (16, 16), 16, 3),
    ((2, 4), (16, 16), 16, 2),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("kernel", "dtype", "by_warps"), [("gemm", "double", True), ("syrk", "float", False)]
)
def test_sums_instructions_and_operands_are_those_of_the_plan(
    kernel: str, dtype: str, by_warps: bool, layout: Layout
) -> None:
    chosen, launches = planned(kernel, dtype, layout, by_warps=by_warps)
    card = load_profile(GPU)
    for of, code in zip(launches, made(kernel, dtype, chosen), strict=True):
        assert of.fits
        assert of.shared_bytes <= card.shared_per_block_optin_bytes
        adding = list(turns(code.body))
        assert adding
        for loop in adding:
            assert sum(one.size_bytes // 4 for one in sums(loop)) == of.held_words
            products = of.contracts
            for own in products.values():
                tile = of.tile[own.product.sum_loop] / own.instruction.steps
                count = own.terms * own.matrices * tile
                assert in_a_turn(loop.body, own.instruction.name) == count[0]
            plain = [one for one in of.computes if one.serial and not one.contract]
            count = sum(one.points * layout[2] for one in plain)
            assert in_a_turn(loop.body, "") == count
            doubled = any(
                isinstance(one, Declare) and "_step" in one.buffer.name for one in every(code.body)
            )
            ahead = bool(of.loads_ahead if products else plain[0].ahead)
            if not products:
                assert doubled == ahead
            else:
                fragments = [
                    one.buffer.layout.extents
                    for one in every(code.body)
                    if isinstance(one, Declare) and one.buffer.name.startswith("fragment")
                ]
                assert all((len(one) == 3) == ahead for one in fragments)
                rows = [one.layout.allocated[-1] for one in code.shared]
                assert rows == [Constant(int(one.declared[-1][0])) for one in of.stages]

"""Plans of random programs and layouts say what their kernels have.

Launches, threads, shared bytes, copies with their widths, sums in registers, instructions of each
kind and barriers of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from eatss.cards import load_profile
from eatss.choose import ModelOptions
from eatss.cost.card import card_of
from eatss.cuda.generate import Made, RegionBuilder, RegionInput
from eatss.lower.kernel.nodes import Barrier, Copy, If, Kernel, Node, Perform
from eatss.lower.kernel.uses import every, inside
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.structures import structures_for
from eatss.plan.launch import LaunchPlan, launch_plan
from eatss.plan.numbers import Number
from eatss.session.session import Session
from eatss.session.steps import select_for
from tests.choose.cuda_kernels import laid_out, random_layout
from tests.plan.test_plan_is_carried_out import in_a_turn, sums, turns

CARD = load_profile("h200")
ROWS, COLUMNS, DEPTH = 512, 768, 384


def program(dice: Random) -> str:
    """Return a program of products: operands transposed or not, scaled or not, one or two terms."""
    kind = dice.choice(["float", "double"])
    first, a = dice.choice([("A[i][k]", f"A[{ROWS}][{DEPTH}]"), ("A[k][i]", f"A[{DEPTH}][{ROWS}]")])
    second, b = dice.choice(
        [("B[k][j]", f"B[{DEPTH}][{COLUMNS}]"), ("B[j][k]", f"B[{COLUMNS}][{DEPTH}]")]
    )
    factor, begin = dice.choice(["", "alpha * "]), dice.choice(["", "C[i][j] *= beta;"])
    return f"""
void f({kind} alpha, {kind} beta, {kind} C[{ROWS}][{COLUMNS}], {kind} {a}, {kind} {b})
{{
#pragma scop
  for (int i = 0; i < {ROWS}; i++)
    for (int j = 0; j < {COLUMNS}; j++) {{
      {begin}
      for (int k = 0; k < {DEPTH}; k++)
        C[i][j] += {factor}{first} * {second};
    }}
#pragma endscop
}}
"""


def launches(source: Path, dice: Random, count: int) -> Iterator[tuple[LaunchPlan, int, Kernel]]:
    """Yield launches of layouts drawn at random: the plan, the layout's row, the kernel."""
    symbolic = Session(source).symbolic
    (scop,), (region,) = symbolic.program.scops, symbolic.regions
    (facts,) = scop.facts
    structures = structures_for(symbolic.program, CARD)[facts.name]
    whole = tuple(one for one in structures if not one.spreads and one.shared_loop is None)
    selection = select_for(symbolic.program, CARD, ModelOptions(target="cuda"))
    (selected,) = selection.kernels
    own = RegionInput(scheduled=region.scheduled, facts=scop.facts, generic=region.generic)
    for _ in range(count):
        drawn = random_layout(facts, whole, CARD, dice)
        if drawn is None:
            continue
        layouts, _, row = drawn
        chosen = laid_out(selected, layouts, row)
        chosen = replace(chosen, shared_sum=None, row_block=None)
        recipe = recipe_of(replace(selection, kernels=(chosen,)), CodegenOptions())
        made = Made()
        RegionBuilder(own, recipe, CARD, 32, made).build(single=True, macros=dict(symbolic.values))
        cuts = layouts.structure.launches
        assert len(cuts) == len(made.code)
        for cut, code in zip(cuts, made.code, strict=True):
            yield launch_plan(facts, cut, layouts, card_of(CARD)), row, code


def barriers(nodes: Sequence[Node]) -> int:
    """Return the barriers that nodes pass: of branches those of the one with most."""
    found = 0
    for node in nodes:
        ways = [barriers(own) for own in inside(node)]
        both = isinstance(node, If)
        found += isinstance(node, Barrier) + (max(ways, default=0) if both else sum(ways))
    return found


def copied(code: Kernel) -> dict[str, list[Copy]]:
    """Return the copies into shared memory, by the array of the tile."""
    found: dict[str, list[Copy]] = {one.name: [] for one in code.shared}
    for node in every(code.body):
        if isinstance(node, Copy) and node.target.buffer.space == "shared":
            found[node.target.buffer.name].append(node)
    return found


@pytest.mark.parametrize("seed", [0, 11])
def test_a_plan_counts_what_its_kernel_has(seed: int, tmp_path: Path) -> None:
    dice = Random(seed)
    source = tmp_path / "f.c"
    source.write_text(program(dice), encoding="utf-8")
    for of, row, code in launches(source, dice, 3):

        def at(number: Number, of: LaunchPlan = of, row: int = row) -> Number:
            return np.broadcast_to(number, len(of))[row]

        assert code.threads == at(of.block_threads)
        assert code.shared_bytes == at(of.shared_bytes)
        copies, ahead = copied(code), False
        staged = [(n, stage) for n, stage in enumerate(of.stages) if at(stage.on)]
        assert len(copies) == len(staged)
        lines = bool(at(of.turned_in_registers))
        for number, stage in staged:
            (array,) = {one.access.array for one in of.readers(number)}
            filled = copies[array]
            assert {one.width for one in filled} == ({1} if lines else {1, int(at(stage.width))})
            assert any(one.ahead for one in filled) == (at(stage.buffers) > 1)
            ahead = ahead or bool(at(stage.buffers) > 1)
        adding = list(turns(code.body))
        for loop in adding:
            assert sum(one.size_bytes // 4 for one in sums(loop)) == at(of.held_words)
            names = {one.instruction.name for one in every([loop]) if isinstance(one, Perform)}
            assert names >= {one.instruction.name for one in of.contracts.values()}
            for own in of.contracts.values():
                steps = of.tile[own.product.sum_loop] / own.instruction.steps
                count = own.terms * own.matrices * steps
                assert in_a_turn(loop.body, own.instruction.name) == at(count)
            if staged:
                assert barriers(loop.body) == (1 if ahead else 2)

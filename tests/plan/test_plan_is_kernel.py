"""What the plan of a launch says is what its kernel has, for random programs and layouts.

Threads, lanes, tiles in shared memory and how they are copied, sums in registers, instructions of
each kind, operands loaded ahead, barriers of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.cuda_candidates import candidates_of
from eatss.choose.options import ModelOptions
from eatss.cost.card import card_of
from eatss.cost.cuda_model import CudaModel
from eatss.cuda import generate
from eatss.cuda.generate import Made, RegionBuilder, RegionInput
from eatss.lower.kernel.nodes import (
    Barrier,
    Buffer,
    Compute,
    Copy,
    Declare,
    For,
    If,
    Intrinsic,
    Kernel,
    Let,
    Node,
    Scope,
)
from eatss.lower.kernel.uses import constant_trips, every, inside
from eatss.lower.launch_plans import left_out
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.variants import kernel_variants_for
from eatss.plan.launch import LaunchPlan, launch_plan
from eatss.plan.numbers import Number
from eatss.program import Apply, Constant
from eatss.session.session import Session
from eatss.session.steps import select_for
from tests.choose.cuda_kernels import laid_out

CARD = load_profile("h200")
ROWS, COLUMNS, DEPTH = 512, 768, 384


def program(dice: Random, kind: str) -> str:
    """Return a program of products: operands transposed or not, scaled or not, one or two terms."""
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


def launches(source: Path, dice: np.random.Generator) -> Iterator[tuple[LaunchPlan, int, Kernel]]:
    """Yield launches of layouts drawn at random: the plan, the layout's row, the kernel."""
    symbolic = Session(source).symbolic
    (scop,), (region,) = symbolic.program.scops, symbolic.regions
    (facts,) = scop.facts
    selection = select_for(symbolic.program, CARD, ModelOptions(target="cuda"))
    (selected,) = selection.kernels
    own = RegionInput(scheduled=region.scheduled, facts=scop.facts, generic=region.generic)
    for layouts in candidates_of(
        facts, kernel_variants_for(symbolic.program, CARD)[facts.name], CARD
    ):
        if layouts.variant.spreads or layouts.variant.shared_loop is not None:
            continue
        (cut,) = layouts.variant.launches
        of = launch_plan(facts, cut, layouts, card_of(CARD))
        for row in drawn_rows(of, dice):
            chosen = laid_out(selected, layouts, row)
            chosen = replace(chosen, shared_sum=None, row_block=None)
            recipe = recipe_of(replace(selection, kernels=(chosen,)), CodegenOptions())
            made = Made()
            values = dict(symbolic.values)
            RegionBuilder(own, recipe, CARD, 32, made).build(single=True, macros=values)
            ((_, code),) = made.kernels
            yield of, row, code


def drawn_rows(of: LaunchPlan, dice: np.random.Generator) -> list[int]:
    """Return a layout of each kind: lanes interleaved, neighbouring points, neither."""
    found = CudaModel.of(of.facts, CARD).columns(of.layout)
    fine = found.fits & (found.shared_bytes <= CARD.shared_per_block_optin_bytes)
    fine &= np.logical_or.reduce([of.staged(at) > 0 for at in range(len(of.staging))])
    near = np.logical_or.reduce([of.neighbours(name) for name in of.cut.mapped])
    lanes = np.logical_or.reduce([near & False, *of.interleaved.values()])
    kinds = [np.flatnonzero(fine & kind) for kind in (lanes, near & ~lanes, ~near)]
    return [int(dice.choice(kind)) for kind in kinds if len(kind)]


def numbers(buffer: Buffer) -> list[int]:
    """Return the extents of a buffer as allocated."""
    return [one.value for one in buffer.layout.allocated if isinstance(one, Constant)]


def barriers(nodes: Sequence[Node]) -> int:
    """Return the barriers that nodes pass: of branches those of the one with most."""
    found = 0
    for node in nodes:
        ways = [barriers(own) for own in inside(node)]
        both = isinstance(node, If)
        found += isinstance(node, Barrier) + (max(ways, default=0) if both else sum(ways))
    return found


def adds(node: Node) -> bool:
    """Tell whether a node adds to a sum in registers something that it reads."""
    if isinstance(node, Compute):
        return node.target.buffer.space == "register" and node.target in node.reads
    return isinstance(node, Intrinsic) and node.instruction.adds and not node.instruction.atomic


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
            found += name == (node.instruction.name if isinstance(node, Intrinsic) else "")
    return found


def turns(nodes: Sequence[Node]) -> Iterator[For]:
    """Yield the loops over turns that add something; those over tiles are around them."""
    for node in nodes:
        counted = isinstance(node, For) and constant_trips(node) is not None
        if isinstance(node, For) and not counted and isinstance(node.step, Constant):
            if any(map(adds, every(node.body))):
                yield node
        elif isinstance(node, For | If | Scope):
            yield from turns(node.body)


def sums(loop: For) -> set[Buffer]:
    """Return the registers that a turn adds to."""
    targets = (one.target for one in every([loop]) if isinstance(one, Compute) and adds(one))
    performed = (one for one in every([loop]) if isinstance(one, Intrinsic) and adds(one))
    written = (each for one in performed for each in one.named(one.instruction.written))
    return {one.buffer for own in (targets, written) for one in own}


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("seed", [0, 11])
def test_the_plan_is_what_the_kernel_does(seed: int, kind: str, tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text(program(Random(seed), kind), encoding="utf-8")
    for of, row, code in launches(source, np.random.default_rng(seed)):

        def at(number: Number, of: LaunchPlan = of, row: int = row) -> Number:
            return np.broadcast_to(number, of.shape)[row]

        assert code.threads == at(of.block_threads)
        assert code.shared_bytes == at(of.shared_bytes)
        names = {one.name for one in every(code.body) if isinstance(one, Let)}
        assert ("lane" in names) == any(on[row] for on in of.interleaved.values())
        tiles = {one.name: one for one in code.shared}
        staged = [(number, stage) for number, stage in enumerate(of.stages) if at(stage.on)]
        assert len(tiles) == len(staged)
        in_registers = bool(at(of.transposed_in_registers))
        buffered = 0
        for number, stage in staged:
            (array,) = {one.access.array for one in of.readers(number)}
            first, second = (int(at(size)) for size in stage.declared)
            extents = [second, first] if at(stage.transposed) else [first, second]
            buffers, width = int(at(stage.buffers)), int(at(stage.width))
            passes = in_registers and bool(at(stage.through_registers))
            assert numbers(tiles[array]) == ([buffers, *extents] if buffers > 1 else extents)
            nodes = (one for one in every(code.body) if isinstance(one, Copy))
            copies = [one for one in nodes if one.target.buffer == tiles[array]]
            assert {one.width for one in copies} == ({1} if passes else {1, width})
            through = any(one.source.buffer.space == "register" for one in copies)
            assert through == passes
            assert any(one.ahead for one in copies) == (buffers > 1)
            buffered = max(buffered, buffers)
        adding = list(turns(code.body))
        assert adding
        for loop in adding:
            assert sum(one.size_bytes // 4 for one in sums(loop)) == at(of.held_words)
            assert barriers(loop.body) == (0 if not staged else 1 if buffered > 1 else 2)
            check_operations(of, loop, code, at)


def check_operations(
    of: LaunchPlan, loop: For, code: Kernel, at: Callable[[Number], Number]
) -> None:
    """Compare instructions, products of threads and operands ahead of a turn with the plan."""
    for own in of.contracts.values():
        steps = of.tile[own.product.sum_loop] / own.instruction.steps
        count = at(own.terms * own.matrices * steps)
        assert in_a_turn(loop.body, own.instruction.name) == count
    plain = [one for one in of.computes if one.serial and not one.contract]
    assert in_a_turn(loop.body, "") == sum(at(one.points * of.tile["k"]) for one in plain)
    declared = [one.buffer for one in every(code.body) if isinstance(one, Declare)]
    if of.contracts:
        fragments = [one.layout.extents for one in declared if one.name.startswith("fragment")]
        assert all((len(one) == 3) == bool(at(of.register_prefetch_on)) for one in fragments)
    else:
        ahead = bool(at(plain[0].ahead))
        assert any("_step" in one.name for one in declared) == ahead


@pytest.mark.parametrize("dtype", ["double", "half"])
@pytest.mark.parametrize("name", ["atax", "syrk"])
def test_selected_layouts_leave_nothing_of_their_plan_out(
    name: str, dtype: Literal["double", "half"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rows of halves cannot be copied ahead, the model knows that there is one buffer."""
    found: list[list[str]] = []

    def kept(plan: LaunchPlan, kernel: Kernel) -> list[str]:
        found.append(list(left_out(plan, kernel)))
        return found[-1]

    monkeypatch.setattr(generate, "left_out", kept)
    eatss.codegen(data_directory("kernels") / f"{name}.c", gpu="h200", dtype=dtype, cache=False)
    assert found
    assert not any(found)


def test_rows_beside_an_element_of_each_are_copied_in_every_turn() -> None:
    text = """void f(float x[2000][2001], float y[2000][2001], float z[2000][2001]) {
#pragma scop
    for (int i = 0; i < 2000; i++) {
        float p = 1, most = x[i][0];
        for (int j = 0; j < 2001; j++) {
            p *= z[i][j];
            most = x[i][j] > most ? x[i][j] : most;
            y[i][j] = p * most;
        }
    }
#pragma endscop
}
"""
    (own,) = eatss.codegen(text, gpu="h200").kernels
    assert any("32 x 64 elements" in one for one in own.notes)
    assert not any("not as predicted" in one for one in own.notes)


def test_windows_of_halves_are_not_loaded_as_matrices() -> None:
    text = """void f(int n, int m, int k, float y[n][m], _Float16 x[n + k], _Float16 w[m][k]) {
#pragma scop
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            y[i][j] = 0;
            for (int l = 0; l < k; l++) y[i][j] += (float)x[i + l] * (float)w[j][l];
        }
#pragma endscop
}
"""
    told = [note for one in eatss.codegen(text, gpu="h200").kernels for note in one.notes]
    assert any("mma_f16" in one for one in told)
    assert not any("not as predicted" in one for one in told)

"""What the plan of a launch says is what the tree of its kernel has, for layouts drawn at random.

Tiles in shared memory, how they are copied, which loops threads have neighbouring points along,
lanes, buffers in turn, barriers of a turn and launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose import ModelOptions
from eatss.choose.cuda_candidates import candidates_of
from eatss.cost.card import card_of
from eatss.cost.cuda_model import CudaModel
from eatss.cuda import generate as region
from eatss.lower.kernel.nodes import Barrier, Buffer, Copy, For, Kernel, Let, Node
from eatss.lower.kernel.uses import every, inside
from eatss.lower.launch_plans import left_out
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.structures import structures_for
from eatss.lower.transform.chain import transformed
from eatss.plan.launch import LaunchPlan, launch_plan
from eatss.plan.numbers import Number
from eatss.program import Constant, Original
from eatss.session.session import Session
from eatss.session.steps import generate_for, select_for
from tests.choose.cuda_kernels import laid_out

PRODUCT = """
#ifndef ROWS
#define ROWS 512
#endif
#ifndef COLUMNS
#define COLUMNS 768
#endif
#ifndef DEPTH
#define DEPTH 384
#endif
void f(TYPE C[ROWS][COLUMNS], TYPE A[ROWS][DEPTH], TYPE B[DEPTH][COLUMNS])
{
#pragma scop
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++)
      for (int k = 0; k < DEPTH; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""
CARD = load_profile("h200")


def trees_of(
    source: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[LaunchPlan, int, Kernel]]:
    """Return layouts of a product drawn at random, a row of a launch each, with their kernels."""
    symbolic = Session(source).symbolic
    program = symbolic.program
    (facts,) = program.facts
    layouts = next(
        one
        for one in candidates_of(facts, structures_for(program, CARD)[facts.name], CARD)
        if not one.structure.spreads and one.structure.shared_loop is None
    )
    (cut,) = layouts.structure.launches
    of = launch_plan(facts, cut, layouts, card_of(CARD))
    selection = select_for(program, CARD, ModelOptions(target="cuda"))
    (kernel,) = selection.kernels
    trees: list[Kernel] = []

    def kept(*arguments: Kernel, **options: object) -> Kernel:
        trees.append(transformed(*arguments, **options))  # type: ignore[arg-type]
        return trees[-1]

    monkeypatch.setattr(region, "transformed", kept)
    drawn = drawn_rows(of, rows)
    for row in drawn:
        own = (laid_out(kernel, layouts, row),)
        generate_for(
            symbolic,
            recipe_of(replace(selection, kernels=own), CodegenOptions()),
            CARD,
            name="f",
            original=Original(file="f.c", defines=(), include_dirs=()),
        )
    assert len(trees) == len(drawn)  # one launch each
    return [(of, row, tree) for row, tree in zip(drawn, trees, strict=True)]


def drawn_rows(of: LaunchPlan, count: int) -> list[int]:
    """Return layouts of each kind: lanes interleaved, neighbouring points, neither."""
    found = CudaModel.of(of.facts, CARD).columns(of.layout)
    fine = found.fits & (found.shared_bytes <= CARD.shared_per_block_optin_bytes)
    fine &= np.logical_or.reduce([of.staged(at) > 0 for at in range(len(of.staging))])
    near = np.logical_or.reduce([of.neighbours(name) for name in of.cut.mapped])
    lanes = np.logical_or.reduce([near & False, *of.interleaved.values()])
    dice = np.random.default_rng(7)
    kinds = [np.flatnonzero(fine & kind) for kind in (lanes, near & ~lanes, ~near)]
    return [int(one) for kind in kinds if len(kind) for one in dice.choice(kind, count)]


def tile_of(tree: Kernel, array: str) -> Buffer | None:
    """Return the buffer of shared memory in which a kernel has a tile of an array."""
    return next((one for one in tree.shared if one.name == array), None)


def numbers(buffer: Buffer) -> list[int]:
    """Return the extents of a buffer as allocated."""
    return [one.value for one in buffer.layout.allocated if isinstance(one, Constant)]


def barriers_of_a_turn(tree: Kernel, counter: str) -> int:
    """Return the barriers that a turn of a loop passes: of branches the one with most."""

    def passed(nodes: Sequence[Node]) -> int:
        ways = ([passed(own) for own in inside(one)] for one in nodes)
        return sum(isinstance(one, Barrier) for one in nodes) + sum(
            max(way, default=0) for way in ways
        )

    (loop,) = (one for one in every(tree.body) if isinstance(one, For) and one.counter == counter)
    return passed(loop.body)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_the_plan_is_what_the_kernel_does(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "f.c"
    source.write_text(PRODUCT.replace("TYPE", dtype), encoding="utf-8")
    for of, row, tree in trees_of(source, 2, monkeypatch):

        def at(number: Number, of: LaunchPlan = of, row: int = row) -> Number:
            return np.broadcast_to(number, len(of))[row]

        lines = at(of.turned_in_registers)
        assert tree.shared_bytes == at(of.shared_bytes)
        assert tree.threads == at(of.block_threads)
        names = {one.name for one in every(tree.body) if isinstance(one, Let)}
        assert ("lane" in names) == any(on[row] for on in of.interleaved.values())
        turns = set[int]()
        for number, stage in enumerate(of.stages):
            (array,) = {one.access.array for one in of.readers(number)}
            tile = tile_of(tree, array)
            assert (tile is not None) == bool(at(stage.on))
            if tile is None:
                continue
            first, second = (int(at(size)) for size in stage.declared)
            extents = [second, first] if at(stage.transposed) else [first, second]
            buffers = int(at(stage.buffers))
            turns.add(buffers)
            assert numbers(tile) == ([buffers, *extents] if buffers > 1 else extents)
            copies = [
                one
                for one in every(tree.body)
                if isinstance(one, Copy) and one.target.buffer == tile
            ]
            width = int(at(stage.width))
            assert {one.width for one in copies} == ({1, width} if not lines else {1})
            assert any(one.source.buffer.space == "register" for one in copies) == lines
            assert any(one.ahead for one in copies) == (buffers > 1)
        assert barriers_of_a_turn(tree, "k0") == (1 if max(turns) > 1 else 2)


@pytest.mark.parametrize("dtype", ["double", "half"])
@pytest.mark.parametrize("name", ["atax", "gemm", "mvt", "syrk"])
def test_selected_layouts_leave_nothing_of_their_plan_out(
    name: str, dtype: Literal["double", "half"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rows of halves cannot be copied ahead, the model knows that there is one buffer."""
    found: list[list[str]] = []

    def kept(plan: LaunchPlan, kernel: Kernel) -> list[str]:
        found.append(list(left_out(plan, kernel)))
        return found[-1]

    monkeypatch.setattr(region, "left_out", kept)
    eatss.codegen(data_directory("kernels") / f"{name}.c", gpu="h200", dtype=dtype, cache=False)
    assert found
    assert not any(found)

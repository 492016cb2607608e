"""Kernel variants and their distributions.

What the generator says it can do is what it then does.

Threads that have their points in a row instead of by turns: the mapping is data.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from eatss.analysis.layout import reordering_loops
from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.lower.instructions import of_warps
from eatss.lower.mapping import MappedLoop
from eatss.program import KernelCode, evaluate
from tests.choose.cuda_kernels import (
    analysed,
    generated,
    laid_out,
    random_layout,
    selected,
    variants,
)

H200 = load_profile("h200")


@pytest.mark.parametrize("name", ["gemm", "atax", "lu", "jacobi-2d"])
def test_the_first_structure_is_without_spread_and_there_is_one_of_each_kind(name: str) -> None:
    facts = {kernel.name: kernel for kernel in analysed(name).program.facts}
    found = variants(name)
    assert set(found) == set(facts)
    for kernel, own in found.items():
        assert not own[0].spreads
        assert own[0].instruction is None
        assert own[0].shared_loop is None
        assert not any(one.spreads and one.shared_loop for one in own)
        cuts = {(one.spreads, one.shared_loop, one.instruction) for one in own}
        assert len(cuts) == len(own)
        band = {loop.name for loop in facts[kernel].loops}
        for one in own:
            assert any(launch.sum_loop for launch in one.launches) == one.spreads
            shared = {launch.shared_loop for launch in one.launches} - {None}
            assert shared == {one.shared_loop} - {None} <= band
            assert {name for launch in one.launches for name in launch.mapped} <= band
            statements = [s for launch in one.launches for s in launch.statements]
            assert sorted(statements) == sorted(facts[kernel].statements)
            assert bool(one.products) == (one.instruction is not None)
            assert all(len(own.copied_in) == len(own.stageable) for own in one.launches)


def spread_loop(code: KernelCode) -> str | None:
    """Return the loop whose sum a kernel splits, read from its notes."""
    found = [note.split()[3] for note in code.notes if note.startswith("the sum over")]
    return found[0] if found else None


def instruction_of(code: KernelCode, statement: str) -> str | None:
    """Return the instruction that computes a statement, read from its notes."""
    notes = (note.partition(": computes ") for note in code.notes)
    return next((name for name, _, known in notes if statement in known.split(", ")), None)


@pytest.mark.parametrize("name", ["gemm", "atax", "trmm"])
def test_layouts_are_generated_as_they_are_described_and_predicted(name: str) -> None:
    """Launches, spread sums, threads, tiles and shared bytes of layouts at random."""
    dice = Random(name)
    selection = selected(name)
    kernels, expected = [], []
    for facts, kernel in zip(analysed(name).program.facts, selection.kernels, strict=True):
        taken = random_layout(facts, variants(name)[facts.name], H200, dice)
        if taken is None:
            kernels.append(replace(kernel, spread=None))
            continue
        kernels.append(laid_out(kernel, taken[0], taken[2]))
        expected.append((facts, taken))
    program = generated(name, replace(selection, kernels=tuple(kernels)))
    for facts, (layouts, prediction, row) in expected:
        chosen = layouts.at(row)
        launches = [one for one in layouts.variant.launches if one.statements]
        for launch, (demand, _) in zip(launches, prediction.launches, strict=True):
            (code,) = [c for c in program.kernels if {*c.statements} == {*launch.statements}]
            spread = (
                (launch.sum_loop or launch.shared_loop)
                if chosen.lanes * chosen.chunks > 1
                else None
            )
            assert spread_loop(code) == spread
            tiles = dict(code.tile_sizes)
            reorders = any(tiles[name] > 1 for name in reordering_loops(facts) if name in tiles)
            assert code.reassociates == (spread is not None or reorders)
            instruction = layouts.variant.instruction
            for one in launch.products:
                assert instruction is not None
                assert instruction_of(code, one.statement) == instruction.name
            assert code.shared_bytes == int(demand.shared_bytes[row])
            x, y, z = code.block
            assert x * y * z == int(demand.threads[row])
            if not layouts.variant.spreads:
                sizes = dict(code.tile_sizes)
                assert all(sizes[loop] == chosen.tiles[loop] for loop in launch.mapped)


def mapped(tile: int, threads: int, *, cyclic: bool) -> MappedLoop:
    return MappedLoop(
        name="i", source_name="i", tile=tile, threads=threads, axis="x", grid="x", order=0,
        origin="i0", thread="ti", point="ri", cyclic=cyclic,
    )  # fmt: skip


@pytest.mark.parametrize("cyclic", [True, False])
@pytest.mark.parametrize(("tile", "threads"), [(32, 8), (7, 7), (12, 1), (1, 1), (64, 32)])
def test_each_point_of_a_tile_is_one_thread_s(tile: int, threads: int, *, cyclic: bool) -> None:
    loop = mapped(tile, threads, cyclic=cyclic)
    slots = product(range(threads), range(loop.points))
    place = loop.place.expression()
    points = [evaluate(place, {"i0": 5, "ti": thread, "ri": slot}) for thread, slot in slots]
    assert sorted(points) == [5 + point for point in range(tile)]
    assert loop.step == (threads if cyclic and tile > threads else 1)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"no instruction 'fms' of tensor cores .EATSS-X005"):
        of_warps("fms")

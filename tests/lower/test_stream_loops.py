"""Blocks take equal shares of a loop's turns in code exactly where a structure says they can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.analysis.layout import SharedSum
from eatss.analysis.structure import Structure
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose import ModelOptions, Selection
from eatss.choose.cuda import structure_of
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.structures import structures_for
from eatss.program import Original
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import generate_for, select_for

H200 = load_profile("h200")
BLOCKS = 6


def alone(selection: Selection) -> Selection:
    """Return a selection whose blocks and threads share nothing."""
    kernels = (
        replace(
            kernel, spread=None, sum_loops=(), host_loop=None, warps=None, shared_sum=None,
            row_block=None,
        )
        for kernel in selection.kernels
    )  # fmt: skip
    return replace(selection, kernels=tuple(kernels))


@pytest.mark.parametrize(("name", "dtype"), [("gemm", "double"), ("atax", "float")])
def test_loops_that_a_structure_names_are_streamed_and_no_others(name: str, dtype: str) -> None:
    source = data_directory("kernels") / f"{name}.c"
    reading = Reading(defines={"DATA_TYPE": dtype, "SMALL_DATASET": "1"})
    analysed = Session(source, reading).symbolic
    structures = structures_for(analysed.program, H200)
    selection = select_for(analysed.program, H200, ModelOptions(target="cuda"))
    loops = dict.fromkeys(one.name for own in analysed.program.facts for one in own.loops)
    streamed = {
        loop
        for loop in loops
        for one in (selection, alone(selection))
        if check(name, analysed, structures, one, loop)
    }
    assert bool(streamed) == any(
        one.stream_loop for several in structures.values() for one in several
    )
    assert streamed or name != "gemm"


def check(
    name: str,
    analysed: SymbolicProgram,
    structures: dict[str, tuple[Structure, ...]],
    selection: Selection,
    loop: str,
) -> bool:
    """Make code whose blocks are to share a loop's turns; return whether some do."""
    wished = SharedSum(loop=loop, blocks=BLOCKS, streamed=True)
    facts = {own.name: own for own in analysed.program.facts}
    having = [one for one, own in facts.items() if loop in {each.name for each in own.loops}]
    options = CodegenOptions(shared_sums=tuple((one, wished) for one in having))
    program = generate_for(
        analysed, recipe_of(selection, options), H200, name=name,
        original=Original(file=f"{name}.c", defines=(), include_dirs=()),
    )  # fmt: skip
    said = f"{BLOCKS} blocks take equal shares of the turns over {loop} of all tiles"
    found = False
    for kernel in (one for one in selection.kernels if one.name in having):
        structure = structure_of(structures[kernel.name], replace(kernel, shared_sum=wished))
        wanted = structure is not None and structure.stream_loop == loop
        statements = {*facts[kernel.name].statements}
        notes = [n for one in program.kernels if statements & {*one.statements} for n in one.notes]
        assert (said in notes) == wanted, (kernel.name, loop)
        found = found or wanted
    return found

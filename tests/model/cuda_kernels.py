"""Kernels of this repository with their structures, and layouts of them taken at random."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import mapped_loops
from eatss.analysis.structure import SharedSum, SplitK, Structure, WarpUse
from eatss.frontend.options import Reading
from eatss.gpu import GpuProfile, load_profile
from eatss.lower.structures import structures_for
from eatss.model import KernelSelection, ModelOptions, Selection
from eatss.model.cuda_lattice import CudaLattice
from eatss.model.shared_sum_lattice import every_lattice
from eatss.prediction.cuda_model import CudaModel, CudaPrediction
from eatss.program import Original, Program
from eatss.recipe.from_selection import recipe_of
from eatss.recipe.options import CodegenOptions
from eatss.resources import data_directory
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import generate_for, select_for

KERNELS = tuple(sorted(path.stem for path in data_directory("kernels").glob("*.c")))
ENERGY = ModelOptions(target="cuda")


@cache
def analysed(kernel: str, dtype: str = "double") -> SymbolicProgram:
    """Return a kernel as codegen sees it."""
    source = data_directory("kernels") / f"{kernel}.c"
    return Session(source, Reading(defines={"DATA_TYPE": dtype})).symbolic


@cache
def structures(kernel: str, gpu: str = "h200") -> dict[str, tuple[Structure, ...]]:
    return structures_for(analysed(kernel).program, load_profile(gpu))


@cache
def selected(kernel: str, gpu: str = "h200", dtype: str = "double") -> Selection:
    return select_for(analysed(kernel, dtype).program, load_profile(gpu), ENERGY)


def generated(
    kernel: str, selection: Selection, options: CodegenOptions | None = None, dtype: str = "double"
) -> Program:
    """Return the program of a selection, which is for the card it names."""
    return generate_for(
        analysed(kernel, dtype),
        recipe_of(selection, options or CodegenOptions()),
        load_profile(selection.gpu),
        name=kernel,
        original=Original(file=f"{kernel}.c", defines=(f"DATA_TYPE={dtype}",), include_dirs=()),
    )


def laid_out(
    kernel: KernelSelection, facts: KernelFacts, lattice: CudaLattice, row: int
) -> KernelSelection:
    """Return a selected kernel with one layout of a lattice."""
    staged = {at for group, on in lattice.staged.items() if on[row] for at in group}
    spread = SplitK(
        lanes=int(lattice.lanes[row]),
        tile=int(lattice.sum_tile[row]),
        chunks=int(lattice.chunks[row]),
    )
    instruction = lattice.structure.instruction
    return replace(
        kernel,
        tile_sizes=tuple(
            (loop.name, int(lattice.tiles[loop.name][row]) if loop.name in lattice.tiles else 1)
            for loop in facts.loops
        ),
        block=tuple((m.name, int(lattice.threads[m.name][row])) for m in mapped_loops(facts)),
        references=tuple(
            replace(reference, placement="shared" if at in staged else "l1")
            for at, reference in enumerate(kernel.references)
        ),
        spread=spread if lattice.structure.spreads else None,
        shared_sum=None
        if lattice.structure.shared_loop is None
        else SharedSum(loop=lattice.structure.shared_loop, blocks=spread.chunks),
        warps=None
        if instruction is None
        else WarpUse(instruction=instruction.name, stages=int(lattice.stages[row])),
        host_loop=lattice.structure.host_loop,
        stages=int(lattice.stages[row]) if instruction is None else 1,
    )


def random_layout(
    facts: KernelFacts, own: tuple[Structure, ...], card: GpuProfile, dice: Random
) -> tuple[CudaLattice, CudaPrediction, int] | None:
    """Return a lattice with what is predicted and a row of it that launches."""
    offered = every_lattice(facts, own, card)
    if not offered:
        return None
    lattice = dice.choice(offered)
    prediction = CudaModel.of(facts, card).columns(lattice.structure, lattice.candidates())
    within = prediction.shared_bytes <= card.shared_per_block_optin_bytes
    rows = np.flatnonzero(prediction.fits & within & np.isfinite(prediction.total.time_s))
    return (lattice, prediction, int(dice.choice(rows.tolist()))) if len(rows) else None

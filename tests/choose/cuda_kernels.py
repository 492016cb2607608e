"""Kernels of this repository with their structures, and layouts of them taken at random."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from eatss.analysis.facts import KernelFacts
from eatss.analysis.layout import Candidates
from eatss.analysis.variant import KernelVariant
from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose.cuda_candidates import every_candidate
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.cost.cuda_model import CudaModel, CudaPrediction
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.variants import kernel_variants_for
from eatss.program import Original, Program
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
def variants(kernel: str, gpu: str = "h200") -> dict[str, tuple[KernelVariant, ...]]:
    return kernel_variants_for(analysed(kernel).program, load_profile(gpu))


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


def laid_out(kernel: KernelSelection, layouts: Candidates, row: int) -> KernelSelection:
    """Return a selected kernel with one layout of several."""
    chosen = layouts.at(row)
    staged = {at for group, on in chosen.staged.items() if on for at in group}
    return replace(
        kernel,
        **chosen.chosen(),
        references=tuple(
            replace(reference, placement="shared" if at in staged else "l1")
            for at, reference in enumerate(kernel.references)
        ),
    )


def random_layout(
    facts: KernelFacts, own: tuple[KernelVariant, ...], card: GpuProfile, dice: Random
) -> tuple[Candidates, CudaPrediction, int] | None:
    """Return layouts with what is predicted and a row of it that launches."""
    offered = every_candidate(facts, own, card)
    if not offered:
        return None
    layouts = dice.choice(offered)
    prediction = CudaModel.of(facts, card).columns(layouts)
    within = prediction.shared_bytes <= card.shared_per_block_optin_bytes
    rows = np.flatnonzero(prediction.fits & within & np.isfinite(prediction.total.time_s))
    return (layouts, prediction, int(dice.choice(rows.tolist()))) if len(rows) else None

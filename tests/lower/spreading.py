"""Selections whose sums are spread as a test says, whatever the prediction prefers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eatss.analysis.layout import SplitK
from eatss.cards import load_profile
from eatss.choose.options import ModelOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.lower.variants import kernel_variants_for
from eatss.program import Original, Program, save_program
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import generate_for, select_for
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.lower.checking import right

H200 = load_profile("h200")


def spread_as(
    symbolic: SymbolicProgram, spread: SplitK, *, threads: int | None = None, points: int = 1
) -> Selection:
    """Return a selection with every sum spread that can be.

    With ``threads``, so many of a block go along the last mapped loop, with ``points`` each.
    """
    selection = select_for(symbolic.program, H200, ModelOptions(target="cuda"), fuse_rows=False)
    variants = kernel_variants_for(symbolic.program, H200)

    def spread_kernel(kernel: KernelSelection) -> KernelSelection:
        if not any(one.spreads for one in variants[kernel.name]):
            return replace(kernel, spread=None, shared_sum=None)
        block, sizes = kernel.block, dict(kernel.tile_sizes)
        if threads is not None and block:
            block = (*((name, 1) for name, _ in block[:-1]), (block[-1][0], threads))
            sizes |= {name: min(2, threads) for name, _ in block[:-1]} | {
                block[-1][0]: threads * points
            }
        return replace(
            kernel,
            tile_sizes=tuple(sizes.items()),
            block=block,
            spread=spread,
            shared_sum=None,
        )

    return replace(selection, kernels=tuple(map(spread_kernel, selection.kernels)))


def made(
    symbolic: SymbolicProgram,
    selection: Selection,
    original: Path,
    options: CodegenOptions | None = None,
) -> Program:
    """Return the program of a selection, for the card that it names."""
    return generate_for(
        symbolic,
        recipe_of(selection, options or CodegenOptions()),
        load_profile(selection.gpu),
        name="program",
        original=Original(file=original.name, defines=(), include_dirs=()),
    )


def spread_and_verified(
    text: str, folder: Path, spread: SplitK, *sizes: dict[str, int], threads: int | None = None
) -> tuple[Program, Verification]:
    """Generate C text with its sums spread, and run it on the CPU."""
    folder.mkdir(exist_ok=True)
    source = folder / "program.c"
    source.write_text(text, encoding="utf-8")
    symbolic = Session(source).symbolic
    program = made(symbolic, spread_as(symbolic, spread, threads=threads), source)
    save_program(program, folder)
    return program, right(verify(folder, device="cpu", sizes=sizes))

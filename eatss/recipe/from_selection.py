"""From what a model selected to a recipe."""

from __future__ import annotations

from eatss.model import KernelSelection, Selection
from eatss.recipe.options import CodegenOptions
from eatss.recipe.recipe import KernelRecipe, PlacedReference, Recipe


def recipe_of(selection: Selection, options: CodegenOptions) -> Recipe:
    """Return what a model and the user decided about a program."""
    return Recipe(
        gpu=selection.gpu,
        dtype=selection.dtype,
        kernels=tuple(map(_kernel, selection.kernels)),
        options=options,
        recomputed=selection.recomputed,
    )


def _kernel(selected: KernelSelection) -> KernelRecipe:
    return KernelRecipe(
        name=selected.name,
        statements=selected.statements,
        tile_sizes=selected.tile_sizes,
        block=selected.block,
        references=tuple(
            PlacedReference(
                array=reference.array,
                access=reference.access,
                statements=reference.statements,
                memory=reference.placement,
            )
            for reference in selected.references
        ),
        spread=selected.spread,
        shared_sum=selected.shared_sum,
        host_loop=selected.host_loop,
        warps=selected.warps,
        stages=selected.stages,
        resident=selected.resident,
        row_block=selected.row_block,
    )

"""The nouns of what was decided: by a model, and by the user.

A generator carries a recipe out. So a recipe that was kept makes the same code again, whatever a
model would choose today. It stands on its own as JSON, and in the plan of a program.

Codes: K017 a file is no recipe of this version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eatss.analysis.layout import Layout
from eatss.analysis.structure import RecomputedArray
from eatss.base.codec import Document, JsonForm
from eatss.base.diagnostics import InputError, input_error
from eatss.base.files import read_regular
from eatss.base.frozen import frozen
from eatss.lower.recipe.options import CodegenOptions

if TYPE_CHECKING:
    from eatss.choose import Selection

SCHEMA_VERSION = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@frozen
class PlacedReference:
    """A reference of some statements, and the memory that it was given.

    ``access`` is its text (``A[i][k]``).
    """

    array: str
    access: str
    statements: tuple[str, ...]
    memory: Literal["l1", "shared", "private"]


@frozen
class KernelRecipe(Layout):
    """What was decided about one kernel."""

    json_layout = JsonForm(after=(("tile_sizes", "statements"), ("spread", "references")))

    name: str
    statements: tuple[str, ...]
    references: tuple[PlacedReference, ...]


@frozen
class Recipe:
    """Everything that was decided about the code of a program on a card.

    ``kernels`` are what a model chose, ``options`` what the user wants instead or besides.
    ``recomputed`` are arrays whose elements kernels compute anew where they read them.
    """

    json_layout = JsonForm(closed=True)

    gpu: str
    dtype: str
    kernels: tuple[KernelRecipe, ...]
    options: CodegenOptions = field(default_factory=CodegenOptions)
    recomputed: tuple[RecomputedArray, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def wanted(self, name: str) -> KernelRecipe:
        """Return what was decided about a kernel, as the user changes it."""
        return self.options.changed(self.kernel(name), name)

    def kernel(self, name: str) -> KernelRecipe:
        """Return what was decided about a kernel; ``KeyError`` if there is none of that name."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)


def recipe_of(selection: Selection, options: CodegenOptions) -> Recipe:
    """Return what a model and the user decided about a program."""
    kernels = tuple(
        KernelRecipe(
            **selected.chosen(),
            name=selected.name,
            statements=selected.statements,
            references=tuple(
                PlacedReference(
                    array=reference.array,
                    access=reference.access,
                    statements=reference.statements,
                    memory=reference.placement,
                )
                for reference in selected.references
            ),
        )
        for selected in selection.kernels
    )
    return Recipe(
        gpu=selection.gpu,
        dtype=selection.dtype,
        kernels=kernels,
        options=options,
        recomputed=selection.recomputed,
    )


PLAN = "plan.json"
"""Where a folder with a program has its recipe."""

_MOST_BYTES = 64 << 20

RECIPE = Document(
    title="recipe",
    kind=Recipe,
    other_version="EATSS-K017",
    damaged="EATSS-K017",
    hint="write one with: eatss codegen FILE.c --gpu NAME --save-recipe FILE.json",
)
recipe_to_dict, recipe_from_dict, recipe_text = RECIPE.to_dict, RECIPE.from_dict, RECIPE.to_text


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a file, or from a folder that ``eatss codegen`` wrote.

    Raises:
        InputError: ``EATSS-C009`` it cannot be read, ``EATSS-K017`` it is no recipe.
    """
    place = path / PLAN if path.is_dir() else path
    try:
        document = json.loads(read_regular(place, _MOST_BYTES))
    except OSError as error:
        raise input_error("EATSS-C009", f"cannot read {place}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _no_recipe(f"{place} is not JSON") from None
    if isinstance(document, Mapping) and path.is_dir():
        document = document.get("recipe")
    if not isinstance(document, Mapping):
        raise _no_recipe(f"{place} holds none")
    return recipe_from_dict(document)


def _no_recipe(why: str) -> InputError:
    return input_error(RECIPE.damaged, f"that is no recipe: {why}", hint=RECIPE.hint)

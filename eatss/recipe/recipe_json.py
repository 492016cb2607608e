"""Recipes as JSON: on their own, and in the plan of a program.

Codes: K017 a file is no recipe of this version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eatss.diagnostics import InputError, input_error
from eatss.documents import Document
from eatss.files import read_regular
from eatss.recipe.recipe import Recipe

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

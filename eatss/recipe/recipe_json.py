"""Recipes as JSON: on their own, and in the plan of a program.

Codes: K017 a file is no recipe of this version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eatss.codec import decode, encode
from eatss.diagnostics import InputError, input_error
from eatss.files import read_regular
from eatss.recipe.recipe import SCHEMA_VERSION, Recipe

PLAN = "plan.json"
"""Where a folder with a program has its recipe."""

_MOST_BYTES = 64 << 20
_BY_LOOP = ("tile_sizes", "block")


def recipe_to_dict(recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as plain JSON types; sizes and threads of a kernel by loop, in order."""
    plain: dict[str, Any] = encode(recipe)
    for kernel in plain["kernels"]:
        kernel.update({name: dict(kernel[name]) for name in _BY_LOOP})
    return {"schema_version": plain.pop("schema_version"), **plain}


def recipe_from_dict(document: Mapping[str, Any]) -> Recipe:
    """Read what :func:`recipe_to_dict` wrote.

    Raises:
        InputError: ``EATSS-K017``, it is damaged or of another version.
    """
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise _no_recipe(f"it has schema version {version}, not {SCHEMA_VERSION}")
    try:
        found = decode(Recipe, {**document, "kernels": list(map(_pairs, document["kernels"]))})
    except KeyError as error:
        raise _no_recipe(f"it has no {error}") from None
    except (TypeError, ValueError) as error:
        raise _no_recipe(str(error)) from None
    for name in _unknown(document, recipe_to_dict(found)):
        raise _no_recipe(f"nothing in it is called '{name}'")
    return found


def _unknown(given: Any, known: Any) -> Iterator[str]:
    """Yield the names in ``given`` that ``known`` does not have at the same place."""
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        for name, value in given.items():
            if name in known:
                yield from _unknown(value, known[name])
            else:
                yield name
    elif isinstance(given, list | tuple) and isinstance(known, list | tuple):
        for value, own in zip(given, known, strict=False):
            yield from _unknown(value, own)


def _pairs(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """Return a kernel with its sizes as pairs."""
    if not isinstance(kernel, Mapping):
        raise TypeError(f"{kernel!r} is no object")
    sizes = {name: kernel[name] for name in _BY_LOOP}
    for size in sizes.values():
        if not isinstance(size, Mapping):
            raise TypeError(f"{size!r} is no object of sizes by loop")
    return {**kernel, **{name: list(size.items()) for name, size in sizes.items()}}


def recipe_text(recipe: Recipe) -> str:
    """Return a recipe as the text of a file."""
    return json.dumps(recipe_to_dict(recipe), indent=2) + "\n"


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
    return input_error(
        "EATSS-K017",
        f"that is no recipe: {why}",
        hint="write one with: eatss codegen FILE.c --gpu NAME --save-recipe FILE.json",
    )

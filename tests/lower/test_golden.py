"""The CUDA of five programs, kept in the repository to be read and reviewed.

After a change that is meant to alter it, run this file with ``EATSS_UPDATE_GOLDEN=1`` and read the
difference. Beside each text is its recipe, so that what the prediction prefers from one day to the
next does not change it; delete that to take what is selected now.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eatss.api import codegen
from eatss.base.shipped import data_directory
from eatss.lower.recipe import read_recipe, recipe_from_dict, recipe_text

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = ("matmul", "jacobi-2d", "atax", "lu", "convolution-layer")
UPDATES = bool(os.environ.get("EATSS_UPDATE_GOLDEN"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_is_the_golden_one(name: str) -> None:
    source = GOLDEN / f"{name}.c"  # beside the text where it is no kernel of the repository
    if not source.exists():
        source = data_directory("kernels") / f"{name}.c"
    kept, path = GOLDEN / f"{name}.json", GOLDEN / f"{name}.cu"
    recipe = None if UPDATES and not kept.exists() else read_recipe(kept)
    program = codegen(source, gpu="h200", recipe=recipe)
    # without the stand-alone main, which is the same for all programs
    text, _, _ = program.text.partition("#ifdef EATSS_MAIN")
    if UPDATES:
        assert program.recipe is not None
        kept.write_text(recipe_text(recipe_from_dict(program.recipe)), encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")

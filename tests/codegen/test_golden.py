"""The CUDA of five programs, kept in the repository to be read and reviewed.

After a change that is meant to alter it, run this file with ``EATSS_UPDATE_GOLDEN=1`` and read the
difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eatss.api import codegen
from eatss.resources import data_directory

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = ("matmul", "jacobi-2d", "atax", "lu", "convolution-layer")


def kernels_and_launchers(text: str) -> str:
    """Return the text without the stand-alone main, which is the same for all programs."""
    return text[: text.index("#ifdef EATSS_MAIN")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_is_the_golden_one(name: str) -> None:
    source = GOLDEN / f"{name}.c"  # beside the text where it is no kernel of the repository
    if not source.exists():
        source = data_directory("kernels") / f"{name}.c"
    text = kernels_and_launchers(codegen(source, gpu="h200").text)
    path = GOLDEN / f"{name}.cu"
    if os.environ.get("EATSS_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")

"""The programs kept for tests are those that this version generates.

Where they are not, run this file with ``EATSS_UPDATE_GOLDEN=1`` and read the difference.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from eatss.api import codegen
from eatss.base.shipped import data_directory
from eatss.program import load_program, save_program

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("name", ["gemm"])
def test_the_program_is_what_is_generated_now(name: str) -> None:
    source = data_directory("kernels") / f"{name}.c"
    program = codegen(source, gpu="h200")
    folder = PROGRAMS / name
    if os.environ.get("EATSS_UPDATE_GOLDEN"):
        save_program(program, folder)
        shutil.copy(source, folder)
    same = load_program(folder) == program
    assert same, f"tests/measurement/programs/{name} is stale: see the top of this file"
    assert (folder / program.original.file).read_bytes() == source.read_bytes()

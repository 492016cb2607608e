"""Programs with the kernels that their text was printed from."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import pytest

from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.recipe import CodeRequest
from eatss.program import Program
from eatss.session.session import Session

PROGRAMS = ("gemm", "atax")


@pytest.fixture(scope="session", params=PROGRAMS)
def generated_kernels(request: pytest.FixtureRequest) -> tuple[Program, list[Kernel]]:
    """Return a program and its kernels."""
    module = importlib.import_module("eatss.cuda.generate")
    kernels: list[Kernel] = []
    original = module.file_text

    def noted(program: Program, code: Sequence[Kernel], *, line_info: bool) -> Program:
        kernels.extend(code)
        found: Program = original(program, code, line_info=line_info)
        return found

    source = data_directory("kernels") / f"{request.param}.c"
    profile = load_profile("h200")
    session = Session(source, code=True)
    selection = session.select(profile, SelectOptions(target="cuda"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "file_text", noted)
        recipe = session.recipe(selection, profile, CodeRequest())
        program = session.generate(recipe, profile)
    assert len(kernels) == len(program.kernels)
    return program, kernels

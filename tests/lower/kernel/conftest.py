"""Programs with the kernels that their text was printed from."""

from __future__ import annotations

import pytest

from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.recipe import CodeRequest
from eatss.program import Program
from eatss.session.session import Session
from tests.lower.checking import with_kernels


@pytest.fixture(scope="session", params=["gemm", "atax"])
def generated_kernels(request: pytest.FixtureRequest) -> tuple[Program, list[Kernel]]:
    """Return a program and its kernels."""
    profile = load_profile("h200")
    session = Session(data_directory("kernels") / f"{request.param}.c", code=True)
    selection = session.select(profile, SelectOptions(target="cuda"))
    recipe = session.recipe(selection, profile, CodeRequest())
    program, kernels = with_kernels(lambda: session.generate(recipe, profile))
    assert len(kernels) == len(program.kernels)
    return program, kernels

"""Generate programs and verify them on this machine's CPU, each distinct text once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from eatss.base.shipped import data_directory
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program, save_program
from eatss.session.analysis import SymbolicProgram
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.choose import cuda_kernels
from tests.lower.checking import broken as changed

Generate: TypeAlias = Callable[..., Program]


@cache
def generated(
    kernel: str,
    *,
    dtype: str = "double",
    gpu: str = "h200",
    options: CodegenOptions | None = None,
) -> Program:
    """Generate a kernel of this repository."""
    return cuda_kernels.generated(kernel, cuda_kernels.selected(kernel, gpu, dtype), options, dtype)


def saved(program: Program, folders: pytest.TempPathFactory) -> Path:
    """Return a folder with a program of a kernel and its original."""
    save_program(program, folder := folders.mktemp(program.name))
    shutil.copy(data_directory("kernels") / program.original.file, folder)
    return folder


@pytest.fixture(scope="session")
def generate() -> Generate:
    return generated


@pytest.fixture(scope="session")
def facts_of() -> Callable[[str], SymbolicProgram]:
    """Return a kernel as analysed."""
    return cuda_kernels.analysed


@pytest.fixture(scope="session")
def verify_kernel(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Verification]:
    """Return what verifies a program generated from a kernel of this repository."""

    def run(program: Program, sizes: Sequence[Mapping[str, int]]) -> Verification:
        return verify(saved(program, tmp_path_factory), device="cpu", sizes=sizes)

    return run


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return what tells how a kernel's program with a piece of its text replaced is found wrong."""

    def run(program: Program, old: str, new: str, sizes: Sequence[Mapping[str, int]]) -> str:
        assert old in program.text
        text, folder = program.text.replace(old, new, 1), saved(program, tmp_path_factory)
        return changed(program, folder, program.text, text, sizes)

    return run

"""Generate programs and verify them on this machine's CPU, each distinct text once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from eatss.base.shipped import data_directory
from eatss.cards import GpuProfile, load_profile
from eatss.choose.options import ModelOptions
from eatss.choose.selection import Selection
from eatss.frontend.options import Reading
from eatss.lower.recipe import CodegenOptions, recipe_of
from eatss.program import Original, Program, save_program
from eatss.session.analysis import SymbolicProgram
from eatss.session.session import Session
from eatss.session.steps import generate_for, select_for
from eatss.verify.result import Verification
from eatss.verify.run import verify

Verify: TypeAlias = Callable[[Program, Path, Sequence[Mapping[str, int]]], Verification]
Generate: TypeAlias = Callable[..., Program]


@cache
def analysed(source: Path, dtype: str) -> SymbolicProgram:
    """Return a C file analysed for symbolic sizes."""
    return Session(source, Reading(defines={"DATA_TYPE": dtype})).symbolic


@cache
def selected(source: Path, dtype: str, gpu: str) -> tuple[GpuProfile, Selection]:
    """Return the sizes selected for a C file."""
    profile = load_profile(gpu)
    return profile, select_for(
        analysed(source, dtype).program, profile, ModelOptions(target="cuda")
    )


@cache
def generated(
    kernel: str,
    *,
    dtype: str = "double",
    gpu: str = "h200",
    options: CodegenOptions | None = None,
) -> Program:
    """Generate a kernel of this repository."""
    source = data_directory("kernels") / f"{kernel}.c"
    profile, selection = selected(source, dtype, gpu)
    original = Original(file=source.name, defines=(f"DATA_TYPE={dtype}",), include_dirs=())
    return generate_for(
        analysed(source, dtype),
        recipe_of(selection, CodegenOptions() if options is None else options),
        profile,
        name=kernel,
        original=original,
    )


@pytest.fixture(scope="session")
def generate() -> Generate:
    return generated


@pytest.fixture(scope="session")
def facts_of() -> Callable[[str], SymbolicProgram]:
    """Return a kernel as analysed."""
    return lambda kernel: analysed(data_directory("kernels") / f"{kernel}.c", "double")


@pytest.fixture(scope="session")
def verified_once(tmp_path_factory: pytest.TempPathFactory) -> Verify:
    """Return what verifies a program at sizes.

    A program whose text, but for the comment that names the card, and sizes are those of one
    verified before in this session gets that one's result.
    """
    known: dict[tuple[object, ...], Verification] = {}

    def run(program: Program, original: Path, sizes: Sequence[Mapping[str, int]]) -> Verification:
        body = program.text.partition("*/")[2] or program.text
        key = (body, program.original, str(original), str(sizes))
        if key not in known:
            folder = tmp_path_factory.mktemp(program.name)
            save_program(program, folder)
            shutil.copy(original, folder / program.original.file)
            known[key] = verify(folder, device="cpu", sizes=sizes)
        return known[key]

    return run


@pytest.fixture(scope="session")
def verify_kernel(verified_once: Verify) -> Callable[..., Verification]:
    """Return what verifies a program generated from a kernel of this repository."""

    def run(program: Program, sizes: Sequence[Mapping[str, int]]) -> Verification:
        return verified_once(program, data_directory("kernels") / program.original.file, sizes)

    return run


@pytest.fixture(scope="session")
def verify_text(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Verification]:
    """Return what generates code for C text and verifies it."""

    def run(
        text: str, options: CodegenOptions, sizes: Sequence[Mapping[str, int]], gpu: str = "h200"
    ) -> Verification:
        folder = tmp_path_factory.mktemp("text")
        source = folder / "program.c"
        source.write_text(text, encoding="utf-8")
        symbolic = Session(source).symbolic
        profile = load_profile(gpu)
        program = generate_for(
            symbolic,
            recipe_of(select_for(symbolic.program, profile, ModelOptions(target="cuda")), options),
            profile,
            name="program",
            original=Original(file="program.c", defines=(), include_dirs=()),
        )
        save_program(program, folder)
        return verify(folder, device="cpu", sizes=sizes)

    return run


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Verification]:
    """Return what verifies a kernel's program with one piece of its text replaced."""

    def run(
        program: Program, old: str, new: str, sizes: Sequence[Mapping[str, int]]
    ) -> Verification:
        assert old in program.text
        folder = tmp_path_factory.mktemp("broken")
        save_program(replace(program, text=program.text.replace(old, new, 1)), folder)
        source = data_directory("kernels") / program.original.file
        shutil.copy(source, folder / program.original.file)
        return verify(folder, device="cpu", sizes=sizes, timeout_s=20.0, first_failure=True)

    return run

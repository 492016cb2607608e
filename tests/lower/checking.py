"""Code that is generated and then held against the original on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.recipe import recipe_from_dict
from eatss.verify.result import Verification
from eatss.verify.run import verify

FOUND = ("race", "shared memory", "wrong result", "out of bounds", "launch error")
"""What verification calls code that is broken."""


def right(found: Verification, *, bit_equal: bool | None = None) -> Verification:
    """Return what was found, which is that all is right, in every bit or not if that is told."""
    assert (found.status, found.message) == ("ok", "")
    assert bit_equal in (None, found.bit_equal)
    return found


def checked(
    source: str | Path,
    folder: Path,
    sizes: Sequence[Mapping[str, int]] | None = None,
    *,
    bit_equal: bool | None = None,
    **wanted: Any,
) -> eatss.Program:
    """Return a program that does what its source does."""
    program = eatss.codegen(source, output=folder, **{"gpu": "h200", **wanted})
    right(verify(folder, device="cpu", sizes=sizes), bit_equal=bit_equal)
    return program


def broken(
    program: eatss.Program,
    folder: Path,
    old: str,
    new: str,
    sizes: Sequence[Mapping[str, int]] | None = None,
) -> str:
    """Return what verification calls a program in a folder after a change of its text."""
    assert old in program.text
    (folder / program.file).write_text(program.text.replace(old, new), encoding="utf-8")
    return verify(folder, device="cpu", sizes=sizes, timeout_s=30.0, first_failure=True).status


def is_kept_by_its_recipe(
    program: eatss.Program, source: str, block: str, *wrong: tuple[str, object]
) -> None:
    """Demand that the recipe of a program makes it again, and is refused with another block."""
    assert program.recipe is not None

    def made(field: str = "", value: object = None) -> eatss.Program:
        recipe = deepcopy(program.recipe)
        assert recipe is not None
        if field:
            own = next(one[block] for one in recipe["kernels"] if one[block])
            own[field] = value
        return eatss.codegen(source, gpu="h200", recipe=recipe_from_dict(recipe))

    assert made().text == program.text
    for change in wrong:
        with pytest.raises(eatss.InputError, match="EATSS-K011"):
            made(*change)


def with_kernels(make: Callable[[], eatss.Program]) -> tuple[eatss.Program, list[Kernel]]:
    """Return a program and the kernels that its text is printed from."""
    module = importlib.import_module("eatss.cuda.generate")
    kernels: list[Kernel] = []
    original = module.file_text

    def noted(program: Any, code: Sequence[Kernel], **how: Any) -> Any:
        kernels.extend(code)
        return original(program, code, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "file_text", noted)
        return make(), kernels


def every_barrier_is_missed(
    program: eatss.Program, folder: Path, sizes: Sequence[Mapping[str, int]]
) -> None:
    """Demand that a program in a folder is broken without any one of its barriers."""
    front, *behind = program.text.split(barrier := "__syncthreads();")
    assert behind
    for at in range(len(behind)):
        text = barrier.join((front, *behind[:at])) + barrier.join(behind[at:])
        assert broken(program, folder, program.text, text, sizes) in FOUND

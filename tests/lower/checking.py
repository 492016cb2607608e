"""Code that is generated and then held against the original on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import eatss
from eatss.verify.result import Verification
from eatss.verify.run import verify


def right(found: Verification, *, bit_equal: bool | None = None) -> Verification:
    """Return what was found, which is that all is right, in every bit or not if that is told."""
    assert (found.status, found.message) == ("ok", "")
    assert bit_equal in (None, found.bit_equal)
    return found


def checked(
    source: str | Path, folder: Path, sizes: Sequence[Mapping[str, int]], **wanted: object
) -> eatss.Program:
    """Return a program that does what its source does."""
    program = eatss.codegen(source, gpu="h200", output=folder, **wanted)  # type: ignore[arg-type]
    right(verify(folder, device="cpu", sizes=sizes))
    return program

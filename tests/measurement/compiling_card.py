"""A scripted card that compiles what it loads, by the program that ``FAKE_COMPILER`` names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from eatss.measurement.compile import CompileTarget, Toolchain
from eatss.program import Program
from tests.measurement.scripted_card import ScriptedCard, ScriptedWorkload


class CompilingCard(ScriptedCard):
    def load(
        self, program: Program, directory: Path, sizes: Mapping[str, int], seed: int
    ) -> ScriptedWorkload:
        nvcc = Toolchain(name="nvcc", version="1.0", command=(os.environ["FAKE_COMPILER"],))
        target = CompileTarget(capability=90, toolchain=nvcc, cache=str(directory / "cache"))
        target.compile(program, sizes)
        return super().load(program, directory, sizes, seed)

"""A card on which a program's time and power follow from its sizes, in no time at all.

``PRICED_CARD`` names a JSON file: ``{"pause_s": 0.0, "fails": {"64": "hang"}, "uuid": "GPU-0"}``.
``fails`` says how a program fails whose first tile size is that number.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

from eatss.measurement.measurement import DeviceInfo
from eatss.program import Program
from tests.measurement.scripted_card import CardScript, Script, ScriptedCard, ScriptedWorkload

PATH = "tests.tune.priced_card:PricedCard"


def price(tiles: Mapping[str, int], threads: int) -> tuple[float, float]:
    """Return seconds and watts of a run: least time at 64, least energy at 32."""
    apart = sum(abs(log2(size) - 6) for size in tiles.values())
    wide = sum(abs(log2(size) - 5) for size in tiles.values())
    time_s = 0.004 * (1 + 0.1 * apart + 0.05 * abs(log2(threads) - 8))
    return time_s, 300 * (1 + 0.08 * wide)


class PricedCard(ScriptedCard):
    """See the module."""

    def __init__(self, *, device: int | str = 0, compiler: str = "auto") -> None:
        named = os.environ.get("PRICED_CARD")
        self.given: dict[str, Any] = json.loads(Path(named).read_text()) if named else {}
        super().__init__(device=0, compiler=compiler, script=CardScript(meters=("counter",)))
        self.number = os.environ.get("CUDA_VISIBLE_DEVICES", str(device))

    @property
    def info(self) -> DeviceInfo:
        """One of several cards of a kind."""
        return replace(super().info, name="Priced", uuid=f"GPU-{self.number}")

    def load(
        self, program: Program, directory: Path, sizes: Mapping[str, int], seed: int
    ) -> ScriptedWorkload:
        """Return a load whose price is that of the program."""
        del sizes, seed
        kernel = program.kernels[0]
        tiles = dict(kernel.tile_sizes)
        threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
        time_s, power_w = price(tiles, threads)
        script = Script(time_s=time_s * self.given.get("slow", 1.0), power_w=power_w)
        how = self.given.get("fails", {}).get(str(next(iter(tiles.values()), 0)))
        if how is not None:
            script = replace(script, fails_at="first run", fails_by=how)
        time.sleep(self.given.get("pause_s", 0.0))
        return ScriptedWorkload(self, directory.name, script)

"""The CUDA of five programs, kept in the repository to be read and reviewed.

After a change that is meant to alter it, run this file with ``EATSS_UPDATE_GOLDEN=1`` and read the
difference. The layouts are in ``golden/layouts.json``, so that what the prediction prefers from one
day to the next does not change the text; delete an entry to take what is selected now.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from eatss.analysis.layout import ClassBlock, SplitK, WarpUse
from eatss.api import codegen, select
from eatss.base.shipped import data_directory
from eatss.choose.selection import Selection

GOLDEN = Path(__file__).parent / "golden"
LAYOUTS = GOLDEN / "layouts.json"
PROGRAMS = ("matmul", "jacobi-2d", "atax", "lu", "convolution-layer")


def kernels_and_launchers(text: str) -> str:
    """Return the text without the stand-alone main, which is the same for all programs."""
    return text[: text.index("#ifdef EATSS_MAIN")]


def laid_out(name: str, source: Path) -> Selection:
    """Return a selection with the layouts that are kept."""
    selection = select(source, gpu="h200", target="cuda")
    layouts = json.loads(LAYOUTS.read_text(encoding="utf-8"))
    if os.environ.get("EATSS_UPDATE_GOLDEN") and name not in layouts:
        layouts[name] = {
            kernel.name: {
                "tile_sizes": dict(kernel.tile_sizes),
                "block": dict(kernel.block),
                "shared": [r.access for r in kernel.references if r.placement == "shared"],
                "spread": None if kernel.spread is None else asdict(kernel.spread),
                "warps": None if kernel.warps is None else asdict(kernel.warps),
                "class_block": None if kernel.class_block is None else asdict(kernel.class_block),
            }
            for kernel in selection.kernels
        }
        LAYOUTS.write_text(json.dumps(layouts, indent=1) + "\n", encoding="utf-8")
    kernels = []
    for kernel in selection.kernels:
        layout = layouts[name][kernel.name]
        spread, warps, own = (layout.get(one) for one in ("spread", "warps", "class_block"))
        kernels.append(
            replace(
                kernel,
                tile_sizes=tuple(layout["tile_sizes"].items()),
                block=tuple(layout["block"].items()),
                references=tuple(
                    replace(r, placement="shared" if r.access in layout["shared"] else "l1")
                    for r in kernel.references
                ),
                spread=None if spread is None else SplitK(**spread),
                warps=None if warps is None else WarpUse(**warps),
                time_tile=None,
                class_block=own and ClassBlock(**own | {"kernels": tuple(own["kernels"])}),
                loop_block=None,
            )
        )
    return replace(selection, kernels=tuple(kernels))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_is_the_golden_one(name: str) -> None:
    source = GOLDEN / f"{name}.c"  # beside the text where it is no kernel of the repository
    if not source.exists():
        source = data_directory("kernels") / f"{name}.c"
    text = kernels_and_launchers(codegen(source, gpu="h200", selection=laid_out(name, source)).text)
    path = GOLDEN / f"{name}.cu"
    if os.environ.get("EATSS_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")

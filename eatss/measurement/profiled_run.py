"""``python -m eatss.measurement.profiled_run DIR OPTIONS``: one run of a program, to be profiled.

``OPTIONS`` are those of measuring, as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from eatss.base.codec import decode
from eatss.base.diagnostics import EatssError
from eatss.measurement.api import CUPY_CARD
from eatss.measurement.card import CompileError, LaunchError
from eatss.measurement.options import MeasureOptions
from eatss.measurement.trials import open_card
from eatss.program import load_program


def main(arguments: Sequence[str] | None = None) -> int:
    """Load a program, run it once while the profiler looks; 0 if it ran, else 1 with a sentence."""
    folder, text, *cards = sys.argv[1:] if arguments is None else arguments
    directory, options = Path(folder), decode(MeasureOptions, json.loads(text))
    path = cards[0] if cards else CUPY_CARD
    try:
        card = open_card(path, device=options.device, compiler=options.compiler, nvcc=options.nvcc)
        program = load_program(directory)
        workload = card.load(program, directory, options.sizes, options.seed)
        workload.reset()
        card.wait()
        # what loading and resetting launch is none of the profiler's business
        with profiler() if path == CUPY_CARD else nullcontext():
            workload.timed(1)
    except (EatssError, CompileError, LaunchError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def profiler() -> Any:
    """Return what lets the profiler look, which is not there without a card."""
    return importlib.import_module("cupyx.profiler").profile()


if __name__ == "__main__":
    sys.exit(main())

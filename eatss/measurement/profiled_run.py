"""``python -m eatss.measurement.profiled_run DIR OPTIONS``: one run of a program, to be profiled.

``OPTIONS`` are those of measuring, as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from eatss.base.codec import decode
from eatss.base.diagnostics import EatssError
from eatss.measurement.api import CUPY_CARD
from eatss.measurement.card import CompileError, LaunchError
from eatss.measurement.options import MeasureOptions
from eatss.measurement.trials import open_card
from eatss.program import load_program


def main() -> int:
    """Load a program, run it once while the profiler looks; 0 if it ran, else 1 with a sentence."""
    folder, text = sys.argv[1:]
    directory, options = Path(folder), decode(MeasureOptions, json.loads(text))
    try:
        card = open_card(CUPY_CARD, options)
        workload = card.load(load_program(directory), directory, options.sizes, options.seed)
        workload.reset()
        card.wait()
        # what loading and resetting launch is none of the profiler's business
        with importlib.import_module("cupyx.profiler").profile():
            workload.timed(1)
    except (EatssError, CompileError, LaunchError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

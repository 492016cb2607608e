"""Tries every program that once showed a defect, those that take long, too.

    python benchmarks/reproducers.py [NAME …]

A row each: seconds of the processor, and whether it is as expected. Needs no GPU.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.reproducers.test_reproducers import CASES, is_mended


def main() -> None:
    """Try the programs that are named, or all of them."""
    for case in CASES:
        if sys.argv[1:] and case.name not in sys.argv[1:]:
            continue
        before = os.times()
        with tempfile.TemporaryDirectory() as folder:
            try:
                is_mended(case, Path(folder) / "out")
                found = "as expected"
            except AssertionError as error:
                found = f"NOT as expected: {error}"
        seconds = sum(os.times()[:4]) - sum(before[:4])
        print(f"{case.name:24} {seconds:7.1f} s  {found}", flush=True)


if __name__ == "__main__":
    main()

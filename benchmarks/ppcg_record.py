"""Records what a real PPCG answers, for tests where there is none.

    python -m benchmarks.ppcg_record /path/to/ppcg

runs the builds of ``tests/ppcg_build/cases.py`` and writes ``tests/ppcg_build/recordings.json``.
PPCG 0.09 was recorded.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from eatss import EatssError
from tests.ppcg_build import cases
from tests.ppcg_build.recorded_ppcg import STORE, wrapper


def main() -> None:
    """Record every build with the PPCG that is named."""
    real = sys.argv[1] if len(sys.argv) == 2 else "-"
    if not Path(real).is_file():
        sys.exit(__doc__)
    STORE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        ppcg = wrapper(work / "ppcg", STORE, str(Path(real).resolve()))
        for kernel in cases.NAMES:
            source = cases.KERNELS / f"{kernel}.c"
            for selects in (True, False):
                cases.build(source, work, ppcg, arguments=[cases.SMALL], selects=selects)
        for stem in ("rows", "scaled", "several", "serial", "wrong"):
            source = cases.written(work / "c", f"{stem}.c", getattr(cases, stem.upper()))
            with suppress(EatssError):
                cases.build(source, work, ppcg)
            with suppress(EatssError):
                cases.build(source, work, ppcg, selects=False)
    print(f"{STORE}: {STORE.stat().st_size} bytes")


if __name__ == "__main__":
    main()

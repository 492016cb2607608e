"""Fills the disk of a folder with rows, then makes room and goes on: for a test, as a process.

``full_disk.py FOLDER MEANS``: ``size`` where the file system is small, ``limit`` to bound files of
this process instead. Printed are the code of the refusal and how many rows there are.
"""

from __future__ import annotations

import resource
import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from eatss.base.diagnostics import EatssError
from eatss.tune.store import Store
from tests.tune.sweeps import SPACE, identity, row

LEAST_ROWS = 5
MOST_BYTES = 150_000


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(folder: Path, means: str) -> None:
    path, ballast = folder / "2mm.db", folder / "ballast"
    ballast.write_bytes(bytes(60_000))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.create_or_resume(path, identity(), SPACE) as store:
        if means == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, hard))
        kept = 0
        try:
            for kept in count():
                store.add(row(kept, reason="x" * 500))
        except EatssError as error:
            say(error.code)
        assert kept > LEAST_ROWS, kept
        assert len(store.rows()) == kept
        if means == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        else:
            assert len(Store.read(path).rows) == kept, "others read while the disk is full"
            ballast.unlink()
        store.add(row(kept))
        say(str(len(store.rows()) - kept))
    assert len(Store.read(path).rows) == kept + 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

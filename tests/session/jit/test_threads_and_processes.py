"""Callables from threads and processes, and on a cache that somebody damaged."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eatss
from eatss.base.cache import Cache
from eatss.session.jit.callable import Once
from eatss.session.jit.programs import Maker
from tests.session.jit.fake_cupy import FakeCupy
from tests.session.jit.sources import SCALED, STEPS, random, steps_of

THREADS = 8


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return what decides each program that is made."""
    jobs: list[tuple[Any, ...]] = []
    before = Maker.made

    def counted(self: Maker) -> Any:
        jobs.append((self.sizes, self.reading.dtype))
        return before(self)

    monkeypatch.setattr(Maker, "made", counted)
    return jobs


def test_threads_get_their_results_and_each_program_is_made_once(
    made: list[tuple[Any, ...]], cupy: FakeCupy, made_before: Cache
) -> None:
    steps = eatss.jit(STEPS, gpu="h200", cache=made_before)
    start = threading.Barrier(THREADS)

    def call(number: int) -> None:
        start.wait()
        for turn in range(6):
            n = (9, 40)[(number + turn) % 2]
            array = random(n, dtype=("f4", "f8")[(number // 2 + turn) % 2], seed=number)
            for _ in range(2):
                want = steps_of(array, 6)
                steps(A=cupy.array(array) if False else array)
                np.testing.assert_array_equal(array, want)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(call, range(THREADS)))
    assert len(made) == len(set(made)) == 4
    assert steps.info().programs == 4


def test_what_fails_once_is_tried_again() -> None:
    things: Once[str] = Once()

    def fails() -> str:
        raise OSError("busy")

    with pytest.raises(OSError, match="busy"):
        things.get("a", fails)
    assert things.get("a", lambda: "made") == "made"
    assert things.get("a", fails) == "made"


CHILD = """
    import sys
    from pathlib import Path
    import numpy as np
    import eatss
    from eatss.base.cache import Cache
    scaled = eatss.jit({source!r}, gpu="h200", cache=Cache(Path({folder!r})))
    a, b = np.arange(50.0), np.zeros(50)
    scaled(factor=3, A=a, B=b)
    assert (b == 3 * a).all()
    print(*sorted({{"islpy", "z3", "clang"}} & sys.modules.keys()))
"""


def started(folder: Path) -> subprocess.Popen[str]:
    text = textwrap.dedent(CHILD).format(source=SCALED, folder=str(folder))
    return subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_processes_share_a_cache_and_a_third_makes_nothing(tmp_path: Path) -> None:
    for count in (2, 1):
        for child in [started(tmp_path) for _ in range(count)]:
            printed, said = child.communicate(timeout=120)
            assert child.returncode == 0, said
    assert printed.split() == [], "the third took everything from the cache"

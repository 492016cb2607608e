"""Sweeps over a Dask cluster: two workers with a card each, lost workers, lost clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from eatss.base.diagnostics import InputError
from eatss.tune.generation import Generation
from eatss.tune.jobs import SweepOptions
from eatss.tune.rows import Row
from eatss.tune.store import Store
from eatss.tune.sweeping import sweep
from tests.tune.priced_card import PATH
from tests.tune.test_sweep import GEMM, POINTS, ROOT, SPACE

pytestmark = pytest.mark.usefixtures("kept")

pytest.importorskip("distributed")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    file = tmp_path / "tiles.toml"
    file.write_text(SPACE)
    return file


@pytest.fixture
def slow_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a variant take as long as workers take to be killed in the middle."""
    file = tmp_path / "card.json"
    file.write_text(json.dumps({"pause_s": 0.7}))
    monkeypatch.setenv("PRICED_CARD", str(file))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def workers_with_cards() -> list[psutil.Process]:
    """Return the workers of clusters of this process that hold a card, by what they started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
            if words[1:3] == ["-m", "eatss.tune.card_worker"]:
                guard = process.parent()
                worker = None if guard is None else guard.parent()
                if worker is not None:
                    found.append(worker)
        except psutil.Error:
            continue
    return found


@pytest.mark.long
@pytest.mark.usefixtures("slow_card")
def test_a_worker_that_is_killed_costs_nothing(space: Path, tmp_path: Path) -> None:
    store = tmp_path / "gemm.db"
    killed: list[int] = []
    over = threading.Event()

    def kill_one() -> None:
        while not (killed or over.is_set()):
            time.sleep(0.05)
            holding = workers_with_cards()
            if len(holding) == 2 and store.exists():
                holding[0].send_signal(signal.SIGKILL)
                killed.append(holding[0].pid)

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        chosen = SweepOptions(strategy="exhaustive", makers=1, contenders=0, devices=(0, 1))
        generation = Generation(gpu="h200", space=space)
        found = sweep(
            GEMM, output=store, options=chosen, generation=generation, card=PATH, scheduler="local"
        )
    finally:
        over.set()
        killer.join()
    assert killed
    first = Counter(row.variant for row in found.rows if row.stage == "first")
    assert len(first) == POINTS + 3
    assert set(first.values()) == {1}
    assert {row.status for row in found.rows} == {"ok"}
    cards = {row.card for row in found.rows}
    assert cards == {"GPU-0", "GPU-1"}
    references = {row.card for row in found.rows if row.stage == "reference"}
    assert "GPU-1" in references or "GPU-0" in references


def test_a_scheduler_that_does_not_answer_is_told(
    space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eatss.tune.cluster.CONNECT_S", 0.5)
    generation = Generation(gpu="h200", space=space)
    with pytest.raises(InputError) as caught:
        sweep(
            GEMM,
            output=tmp_path / "x.db",
            generation=generation,
            card=PATH,
            scheduler="tcp://127.0.0.1:1",
        )
    assert caught.value.code == "EATSS-W031"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a scheduler with two workers that have a card and one that makes."""
    file = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    dask = [sys.executable, "-m", "dask"]
    log = (tmp_path / "dask.log").open("w")
    started = [
        subprocess.Popen(
            [*dask, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
            env=environment,
            stdout=log,
            stderr=log,
        )
    ]
    for number, resource in enumerate(("CARD=1", "CARD=1", "MAKE=1")):
        words = ["worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard"]
        started.append(
            subprocess.Popen(
                [*dask, *words, "--resources", resource],
                env={**environment, "CUDA_VISIBLE_DEVICES": str(number)},
                stdout=log,
                stderr=log,
            )
        )
    try:
        deadline_s = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline_s:
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)
        log.close()


@pytest.mark.long
@pytest.mark.usefixtures("slow_card")
def test_a_lost_client_resumes_with_what_the_scheduler_holds(
    space: Path, tmp_path: Path, scheduler: str
) -> None:
    store = tmp_path / "gemm.db"
    words = ["sweep", str(GEMM), "--gpu", "h200", "--space", str(space), "-o", str(store)]
    more = ["--strategy", "exhaustive", "--contenders", "0", "--scheduler", scheduler]
    command = [sys.executable, "-m", "eatss", *words, *more, "--card", PATH]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline_s = time.monotonic() + 90
        while time.monotonic() < deadline_s and process.poll() is None and len(rows(store)) < 2:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    before = rows(store)
    assert 2 <= len(before) < POINTS
    time.sleep(4)  # what was on the way goes on meanwhile
    again = datetime.now(UTC)
    time.sleep(1.1)
    subprocess.run(command, check=True, capture_output=True)
    after = rows(store)
    assert after[: len(before)] == before
    gained = Store.read(store).rows[len(before) :]
    measured = [row.measurement.provenance.created for row in gained if row.measurement]
    assert any(datetime.fromisoformat(one) < again for one in measured)  # nobody measured it twice
    first = Counter(row.variant for row in after if row.stage == "first")
    assert len(first) == POINTS + 3
    assert set(first.values()) == {1}


def rows(store: Path) -> tuple[Row, ...]:
    """Return the rows of a store, none while it is being made."""
    try:
        return Store.read(store, measurements=False).rows
    except InputError:
        return ()

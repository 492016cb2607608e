"""Opening a card: which one, what is said of it, and what is missing."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eatss.measurement import compile as compiling
from eatss.measurement import cupy_card
from eatss.measurement.card import cuda_card
from eatss.measurement.compile import CompileTarget, Toolchain
from eatss.measurement.cupy_card import CupyCard, other_processes
from eatss.measurement.measurement import CardState
from eatss.measurement.meters.background import sampled_states
from eatss.measurement.meters.meter import MeterError
from tests.measurement.fake_cupy import CudaError, FakeCupy
from tests.refusals import refusing

LU = Path(__file__).parent / "programs" / "lu"
UUIDS = [uuid.UUID(int=1), uuid.UUID(int=2)]
TOOLCHAIN = Toolchain(name="nvrtc", version="13.0.88", command=("nvrtc",))


class _Device:
    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> _Device:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def cupy_with_two_cards() -> FakeCupy:
    cupy = FakeCupy({"kernel_lu_k0": lambda *_: None, "kernel_lu_k1": lambda *_: None})
    cupy.cuda.Device = _Device
    cupy.cuda.runtime.getDeviceCount = lambda: 2
    cupy.cuda.runtime.getDeviceProperties = lambda number: {
        "name": b"NVIDIA H200",
        "uuid": UUIDS[number].bytes,
        "major": 9,
        "minor": 0,
    }
    return cupy


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CupyCard:
    """Return a card without NVML."""

    def no_nvml(_: str) -> Any:
        raise MeterError("NVML does not answer")

    monkeypatch.setattr(cupy_card, "import_cupy", cupy_with_two_cards)
    monkeypatch.setattr(compiling, "_toolchain", lambda *_: TOOLCHAIN)
    monkeypatch.setattr(CompileTarget, "compile", lambda *_: Path("lu.cubin"))
    monkeypatch.setattr(cupy_card, "NvmlDevice", no_nvml)
    return CupyCard(1, cache=tmp_path)


def test_a_machine_without_a_card_is_a_sentence_and_what_to_do() -> None:
    def none() -> int:
        raise CudaError("cudaErrorNoDevice: no CUDA-capable device is detected", 100)

    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=none)))
    with refusing("EATSS-E022", "no CUDA-capable device"):
        cuda_card(cupy, 0)


def test_a_card_may_be_named_by_its_uuid() -> None:
    assert cuda_card(cupy_with_two_cards(), f"GPU-{UUIDS[1]}")[0] == 1
    with refusing("EATSS-E022", "there is no card GPU-x: CUDA sees GPU-0000"):
        cuda_card(cupy_with_two_cards(), "GPU-x")


def test_a_card_is_looked_at_while_a_block_runs_and_no_longer() -> None:
    looks = []

    def state() -> CardState:
        looks.append(threading.current_thread())
        return CardState(sm_clock_mhz=1000 + len(looks))

    deadline_s = time.monotonic() + 30
    with sampled_states(state, 0.01) as seen:
        while len(seen) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.01)
    assert 2 <= len(seen) <= len(looks)
    assert threading.current_thread() not in looks
    assert not any(thread.is_alive() for thread in looks)
    assert seen[0].sm_clock_mhz == 1001


def test_in_a_container_one_unknown_process_is_this_one() -> None:
    listed = {70: "process 70", 71: "process 71"}
    assert other_processes({70: "process 70"}, 5) == ()
    assert other_processes(listed, 5) == (
        "all but one, which is this measurement, of process 70, process 71",
    )

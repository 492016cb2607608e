"""Opening a card: which one, what is said of it, and what is missing."""

from __future__ import annotations

import importlib
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eatss.base.diagnostics import InputError
from eatss.measurement import cupy_card
from eatss.measurement.card import Card, LaunchError
from eatss.measurement.compile import Compiled, Toolchain
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.cupy_module import cuda_card, import_cupy, launch_error, translated
from eatss.measurement.measurement import Missing
from eatss.measurement.metering import ExplainsMissingMeters
from eatss.measurement.meters.choose import ChosenMeters
from eatss.measurement.meters.meter import MeterError
from eatss.program import load_program
from tests.measurement.fake_cupy import CudaError, FakeCupy, FakeStream

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

    def compiled(*_: Any, **__: Any) -> Compiled:
        return Compiled(path=Path("lu.cubin"), toolchain=TOOLCHAIN)

    monkeypatch.setattr(cupy_card, "import_cupy", cupy_with_two_cards)
    monkeypatch.setattr(cupy_card, "find_toolchains", lambda _, nvcc=None: (TOOLCHAIN,))
    monkeypatch.setattr(cupy_card, "compile_program", compiled)
    monkeypatch.setattr(cupy_card, "NvmlDevice", no_nvml)
    return CupyCard(1, cache=tmp_path)


def test_a_card_without_nvml_is_described_by_cuda(opened: CupyCard) -> None:
    card: Card = opened
    assert card.info.name == "NVIDIA H200"
    assert card.info.uuid == f"GPU-{UUIDS[1]}"
    assert card.info.compute_capability == 90
    assert card.info.toolkit == "NVRTC 13.0.88"
    assert card.info.driver is None
    assert card.state().sm_clock_mhz is None
    assert card.meters("none") == ()


def test_a_program_is_loaded_at_its_defaults_where_no_size_is_given(opened: CupyCard) -> None:
    workload = opened.load(load_program(LU), LU, {}, 0)
    workload.reset()
    opened.wait()
    workload.close()
    with pytest.raises(InputError):
        opened.load(load_program(LU), LU, {"M": 3}, 0)


def test_what_fails_while_waiting_is_a_launch_error(
    opened: CupyCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: FakeStream) -> None:
        raise CudaError("cudaErrorLaunchFailure: unspecified launch failure", 719)

    monkeypatch.setattr(FakeStream, "synchronize", fail)
    with pytest.raises(LaunchError, match="unspecified launch failure") as caught:
        opened.wait()
    assert caught.value.lost


def test_a_machine_without_a_card_is_a_sentence_and_what_to_do() -> None:
    def none() -> int:
        raise CudaError("cudaErrorNoDevice: no CUDA-capable device is detected", 100)

    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=none)))
    with pytest.raises(InputError, match="no CUDA-capable device") as caught:
        cuda_card(cupy, 0)
    assert caught.value.code == "EATSS-E022"


@pytest.mark.parametrize("number", [-1, 2])
def test_a_number_that_no_card_has_is_refused(number: int) -> None:
    with pytest.raises(InputError, match="CUDA sees 2") as caught:
        cuda_card(cupy_with_two_cards(), number)
    assert caught.value.code == "EATSS-E023"


def test_a_card_may_be_named_by_its_uuid() -> None:
    assert cuda_card(cupy_with_two_cards(), f"GPU-{UUIDS[1]}").number == 1
    with pytest.raises(InputError, match="there is no card GPU-x: CUDA sees GPU-0000") as caught:
        cuda_card(cupy_with_two_cards(), "GPU-x")
    assert caught.value.code == "EATSS-E023"


def test_why_meters_were_left_out_is_kept(
    opened: CupyCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    gap = Missing(what="energy by counter", reason="this card does not offer it")
    chosen = ChosenMeters(meters=(), missing=(gap,))
    monkeypatch.setattr(cupy_card, "choose_meters", lambda *_, **__: chosen)
    assert isinstance(opened, ExplainsMissingMeters)
    assert opened.missing_meters() == ()
    opened.meters("auto")
    assert opened.missing_meters() == (gap,)
    opened.meters("none")
    assert opened.missing_meters() == ()


def test_a_missing_cupy_is_a_sentence_and_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named '{name}'")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match="No module named 'cupy'") as caught:
        import_cupy()
    assert caught.value.code == "EATSS-E021"


def test_other_errors_are_left_as_they_are() -> None:
    assert launch_error(ValueError("odd"), "running") is None
    with pytest.raises(ValueError, match="odd"), translated("running"):
        raise ValueError("odd")


def test_cupy_without_headers_is_a_sentence_and_what_to_install() -> None:
    class CompileException(Exception):  # noqa: N818 - CuPy's name
        """What CuPy raises where its own kernels do not compile."""

    found = launch_error(CompileException("cannot open cuda_fp16.h"), "running gemm")
    assert found is not None
    assert "cupy-cuda13x[ctk]" in str(found)


def test_errors_of_nvrtc_do_not_lose_the_card() -> None:
    class NVRTCError(CudaError):
        """What CuPy raises for NVRTC, whose codes are numbered apart from CUDA's."""

    found = launch_error(NVRTCError("NVRTC_ERROR_INVALID_PROGRAM", 4), "running gemm")
    assert found is not None
    assert not found.lost


def test_too_little_memory_is_no_lost_card() -> None:
    found = launch_error(MemoryError("Out of memory allocating 8 bytes"), "running gemm")
    assert found is not None
    assert not found.lost
    assert "memory is too small" in str(found)

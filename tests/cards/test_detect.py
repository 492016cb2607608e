"""Which cards are here, with stand-ins for NVML and CuPy, and which profile each gets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from eatss.base.diagnostics import InputError, Severity
from eatss.cards import (
    FIGURES,
    list_profiles,
    load_profile,
    profile_from_document,
    profile_to_document,
)
from eatss.cards.detect import DetectedGpu, Detection, cuda_uuid, detect
from eatss.cards.match import GENERATIONS, match_profile, profile_from_device
from eatss.cards.this_machine import card_of, is_auto
from tests.refusals import refusing

UUID_BYTES = bytes(range(16))
UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


class FakeNvmlError(Exception):
    """Stands in for ``pynvml.NVMLError``."""


@dataclass
class FakeNvml:
    """Answers like ``pynvml`` on a machine with the given cards; counts init and shutdown."""

    cards: Sequence[dict[str, Any]]
    init_error: str | None = None
    open: int = 0
    NVMLError: type[Exception] = FakeNvmlError
    NVML_CLOCK_SM: int = 1
    NVML_CLOCK_MEM: int = 2
    shutdowns: int = field(default=0)

    def nvmlInit(self) -> None:
        if self.init_error is not None:
            raise FakeNvmlError(self.init_error)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1
        self.shutdowns += 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.159.04"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self.cards[index]

    def nvmlDeviceGetName(self, card: dict[str, Any]) -> Any:
        return card["name"]

    def nvmlDeviceGetUUID(self, card: dict[str, Any]) -> Any:
        return card["uuid"]

    def nvmlDeviceGetCudaComputeCapability(self, card: dict[str, Any]) -> Any:
        return self._get(card, "capability")

    def nvmlDeviceGetMemoryInfo(self, card: dict[str, Any]) -> Any:
        return SimpleNamespace(total=self._get(card, "memory"))

    def nvmlDeviceGetMaxClockInfo(self, card: dict[str, Any], kind: int) -> Any:
        return self._get(card, "sm_clock" if kind == self.NVML_CLOCK_SM else "memory_clock")

    def nvmlDeviceGetMemoryBusWidth(self, card: dict[str, Any]) -> Any:
        return self._get(card, "bus_width")

    def nvmlDeviceGetPowerManagementDefaultLimit(self, card: dict[str, Any]) -> Any:
        return self._get(card, "limit_mw")

    @staticmethod
    def _get(card: dict[str, Any], key: str) -> Any:
        if key not in card:
            raise FakeNvmlError("Not Supported")
        return card[key]


def nvml_h200() -> dict[str, Any]:
    return {
        "name": "NVIDIA H200",
        "uuid": UUID,
        "capability": (9, 0),
        "memory": 143771 * 2**20,
        "sm_clock": 1980,
        "memory_clock": 3201,
        "bus_width": 6016,
        "limit_mw": 700_000,
    }


def cuda_h200() -> dict[str, Any]:
    return {
        "name": b"NVIDIA H200",
        "uuid": UUID_BYTES,
        "major": 9,
        "minor": 0,
        "multiProcessorCount": 132,
        "totalGlobalMem": 150_109_880_320,
        "memoryClockRate": 3_201_000,
        "memoryBusWidth": 6016,
        "l2CacheSize": 60 * 2**20,
        "sharedMemPerMultiprocessor": 228 * 1024,
        "sharedMemPerBlock": 48 * 1024,
        "sharedMemPerBlockOptin": 227 * 1024,
        "regsPerMultiprocessor": 65536,
        "regsPerBlock": 65536,
        "maxThreadsPerBlock": 1024,
        "warpSize": 32,
        "maxThreadsPerMultiProcessor": 2048,
        "maxBlocksPerMultiProcessor": 32,
    }


def fake_cupy(*cards: dict[str, Any], error: Exception | None = None) -> Any:
    def count() -> int:
        if error is not None:
            raise error
        return len(cards)

    runtime = SimpleNamespace(getDeviceCount=count, getDeviceProperties=lambda index: cards[index])
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


def h200() -> DetectedGpu:
    (gpu,) = detect(nvml=FakeNvml([nvml_h200()]), cupy=fake_cupy(cuda_h200())).gpus
    return gpu


def test_both_readers_are_joined_by_uuid() -> None:
    gpu = h200()
    assert (gpu.name, gpu.uuid, gpu.driver_version) == ("NVIDIA H200", UUID, "580.159.04")
    assert (gpu.compute_capability, gpu.sm_count) == ((9, 0), 132)
    assert (gpu.l2_bytes, gpu.shared_per_block_optin_bytes) == (60 * 2**20, 227 * 1024)
    assert (gpu.max_sm_clock_mhz, gpu.power_limit_w) == (1980, 700)
    assert gpu.bandwidth_gb_s == pytest.approx(2 * 3.201 * 6016 / 8, rel=1e-12)


def test_cuda_alone_tells_enough_for_a_profile_of_an_h200() -> None:
    (gpu,) = detect(nvml=FakeNvml([]), cupy=fake_cupy(cuda_h200())).gpus
    profile = profile_from_device(gpu)
    assert profile.bandwidth_gb_s == pytest.approx(4814.304, rel=1e-12)
    assert (profile.boost_clock_mhz, profile.tdp_w) == (None, None)


def test_cards_are_in_the_order_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    two = FakeNvml([nvml_h200(), nvml_h200() | {"uuid": "GPU-other"}])
    assert [gpu.uuid for gpu in detect(nvml=two, cupy=fake_cupy(cuda_h200())).gpus] == [UUID]
    for order, seen in (
        (("GPU-other", UUID), ["GPU-other", UUID]),
        (("GPU-other",), ["GPU-other"]),
        ((), []),
        (None, [UUID, "GPU-other"]),
    ):
        monkeypatch.setattr("eatss.cards.detect.cuda_order", lambda told=order: told)
        found = detect(nvml=two, cupy=fake_cupy())
        assert [gpu.uuid for gpu in found.gpus] == seen
        assert bool(found.reasons) == (not seen)


@pytest.mark.parametrize(
    ("raw", "order", "uuid"),
    [
        (UUID_BYTES, (), UUID),
        (UUID_BYTES[:3], ("GPU-ff", UUID), UUID),
        (UUID_BYTES[:3], (UUID, UUID[:-1] + "e"), None),
        (UUID_BYTES[1:3], (UUID,), None),
        (UUID_BYTES[:3], None, None),
    ],
)
def test_of_a_uuid_with_a_zero_cupy_tells_the_beginning_and_cuda_the_rest(
    raw: bytes, order: Sequence[str] | None, uuid: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eatss.cards.detect.cuda_order", lambda: order)
    assert cuda_uuid({"uuid": raw}) == uuid


def test_what_nvml_does_not_support_is_unknown_and_not_an_error() -> None:
    bare = {"name": b"Orin (nvgpu)", "uuid": b"GPU-x"}
    detection = detect(nvml=FakeNvml([bare]), cupy=fake_cupy())
    (gpu,) = detection.gpus
    assert gpu.name == "Orin (nvgpu)"
    assert gpu.memory_bytes is None
    assert gpu.power_limit_w is None
    assert gpu.bandwidth_gb_s is None


def test_nvml_is_shut_down_even_when_a_query_fails() -> None:
    nvml = FakeNvml([{}])
    detection = detect(nvml=nvml, cupy=fake_cupy())
    assert (nvml.open, nvml.shutdowns) == (0, 1)
    assert detection.gpus == ()
    assert detection.reasons


def test_no_driver_is_a_sentence() -> None:
    nvml = FakeNvml([], init_error="NVML Shared Library Not Found")
    error = RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    detection = detect(nvml=nvml, cupy=fake_cupy(error=error))
    assert detection.gpus == ()
    assert detection.reasons == (
        "NVML sees no GPU: NVML Shared Library Not Found",
        "CuPy sees no GPU: cudaErrorNoDevice: no CUDA-capable device is detected",
    )


def test_missing_packages_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name in {"pynvml", "cupy"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *rest, **named)

    original = sys.modules["importlib"].import_module
    monkeypatch.setattr("importlib.import_module", refuse)
    detection = detect()
    assert detection.gpus == ()
    assert detection.reasons == (
        "NVML was not asked: the package nvidia-ml-py is not installed",
        "CuPy was not asked: the package cupy-cuda13x is not installed",
    )


# What drivers call these cards, and the memory that they report.
REAL_NAMES = [
    ("NVIDIA A100-SXM4-40GB", (8, 0), 108, 40960, "a100-40gb"),
    ("NVIDIA A100-SXM4-80GB", (8, 0), 108, 81920, "a100-80gb"),
    ("NVIDIA A100-PCIE-40GB", (8, 0), 108, 40960, "ga100"),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", (8, 0), 14, 4864, None),
    ("NVIDIA H100 80GB HBM3", (9, 0), 132, 81559, "h100-sxm"),
    ("NVIDIA H100 PCIe", (9, 0), 114, 81559, "h100-pcie"),
    ("NVIDIA H200", (9, 0), 132, 143771, "h200"),
    ("NVIDIA H200 NVL", (9, 0), 132, 143771, None),
    ("Tesla V100-SXM2-32GB", (7, 0), 80, 32768, "v100"),
    ("NVIDIA L40S", (8, 9), 142, 46068, "l40s"),
    ("NVIDIA A10", (8, 6), 72, 23028, "a10"),
    ("Tesla T4", (7, 5), 40, 15360, "t4"),
    ("NVIDIA GeForce RTX 3090", (8, 6), 82, 24576, "rtx3090"),
    ("NVIDIA GeForce RTX 3090 Ti", (8, 6), 84, 24564, None),
    ("NVIDIA GeForce RTX 4090", (8, 9), 128, 24564, "rtx4090"),
    ("NVIDIA B200", (10, 0), 148, 183359, "b200"),
    ("NVIDIA GeForce RTX 5090", (12, 0), 170, 32607, "rtx5090"),
    ("NVIDIA GeForce RTX 5090 Laptop GPU", (12, 0), 82, 24463, None),
    ("Xavier", (7, 2), 8, 31928, "xavier"),
    ("Orin", (8, 7), 16, 62841, "orin"),
    ("Orin", (8, 7), 8, 7620, None),
    ("AMD Instinct MI300X", None, None, None, None),
]


@pytest.mark.parametrize(("name", "capability", "sms", "memory_mib", "expected"), REAL_NAMES)
def test_a_card_is_matched_by_name_and_figures(
    name: str,
    capability: tuple[int, int] | None,
    sms: int | None,
    memory_mib: int | None,
    expected: str | None,
) -> None:
    gpu = DetectedGpu(
        name=name,
        uuid="GPU-x",
        compute_capability=capability,
        sm_count=sms,
        memory_bytes=None if memory_mib is None else memory_mib * 2**20,
    )
    profile = match_profile(gpu)
    assert (profile.name if profile else None) == expected


LIMITS = [
    "threads_per_block",
    "threads_per_warp",
    "registers_per_sm",
    "registers_per_block",
    "registers_per_thread",
    "l1_shared_bytes",
    "l2_bytes",
    "sm_count",
    "max_threads_per_sm",
    "max_blocks_per_sm",
    "shared_per_sm_bytes",
    "shared_per_block_bytes",
    "shared_per_block_optin_bytes",
]


def test_a_profile_from_a_live_h200_has_the_limits_of_the_shipped_one() -> None:
    live, shipped = profile_from_device(h200()), load_profile("h200")
    assert {name: getattr(live, name) for name in LIMITS} == {
        name: getattr(shipped, name) for name in LIMITS
    }
    assert (live.name, live.architecture) == ("nvidia-h200", "Hopper")
    assert (live.boost_clock_mhz, live.tdp_w) == (1980, 700)


def test_a_profile_from_a_live_card_says_that_the_driver_said_so() -> None:
    live = profile_from_device(h200())
    titles = {source.key: source.title for source in live.bibliography}
    assert "Reported by the driver (580.159.04)" in titles[dict(live.sources)["sm_count"]]
    given = {name for name in FIGURES if getattr(live, name) is not None}
    assert {name for name, _ in live.sources} == given
    assert live.peak_fp64_gflops is None
    assert profile_from_document(profile_to_document(live)) == live


def test_a_card_that_reports_too_little_is_refused_with_what_is_missing() -> None:
    (gpu,) = detect(nvml=FakeNvml([nvml_h200()]), cupy=fake_cupy()).gpus
    with pytest.raises(InputError) as caught:
        profile_from_device(gpu)
    (found,) = caught.value.diagnostics
    assert found.code == "EATSS-G030"
    assert "sm_count" in found.message
    assert found.hint is not None
    assert "CuPy" in found.hint


@pytest.mark.parametrize(("capability", "l1_kib"), [((12, 0), 128), ((12, 1), 128), ((10, 3), 256)])
def test_a_card_without_a_profile_gets_what_the_guide_says_of_its_capability(
    capability: tuple[int, int], l1_kib: int
) -> None:
    small = replace(h200(), shared_per_sm_bytes=100 * 1024, shared_per_block_optin_bytes=99 * 1024)
    profile = profile_from_device(replace(small, compute_capability=capability))
    assert profile.l1_shared_bytes == l1_kib * 1024
    assert (profile.architecture, profile.compute_capability) == ("Blackwell", capability)


def test_of_a_card_newer_than_the_table_its_shared_memory_is_all_that_is_counted_on() -> None:
    profile = profile_from_device(replace(h200(), compute_capability=(13, 0)))
    assert profile.l1_shared_bytes == profile.shared_per_sm_bytes == 228 * 1024
    assert dict(profile.sources)["l1_shared_bytes"] == "driver"
    assert profile.architecture == "newer than known"


@pytest.mark.parametrize("capability", [None, (3, 5), (9, 9)])
def test_an_unknown_compute_capability_is_refused(capability: tuple[int, int] | None) -> None:
    with refusing("EATSS-G030"):
        profile_from_device(replace(h200(), compute_capability=capability))


def test_the_table_of_l1_sizes_agrees_with_the_shipped_profiles() -> None:
    for profile in list_profiles():
        assert GENERATIONS[profile.compute_capability][1] * 1024 == profile.l1_shared_bytes


@pytest.mark.gpu
def test_a_real_card_is_seen_by_both_readers() -> None:
    pytest.importorskip("cupy", reason="needs CuPy")
    detection = detect()
    assert detection.reasons == ()
    assert detection.driver_version
    for gpu in detection.gpus:
        unknown = [name for name in LIMITS if getattr(gpu, name, 0) is None]
        assert unknown == []


@pytest.mark.gpu
def test_a_real_card_makes_a_profile_with_the_limits_of_the_shipped_one() -> None:
    pytest.importorskip("cupy", reason="needs CuPy")
    pytest.importorskip("pydantic", reason="needs pydantic, as profiles do")
    for gpu in detect().gpus:
        live, shipped = profile_from_device(gpu), match_profile(gpu)
        if shipped is None:
            pytest.skip(f"no shipped profile is of a {gpu.name}")
        assert {name: getattr(live, name) for name in LIMITS} == {
            name: getattr(shipped, name) for name in LIMITS
        }
        assert live.boost_clock_mhz == shipped.boost_clock_mhz
        assert live.tdp_w == shipped.tdp_w


H200 = DetectedGpu(name="NVIDIA H200", uuid="GPU-a", compute_capability=(9, 0))
A100 = DetectedGpu(
    name="NVIDIA A100-SXM4-40GB",
    uuid="GPU-b",
    compute_capability=(8, 0),
    memory_bytes=40 * 2**30,
)


def machine(*gpus: DetectedGpu, reasons: tuple[str, ...] = ()) -> Detection:
    return Detection(gpus=gpus, reasons=reasons)


def test_auto_is_the_shipped_profile_of_the_card_in_the_machine() -> None:
    assert card_of(machine(H200), 0).profile.name == "h200"
    assert card_of(machine(H200, A100), 1).profile.name == "a100-40gb"
    assert card_of(machine(H200, A100), A100.uuid).profile.name == "a100-40gb"


def test_a_named_profile_needs_no_card() -> None:
    assert load_profile("a100").name == "a100-40gb"
    profile = load_profile("h200")
    assert load_profile(profile) is profile


def test_no_card_is_a_sentence_with_what_to_do() -> None:
    with refusing("EATSS-E046") as caught:
        card_of(machine(reasons=("NVML was not asked: not installed",)), 0)
    assert "NVML was not asked: not installed" in str(caught.value)
    assert "eatss doctor" in str(caught.value.diagnostics[0].hint)


def test_a_card_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError) as caught:
        card_of(machine(H200), 3)
    assert "no GPU 3" in str(caught.value)
    assert caught.value.diagnostics[0].hint == "this machine has 0: NVIDIA H200"


def alone(monkeypatch: pytest.MonkeyPatch, *gpus: DetectedGpu) -> None:
    """Let this machine have cards: NVML and CUDA both see them."""
    monkeypatch.setattr("eatss.cards.detect.detect", lambda: machine(*gpus))


@pytest.mark.parametrize("word", ["auto", " AUTO "])
def test_auto_is_taken_wherever_a_profile_is_loaded(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(monkeypatch, A100, H200)
    assert load_profile(word).name == "a100-40gb"
    assert load_profile(word, 1).name == "h200"
    assert is_auto(word)
    assert not is_auto("autos")


def test_a_file_called_auto_goes_by_its_path() -> None:
    with refusing("EATSS-G002", "cannot read the profile"):
        load_profile("./auto")


@pytest.mark.parametrize("gpu", [None, 3, b"a100"])
def test_what_is_no_card_is_refused(gpu: object) -> None:
    with refusing("EATSS-C004"):
        load_profile(gpu)  # type: ignore[arg-type]


def unknown(capability: tuple[int, int]) -> DetectedGpu:
    """Return a card that reports all that a profile needs, and that no profile is of."""
    h200 = load_profile("h200")
    reported: dict[str, Any] = {
        name: getattr(h200, name)
        for name in (
            "threads_per_block", "threads_per_warp", "registers_per_sm", "registers_per_block",
            "l2_bytes", "sm_count", "max_threads_per_sm", "max_blocks_per_sm",
            "shared_per_block_bytes", "memory_bytes", "bandwidth_gb_s",
        )
    }  # fmt: skip
    reported |= {"shared_per_sm_bytes": 100 << 10, "shared_per_block_optin_bytes": 99 << 10}
    return DetectedGpu(name="NVIDIA X1", uuid="GPU-x", compute_capability=capability, **reported)


@pytest.mark.parametrize(
    ("gpu", "derived", "words"),
    [
        (H200, False, "auto is the NVIDIA H200 of this machine: the profile h200"),
        (unknown((12, 0)), True, "auto is the NVIDIA X1 of this machine; no profile is of such"),
    ],
)
def test_the_note_says_which_card_was_taken(gpu: DetectedGpu, derived: bool, words: str) -> None:
    found = card_of(machine(gpu), 0)
    assert found.derived == derived
    assert words in found.note.message
    assert found.note.severity is Severity.NOTE

"""Why no card is seen: each cause is told from the others, with what to do."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eatss.cards.driver import (
    DriverFacts,
    Verdict,
    cards_verdict,
    driver_verdict,
    look,
)

GOOD = DriverFacts(
    pci_cards=2,
    kernel_driver="580.65.06",
    library="580.65.06",
    devices=("/dev/nvidia0", "/dev/nvidia1"),
    nvml_code=0,
    nvml_cards=2,
    cuda_code=0,
    cuda_cards=2,
    cuda=(13, 0),
)
NONE = DriverFacts(pci_cards=0)
UNSEEN = replace(GOOD, cuda_code=100, cuda_cards=0)
LOST = replace(UNSEEN, nvml_cards=0, devices=())
WSL = DriverFacts(pci_cards=0, library="580.65.06", nvml_code=0, nvml_cards=1, cuda_code=100)


def test_a_card_that_works_needs_nothing() -> None:
    assert driver_verdict(GOOD) == Verdict(good=True, found="580.65.06, runs CUDA up to 13.0")
    assert cards_verdict(GOOD) == Verdict(good=True, found="CUDA sees 2 cards")


@pytest.mark.parametrize(
    ("facts", "found", "command"),
    [
        (NONE, "there is none, and no NVIDIA card either", ""),
        (DriverFacts(), "there is none that answers", ""),
        (DriverFacts(pci_cards=1), "there is a card on the bus", "sudo modprobe nvidia"),
        (DriverFacts(container=True), "none in this container", "docker run --gpus all …"),
        (
            DriverFacts(kernel_driver="570.1.2", container=True),
            "the host has driver 570.1.2",
            "docker run --gpus all …",
        ),
        (
            DriverFacts(kernel_driver="570.1.2"),
            "libcuda.so.1 is not found",
            "sudo apt-get install libnvidia-compute-570",
        ),
        (replace(UNSEEN, nvml_code=18), "libraries are of another", "sudo reboot"),
        (replace(UNSEEN, closed=("/dev/nvidia0",)), "may not open /dev/nvidia0", "usermod"),
        (replace(UNSEEN, nvml_code=4), "may not open the card", "usermod"),
        (replace(UNSEEN, nvml_code=4, container=True), "may not open the card", ""),
        (replace(UNSEEN, cuda_code=802), "links between the cards", "fabricmanager"),
        (replace(UNSEEN, cuda_code=34), "libcuda.so.1 is a stub", "LD_LIBRARY_PATH"),
        (replace(UNSEEN, cuda_code=None, cuda_lacks=("cuInit",)), "has no cuInit", "ldconfig"),
        (replace(WSL, cuda_code=None), "NVML lists 1, but libcuda.so.1 is not", "ldconfig"),
    ],
)
def test_what_is_wrong_with_the_driver(facts: DriverFacts, found: str, command: str) -> None:
    verdict = driver_verdict(facts)
    assert not verdict.good
    assert found in verdict.found
    assert verdict.remedy
    assert command in verdict.command
    assert bool(command) == bool(verdict.command)


@pytest.mark.parametrize(
    ("facts", "found", "command"),
    [
        (replace(UNSEEN, visible=""), "CUDA_VISIBLE_DEVICES is empty, 2 there", "unset"),
        (replace(UNSEEN, visible="7"), "CUDA_VISIBLE_DEVICES is '7', 2 there", "unset"),
        (replace(UNSEEN, mig=True), "split (MIG) and has no instance", "nvidia-smi mig"),
        (replace(UNSEEN, cuda_code=999), "cuInit returns 999", "dmesg"),
        (replace(UNSEEN, mig=True, visible="0"), "split (MIG) and has no instance", "nvidia-smi"),
        (replace(UNSEEN, cuda_code=999, visible="7"), "cuInit returns 999", "dmesg"),
        (replace(UNSEEN, cuda_code=0, visible="7"), "CUDA sees none, though NVML lists 2", "dmesg"),
        (replace(UNSEEN, visible="0,1"), "CUDA sees none, though NVML lists 2", "dmesg"),
        (replace(WSL, visible=""), "CUDA_VISIBLE_DEVICES is empty, 1 there", "unset"),
        (UNSEEN, "CUDA sees none, though NVML lists 2", "dmesg"),
        (LOST, "the driver lists none", "lspci"),
        (replace(LOST, visible="0"), "the driver lists none", "lspci"),
        (replace(LOST, container=True), "the driver lists none", "docker run --gpus all"),
    ],
)
def test_why_no_card_is_seen(facts: DriverFacts, found: str, command: str) -> None:
    assert driver_verdict(facts).good
    verdict = cards_verdict(facts)
    assert not verdict.good
    assert found in verdict.found
    assert verdict.remedy
    assert command in verdict.command


def test_cards_that_are_hidden_beside_others_are_told() -> None:
    some = replace(GOOD, cuda_cards=1, visible="1")
    assert cards_verdict(some).found == "CUDA sees 1 card of 2 (CUDA_VISIBLE_DEVICES=1)"


class Library:
    """A double of a library of the driver: functions by name, with what they return and fill in.

    Those of ``lacks`` it has not.
    """

    def __init__(self, lacks: tuple[str, ...] = (), **codes: Any) -> None:
        self.codes, self.lacks = codes, lacks

    def __getattr__(self, name: str) -> Any:
        if name in self.lacks:
            raise AttributeError(f"undefined symbol: {name}")
        code, *values = self.codes.get(name, (0,))

        def function(*places: Any) -> int:
            for place, value in zip(
                (p for p in places if hasattr(p, "_obj")), values, strict=False
            ):
                place._obj.value = value
            if values and isinstance(places[0], ctypes.Array):
                places[0].value = values[0]
            return int(code)

        return function


def files(root: Path, *, vendor: str = "0x10de", kind: str = "0x030200") -> Path:
    card = root / "sys/bus/pci/devices/0000:01:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text(f"{vendor}\n")
    (card / "class").write_text(f"{kind}\n")
    version = root / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    )
    (root / "dev").mkdir()
    for name in ("nvidia0", "nvidiactl"):
        (root / "dev" / name).touch()
    return root


def test_a_machine_is_looked_at(tmp_path: Path) -> None:
    libraries = {
        "libnvidia-ml.so.1": Library(
            nvmlDeviceGetCount_v2=(0, 1),
            nvmlSystemGetDriverVersion=(0, b"580.65.06"),
            nvmlDeviceGetMigMode=(0, 1, 1),
        ),
        "libcuda.so.1": Library(cuDriverGetVersion=(0, 12080), cuDeviceGetCount=(0, 1)),
    }
    facts = look(files(tmp_path), libraries.__getitem__, visible="0")
    assert facts == DriverFacts(
        pci_cards=1,
        kernel_driver="580.65.06",
        library="580.65.06",
        devices=(str(tmp_path / "dev/nvidia0"),),
        nvml_code=0,
        nvml_cards=1,
        cuda_code=0,
        cuda_cards=1,
        mig=True,
        cuda=(12, 8),
        visible="0",
    )


CUDA = Library(cuDriverGetVersion=(0, 11000), cuDeviceGetCount=(0, 1))
NVML: dict[str, Any] = {
    "nvmlDeviceGetCount_v2": (0, 1),
    "nvmlSystemGetDriverVersion": (0, b"440.10"),
}


def seen(nvml: Library, cuda: Library, root: Path = Path("/nowhere")) -> DriverFacts:
    return look(root, {"libnvidia-ml.so.1": nvml, "libcuda.so.1": cuda}.__getitem__)


def test_a_driver_older_than_mig_works_and_is_told() -> None:
    facts = seen(Library(lacks=("nvmlDeviceGetMigMode",), **NVML), CUDA)
    assert (facts.nvml_cards, facts.mig, facts.cuda_cards) == (1, False, 1)
    assert driver_verdict(facts) == Verdict(
        good=True,
        found="440.10, runs CUDA up to 11.0; libnvidia-ml.so.1 is old or a stub: "
        "it has no nvmlDeviceGetMigMode",
    )


@pytest.mark.parametrize(
    "name",
    [
        "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlSystemGetDriverVersion", "nvmlShutdown",
        "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetMigDeviceHandleByIndex",
    ],
)  # fmt: skip
def test_whatever_nvml_lacks_is_told(name: str) -> None:
    split: dict[str, Any] = {
        "nvmlDeviceGetMigMode": (0, 1, 1),
        "nvmlDeviceGetMaxMigDeviceCount": (0, 7),
    }
    facts = seen(Library(lacks=(name,), **NVML, **split), CUDA)
    assert facts.nvml_lacks == (name,)
    assert f"it has no {name}" in driver_verdict(facts).found


@pytest.mark.parametrize("name", ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount"])
def test_whatever_cuda_lacks_is_told(name: str) -> None:
    facts = seen(Library(**NVML), Library(lacks=(name,), **CUDA.codes))
    assert facts.cuda_lacks == (name,)
    verdict = driver_verdict(facts)
    assert f"libcuda.so.1 is old or a stub: it has no {name}" in verdict.found
    assert verdict.good == (name != "cuInit")


@pytest.mark.parametrize(("code", "unusable"), [(0, False), (6, True)])
def test_a_split_card_with_an_instance_can_be_used(code: int, unusable: bool) -> None:
    split: dict[str, Any] = {
        "nvmlDeviceGetMigMode": (0, 1, 1),
        "nvmlDeviceGetMaxMigDeviceCount": (0, 7),
    }
    nvml = Library(nvmlDeviceGetMigDeviceHandleByIndex=(code,), **split, **NVML)
    assert seen(nvml, CUDA).mig == unusable


def test_a_card_of_another_maker_does_not_count(tmp_path: Path) -> None:
    def nothing(name: str) -> Any:
        raise OSError(name)

    assert look(files(tmp_path / "amd", vendor="0x1002"), nothing).pci_cards == 0
    assert look(files(tmp_path / "sound", kind="0x040300"), nothing).pci_cards == 0
    assert look(tmp_path / "empty", nothing) == DriverFacts()


def test_what_the_driver_refuses_is_kept() -> None:
    libraries = {
        "libnvidia-ml.so.1": Library(nvmlInit_v2=(18,)),
        "libcuda.so.1": Library(cuInit=(803,), cuDriverGetVersion=(0, 13000)),
    }
    facts = look(Path("/nowhere"), libraries.__getitem__)
    assert (facts.nvml_code, facts.nvml_cards) == (18, 0)
    assert (facts.cuda_code, facts.cuda_cards, facts.cuda) == (803, 0, (13, 0))

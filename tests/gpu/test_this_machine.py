"""Which profile a C file is selected for on the machine that measures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eatss.diagnostics import InputError
from eatss.gpu import load_profile
from eatss.gpu.device import DetectedGpu, Detection
from eatss.gpu.this_machine import card_of, in_order_of_cuda

H200 = DetectedGpu(
    name="NVIDIA H200", uuid="GPU-a", readers=("NVML", "CuPy"), compute_capability=(9, 0)
)
A100 = DetectedGpu(
    name="NVIDIA A100-SXM4-40GB",
    uuid="GPU-b",
    readers=("NVML", "CuPy"),
    compute_capability=(8, 0),
    memory_bytes=40 * 2**30,
)


def machine(*gpus: DetectedGpu, reasons: tuple[str, ...] = ()) -> Detection:
    return Detection(gpus=gpus, reasons=reasons)


def test_auto_is_the_shipped_profile_of_the_card_in_the_machine() -> None:
    assert card_of(machine(H200), 0).profile.name == "h200"
    assert card_of(machine(H200, A100), 1).profile.name == "a100-40gb"
    assert card_of(machine(H200, A100), A100.uuid).profile.name == "a100-40gb"


def test_cards_are_counted_as_cuda_counts_them() -> None:
    by_cuda = machine(replace(A100, readers=("CuPy",)), replace(H200, readers=("CuPy",)))
    found = in_order_of_cuda(machine(H200, A100), by_cuda)
    assert found.gpus == (A100, H200)
    assert in_order_of_cuda(machine(H200, A100), machine(A100)).gpus == (A100,)


def test_without_cuda_the_order_of_the_driver_stays() -> None:
    assert in_order_of_cuda(machine(H200, A100), machine()) == machine(H200, A100)


def test_a_named_profile_needs_no_card() -> None:
    assert load_profile("a100").name == "a100-40gb"
    profile = load_profile("h200")
    assert load_profile(profile) is profile


def test_no_card_is_a_sentence_with_what_to_do() -> None:
    with pytest.raises(InputError) as caught:
        card_of(machine(reasons=("NVML was not asked: not installed",)), 0)
    assert caught.value.code == "EATSS-E046"
    assert "NVML was not asked: not installed" in str(caught.value)
    assert "eatss doctor" in str(caught.value.diagnostics[0].hint)


def test_a_card_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError) as caught:
        card_of(machine(H200), 3)
    assert "no GPU 3" in str(caught.value)
    assert caught.value.diagnostics[0].hint == "this machine has 0: NVIDIA H200"

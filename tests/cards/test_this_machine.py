"""Which profile a C file is selected for on the machine that measures."""

from __future__ import annotations

from typing import Any

import pytest

from eatss.base.diagnostics import InputError, Severity
from eatss.cards import load_profile
from eatss.cards.detect import DetectedGpu, Detection
from eatss.cards.this_machine import card_of, is_auto

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
    with pytest.raises(InputError, match="cannot read the profile") as caught:
        load_profile("./auto")
    assert caught.value.code == "EATSS-G002"


@pytest.mark.parametrize("gpu", [None, 3, b"a100"])
def test_what_is_no_card_is_refused(gpu: object) -> None:
    with pytest.raises(InputError) as caught:
        load_profile(gpu)  # type: ignore[arg-type]
    assert caught.value.code == "EATSS-C004"


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
        (unknown((13, 0)), True, "which is newer than all that is known here; no profile is of"),
    ],
)
def test_the_note_says_which_card_was_taken(gpu: DetectedGpu, derived: bool, words: str) -> None:
    found = card_of(machine(gpu), 0)
    assert found.derived == derived
    assert words in found.note.message
    assert found.note.severity is Severity.NOTE

"""``auto`` wherever a card is named, on a machine with a card and on one without."""

from __future__ import annotations

import pytest

import eatss
from eatss.base.diagnostics import InputError, input_error
from eatss.base.shipped import data_directory
from eatss.cards.detect import DetectedGpu, Detection
from eatss.cards.load import named_profile
from eatss.tune.generation import Generation
from tests.end_to_end.in_process import eatss as command

MVT = ("@mvt", "-D", "NI=500")
NOTE = "note: auto is the NVIDIA A100-SXM4-40GB of this machine: the profile a100-40gb [EATSS-G032]"
A100 = DetectedGpu(
    name="NVIDIA A100-SXM4-40GB",
    uuid="GPU-a",
    compute_capability=(8, 0),
    memory_bytes=40 << 30,
)


def machine(monkeypatch: pytest.MonkeyPatch, *gpus: DetectedGpu) -> None:
    """Let this machine have cards, or none."""
    reasons = () if gpus else ("NVML sees no GPU: Driver Not Loaded",)
    found = Detection(gpus=gpus, reasons=reasons)
    monkeypatch.setattr("eatss.cards.detect.detect", lambda **_: found)


COMMANDS: list[tuple[str, ...]] = [
    ("select", *MVT, "--format", "ppcg", "--gpu"),
    ("codegen", *MVT, "--format", "json", "-g"),
    ("space", *MVT, "--format", "toml", "--gpu"),
    ("roofline", "--format", "json"),
    ("profiles", "--format", "json"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_commands_take_the_card_of_this_machine_and_say_which(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, A100)
    done = command(*words, "auto", code=0)
    assert NOTE in done.stderr.splitlines()
    named = command(*words, "a100")
    assert (named.stdout, "note: auto" in named.stderr) == (done.stdout, False)


@pytest.mark.parametrize("words", [COMMANDS[0], COMMANDS[-1]], ids=lambda words: words[0])
def test_without_a_card_that_is_told_with_what_to_write(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch)
    done = command(*words, "auto", code=2)
    assert "no GPU was found in this machine: NVML sees no GPU: Driver Not Loaded" in done.stderr
    assert "name a card instead of auto, such as h200" in done.stderr


def test_a_sweep_takes_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def stop(*_: object, generation: Generation, **__: object) -> None:
        taken.append(generation.gpu)
        raise input_error("EATSS-W005", "this is far enough")

    machine(monkeypatch, A100)
    monkeypatch.setattr("eatss.tune.sweeping.sweep", stop)
    done = command("sweep", *MVT, "--gpu", "auto", "-o", "mvt.db")
    assert "this is far enough" in done.stderr
    assert done.stderr.splitlines().count(NOTE) == 1
    assert NOTE not in command("sweep", *MVT, "--gpu", "a100", "-o", "mvt.db").stderr
    assert taken == [named_profile("a100")] * 2


def test_measuring_without_a_card_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    done = command("measure", *MVT, code=2)
    assert "EATSS-E046" in done.stderr


def test_functions_without_a_card_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    for function in (eatss.select, eatss.codegen, eatss.predict):
        with pytest.raises(InputError, match="EATSS-E046"):
            function("@mvt", gpu="auto")
    with pytest.raises(InputError, match="EATSS-E046"):
        eatss.ppcg(data_directory("kernels") / "mvt.c", gpu="auto")

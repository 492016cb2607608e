"""``auto`` wherever a card is named, on a machine with a card and on one without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    readers=("NVML", "CuPy"),
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
    ("predict", *MVT, "--format", "json", "--gpu"),
    ("codegen", *MVT, "--format", "json", "-g"),
    ("space", *MVT, "--format", "toml", "--gpu"),
    ("roofline", "--format", "json"),
    ("profiles", "--format", "json"),
    ("profiles", "--format", "toml"),
]


@pytest.mark.samples(3)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_commands_take_the_card_of_this_machine_and_say_which(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, A100)
    done = command(*words, "auto")
    assert done.returncode == 0, done.stderr
    assert NOTE in done.stderr.splitlines()
    named = command(*words, "a100")
    assert (named.stdout, "note: auto" in named.stderr) == (done.stdout, False)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_without_a_card_that_is_told_with_what_to_write(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch)
    done = command(*words, "auto")
    assert done.returncode == 2
    assert "no GPU was found in this machine: NVML sees no GPU: Driver Not Loaded" in done.stderr
    assert "name a card instead of auto, such as h200" in done.stderr


@pytest.mark.parametrize(
    ("writes", "function"),
    [
        (("--prepare", "variants"), "eatss.tune.sweeping.prepare_sweep"),
        (("-o", "mvt.db"), "eatss.tune.sweeping.sweep"),
    ],
    ids=["prepare", "sweep"],
)
def test_a_sweep_takes_it_too(
    writes: tuple[str, str], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def stop(*_: object, generation: Generation, **__: object) -> None:
        taken.append(generation.gpu)
        raise input_error("EATSS-W005", "this is far enough")

    machine(monkeypatch, A100)
    monkeypatch.setattr(function, stop)
    done = command("sweep", *MVT, "--gpu", "auto", *writes)
    assert "this is far enough" in done.stderr
    assert done.stderr.splitlines().count(NOTE) == 1
    assert NOTE not in command("sweep", *MVT, "--gpu", "a100", *writes).stderr
    assert taken == [named_profile("a100")] * 2


def test_ppcg_takes_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, A100)
    words = ("ppcg", "--gpu", "auto", "--ppcg", tmp_path / "none", "--dry-run", "--", "@mvt")
    done = command(*words)
    assert NOTE in done.stderr.splitlines()
    assert "EATSS-R003" in done.stderr  # there is no such PPCG


@pytest.mark.parametrize("name", ["measure", "compare"])
def test_measuring_without_a_card_needs_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    done = command(name, *MVT)
    assert done.returncode == 2
    assert "EATSS-E046" in done.stderr


def test_the_note_is_json_where_findings_are(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, A100)
    done = command("profiles", "auto", "--diagnostics", "json")
    (note,) = json.loads(done.stderr)["diagnostics"]
    assert (note["code"], note["severity"]) == ("EATSS-G032", "note")


def test_functions_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, A100)
    kernel: dict[str, Any] = {"defines": {"NI": 500}}
    assert eatss.load_profile("auto") == named_profile("a100")
    assert eatss.select("@mvt", gpu="auto", **kernel).gpu == "a100-40gb"
    assert eatss.codegen("@mvt", gpu="auto", **kernel).compute_capability == 80
    by_name = eatss.predict("@mvt", gpu="a100", **kernel)
    assert eatss.predict("@mvt", gpu="auto", **kernel).to_dict() == by_name.to_dict()


def test_functions_without_a_card_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    for function in (eatss.select, eatss.codegen, eatss.predict):
        with pytest.raises(InputError, match="EATSS-E046"):
            function("@mvt", gpu="auto")
    with pytest.raises(InputError, match="EATSS-E046"):
        eatss.ppcg(data_directory("kernels") / "mvt.c", gpu="auto")


def test_a_misspelt_card_is_told_with_the_nearest_and_with_auto() -> None:
    done = command("select", *MVT, "--gpu", "a1000")
    assert done.returncode == 2
    assert "did you mean a100" in done.stderr
    assert "auto is the card in this machine" in done.stderr

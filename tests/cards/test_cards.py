"""Cards of others: by an entry point or a call, listed, chosen and matched like shipped ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.cards import CARDS, list_profiles, load_profile, profile_directory, profile_provider
from eatss.cards.card_names import shipped_names
from eatss.cards.detect import DetectedGpu
from eatss.cards.match import match_profile
from tests import offered
from tests.end_to_end.in_process import eatss as in_process

GEMM = data_directory("kernels") / "gemm.c"


def card(**changes: str) -> str:
    """Return the text of a card of one's own, the T4 with other words in its head."""
    text = (profile_directory() / "t4.toml").read_text(encoding="utf-8")
    head, rest = text.split("\n[", 1)
    lines = [line for line in head.splitlines() if line.split(" = ")[0] not in changes]
    return "\n".join([*(f"{key} = {value}" for key, value in changes.items()), *lines, f"[{rest}"])


MINE = card(name='"lab-card"', title='"Card of our lab"', aliases='["lab"]')


@pytest.fixture
def registered(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    CARDS.register("mine", path)
    yield path
    CARDS.remove("mine")


def test_a_package_adds_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered.install(
        tmp_path,
        monkeypatch,
        CARDS,
        entry="lab-card = offered_cards:LAB",
        files={
            "offered_cards.py": "from pathlib import Path\n"
            "LAB = Path(__file__).with_name('lab.toml')\n",
            "lab.toml": MINE,
        },
    )
    listed = json.loads(in_process("profiles", "--format", "json").stdout)["profiles"]
    providers = {one["name"]: one["provider"] for one in listed}
    assert providers["lab-card"] == "offered 1.0"
    assert providers["h200"] == "eatss"
    assert "offered" in in_process("profiles").stdout
    done = in_process("select", GEMM, "--gpu", "LAB", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["gpu"] == "lab-card"
    detected = DetectedGpu(name="Lab Card", uuid="GPU-1", readers=())
    matched = match_profile(detected)
    assert matched is not None
    assert matched.name == "lab-card"


def test_a_program_registers_a_card(registered: Path) -> None:
    names = ("mine", "lab-card", "lab", "Lab")
    assert {load_profile(name) for name in names} == {load_profile(registered)}
    assert profile_provider(load_profile("mine")) == "this program"
    assert "lab-card" in [profile.name for profile in list_profiles()]
    assert eatss.select(GEMM, gpu="mine").gpu == "lab-card"
    assert eatss.predict(GEMM, gpu="mine").gpu == "lab-card"


def test_names_that_are_kept_cannot_be_changed() -> None:
    names = shipped_names(data_directory("gpu_profiles"))
    assert names["a100"] == "a100-40gb"
    with pytest.raises(TypeError):
        names["a100"] = "h200"  # type: ignore[index]


def test_an_unknown_name_is_told_with_the_added_ones(registered: Path) -> None:
    with pytest.raises(InputError) as raised:
        load_profile("lab-crad")
    assert raised.value.code == "EATSS-G001"
    assert "did you mean lab-card" in str(raised.value.diagnostics[0].hint)


def test_a_card_is_not_called_like_another(registered: Path) -> None:
    registered.write_text(card(name='"h200"'))
    assert load_profile("h200").title != load_profile(registered).title
    with pytest.raises(InputError, match="is called h200, like another") as raised:
        list_profiles()
    assert raised.value.code == "EATSS-G022"
    with pytest.raises(InputError, match="the card 'h200' is there already"):
        CARDS.register("h200", registered)


def test_a_file_that_is_wrong_is_told_with_its_place(registered: Path) -> None:
    registered.write_text(MINE.replace("l2_bytes", "l3_bytes"))
    with pytest.raises(InputError) as raised:
        load_profile("mine")
    assert {"EATSS-G006", "EATSS-G007"} <= {found.code for found in raised.value.diagnostics}
    assert raised.value.diagnostics[0].span is not None

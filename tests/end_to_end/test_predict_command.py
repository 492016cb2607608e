"""``eatss predict``: sizes in, expected time and energy out."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.analysis.layout import GridSplitK
from eatss.base.shipped import data_directory
from eatss.base.targets import TargetName
from eatss.cards import GpuProfile, list_profiles, load_profile
from eatss.cards.match import CLOCK_SHARES, calibration_of, voltage_share
from eatss.choose.expectation import KernelExpectation, ProgramExpectation
from eatss.lower.recipe import CodeRequest
from eatss.report.pages import parts_of
from eatss.report.render import render
from eatss.session.session import Session
from tests.end_to_end.in_process import eatss as eatss_command

pytestmark = pytest.mark.usefixtures("analysed_once")

KERNELS = data_directory("kernels")
GEMM = KERNELS / "gemm.c"


def predict(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return eatss_command("predict", *arguments)


@pytest.fixture(scope="module")
def gemm_json() -> dict[str, Any]:
    done = predict(GEMM, "--gpu", "h200", "--tile", "i=64,k=8", "--block", "8,16", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_table_names_sizes_amounts_and_what_bounds_them() -> None:
    done = predict(GEMM, "--gpu", "h200", "--tile", "i=64,k=8", "--block", "8,16")
    assert done.returncode == 0, done.stderr
    for words in ("tiles i 64, j 32, k 8", "block 16 × 8 threads", "ms", "J", "W", "bound by"):
        assert words in done.stdout
    for words in ("PPCG's default takes", "time alone", "energy", "registers a thread"):
        assert words in done.stdout
    assert "\x1b[" not in done.stdout


def test_json_of_a_prediction_is_consistent(gemm_json: dict[str, Any]) -> None:
    assert gemm_json["warnings"] == []
    assert gemm_json["sizes"][0] == {"name": "NI", "value": 4000, "assumed": False}
    assert gemm_json["calibrated"] is True
    assert gemm_json["options"] == {"max_shared_memory": 8192, "unroll_gpu_tile": False}
    (kernel,) = gemm_json["kernels"]
    assert kernel["tile_sizes"] == {"i": 64, "j": 32, "k": 8}
    assert kernel["block"] == {"i": 8, "j": 16}
    found = kernel["predicted"]
    assert {"time_s", "energy_j", "power_w", "bound", "times_s", "energies_j"} <= found.keys()
    assert {"blocks", "threads", "registers", "shared_bytes", "resident_blocks"} <= found.keys()
    assert found["threads"] == 128
    assert found["bound"] == next(iter(found["times_s"]))
    assert sum(found["energies_j"].values()) == pytest.approx(found["energy_j"])
    assert gemm_json["time_s"] == found["time_s"]
    assert gemm_json["energy_j"] == found["energy_j"]


def test_threads_are_given_in_order_or_by_loop() -> None:
    session = Session(KERNELS / "2mm.c", cut="ppcg")

    def blocks(block: Any) -> list[dict[str, int]]:
        found = session.predict("h200", CodeRequest(block=block))
        return [dict(kernel.block) for kernel in found.kernels]

    ours, default = {"i": 8, "j": 32}, {"i": 32, "j": 16}
    assert blocks(()) == [default, default]
    assert blocks((8, 32)) == [ours, ours]
    assert blocks({"i": 8, "j": 32}) == [ours, ours]
    assert blocks({"i": 8}) == [{"i": 8, "j": 16}] * 2
    assert blocks({"k1": (8, 32)}) == [default, ours]
    assert blocks({"kernel1": {"j": 64}}) == [default, {"i": 32, "j": 64}]
    assert blocks({"": (4, 4), "k0": (8, 32)}) == [ours, {"i": 4, "j": 4}]


def test_what_does_not_fit_the_card_has_no_prediction() -> None:
    found = eatss.predict(GEMM, gpu="h200", tiles={"i": 64, "j": 64}, block=(64, 64))
    assert found.kernels[0].predicted is None
    assert found.kernels[0].default is not None
    assert found.time_s is None
    assert found.to_dict()["energy_j"] is None
    done = predict(GEMM, "--gpu", "h200", "--tile", "i=64,j=64", "--block", "64,64")
    assert done.returncode == 0
    why = "a block of it needs 4096 threads, and there are 1024"
    assert f"  not predicted: {why}\n" in done.stdout
    assert f"the program: not known, because kernel0 is not predicted: {why}\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--tile", "x=3"], "EATSS-K001"),
        (["--block", "8"], "EATSS-K001"),
        (["--gpu", "voodoo2"], "EATSS-G"),
    ],
)
def test_a_wrong_size_is_the_users_error_with_a_hint(arguments: list[str], code: str) -> None:
    done = predict(GEMM, "--gpu", "h200", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert code in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["gemm"])
def test_without_sizes_what_is_expected_is_what_was_selected(name: str) -> None:
    found = eatss.predict(KERNELS / f"{name}.c", gpu="h200", target="cuda")
    selection = eatss.select(KERNELS / f"{name}.c", gpu="h200", target="cuda")
    for kernel, chosen in zip(found.kernels, selection.kernels, strict=True):
        assert kernel.predicted == chosen.predicted == kernel.default
        assert (kernel.tile_sizes, kernel.block) == (chosen.tile_sizes, chosen.block)
        assert kernel.spread == chosen.spread
        assert (kernel.note is None) == (kernel.predicted is not None)


@pytest.mark.parametrize(
    ("tiles", "block", "places"),
    [({"i": 32, "j": 64, "k": 16}, (4, 32), {"A": "l1"})],
)
def test_sizes_are_predicted_as_codegen_takes_them(
    tiles: dict[str, int], block: Any, places: dict[str, str]
) -> None:
    found = eatss.predict(
        GEMM, gpu="h200", target="cuda", tiles=tiles, block=block, placements=places
    )
    program = eatss.codegen(GEMM, gpu="h200", tiles=tiles, block=block, placements=places)
    (kernel,), (code,) = found.kernels, program.kernels
    assert kernel.predicted is not None
    assert dict(kernel.tile_sizes) == dict(code.tile_sizes)
    assert tuple(size for _, size in reversed(kernel.block)) == code.block[:2]
    assert kernel.predicted.threads == code.block[0] * code.block[1]
    assert kernel.predicted.shared_bytes == code.shared_bytes


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--target", "cuda", "--max-shared-memory", "8192"), "--max-shared-memory"),
        (("--place", "A=l1"), "--place"),
    ],
)
def test_an_option_of_the_other_target_is_refused(arguments: tuple[str, ...], name: str) -> None:
    done = predict(GEMM, "--gpu", "h200", *arguments)
    assert done.returncode == 2
    target = "cuda" if "cuda" in arguments else "ppcg"
    assert f"error: {name} has no meaning for the target {target} [EATSS-C012]" in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize("target", ["ppcg", "cuda"])
def test_lower_clocks_take_longer_and_less_of_what_the_chip_does(target: TargetName) -> None:
    free = replace(load_profile("h200"), tdp_w=1e9)  # no limit lowers the clock
    found = eatss.predict(GEMM, gpu=free, target=target, over_clock=True)
    (kernel,) = found.kernels
    assert kernel.predicted is not None
    assert [one.clock_mhz for one in found.clocks] == pytest.approx(
        [calibration_of(free)["clock_mhz"] * share for share in CLOCK_SHARES]
    )
    assert found.clocks[0].time_s == found.time_s
    assert found.clocks[0].energy_j == found.energy_j
    constant_w, floor = (calibration_of(free)[name] for name in ("constant_w", "voltage_floor"))
    moved_j = dict(kernel.predicted.energies_j)["memory"]
    assert found.time_s is not None
    assert found.energy_j is not None
    chip_j = found.energy_j - moved_j - constant_w * found.time_s
    for share, one in zip(CLOCK_SHARES, found.clocks, strict=True):
        assert one.time_s is not None
        assert found.time_s <= one.time_s <= found.time_s / share * (1 + 1e-9)
        wanted_j = chip_j * voltage_share(share, floor) + moved_j + constant_w * one.time_s
        assert one.energy_j == pytest.approx(wanted_j)


def test_the_table_has_a_row_a_clock() -> None:
    done = predict(GEMM, "--gpu", "h200", "--over-clock")
    assert done.returncode == 0, done.stderr
    rows = done.stdout.split("the program:")[1].splitlines()[2:]
    assert rows[0].split() == ["MHz", "ms", "J", "W"]
    assert [row.split()[0] for row in rows[1:]] == [
        "1980", "1881", "1782", "1683", "1584", "1485", "1386",
    ]  # fmt: skip
    time_ms, energy_j, power_w = map(float, rows[-1].split()[1:])
    assert power_w == pytest.approx(1e3 * energy_j / time_ms, rel=1e-3)


@pytest.mark.parametrize("profile", list_profiles(), ids=lambda one: one.name)
def test_the_power_of_a_product_is_between_that_of_rest_and_the_limit(profile: GpuProfile) -> None:
    found = eatss.predict(GEMM, gpu=profile)
    assert found.energy_j is not None
    assert found.time_s is not None
    power_w = found.energy_j / found.time_s
    idle_w = calibration_of(profile)["idle_w"]
    assert profile.tdp_w is not None
    assert 1.2 * idle_w < power_w < 1.001 * profile.tdp_w


def test_a_page_says_what_is_launched() -> None:
    found = eatss.predict(KERNELS / "atax.c", gpu="h200", target="cuda")
    text = render(*parts_of(found))
    assert "  tiles j 128; block 32 threads\n  sum over i: up to 32 blocks, 64 steps" in text
    first, second = found.kernels
    assert first.predicted is not None
    streamed = replace(first, shared_sum=GridSplitK(loop="k", blocks=132, streamed=True))
    assert "\n  250 tiles for 132 blocks of 512 threads\n" in page_of(found, streamed, second)
    idle = replace(first, predicted=replace(first.predicted, launches=0), note="it runs nothing")
    assert "kernel0  S1, S2\n  it runs nothing\n" in page_of(found, idle, second)


def page_of(found: ProgramExpectation, *kernels: KernelExpectation) -> str:
    return render(*parts_of(replace(found, kernels=kernels)))

"""``eatss characterize`` where there is no card: records fitted again."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from tests.end_to_end.in_process import eatss as eatss_command

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "h200"
FIRST, SECOND = (RECORDED / f"characterize-{n}.jsonl" for n in (1, 2))


def values_in(path: Path) -> dict[str, float]:
    coefficients = tomllib.loads(path.read_text())["calibration"]["coefficients"]
    return {name: one["value"] for name, one in coefficients.items()}


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("h200", [RECORDED / f"characterize-{n}.jsonl" for n in (1, 2, 3)]),
        ("h100-sxm", sorted((RECORDED.parent / "h100").glob("characterize*.jsonl.xz"))),
    ],
)
def test_the_shipped_profile_is_what_the_records_give(
    name: str, records: list[Path], tmp_path: Path
) -> None:
    shipped = data_directory("gpu_profiles") / f"{name}.toml"
    made = tmp_path / f"{name}.toml"
    made.write_bytes(shipped.read_bytes())
    replays = [word for one in records for word in ("--replay", str(one))]
    eatss_command("characterize", *replays, "-o", made, code=0)
    values, expected = (values_in(path) for path in (made, shipped))
    assert values == pytest.approx(expected, rel=1e-3)
    assert (
        made.read_text().partition("[calibration]")[0]
        == (shipped.read_text().partition("[calibration]")[0])
    )


def test_a_new_profile_is_of_the_card_that_the_record_names(tmp_path: Path) -> None:
    made = tmp_path / "mine.toml"
    done = eatss_command("characterize", "--replay", FIRST, "-o", made, code=0)
    profile = load_profile(made)
    assert (profile.name, profile.calibrated) == ("h200", True)
    for heading in ("instruction", "memory", "latency", "coefficient", "largest residuals"):
        assert f"\n  {heading} " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--replay", "nothing.jsonl"], "EATSS-B001"),
        (["--replay", str(RECORDED / "characterize.txt")], "EATSS-B001"),
        (["--replay", str(FIRST), "--gpu", "a100", "-o", "x.toml"], "EATSS-B005"),
        (["--replay", str(FIRST), "-o", "nowhere/x.toml"], "EATSS-C008"),
    ],
)
def test_what_does_not_go_together_is_said(
    arguments: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = eatss_command("characterize", *arguments, code=2)
    assert f"[{code}]" in done.stderr
    assert not list(tmp_path.iterdir())


def test_too_few_benchmarks_are_not_fitted(tmp_path: Path) -> None:
    some = tmp_path / "some.jsonl"
    lines = FIRST.read_text(encoding="utf-8").splitlines(keepends=True)
    some.write_text("".join(lines[:5]), encoding="utf-8")
    done = eatss_command("characterize", "--replay", str(some), code=2)
    assert "[EATSS-B020]" in done.stderr


def test_a_profile_that_lacks_coefficients_is_uncalibrated(tmp_path: Path) -> None:
    text = (data_directory("gpu_profiles") / "h200.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("fp32_div_cycles")]
    partial = tmp_path / "partial.toml"
    partial.write_text("\n".join(lines))
    assert load_profile(partial).calibration is not None
    assert not load_profile(partial).calibrated
    done = eatss_command("predict", data_directory("kernels") / "gemm.c", "--gpu", str(partial))
    assert "uncalibrated" in done.stdout

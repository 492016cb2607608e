"""Sweeps from a program to rows, on a card whose prices are known."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.base.diagnostics import EatssWarning, InputError, NoSolutionError, input_error
from eatss.frontend.options import Reading
from eatss.tune.generation import Generation
from eatss.tune.jobs import SweepOptions
from eatss.tune.points import variant_key
from eatss.tune.rows import Sweep
from eatss.tune.strategies import Strategy, StrategyJob
from eatss.tune.sweeping import sweep
from tests.end_to_end.in_process import eatss
from tests.refusals import refusing
from tests.tune.priced_card import PATH, price

pytestmark = pytest.mark.usefixtures("kept")

ROOT = Path(__file__).parents[2]
GEMM = ROOT / "kernels" / "gemm.c"
SPACE = """
name = "tiles of gemm"
[iterators]
tile_i = [16, 32, 64]
tile_j = [32, 256]
tile_k = [16]
[filters]
"not too large" = "tile_i * tile_j <= 2048"
"""
POINTS = 3


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("space") / "tiles.toml"
    file.write_text(SPACE)
    return file


def options(**given: object) -> SweepOptions:
    chosen = SweepOptions(strategy="exhaustive", makers=1, contenders=2)
    return replace(chosen, **given)  # type: ignore[arg-type]


def swept(space: Path, store: Path, **given: object) -> Sweep:
    generation = Generation(gpu="h200", space=space)
    return sweep(GEMM, output=store, options=options(**given), generation=generation, card=PATH)


@pytest.fixture(scope="module")
def whole(kept: None, space: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sweep]:
    """Return a sweep over all of a space, and its store."""
    store = tmp_path_factory.mktemp("whole") / "gemm.db"
    return store, swept(space, store)


def test_every_point_is_measured_once_and_the_choices_beside(whole: tuple[Path, Sweep]) -> None:
    _, found = whole
    first = [row for row in found.rows if row.stage == "first"]
    assert len({row.variant for row in first}) == len(first)
    assert {row.role for row in first} == {"", "ours", "default", "paper"}
    points = [dict(row.values) for row in first if not row.role]
    assert len(points) == POINTS
    assert all(point["tile_i"] * point["tile_j"] <= 2048 for point in points)  # type: ignore[operator]
    assert all(row.variant == variant_key(dict(row.values)) for row in first)


def test_times_and_energies_are_those_of_the_card(whole: tuple[Path, Sweep]) -> None:
    _, found = whole
    for row in found.rows:
        assert row.status == "ok", row.reason
        assert row.measurement is not None
        ((_, tiles),) = row.measurement.tile_sizes
        words = row.decided.partition(", ")[2].partition(" threads")[0]
        threads = int(words.split("×")[0]) * int(words.split("×")[1])
        time_s, power_w = price(dict(tiles), threads)
        assert row.time_s == pytest.approx(time_s, rel=1e-9)
        assert row.power_w == pytest.approx(power_w, rel=0.02)
        assert row.energy_j == pytest.approx(time_s * power_w, rel=0.02)
        assert row.flops == found.rows[0].flops
        assert {"predicted_time_s", "predicted_energy_j"} <= dict(row.metrics).keys()


def test_what_a_point_decides_is_what_is_generated(whole: tuple[Path, Sweep]) -> None:
    _, found = whole
    for row in found.rows:
        if not row.role:
            values = {name.removeprefix("tile_"): value for name, value in row.values}
            assert row.measurement is not None
            ((_, tiles),) = row.measurement.tile_sizes
            assert dict(tiles) == values


def test_the_best_are_measured_again_with_care(whole: tuple[Path, Sweep]) -> None:
    _, found = whole
    first = [row for row in found.rows if row.stage == "first" and not row.role]
    careful = [row for row in found.rows if row.stage == "careful"]
    best = sorted(first, key=lambda row: row.energy_j or 0.0)[:2]
    assert {row.variant for row in best} <= {row.variant for row in careful}
    assert {row.role for row in careful} >= {"ours", "default", "paper"}
    for row in careful:
        assert row.measurement is not None
        assert len(row.measurement.windows) >= 3


def test_a_finished_sweep_gains_nothing(whole: tuple[Path, Sweep], space: Path) -> None:
    store, before = whole
    assert swept(space, store).rows == before.rows


def test_another_source_is_refused(whole: tuple[Path, Sweep], space: Path) -> None:
    store, _ = whole
    generation = Generation(gpu="h200", space=space)
    source = GEMM.read_text().replace("alpha *", "2 * alpha *")
    with refusing("EATSS-D010"):
        sweep(source, output=store, options=options(), generation=generation, card=PATH)


def test_a_program_that_crashes_or_hangs_costs_itself_alone(
    space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "card.json"
    given.write_text(json.dumps({"fails": {"64": "hang", "16": "segv"}}))
    monkeypatch.setenv("PRICED_CARD", str(given))
    found = swept(space, tmp_path / "gemm.db", timeout_s=0.3, contenders=0)
    statuses = {
        dict(row.values).get("tile_i"): row.status for row in found.rows if row.stage == "first"
    }
    assert statuses[64] == "timeout"
    assert statuses[16] == "launch error"
    assert statuses[32] == "ok"
    assert len({row.variant for row in found.rows if not row.role}) >= POINTS
    hung = next(row for row in found.rows if row.status == "timeout")
    assert "did not end within" in hung.reason


def test_what_is_hardly_meant_so_is_told_before_anything_is_made(
    space: Path, tmp_path: Path
) -> None:
    generation = Generation(gpu="h200", space=space, reading=Reading(defines={"MM": 3}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", EatssWarning)
        with pytest.raises(EatssWarning, match="EATSS-F095"):
            sweep(GEMM, output=tmp_path / "gemm", options=options(), generation=generation)


def without_points(job: StrategyJob) -> Strategy:
    raise input_error("EATSS-T001", f"{len(job.space)} points are none to try")


def test_the_command_tells_it_once_and_goes_on(space: Path, tmp_path: Path) -> None:
    words = ("--gpu", "h200", "--space", space, "-D", "MM=3", "-o", tmp_path / "gemm.db")
    done = eatss("sweep", GEMM, *words, "--strategy", f"{__name__}:without_points")
    assert done.stderr.count("EATSS-F095") == 1
    assert "EatssWarning" not in done.stderr
    assert "EATSS-T001" in done.stderr.partition("EATSS-F095")[2]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            'name = "x"\n[iterators]\ntile_i = [16]\n[filters]\n"none" = "tile_i > 16"\n',
            "EATSS-S016",
        ),
        ('name = "x"\n[iterators]\ntile_i = { start = 1, stop = "N" }\n', "EATSS-S007"),
    ],
)
def test_bad_spaces_are_told_before_anything_is_made(text: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises((InputError, NoSolutionError)) as caught:
        swept(file, tmp_path / "gemm.db")
    assert caught.value.code == code
    assert not (tmp_path / "gemm.db").exists()


def test_without_a_card_it_says_so(space: Path, tmp_path: Path) -> None:
    generation = Generation(gpu="h200", space=space)
    nowhere = "tests.tune.no_card:NoCard"
    with refusing("EATSS-E022"):
        sweep(
            GEMM, output=tmp_path / "x.db", options=options(), generation=generation, card=nowhere
        )


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ((str(GEMM), "--replay", "none.db"), "--replay has no use for a source"),
        (("--replay", "none.db", "-o", "x.db"), "--replay has no use for --output"),
        (("--replay", "none.db", "--gpu", "h200"), "--replay has no use for --gpu"),
    ],
)
def test_options_that_something_has_no_use_for_are_refused(
    words: tuple[str, ...], refused: str
) -> None:
    done = eatss("sweep", *words)
    assert (done.returncode, f"error: {refused} [EATSS-W005]" in done.stderr) == (2, True)

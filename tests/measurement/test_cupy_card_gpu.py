"""The same on a real card: generated programs compiled, run, timed, compared.

Needs CuPy, a card and the folder beside this file; ``EATSS_PROGRAMS`` names another folder of
generated programs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eatss.measurement.card import CompileError, LaunchError, WrongResultError
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.workload import CupyWorkload
from eatss.program import Program, load_program, save_program
from tests.real_card import NEEDS_CARD

HERE = Path(__file__).parent
PROGRAMS = Path(os.environ.get("EATSS_PROGRAMS", HERE / "programs"))
FOLDERS = sorted(path.parent for path in PROGRAMS.glob("*/plan.json"))
LU = HERE / "programs" / "lu"
GEMM = HERE / "programs" / "gemm"


pytestmark = NEEDS_CARD


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CupyCard]:
    opened = CupyCard(cache=tmp_path_factory.mktemp("cubin"))
    yield opened
    opened.wait()


def loaded(card: CupyCard, folder: Path, **sizes: int) -> CupyWorkload:
    return card.load(load_program(folder), folder, sizes, 0)


def test_the_card_says_what_it_is(card: CupyCard) -> None:
    opened = card
    assert opened.info.name
    assert opened.info.uuid is not None
    assert opened.info.uuid.startswith("GPU-")
    assert (opened.info.compute_capability or 0) >= 50
    assert opened.info.toolkit is not None
    with opened.sampled_states(0.01) as seen:
        time.sleep(0.2)
    assert seen[0].sm_clock_mhz


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_program_is_right_runs_again_and_again_and_stays_finite(
    card: CupyCard, folder: Path
) -> None:
    workload = loaded(card, folder)
    try:
        assert "the original C at" in workload.check(120.0)
        workload.reset()
        once_s = workload.timed(1)
        assert once_s > 0
        kept = workload.keep()
        assert workload.drifted() == ""
        assert workload.difference(kept).equal
        for restoring in (False, True):
            workload.reset()
            workload.timed(1, restoring=restoring)
            card.wait()
            found = workload.difference(kept)
            assert found.equal, found.message
        workload.timed(5, restoring=True)
        found = workload.difference(kept)
        assert found.equal, found.message
    finally:
        workload.close()


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_both_compilers_give_the_same_results(compiler: Any, tmp_path: Path) -> None:
    card = CupyCard(compiler=compiler, cache=tmp_path)
    workload = loaded(card, LU, N=300)
    assert workload.compiler == compiler
    assert "N=" in workload.check(120.0)
    workload.close()


def test_a_run_takes_as_long_by_graph_as_launch_by_launch(card: CupyCard) -> None:
    workload = loaded(card, GEMM, NI=1000, NJ=1000, NK=1000)
    workload.reset()
    workload.timed(20)
    alone, many = workload.timed(1), workload.timed(200) / 200
    assert workload.launched_by == "graph"
    assert many < 1.5 * alone
    workload.close()


def test_variants_share_memory(card: CupyCard) -> None:
    import cupy  # noqa: PLC0415

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    first = loaded(card, GEMM)
    held = pool.used_bytes()
    others = [loaded(card, GEMM) for _ in range(5)]
    assert pool.used_bytes() == held
    for workload in (first, *others):
        workload.close()
    assert pool.used_bytes() < held


def wrong_folder(tmp_path: Path, *changed: tuple[str, str]) -> tuple[Program, Path]:
    program = load_program(LU)
    text = program.text
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    wrong = replace(program, text=text)
    save_program(wrong, tmp_path)
    (tmp_path / "lu.c").write_bytes((LU / "lu.c").read_bytes())
    return wrong, tmp_path


def test_a_wrong_program_is_found_out(card: CupyCard, tmp_path: Path) -> None:
    program, folder = wrong_folder(tmp_path, ("A[k * N + j] /", "A[k * N + j] *"))
    workload = card.load(program, folder, {"N": 300}, 0)
    with pytest.raises(WrongResultError, match="the original gives"):
        workload.check(120.0)
    right = loaded(card, LU, N=300)
    right.reset()
    right.timed(1)
    card.wait()
    kept = right.keep()  # the other one runs in the same memory
    workload.reset()
    workload.timed(1)
    card.wait()
    found = workload.difference(kept)
    assert not found.equal
    assert workload.magnified(found) == ""
    workload.close()
    right.close()


def test_a_program_that_does_not_compile_says_why(card: CupyCard, tmp_path: Path) -> None:
    program, folder = wrong_folder(tmp_path, ("const int tj", "const int other"))
    with pytest.raises(CompileError, match="tj"):
        card.load(program, folder, {"N": 300}, 0)


def test_sizes_beyond_the_memory_are_a_sentence(card: CupyCard) -> None:
    program = load_program(LU)
    large = replace(program, entries=(replace(program.entries[0], assumptions=()),))
    with pytest.raises(LaunchError, match="GB") as caught:
        card.load(large, LU, {"N": 400_000}, 0)
    assert not caught.value.lost


CRASH = """
import sys
from dataclasses import replace
from pathlib import Path
from eatss.measurement.card import LaunchError
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.workload import CupyWorkload
from eatss.program import load_program

folder = Path(sys.argv[1])
card = CupyCard()
workload = card.load(load_program(folder), folder, {"N": 300}, 0)
try:
    workload.reset()
    workload.timed(1)
    card.wait()
except LaunchError as error:
    print("lost" if error.lost else "kept", error)
"""


def test_a_kernel_that_leaves_its_memory_loses_the_card(card: CupyCard, tmp_path: Path) -> None:
    program, folder = wrong_folder(tmp_path, ("A[k * N + j] /", "A[(1ll << 40) + k * N + j] /"))
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.startswith("lost"), done.stdout + done.stderr
    with pytest.raises(LaunchError):
        card.load(program, folder, {"N": 300}, 0).check(120.0)
    workload = loaded(card, LU, N=300)  # what happened was in other processes
    workload.reset()
    workload.timed(1)
    card.wait()
    assert workload.drifted() == ""
    workload.close()

"""Programs that once showed a defect, each a whole input: what is expected of them now.

What was seen stands at each. The benchmark ``reproducers`` tries those that take long, too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.base.forked import REGION_S
from eatss.verify.run import verify
from tests.refusals import refusing

FOLDER = Path(__file__).parent
TOO_HARD = "EATSS-P001"
AROUND_S = 2.0
"""What loading takes once, and writing the folder."""


@dataclass(frozen=True)
class Case:
    """A file; ``sizes`` are those to verify at, those that verify chooses where there are none."""

    name: str
    seen: str
    gpu: str = "a100"
    sizes: tuple[tuple[str, int], ...] = ()
    may_be_refused: str | None = None
    takes_long: bool = False


def wide(name: str, size: int, *, takes_long: bool = False) -> Case:
    seen = f"wrong results at n = {size}: a product left 32 bits"
    return Case(name, seen, sizes=(("n", size),), takes_long=takes_long)


def slow(name: str, seconds: int, *, takes_long: bool = True) -> Case:
    seen = f"{seconds} s until it was given up"
    return Case(name, seen, may_be_refused=TOO_HARD, takes_long=takes_long)


def unbounded(name: str) -> Case:
    return Case(name, "the original does not end at the sizes that verify chose", takes_long=True)


CASES = (
    wide("bigstep0", 1),
    wide("od_10007", 700_000),
    wide("div100", 30_000_000, takes_long=True),
    wide("od_1009", 40_000_000, takes_long=True),
    wide("od37c", 200_000_000, takes_long=True),
    Case(
        "rand_308_min",
        "a guard j == i + 251 where j = i - 4 ... i - 2",
        gpu="ga100",
        takes_long=True,
    ),
    Case("vacuous_verify", "verify compared nothing and said ok", takes_long=True),
    Case(
        "double_mod_min",
        "the text does not compile: (double)n % 2",
        sizes=(("n", 37), ("m", 9)),
    ),
    Case("rand_213_min", "exit 70: map is not single-valued", sizes=(("N", 37), ("M", 12))),
    Case(
        "rand_138_min",
        "exit 70: int(None) in counting",
        sizes=(("M", 12), ("N", 30)),
        takes_long=True,
    ),
    Case("param_named_like_isl", "exit 70: a size called min", sizes=(("N", 33), ("M", 9))),
    Case(
        "names_like_dimensions",
        "wrong results: counters p0, p1 called like dimensions of sets",
        sizes=(("d0", 33), ("v0", 9)),
    ),
    Case(
        "counters_like_words",
        "counters of matrices called min and max, by counters in and ax",
        sizes=(("n", 40),),
    ),
    slow("rand_819", 100),
    slow("rand_682", 79),
    slow("rand_119", 20),
    slow("rand_298", 20),
    slow("rand_380", 20),
    slow("rand_455", 20),
    slow("rand_621", 20),
    slow("rand_712", 20),
    replace(slow("rand_783", 38), sizes=(("M", 12), ("N", 30))),  # few sizes make it do anything
    Case("rand_179", "verify chose 8 GB a buffer", takes_long=True),
    unbounded("rand_135"),
    unbounded("rand_444"),
    unbounded("rand_458"),
    unbounded("rand_715"),
    Case("rand_216", "verify ran an unsigned counter with N = -3", takes_long=True),
    Case("equal_guards", "exit 70: KeyError of a condition that stands twice", sizes=(("n", 17),)),
    Case(
        "vgemm_acc",
        "one thread a row, the sum not tiled",
        sizes=(("m", 70), ("n", 131), ("k", 37)),
    ),
)


def refusal(case: Case, output: Path) -> str | None:
    try:
        eatss.codegen(FOLDER / f"{case.name}.c", gpu=case.gpu, output=output)
    except InputError as error:
        return error.code
    return None


def is_mended(case: Case, folder: Path) -> None:
    """Demand code, soon, that does what the source does, or the error that may be."""
    before = os.times()
    code = refusal(case, folder)
    taken_s = sum(os.times()[:4]) - sum(before[:4])
    assert taken_s < REGION_S + AROUND_S
    if code is not None:
        assert code == case.may_be_refused
        return
    sizes = [dict(case.sizes)] if case.sizes else None
    found = verify(folder, sizes=sizes, timeout_s=600)
    assert found.ok
    assert found.coverage is not None
    assert found.coverage.elements > 0


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.takes_long], ids=lambda case: case.name
)
def test_a_program_that_showed_a_defect(case: Case, tmp_path: Path) -> None:
    is_mended(case, tmp_path / "out")


def test_an_array_without_elements_is_refused() -> None:
    """Seen: exit 70, a size called min written into isl's text."""
    with refusing("EATSS-P007"):
        eatss.codegen(FOLDER / "rand_244_min.c", gpu="a100")


def test_every_program_is_tried() -> None:
    tried = {case.name for case in CASES} | {"rand_244_min"}
    assert tried == {path.stem for path in FOLDER.glob("*.c")}

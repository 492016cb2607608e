"""Reductions of any operator, spread over lanes and blocks, are those of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
from eatss.analysis.layout import SplitK
from eatss.program import save_program
from eatss.session.session import Session
from eatss.verify import verify
from tests.lower.spreading import made, spread_and_verified, spread_as

FLOATING, INTEGERS = ("float", "double"), ("int", "unsigned", "long", "unsigned long")
UPDATES = {
    "sum": "{t} += {e};",
    "difference": "{t} -= {e};",
    "product": "{t} *= {e};",
    "larger": "{t} = {e} > {t} ? {e} : {t};",
    "smaller": "{t} = {t} >= {e} ? {e} : {t};",
}
OF_INTEGERS = {
    "common": "{t} &= {e};",
    "some": "{t} |= {e};",
    "parity": "{t} ^= {e};",
    "kept": "{t} = {t} > {e} ? {t} : {e};",
}
OF_FLOATING = {"greatest": "{t} = fmax{f}({t}, {e});", "least": "{t} = fmin{f}({e}, {t});"}
SHAPES = {
    "rectangle": "for (int j = 0; j < m; j++)",
    "triangle": "for (int j = 0; j < m - 7 * i; j++)",  # rows behind m / 7 have no term
}
ONE_BLOCK = SplitK(lanes=32, tile=64, chunks=1)
SPREADS = (
    ONE_BLOCK,
    SplitK(lanes=32, tile=64, chunks=3),
    SplitK(lanes=8, tile=24, chunks=5),
    SplitK(lanes=1, tile=16, chunks=4),
)
SIZES = ({"n": 37, "m": 200}, {"n": 3, "m": 1}, {"n": 5, "m": 0})


def updates_of(kind: str) -> dict[str, str]:
    """Return the updates that a type has, by what they come to."""
    more = OF_FLOATING if kind in FLOATING else OF_INTEGERS
    suffix = "f" if kind == "float" else ""
    return {
        name: update.replace("{f}", suffix).format(t=f"{name}[i]", e="a[i][j]")
        for name, update in (UPDATES | more).items()
    }


def rows(kind: str, shape: str) -> str:
    """Return a program that reduces the rows of a matrix by every operator."""
    updates = updates_of(kind)
    targets = ", ".join(f"{kind} {name}[n]" for name in updates)
    loops = "\n".join(
        f"    for (int i = 0; i < n; i++)\n        {SHAPES[shape]}\n            {update}"
        for update in updates.values()
    )
    declared = "double fmax(double, double);\ndouble fmin(double, double);\n"
    declared += "float fmaxf(float, float);\nfloat fminf(float, float);\n"
    return (
        f"{declared}void f(int n, int m, {kind} a[n][m], {targets})\n{{\n"
        f"#pragma scop\n{loops}\n#pragma endscop\n}}\n"
    )


@pytest.mark.parametrize(
    ("kind", "shape", "spread"),
    [("double", "triangle", SPREADS[1]), ("int", "rectangle", SPREADS[2])],
)
def test_every_operator_equals_the_original(
    kind: str, shape: str, spread: SplitK, tmp_path: Path
) -> None:
    program, found = spread_and_verified(
        rows(kind, shape), tmp_path / "out", spread, *SIZES, threads=4
    )
    assert (found.status, found.message) == ("ok", "")
    split = [code for code in program.kernels if any("is split over" in n for n in code.notes)]
    reduced = {name for code in split for name in code.statements}
    assert len(reduced) == len(updates_of(kind))
    assert any(code.reassociates for code in split) == (kind in FLOATING)
    assert ("eatss_atomic" in program.text) == (spread.chunks > 1)


SCALARS = """
double fmax(double, double);
long f(int n, double a[n], double most[1], int b[n], unsigned long c[n], unsigned long all[1])
{
  long least = 9;
#pragma scop
  for (int i = 0; i < n; i++)
    most[0] = fmax(most[0], a[i]);
  for (int i = 0; i < n; i++)
    least = b[i] < least ? b[i] : least;
  for (int i = 0; i < n; i++)
    all[0] *= c[i];
#pragma endscop
  return least;
}
"""


def test_scalars_without_a_parallel_loop_are_reduced_by_many_threads(tmp_path: Path) -> None:
    sizes = ({"n": 0}, {"n": 1}, {"n": 300})
    program, found = spread_and_verified(SCALARS, tmp_path / "out", ONE_BLOCK, *sizes)
    assert (found.status, found.message) == ("ok", "")
    said = " ".join(note for code in program.kernels for note in code.notes)
    assert all(f"the {what} over" in said for what in ("maximum", "minimum", "product"))


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a program that is right, its sums spread over lanes and blocks."""
    folder = tmp_path_factory.mktemp("reduced")
    source = folder / "program.c"
    source.write_text(rows("double", "rectangle"), encoding="utf-8")
    symbolic = Session(source).symbolic
    save_program(made(symbolic, spread_as(symbolic, SPREADS[1], threads=4), source), folder)
    return folder


TROPICAL = """
void tropical(float C[NI][NJ], float A[NI][NK], float B[NK][NJ])
{
#pragma scop
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++)
      for (int k = 0; k < NK; k++)
        C[i][j] = A[i][k] + B[k][j] < C[i][j] ? A[i][k] + B[k][j] : C[i][j];
#pragma endscop
}
"""


def test_blocks_share_a_minimum(tmp_path: Path) -> None:
    sizes = {"NI": 37, "NJ": 35, "NK": 101}
    source = "".join(f"#ifndef {n}\n#define {n} {size}\n#endif\n" for n, size in sizes.items())
    program = eatss.codegen(
        source + TROPICAL, gpu="h200", output=tmp_path, share={"k": 3},
        tiles={"i": 16, "j": 32, "k": 8}, block={"i": 8, "j": 8},
        placements={"A": "shared", "B": "shared"},
    )  # fmt: skip
    (kernel,) = program.kernels
    assert "the minimum over k is shared by up to 3 blocks" in kernel.notes
    assert "eatss_atomic_min" in program.text
    found = verify(tmp_path, device="cpu", sizes=[sizes, {"NI": 5, "NJ": 3, "NK": 7}])
    assert (found.status, found.message) == ("ok", "")

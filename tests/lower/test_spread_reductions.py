"""Reductions of any operator, spread over lanes and blocks, are those of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.analysis.structure import SplitK
from tests.lower.spreading import spread_and_verified

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


CASES = [
    (kind, shape, spread)
    for at, kind in enumerate((*FLOATING, *INTEGERS))
    for number, spread in enumerate(SPREADS)
    for shape in SHAPES
]


@pytest.mark.parametrize(("kind", "shape", "spread"), CASES, ids=str)
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

"""Sums in scalars of the region: expanded where values stay in an iteration, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.api import codegen, inspect, select
from eatss.frontend import parse_source
from eatss.polyhedral.scalars import expanded_arrays, with_expanded_scalars
from eatss.polyhedral.scop import Scop
from eatss.verify import verify

SIZED = "double A[64][96], double B[96][80], double C[64][80]"
OPEN = "int m, int n, int k, double A[m][k], double B[k][n], double C[m][n]"
FLAT = "int m, int n, int k, double *A, double *B, double *C"


def product(m: str, n: str, k: str, a: str, b: str, c: str) -> str:
    """Return a product that adds up in a scalar."""
    return (
        f"for (int i = 0; i < {m}; i++) for (int j = 0; j < {n}; j++) {{ double acc = 0.0;\n"
        f"for (int l = 0; l < {k}; l++) acc += {a} * {b};\n{c} = acc; }}"
    )


PRODUCTS = {
    "numbers": (product("64", "80", "96", "A[i][l]", "B[l][j]", "C[i][j]"), SIZED),
    "variable length": (product("m", "n", "k", "A[i][l]", "B[l][j]", "C[i][j]"), OPEN),
    "pointers": (product("m", "n", "k", "A[i * k + l]", "B[l * n + j]", "C[i * n + j]"), FLAT),
}


def source(loops: str, arguments: str) -> str:
    return f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def region(loops: str, arguments: str) -> Scop:
    (scop,) = parse_source(source(loops, arguments)).scops
    return scop


@pytest.mark.samples(1)
@pytest.mark.parametrize("style", PRODUCTS)
def test_a_sum_in_a_scalar_is_tiled_as_one_in_an_array(style: str) -> None:
    (facts,) = inspect(source(*PRODUCTS[style]), cut="eatss").facts
    assert [(loop.name, loop.parallel) for loop in facts.loops] == [
        ("i", True),
        ("j", True),
        ("l", False),
    ]
    program = codegen(source(*PRODUCTS[style]), gpu="a100")
    (kernel,) = program.kernels
    assert "acc" not in kernel.arguments
    assert any(note.startswith("acc: registers") for note in kernel.notes)
    assert not any(entry.temporaries for entry in program.entries)


def test_it_takes_the_layout_of_the_sum_in_the_array() -> None:
    loops = product("1536", "1920", "768", "A[i][l]", "B[l][j]", "C[i][j]")
    sized = "double A[1536][768], double B[768][1920], double C[1536][1920]"
    in_array = loops.replace("double acc = 0.0;", "C[i][j] = 0.0;").replace("acc +=", "C[i][j] +=")
    in_array = in_array.replace("C[i][j] = acc;", "")
    layouts = []
    for text in (loops, in_array):
        (kernel,) = select(source(text, sized), gpu="h200", target="cuda").kernels
        staged = {r.array for r in kernel.references if r.placement == "shared"}
        layouts.append((kernel.tile_sizes, kernel.block, staged))
    assert layouts[0] == layouts[1]


@pytest.mark.long
@pytest.mark.parametrize("style", PRODUCTS)
def test_it_computes_what_the_original_does(style: str, tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(source(*PRODUCTS[style]))
    program = codegen(path, gpu="a100", output=tmp_path / "out")
    names = [parameter.name for parameter in program.parameters]
    sizes = [{name: least + 2 * k for k, name in enumerate(names)} for least in (1, 9, 70)]
    verification = verify(tmp_path / "out", device="cpu", sizes=sizes if names else None)
    assert verification.ok, verification.message


def test_two_sums_in_one_iteration_are_both_expanded() -> None:
    loops = (
        "for (int i = 0; i < 64; i++) { double p = 0, q = 1;\n"
        "for (int l = 0; l < 96; l++) { p += A[i][l]; q *= A[i][l] + p; }\n"
        "C[i][0] = p + q; }"
    )
    before = region(loops, SIZED)
    assert expanded_arrays(before, with_expanded_scalars(before)) == ("p", "q")


@pytest.mark.parametrize(
    "loops",
    [
        # a value goes from one iteration to the next
        "for (int i = 0; i < 64; i++) for (int j = 1; j < 80; j++) { C[i][j] = s;\n"
        "for (int l = 0; l < 96; l++) s += A[i][l]; }",
        # no loop is inside the iteration
        "for (int i = 0; i < 64; i++) { double t = A[i][0]; t += A[i][1]; C[i][0] = t; }",
        # the sum is over the iterations themselves
        "for (int i = 0; i < 64; i++) s += A[i][0];\nC[0][0] = s;",
        # counters are no subscripts
        "for (int i = -8; i < 56; i++) { double t = 0;\n"
        "for (int l = 0; l < 96; l++) t += A[i + 8][l];\nC[i + 8][0] = t; }",
    ],
)
def test_other_scalars_stay_as_they_are(loops: str) -> None:
    declared = "double s = 0;\n" if " s " in f" {loops} ".replace("s;", "s ;") else ""
    before = region(declared + loops, SIZED)
    assert with_expanded_scalars(before) is before

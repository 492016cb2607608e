"""Loops of factorisations in blocks of steps: the same instances, each behind what it needs."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InternalError
from eatss.base.shipped import data_directory
from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file, parse_source
from eatss.polyhedral import class_tiles
from eatss.polyhedral.class_tiles import check_time, with_class_tiles
from eatss.polyhedral.schedule import schedule_scop
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.split_sets import check_partition
from tests.examples import examples
from tests.polyhedral.executing import executed

LDLT = """for (int j = 0; j < 7; j++) {
    for (int i = j + 1; i < 7; i++) A[i][j] = A[i][j] / A[j][j];
    for (int i = j + 1; i < 7; i++)
        for (int k = j + 1; k <= i; k++) A[i][k] -= A[i][j] * A[k][j] * A[j][j];
}"""
SOLVE = """for (int i = 0; i < 7; i++) {
    x[i] = b[i];
    for (int j = 0; j < i; j++) x[i] -= A[i][j] * x[j];
    x[i] = x[i] / A[i][i];
}"""
MANY = """for (int i = 0; i < 7; i++)
    for (int j = 0; j < 3; j++) {
        for (int k = 0; k < i; k++) B[i][j] -= A[i][k] * B[k][j];
        B[i][j] /= A[i][i];
    }"""
BANDED = """for (int k = 0; k < 7; k++)
    for (int i = k + 1; i < 7 && i < k + 4; i++) {
        A[i][k] = A[i][k] / A[k][k];
        for (int j = k + 1; j < 7 && j < k + 4; j++) A[i][j] -= A[i][k] * A[k][j];
    }"""
INVERSE = """for (int j = 0; j < 7; j++) {
    B[j][j] = 1 / A[j][j];
    for (int i = j + 1; i < 7; i++) {
        B[i][j] = 0;
        for (int k = j; k < i; k++) B[i][j] -= A[i][k] * B[k][j];
        B[i][j] = B[i][j] / A[i][i];
    }
}"""
BACKWARD = """for (int k = 6; k >= 0; k--) {
    for (int j = 0; j < k; j++) A[k][j] = A[k][j] / A[k][k];
    for (int i = 0; i < k; i++) for (int j = 0; j < k; j++) A[i][j] -= A[i][k] * A[k][j];
}
for (int i = 6; i >= 0; i--) {
    x[i] = b[i];
    for (int j = 6; j > i; j--) x[i] -= A[i][j] * x[j];
    x[i] = x[i] / A[i][i];
}"""
BOTH = f"""{SOLVE}
for (int i = 6; i >= 0; i--) {{
    for (int j = 6; j > i; j--) x[i] -= A[j][i] * x[j];
    x[i] = x[i] / A[i][i];
}}"""
ROWS = """for (int k = 0; k < 7; k++) {
    x[k] = 0;
    for (int i = 0; i < 7; i++) x[k] += A[i][k] * A[i][k];
    for (int i = 0; i < 7; i++) B[i][k] = A[i][k] / x[k];
    for (int j = k + 1; j < 7; j++) {
        C[k][j] = 0;
        for (int i = 0; i < 7; i++) C[k][j] += B[i][k] * A[i][j];
        for (int i = 0; i < 7; i++) A[i][j] -= B[i][k] * C[k][j];
    }
}"""
TILED = {
    "LDLT": LDLT,
    "SOLVE": SOLVE,
    "MANY": MANY,
    "BANDED": BANDED,
    "INVERSE": INVERSE,
    "BACKWARD": BACKWARD,
    "BOTH": BOTH,
    "ROWS": ROWS,
}


def region(loops: str) -> Scop:
    arrays = "double A[7][7], double B[7][7], double C[7][7], double x[7], double b[7]"
    (scop,) = parse_source(f"void f({arrays}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}").scops
    return scop


def kernel(name: str, size: int) -> Scop:
    options = FrontendOptions(defines=(f"N={size}",))
    (scop,) = parse_file(data_directory("kernels") / f"{name}.c", options).scops
    return scop


@given(st.sampled_from(sorted(TILED)), st.integers(2, 6))
@settings(max_examples=examples(12), deadline=None)
@example("BACKWARD", 3)
@example("BOTH", 2)
@example("ROWS", 3)
def test_classes_leave_the_same_values(name: str, size: int) -> None:
    scop = region(TILED[name])
    tiled = with_class_tiles(scop, size)
    assert tiled.class_size == size
    assert executed(tiled) == executed(scop)


@pytest.mark.parametrize("name", ["lu", "cholesky", "trisolv"])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_kernels_leave_the_same_values(name: str, size: int) -> None:
    scop = kernel(name, 7)
    tiled = with_class_tiles(scop, size)
    assert tiled is not scop
    assert executed(tiled) == executed(scop)


def test_lu_is_a_diagonal_two_panels_and_a_product() -> None:
    scheduled = schedule_scop(with_class_tiles(kernel("lu", 2000), 64))
    found = [
        (one.host_loops, [loop.name for loop in one.loops if loop.parallel])
        for one in scheduled.kernels
    ]
    in_steps = ("kb", "k")
    assert found == [
        (in_steps, ["j"]),
        (in_steps, ["i", "j"]),
        (in_steps, ["j"]),
        (in_steps, ["i", "j"]),
        (in_steps, ["i", "j"]),
        (("kb",), ["i", "j"]),
    ]
    product = scheduled.kernels[-1]
    assert [loop.name for loop in product.loops] == ["i", "j", "k"]
    assert product.permutable
    assert product.reductions[0].loops == ("k",)


@pytest.mark.parametrize(
    "loops",
    [
        "for (int i = 0; i < 7; i++) for (int j = 0; j < 7; j++) for (int k = 0; k < 7; k++)\n"
        "A[i][j] += B[i][k] * B[k][j];",  # nothing leaves a block
        "for (int t = 0; t < 7; t++) for (int i = 1; i < 6; i++) x[i] = x[i - 1] + x[i + 1];",
        "for (int i = 6; i >= 0; i--) for (int j = i + 1; j < 7; j++) x[i] -= A[i][j] * x[j];",
        "for (int i = 1; i < 7; i++) x[i] += x[i - 1];",
    ],
)
def test_other_regions_stay_as_they_are(loops: str) -> None:
    scop = region(loops)
    assert with_class_tiles(scop, 3) is scop


# Mutants ------------------------------------------------------------------------------------


def pieces_of(scop: Scop, source: str, size: int) -> list[isl.Set]:
    """Return what the pieces of a statement run of it."""
    tiling = class_tiles._tiling(scop, size)
    assert tiling is not None
    return [one.whole.range() for one in tiling.pieces(scop.statement(source))]


@pytest.mark.parametrize("lost", range(4))
def test_a_lost_or_doubled_class_is_found(lost: int) -> None:
    scop = kernel("lu", 20)
    pieces = pieces_of(scop, "S1", 4)
    assert len(pieces) == 4
    for changed in (pieces[:lost] + pieces[lost + 1 :], [*pieces, pieces[lost]]):
        with pytest.raises(InternalError, match="EATSS-P901"):
            check_partition(scop.statement("S1"), changed)


@pytest.mark.parametrize("at", range(4))
def test_a_class_that_is_too_small_is_found(at: int) -> None:
    scop = kernel("lu", 20)
    pieces, smaller = pieces_of(scop, "S1", 4), pieces_of(scop, "S1", 3)
    with pytest.raises(InternalError, match="EATSS-P901"):
        check_partition(scop.statement("S1"), [*pieces[:at], smaller[at], *pieces[at + 1 :]])


def test_classes_in_another_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    in_order = class_tiles._components

    def backwards(*given: object) -> list[list[class_tiles._Piece]]:
        return in_order(*given)[::-1]  # type: ignore[arg-type]

    monkeypatch.setattr(class_tiles, "_components", backwards)
    for scop in (*(kernel(name, 20) for name in ("lu", "cholesky", "trisolv")), region(BACKWARD)):
        with pytest.raises(InternalError, match="EATSS-P901"):
            with_class_tiles(scop, 4)


@pytest.mark.parametrize("early", range(6))
def test_a_class_at_another_place_is_found(early: int) -> None:
    scop = kernel("lu", 20)
    tiled = with_class_tiles(scop, 4)
    tiling = class_tiles._tiling(scop, 4)
    assert tiling is not None
    pieces = [one for s in scop.statements for one in tiling.pieces(s)]
    cut = class_tiles.cuts_of(pieces)
    needed = tiling.needed.apply_domain(cut).apply_range(cut)
    check_time(tiled.statements, needed)
    moved = list(tiled.statements)
    time = moved[early].schedule
    place = isl.Val(9 if early in (0, 2) else -1, scop.isl_context)  # the diagonal is to be first
    moved[early] = replace(
        moved[early],
        schedule=time.eliminate(isl.dim_type.out, 2, 1).fix_val(isl.dim_type.out, 2, place),
    )
    with pytest.raises(InternalError, match="EATSS-P901"):
        check_time(moved, needed)

"""Loops of factorisations in blocks of steps: the same instances, each behind what it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import islpy as isl
import networkx as nx  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InternalError
from eatss.base.frozen import Numbers
from eatss.base.shipped import data_directory
from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file
from eatss.polyhedral import class_tiles, kept_versions
from eatss.polyhedral.class_tiles import check_time, with_class_tiles
from eatss.polyhedral.dependences import compute_dependences
from eatss.polyhedral.isl_names import maps_of
from eatss.polyhedral.scalars import without_scalars
from eatss.polyhedral.schedule import schedule_scop
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.polyhedral.split_sets import check_partition
from tests.examples import examples
from tests.polyhedral.executing import Element, executed, region_of

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


STEPS = "for (int k = 0; k < 7; k++) for (int i = 0; i < 7; i++) for (int j = 0; j < 7; j++)"
IN_PLACE = "A[i][j] -= A[i][k] * A[k][j];"
IN_TURN = f"""for (int i = 0; i < 7; i++) for (int j = 0; j < 7; j++) A[i][j] = B[i][j] + 1;
{STEPS} {{
    double t = A[i][k] * A[k][j];
    A[i][j] = A[i][j] + t;
    C[i][j] = C[i][j] * C[k][j] - C[i][k];
}}
for (int i = 0; i < 7; i++) x[i] = A[i][i] + C[i][i];"""


def region(loops: str) -> Scop:
    arrays = "double A[7][7], double B[7][7], double C[7][7], double x[7], double b[7], "
    return region_of(loops, arrays + "double D[3][7][7]")


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


@pytest.mark.parametrize("name", ["lu", "cholesky", "trisolv", "floyd-warshall"])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_kernels_leave_the_same_values(name: str, size: int) -> None:
    scop = kernel(name, 7)
    tiled = with_class_tiles(scop, size)
    assert tiled is not scop
    assert left_by(tiled, scop) == executed(scop)


def left_by(tiled: Scop, scop: Scop) -> dict[Element, int]:
    """Return what a region leaves in the arrays of another."""
    arrays = {one.name for one in scop.arrays}
    return {element: own for element, own in executed(tiled).items() if element[0] in arrays}


def in_place(value: str, rows: str = "i = 0", columns: str = "j = 0") -> Scop:
    loops = f"for (int {rows}; i < 7; i++) for (int {columns}; j < 7; j++)"
    return region(f"for (int k = 0; k < 7; k++) {loops} A[i][j] = {value};")


@pytest.mark.parametrize(
    ("scop", "pieces"),
    [
        (in_place("A[i][j] - A[i][k] * A[k][j]"), 22),  # nothing is assumed of the function
        (in_place("A[k][j] / A[i][j] + A[i][k]"), 22),
        (in_place("A[i][j] - B[i][k] * A[k][j]"), 5),  # rows alone: columns are apart
        (in_place("A[i][j] - A[i][k] * A[k][j]", "i = k", "j = k"), 13),
        (in_place("A[i][j] - A[i][3] * A[k][j]"), 15),
    ],
)
def test_what_steps_overwrite_is_read_from_copies(scop: Scop, pieces: int) -> None:
    tiled = with_class_tiles(scop, 3)
    assert len(tiled.statements) == pieces
    assert left_by(tiled, scop) == executed(scop)


@pytest.mark.parametrize(
    ("loops", "pieces"),
    [
        (IN_TURN, 2 + 22 + 22),  # what needs each other is one part, temporaries are none
        (f"for (int d = 0; d < 3; d++) {STEPS} D[d]{IN_PLACE[1:].replace('A', 'D[d]')}", 22),
        (f"{STEPS} for (int d = 0; d < 3; d++) D[d]{IN_PLACE[1:].replace('A', 'D[d]')}", 22),
    ],
)
def test_parts_and_loops_that_are_apart_leave_the_same_values(loops: str, pieces: int) -> None:
    scop = region(loops)
    tiled, bare = with_class_tiles(scop, 3), without_scalars(scop)
    assert len(tiled.statements) == pieces
    assert left_by(tiled, bare) == left_by(scop, bare)
    assert all(one.parallel_loops for one in schedule_scop(tiled).kernels)


def test_floyd_warshall_is_a_diagonal_four_panels_and_four_products() -> None:
    scheduled = schedule_scop(with_class_tiles(kernel("floyd-warshall", 1000), 32))
    hosts = [one.host_loops for one in scheduled.kernels]
    assert hosts == [("kb", "k")] * 18 + [("kb",)] * 4
    assert all(one.parallel_loops for one in scheduled.kernels)
    for product in scheduled.kernels[18:]:
        assert [loop.name for loop in product.loops] == ["i", "j", "k"]
        assert product.permutable
    copies = [one for one in scheduled.scop.arrays if one.is_local]
    assert [max_points(one.extent) for one in copies] == [32 * 1000] * 4


def max_points(extent: isl.Set) -> int:
    return int(extent.count_val().to_str())


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
        "for (int k = 0; k < 7; k++) for (int i = 6; i >= 0; i--) for (int j = 0; j < 7; j++)\n"
        "A[i][j] -= A[i][k] * A[k][j];",  # a loop that counts down
        "for (int k = -1; k < 6; k++) for (int i = 0; i < 7; i++) for (int j = 0; j < 7; j++)\n"
        "A[i][j] -= A[i][k + 1] * A[k + 1][j];",  # one that begins below 0
        "for (int k = 0; k < 7; k++) for (int i = 0; i < 7; i++) for (int j = 0; j < 7; j++)\n"
        "A[i][j] -= A[j][k] * A[k][i];",  # an element is of several rows
        f"{STEPS} {IN_PLACE} {STEPS.replace('7', '5')} {IN_PLACE}",  # copies of A of two lengths
    ],
)
def test_other_regions_stay_as_they_are(loops: str) -> None:
    scop = region(loops)
    assert with_class_tiles(scop, 3) is scop


# Mutants ------------------------------------------------------------------------------------


def pieces_of(scop: Scop, source: str, size: int) -> list[isl.Set]:
    """Return what the pieces of a statement run of it."""
    tiling = class_tiles._tiling(scop)
    assert tiling is not None
    cut = replace(tiling, size=size).pieces(scop.statement(source))
    return [one.whole.range() for one in cut]


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
    names = "lu", "cholesky", "trisolv", "floyd-warshall"
    for scop in (*(kernel(name, 20) for name in names), region(BACKWARD)):
        with pytest.raises(InternalError, match="EATSS-P901"):
            with_class_tiles(scop, 4)


def test_parts_in_another_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = class_tiles._parts
    monkeypatch.setattr(class_tiles, "_parts", lambda *given: parts(*given)[::-1])
    with pytest.raises(InternalError, match="EATSS-P901"):
        with_class_tiles(region(IN_TURN), 3)


def test_steps_around_a_loop_that_needs_all_of_them_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loops = f"for (int d = 1; d < 3; d++) {STEPS} D[d][i][j] -= D[d][i][k] * D[d - 1][k][j];"
    scop = region(loops)
    assert with_class_tiles(scop, 3) is scop
    monkeypatch.setattr(class_tiles, "_stays", lambda *_: True)
    with pytest.raises(InternalError, match="EATSS-P901"):
        class_tiles._steps_first(region(loops))


@pytest.mark.parametrize("source", ["lu", "floyd-warshall", LDLT, SOLVE, BACKWARD])
def test_pieces_need_what_they_do_by_themselves(source: str) -> None:
    scop = region(source) if "for" in source else kernel(source, 5)
    cut = with_class_tiles(scop, 2)
    own, found = compute_dependences(cut), cut.dependences
    assert found
    for name in ("flow", "tagged_flow"):
        assert getattr(own, name).is_equal(getattr(found, name))
    for one, other in ((own.needed, found.needed), (own.order, found.order)):
        expected, pairs = pairs_of(one), pairs_of(other)
        assert expected <= closed(pairs)
        assert pairs <= closed(expected)


def pairs_of(relation: isl.UnionMap) -> set[tuple[str, str]]:
    """Return the instances that need each other."""
    found = set[tuple[str, str]]()
    relation.wrap().foreach_point(lambda point: found.add(ends_of_point(point)))
    return found


def ends_of_point(point: isl.Point) -> tuple[str, str]:
    (both,) = maps_of(isl.UnionSet.from_point(point).unwrap())
    return str(both.domain()), str(both.range())


def closed(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which instances are behind which, if each is behind what it needs."""
    return {*nx.transitive_closure(nx.DiGraph(pairs), reflexive=None).edges}


def test_a_read_of_the_other_copy_leaves_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    scop, whole = kernel("floyd-warshall", 6), kept_versions._Kept.copy_for

    def other(self: kept_versions._Kept, readers: isl.Set) -> Any:
        found = whole(self, readers)
        return found and self.copies[found is self.copies[0]]

    monkeypatch.setattr(kept_versions._Kept, "copy_for", other)
    assert left_by(with_class_tiles(scop, 3), scop) != executed(scop)


def test_a_lost_part_of_the_diagonal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_versions, "piece_on", lambda piece, *_: piece)

    def fewer(part: Any) -> Any:
        whole = not isinstance(part, isl.Map)
        return part if whole else part.intersect_domain(part.domain().lexmin())

    monkeypatch.setattr(kept_versions, "coalesced", fewer)
    with pytest.raises(InternalError, match="EATSS-P901"):
        with_class_tiles(kernel("floyd-warshall", 20), 4)


@pytest.mark.parametrize("place", [-1, 1])
def test_copies_of_other_values_are_found(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    copying = kept_versions._copying

    def moved(source: Statement, read: Access, loops: Numbers, at: int, taken: set[str]) -> Any:
        return copying(source, read, loops, -at if at == place else at, taken)

    assert kept_versions.with_versions(kernel("floyd-warshall", 20))
    monkeypatch.setattr(kept_versions, "_copying", moved)
    assert kept_versions.with_versions(kernel("floyd-warshall", 20)) is None


@pytest.mark.parametrize("early", range(6))
def test_a_class_at_another_place_is_found(early: int) -> None:
    scop = kernel("lu", 20)
    tiled = with_class_tiles(scop, 4)
    assert tiled.dependences
    needed = tiled.dependences.memory_based
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

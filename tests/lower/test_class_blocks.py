"""Classes of tiles of factorisations: their text computes what the source does, at all sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eatss.analysis.layout import ClassBlock
from eatss.analysis.variant import ClassSize, Rewrites
from eatss.base.diagnostics import InputError
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.choose.selection import KernelSelection, Selection
from eatss.cost.access import with_fused_quotients
from eatss.frontend.options import Reading
from eatss.lower.class_blocks import class_runs_for
from eatss.lower.kernel.barriers import barrier_faults, barriers_in, without_barrier
from eatss.lower.recipe import CodegenOptions, CodeRequest, recipe_of
from eatss.plan.class_blocks import ClassProducts, ClassRun, Side, shared_bytes
from eatss.program import Program
from eatss.report.selection import selection_table
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.lower.checking import broken, right, with_kernels

SIZES = [{"N": size} for size in (0, 1, 4, 5, 21)]


@cache
def in_classes(source: Path | str, size: int = 4, *, dtype: Any = None, region: int = 0) -> Session:
    classes = (ClassSize(region=region, size=size),)
    return Session(source, Reading(dtype=dtype), code=True, rewrites=Rewrites(classes=classes))


def session(name: str, size: int = 4, dtype: str = "double") -> Session:
    own = Path(__file__).parent / f"{name}.c"
    source = own if own.exists() else data_directory("kernels") / f"{name}.c"
    return in_classes(source, size, dtype=dtype)


def written(of: Session, folder: Path, *sizes: dict[str, int], **how: Any) -> Program:
    """Return a program in a folder that is right at some sizes."""
    of.write(made := program(of, **how), folder)
    right(verify(folder, device="cpu", sizes=sizes or SIZES))
    return made


def every(of: Session) -> tuple[ClassRun | ClassProducts, ...]:
    return class_runs_for(of.analysed, lambda: [one.scheduled for one in of.symbolic.regions])


def runs(of: Session) -> tuple[ClassRun, ...]:
    return tuple(one for one in every(of) if isinstance(one, ClassRun))


def products(of: Session) -> list[tuple[str, ...]]:
    return [one.kernels for one in every(of) if isinstance(one, ClassProducts)]


@cache
def apart(of: Session) -> Selection:
    return of.select("h200", SelectOptions(target="cuda"))


def program(of: Session, threads: int = 64, width: int = 8, **how: Any) -> Program:
    """Return a program all of whose classes are one launch, products in small tiles."""
    blocks = {
        one.kernels[0]: ClassBlock(kernels=one.kernels, threads=threads, width=width)
        if isinstance(one, ClassRun)
        else ClassBlock(kernels=one.kernels, threads=32, width=1)
        for one in every(of)
    }
    found, small = apart(of), [name for names in products(of) for name in names]
    own: dict[str, Any] = {"stages": 1, "resident": 1, "warps": None}
    lengths = {"i": 4, "j": 8, "k": 4}

    def sized(one: KernelSelection) -> dict[str, Any]:
        if one.name not in small:
            return {}
        pairs = {"tile_sizes": one.tile_sizes, "block": one.block}
        return own | {
            field: tuple((name, lengths.get(name, 1)) for name, _ in named)
            for field, named in pairs.items()
        }

    kernels = tuple(
        replace(one, class_block=blocks.get(one.name), **sized(one)) for one in found.kernels
    )
    recipe = recipe_of(replace(found, kernels=kernels), CodegenOptions(**how))
    made = of.generate(recipe, load_profile("h200"))
    notes = [str(one.notes) for one in made.kernels]
    assert sum("class of tiles" in one or "side by side" in one for one in notes) == len(blocks)
    return made


@pytest.mark.parametrize("name", ["lu", "trsm", "floyd-warshall"])
def test_a_plan_says_what_room_other_blocks_of_steps_need(name: str) -> None:
    (small, *_), (large, *_) = (runs(session(name, size)) for size in (4, 8))
    for one, other in zip(small.parts, large.parts, strict=True):
        longer = one._with_steps(8)
        assert [own.kept for own in longer.tiles] == [own.kept for own in other.tiles]
        assert [own.loops for own in longer.phases] == [own.loops for own in other.phases]
        assert one.is_short(8)
        assert not one.is_short(512)


def test_numbers_with_too_few_steps_for_blocks_stay_as_they_are() -> None:
    """At N=40 no block of 32 steps has one before and one behind it; code for any size has."""
    of = session("in_place", 32)
    assert [one.class_size for one in of.parsed.scops] == [0]
    assert [one.class_size for one in of.parsed_symbolic.scops] == [32]


@pytest.mark.parametrize(
    ("name", "dtype", "how"),
    [
        ("lu", "double", {}),
        ("lu", "double", {"threads": 32, "width": 3}),
        ("lu", "double", {"threads": 1024, "width": 64}),
        ("cholesky", "double", {"strict_fp": True}),
        ("trisolv", "double", {}),
        ("trsm", "half", {}),
        ("ul", "double", {"index_bits": 64}),
        ("floyd-warshall", "double", {"strict_fp": True, "index_bits": 64}),
        ("in_place", "float", {"index_bits": 64, "strict_fp": True}),
        ("batches", "double", {}),
        ("batches", "double", {"index_bits": 64, "strict_fp": True}),
    ],
)
def test_verified_at_sizes_beside_blocks(
    name: str, dtype: str, how: dict[str, Any], tmp_path: Path
) -> None:
    sizes = [{**one, "M": 9} if name in ("trsm", "batches") else one for one in SIZES]
    written(session(name, 16 if name == "batches" else 4, dtype), tmp_path, *sizes, **how)


SCALED = """
#ifndef N
#define N 40
#endif
void scaled(double A[N][N], double x[N], double d[N])
{
#pragma scop
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++)
            x[i] -= A[j][i] * x[j];
        x[i] *= d[i];
    }
#pragma endscop
}
"""


IN_FEW_STEPS = """
#ifndef N
#define N 40
#endif
void few(double A[N][N], double d[N])
{
#pragma scop
    for (int k = 0; k < N; k++) {
        d[k] = A[k][k] + 1;
        for (int i = k + 1; i < N; i++) A[i][k] = A[i][k] + d[k];
        for (int j = k + 1; j < N; j++)
            for (int i = j; i < N; i++) A[i][j] -= A[i][k] * A[j][k];
    }
#pragma endscop
}
"""


ONE_ROW = """
#ifndef N
#define N 40
#endif
void row(double A[N][N])
{
#pragma scop
    for (int k = 0; k < N - 1; k++) {
        for (int i = k + 1; i < N; i++) A[i][k] = A[i][k] / A[k][k];
        for (int i = k + 2; i < N; i++)
            for (int j = k + 1; j < N; j++) A[i][j] = A[i][j] - A[i][k] * A[k][j];
    }
#pragma endscop
}
"""


@pytest.mark.parametrize(
    ("text", "size", "part"),
    [
        (SCALED, 4, "x_1_r[i / 32] *= sh.d_1[i];"),  # a register by an element of shared memory
        (IN_FEW_STEPS, 2, "if (k == 0) {"),  # a statement in its steps of a block alone
        (ONE_ROW, 3, ""),  # a loop that all lanes run beside one of that name that they share
    ],
)
def test_statements_run_where_they_are_to(text: str, size: int, part: str, tmp_path: Path) -> None:
    assert part in written(in_classes(text, size), tmp_path).text


BESIDE_A_LOOP = """
#ifndef N
#define N 40
#endif
void beside(double A[N][N], double x[N], double d[N], double B[N][N])
{
#pragma scop
    for (int t = 0; t < 9; t++) {
        for (int i = 0; i < N; i++) d[i] = x[N - 1 - i] + d[i];
        for (int i = 0; i < N; i++) x[i] = d[i] * x[i];
    }
#pragma endscop
#pragma scop
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) A[i][j] = A[i][j] * 2;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < i; k++) B[i][j] -= A[i][k] * B[k][j];
            B[i][j] *= d[i];
        }
#pragma endscop
}
"""


def test_names_are_their_own_beside_a_loop_that_one_block_runs() -> None:
    of = in_classes(BESIDE_A_LOOP, region=1)
    assert apart(of).kernels[0].loop_block is not None
    names = [one.name for one in program(of).kernels]
    assert len({*names}) == len(names)


BACKWARDS = """
#ifndef N
#define N 21
#endif
void both(double v[N], double u[N], double a[N], double U[N][N], double y[N])
{
#pragma scop
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) v[j] += u[j] * a[i];
        for (int j = 0; j < N; j++) u[j] -= v[j] * a[i];
    }
    for (int i = N - 1; i >= 0; i--) {
        y[i] = y[i] / U[i][i];
        for (int j = 0; j < i; j++) y[j] -= U[j][i] * y[i];
    }
#pragma endscop
}
"""


def test_steps_forward_share_no_launch_with_steps_backwards() -> None:
    assert [len(one.parts) for one in runs(in_classes(BACKWARDS))] == [1, 1]


def test_blocks_are_apart_along_a_batch() -> None:
    found = runs(session("batches", 16))
    assert {part.apart for one in found for part in one.parts} == {"m"}
    tiles = [one for run in found for part in run.parts for one in part.tiles]
    assert all(one.sides[0] == Side(factor=0, least=0, length=1, apart=True) for one in tiles)
    first, *_ = [one for one in tiles if one.along is not None]
    anywhere = replace(first, sides=(Side(factor=0, least=5, length=1), *first.sides[1:]))
    assert not first.is_apart(anywhere)  # an element of another iteration's


def test_what_blocks_have_in_shared_memory() -> None:
    one, panels = runs(session("lu"))
    (diagonal,), (row, column) = one.parts, panels.parts
    assert [one.extents for one in diagonal.tiles] == [(4, 4)]
    assert [(one.extents, one.along) for one in row.tiles] == [((4, None), 1), ((4, 4), None)]
    assert [(one.extents, one.along) for one in column.tiles] == [((None, 4), 0), ((4, 4), None)]
    assert [one.passed for one in diagonal.phases] == [(2,), (2,)]  # A[k][k] and A[i][k]
    assert [one.passed for one in (*row.phases, *column.phases)] == [(), (), ()]
    block = ClassBlock(kernels=panels.kernels, threads=64, width=16)
    assert shared_bytes(panels, block) == max(4 * 17 + 4 * 5, 16 * 5 + 4 * 5) * 8


def test_panels_of_floyd_warshall_are_apart_and_their_copies_stored_at_once() -> None:
    diagonal, panels = runs(session("floyd-warshall"))
    assert [len(one.parts) for one in (diagonal, panels)] == [1, 4]
    assert [one.along for one in diagonal.parts[0].tiles] == [0, 1, 0]
    assert [[one.array for one in part.stored] for part in panels.parts] == [
        ["path_before", "path_behind"],
        ["path_before", "path_behind"],
        ["path_before_1", "path_behind_1"],
        ["path_before_1", "path_behind_1"],
    ]
    limits = [{side.limit for side in part.tiles[0].sides} for part in panels.parts]
    assert limits == [{0}, {0, 4}, {0}, {0, 4}]  # those in front of the block end there
    assert panels.parts[0].phases[1].instances == 4 * 4


def test_products_of_floyd_warshall_are_one_launch_where_that_costs_less() -> None:
    of = session("floyd-warshall", 16)
    ((first, *others),) = products(of)
    found = {one.name: one for one in apart(of).kernels}
    assert found[first].joined == (first, *others)
    assert {found[one].tile_sizes for one in others} == {found[first].tile_sizes}
    assert {getattr(found[one].predicted, "time_s", None) for one in others} == {0.0}
    assert products(session("lu", 16)) == []  # one product a step


def test_a_changed_text_of_products_is_found(tmp_path: Path) -> None:
    of = session("floyd-warshall")
    made = program(of)
    # two of four have the same columns
    assert not re.search(r"eatss_(max|min)\(eatss_\1\(", made.text)
    of.write(made, tmp_path)
    old, new = "(int)blockIdx.y < end_1", "(int)blockIdx.y <= end_1"  # a row of the next one
    assert broken(made, tmp_path, old, new, [{"N": 21}]) != "ok"


def test_a_product_of_one_k_tile_fills_none_ahead() -> None:
    *_, rest = apart(session("lu", 16)).kernels
    assert (dict(rest.tile_sizes)["k"], rest.pipeline_stages) == (16, 1)


def test_sizes_of_the_user_leave_steps_apart() -> None:
    of = session("lu", 32)
    found, profile = apart(of), load_profile("h200")
    wanted = CodeRequest(tiles={"i": 16})
    made = of.generate(of.recipe(found, profile, wanted), profile)
    assert not any("class of tiles" in note for one in made.kernels for note in one.notes)
    assert not any(wanted.joins.values())
    alone = of.select(profile, SelectOptions(target="cuda"), tile_time=False)
    assert not any(one.class_block for one in alone.kernels)


def test_what_threads_of_a_class_are_is_told() -> None:
    found = apart(session("trisolv", 32))
    first = next(one for one in found.kernels if one.class_block)
    assert not first.tile_sizes
    assert f"a class of tiles with {first.joined[1]}" in selection_table(found)


def test_steps_apart_cost_more_where_there_are_many() -> None:
    found = apart(session("lu", 32))
    assert [one.class_block is not None for one in found.kernels].count(True) == 2


@pytest.mark.parametrize("name", ["lu", "trisolv", "floyd-warshall"])
def test_each_barrier_is_needed(name: str) -> None:
    made, kernels = with_kernels(lambda: program(session(name)))
    pairs = zip(made.kernels, kernels, strict=True)
    kernel, *_ = (own for one, own in pairs if "class of tiles" in str(one.notes))
    count = barriers_in(kernel.body)
    assert count == 3  # behind loads of the tile and of registers, and in front of its stores
    assert not barrier_faults(kernel.body)
    for at in range(count):
        assert barrier_faults(without_barrier(kernel.body, at))


def test_blocks_of_another_program_are_refused() -> None:
    of = session("lu")
    found = apart(of)
    first, *others = found.kernels
    block = ClassBlock(kernels=(first.name,), threads=64, width=1)
    wrong = replace(found, kernels=(replace(first, class_block=block), *others))
    with pytest.raises(InputError, match="EATSS-K011"):
        of.generate(recipe_of(wrong, CodegenOptions()), load_profile("h200"))


def test_threads_that_products_do_not_have_are_refused() -> None:
    of = session("floyd-warshall")
    (names,) = products(of)
    found, wrong = apart(of), ClassBlock(kernels=names, threads=1024, width=1)
    kernels = tuple(
        replace(one, class_block=wrong) if one.name == names[0] else one for one in found.kernels
    )
    recipe = recipe_of(replace(found, kernels=kernels), CodegenOptions())
    with pytest.raises(InputError, match="class_block says 1024"):
        of.generate(recipe, load_profile("h200"))


@pytest.mark.parametrize("size", [-1, 0, 2**40])
def test_blocks_of_no_steps_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="EATSS-P026"):
        _ = session("lu", size).parsed


# Mutants ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lu", "for (int k = 0;", "for (int k = 1;"),  # a step is lost
        ("lu", "e < 16", "e < 15"),  # an element of a tile is not there
        ("lu", "(int)blockIdx.y < end", "(int)blockIdx.y <= end"),  # a block of columns has rows
        ("in_place", "k >= j", "k > j"),  # the pivot's column
        ("in_place", "k < j", "k + 1 < j"),
        ("in_place", "A_behind_1[", "A_before_1["),  # rows as they were before the step
        ("in_place", "k % 32", "(k + 1) % 32"),
    ],
)
def test_a_changed_text_is_found(name: str, old: str, new: str, tmp_path: Path) -> None:
    of = session(name)
    of.write(made := program(of), tmp_path)
    assert broken(made, tmp_path, old, new, SIZES) != "ok"


DIVIDED = """
#define N 1000
void divided(double A[N][N])
{
#pragma scop
    for (int k = 0; k < N; k++)
        for (int i = k + 1; i < N; i++)
            for (int j = k + 1; j <= i; j++) A[i][j] -= A[i][k] * A[j][k] / A[k][k];
#pragma endscop
}
"""


def test_quotients_by_an_element_have_one_reciprocal() -> None:
    of = in_classes(DIVIDED, 32)
    found = apart(of)
    known = [one.predicted for one in found.kernels if one.class_block is not None]
    assert len(known) == 2
    # An H200 took 0.34 and 0.26 ms for these two of ldlt.
    assert 0.5e-3 < sum(one.time_s for one in known if one is not None) < 0.7e-3
    text = of.generate(recipe_of(found, CodegenOptions()), load_profile("h200")).text
    _, diagonal, panel, _ = re.split(r"\ndivided_k[012]\(", text)
    for own in (diagonal, panel):
        assert own.count("eatss_reciprocal<") == 1
        in_front, behind = own.split("eatss_reciprocal<")
        assert "for (int j = k" in behind.split("eatss_quotient<")[0]
        assert "for (int j = k" not in in_front


def test_quotients_that_are_not_exact_are_divisions(tmp_path: Path) -> None:
    of = session("lu")
    of.write(made := program(of), tmp_path)
    for text in (made.text, re.sub(r"exact &= .*;", ";", made.text)):
        assert (broken(made, tmp_path, made.text, text) == "ok") == (text == made.text)


SOMETIMES = """
#ifndef N
#define N 1000
#endif
void sometimes(double A[N][N], double d[N], double t)
{
#pragma scop
    for (int k = 0; k < N; k++)
        for (int i = k + 1; i < N; i++)
            for (int j = k + 1; j <= i; j++)
                A[i][j] -= d[k] > 0.5 ? A[i][k] / d[k] / t : A[j][k] / A[k][k] / d[k];
#pragma endscop
}
"""


def test_quotients_that_do_not_always_run_are_no_less_than_nothing() -> None:
    of = in_classes(SOMETIMES, 32)
    facts = {one.name: one for one in of.analysed.facts}
    for phase in (phase for run in runs(of) for part in run.parts for phase in part.phases):
        (statement,) = facts[phase.kernel].work.statements
        counts = dict(with_fused_quotients(statement, len(phase.divisors)).operations)
        assert (counts["quotient"], min(counts.values()) > 0) == (2, True)


def test_lanes_without_points_divide_no_integers(tmp_path: Path) -> None:
    own = "A[i][k] * A[j][k] / A[k][k] * (70 / i)"
    text = re.sub("d\\[k\\] > .*;", f"{own};", SOMETIMES).replace("1000", "40")
    made = written(in_classes(text, 32), tmp_path, *SIZES, {"N": 40}, width=32)
    assert "eatss_reciprocal<" in made.text

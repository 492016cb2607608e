"""Nests that use what others make share their launch, as selected, and do what the source does."""

from __future__ import annotations

import re
from functools import cache, reduce
from pathlib import Path

import pytest

import eatss
from eatss.base.frozen import their_names
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.lower.recipe import CodeRequest, recipe_from_dict
from eatss.program import Program
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.lower.checking import broken, checked, right

pytestmark = pytest.mark.usefixtures("analysed_once")

H200 = load_profile("h200")
LAYER = """
#ifndef NN
#define NN 300
#endif
#ifndef NO
#define NO 200
#endif
#ifndef NI
#define NI 100
#endif
void layer(TYPE Y[NN][NO], TYPE R[NN][NO], TYPE X[NN][NI], TYPE W[NO][NI], TYPE b[NO], TYPE s)
{
#pragma scop
    for (int n = 0; n < NN; n++)
        for (int o = 0; o < NO; o++) {
            Y[n][o] = 0;
            for (int i = 0; i < NI; i++)
                Y[n][o] += X[n][i] * W[o][i];
        }
    for (int n = 0; n < NN; n++)
        for (int o = 0; o < NO; o++)
            Y[n][o] = Y[n][o] + b[o] > 0 ? Y[n][o] + b[o] : 0;
    for (int o = 0; o < NO; o++)
        for (int n = 0; n < NN; n++)
            R[n][o] = s * Y[n][o] + R[n][o];
#pragma endscop
}
"""
SIZES = [{"NN": 130, "NO": 131, "NI": 40}, {"NN": 1, "NO": 1, "NI": 1}, {"NN": 3, "NO": 2, "NI": 0}]


@cache
def layer(kind: str, *, strict_fp: bool = False, fuse_rows: bool = True) -> tuple[Session, Program]:
    session = Session(LAYER.replace("TYPE", kind), code=True)
    request = CodeRequest(strict_fp=strict_fp, fuse_rows=fuse_rows)
    chosen = SelectOptions(target="cuda")
    selection = session.select(H200, chosen, strict_fp=strict_fp, fuse_rows=fuse_rows)
    return session, session.generate(session.recipe(selection, H200, request), H200, selection)


@pytest.mark.parametrize("strict_fp", [False, True])
def test_bias_activation_and_residual_are_applied_to_sums_in_registers(
    strict_fp: bool, tmp_path: Path
) -> None:
    session, program = layer("double", strict_fp=strict_fp)
    session.write(program, tmp_path / "made")
    (kernel,) = program.kernels
    assert any("one kernel of" in note for note in kernel.notes)
    right(verify(tmp_path / "made", device="cpu", sizes=SIZES))


def test_a_recipe_keeps_them_as_one_and_an_option_apart() -> None:
    _, program = layer("float")
    assert program.recipe is not None
    source = LAYER.replace("TYPE", "float")
    again = eatss.codegen(source, gpu="h200", recipe=recipe_from_dict(program.recipe))
    assert again.text == program.text
    assert len(layer("float", fuse_rows=False)[1].kernels) > len(program.kernels) == 1


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("i0 < NI; i0 +=", "i0 < NI - 1; i0 +="),  # in front of the last k-tile
        ("+ b[o] :", ":"),
    ],
)
def test_what_is_left_out_is_found(text: str, lost: str, tmp_path: Path) -> None:
    session, program = layer("double", strict_fp=False)
    session.write(program, folder := tmp_path / "made")
    sizes = [{"NN": 34, "NO": 35, "NI": 33}]
    assert broken(program, folder, text, lost, sizes) == "wrong result"


NEAREST = """
#include <math.h>
#ifndef N
#define N 16384
#endif
#ifndef M
#define M 16384
#endif
#ifndef K
#define K 32
#endif
void nearest(TYPE best[N], TYPE X[N][K], TYPE Y[M][K])
{
#pragma scop
    for (int i = 0; i < N; i++) {
        best[i] = BEGIN;
        for (int j = 0; j < M; j++) {
            TYPE d = 0;
            for (int k = 0; k < K; k++)
                d += (X[i][k] - Y[j][k]) * (X[i][k] - Y[j][k]);
            best[i] = UPDATE;
        }
    }
#pragma endscop
}
"""
MINIMUM = NEAREST.replace("BEGIN", "1e30f").replace("UPDATE", "fminf(best[i], d)")
POINTS = [{"N": 130, "M": 300, "K": 33}, {"N": 1, "M": 1, "K": 1}, {"N": 3, "M": 0, "K": 2}]


STORED = MINIMUM.replace("best[N]", "best[N], TYPE D[N][M]").replace("TYPE", "float")
STORED = STORED.replace("            best[i] =", "            D[i][j] = d;\n            best[i] =")
LOCAL = MINIMUM.replace("best[i]", "least").replace("least = 1", "TYPE least = 1")
USED = LOCAL.replace("    }\n#pragma", "        best[i] = sqrtf(least);\n    }\n#pragma")
SUM = NEAREST.replace("BEGIN", "0").replace("UPDATE", "best[i] + d")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"k = 0; k < K": "k = 1; k < K - 1"},
        {"= d;": "= sqrtf(d);", "(best[i], d)": "(best[i], D[i][j])"},
        {"#define K 32": "#define K 64", "fminf(best[i], d)": "best[i] + d"},
    ],
)
def test_what_is_selected_is_what_is_generated(changes: dict[str, str], tmp_path: Path) -> None:
    """What stands behind a sum stays in its launch for any size."""
    text = reduce(lambda text, change: text.replace(*change), changes.items(), STORED)
    selection = eatss.select(text, gpu="h200", target="cuda")
    program = checked(text, tmp_path, [{"N": 37, "M": 45, "K": 19}])
    assert program.expected is not None
    assert selection.expected is not None
    assert program.recipe is not None
    assert program.expected.time_s == selection.expected.time_s
    recipe = recipe_from_dict(program.recipe)
    assert recipe.rewriting() == selection.rewriting()
    sizes = [[one.tile_sizes for one in kind.kernels] for kind in (recipe, selection)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("text", "launches"),
    [
        (MINIMUM.replace("TYPE", "float"), 2),
        (USED.replace("TYPE", "float"), 3),  # what it comes to is used behind it
        (SUM.replace("TYPE", "double"), 2),
        (
            NEAREST.replace("TYPE", "int")
            .replace("BEGIN", "0")
            .replace("UPDATE", "d > best[i] ? d : best[i]"),
            2,
        ),
    ],
)
def test_what_reduces_distances_does_so_where_they_are_made(
    text: str, launches: int, tmp_path: Path
) -> None:
    made = checked(text, tmp_path, POINTS)
    (entry,) = made.entries
    assert "d" not in their_names(entry.temporaries)
    assert len(made.kernels) == launches


def test_vectors_follow_each_other_where_a_triangle_of_distances_is_stored(tmp_path: Path) -> None:
    text = SUM.replace("TYPE", "double").replace("j < M", "j < M - 2 * i")
    assert "eatss_load_wide" in checked(text, tmp_path, POINTS[:1]).text


def test_the_order_of_a_minimum_is_kept_where_that_is_asked() -> None:
    made = eatss.codegen(MINIMUM.replace("TYPE", "float"), gpu="h200", strict_fp=True)
    assert not re.search("eatss_(atomic|shuffle)", made.text)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("eatss_shuffle_down(best_r[ri], 8, 32)", "best_r[ri]"),
        ("eatss_shuffle_down(best_r[ri], 1, 2)", "best_r[ri]"),
        ("best_r[ri] = (1e38f * 1e38f * 0.0f);", "best_r[ri] = 0;"),
        ("eatss_atomic_fmin(&best[i], best_r[ri], best_seen[ri]);", "best[i] = best_r[ri];"),
        ("best_seen[ri] = eatss_peek(&best[i]);", "best_seen[ri] = 0;"),
    ],
)
def test_a_part_of_a_minimum_that_is_lost_is_found(text: str, lost: str, tmp_path: Path) -> None:
    made = eatss.codegen(MINIMUM.replace("TYPE", "float"), gpu="h200", output=tmp_path)
    assert broken(made, tmp_path, text, lost, POINTS[:1]) != "ok"


TRACE = """
#ifndef N
#define N 4096
#endif
void trace(float t[1], float A[N][N], float B[N][N])
{
#pragma scop
    t[0] = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            t[0] += A[i][j] * B[j][i];
#pragma endscop
}
"""


def test_a_trace_of_a_product_reads_columns_from_shared_memory(tmp_path: Path) -> None:
    sizes = [{"N": size} for size in (0, 1, 67)]
    made = checked(TRACE, tmp_path, sizes)
    for lost in ("eatss_shuffle_down(t_r, 16, 32)", "sh.B[j - j0][i - i0]"):
        assert broken(made, tmp_path, lost, "0.5f", sizes) != "ok"

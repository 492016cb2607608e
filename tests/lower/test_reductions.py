"""Reductions spread over lanes and blocks or over tiles of several loops: right, or left alone."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eatss
from eatss.analysis.layout import SplitK
from eatss.base.diagnostics import InputError
from eatss.session.session import Session
from tests.examples import examples
from tests.lower.checking import checked
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
PARTS_OF_A_WARP = SplitK(lanes=8, tile=24, chunks=5)
THREE_WARPS = SplitK(lanes=96, tile=192, chunks=2, outer=3)
"""They leave their parts to the first."""
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
    [
        ("double", "triangle", THREE_WARPS),
        ("int", "rectangle", PARTS_OF_A_WARP),
    ],
)
def test_every_operator_equals_the_original(
    kind: str, shape: str, spread: SplitK, tmp_path: Path
) -> None:
    program, _ = spread_and_verified(rows(kind, shape), tmp_path / "out", spread, *SIZES, threads=4)
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
    program, _ = spread_and_verified(SCALARS, tmp_path / "out", ONE_BLOCK, *sizes)
    said = " ".join(note for code in program.kernels for note in code.notes)
    assert all(f"the {what} over" in said for what in ("maximum", "minimum", "product"))


FEW = """
#include <math.h>
#ifndef I
#define I 3
#endif
#ifndef J
#define J 70
#endif
#ifndef K
#define K 9
#endif
#ifndef L
#define L 130
#endif
void f(double s[I], double X[I][J][K][L], double a[J], double b[K], double c[L])
{
#pragma scop
RESULT
#pragma endscop
}
"""
RESULTS = {
    "sum": "s[0] += X[0][j][0][l] * a[j] * c[l];",
    "maximum": "s[0] = s[0] < X[0][j][0][l] - c[l] ? X[0][j][0][l] - c[l] : s[0];",
}
EVERYWHERE = [
    {"I": 1, "J": 1, "K": 1, "L": 1},  # less than a block, and than a warp
    {"I": 2, "J": 71, "K": 3, "L": 129},  # no multiple of anything
    {"I": 3, "J": 4, "K": 2, "L": 1100},
]


ONE_RESULT = "for (int j = 0; j < J; j++) for (int l = 0; l < L; l++) "
A_RESULT_A_ROW = (
    "for (int i = 0; i < I; i++) { s[i] = 0; for (int j = 0; j < J; j++)"
    " for (int k = 0; k < K; k++) for (int l = 0; l < L; l++)"
    " s[i] += a[j] * b[k] * c[l] * X[i][j][k][l]; }"
)
OF_TWO_LOOPS = (
    "for (int i = 0; i < I; i++) for (int k = 0; k < K; k++) for (int j = 0; j < J; j++)"
    " for (int l = 0; l < L; l++) S[i][k] += X[i][j][k][l] * a[j];"
)


@pytest.mark.parametrize(
    ("nest", "spread", "threads", "said"),
    [
        *(
            # lanes are along what is contiguous
            (ONE_RESULT + update, (128, 256, 2, 5), None, f"the {what} over l is split over 128")
            for what, update in RESULTS.items()
        ),
        (A_RESULT_A_ROW, (64, 128, 2, 4), 2, "the sum over l is split over 64"),
        # of axes of the grid one is left
        (OF_TWO_LOOPS, (1, 64, 3, 4), 2, ""),
        (OF_TWO_LOOPS, (64, 64, 3, 4), 2, ""),
    ],
)
def test_threads_share_one_loop_of_a_sum_and_blocks_another(
    nest: str, spread: tuple[int, ...], threads: int | None, said: str, tmp_path: Path
) -> None:
    text = FEW.replace("RESULT", nest)
    text = text.replace("double s[I]", "double S[I][K]") if "S[" in nest else text
    lanes, tile, chunks, outer = spread
    own = SplitK(lanes=lanes, tile=tile, chunks=chunks, outer=outer)
    program, _ = spread_and_verified(text, tmp_path / "out", own, *EVERYWHERE, threads=threads)
    notes = " ".join(note for kernel in program.kernels for note in kernel.notes)
    assert said in notes
    assert f"over j by up to {outer} blocks" in notes
    if nest.startswith(ONE_RESULT):
        assert "eatss_load_wide(&X_row[0]" in program.text  # c stays in registers
        assert "c_row" not in program.text


VARIANCE = """
  for (int i = 0; i < I; i++) {
    s[i] = X[i][0][0][0];
    b[i] = 0;
    for (int j = 0; j < J; j++) for (int l = 0; l < L; l++)
      b[i] += (X[i][j][0][l] - s[i]) * (X[i][j][0][l] - s[i]);
  }
"""


def test_sums_behind_several_statements_have_lanes_along_what_is_contiguous() -> None:
    text = FEW.replace("RESULT", VARIANCE).replace("I 3", "I 64").replace("L 130", "L 4096")
    program = eatss.codegen(text.replace("b[K]", "b[I]"), gpu="h200")
    notes = [note for kernel in program.kernels for note in kernel.notes]
    assert any("the sum over l is split over" in note for note in notes)


SUMS_OF_ROWS = {
    "loops that are one": ("double A[32][M][N], double r[32]", "for (int b = 0; b < 32; b++)",
                           "r[b] += A[b][i][j];", True),
    "a value that is read under a condition": ("double A[M][N], double r[1]", "",
                                               "r[0] += i > 0 ? A[i - 1][j] : 0.0;", False),
    "integers": ("int A[M][N], int r[1]", "", "r[0] += A[i][j];", False),
}  # fmt: skip


@pytest.mark.parametrize("what", SUMS_OF_ROWS)
def test_rows_come_in_vectors_where_each_instance_reads_them(what: str, tmp_path: Path) -> None:
    arguments, around, update, wide = SUMS_OF_ROWS[what]
    text = (
        "#ifndef M\n#define M 3000\n#endif\n#ifndef N\n#define N 1000\n#endif\n"
        f"void f({arguments})\n{{\n#pragma scop\n{around} for (int i = 0; i < M; i++)"
        f" for (int j = 0; j < N; j++) {update}\n#pragma endscop\n}}\n"
    )
    program = checked(text, tmp_path, [{"M": m, "N": n} for m, n in ((3, 37), (5, 2050))])
    assert ("eatss_load_wide" in program.text) == wide
    assert "_row[" not in program.text or wide


def test_strict_sums_say_what_their_order_costs() -> None:
    text = FEW.replace("RESULT", ONE_RESULT + RESULTS["sum"])
    program = eatss.codegen(text, gpu="h200", strict_fp=True)
    notes = [note for kernel in program.kernels for note in kernel.notes]
    assert "the order over j and l is kept: a thread adds up 9100 terms one by one" in notes


def test_values_that_sums_share_are_computed_by_each_where_all_was_in_one_thread() -> None:
    found = eatss.codegen(
        """#include <math.h>
void f(int T, int n, float x[n], float y[n], float u[n], float v[n]) {
#pragma scop
    for (int t = 0; t < T; t++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                float r = x[j] - x[i];
                float w = 1 / (r * sqrtf(r + y[j]));
                u[i] += r * w;
                v[i] += y[j] * w;
            }
        for (int i = 0; i < n; i++) { x[i] += u[i]; y[i] += v[i]; }
    }
#pragma endscop
}
""",
        gpu="h200",
    )
    assert not any("one thread" in note for one in found.kernels for note in one.notes)


DECLARED = (
    "double fmax(double, double);\ndouble fmin(double, double);\n"
    "float fmaxf(float, float);\nfloat fminf(float, float);\n"
)
BOUNDS = ("0; {c} < M", "1; {c} < N", "{o}; {c} < M", "0; {c} <= {o}", "0; {c} < M - 2 * {o}")
RANDOM_SIZES = ({"N": 9, "M": 70}, {"N": 21, "M": 13}, {"N": 1, "M": 0})
LANES = [(32, 64), (32, 32), (8, 24), (1, 16), (64, 64), (128, 256)]


@st.composite
def nests(draw: st.DrawFn) -> str:
    """Return a program of nests, each of which begins and updates a target that stays in it."""
    kind = draw(st.sampled_from((*FLOATING, *INTEGERS)))
    updates = list({**UPDATES, **(OF_FLOATING if kind in FLOATING else OF_INTEGERS)}.values())
    lines: list[str] = []
    for number in range(draw(st.integers(1, 3))):
        outer = [f"i{number}", f"h{number}"][: draw(st.integers(0, 2))]
        inner = [f"j{number}", f"k{number}", f"l{number}"][: draw(st.integers(1, 3))]
        target = f"T{number}[{outer[0]}][{outer[-1]}]" if outer else f"T{number}[3][0]"
        known, indent = ["2"], "    "
        for counter in (*outer, *inner):
            if counter == inner[0] and draw(st.booleans()):
                lines.append(f"{indent}{target} = A[{known[-1]}][1];")
            bounds = draw(st.sampled_from(BOUNDS)).format(c=counter, o=draw(st.sampled_from(known)))
            opens = " {" if counter in outer else ""
            lines.append(f"{indent}for (int {counter} = {bounds}; {counter}++){opens}")
            known.append(counter)
            indent += "    "
        term = f"A[{draw(st.sampled_from(known))}][{inner[-1]}]"
        term = f"({term} - B[{inner[0]}])" if draw(st.booleans()) else term
        update = draw(st.sampled_from(updates)).replace("{f}", "f" * (kind == "float"))
        lines.append(indent + update.format(t=target, e=term))
        lines.append("    " + "}" * len(outer))
    targets = ", ".join(f"{kind} T{number}[M + N + 4][M + N + 4]" for number in range(3))
    body = "\n".join(lines)
    return (
        f"{DECLARED}void f(int N, int M, {kind} A[M + N + 4][M + N + 4], {kind} B[M + N + 4], "
        f"{targets})\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    )


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=nests(),
    lanes=st.sampled_from(LANES),
    chunks=st.sampled_from([1, 2, 5]),
    outer=st.sampled_from([1, 3]),
    threads=st.sampled_from([None, 4]),
)
def test_random_reductions_equal_the_original(
    text: str, lanes: tuple[int, int], chunks: int, outer: int, threads: int | None
) -> None:
    spread = SplitK(lanes=lanes[0], tile=lanes[1], chunks=chunks, outer=outer)
    with TemporaryDirectory() as folder:
        spread_and_verified(text, Path(folder), spread, *RANDOM_SIZES, threads=threads)


HEAD = """
#ifndef N
#define N 40
#endif
#ifndef M
#define M 24
#endif
double fmax(double, double);
void f(double C[N][N], double D[N][N], double A[N][M][M], double B[M][M][N], double P[N][N][M][M])
{
#pragma scop
"""
TAIL = "\n#pragma endscop\n}\n"
LOOPS = "for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)"
SUM = "for (int e = 0; e < M; e++) for (int f = 0; f < M; f++)"
PRODUCT = "A[i][e][f] * B[f][e][j]"  # the other way round in one: two loops stay two

JOINED = {
    "added": f"{LOOPS} {SUM} C[i][j] += {PRODUCT};",
    "greatest": f"{LOOPS} {SUM} C[i][j] = fmax(C[i][j], {PRODUCT});",
    "triangular": f"{LOOPS} for (int e = 0; e < M; e++) for (int f = 0; f <= e; f++)"
    f" C[i][j] += {PRODUCT};",
    "side by side": "for (int i = 0; i < N; i++) { double s = 0, t = 0;"
    f" {SUM} {{ s += A[i][e][f]; t += A[i][e][f] * f; }} D[i][0] = t / (s * s + 1); }}",
}
LEFT = {
    "seen in between": f"{LOOPS} {SUM} {{ C[i][j] += {PRODUCT}; P[i][j][e][f] = C[i][j]; }}",
    "started anew": f"{LOOPS} for (int e = 0; e < M; e++) {{ C[i][j] = 0;"
    f" for (int f = 0; f < M; f++) C[i][j] += {PRODUCT}; D[i][j] += C[i][j]; }}",
}
TILES_SIZES = [{"N": 5, "M": 7}, {"N": 18, "M": 9}, {"N": 3, "M": 1}, {"N": 4, "M": 0}]


def loops_of(text: str) -> set[str]:
    (region,) = Session(text, code=True).symbolic.regions
    return {loop.name for kernel in region.scheduled.kernels for loop in kernel.loops}


@pytest.mark.parametrize("what", ["greatest", "triangular", "side by side"])
def test_sums_over_several_loops_are_tiled(what: str, tmp_path: Path) -> None:
    text = HEAD + JOINED[what] + TAIL
    assert {"e", "f"} <= loops_of(text)
    tiles = {"i": 4, "j": 8, "e": 3, "f": 4}
    own = {name: size for name, size in tiles.items() if name in loops_of(text)}
    program = checked(text, tmp_path, TILES_SIZES, bit_equal=False, tiles=own)
    assert any(kernel.reassociates for kernel in program.kernels)


@pytest.mark.parametrize("what", ["seen in between", "started anew"])
def test_sums_whose_order_is_seen_keep_it(what: str, tmp_path: Path) -> None:
    text = HEAD + LEFT[what] + TAIL
    assert not {"e", "f"} <= loops_of(text)
    checked(text, tmp_path, TILES_SIZES)


def test_strict_sums_keep_their_order(tmp_path: Path) -> None:
    text = HEAD + JOINED["triangular"] + TAIL
    program = checked(text, tmp_path, TILES_SIZES, bit_equal=True, strict_fp=True)
    assert {dict(kernel.tile_sizes).get("e", 1) for kernel in program.kernels} == {1}


def test_tiles_that_reorder_are_refused_beside_strict_fp() -> None:
    text = HEAD + JOINED["added"] + TAIL
    with pytest.raises(InputError, match=r"EATSS-K019") as raised:
        eatss.codegen(text, gpu="h200", strict_fp=True, tiles={"e": 4})
    assert "give e=1" in str(raised.value)


@settings(max_examples=examples(2), suppress_health_check=list(HealthCheck))
@given(text=nests(), data=st.data())
def test_random_sums_are_right_in_any_tiles(
    text: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tiles = {name: data.draw(st.sampled_from([1, 2, 3, 8])) for name in sorted(loops_of(text))}
    checked(text, tmp_path_factory.mktemp("sums"), RANDOM_SIZES, tiles=tiles)

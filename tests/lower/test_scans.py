"""Running sums along rows by a warp: right in any layout, found where they are, else left alone."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eatss
from eatss.analysis.layout import SplitK
from eatss.verify.run import verify
from tests.examples import examples
from tests.lower.checking import broken, checked
from tests.lower.spreading import spread_and_verified

pytestmark = pytest.mark.usefixtures("kept", "analysed_once")

UPDATES = {
    "float": (
        "{t} = {b} + {e};",
        "{t} = {b} - {e};",
        "{t} = {b} * (1 + 0.001f * {e});",
        "{t} = fmaxf({b}, {e});",
        "{t} = {e} > {b} ? {e} : {b};",
    ),
    "double": ("{t} = {e} + {b};", "{t} = {b} * (1 + 0.001 * {e});", "{t} = fmin({e}, {b});"),
    "int": ("{t} = {b} + {e};", "{t} = {b} ^ {e};", "{t} = {b} > {e} ? {b} : {e};"),
    "unsigned long": ("{t} = {b} * {e};", "{t} = {b} | {e};"),
}
HEAD = "float fmaxf(float, float);\ndouble fmin(double, double);\n"
SIZES = ({"N": 5, "M": 300}, {"N": 9, "M": 33}, {"N": 3, "M": 3}, {"N": 1, "M": 0})


def program(kind: str, body: str, *, dims: str = "[N][M]") -> str:
    return (
        f"{HEAD}void f(int N, int M, {kind} s{dims}, {kind} x{dims}, {kind} w[N + M])\n"
        f"{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    )


def random_scan(seed: int) -> str:
    """Return running sums of rows, forwards or backwards, with or without a start of their own."""
    dice = random.Random(seed)
    kind = dice.choice([*UPDATES])
    around, rows = dice.choice([("", "[i]"), ("for (int h = 0; h < N; h++) ", "[h][i]")])
    loop, before = dice.choice(
        [
            (f"int j = {dice.choice(['1', '2', 'i + 1'])}; j < {dice.choice(['M', 'M - i'])}; j++",
             "j - 1"),
            ("int j = M - 2; j >= 0; j--", "j + 1"),
        ]
    )  # fmt: skip
    terms = [f"x{rows}[j]", f"x{rows}[j] * w[j]", "w[i]", f"x{rows}[M - 1 - j]", f"s{rows}[j]"]
    term = dice.choice(terms)
    update = dice.choice(UPDATES[kind]).format(t=f"s{rows}[j]", b=f"s{rows}[{before}]", e=term)
    start = dice.choice(["", f"s{rows}[0] = x{rows}[0];"])
    body = f"  {around}for (int i = 0; i < N; i++) {{ {start} for ({loop}) {update} }}"
    return program(kind, body, dims="[N]" * rows.count("[") + "[M]")


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    tile=st.sampled_from([32, 96, 256]),
    threads=st.sampled_from([None, 4, 1]),
)
def test_random_running_sums_equal_the_original(
    seed: int, tile: int, threads: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spread = SplitK(lanes=32, tile=tile, chunks=2)
    folder = tmp_path_factory.mktemp("scan")
    found, _ = spread_and_verified(random_scan(seed), folder, spread, *SIZES, threads=threads)
    assert any("is shared by 32 threads" in note for one in found.kernels for note in one.notes)
    assert ("eatss_before_tile" in found.text) == (threads == 1)


USES = (  # steps of a row, forwards or backwards, and what uses them at once
    ("+", 1, "t += x[i][j]; y[i][j] = t / (j + 1);"),
    ("-", None, "t -= x[i][j] * w[j]; x[i][j] = t;"),
    ("+", None, "if (t > w[j]) y[i][j] = t - w[i]; t = x[i][j] > t ? x[i][j] : t;"),
    ("-", 1, "y[i][j] = t; t += x[i][j];"),
    ("-", 4, "s[i][j] = q; t += x[i][j]; q += w[j]; y[i][j] = t - q;"),
    ("+", None, "s[i][j] = s[i][j - 1] + x[i][j]; y[i][j] = s[i][j] * s[i][j - 1];"),
)


def with_steps(kind: str, *bodies: str, loop: str = "int j = 1; j < M - 1; j++") -> str:
    """Return rows whose steps have values of their own, used in the same step."""
    nests = "\n".join(
        f"  for (int i = 0; i < N; i++) {{\n    {kind} t = w[i], q = w[N - 1 - i];\n"
        f"    for ({loop}) {{ {one} }}\n  }}"
        for one in bodies
    )
    return program(kind, nests).replace(f"{kind} w[", f"{kind} y[N][M], {kind} w[")


@pytest.mark.parametrize(("way", "threads", "body"), USES)
def test_what_uses_steps_runs_behind_them(
    way: str, threads: int | None, body: str, tmp_path: Path
) -> None:
    loop = "int j = M - 2; j >= 0; j--" if way == "-" else "int j = 1; j < M; j++"
    spread, text = SplitK(lanes=32, tile=96, chunks=2), with_steps("float", body, loop=loop)
    found, _ = spread_and_verified(text, tmp_path / "out", spread, *SIZES, threads=threads)
    assert any("is shared by 32 threads" in note for one in found.kernels for note in one.notes)


LEFT_USES = (
    "t += x[i][j]; y[i][j] = t + y[i][j - 1];",  # another step of what is written
    "t += x[i][j]; y[i][j] = t; x[i][j + 1] = y[i][j];",
    "x[i][j] = w[j]; t += x[i][j];",  # comes first
    "t += x[i][j]; q += t;",
)


LEFT = (
    "if (j != 40) s[i][j] = s[i][j - 1] + x[i][j];",
    "s[i][j] = s[i][j - 2] + x[i][j];",
    "s[i][j] = 0.5 * s[i][j - 1] + x[i][j];",
    "s[i][j] = s[i][j - 1] + s[i][0];",
)


NEST = "  for (int i = 0; i < N; i++)\n    for (int j = 2; j < M; j++)\n      "


@pytest.mark.parametrize(
    "text",
    [
        with_steps("double", *(f"{one} y[i][j] += t - q;" for one in LEFT_USES)),
        program("double", "\n".join(NEST + one for one in LEFT)),
    ],
)
def test_other_recurrences_are_left_alone(text: str, tmp_path: Path) -> None:
    spread = SplitK(lanes=32, tile=64, chunks=1)
    found, _ = spread_and_verified(text, tmp_path / "out", spread, {"N": 5, "M": 90})
    assert not any("running" in note for one in found.kernels for note in one.notes)


RUNNING = program(
    "double", "  for (int i = 0; i < N; i++)\n    for (int j = 1; j < M; j++)\n"
    "      s[i][j] = s[i][j - 1] + x[i][j];"
)  # fmt: skip


def test_tiles_of_a_user_have_vectors_as_long_as_they_fit(tmp_path: Path) -> None:
    wide = eatss.codegen(RUNNING, gpu="h200")
    assert "s_r[2 * rv" in wide.text
    narrow = checked(RUNNING, tmp_path, [{"N": 5, "M": 150}], tiles={"j": 8})
    assert "s_r[2 * rv" not in narrow.text
    assert not any("not as predicted" in one for own in narrow.kernels for one in own.notes)


EARLIER = with_steps("float", USES[3][2])
BROKEN = {
    "a step before taken for its own": ("t_r_2[4 * rv + (e + 1)] = t_r[4 * rv + e];", ""),
    "nothing passed on": ("s_r_1 = eatss_from_lane(s_r_ends[rv], 31);", ""),
    "a step of a vector left out": ("s_r_front += s_r[2 * rv + (e + 1)];", ""),
    "the vector of the lane before it": ("1, 32, s_r_front)", "0, 32, s_r_front)"),
    "nothing in front": ("s_r_1 = s[i * M];", "s_r_1 = 0;"),
}


@pytest.mark.parametrize("what", [*BROKEN])
def test_a_broken_running_sum_is_reported(what: str, tmp_path: Path) -> None:
    text, tile = (EARLIER, 128) if "its own" in what else (RUNNING, 64)
    spread = SplitK(lanes=32, tile=tile, chunks=1)
    sizes = {"N": 5, "M": 150}
    whole, _ = spread_and_verified(text, tmp_path / "out", spread, sizes, threads=2)
    assert broken(whole, tmp_path / "out", *BROKEN[what], [sizes]) == "wrong result"


def test_what_is_no_number_in_front_of_a_row_stays() -> None:
    text = (
        "void f(float s[900][4096], float x[900][4096])\n{\n#pragma scop\n"
        "for (int i = 0; i < 900; i++) for (int j = 1; j < 4096; j++)\n"
        "    s[i][j] = x[i][j] > s[i][j - 1] ? x[i][j] : s[i][j - 1];\n#pragma endscop\n}\n"
    )
    made = eatss.codegen(text, gpu="h200").text
    assert "s_r_front = s_r_1;\n            s_r_front = eatss_larger(s_r_front, s_r_ends" in made


# Chunks -------------------------------------------------------------------------------------


def chunked(body: str, kind: str = "float", **arrays: str) -> str:
    given = ", ".join(f"{kind} {name}{extents}" for name, extents in arrays.items())
    sizes = "#ifndef N\n#define N 40000\n#endif\n#ifndef C\n#define C 3\n#endif\n"
    return f"{HEAD}{sizes}void f({given})\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"


DECAY = chunked("for (int i = 1; i < N; i++) s[i] = 0.5f * s[i - 1] + x[i];", s="[N]", x="[N]")
AVERAGE = chunked(
    "for (int i = 1; i < N; i++) for (int c = 0; c < C; c++)\n"
    "  s[i][c] = w[c] * s[i - 1][c] + (1 - w[c]) * x[i][c];",
    s="[N][C]",
    x="[N][C]",
    w="[C]",
)
SECOND = chunked(
    "for (int i = N - 3; i >= 0; i--)\n"
    "  s[i] = 0.5 * s[i + 2] - 0.5 * s[i + 1] + x[i] - 0.5 * x[i + 1];",
    "double",
    s="[N]",
    x="[N]",
)
FOUR = chunked(
    """
    for (int i = 2; i < N; i++) y[i] = 0.5 * y[i - 1] - 0.25 * y[i - 2] + x[i];
    for (int i = N - 3; i >= 0; i--) z[i] = 0.5 * z[i + 1] - 0.25 * z[i + 2] + x[i + 1];
    for (int i = 2; i < N; i++) u[i] = 0.5 * u[i - 1] - 0.25 * u[i - 2] + y[i] + z[i];
    for (int i = N - 3; i >= 0; i--) v[i] = 0.5 * v[i + 1] - 0.25 * v[i + 2] + y[i + 1];
    for (int i = 0; i < N; i++) w[i] = u[i] + v[i];""",
    "double",
    **dict.fromkeys("xyzuvw", "[N]"),
)
ENDS = {"of several": {"N": 1600}, "of one": {"N": 257}, "of none": {"N": 30}, "nothing": {"N": 0}}


@pytest.mark.parametrize("text", [DECAY, AVERAGE, SECOND])
def test_recurrences_without_rows_run_in_chunks(text: str, tmp_path: Path) -> None:
    made = eatss.codegen(text, gpu="h200", output=tmp_path)
    statements = {name for one in made.kernels for name in one.statements}
    assert {"S0", "S0_all", "S0_ends"} <= statements
    assert any(one.reassociates for one in made.kernels)
    found = verify(tmp_path, device="cpu", sizes=[*ENDS.values()])
    assert found.status == "ok"
    assert not any(one.loose for one in found.results)
    assert found.coverage is not None
    assert found.coverage.changed > 0


def test_many_recurrences_of_higher_order_do_not_take_a_regions_time(tmp_path: Path) -> None:
    made = eatss.codegen(FOUR, gpu="h200", output=tmp_path)
    statements = {name for one in made.kernels for name in one.statements}
    assert {f"S{k}" for k in range(5)} <= statements
    assert verify(tmp_path, device="cpu", sizes=[ENDS["of several"]]).status == "ok"


def test_chunks_of_a_selection_are_those_of_its_recipe() -> None:
    selection = eatss.select(DECAY, gpu="h200", target="cuda")
    assert [(one.statement, one.length) for one in selection.chunks] == [
        ("S0", 64),
        ("S0_ends", 32),
    ]
    with pytest.raises(eatss.InputError, match="EATSS-K019"):
        eatss.codegen(DECAY, gpu="h200", selection=selection, strict_fp=True)
    made = eatss.codegen(DECAY, gpu="h200", selection=selection)
    assert made.text == eatss.codegen(DECAY, gpu="h200").text


# Tiles of a row ------------------------------------------------------------------------------

SUM = chunked("for (int i = 1; i < N; i++) s[i] = s[i - 1] + x[i];", s="[N]", x="[N]")
BACK = chunked(
    "for (int c = 0; c < C; c++) for (int i = N - 2; i >= 0; i--)\n"
    "  s[c][i] = fmaxf(s[c][i + 1], x[c][i]);",
    s="[C][N]",
    x="[C][N]",
)


@pytest.mark.parametrize("text", [SUM, BACK])
def test_tiles_of_long_rows_look_back_in_one_launch(text: str, tmp_path: Path) -> None:
    made = checked(text, tmp_path, [*ENDS.values()])
    assert len(made.kernels) == made.text.count("eatss_next_tile(&") == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (RUNNING, "eatss_lane_below("),
        (SUM, "eatss_next_tile(&"),
        (DECAY, ""),
        (SECOND, ""),
    ],
)
def test_strict_sums_of_floats_keep_their_order(text: str, part: str) -> None:
    strict = eatss.codegen(text, gpu="h200", strict_fp=True)
    assert {name for one in strict.kernels for name in one.statements} == {"S0"}
    assert not any(one.reassociates for one in strict.kernels)
    if part:
        assert part not in strict.text
        integers = re.sub("(double|float) (?=[sx])", "int ", text)
        assert part in eatss.codegen(integers, gpu="h200", strict_fp=True).text


def test_running_sums_of_one_array_have_words_of_their_own(tmp_path: Path) -> None:
    body = (
        "for (int i = 1; i < N; i++) s[i] = s[i - 1] + x[i];\n"
        "for (int i = 0; i < N; i++) y[i] = s[i] * s[N - 1 - i];\n"
        "for (int i = 1; i < N; i++) s[i] = s[i - 1] + y[N - 1 - i];"
    )
    made = checked(chunked(body, s="[N]", x="[N]", y="[N]"), tmp_path, [{"N": 1600}])
    assert made.text.count("eatss_next_tile(&") == 2


CHUNKS = {
    "the element before is another": ("* s[64 * i_chunk + i] +", "* s[64 * i_chunk + i + 1] +"),
    "a factor is left out": ("0.5f * s_chunks_r + sh.x", "s_chunks_r + sh.x"),
}
TWO = {
    "an element before is another": (
        "* s[N - 2048 * i_chunk_chunk - 2] +",
        "* s[N - 2048 * i_chunk_chunk - 1] +",
    ),
    "a value is of another step": ("-0.5 * s_chunks_1_r", "-0.5 * s_chunks_r"),
    "a factor is of another": ("= sh.s_factors[", "= sh.s_factors_1["),
    "ends are of another": ("= s_ends_factors[i_chunk_chunk", "= s_ends_factors_1[i_chunk_chunk"),
}
TILES = {
    "nothing is before": ("block, 0, ", "block, block, "),
    "what is before is left out": ("s_r_1 = eatss_before_tile(", "eatss_before_tile("),
    "states lie a place too far": ("&f_k0_tiles[1], run", "&f_k0_tiles[3], run"),
    "the element in front is of all tiles": ("if (block == 0) {", "{"),
}


@pytest.mark.parametrize(("text", "changes"), [(DECAY, CHUNKS), (SECOND, TWO), (SUM, TILES)])
def test_broken_chunks_and_tiles_are_reported(
    text: str, changes: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    program = eatss.codegen(text, gpu="h200", output=tmp_path)
    for what, change in changes.items():
        assert broken(program, tmp_path, *change, [{"N": 9000}]) != "ok", what


def test_a_loop_of_one_tile_has_no_code_for_another() -> None:
    text = (
        "#ifndef N\n#define N 100000\n#endif\nvoid f(double s[64], double x[N][64])\n{\n"
        "#pragma scop\nfor (int b = 0; b < N; b++) for (int k = 0; k < 64; k++)\n"
        "    s[k] += x[b][k];\n#pragma endscop\n}\n"
    )
    assert "k0 == 0" not in eatss.codegen(text, gpu="h200").text

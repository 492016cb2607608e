"""Nests of four and more parallel loops: all are mapped, and compute what the C computes."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.analysis.layout import grid_axes, thread_axes
from eatss.api import codegen, select
from eatss.base.diagnostics import InputError, InternalError, SourceSpan
from eatss.base.options import parse_blocks
from eatss.lower import lanes as digits_module
from eatss.lower.assumptions import within
from eatss.lower.lanes import digits
from eatss.lower.recipe import Block
from eatss.program import (
    Constant,
    HostIf,
    HostLoop,
    IntExpr,
    Launch,
    Name,
    Program,
    evaluate,
    save_program,
)
from eatss.verify import Verification, verify
from tests.examples import examples

pytestmark = pytest.mark.usefixtures("analysed_once")

LAYER = (Path(__file__).parent / "golden" / "convolution-layer.c").read_text(encoding="utf-8")

CONTRACTION = """
#ifndef N
#define N 48
#endif
void contract(double C[N][N][N][N], double A[N][N][N][N], double B[N][N][N][N])
{
#pragma scop
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++)
      for (int c = 0; c < N; c++)
        for (int d = 0; d < N; d++)
          for (int e = 0; e < N; e++)
            for (int f = 0; f < N; f++)
              C[a][b][c][d] += A[a][e][b][f] * B[e][c][f][d];
#pragma endscop
}
"""

SUM_OF_FOUR = """
#ifndef N
#define N 48
#endif
void sums(double C[N][N][N][N], double A[N][N][N][N][N])
{
#pragma scop
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++)
      for (int c = 0; c < N; c++)
        for (int d = 0; d < N; d++)
          for (int e = 0; e < N; e++)
            C[a][b][c][d] += A[a][b][c][d][e];
#pragma endscop
}
"""
"""Four loops to map and one that is not, found quickly: the threads are what is tried."""

LAST_IS_NOT_CONTIGUOUS = """
#ifndef N
#define N 40
#endif
void turned(float B[N][N][N][N], float A[N][N][N][N])
{
#pragma scop
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++)
      for (int c = 0; c < N; c++)
        for (int d = 0; d < N; d++)
          B[a][c][d][b] = 2.0f * A[d][c][a][b];
#pragma endscop
}
"""

INSIDE_A_HOST_LOOP = """
#ifndef N
#define N 12
#endif
void inside(int A[N][N][N][N])
{
#pragma scop
  for (int t = 0; t < N; t++)
    for (int a = t + 1; a < N; a++)
      for (int b = t + 1; b < N; b++)
        for (int c = t + 1; c < N; c++)
          for (int d = t + 1; d < N; d++)
            A[a][b][c][d] -= A[t][b][c][d] * A[a][t][c][d] * A[a][b][t][d] * A[a][b][c][t];
#pragma endscop
}
"""

MANY_TILES = """
void many(int N, int M, double C[N][N][M][M])
{
#pragma scop
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++)
      for (int c = 0; c < M; c++)
        for (int d = 0; d < M; d++)
          C[a][b][c][d] = 1.0;
#pragma endscop
}
"""


SWEEP = """
  for (int i = 1; i < N - 1; i++)
    for (int j = 1; j < N - 1; j++)
      for (int k = 1; k < N - 1; k++)
        for (int l = 1; l < N - 1; l++)
          TO[i][j][k][l] = 0.5 * FROM[i][j][k][l] +
                           0.0625 * (FROM[i - 1][j][k][l] + FROM[i + 1][j][k][l] +
                                     FROM[i][j - 1][k][l] + FROM[i][j + 1][k][l] +
                                     FROM[i][j][k - 1][l] + FROM[i][j][k + 1][l] +
                                     FROM[i][j][k][l - 1] + FROM[i][j][k][l + 1]);
"""

TWO_SWEEPS = f"""
#ifndef N
#define N 80
#endif
void sweep(double A[N][N][N][N], double B[N][N][N][N])
{{
#pragma scop
{SWEEP.replace("TO", "B").replace("FROM", "A")}
{SWEEP.replace("TO", "A").replace("FROM", "B")}
#pragma endscop
}}
"""


def verified(
    text: str,
    folder: Path,
    sizes: Sequence[Mapping[str, int]],
    *,
    tiles: Mapping[str, int] | None = None,
    block: Block = (),
) -> tuple[Program, Verification]:
    """Return the program of a C text, and what the CPU says of it."""
    program = codegen(text, gpu="h200", output=folder, tiles=tiles, block=block, force=True)
    return program, verify(folder, device="cpu", sizes=sizes)


# -- random nests --------------------------------------------------------------------------


def nest(seed: int) -> tuple[str, list[str]]:
    """Return the C text of a nest of four to six parallel loops, and the names of its loops."""
    rng = random.Random(seed)
    depth = rng.choice([4, 4, 4, 5, 5, 6])
    serial = ["p", "q"][: rng.choice([0, 1, 1, 2]) if depth < 6 else rng.choice([0, 1])]
    parallel = list("abcdef"[:depth])
    size = {name: rng.choice("NM") for name in parallel + serial}
    element = rng.choice(["int", "float", "double"])
    extent = "[N + M + 2]"
    written = parallel[:]
    rng.shuffle(written)

    def subscript(name: str) -> str:
        return rng.choice([f"[{name}]"] * 5 + [f"[{name} + 1]", f"[{size[name]} - {name}]"])

    def reading(array: str, names: list[str]) -> str:
        return array + "".join(subscript(name) for name in names)

    dims: dict[str, int] = {"C": depth}
    target = "C" + "".join(f"[{name}]" for name in written)
    order = parallel[:]
    for name in serial:  # anywhere: isl finds the parallel loops
        order.insert(rng.randint(1, len(order)), name)
    terms = []
    for array in "AB"[: rng.choice([1, 2])]:
        names = rng.sample([*parallel, *serial], rng.randint(1, min(4, depth)))
        dims[array] = len(names)
        terms.append(reading(array, names))
    value = f" {rng.choice('+*')} ".join(terms)
    sign = "+=" if serial else rng.choice(["=", "+="])
    lines = []
    triangular = rng.choice([False, False, False, True])
    for at, name in enumerate(order):
        low = "0"
        if triangular and at == 1 and name in parallel and order[0] in parallel:
            low, size[name] = order[0], size[order[0]]
        lines.append(f"{'  ' * at}for (int {name} = {low}; {name} < {size[name]}; {name}++)")
    lines.append(f"{'  ' * len(order)}{target} {sign} {value};")
    if serial and rng.random() < 0.4:  # sums that start anew
        inner = [line for line, name in zip(lines, order, strict=False) if name in parallel]
        lines = [*inner, f"{target} = {reading('A', ['a'] * dims['A'])};", *lines]
    arguments = ", ".join(f"{element} {name}{extent * n}" for name, n in dims.items())
    if rng.random() < 0.5:
        head = "#ifndef N\n#define N 5\n#endif\n#ifndef M\n#define M 3\n#endif\n"
        head += f"void f({arguments})"
    else:
        head = f"void f(int N, int M, {arguments})"
    body = "\n".join(lines)
    return f"{head}\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n", parallel + serial


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 8])
def test_a_nest_of_many_parallel_loops_computes_the_same(seed: int, tmp_path: Path) -> None:
    check_nest(seed, tmp_path)


@pytest.mark.long
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_more_nests_of_many_parallel_loops_compute_the_same(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_nest(seed, tmp_path_factory.mktemp("nest"))


def check_nest(seed: int, folder: Path) -> None:
    """Verify a random nest with its own sizes or random ones, at sizes around its tiles."""
    text, loops = nest(seed)
    rng = random.Random(seed + 1)
    tiles: dict[str, int] = {}
    block: dict[str, int] = {}
    if rng.random() < 0.7:
        tiles = {name: rng.choice([1, 2, 2, 3, 4]) for name in loops}
        if rng.random() < 0.7:
            chosen = rng.sample([name for name in loops if name < "p"], rng.randint(1, 4))
            block = {name: rng.choice([1, 2, 3, 4]) for name in chosen}
    kernels = select(
        text, gpu="h200", model="eatss"
    ).kernels  # some serial loops are below the band
    banded = {name for kernel in kernels for name in kernel.loops}
    tiles = {name: size for name, size in tiles.items() if name in banded}
    program = codegen(text, gpu="h200", output=folder, tiles=tiles, block=block, force=True)
    sizes = [{"N": n, "M": m} for n, m in ((1, 1), (2, 3), (3, 1), (5, 3), (3, 5), (0, 2))]
    found = verify(folder, device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", ""), text
    assert found.results[-1].compared > 0
    for kernel in program.kernels:
        assert not any(note.startswith("one thread") for note in kernel.notes), (text, kernel.notes)


# -- what is mapped, and where --------------------------------------------------------------


def kernel_of(program: Program) -> str:
    """Return the text of the first kernel."""
    begin = program.text.index("__launch_bounds__")
    return program.text[begin : program.text.index("\n}\n", begin)]


def launches(program: Program) -> list[Launch]:
    """Return the launches of a program without host loops."""
    found: list[Launch] = []
    for step in program.entries[0].body:
        inside = step.body if isinstance(step, HostIf) else (step,)
        found += [inner for inner in inside if isinstance(inner, Launch)]
    return found


@pytest.mark.long
def test_a_convolution_layer_has_all_four_loops_in_its_grid(tmp_path: Path) -> None:
    sizes = [{"N": n, "K": k, "C": c, "H": h, "W": w} for n, k, c, h, w in (
        (1, 1, 1, 1, 1), (2, 33, 3, 5, 7), (1, 32, 17, 8, 9), (3, 3, 2, 31, 2), (0, 3, 2, 5, 5),
    )]  # fmt: skip
    program, found = verified(LAYER, tmp_path, sizes)
    assert (found.status, found.message) == ("ok", "")
    (kernel,) = program.kernels
    tiles = dict(kernel.tile_sizes)
    values = {"N": 64, "K": 64, "C": 64, "H": 56, "W": 56}
    extents = {"n": 64, "k": 64, "y": 56, "x": 56}
    (launch,) = launches(program)
    blocks = [evaluate(extent, values) for extent in launch.grid]
    counts = {loop: -(-extent // tiles[loop]) for loop, extent in extents.items()}
    assert blocks == [counts["y"] * counts["x"], counts["k"], counts["n"]]
    assert "y and x share the blocks along x" in kernel.notes
    text = kernel_of(program)
    assert "const int tx = threadIdx.x;" in text
    assert re.search(r"const int x0 = \d+ \* \(block % eatss_floordiv\(W", text)
    assert re.search(r"const int y0 = \d+ \* \(block / eatss_floordiv\(W", text)


@pytest.mark.long
def test_two_sweeps_in_four_dimensions_take_seconds(tmp_path: Path) -> None:
    began = time.process_time()
    program, found = verified(TWO_SWEEPS, tmp_path, [{"N": 5}, {"N": 9}])
    assert time.process_time() - began < 60  # isl took minutes for loops that share one size
    assert found.status == "ok"
    assert [parameter.name for parameter in program.parameters] == ["N"]
    assert len(program.kernels) == 2


@pytest.mark.long
def test_the_contiguous_loop_of_a_contraction_is_along_x(tmp_path: Path) -> None:
    sizes = [{"N": n} for n in (1, 2, 3, 5, 7)]
    program, found = verified(CONTRACTION, tmp_path, sizes)
    assert (found.status, found.message) == ("ok", "")
    assert "const int lane_d = thread % 32 % 4;" in kernel_of(program)
    assert {"a", "b", "c", "d"} <= dict(program.kernels[0].tile_sizes).keys()


def test_the_contiguous_loop_is_along_x_where_it_is_not_the_last(tmp_path: Path) -> None:
    program, found = verified(
        LAST_IS_NOT_CONTIGUOUS,
        tmp_path,
        [{"N": 5}, {"N": 1}],
        block={"b": 4, "d": 2},
        tiles={"b": 4, "d": 2},
    )
    assert (found.status, found.message) == ("ok", "")
    text = kernel_of(program)
    assert "const int tb = threadIdx.x;" in text
    assert "const int td = threadIdx.y;" in text


def test_the_blocks_along_x_shrink_with_a_host_loop(tmp_path: Path) -> None:
    program, found = verified(
        INSIDE_A_HOST_LOOP,
        tmp_path,
        [{"N": n} for n in (1, 2, 5, 7)],
        tiles={"a": 2, "b": 3, "c": 2, "d": 4},
    )
    assert (found.status, found.message) == ("ok", "")
    (outer,) = program.entries[0].body
    assert isinstance(outer, HostIf)
    (loop,) = outer.body
    assert isinstance(loop, HostLoop)
    (launch,) = loop.body
    assert isinstance(launch, Launch)
    extents = [evaluate(launch.grid[0], {"N": 9, "t": t}) for t in range(8)]
    assert extents == [15, 12, 12, 6, 6, 4, 4, 1]


def windows_of_any_size() -> str:
    filters = LAYER.replace("[3][3]", "[R][S]").replace("r < 3", "r < R").replace("s < 3", "s < S")
    return "#ifndef R\n#define R 3\n#endif\n#ifndef S\n#define S 3\n#endif\n" + filters.replace(
        "[H + 2][W + 2]", "[H + R][W + S]"
    )


@pytest.mark.long
def test_windows_of_any_size_are_staged_tile_by_tile(tmp_path: Path) -> None:
    sizes = [{"N": 2, "K": 3, "C": 5, "H": 7, "W": 33, "R": 5, "S": 2}]
    program, found = verified(windows_of_any_size(), tmp_path, sizes)
    assert (found.status, found.message) == ("ok", "")
    (kernel,) = program.kernels
    assert {"r", "s"} <= dict(kernel.tile_sizes).keys()
    assert kernel.shared_bytes > 0


def test_a_copy_of_a_size_the_code_does_not_know_is_not_selected(tmp_path: Path) -> None:
    target = "out[n][k][y][x]"
    text = windows_of_any_size().replace(f"{target} +=", f"{target} = 0.5 * {target} +")
    sizes = [{"N": 2, "K": 3, "C": 5, "H": 7, "W": 33, "R": 3, "S": 2}]
    program, found = verified(text, tmp_path, sizes)
    assert (found.status, found.message) == ("ok", "")
    (kernel,) = program.kernels
    assert kernel.shared_bytes == 0
    assert not any("stays in L1" in note for note in kernel.notes)
    assert kernel.block[0] >= 4  # what is not staged is read by whole sectors of neighbours


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(block / ", "(block % "),
        ("(block % ", "(block / "),
        ("= threadIdx.z", "= threadIdx.y"),
    ],
)
def test_verification_sees_a_block_that_takes_the_wrong_tile(
    old: str, new: str, tmp_path: Path
) -> None:
    tiles = {"n": 1, "k": 4, "y": 2, "x": 4}
    program = codegen(LAYER, gpu="h200", tiles=tiles, block={"k": 2, "y": 2, "x": 2})
    assert old in program.text
    broken = replace(program, text=program.text.replace(old, new, 1))
    save_program(broken, tmp_path)
    (tmp_path / program.original.file).write_text(LAYER, encoding="utf-8")
    sizes = [{"N": 2, "K": 5, "C": 2, "H": 7, "W": 9}]
    assert verify(tmp_path, device="cpu", sizes=sizes, timeout_s=30.0).status != "ok"


def test_digits_that_miss_a_tile_are_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    right = digits_module._digits
    monkeypatch.setattr(
        digits_module, "_digits", lambda number, extents: right(number, extents)[::-1]
    )
    with pytest.raises(InternalError) as caught:
        codegen(LAYER, gpu="h200")
    assert caught.value.diagnostics[0].code == "EATSS-K901"


@pytest.mark.long
def test_a_sum_over_few_points_of_four_loops_is_split_over_blocks(tmp_path: Path) -> None:
    text = LAYER.replace("[3][3]", "[1][1]").replace("< 3;", "< 1;").replace("C 32", "C 4096")
    text = text.replace("H 28", "H 3").replace("W 28", "W 3").replace("K 64", "K 2")
    sizes = [{"N": 2, "K": 3, "C": 700, "H": 3, "W": 5}, {"N": 1, "K": 1, "C": 1, "H": 1, "W": 1}]
    program, found = verified(text, tmp_path, sizes)
    assert (found.status, found.message) == ("ok", "")
    assert any("the sum over c is split" in note for k in program.kernels for note in k.notes)


@pytest.mark.long
def test_several_loops_share_the_threads_along_z(tmp_path: Path) -> None:
    block = {"a": 2, "b": 3, "c": 2, "d": 4}
    tiles = {"a": 4, "b": 3, "c": 4, "d": 4}
    program, found = verified(
        CONTRACTION, tmp_path, [{"N": n} for n in (1, 4, 5)], tiles=tiles, block=block
    )
    assert (found.status, found.message) == ("ok", "")
    assert program.kernels[0].block == (4, 2, 6)
    assert "a and b share the threads along z" in program.kernels[0].notes
    text = kernel_of(program)
    assert "const int ta = threadIdx.z / 3;" in text
    assert "const int tb = threadIdx.z % 3;" in text


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("block", "expected"),
    [((2, 4), (4, 2, 1)), ((3, 2, 4), (4, 2, 3)), ({"d": 8}, (8, 1, 1)),
     ({"kernel0": {"a": 2, "d": 8}}, (8, 2, 1)), ({"": (2, 4), "a": 2}, (1, 2, 1))],
)  # fmt: skip
def test_a_block_is_given_in_the_order_of_the_loops_or_by_name(
    block: Block, expected: tuple[int, int, int]
) -> None:
    tiles = dict.fromkeys("abcd", 8)
    program = codegen(SUM_OF_FOUR, gpu="h200", tiles=tiles, block=block)
    assert program.kernels[0].block == expected


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("block", "code"),
    [({"z": 2}, "EATSS-K001"), ({"e": 2}, "EATSS-K004"), ({"a": 0}, "EATSS-K003"),
     ({"a": 1025}, "EATSS-K003"), ({"a": 16, "b": 8, "c": 2}, "EATSS-K003"),
     ({"kernel0": {"z": 2}}, "EATSS-K004"), ({"kernel7": {"a": 2}}, "EATSS-K013")],
)  # fmt: skip
def test_threads_that_cannot_be_are_refused(block: Block, code: str) -> None:
    with pytest.raises(InputError) as caught:
        codegen(SUM_OF_FOUR, gpu="h200", tiles=dict.fromkeys("abcde", 64), block=block)
    assert caught.value.diagnostics[0].code == code


def test_the_command_line_takes_blocks_in_order_and_by_loop() -> None:
    assert parse_blocks(["8,32", "k1:2,16"]) == {"": (8, 32), "k1": (2, 16)}
    assert parse_blocks(["y=8,x=32", "k=2"]) == {"y": 8, "x": 32, "k": 2}
    assert parse_blocks(["k1:y=8", "k1:x=32"]) == {"k1": {"y": 8, "x": 32}}
    for text in ("8,x=32", "x=", "x=a", "x=8,"):
        with pytest.raises(InputError) as caught:
            parse_blocks([text])
        assert caught.value.diagnostics[0].code == "EATSS-C006"


# -- shared axes ----------------------------------------------------------------------------


def test_axes_of_threads_and_blocks() -> None:
    assert thread_axes((4,)) == ("x",)
    assert thread_axes((4, 1, 8)) == ("z", "y", "x")
    assert thread_axes((4, 1, 8, 1)) == ("z", "z", "y", "x")
    assert thread_axes((4, 2, 8, 32, 1)) == ("z", "z", "z", "y", "x")
    assert grid_axes(2) == ("y", "x")
    assert grid_axes(3) == ("z", "y", "x")
    assert grid_axes(5) == ("z", "y", "x", "x", "x")


@pytest.mark.parametrize("extents", [(), (3,), (1, 1), (2, 3), (4, 1, 5), (2, 3, 4, 5), (1, 2, 1)])
def test_every_choice_of_digits_has_one_number(extents: tuple[int, ...]) -> None:
    span = SourceSpan(file="f.c", line=1, column=1, end_line=1, end_column=2)
    found = digits(Name("block"), [Constant(size) for size in extents], span)
    total = 1
    for size in extents:
        total *= size
    met = [tuple(evaluate(d, {"block": number}) for d in found) for number in range(total)]
    assert met == list(product(*(range(size) for size in extents)))


def test_more_blocks_than_a_card_launches_are_refused(tmp_path: Path) -> None:
    program = codegen(MANY_TILES, gpu="h200", output=tmp_path, tiles=dict.fromkeys("abcd", 1),
                      index_bits=64)  # fmt: skip
    (number,) = [
        number for number, assumption in enumerate(program.entries[0].assumptions)
        if "2^31 - 1 blocks" in assumption.message
    ]  # fmt: skip
    condition = program.entries[0].assumptions[number].condition
    assert evaluate(condition, {"N": 1, "M": 46340})
    assert not evaluate(condition, {"N": 1, "M": 46341})
    assert evaluate(condition, {"N": 1, "M": -5})
    found = verify(tmp_path, device="cpu", sizes=[{"N": 3, "M": 5}])
    assert (found.status, found.message) == ("ok", "")


def test_a_product_is_bounded_without_being_computed() -> None:
    counts: list[IntExpr] = [Name("a"), Constant(3), Name("b"), Name("c")]
    condition = within(counts, 1000)
    assert condition is not None
    for a, b, c in product((-1, 0, 1, 5, 18, 19, 10**18), repeat=3):
        expected = 3 * max(1, a) * max(1, b) * max(1, c) <= 1000
        assert bool(evaluate(condition, {"a": a, "b": b, "c": c})) == expected
    assert within([Constant(10), Constant(100)], 1000) is None
    assert within([Constant(10), Constant(101)], 1000) == Constant(0)


def test_a_fixed_grid_that_is_too_large_is_an_error() -> None:
    text = MANY_TILES.replace("int N, int M, ", "")
    text = "#define N 2\n#define M 50000\n" + text
    with pytest.raises(InputError) as caught:
        codegen(text, gpu="h200", tiles=dict.fromkeys("abcd", 1), defines=("N=2", "M=50000"))
    assert caught.value.diagnostics[0].code == "EATSS-K015"

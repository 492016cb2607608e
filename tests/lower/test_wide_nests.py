"""Nests of four and more parallel loops: all are mapped, and compute what the C computes."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.api import codegen, select
from eatss.base.diagnostics import InputError, InternalError
from eatss.base.options import parse_blocks
from eatss.lower import lanes as digits_module
from eatss.lower.assumptions import within
from eatss.lower.lanes import digits
from eatss.program import (
    Constant,
    HostIf,
    HostLoop,
    IntExpr,
    Launch,
    Name,
    Program,
    evaluate,
)
from tests.examples import examples
from tests.lower.checking import checked

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


# -- random nests --------------------------------------------------------------------------


def nest(rng: random.Random) -> tuple[str, list[str], list[str]]:
    """Return the C text of four to six parallel loops and serial ones, and the names of both."""
    parallel = list("abcdef"[: rng.choice([4, 4, 4, 5, 6])])
    serial = ["p", "q"][: rng.choice([0, 1, 2]) if len(parallel) < 6 else 1]
    sizes = {name: rng.choice("NM") for name in parallel + serial}
    element, order, extent = rng.choice(["int", "float", "double"]), parallel[:], "[N + M + 2]"
    for name in serial:  # anywhere: isl finds the parallel loops
        order.insert(rng.randint(1, len(order)), name)

    def reference(array: str, names: list[str]) -> str:
        own = ([f"[{n}]"] * 5 + [f"[{n} + 1]", f"[{sizes[n]} - {n}]"] for n in names)
        return array + "".join(map(rng.choice, own))

    read = {array: rng.sample(parallel + serial, rng.randint(1, 4)) for array in "AB"}
    value = f" {rng.choice('+*')} ".join(reference(*one) for one in read.items())
    target = "C" + "".join(f"[{name}]" for name in rng.sample(parallel, len(parallel)))
    begins = dict.fromkeys(order, "0")
    if rng.random() < 0.25 and order[1] in parallel:  # a triangle
        begins[order[1]], sizes[order[1]] = order[0], sizes[order[0]]
    loops = {n: f"for (int {n} = {begins[n]}; {n} < {sizes[n]}; {n}++)" for n in order}
    lines = [*loops.values(), f"{target} {'+=' if serial else '='} {value};"]
    if serial and rng.random() < 0.4:  # sums that start anew
        lines = [*(loops[n] for n in order if n in parallel), f"{target} = 1;", *lines]
    dims = {"C": len(parallel), **{array: len(names) for array, names in read.items()}}
    arrays = ", ".join(f"{element} {name}{extent * count}" for name, count in dims.items())
    head = f"void f(int N, int M, {arrays})"
    if rng.random() < 0.5:
        head = f"#ifndef N\n#define N 5\n#endif\n#ifndef M\n#define M 3\n#endif\nvoid f({arrays})"
    body = "\n".join(lines)
    return f"{head}\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n", parallel, serial


@settings(max_examples=examples(2), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_more_nests_of_many_parallel_loops_compute_the_same(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With sizes of its own or random ones, at sizes around its tiles."""
    rng = random.Random(seed)
    text, parallel, serial = nest(rng)
    # some serial loops are below the band
    kernels = select(text, gpu="h200", model="paper").kernels
    banded = {name for kernel in kernels for name in kernel.loops}.intersection(parallel + serial)
    tiles, block = (
        {name: rng.choice([1, 2, 3, 4]) for name in sorted(names) if rng.random() < 0.7}
        for names in (banded, {*parallel[:4]})
    )
    sizes = [{"N": n, "M": m} for n, m in ((1, 1), (2, 3), (3, 1), (5, 3), (3, 5), (0, 2))]
    program = checked(text, tmp_path_factory.mktemp("nest"), sizes, tiles=tiles, block=block)
    for kernel in program.kernels:
        assert not any(note.startswith("one thread") for note in kernel.notes), (text, kernel.notes)


# -- what is mapped, and where --------------------------------------------------------------


def kernel_of(program: Program) -> str:
    """Return the text of the first kernel."""
    begin = program.text.index("__launch_bounds__")
    return program.text[begin : program.text.index("\n}\n", begin)]


def test_the_blocks_along_x_shrink_with_a_host_loop(tmp_path: Path) -> None:
    sizes, tiles = [{"N": n} for n in (1, 2, 5, 7)], {"a": 2, "b": 3, "c": 2, "d": 4}
    (outer,) = checked(INSIDE_A_HOST_LOOP, tmp_path, sizes, tiles=tiles).entries[0].body
    assert isinstance(outer, HostIf)
    (loop,) = outer.body
    assert isinstance(loop, HostLoop)
    (launch,) = loop.body
    assert isinstance(launch, Launch)
    extents = [evaluate(launch.grid[0], {"N": 9, "t": t}) for t in range(8)]
    assert extents == [15, 12, 12, 6, 6, 4, 4, 1]


def test_digits_that_miss_a_tile_are_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    right = digits_module._digits
    monkeypatch.setattr(
        digits_module, "_digits", lambda number, extents: right(number, extents)[::-1]
    )
    with pytest.raises(InternalError) as caught:
        codegen(LAYER, gpu="h200")
    assert caught.value.diagnostics[0].code == "EATSS-K901"


def test_several_loops_share_the_threads_along_z(tmp_path: Path) -> None:
    block = {"a": 2, "b": 3, "c": 2, "d": 4}
    tiles = {"a": 4, "b": 3, "c": 4, "d": 4}
    program = checked(CONTRACTION, tmp_path, [{"N": 1}, {"N": 5}], tiles=tiles, block=block)
    assert program.kernels[0].block == (4, 2, 6)
    assert "a and b share the threads along z" in program.kernels[0].notes
    text = kernel_of(program)
    assert "const int ta = threadIdx.z / 3;" in text
    assert "const int tb = threadIdx.z % 3;" in text


def test_the_command_line_takes_blocks_in_order_and_by_loop() -> None:
    assert parse_blocks(["8,32", "k1:2,16"]) == {"": (8, 32), "k1": (2, 16)}
    assert parse_blocks(["y=8,x=32", "k=2"]) == {"y": 8, "x": 32, "k": 2}
    assert parse_blocks(["k1:y=8", "k1:x=32"]) == {"k1": {"y": 8, "x": 32}}
    for text in ("8,x=32", "x=", "x=a", "x=8,"):
        with pytest.raises(InputError) as caught:
            parse_blocks([text])
        assert caught.value.diagnostics[0].code == "EATSS-C004"


# -- shared axes ----------------------------------------------------------------------------


@pytest.mark.parametrize("extents", [(), (3,), (1, 1), (2, 3), (4, 1, 5), (2, 3, 4, 5), (1, 2, 1)])
def test_every_choice_of_digits_has_one_number(extents: tuple[int, ...]) -> None:
    found = digits(Name("block"), [Constant(size) for size in extents])
    total = 1
    for size in extents:
        total *= size
    met = [tuple(evaluate(d, {"block": number}) for d in found) for number in range(total)]
    assert met == list(product(*(range(size) for size in extents)))


def test_more_blocks_than_a_card_launches_are_refused(tmp_path: Path) -> None:
    tiles = dict.fromkeys("abcd", 1)
    program = checked(MANY_TILES, tmp_path, [{"N": 3, "M": 5}], tiles=tiles, index_bits=64)
    (number,) = [
        number for number, assumption in enumerate(program.entries[0].assumptions)
        if "2^31 - 1 blocks" in assumption.message
    ]  # fmt: skip
    condition = program.entries[0].assumptions[number].condition
    assert evaluate(condition, {"N": 1, "M": 46340})
    assert not evaluate(condition, {"N": 1, "M": 46341})
    assert evaluate(condition, {"N": 1, "M": -5})


def test_a_product_is_bounded_without_being_computed() -> None:
    counts: list[IntExpr] = [Name("a"), Constant(3), Name("b"), Name("c")]
    condition = within(counts, 1000)
    assert condition is not None
    for a, b, c in product((-1, 0, 1, 5, 18, 19, 10**18), repeat=3):
        expected = 3 * max(1, a) * max(1, b) * max(1, c) <= 1000
        assert bool(evaluate(condition, {"a": a, "b": b, "c": c})) == expected
    assert within([Constant(10), Constant(100)], 1000) is None
    assert within([Constant(10), Constant(101)], 1000) == Constant(0)

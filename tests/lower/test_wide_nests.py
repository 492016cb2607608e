"""Nests of four and more parallel loops: all are mapped, and compute what the C computes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
)
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.examples import examples
from tests.lower.checking import right

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


@settings(max_examples=examples(2), deadline=None, suppress_health_check=list(HealthCheck))
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
        text, gpu="h200", model="paper"
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
    program, found = verified(
        CONTRACTION, tmp_path, [{"N": n} for n in (1, 5)], tiles=tiles, block=block
    )
    assert (found.status, found.message) == ("ok", "")
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
    right(verify(tmp_path, device="cpu", sizes=[{"N": 3, "M": 5}]))


def test_a_product_is_bounded_without_being_computed() -> None:
    counts: list[IntExpr] = [Name("a"), Constant(3), Name("b"), Name("c")]
    condition = within(counts, 1000)
    assert condition is not None
    for a, b, c in product((-1, 0, 1, 5, 18, 19, 10**18), repeat=3):
        expected = 3 * max(1, a) * max(1, b) * max(1, c) <= 1000
        assert bool(evaluate(condition, {"a": a, "b": b, "c": c})) == expected
    assert within([Constant(10), Constant(100)], 1000) is None
    assert within([Constant(10), Constant(101)], 1000) == Constant(0)

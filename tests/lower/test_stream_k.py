"""Sums that blocks share: grid split-K and stream-K are right at every size, faults are seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.cards import load_profile
from eatss.lower.variants import kernel_variants_for
from eatss.program import Constant, KernelCode, Launch, Program, evaluate
from eatss.verify.build import Builder
from eatss.verify.data import make_buffers
from eatss.verify.device import CpuMachine
from tests.lower.checking import broken, checked

pytestmark = pytest.mark.usefixtures("analysed_once")

MMA = "mma_f64_16x8x4"
MTTKRP = data_directory("kernels") / "mttkrp.c"
TALL = """
#ifndef NI
#define NI 128
#endif
#ifndef NJ
#define NJ 128
#endif
#ifndef NK
#define NK 1000000
#endif
void tall(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NJ], DATA_TYPE A[NI][NK],
          DATA_TYPE B[NK][NJ])
{
#pragma scop
  for (int i = 0; i < NI; i++) {
    for (int j = 0; j < NJ; j++)
      C[i][j] *= beta;
    for (int k = 0; k < NK; k++)
      for (int j = 0; j < NJ; j++)
        C[i][j] += alpha * A[i][k] * B[k][j];
  }
#pragma endscop
}
"""
TRIANGLE = """
#ifndef N
#define N 500
#endif
#ifndef M
#define M 500
#endif
void triangle(double C[N][M], double A[N][N], double B[N][M])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++)
      for (int k = 0; k <= i; k++)
        C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""
IN_WARPS: dict[str, Any] = {
    "tiles": {"i": 32, "j": 32, "k": 16},
    "block": {"i": 8, "j": 4},
    "instructions": [MMA],
}
STAGED = {"A": "shared", "B": "shared"}
TALL_SIZES = [
    {"NI": 37, "NJ": 35, "NK": 101},  # no multiple of tiles or of chunks
    {"NI": 5, "NJ": 3, "NK": 7},  # less than a tile
    {"NI": 33, "NJ": 32, "NK": 32},  # fewer tiles than blocks
    {"NI": 8, "NJ": 8, "NK": 0},
]


def test_plain_code_shares_sums_with_what_it_stages(tmp_path: Path) -> None:
    program = checked(
        TALL.replace("DATA_TYPE", "float"), tmp_path, TALL_SIZES,
        tiles={"i": 16, "j": 32, "k": 8}, block={"i": 8, "j": 8}, share={"k": 3},
        placements=STAGED, stages=2,
    )  # fmt: skip
    assert "eatss_commit_copies" in program.text
    notes = program.kernels[1].notes
    assert {note[0] for note in notes if "shared memory" in note} == {*"AB"}


def test_a_fault_is_seen(tmp_path: Path) -> None:
    source = TALL.replace("DATA_TYPE", "double")
    before, after = "k0 = 16 * (int)blockIdx.z", "k0 = 16 * (int)blockIdx.z * 2"
    program = checked(
        source, tmp_path, TALL_SIZES, **IN_WARPS, placements=STAGED, stages=3, share={"k": 3}
    )
    assert broken(program, tmp_path, before, after, TALL_SIZES[:1]) != "ok"


def test_the_order_of_a_sum_is_kept_where_that_is_asked_for() -> None:
    source = TALL.replace("DATA_TYPE", "float")
    for how in ("share", "stream"):
        asked: dict[str, Any] = {how: {"k": 2}, "strict_fp": True}
        with pytest.raises(eatss.InputError, match=f"EATSS-K019.*\n.*--{how} or"):
            eatss.codegen(source, gpu="h200", **asked)
    program = eatss.codegen(source, gpu="h200", strict_fp=True)
    assert not any("shared by" in note for kernel in program.kernels for note in kernel.notes)


def test_what_is_no_sum_is_not_shared() -> None:
    source = """
    void f(float C[100], float A[100][900]) {
    #pragma scop
      for (int i = 0; i < 100; i++)
        for (int k = 0; k < 900; k++)
          C[i] = C[i] * 0.5f + A[i][k];
    #pragma endscop
    }
    """
    (kernel,) = eatss.codegen(source, gpu="h200", share={"k": 4}).kernels
    assert "blocks cannot share the sum over k" in kernel.notes
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("EATSS-K001", {"share": {"q": 4}}),
        ("EATSS-C004", {"share": {"k": 0}}),
        ("EATSS-C004", {"share": {"k": 3}, "stream": {"k": 6}}),
    ]
    for code, how in wrong:
        with pytest.raises(eatss.InputError, match=code):
            eatss.codegen(source, gpu="h200", **how)


def test_few_tiles_and_long_sums_are_shared_as_predicted() -> None:
    source = MTTKRP.read_text(encoding="utf-8")
    sizes = {"NI": 512, "NJ": 512, "NK": 512, "NR": 64}
    defines: dict[str, str | int] = {"DATA_TYPE": "double", **sizes}
    chosen = eatss.select(source, gpu="h200", target="cuda", defines=defines).kernels[-1]
    assert chosen.shared_sum is not None
    assert chosen.warps is not None
    assert chosen.predicted is not None
    program = eatss.codegen(source, gpu="h200", defines=defines)
    kernel = program.kernels[-1]
    assert f"shared by up to {chosen.shared_sum.blocks} blocks" in " ".join(kernel.notes)
    assert kernel.shared_bytes == chosen.predicted.shared_bytes
    launch = program.entries[0].body[-1]
    assert isinstance(launch, Launch)
    grid = [evaluate(extent, sizes) for extent in launch.grid]
    assert grid[2] == chosen.shared_sum.blocks
    assert grid[0] * grid[1] * grid[2] == chosen.predicted.blocks


SHAPES = """
#ifndef NI
#define NI 1111
#endif
#ifndef NJ
#define NJ 1111
#endif
#ifndef NK
#define NK 1111
#endif
"""


def product(statement: str, first: str = "NI][NK", second: str = "NK][NJ", before: str = "") -> str:
    """Return C with a product of two matrices, and a statement before its sum."""
    return f"""{SHAPES}
    void product(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NJ], DATA_TYPE A[{first}],
                 DATA_TYPE B[{second}])
    {{
    #pragma scop
      for (int i = 0; i < NI; i++)
        for (int j = 0; j < NJ; j++) {{
          {before}
          for (int k = 0; k < NK; k++)
            {statement}
        }}
    #pragma endscop
    }}
    """


BATCHED = f"""{SHAPES}
#ifndef NB
#define NB 8
#endif
void batched(DATA_TYPE C[NB][NI][NJ], DATA_TYPE A[NB][NI][NK], DATA_TYPE B[NB][NK][NJ])
{{
#pragma scop
  for (int b = 0; b < NB; b++)
    for (int i = 0; i < NI; i++)
      for (int j = 0; j < NJ; j++) {{
        C[b][i][j] = 0;
        for (int k = 0; k < NK; k++)
          C[b][i][j] += A[b][i][k] * B[b][k][j];
      }}
#pragma endscop
}}
"""
PLAIN: dict[str, Any] = {
    "tiles": {"i": 8, "j": 16, "k": 8}, "block": {"i": 4, "j": 8}, "instructions": [],
}  # fmt: skip
SIZES = [
    {"NI": 37, "NJ": 35, "NK": 101},  # many tiles, of which a part are whole ones
    {"NI": 25, "NJ": 16, "NK": 17},  # fewer tiles than blocks, or some more
    {"NI": 5, "NJ": 3, "NK": 97},  # one tile, which many blocks have parts of
    {"NI": 5, "NJ": 3, "NK": 7},  # one step
    {"NI": 9, "NJ": 9, "NK": 0},
]


def streamed(program: Program, blocks: int) -> KernelCode:
    """Return the kernel whose blocks take shares, after a look at what is said and launched."""
    note = f"stream-K: {blocks} blocks share the k-tiles over k evenly"
    (kernel,) = (one for one in program.kernels if note in one.notes)
    (entry,) = program.entries
    parts, arrived = entry.temporaries
    assert (parts.name, arrived.name) == (f"{kernel.name}_parts", f"{kernel.name}_arrived")
    assert (parts.zeroed, arrived.zeroed) == (False, True)
    assert parts.shape[0] == Constant(2 * blocks)
    return kernel


def test_blocks_take_shares_whatever_is_copied_ahead(tmp_path: Path) -> None:
    program = checked(
        TALL.replace("DATA_TYPE", "float"), tmp_path, SIZES, **PLAIN,
        placements=STAGED, stages=2, stream={"k": 6},
    )  # fmt: skip
    kernel = streamed(program, 6)
    assert kernel.regroups
    assert kernel.grid_strides == ("x",)
    assert "eatss_wait_for_copies" in program.text


def test_blocks_take_shares_of_batches_of_products(tmp_path: Path) -> None:
    sizes = [{**one, "NB": 3} for one in SIZES]
    program = checked(
        BATCHED.replace("DATA_TYPE", "float"), tmp_path, sizes,
        **{**PLAIN, "tiles": {**PLAIN["tiles"], "b": 1}},
        placements=STAGED, stages=2, stream={"k": 7},
    )  # fmt: skip
    streamed(program, 7)


def results(
    program: Program, folder: Path, text: str, sizes: Mapping[str, int], *, times: int = 1
) -> bytes:
    """Return what the program makes of an array, with another text of it.

    Parts of sums have NaN wherever no block leaves some.
    """
    folder.mkdir()
    other = replace(program, text=text)
    builder = Builder(other, folder, folder, "cpu")
    machine = CpuMachine(builder.load(builder.generated(sizes), sizes))
    (entry,) = other.entries
    buffers = make_buffers(entry, sizes, "uniform", 0)
    for _ in range(times):
        launched = machine.launch(entry, buffers, backward=False)
        assert (launched.code, launched.status, launched.observed) == (0, "ok", None)
    (result,) = (one for one in buffers if one.argument.writes)
    assert result.first_stray_write() is None
    return bytes(result.array.tobytes())


def test_results_are_the_same_in_whatever_order_blocks_come(tmp_path: Path) -> None:
    """One tile has ten steps: its last block is the first one, the second, one between or last."""
    source = product("C[i][j] += A[i][k] * B[k][j];").replace("DATA_TYPE", "float")
    program = eatss.codegen(
        source, gpu="h200", **PLAIN, placements=STAGED, stages=2, stream={"k": 5}
    )
    streamed(program, 5)
    sizes = {"NI": 6, "NJ": 20, "NK": 77}
    here = "(long)blockIdx.x" if "(long)blockIdx.x" in program.text else "(int)blockIdx.x"
    assert program.text.count("blockIdx.x") == program.text.count(here)
    orders = ("{0} * 2 % 5", "4 - {0}")
    found = {results(program, tmp_path / "plain", program.text, sizes)}
    for number, order in enumerate(orders):
        text = program.text.replace(here, f"({order.format(here)})")
        found.add(results(program, tmp_path / str(number), text, sizes))
    assert len(found) == 1


def test_a_fault_in_a_stream_is_seen(tmp_path: Path) -> None:
    faults = (
        ("_parts[((2 * (owner + own) + eatss_min(own, 1))", "_parts[((2 * (owner + own))"),
        ("eatss_min(NK, 8 * end)", "NK"),
    )
    program = checked(
        TALL.replace("DATA_TYPE", "float"), tmp_path, SIZES, **PLAIN,
        placements=STAGED, stages=1, stream={"k": 6},
    )  # fmt: skip
    for fault in faults:
        assert broken(program, tmp_path, *fault, SIZES) != "ok", fault


def test_other_loops_stay_as_they_are_and_say_so() -> None:
    program = eatss.codegen(TRIANGLE, gpu="h200", stream={"k": 6})
    said = "no stream-K over k: its sums cannot be split"
    notes = [note for kernel in program.kernels for note in kernel.notes]
    assert said in notes
    assert not any("stream-K over" in one for one in notes if one != said)
    assert not any(one.name.endswith("_parts") for e in program.entries for one in e.temporaries)
    assert "eatss_comes_last" not in program.text


SUMMED = """
void f(int n, int m, int p, float C[n][m], float D[n][m], float A[n][p], float B[p][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] = 0;
      for (int k = 0; k < p; k++)
        C[i][j] += A[i][k] * B[k][j];
      D[i][j] += C[i][j];
      C[i][j] = 2 * D[i][j];
    }
#pragma endscop
}
"""
WAITS = "eatss_wait_for_parts(&f_k1_arrived[2 * streamed], number);"


SEVEN: dict[str, Any] = {
    "stream": {"k": 7}, "tiles": {"i": 16, "j": 16, "k": 8}, "block": {"i": 8, "j": 4},
}  # fmt: skip
ORDER_SIZES = [{"n": 33, "m": 30, "p": 50}]


def test_what_is_read_before_the_loop_may_be_written_behind_it(tmp_path: Path) -> None:
    program = checked(SUMMED, tmp_path, ORDER_SIZES, **SEVEN)
    assert "stream-K: 7 blocks share the k-tiles over k evenly" in program.kernels[-1].notes
    # parts that nobody waits for
    assert broken(program, tmp_path, WAITS, "f_k1_arrived[0] = 0;", ORDER_SIZES) == "race"


def test_minima_are_not_streamed(tmp_path: Path) -> None:
    """A sum starts at zero in each block that shares it; what a minimum starts at is loaded."""
    text = """
void f(int n, double a[n][n], double m[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    double v = a[i][0];
    for (int j = 0; j < n; j++)
      if (a[i][j] < v)
        v = a[i][j];
    m[i] = v;
  }
#pragma endscop
}
"""
    program = checked(text, tmp_path, [{"n": 70}], cache=False)
    assert not any("stream-K" in note for one in program.kernels for note in one.notes)


def test_what_is_added_does_not_depend_on_the_sum(tmp_path: Path) -> None:
    added = "A[i][k] * s + B[k][j]"
    text = SUMMED.replace("C[i][j] = 0;", "float s = 0;", 1)
    text = text.replace("C[i][j] += A[i][k] * B[k][j];", f"s += {added};")
    text = text.replace("D[i][j] += C[i][j];", "D[i][j] = s;").replace("C[i][j] = 2 * D[i][j];", "")
    program = checked(text, tmp_path, ORDER_SIZES, **SEVEN)
    assert "no stream-K over k: its sums cannot be split" in program.kernels[-1].notes


def test_the_loop_that_a_variant_names_is_streamed_and_no_other() -> None:
    source = data_directory("kernels") / "gemm.c"
    (own,) = kernel_variants_for(eatss.inspect(source, cut="eatss"), load_profile("h200")).values()
    named = {one.stream_loop for one in own}
    for loop in "ijk":
        (kernel,) = eatss.codegen(source, gpu="h200", stream={loop: 6}).kernels
        said = f"stream-K: 6 blocks share the k-tiles over {loop} evenly"
        assert (said in kernel.notes) == (loop in named)

"""Sums that blocks share beside tensor cores and staged operands are right at every size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import eatss
from eatss.base.shipped import data_directory
from eatss.program import Launch, evaluate
from eatss.verify import Verification, verify

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
IN_WARPS = {"tiles": {"i": 32, "j": 32, "k": 16}, "block": {"i": 8, "j": 4}, "instructions": [MMA]}
STAGED = {"A": "shared", "B": "shared"}
TALL_SIZES = [
    {"NI": 37, "NJ": 35, "NK": 101},  # no multiple of tiles or of chunks
    {"NI": 5, "NJ": 3, "NK": 7},  # less than a tile
    {"NI": 33, "NJ": 32, "NK": 32},  # fewer tiles than blocks
    {"NI": 8, "NJ": 8, "NK": 0},
]


def checked(
    source: str | Path, folder: Path, sizes: Sequence[Mapping[str, int]], **wanted: object
) -> eatss.Program:
    program = eatss.codegen(source, gpu="h200", output=folder, **wanted)  # type: ignore[arg-type]
    found: Verification = verify(folder, device="cpu", sizes=sizes)
    assert (found.status, found.message) == ("ok", "")
    return program


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
    faults = (
        ("k0 = 16 * (int)blockIdx.z", "k0 = 16 * (int)blockIdx.z * 2"),
        ("k0 += 16 * (int)gridDim.z", "k0 += 16"),
        ("k0 + 32 * (int)gridDim.z", "k0 + 32"),
    )
    program = checked(
        source, tmp_path, TALL_SIZES, **IN_WARPS, placements=STAGED, stages=3, share={"k": 3}
    )
    (text,) = tmp_path.glob("*.cu")
    for before, after in faults:
        assert before in program.text
        text.write_text(program.text.replace(before, after), encoding="utf-8")
        assert verify(tmp_path, device="cpu", sizes=TALL_SIZES).status != "ok"


def test_the_order_of_a_sum_is_kept_where_that_is_asked_for() -> None:
    source = TALL.replace("DATA_TYPE", "float")
    with pytest.raises(eatss.InputError, match="EATSS-K020"):
        eatss.codegen(source, gpu="h200", strict_fp=True, share={"k": 2})
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
    with pytest.raises(eatss.InputError, match="EATSS-K001"):
        eatss.codegen(source, gpu="h200", share={"q": 4})
    with pytest.raises(eatss.InputError, match="EATSS-C004"):
        eatss.codegen(source, gpu="h200", share={"k": 0})


def test_few_tiles_and_long_sums_are_shared_as_predicted() -> None:
    source = MTTKRP.read_text(encoding="utf-8")
    sizes = {"NI": 512, "NJ": 512, "NK": 512, "NR": 64}
    defines: dict[str, str | int] = {"DATA_TYPE": "double", **sizes}
    selection = eatss.select(source, gpu="h200", target="cuda", defines=defines)
    chosen = selection.kernels[-1]
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


def test_many_tiles_are_not_shared() -> None:
    for size in (1111, 4000):
        source = data_directory("kernels") / "gemm.c"
        defines = dict.fromkeys(("NI", "NJ", "NK"), size)
        (kernel,) = eatss.select(source, gpu="h200", target="cuda", defines=defines).kernels
        assert kernel.shared_sum is None


def test_two_loops_to_share_are_refused() -> None:
    with pytest.raises(eatss.InputError, match="over 'j' and 'k'"):
        eatss.codegen(MTTKRP, gpu="h200", share={"j": 3, "k": 5})

"""``eatss.select`` as a library call inside a JIT would use it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import eatss
from eatss.base.shipped import data_directory

KERNELS = data_directory("kernels")

SOURCE = """
void scale(int n, double a[n][n], double b[n][n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      b[i][j] = 2.0 * a[i][j];
#pragma endscop
}
"""


def test_a_selection_is_hashable_and_survives_json() -> None:
    selection = eatss.select(SOURCE, gpu="h200")
    again = eatss.Selection.from_dict(json.loads(json.dumps(selection.to_dict())))
    assert again == selection
    assert hash(again) == hash(selection)
    assert selection.to_dict()["schema_version"] == 5


def test_a_loop_shorter_than_the_alignment_stays_untiled() -> None:
    (kernel,) = eatss.select(
        SOURCE, gpu="h200", split=0.0, warp_fraction=1.0, parameters={"n": 20}
    ).kernels
    assert kernel.tile_sizes == (("i", 20), ("j", 20))


def test_threads_get_what_one_thread_gets() -> None:
    kernels = ["gemm", "atax", "jacobi-2d", "mvt"]
    names = kernels * 2
    serial = [eatss.select(KERNELS / f"{n}.c", gpu="a100") for n in kernels] * 2
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda n: eatss.select(KERNELS / f"{n}.c", gpu="a100"), names))
    assert parallel == serial


def test_uniform_gives_all_kernels_one_vector() -> None:
    selection = eatss.select(KERNELS / "2mm.c", gpu="a100", uniform=True, model="paper")
    sizes = {tuple(size for _, size in kernel.tile_sizes) for kernel in selection.kernels}
    assert len(selection.kernels) == 2
    assert len(sizes) == 1


def test_no_solution_names_the_limits_in_conflict(tmp_path) -> None:  # type: ignore[no-untyped-def]
    source = """
void f(double a[64][64][64], double b[64][64][64]) {
#pragma scop
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++)
      for (int k = 0; k < 64; k++)
        b[i][j][k] = a[k][j][i] + a[j][k][i];
#pragma endscop
}
"""
    with pytest.raises(eatss.NoSolutionError) as caught:
        eatss.select(source, gpu="xavier", split=0.25, warp_fraction=1.0)
    assert "L1 cache: 2 references need at least 512 KiB, the card has 96 KiB" in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "options",
    [
        {"gpu": 3},
        {"volume": "x"},
        {"shared_per_block": "foo"},
        {"split": "half"},
        {"warp_fraction": True},
        {"dtype": "quad"},
        {"model": "x"},
        {"split": float("nan")},
    ],
)
def test_a_wrong_option_is_an_input_error(options: dict[str, object]) -> None:
    with pytest.raises(eatss.InputError):
        eatss.select(SOURCE, **{"gpu": "h200", **options})  # type: ignore[arg-type]

"""The arguments of PPCG where the sizes are predicted: none, some, or for some kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from eatss.analysis.facts import KernelFacts
from eatss.cards.profile import GpuProfile
from eatss.choose import ModelOptions, PpcgOptions, Selection, select_program

DEFAULT = PpcgOptions(max_shared_memory=8192, unroll_gpu_tile=False)


@pytest.fixture
def two(ga100: GpuProfile, matmul_with: Callable[..., KernelFacts]) -> Selection:
    """Return sizes for two kernels, as if a prediction had found them."""
    kernels = [matmul_with(name=f"kernel{at}", index=at) for at in range(2)]
    options = ModelOptions(model="paper", split=0.5, warp_fraction=0.5)
    return replace(select_program(kernels, ga100, options), ppcg_options=DEFAULT)


def keeping(selection: Selection, *kept: bool) -> Selection:
    """Return the selection with PPCG's own sizes kept for some kernels."""
    kernels = zip(selection.kernels, kept, strict=True)
    return replace(selection, kernels=tuple(replace(k, keeps_default=on) for k, on in kernels))


def test_where_every_kernel_keeps_the_default_ppcg_is_told_nothing(two: Selection) -> None:
    selection = keeping(two, True, True)
    assert selection.keeps_default
    assert selection.ppcg_arguments == ()
    assert selection.ppcg_sizes == "{ }"


def test_shared_memory_stands_before_the_sizes(two: Selection) -> None:
    memory, sizes = keeping(two, False, False).ppcg_arguments
    assert memory == "--max-shared-memory=8192"
    assert sizes == (
        "--sizes={ kernel[0] -> tile[16, 384, 16]; kernel[0] -> block[4, 64]; "
        "kernel[1] -> tile[16, 384, 16]; kernel[1] -> block[4, 64] }"
    )


def test_unrolling_is_an_argument_of_its_own(two: Selection) -> None:
    options = PpcgOptions(max_shared_memory=49152, unroll_gpu_tile=True)
    memory, unroll, _ = replace(keeping(two, False, False), ppcg_options=options).ppcg_arguments
    assert memory == "--max-shared-memory=49152"
    assert unroll == "--unroll-gpu-tile"


def test_kernels_that_keep_the_default_are_left_out_of_the_sizes(two: Selection) -> None:
    selection = keeping(two, True, False)
    assert not selection.keeps_default
    sizes = selection.ppcg_arguments[-1]
    assert "kernel[0]" not in sizes
    assert "kernel[1] -> tile[" in sizes


def test_without_a_prediction_every_kernel_has_sizes_and_nothing_unrolls(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    selection = select_program([matmul], ga100, ModelOptions(model="eatss"))
    assert not selection.keeps_default
    memory, sizes = selection.ppcg_arguments
    assert memory.startswith("--max-shared-memory=")
    assert sizes == f"--sizes={selection.ppcg_sizes}"

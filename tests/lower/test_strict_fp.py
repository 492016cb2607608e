"""With ``strict_fp`` no floating-point operation changes its place."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification

STRICT = CodegenOptions(strict_fp=True)
SPREAD = (
    "atax",
    "bicg",
    "correlation",
    "covariance",
    "durbin",
    "gemver",
    "gesummv",
    "gramschmidt",
    "mttkrp",
    "mvt",
)
"""Kernels of which sums are spread over threads or blocks unless the order has to be kept."""

REORDERED = ("conv-2d",)
"""Kernels with a sum over several loops, tile after tile."""

QUICK_FLOATS = ("atax", "mvt", "trmm")


def combines_threads(program: Program) -> bool:
    """Tell whether a kernel adds up what several threads have."""
    kernels = program.text[: program.text.index("#ifdef EATSS_MAIN")]
    kernels = kernels[kernels.index('extern "C" __global__') :]
    return re.search(r"eatss_atomic_add|eatss_shuffle_down", kernels) is not None


def sizes_of(program: Program) -> list[dict[str, int]]:
    sizes = (29, 37, 21, 35, 45)
    return [{one.name: size for one, size in zip(program.parameters, sizes, strict=False)}]


@pytest.mark.samples(2)
def test_no_kernel_combines_threads_when_strict(
    any_kernel: str, generate: Callable[..., Program]
) -> None:
    strict, usual = generate(any_kernel, options=STRICT), generate(any_kernel)
    assert not combines_threads(strict)
    assert not any(kernel.reassociates for kernel in strict.kernels)
    assert "-fmad=false" in strict.flags
    assert combines_threads(usual) == (any_kernel in SPREAD)
    other_order = any(kernel.reassociates for kernel in usual.kernels)
    assert other_order == (any_kernel in (*SPREAD, *REORDERED))


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "double") for name in SPREAD),
        *(
            pytest.param(name, "float", marks=[] if name in QUICK_FLOATS else [pytest.mark.long])
            for name in SPREAD
        ),
    ],
)
def test_strict_sums_equal_the_original_in_every_bit(
    name: str,
    dtype: str,
    generate: Callable[..., Program],
    verify_kernel: Callable[..., Verification],
) -> None:
    program = generate(name, dtype=dtype, options=STRICT)
    found = verify_kernel(program, sizes_of(program))
    assert (found.status, found.message) == ("ok", "")
    assert found.bit_equal
    assert all(result.worst_error == 0.0 == result.bound for result in found.results)


def test_spread_sums_of_random_numbers_differ_in_some_bit(
    generate: Callable[..., Program], verify_kernel: Callable[..., Verification]
) -> None:
    program = generate("atax", dtype="float")
    found = verify_kernel(program, [{"NX": 70, "NY": 300}])
    assert found.status == "ok"
    assert not found.bit_equal
    assert found.results[0].worst_error > 0.0

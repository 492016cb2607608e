"""Strict floating point and whole tiles where values are finite.

With ``strict_fp`` no floating-point operation changes its place.

Tiles that a diagonal cuts run whole where the other factor is finite, and only there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import product
from pathlib import Path
from typing import Any

import islpy as isl
import pytest

import eatss
from eatss.lower.recipe import CodegenOptions
from eatss.lower.whole_tiles import factors_beside_zeros
from eatss.polyhedral.scop import Scop
from eatss.program import Program
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.lower.checking import broken, right

STRICT = CodegenOptions(strict_fp=True)


def combines_threads(program: Program) -> bool:
    """Tell whether a kernel adds up what several threads have."""
    kernels = program.text[: program.text.index("#ifdef EATSS_MAIN")]
    kernels = kernels[kernels.index('extern "C" __global__') :]
    return re.search(r"eatss_atomic_add|eatss_shuffle_down", kernels) is not None


def sizes_of(program: Program) -> list[dict[str, int]]:
    sizes = (29, 37, 21, 35, 45)
    return [{one.name: size for one, size in zip(program.parameters, sizes, strict=False)}]


def test_no_kernel_combines_threads_when_strict(generate: Callable[..., Program]) -> None:
    strict, usual = generate("atax", options=STRICT), generate("atax")
    assert not combines_threads(strict)
    assert not any(kernel.reassociates for kernel in strict.kernels)
    assert "-fmad=false" in strict.flags
    assert combines_threads(usual)
    assert any(kernel.reassociates for kernel in usual.kernels)


@pytest.mark.parametrize("name", ["atax", "gramschmidt"])
def test_strict_sums_equal_the_original_in_every_bit(
    name: str,
    generate: Callable[..., Program],
    verify_kernel: Callable[..., Verification],
) -> None:
    program = generate(name, options=STRICT)
    found = right(verify_kernel(program, sizes_of(program)), bit_equal=True)
    assert all(result.worst_error == 0.0 == result.bound for result in found.results)


def test_spread_sums_of_random_numbers_differ_in_some_bit(
    generate: Callable[..., Program], verify_kernel: Callable[..., Verification]
) -> None:
    program = generate("atax", dtype="float")
    found = right(verify_kernel(program, [{"NX": 70, "NY": 300}]), bit_equal=False)
    assert found.results[0].worst_error > 0.0


PRODUCT = """
#ifndef N
#define N 200
#endif
void product(double C[N][N], double A[N][N], double B[N][N])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = LOWER; k < UPPER; k++)
                C[i][j] += A[i][k] * B[k][j];
#pragma endscop
}
"""
SMALL: dict[str, Any] = {
    "tiles": {"i": 32, "j": 32, "k": 16},
    "block": (16, 8),
    "placements": {"A": "shared", "B": "shared"},
}
BOUNDS = {"below": ("0", "i"), "above": ("i + 1", "N"), "the diagonal, too": ("0", "i + 1")}
WARPS: dict[str, Any] = {"instructions": ["mma_f64_16x8x4"], "stages": 2}
TEST = "finite &= eatss_is_finite("


def triangle(bounds: str) -> str:
    """Return a product over a triangle."""
    lower, upper = BOUNDS[bounds]
    return PRODUCT.replace("LOWER", lower).replace("UPPER", upper)


def test_a_triangle_is_right_with_infinities_and_without_and_no_test_can_be_left_out(
    tmp_path: Path,
) -> None:
    program = eatss.codegen(triangle("above"), gpu="h200", output=tmp_path, **SMALL, **WARPS)
    assert TEST in program.text
    whole = right(verify(tmp_path, device="cpu"))
    assert any(result.not_finite for result in whole.results)
    blind = re.sub(r"finite &= eatss_is_finite\([^;]*\);", "", program.text)
    assert broken(program, tmp_path, program.text, blind) == "wrong result"


def test_a_rectangle_has_no_test_and_strict_code_none_either() -> None:
    rectangle = PRODUCT.replace("LOWER", "0").replace("UPPER", "N")
    for text, strict in ((triangle("below"), True), (rectangle, False)):
        program = eatss.codegen(text, gpu="h200", stages=1, strict_fp=strict, **SMALL)
        assert TEST not in program.text


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("staged", ["AB", "A"])
def test_factors_beside_zeros_are_those_that_are_not_zero_at_some_point(
    bounds: str, staged: str
) -> None:
    """Against brute force, on a tile of a small triangle."""
    scop: Scop = eatss.inspect(triangle(bounds), defines={"N": 6}).scops[0].scop
    (statement,) = scop.statements
    tile = set(product(range(2, 6), range(2), range(6)))
    sets = {one: _set(scop, statement.name, [one]) for one in tile}
    inside = {one for one, own in sets.items() if own.is_subset(statement.domain)}
    elements = {"A": lambda i, j, k: (i, k), "B": lambda i, j, k: (k, j)}
    numbers = {one.array: at for at, one in enumerate(statement.accesses) if one.array in staged}
    own = {array: {elements[array](*one) for one in inside} for array in numbers}
    not_zero = [
        {numbers[array] for array in numbers if elements[array](*one) in own[array]}
        for one in tile - inside
    ]
    read = {at: _set(scop, array, own[array]) for array, at in numbers.items()}
    found = factors_beside_zeros(statement, _set(scop, statement.name, tile - inside), read)
    if any(len(some) == len(numbers) for some in not_zero):
        assert found is None
    else:
        assert found == tuple(sorted(set().union(*not_zero)))


def _set(scop: Scop, name: str, points: Collection[tuple[int, ...]]) -> isl.Set:
    context, n = scop.isl_context, len(next(iter(points), (0, 0)))
    parts = "; ".join(f"{name}[{', '.join(map(str, one))}]" for one in sorted(points))
    if points:
        return isl.Set.read_from_str(context, f"{{ {parts} }}")
    dims = ", ".join(f"x{at}" for at in range(n))
    return isl.Set.read_from_str(context, f"{{ {name}[{dims}] : false }}")

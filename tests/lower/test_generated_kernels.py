"""Every kernel with its selected sizes computes what the original C computes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest

from eatss.base.shipped import data_directory
from eatss.program import Program
from eatss.verify import Verification
from tests.examples import SLOW_KERNELS

KERNELS = tuple(sorted(path.stem for path in data_directory("kernels").glob("*.c")))

QUICK_FLOATS = ("conv-2d", "trmm")
"""One whose operations keep their order, and one whose sums are split."""

LOOPS_WORK = 4e5
"""Points of the box of the sizes up to which a run takes milliseconds."""


def small_sizes(program: Program) -> list[dict[str, int]]:
    """Return no extent at all, less than a tile, and up to a tile and a rest where affordable."""
    names = [parameter.name for parameter in program.parameters]
    tiles = {parameter.name: parameter.tile for parameter in program.parameters}
    small = {name: 7 + 2 * k for k, name in enumerate(names)}
    large = {name: max(tiles[name] + 3 + k, 19) for k, name in enumerate(names)}
    while points(large) > LOOPS_WORK:
        widest = max(large, key=lambda name: large[name])
        large[widest] = large[widest] * 3 // 4
    nothing = dict.fromkeys(names, 0)
    if any(kernel.reassociates for kernel in program.kernels):
        return [nothing, large]  # the bounds on rounding take a compilation for each size
    return [nothing, small, large]


def points(sizes: dict[str, int]) -> int:
    """Return the points of three loops over the longest sizes, or of a loop over each."""
    longest = sorted(sizes.values(), reverse=True)
    return (
        int(prod(longest)) if len(longest) > 2 else longest[0] ** (4 - len(longest)) * longest[-1]
    )


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("kernel", "dtype", "gpu"),
    [
        *(
            pytest.param(
                kernel, "double", "h200", marks=pytest.mark.long if kernel in SLOW_KERNELS else ()
            )
            for kernel in KERNELS
        ),
        *(
            pytest.param(
                kernel, "float", "a100", marks=() if kernel in QUICK_FLOATS else pytest.mark.long
            )
            for kernel in KERNELS
        ),
    ],
)
def test_a_kernel_equals_the_original_where_its_text_was_not_verified_before(
    kernel: str,
    dtype: str,
    gpu: str,
    generate: Callable[..., Program],
    verify_kernel: Callable[..., Verification],
) -> None:
    program = generate(kernel, dtype=dtype, gpu=gpu)
    found = verify_kernel(program, small_sizes(program))
    assert (found.status, found.message) == ("ok", "")
    assert found.results[-1].compared > 0

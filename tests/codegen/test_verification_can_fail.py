"""A generated text that is broken in a way that matters does not pass verification."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eatss.codegen.options import CodegenOptions
from eatss.program import Program
from eatss.verify import Verification

STAGED = CodegenOptions(
    tile_sizes=(("", (("i", 16), ("j", 16), ("k", 8))),),
    block=(("", (8, 8)),),
    placements=(("In", "shared"), ("Ker", "shared")),
)
SIZES = [{"NI": 37, "NJ": 35, "NK": 21}]


@pytest.fixture(scope="module")
def product(generate: Callable[..., Program]) -> Program:
    """Return a product of matrices with partial tiles, both inputs in shared memory."""
    return generate("matmul", options=STAGED)


def test_the_unbroken_text_passes(
    product: Program, verify_kernel: Callable[..., Verification]
) -> None:
    assert verify_kernel(product, SIZES).status == "ok"

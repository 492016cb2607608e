"""The same verification on a real card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.program import Program
from eatss.verify.run import verify
from tests.verify.conftest import MATMUL_C


@pytest.mark.gpu
def test_a_right_program_is_right_on_the_card(matmul: Program, folder: Callable[..., Path]) -> None:
    verification = verify(folder(matmul, MATMUL_C), device="gpu")
    assert verification.status == "ok", verification.message
    assert verification.device == "gpu"


@pytest.mark.gpu
def test_a_wrong_program_is_wrong_on_the_card(matmul: Program, folder: Callable[..., Path]) -> None:
    wrong = folder(matmul, MATMUL_C, ("sum += ", "sum -= "))
    assert verify(wrong, device="gpu").status == "wrong result"

"""Arguments that kernels would take for something else, on a card and on the CPU alike."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

import eatss
from tests.session.jit.fake_cupy import FakeCupy
from tests.session.jit.sources import SCALED, random, refused

TWO = """
void first(int n, double A[n], double B[n]) {
#pragma scop
    for (int i = 0; i < n; i++)
        B[i] = A[i];
#pragma endscop
}
void second(int n, double B[n], double A[n + 3]) {
#pragma scop
    for (int i = 0; i < n + 3; i++)
        A[i] = 1;
#pragma endscop
}
"""


def test_the_shapes_of_all_regions_are_checked() -> None:
    both = eatss.jit(TWO, gpu="h200")
    said = refused("J003", lambda: both(A=np.zeros(5), B=np.zeros(5)))
    assert "'A' has the shape (5,), and (8,) is needed: dimension 0 is n + 3" in str(said)
    refused("J003", lambda: both(A=np.zeros(8), B=np.zeros(5), n=5))


def test_scalars_are_as_strict_on_the_cpu_as_on_a_card(cupy: FakeCupy) -> None:
    scaled = eatss.jit(SCALED, gpu="h200")
    a, b = random(4), np.empty(4)
    for factor in ("1.5", [1.5], None, 1j):
        for there in (lambda array: array, cupy.array):
            code = "J001" if factor is None else "J011"
            refused(code, partial(scaled, factor=factor, A=there(a), B=there(b)))


def test_arrays_with_a_mask_are_refused() -> None:
    scaled = eatss.jit(SCALED, gpu="h200")
    masked = np.ma.masked_array(random(4), [False, True, False, False])
    refused("J004", lambda: scaled(factor=1, A=masked, B=np.empty(4)))


def test_swapped_bytes_are_named() -> None:
    scaled = eatss.jit(SCALED, gpu="h200")
    said = refused("J004", lambda: scaled(factor=1, A=random(4).astype(">f8"), B=np.empty(4)))
    assert "is of >f8, whose bytes are in the other order" in str(said)


def test_the_order_of_arguments_is_told_as_it_is() -> None:
    text = SCALED.replace("double factor", "double unused[n], double factor")
    scaled = eatss.jit(text, gpu="h200")
    assert list(scaled.__signature__.parameters) == ["n", "unused", "factor", "A", "B"]
    b = np.empty(3)
    scaled(3, None, 2.0, np.ones(3), b)
    assert (b == 2).all()


# the page on codes ----------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[3]


def documented() -> set[str]:
    """Return the J-codes of the table, ranges spelled out."""
    found: set[str] = set()
    for cell in re.findall(r"^\| EATSS-(J[^|]*) \|", (ROOT / "docs/findings.md").read_text(), re.M):
        for part in cell.split(", "):
            first, _, last = part.partition(" to ")
            numbers = [int(one.removeprefix("J")) for one in (first, last or first)]
            found |= {f"J{number:03d}" for number in range(numbers[0], numbers[1] + 1)}
    return found


def test_every_code_of_a_call_is_documented() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "eatss/session/jit").glob("*.py")))
    raised = set(re.findall(r'"EATSS-(J\d+)"', text))
    assert raised
    assert documented() == raised


def test_every_code_of_a_call_is_tested() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert documented() <= set(re.findall(r"\b(J\d{3})\b", tests))

"""Halves in Python: numbers of NumPy's float16, which rounds after each operation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eatss
from eatss.polyhedral.expression import ElementType
from tests.frontend.python.running import check_equal, loaded

HEAD = (
    "@eatss.scop\ndef loops(n: eatss.Param, a: eatss.f16['n'], b: eatss.f16['n'], "
    "x: eatss.f32['n'], d: eatss.f64['n'], q: eatss.i32['n'], s: eatss.i8['n']):\n"
    "    for i in range(n):\n"
)

STATEMENTS = [
    ("a[i] = a[i] * b[i] + a[i]", "a[i] = a[i] * b[i] + a[i];"),
    ("a[i] = 0.1 * b[i]", "a[i] = (_Float16) 0.099975586f * b[i];"),
    ("a[i] = 0.1", "a[i] = (_Float16) 0.099975586f;"),
    ("a[i] += x[i]", "a[i] += x[i];"),
    ("x[i] += np.float32(a[i]) * np.float32(b[i])", "x[i] += (float) a[i] * (float) b[i];"),
    ("x[i] = a[i] * b[i]", "x[i] = a[i] * b[i];"),
    ("d[i] = a[i] + d[i]", "d[i] = a[i] + d[i];"),
    ("d[i] = a[i] + q[i]", "d[i] = (double) a[i] + q[i];"),
    ("a[i] = b[i] / s[i]", "a[i] = b[i] / s[i];"),
    ("a[i] = np.sqrt(abs(a[i]))", "a[i] = (_Float16) sqrtf((_Float16) fabsf(a[i]));"),
    ("a[i] = np.fmax(a[i], b[i])", "a[i] = (_Float16) fmaxf(a[i], b[i]);"),
    ("a[i] = max(a[i] - b[i], 0)", "a[i] = max(a[i] - b[i], (_Float16) 0.0f);"),
    ("a[i] = -a[i] if a[i] < b[i] else b[i]", "a[i] = a[i] < b[i] ? -a[i] : b[i];"),
    ("a[i] = np.float16(d[i])", "a[i] = (_Float16) d[i];"),
]


def test_c_has_the_operations_of_numpy_and_leaves_the_same(tmp_path: Path) -> None:
    scop = loaded(HEAD + "".join(f"        {line}\n" for line, _ in STATEMENTS), tmp_path)
    for _, text in STATEMENTS:
        assert text in scop.c_source
    draw = np.random.default_rng(3)
    halves = [draw.normal(size=300).astype(np.float16) for _ in range(2)]
    values = [300, *halves, draw.random(300, dtype=np.float32), draw.random(300)]
    check_equal(
        scop, [*values, np.arange(300, dtype=np.int32), np.ones(300, dtype=np.int8)], tmp_path
    )
    assert scop.arguments[1].element_type is ElementType.HALF


def test_a_number_that_no_half_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(eatss.InputError) as raised:
        _ = loaded(HEAD + "        a[i] = 70000.0 * b[i]\n", tmp_path).c_source
    assert "is too large for 16 bits" in raised.value.diagnostics[0].message

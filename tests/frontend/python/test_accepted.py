"""Every accepted form, the C it becomes, and that both leave the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eatss.polyhedral.expression import ElementType
from tests.frontend.python.running import DTYPES, check_equal, loaded

# -- Every accepted form, the C it becomes, and that both leave the same.


HEAD = (
    "@eatss.scop\ndef loops(n: eatss.Param, m: eatss.Param, x: eatss.f64, y: eatss.f32, "
    'A: eatss.f64["n", "n"], a: eatss.f32["n"], b: eatss.i32["n"], c: eatss.i64["n"], '
    'u: eatss.u8["n"]):\n'
)


def arguments() -> list[Any]:
    rng = np.random.default_rng(7)
    return [
        9,
        4,
        np.float64(1.7),
        np.float32(0.3),
        rng.normal(size=(9, 9)),
        rng.normal(size=9).astype(np.float32),
        np.arange(-17, 19, 4, dtype=np.int32),
        np.arange(-40, 41, 10, dtype=np.int64),
        np.arange(9, dtype=np.uint8),
    ]


def body(text: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in text.strip().splitlines())


STATEMENTS = [
    # subscripts
    ("A[i, 0] = A[0][i]", "A[i][0] = A[0][i];"),
    ("A[i, n - 1 - i] = 1", "A[i][n - 1 - i] = 1.0;"),
    # numbers take the type of what is beside them
    ("a[i] = 0.1", "a[i] = 0.1f;"),
    ("A[i, 0] = 0.1 * a[i]", "A[i][0] = 0.1f * a[i];"),
    ("A[i, 0] = i + 1", "A[i][0] = i + 1;"),
    ("A[i, 0] = i / n", "A[i][0] = (double) i / n;"),
    ("A[i, 0] = b[i] / 2", "A[i][0] = b[i] / 2.0;"),
    ("A[i, 0] = a[i] + b[i]", "A[i][0] = (double) a[i] + b[i];"),
    ("a[i] = math.exp(a[i])", "a[i] = exp(a[i]);"),
    ("a[i] = np.sqrt(a[i] * a[i])", "a[i] = sqrtf(a[i] * a[i]);"),
    ("A[i, 0] = np.float64(a[i]) * 0.1", "A[i][0] = (double) a[i] * 0.1;"),
    ("A[i, 0] = np.copysign(x, a[i])", "A[i][0] = copysign(x, a[i]);"),
    # rounding down
    ("A[i // 2, 0] = x", "A[floordiv(i, 2)][0] = x;"),
    ("b[i] = b[i] // 3", "b[i] = floor_quotient(b[i], 3);"),
    ("b[i] %= 5", "b[i] = floor_remainder(b[i], 5);"),
    # other arithmetic
    ("A[i, 0] = x ** 2", "A[i][0] = x * x;"),
    ("A[i, 0] = (x + 1) ** 3", "A[i][0] = (x + 1.0) * (x + 1.0) * (x + 1.0);"),
    ("A[i, 0] = x - (x - 1)", "A[i][0] = x - (x - 1.0);"),
    ("A[i, 0] = abs(x) + abs(b[i]) + abs(c[i])",
     "A[i][0] = fabs(x) + abs(b[i]) + labs(c[i]);"),
    # numbers of more than 32 bits
    ("c[i] = (i + np.int64(1)) * 2000000000", "c[i] = (i + (long) 1) * 2000000000;"),
    ("u[i] = np.int32(u[i]) + 1", "u[i] = (int) u[i] + 1;"),
    # choices
    ("A[i, 0] = min(x, A[i, 1], 0)", "A[i][0] = min(min(x, A[i][1]), 0.0);"),
    ("a[i] = max(a[i], 0.1)", "a[i] = max(a[i], 0.1f);"),
    ("A[i, 0] = x if x > 1 else A[i, 1]", "A[i][0] = x > 1.0 ? x : A[i][1];"),
    ("A[i, 0] = 1 if 0 < x <= 2 and not i == 3 or m > i else x",
     "A[i][0] = (0.0 < x && x <= 2.0 && !(i == 3)) || m > i ? 1.0 : x;"),
    ("A[i, 0] = x if a[i] < A[i, 0] else 1", "A[i][0] = a[i] < A[i][0] ? x : 1.0;"),
    ("A[i, 0] = x if b[i] else -x", "A[i][0] = b[i] != 0 ? x : -x;"),
    # assignments
    ("a[i] += A[i, 0]", "a[i] += A[i][0];"),
    ("a[i] *= b[i]", "a[i] = (double) a[i] * b[i];"),
    ("A[i, 0] /= 3", "A[i][0] /= 3.0;"),
    ("A[i, 0] **= 2", "A[i][0] = A[i][0] * A[i][0];"),
]  # fmt: skip


@pytest.mark.parametrize("first", range(0, len(STATEMENTS), 8))
def test_statements(first: int, tmp_path: Path) -> None:
    """Each statement sets a column of its own, so that none hides another."""
    pairs = [
        (python.replace("A[i, 0]", f"A[i, {at}]"), c.replace("A[i][0]", f"A[i][{at}]"))
        for at, (python, c) in enumerate(STATEMENTS[first : first + 8])
    ]
    scop = loaded(body("for i in range(n):\n" + "\n".join(f"    {p}" for p, _ in pairs)), tmp_path)
    lines = [line.strip() for line in scop.c_source.splitlines()]
    start = lines.index("#pragma scop") + 2
    assert lines[start : start + len(pairs)] == [c for _, c in pairs]
    check_equal(scop, arguments(), tmp_path)


HEADS = [
    ("n", "for (int i = 0; i < n; i++) {"),
    ("1, n", "for (int i = 1; i < n; i++) {"),
    ("0, n, 2", "for (int i = 0; i < n; i += 2) {"),
    ("n - 1, -1, -1", "for (int i = n - 1; i >= 0; i--) {"),
    ("n - 1, m, -3", "for (int i = n - 1; i > m; i -= 3) {"),
    ("n // 2, min(n, m + 2)", "for (int i = floordiv(n, 2); i < min(n, m + 2); i++) {"),
    ("m if m < n else n", "for (int i = 0; i < (m < n ? m : n); i++) {"),
]


def test_loops(tmp_path: Path) -> None:
    loops = "\n".join(f"for i in range({text}):\n    A[i, 0] += i * x" for text, _ in HEADS)
    lines = [line.strip() for line in c_body(loops, tmp_path).splitlines()]
    assert [line for line in lines if line.startswith("for")] == [c for _, c in HEADS]


def c_body(text: str, folder: Path) -> str:
    """Return the region of a function, and check that C and Python leave the same."""
    scop = loaded(body(text), folder)
    check_equal(scop, arguments(), folder)
    return scop.c_source.partition("#pragma scop\n")[2].partition("#pragma endscop")[0]


def test_conditions(tmp_path: Path) -> None:
    assert c_body(
        """
'''Documented.'''
for i in range(n):
    if 1 <= i < n - 1 and i % 2:
        A[i, 0] = 1
    elif not (i == 0 or i > m):
        A[i, 0] = 2
    else:
        pass
        A[i, 0] = 3
""",
        tmp_path,
    ) == (
        """    for (int i = 0; i < n; i++) {
        if (1 <= i && i < n - 1 && floormod(i, 2) != 0) {
            A[i][0] = 1.0;
        } else if (!(i == 0 || i > m)) {
            A[i][0] = 2.0;
        } else {
            A[i][0] = 3.0;
        }
    }
"""
    )


def test_locals_live_in_the_innermost_block_and_have_the_type_of_their_values(
    tmp_path: Path,
) -> None:
    assert c_body(
        """
for i in range(n):
    s = 0
    t = 0.0
    for j in range(n):
        s += a[j]
        t += A[i, j]
    k = (i + 1) % 4
    A[k, 0] = s * t
for i in range(n):
    w = x
    if i > 2:
        w = 2 * x
    v = i * 0.5
    A[i, 1] = w + v
""",
        tmp_path,
    ) == (
        """    for (int i = 0; i < n; i++) {
        float s = 0.0f;
        double t = 0.0;
        for (int j = 0; j < n; j++) {
            s += a[j];
            t += A[i][j];
        }
        int k = floormod(i + 1, 4);
        A[k][0] = s * t;
    }
    for (int i = 0; i < n; i++) {
        double w = x;
        if (i > 2) {
            w = 2.0 * x;
        }
        double v = i * 0.5;
        A[i][1] = w + v;
    }
"""
    )


def test_arrays_of_the_function(tmp_path: Path) -> None:
    assert c_body(
        """
T = np.empty((n, 2 * m))
S = np.empty(n, dtype=np.float32)
for i in range(n):
    S[i] = 0.1
    for j in range(m):
        T[i, j] = x + j
for i in range(n):
    A[i, 0] = T[i, m - 1] * S[i]
""",
        tmp_path,
    ).startswith("    double T[n][2 * m];\n    float S[n];\n    for")


def test_extents_and_names_without_quotes(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\n\nimport eatss as e\nfrom eatss import f32, Param\n\n"
        "@e.scop\ndef loops(n: Param, A: e.f64[n, 2 * n + 1], B: f32['n - 2', 4], "
        "C: 'e.i64[n]') -> None:\n    for i in range(n):\n        A[i, 2 * i] = 1\n"
    )
    path = tmp_path / "lazy.py"
    path.write_text(text, encoding="utf-8")
    from eatss.frontend.python import read_python  # noqa: PLC0415

    scop = read_python(path)
    assert scop.function is None
    assert "(int n, double A[n][2 * n + 1], float B[n - 2][4], long C[n])" in scop.c_source
    assert [(one.name, one.kind, one.extents) for one in scop.arguments] == [
        ("n", "param", ()),
        ("A", "array", ("n", "2 * n + 1")),
        ("B", "array", ("n - 2", "4")),
        ("C", "array", ("n",)),
    ]


def test_a_function_inside_a_function(tmp_path: Path) -> None:
    scop = loaded(
        "def make():\n    from math import sqrt as root\n    @eatss.scop\n"
        '    def inner(n: eatss.Param, A: eatss.f64["n"]):\n        for i in range(n):\n'
        "            A[i] = root(A[i])\n    return inner\nloops = make()\n",
        tmp_path,
    )
    assert "A[i] = sqrt(A[i]);" in scop.c_source
    check_equal(scop, [3, np.array([1.0, 2.0, 3.0])], tmp_path)


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("divisor", [1, 127])
def test_division_rounds_down_at_the_ends_of_a_type_too(
    kind: str, divisor: int, tmp_path: Path
) -> None:
    scop = loaded(
        f'@eatss.scop\ndef loops(n: eatss.Param, A: eatss.{kind}["n"], B: eatss.{kind}["n"], '
        f'C: eatss.{kind}["n"]):\n    for i in range(n):\n        B[i] = A[i] // {divisor}\n'
        f"        C[i] = A[i] % {divisor}\n",
        tmp_path,
    )
    most = 2 ** (int(kind[1:]) - 1) - 1
    least = -most - 1
    ends = [*range(least, least + 20), *range(-20, 21), *range(most - 20, most + 1)]
    numbers = np.array(ends, dtype=DTYPES[kind])
    empty = np.zeros_like(numbers)
    check_equal(scop, [len(numbers), numbers, empty, empty.copy()], tmp_path)


# -- Halves in Python: numbers of NumPy's float16, which rounds after each operation.


HALVES_HEAD = (
    "@eatss.scop\ndef loops(n: eatss.Param, a: eatss.f16['n'], b: eatss.f16['n'], "
    "x: eatss.f32['n'], d: eatss.f64['n'], q: eatss.i32['n'], s: eatss.i8['n']):\n"
    "    for i in range(n):\n"
)

HALVES = [
    ("a[i] = a[i] * b[i] + a[i]", "a[i] = a[i] * b[i] + a[i];"),
    ("a[i] = 0.1 * b[i]", "a[i] = (_Float16) 0.099975586f * b[i];"),
    ("a[i] = 0.1", "a[i] = (_Float16) 0.099975586f;"),
    ("a[i] += x[i]", "a[i] += x[i];"),
    ("x[i] += np.float32(a[i]) * np.float32(b[i])", "x[i] += (float) a[i] * (float) b[i];"),
    ("x[i] = a[i] * b[i]", "x[i] = a[i] * b[i];"),
    ("d[i] = a[i] + q[i]", "d[i] = (double) a[i] + q[i];"),
    ("a[i] = b[i] / np.float16(s[i])", "a[i] = b[i] / (_Float16) s[i];"),
    ("a[i] = np.sqrt(abs(a[i]))", "a[i] = (_Float16) sqrtf((_Float16) fabsf(a[i]));"),
    ("a[i] = np.fmax(a[i], b[i])", "a[i] = (_Float16) fmaxf(a[i], b[i]);"),
    ("a[i] = max(a[i] - b[i], 0)", "a[i] = max(a[i] - b[i], (_Float16) 0.0f);"),
    ("a[i] = -a[i] if a[i] < b[i] else b[i]", "a[i] = a[i] < b[i] ? -a[i] : b[i];"),
]


def test_c_has_the_operations_of_numpy_and_leaves_the_same(tmp_path: Path) -> None:
    scop = loaded(HALVES_HEAD + "".join(f"        {line}\n" for line, _ in HALVES), tmp_path)
    for _, text in HALVES:
        assert text in scop.c_source
    draw = np.random.default_rng(3)
    halves = [draw.normal(size=300).astype(np.float16) for _ in range(2)]
    values = [300, *halves, draw.random(300, dtype=np.float32), draw.random(300)]
    check_equal(
        scop, [*values, np.arange(300, dtype=np.int32), np.ones(300, dtype=np.int8)], tmp_path
    )
    assert scop.arguments[1].element_type is ElementType.HALF

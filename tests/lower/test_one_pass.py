"""Mean and variance, maximum and sum of exponentials: from one pass, where that costs less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.lower.recipe import CodeRequest
from eatss.session.session import Session
from tests.lower.checking import checked

BATCHES = """#include <math.h>
#ifndef N
#define N 64
#endif
#ifndef C
#define C 256
#endif
#ifndef S
#define S 3136
#endif
void f(float x[N][C][S], float m[C], float v[C]) {
#pragma scop
  for (int c = 0; c < C; c++) {
    m[c] = 0;
    for (int n = 0; n < N; n++) for (int s = 0; s < S; s++) m[c] += x[n][c][s];
    m[c] /= N * S;
    v[c] = 0;
    for (int n = 0; n < N; n++)
      for (int s = 0; s < S; s++) v[c] += (x[n][c][s] - m[c]) * (x[n][c][s] - m[c]);
  }
#pragma endscop
}
"""
EXPONENTIALS = """#include <math.h>
#ifndef N
#define N 512
#endif
#ifndef S
#define S 262144
#endif
void f(float x[N][S], float m[N], float v[N]) {
#pragma scop
  for (int i = 0; i < N; i++) {
    m[i] = x[i][0];
    for (int j = 0; j < S; j++) m[i] = fmaxf(m[i], x[i][j]);
    v[i] = 0;
    for (int j = 0; j < S; j++) v[i] += expf(x[i][j] - m[i]);
  }
#pragma endscop
}
"""
PROFILE = load_profile("h200")


def readers(text: str) -> list[bool]:
    """Return of each kernel whether it reads x."""
    return ["*__restrict__ x" in one for one in re.findall(r"__global__[^{]*", text)]


@pytest.mark.parametrize(
    ("source", "sizes"),
    [
        (BATCHES, ({"N": 3, "C": 2, "S": 1025}, {"N": 65, "C": 5, "S": 7}, {"N": 2, "C": 0, "S": 1},
        )),
        (EXPONENTIALS, ({"N": 2, "S": 4097}, {"N": 3, "S": 8192}, {"N": 5, "S": 1})),
    ],
)  # fmt: skip
def test_what_is_summed_twice_is_read_once(
    source: str, sizes: tuple[dict[str, int], ...], tmp_path: Path
) -> None:
    program = checked(source, tmp_path, sizes)
    assert program.text.count("from one pass over their terms") == 2
    first, *others = readers(program.text)
    assert first
    assert any(others) == ("x[i][0]" in source)


def test_a_recipe_that_takes_one_pass_does_not_keep_the_order() -> None:
    session = Session(BATCHES, code=True)
    selection = session.select(PROFILE, SelectOptions(target="cuda"))
    assert [one.length for one in selection.chunks] == [0]
    recipe = session.recipe(selection, PROFILE, CodeRequest(strict_fp=True))
    with pytest.raises(InputError, match="EATSS-K019"):
        session.generate(recipe, PROFILE)


def test_strict_order_of_one_row_says_what_one_pass_would_take() -> None:
    whole = """#ifndef N
#define N 400000000
#endif
void f(float x[N], float m[1], float v[1]) {
#pragma scop
  for (int i = 0; i < N; i++) m[0] += x[i];
  m[0] /= N;
  for (int i = 0; i < N; i++) v[0] += (x[i] - m[0]) * (x[i] - m[0]);
#pragma endscop
}
"""
    strict = eatss.codegen(whole, gpu="h200", strict_fp=True)
    notes = "; ".join(note for kernel in strict.kernels for note in kernel.notes)
    assert "in one pass, and any order, they are expected to take less" in notes
    assert "from one pass" not in strict.text
    assert "nothing to tile" not in notes

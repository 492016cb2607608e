"""Points of a thread stored behind all of them: what is made of them, and that errors are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eatss
from eatss.base.diagnostics import InternalError
from eatss.lower.kernel.checks import kernel_faults
from eatss.lower.kernel.nodes import Compute, For, If, Kernel, Node
from eatss.lower.kernel.uses import every_of, mapped_of
from eatss.lower.transform import chain, stores_last
from eatss.program import Program, save_program
from eatss.verify.result import Verification
from eatss.verify.run import verify
from tests.examples import examples
from tests.lower.checking import broken, checked

STENCIL = """
void f({type} A[2][N][N])
{{
#pragma scop
    for (int t = 0; t < STEPS; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                A[(t + 1) % 2][i][j] = {value};
#pragma endscop
}}
"""
SUM = "(A[t % 2][i - 1][j] + A[t % 2][i][j] + A[t % 2][i + 1][j] + A[t % 2][i][j + 1])"
TILES = {"k0": {"i": 4, "j": 16}}


def made(folder: Path, value: str, kind: str = "double", *, strict_fp: bool = False) -> Program:
    """Return the program of a stencil, in a folder with its source."""
    source = folder / "f.c"
    source.write_text(STENCIL.format(type=kind, value=value), encoding="utf-8")
    program = eatss.codegen(
        source,
        gpu="h200",
        defines={"N": 40, "STEPS": 3},
        tiles=TILES,
        block={"k0": (1, 16)},
        strict_fp=strict_fp,
    )
    save_program(program, folder)
    return program


def verified(folder: Path) -> Verification:
    return verify(folder, device="cpu", timeout_s=20.0)


def body_of(program: Program) -> str:
    """Return the first kernel, up to its second way."""
    text = program.text[program.text.index("__launch_bounds__") :]
    return text[: text.index("} else {")]


def test_loads_of_all_points_stand_before_all_stores(tmp_path: Path) -> None:
    body = body_of(made(tmp_path, f"{SUM} / 4.5"))
    assert body.count("eatss_quotient<double>(") == 2
    assert body.count("bool exact = true;") == 1
    assert re.search(r"A_r\[ri\] = eatss_quotient<double>\(.*, 4.5, exact\);", body)
    assert body.rindex("floordiv(t, 2)") < body.index("= A_r[ri];")
    assert verified(tmp_path).status == "ok"


def test_other_planes_are_stored_last_without_quotients_too(tmp_path: Path) -> None:
    body = body_of(made(tmp_path, f"{SUM} * 0.25"))
    assert "exact" not in body
    assert body.rindex("floordiv(t, 2)") < body.index("= A_r[ri];")


@pytest.mark.parametrize("divisor", ["4", "2.0", "0.001", "1e12", "A[t % 2][i][j + 1]"])
def test_other_divisors_stay_divisions(divisor: str, tmp_path: Path) -> None:
    program = made(tmp_path, f"{SUM} / {divisor}")
    assert "eatss_quotient" not in program.text


def test_strict_results_are_the_same_in_every_bit(tmp_path: Path) -> None:
    made(tmp_path, f"{SUM} / 118", "float", strict_fp=True)
    found = verified(tmp_path)
    assert (found.status, found.bit_equal) == ("ok", True)
    assert found.coverage is not None
    assert not [one for one in found.coverage.untaken if "exact" in one.condition]


divisors = st.one_of(
    st.integers(3, 400).map(str),
    st.floats(0.01, 1e6).map(lambda one: f"{one:.7e}"),
    st.floats(0.01, 1e6).map(lambda one: f"{one:.4e}f"),
)


@settings(max_examples=examples(3), deadline=None)
@given(kind=st.sampled_from(["float", "double"]), own=st.tuples(divisors, divisors))
def test_any_literals_divide_as_in_c(
    kind: str, own: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("quotients")
    value = f"A[t % 2][i][j - 1] / {own[0]} + ({SUM} / {own[1]} - A[t % 2][i][j]) / 3"
    made(folder, value, kind)
    found = verified(folder)
    assert found.status == "ok"
    assert found.bit_equal


def test_a_missing_test_of_quotients_is_found(tmp_path: Path) -> None:
    program = made(tmp_path, f"{SUM} / 118", "float")
    for old, new in (
        ("if (exact == 0)", "if (false)"),
        ("exact &= fabs(quotient) >= least || x == 0;", ""),
    ):
        assert broken(program, tmp_path, old, new) == "wrong result"


def without_test(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return mapped_of(nodes, If, lambda one: one if one.orelse else one.body)


def still_flagged(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return mapped_of(nodes, Compute, lambda one: replace(one, flag="exact"))


@pytest.mark.parametrize("way", [without_test, still_flagged])
def test_a_flag_that_nothing_looks_at_is_a_fault_of_ours(
    way: Callable[[tuple[Node, ...]], tuple[Node, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = stores_last.with_stores_last

    def changed(kernel: Kernel, points: Collection[str], taken: set[str]) -> Kernel:
        found = original(kernel, points, taken)
        assert not kernel_faults(found, ("N", "STEPS"))
        return replace(found, body=way(found.body))

    monkeypatch.setattr(chain, "with_stores_last", changed)
    with pytest.raises(InternalError, match="is not computed again"):
        made(tmp_path, f"{SUM} / 118")


def test_points_of_a_loop_that_is_not_parallel_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "f.c"
    source.write_text(
        "void f(double A[N][5])\n{\n#pragma scop\nfor (int i = 0; i < N; i++)\n"
        "for (int j = 0; j < 4; j++) A[i][j + 1] = A[i][j] / 3;\n#pragma endscop\n}\n",
        encoding="utf-8",
    )

    original = stores_last.with_stores_last

    def changed(kernel: Kernel, points: Collection[str], taken: set[str]) -> Kernel:
        return original(kernel, [one.counter for one in every_of(kernel.body, For)], taken)

    monkeypatch.setattr(chain, "with_stores_last", changed)
    program = eatss.codegen(source, gpu="h200", defines={"N": 40}, placements={"A": "l1"})
    assert "A_r[4]" in program.text
    save_program(program, tmp_path)
    assert verify(tmp_path, device="cpu", first_failure=True).status == "wrong result"


ROWS = """
void f(float y[N][M], float x[N][M], float s[N], float z[M])
{
#pragma scop
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            y[i][j] = (x[i][j] - x[i][0]) / sqrtf(s[i] * s[i] + 1) * z[j];
#pragma endscop
}
"""


def text_of(folder: Path, rows: str) -> str:
    source = "#include <math.h>\n" + rows
    block, tiles = {"k0": (2, 32)}, {"k0": {"i": 8, "j": 64}}
    return checked(source, folder, defines={"N": 37, "M": 150}, tiles=tiles, block=block).text


def test_what_points_read_is_loaded_before_divisions(tmp_path: Path) -> None:
    before = text_of(tmp_path, ROWS).partition("float x_r[4][2];")[2].partition("y[")[0]
    assert re.findall(r"(\w+\S*) = \w+\[", before) == [
        "x_r[ri][rj]",
        "x_r_1[ri]",
        "s_r[ri]",
        "z_r[rj]",
    ]


def test_what_is_behind_a_condition_is_not_loaded_before_it(tmp_path: Path) -> None:
    guarded = ROWS.replace("x[i][j] -", "(i > 0 ? x[i - 1][j] : 0.0f) -")
    assert "s_r[4]" in text_of(tmp_path, guarded)

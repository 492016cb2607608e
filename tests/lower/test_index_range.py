"""32-bit indices hold all that is printed; what is printed is checked as it is printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.api import codegen
from eatss.base.diagnostics import InputError, InternalError
from eatss.lower import thread_builder
from eatss.lower.index_range import INT_MAX, Range, range_of, widened
from eatss.lower.transform import chain
from eatss.program import Apply, Constant, IntExpr, Name, Operator, evaluate
from eatss.program.linear import bounds

NAMES = ("a", "b", "c")


def written(directory: Path, loops: str, arguments: str) -> Path:
    path = directory / "f.c"
    path.write_text(f"void f({arguments}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n")
    return path


def expressions() -> st.SearchStrategy[IntExpr]:
    constants = st.integers(-INT_MAX, INT_MAX) | st.integers(-4, 4)
    leaves = st.builds(Constant, constants) | st.builds(Name, st.sampled_from(NAMES))
    many = (Operator.ADD, Operator.MIN, Operator.MAX, Operator.MUL)
    divisions = (Operator.FLOORDIV, Operator.QUOTIENT, Operator.REMAINDER, Operator.MOD)

    def of(operators: tuple[Operator, ...], *operands: Any) -> st.SearchStrategy[IntExpr]:
        return st.builds(Apply, st.sampled_from(operators), st.tuples(*operands))

    def larger(inner: st.SearchStrategy[IntExpr]) -> st.SearchStrategy[IntExpr]:
        return st.one_of(
            of(many, inner, inner, inner),
            of((*many, Operator.SUB, Operator.LE), inner, inner),
            of((Operator.SUB,), inner),
            of(divisions, inner, st.builds(Constant, st.integers(1, 5000))),
        )

    return st.recursive(leaves, larger, max_leaves=8)


def parts(expression: IntExpr) -> list[IntExpr]:
    inner = expression.operands if isinstance(expression, Apply) else ()
    return [expression, *(part for operand in inner for part in parts(operand))]


@given(
    expression=expressions(),
    ends=st.tuples(*[st.tuples(st.integers(-(2**31), INT_MAX), st.integers(0, 2**20))] * 3),
    data=st.data(),
)
def test_every_value_of_every_part_is_in_its_range(
    expression: IntExpr, ends: tuple[tuple[int, int], ...], data: st.DataObject
) -> None:
    ranges = {n: Range(low, low + size) for n, (low, size) in zip(NAMES, ends, strict=True)}
    usual = Range(0, 0)
    if range_of(expression, ranges, usual) is None:
        return
    values = {n: data.draw(st.integers(r.low, r.high)) for n, r in ranges.items()}
    for part in parts(expression):
        found = range_of(part, ranges, usual)
        assert found is not None
        assert found.low <= evaluate(part, values) <= found.high
        assert -INT_MAX - 1 <= found.low <= found.high <= INT_MAX


def test_a_condition_of_the_host_is_computed_in_64_bits_where_sizes_may_be_anything() -> None:
    twice = Apply(Operator.LE, (Apply(Operator.MUL, (Constant(2), Name("n"))), Constant(7)))
    assert "(long)n" in str(widened(twice, ["n"]))
    plain = Apply(Operator.GE, (Name("n"), Constant(1)))
    assert widened(plain, ["n"]) == plain


def test_indices_are_64_bits_wide_where_a_factor_leaves_no_room(tmp_path: Path) -> None:
    source = written(tmp_path, "for (int i = n / 100; i < n; i++) A[i] += 1;", "int n, double A[n]")
    assert codegen(source, gpu="a100").index_bits == 64
    with pytest.raises(InputError, match="32 bits do not hold"):
        codegen(source, gpu="a100", index_bits=32)


def test_a_factor_with_room_lowers_the_sizes_that_are_accepted(tmp_path: Path) -> None:
    loops = "for (int i = n / 7; i < n; i++) A[i] += 1;"
    program = codegen(written(tmp_path, loops, "int n, double A[n]"), gpu="a100")
    assert program.index_bits == 32
    (entry,) = program.entries
    (bound,) = [a for a in entry.assumptions if "32 bits" in a.message]
    largest = 2**28
    assert "2^28" in bound.message
    assert evaluate(bound.condition, {"n": largest})
    assert not evaluate(bound.condition, {"n": largest + 1})
    assert 7 * largest + 6 <= INT_MAX < 7 * 2 * largest


def raised(
    text: Callable[..., list[IntExpr] | None], *, side: bool
) -> Callable[..., list[IntExpr] | None]:
    """Return bounds of which those on one side are one too high."""

    def wrong(*arguments: object, upper: bool) -> list[IntExpr] | None:
        found = text(*arguments, upper=upper)
        if found is None or upper is not side:
            return found
        return [Apply(Operator.ADD, (one, Constant(1))) for one in found]

    return wrong


def sharper(condition: IntExpr) -> IntExpr:
    if isinstance(condition, Apply) and condition.operator is Operator.LE:
        return Apply(Operator.LT, condition.operands)
    return condition


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("bounds", raised(bounds, side=True)),
        ("bounds", raised(bounds, side=False)),
        ("strict", sharper),
    ],
)
def test_a_guard_that_is_printed_wrongly_is_found_before_it_is_printed(
    name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(thread_builder, name, wrong)
    loops = "for (int i = 3; i < n; i++) for (int j = i; j < n; j++) A[i][j] += 1;"
    source = written(tmp_path, loops, "int n, double A[n][n]")
    with pytest.raises(InternalError, match="every instance once"):
        codegen(source, gpu="a100", tiles={"k0": {"i": 32, "j": 64}})


def test_a_size_that_only_a_test_of_rows_asks_for_is_passed(tmp_path: Path) -> None:
    loops = "*out = 0; for (int i = 0; i < m; i++) *out += A[0][i];"
    source = written(tmp_path, loops, "int n, int m, double A[n][n], double *out")
    program = codegen(source, gpu="h200")
    assert "const bool wide_A = eatss_is_aligned(A) && n % 2 == 0;" in program.text
    assert {"n", "m"} <= {*program.kernels[-1].arguments}


def test_a_size_that_is_not_passed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "with_integers", lambda kernel, _: kernel)
    loops = "*out = 0; for (int i = 0; i < m; i++) *out += A[0][i];"
    source = written(tmp_path, loops, "int n, int m, double A[n][n], double *out")
    with pytest.raises(InternalError, match="nothing is called n"):
        codegen(source, gpu="h200")

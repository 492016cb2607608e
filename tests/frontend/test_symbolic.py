"""Macro sizes as parameters: at every value they are the program that -D gives."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.frontend.options import FrontendOptions
from eatss.frontend.parse import parse_file, parse_text
from eatss.frontend.source import SourceText
from eatss.frontend.symbolic import SymbolicResult, agree, parse_symbolic, type_macros
from eatss.polyhedral.isl_names import at_values
from tests.examples import examples

KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.c"))
NAMES = [path.stem for path in KERNELS]

HEAD = "#ifndef N\n#define N 40\n#endif\n#ifndef M\n#define M 24\n#endif\n"


def agrees_at(result: SymbolicResult, file: str, data: bytes, values: dict[str, int]) -> bool:
    """Compare the symbolic regions at other values with the file read with -D."""
    options = FrontendOptions(defines=tuple(f"{n}={v}" for n, v in values.items()))
    context = result.scops[0].isl_context
    numeric = parse_text(SourceText.of(file, data), options, context=context)
    pairs = zip(result.scops, numeric.scops, strict=True)
    return all(agree(one, other, values) for one, other in pairs)


@pytest.mark.parametrize("path", KERNELS[::4], ids=NAMES[::4])
def test_at_any_sizes_a_kernel_is_the_program_with_those_sizes(path: Path) -> None:
    result, data = parse_symbolic(path), path.read_bytes()
    scop, names = result.scops[0], [name for name, _ in result.values]
    assert sorted(names) == sorted(re.findall(r"#ifndef (\w+)\n#define \1 SIZE", data.decode()))
    assert sorted(scop.parameters) == sorted(names) != []
    origins = {(p.name, p.origin) for p in scop.parameter_declarations}
    assert origins == {(name, "macro") for name in names}
    assert result.warnings == ()
    sets = (
        dict(result.values),
        {name: 97 - 11 * k for k, name in enumerate(names)},
        {name: 1021 - 3 * k for k, name in enumerate(names)},
    )
    for values in sets:
        assert agrees_at(result, str(path), data, values)
    # nothing is assumed of them, and at zero nothing runs
    assert scop.context.is_equal(isl.Set.universe(scop.context.get_space()))
    zero = [(name, 0) for name in names]
    for statement in scop.statements:
        if statement.loops:
            assert at_values(statement.domain, zero).is_empty()


def region(body: str, *, head: str = HEAD, arrays: str = "double A[N][M]") -> str:
    return (
        f"{head}void f({arrays}, int n, double *p)\n{{\n  int i, j;\n#pragma scop\n{body}\n"
        "#pragma endscop\n}\n"
    )


LOOP = "for (i = 0; i < N; i++) for (j = 0; j < M; j++) A[i][j] = 0;"

_BOUNDS = st.sampled_from(
    ["N", "M", "N - 1", "(M + 2)", "N / 2", "(N + M)", "2 * N - 3", "N % 7", "TWICE", "n",
     "(N > M ? N : M)", "12"]
)  # fmt: skip
_STARTS = st.sampled_from(["0", "1", "N / 3", "M - 5", "n", "N - M"])
_VALUES = st.sampled_from(
    ["0", "A[i][j] / N", "N * M", "i + N", "(double) TWICE", "A[i][j] * 0.5 + M", "1.0 / N"]
)
_SIZES = st.integers(0, 60)


@settings(max_examples=examples(15), deadline=None)
@given(start=_STARTS, outer=_BOUNDS, inner=_BOUNDS, value=_VALUES, n=_SIZES, m=_SIZES)
def test_random_bounds_agree_with_the_program_that_d_gives(
    start: str, outer: str, inner: str, value: str, n: int, m: int
) -> None:
    text = region(
        f"for (i = {start}; i < {outer}; i++) for (j = 0; j < {inner}; j++) A[i][j] = {value};",
        head=HEAD + "#define TWICE (2 * N)\n",
        arrays="double A[500][500]",
    )
    data = text.encode()
    try:
        result = parse_symbolic(text)
        agreed = agrees_at(result, "<source>", data, {"N": n, "M": m})
    except InputError:
        return  # no statement is left at these sizes
    used = {name for name, _ in result.values}
    plain = re.sub(r"\bTWICE\b", "N", " ".join((start, outer, inner, value)))
    if any(warning.code == "EATSS-F093" for warning in result.numeric.warnings):
        return  # nothing is left at the sizes of the file
    assert used == {name for name in ("N", "M") if re.search(rf"\b{name}\b", plain)}
    runs = parse_file(text, options=FrontendOptions(defines=(f"N={n}", f"M={m}"))).warnings
    assert agreed or any(warning.code == "EATSS-F093" for warning in runs)


def test_agreement_tells_readings_at_other_values_apart() -> None:
    text = region("for (i = 0; i < N; i++) A[i][0] = N;")
    result = parse_symbolic(text)
    assert agree(result.scops[0], result.numeric.scops[0], {"N": 40, "M": 24})
    assert not agree(result.scops[0], result.numeric.scops[0], {"N": 41, "M": 24})
    assert not agree(result.scops[0], result.numeric.scops[0], {"M": 24})
    statement = result.numeric.scops[0].statements[0]
    other = replace(statement, value=parse_symbolic(region(LOOP)).scops[0].statements[0].value)
    wrong = replace(result.numeric.scops[0], statements=(other,))
    assert not agree(result.scops[0], wrong, {"N": 40, "M": 24})


def names_of(result: SymbolicResult) -> list[str]:
    return [name for name, _ in result.values]


def test_a_macro_given_by_the_user_stays_the_number() -> None:
    result = parse_symbolic(region(LOOP), FrontendOptions(defines=("N=7",)))
    assert result.values == (("M", 24),)
    assert result.scops[0].parameters == ("M",)


def test_a_macro_made_of_a_size_follows_it() -> None:
    head = HEAD + "#define LAST (N - 1)\n"
    result = parse_symbolic(region("for (i = 0; i < LAST; i++) A[i][0] = 0;", head=head))
    domain = isl.Set.read_from_str(result.scops[0].isl_context, "[N] -> { S0[i] : 0 <= i < N - 1 }")
    assert result.scops[0].statements[0].domain.is_equal(domain)


@pytest.mark.parametrize("test", ["#if N > 100", "#if BIG", "#ifdef X\n#elif N == 3"])
def test_a_size_that_decides_what_is_compiled_stays_a_number_and_is_named(test: str) -> None:
    head = HEAD + f"#define BIG (N > 50)\n{test}\nint other;\n#endif\n"
    result = parse_symbolic(region(LOOP, head=head))
    assert result.values == (("M", 24),)
    (warning,) = result.warnings
    assert warning.code == "EATSS-F094"
    assert "'N' stays 40" in warning.message


def test_only_the_size_that_breaks_affinity_stays_a_number() -> None:
    result = parse_symbolic(region("for (i = 0; i < M; i++) p[N * i] = A[i][0];"))
    assert names_of(result) == ["M"]
    body = "for (i = 0; i < M; i++) for (j = 0; j < N; j++) p[N * N * i] = A[i][0];"
    result = parse_symbolic(region(body))
    assert names_of(result) == ["M"]


def test_a_size_in_sizeof_or_in_another_constant_is_never_taken_for_its_number() -> None:
    head = HEAD + "enum { LAST = N - 1 };\n"
    result = parse_symbolic(region("for (i = 0; i < LAST; i++) A[i][0] = 0;", head=head))
    assert names_of(result) == ["M"]
    body = "for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) t[i] = 0;"
    text = HEAD + f"void f(void)\n{{\n  double t[N]; unsigned i;\n#pragma scop\n{body}\n"
    assert names_of(parse_symbolic(text + "#pragma endscop\n}\n")) == []


def test_sizes_in_headers_of_the_user_count(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text(
        "# if !defined(N) && !defined(M)\n#  ifdef SMALL\n#   define N 8\n#   define M 9\n"
        "#  else\n#   define N 80\n#   define M 90\n#  endif\n# endif\n"
    )
    file = tmp_path / "f.c"
    file.write_text(region(LOOP, head='#include "sizes.h"\n'))
    assert parse_symbolic(file).values == (("N", 80), ("M", 90))
    small = parse_symbolic(file, FrontendOptions(defines=("SMALL",)))
    assert small.values == (("N", 8), ("M", 9))


def test_what_c_says_of_real_parameters_is_kept_and_of_macros_is_not() -> None:
    text = HEAD + (
        "void f(int n, double A[N][n], double B[n][N])\n{\n#pragma scop\n"
        "  for (int i = 0; i < N; i++) for (int j = 0; j < n; j++) A[i][j] = B[j][i];\n"
        "#pragma endscop\n}\n"
    )
    context = parse_symbolic(text).scops[0].context
    assert context.is_equal(isl.Set.read_from_str(context.get_ctx(), "[n, N] -> { : n > 0 }"))


def test_the_macro_of_the_element_type_is_found() -> None:
    for path in KERNELS:
        assert type_macros(path) == ("DATA_TYPE",)
    assert type_macros(KERNELS[0], FrontendOptions(defines=("DATA_TYPE=float",))) == ()
    assert type_macros("#ifndef T\n#define T long\n#endif\n#define R double\n") == ()
    assert type_macros("#ifndef T\n#define T float\n#endif\n") == ("T",)

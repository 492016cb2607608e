"""Operations and bytes counted symbolically equal those of running the C with counting numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

import eatss
from eatss.analysis.operations import work_of
from eatss.base.shipped import data_directory
from eatss.frontend.options import FrontendOptions
from eatss.frontend.symbolic import parse_symbolic
from eatss.polyhedral.dependences import compute_dependences
from eatss.polyhedral.scop import Scop
from eatss.program import IntExpr, Work, c_text, evaluate

SOURCES = {path.stem: path for path in sorted(data_directory("kernels").glob("*.c"))}
RUN = ("atax", "cholesky", "conv-2d", "durbin", "jacobi-2d", "lu", "trmm")
"""Kernels of each kind of loop and of operation."""

KINDS = ("add", "multiply", "divide", "square root", "compare")
SMALL = (3, 6, 5, 7, 4)
"""Sizes of the parameters in the order of their names; a kernel with more starts again."""

CHOICES = ("small", "reversed", "equal", "two", "one")


def sizes_of(parameters: tuple[str, ...], choice: str) -> dict[str, int]:
    names = sorted(parameters)
    sizes = [SMALL[k % len(SMALL)] + (k // len(SMALL)) for k in range(len(names))]
    if choice == "reversed":
        sizes = [size + 2 for size in reversed(sizes)]
    elif choice != "small":
        sizes = [{"equal": 6, "two": 2, "one": 1}[choice]] * len(names)
    window = {"NKH": 2, "NKW": 3} if "NKH" in names and choice in ("small", "reversed") else {}
    return {**dict(zip(names, sizes, strict=True)), **window}


@cache
def scop_of(kernel: str) -> Scop:
    (scop,) = parse_symbolic(SOURCES[kernel]).scops
    return scop


def counted(scop: Scop) -> Work:
    written = {statement.write.array for statement in scop.statements}
    outside = [
        array.name
        for array in scop.arrays
        if (array.n_dims or array.name in written) and array.origin != "local"
    ]
    return work_of(scop, compute_dependences(scop), outside)


@cache
def work(kernel: str) -> Work:
    return counted(scop_of(kernel))


def by_kind(found: Work, sizes: Mapping[str, int]) -> dict[str, int]:
    assert found.operations is not None
    return {o.kind: evaluate(o.count, sizes) for o in found.operations}


def value(expression: IntExpr | None, sizes: Mapping[str, int]) -> int:
    assert expression is not None
    return evaluate(expression, sizes)


def run_of(kernel: str, sizes: Mapping[str, int], number: int) -> tuple[str, str]:
    """Return C++ that includes a kernel at some sizes, and the call that runs it."""
    text = SOURCES[kernel].read_text(encoding="utf-8")
    macros = set(re.findall(r"#define (\w+)", text)) - {"DATA_TYPE"}
    undefine = "".join(f"#undef {macro}\n" for macro in sorted(macros))
    define = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
    scop = scop_of(kernel)
    arguments = [
        f"Pointer{{{p.position}}}" if p.is_pointer else "Counted(1.0)"
        for p in scop.function_parameters
    ]
    include = f'{undefine}{define}namespace run{number} {{\n#include "{SOURCES[kernel]}"\n}}\n'
    call = f"begin(); run{number}::{scop.function}({', '.join(arguments)}); finish();\n"
    return include, call


@pytest.fixture(scope="module")
def executed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[tuple[str, str], tuple[int, ...]]:
    """Run kernels at every choice of sizes; all in one program, compiled once."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("counted")
    keys = [(kernel, choice) for kernel in RUN for choice in CHOICES]
    runs = [
        run_of(kernel, sizes_of(scop_of(kernel).parameters, choice), number)
        for number, (kernel, choice) in enumerate(keys)
    ]
    header = f'#include "{Path(__file__).with_name("counted.hpp")}"\n'
    main = "int main() {\n" + "".join(call for _, call in runs) + "}\n"
    source = folder / "counted.cpp"
    source.write_text(header + "".join(include for include, _ in runs) + main)
    program = folder / "counted"
    subprocess.run([compiler, "-O0", "-w", str(source), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    lines = [tuple(int(word) for word in line.split()) for line in done.stdout.splitlines()]
    return dict(zip(keys, lines, strict=True))


@pytest.mark.parametrize("kernel", RUN)
def test_counts_equal_those_of_running_the_c(
    kernel: str, executed: Mapping[tuple[str, str], tuple[int, ...]]
) -> None:
    for choice in CHOICES:
        sizes = sizes_of(scop_of(kernel).parameters, choice)
        *operations, read, written = executed[kernel, choice]
        expected = dict.fromkeys(KINDS, 0) | by_kind(work(kernel), sizes)
        assert expected == dict(zip(KINDS, operations, strict=True)), sizes
        assert value(work(kernel).read_bytes, sizes) == read, sizes
        assert value(work(kernel).written_bytes, sizes) == written, sizes


@pytest.mark.parametrize("kernel", RUN)
def test_the_sum_of_all_kinds_is_the_formula_in_the_source(kernel: str) -> None:
    text = SOURCES[kernel].read_text(encoding="utf-8")
    match = re.search(r"Flops: (.*?)[.;]\s", text)
    assert match is not None
    formula = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", match[1]).replace("^", "**")
    sizes = sizes_of(scop_of(kernel).parameters, "reversed")
    assert sum(by_kind(work(kernel), sizes).values()) == eval(formula, {}, dict(sizes))


@pytest.mark.parametrize(
    ("kernel", "kind", "expected"),
    [
        ("gemm", "add", "(NI >= 0 && NJ >= 0 && NK >= 0 ? NI * NJ * NK : 0)"),
        ("lu", "divide", "(N >= 0 ? eatss_floordiv(N * N - N, 2) : 0)"),
        ("lu", "add", "(N >= 0 ? eatss_floordiv(2 * N * N * N + N - 3 * N * N, 6) : 0)"),
        ("cholesky", "square root", "(N >= 0 ? N : 0)"),
        ("cholesky", "add", "(N >= 0 ? eatss_floordiv(N * N * N - N, 6) : 0)"),
        ("trmm", "add", "(NI >= 0 ? eatss_floordiv(NI * NI * NI - NI * NI, 2) : 0)"),
        ("jacobi-2d", "multiply",
         "(N >= 2 && TSTEPS >= 0 ? N * N * TSTEPS + 4 * TSTEPS - 4 * N * TSTEPS : 0)"),
    ],
)  # fmt: skip
def test_counts_are_the_closed_forms_of_the_textbook(kernel: str, kind: str, expected: str) -> None:
    found = work(kernel)
    assert found.operations is not None
    assert {o.kind: c_text(o.count) for o in found.operations}[kind] == expected


def small_work(declarations: str, statement: str, *, defines: tuple[str, ...] = ()) -> Work:
    text = f"""{declarations}
void f(int n) {{
#pragma scop
    for (int i = 0; i < n; i++)
        {statement}
#pragma endscop
}}
"""
    (scop,) = parse_symbolic(text, FrontendOptions(defines=defines)).scops
    return counted(scop)


FUNCTIONS = """double fma(double, double, double); double fabs(double); double exp(double);
double fmax(double, double); float sqrtf(float);
double A[100], B[100]; float F[100]; int K[100];"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("A[i] = fma(A[i], B[i], 1.0);", {"add": 1, "multiply": 1}),
        ("A[i] = -fabs(B[i]);", {}),
        ("A[i] = exp(B[i] - 1) / 2;", {"add": 1, "divide": 1, "function": 1}),
        ("A[i] = fmax(A[i], B[i]);", {"compare": 1}),
        ("F[i] = sqrtf(F[i]);", {"square root": 1}),
        ("K[i] = K[i] * 3 + i;", {}),
        ("A[i] = (i * 2 + 1) * B[i];", {"multiply": 1}),
        ("A[i] += K[i] / 2;", {"add": 1}),
        ("A[i] = A[i] > 0 && A[i] * B[i] < 1 ? B[i] : B[i] + 1;", {"compare": 1}),
        ("A[i] = K[i] ? A[i] * B[i] * 2 : A[i] + B[i];", {"add": 1}),
    ],
)
def test_what_counts_as_an_operation(statement: str, expected: dict[str, int]) -> None:
    found = small_work(FUNCTIONS, statement)
    assert by_kind(found, {"n": 10}) == {kind: 10 * times for kind, times in expected.items()}


def test_a_sum_of_thousands_of_terms_is_counted() -> None:
    found = small_work(FUNCTIONS, f"A[i] = {' + '.join(['B[i]'] * 3000)};")
    assert by_kind(found, {"n": 2}) == {"add": 2 * 2999}


def test_what_has_no_closed_form_is_none_with_a_reason() -> None:
    found = small_work("double A[100];", "for (int j = 0; j < n; j++) A[10007*i + 1009*j] = 1;")
    assert found.operations == ()
    assert found.read_bytes is not None
    assert found.written_bytes is None
    (note,) = found.notes
    assert note.startswith("bytes written: no closed form was found, its size depends on remain")


def test_a_generated_program_carries_its_work() -> None:
    (entry,) = eatss.codegen(SOURCES["gemm"], gpu="h200").entries
    assert entry.work == work("gemm")

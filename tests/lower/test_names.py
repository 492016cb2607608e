"""Names given out mean nothing else in C, C++ and CUDA."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eatss
from eatss.lower.pieces import NameTable, identifier
from eatss.program.tokens import is_reserved

ODD = (
    "threadIdx", "dim3", "class", "int", "template", "this", "M_PI", "signbit", "isnan", "sqrt",
    "fmax", "expf", "min", "main", "NULL", "stdin", "eatss_min", "EATSS_MAIN", "cudaMalloc",
    "__x", "_Bool", "a__b", "float4", "double2", "linux", "unix", "and", "xor", "restrict",
    "y0", "y1", "j0", "j1", "jn", "yn", "gamma", "significand", "drem", "logb", "index", "time",
    "new", "errno", "NAN", "INFINITY", "half", "warpSize", "abs", "INT_MAX", "__global__",
    "assert", "printf", "clock", "std", "i", "tile", "sh", "stream", "exp10", "rsqrt", "norm",
    "E", "I", "N", "A", "near", "far", "small", "register", "typeof", "asm", "signed", "DOMAIN",
)  # fmt: skip


def test_a_free_name_is_kept() -> None:
    assert NameTable().fresh("i0") == "i0"


def test_a_taken_name_gets_a_number() -> None:
    table = NameTable(["i0", "i0_1"])
    assert [table.fresh("i0"), table.fresh("i0"), table.fresh("i0_1")] == ["i0_2", "i0_3", "i0_1_1"]


@pytest.mark.parametrize("name", ["eatss", "EATSS", "Eatss_"])
def test_a_name_that_a_number_would_reserve_is_given_out_twice(name: str) -> None:
    table = NameTable()
    assert (table.fresh(name), table.fresh(name)) == (
        f"v_{name.strip('_')}",
        f"v_{name.strip('_')}_1",
    )


def test_an_inner_scope_avoids_the_names_around_it_and_keeps_its_own() -> None:
    table = NameTable(["A"])
    first, second = table.inner(), table.inner()
    assert first.fresh("A") == "A_1"
    assert first.fresh("i") == "i"
    assert second.fresh("i") == "i"
    assert table.fresh("i") == "i"
    assert first.inner().fresh("i") == "i_1"


@pytest.mark.parametrize("name", ["y0", "y1", "j0", "j1", "jn", "yn", "gamma"])
def test_functions_the_text_never_calls_may_be_names(name: str) -> None:
    assert NameTable().fresh(name) == name


@given(st.lists(st.one_of(st.text(max_size=6), st.sampled_from(ODD)), max_size=12))
def test_names_given_out_differ_and_are_free_identifiers(wishes: list[str]) -> None:
    table = NameTable(["i", "A"])
    given_out = [table.fresh(wish) for wish in wishes]
    assert len({*given_out, "i", "A"}) == len(given_out) + 2
    for name in given_out:
        assert name.isascii()
        assert name.isidentifier()
        assert not is_reserved(name)


@given(st.text())
def test_an_identifier_is_made_of_any_text(text: str) -> None:
    assert identifier(text).isidentifier()
    assert identifier(text).isascii()


def test_names_in_every_place_of_a_file_compile(tmp_path: Path) -> None:
    text = file_with(names_in_use())
    (tmp_path / "names.cpp").write_text(text)
    words = {"global": "", "device": "", "restrict": "__restrict"}
    defines = [f"-D__{key}__={value}" for key, value in words.items()]
    command = ["g++", "-std=gnu++17", *defines, "-fsyntax-only", "names.cpp"]
    subprocess.run(command, check=True, cwd=tmp_path)


def test_a_counter_does_not_hide_the_scalar_that_it_counts() -> None:
    program = eatss.codegen(
        "void f(int n, int a[n], int out[1]) {\nint i;\n#pragma scop\n"
        "for (i = n; i != 0; i -= 1) a[i - 1] = i;\nout[0] = i;\n#pragma endscop\n}\n",
        gpu="h200", cache=False,
    )  # fmt: skip
    assert "*__restrict__ i," in program.text
    assert "int i =" not in program.text


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_names_in_every_place_of_a_file_compile_as_cuda(tmp_path: Path) -> None:
    (tmp_path / "names.cu").write_text(file_with(names_in_use()))
    subprocess.run(
        ["nvcc", "-arch=sm_80", "-cubin", "-Werror", "all-warnings", "names.cu"],
        check=True, cwd=tmp_path,
    )  # fmt: skip


def names_in_use() -> list[str]:
    table = NameTable()
    return [table.fresh(name) for name in ODD]


def file_with(names: list[str]) -> str:
    """Every name as a parameter, a variable in a block and a member of a struct."""
    members = "\n".join(f"    double {name}[4];" for name in names)
    parameters = ", ".join(f"double *__restrict__ {name}" for name in names)
    uses = "\n".join(f"    {name}[0] = sqrt({name}[1]) + record->{name}[2];" for name in names)
    variables = "\n".join(
        f"    {{ double {name} = fmax((double)eatss_a, 0.5); eatss_b[0] += {name}; }}"
        for name in names
    )
    return (
        "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        f"struct eatss_record {{\n{members}\n}};\n"
        f"__global__ void one({parameters}, eatss_record *record)\n{{\n{uses}\n}}\n"
        f"__global__ void two(int eatss_a, double *eatss_b)\n{{\n{variables}\n}}\n"
    )

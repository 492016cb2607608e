"""Names in generated text mean nothing else in C, C++ and CUDA; its tokens are those of C."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.api import codegen
from eatss.lower.pieces import NameTable, identifier
from eatss.measurement.compile import Toolchain, options_of
from eatss.program.tokens import (
    OWN_WORDS,
    definition,
    is_reserved,
    tokens,
)
from eatss.verify.build import SHIM

NVCC = Toolchain(name="nvcc", version="13", command=("nvcc",))


def of_sizes(*names: str, as_arguments: bool = False) -> str:
    """Return C with a loop for each of some sizes, which macros set or callers pass."""
    macros = "" if as_arguments else "".join(
        f"#ifndef {name}\n#define {name} 300\n#endif\n" for name in names
    )  # fmt: skip
    functions = ""
    for number, name in enumerate(names):
        own = f"int {name}, " if as_arguments else ""
        functions += f"void f{number}({own}float p[{name}], float q[{name}]) {{\n#pragma scop\n"
        functions += f"  for (int i = 0; i < {name}; i++) p[i] = 2 * q[i] + {name};\n"
        functions += "#pragma endscop\n}\n"
    return macros + functions


def test_no_size_reaches_a_header() -> None:
    program = codegen(of_sizes("T", "new"), gpu="a100-80gb")
    assert [one.macro for one in program.parameters] == ["EATSS_SIZE_T", "EATSS_SIZE_new"]
    options = options_of(program, {"T": 5, "new": 6})
    assert {"-DEATSS_SIZE_T=5", "-DEATSS_SIZE_new=6"} <= set(options)
    text = program.text
    assert text.rindex("#include", 0, text.index("#ifdef EATSS_MAIN")) < text.index("#define T ")
    own = text[text.index("#ifdef EATSS_MAIN") :]
    assert own.index("#undef T") < own.index("#include") < own.rindex("#include")
    assert own.rindex("#include") < own.index("#define T EATSS_SIZE_T")
    assert not re.search(r"\bnew\b", re.sub(r'//.*|"[^"\n]*"', "", text))


def test_a_size_given_by_its_own_name_is_an_error_that_says_how() -> None:
    program = codegen(of_sizes("T"), gpu="a100-80gb")
    assert '#if defined(T)\n#error "give -DEATSS_SIZE_T=VALUE, not -DT"' in program.text


def defined_by(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {word[1] for word in re.finditer(r"^#define (\w+)", done.stdout, re.MULTILINE)}


def unknown(macros: set[str]) -> list[str]:
    """Return macros that are not known, but for words as newer headers add: ``SOME_LONG_WORD``."""
    own = (name for name in macros if not is_reserved(name))
    return sorted(name for name in own if not re.fullmatch("[A-Z0-9]+(_[A-Z0-9]+){2,}", name))


def test_no_macro_of_the_headers_on_a_cpu_is_a_name() -> None:
    found = defined_by("g++", "-std=c++17", "-E", "-dM", "-x", "c++", str(SHIM / "eatss_cpu.hpp"))
    assert not unknown(found)
    assert unknown({"NEWER", "A_B", "shadow_stack_set_token"}) == [
        "A_B",
        "NEWER",
        "shadow_stack_set_token",
    ]
    assert is_reserved("SHADOW_STACK_SET_TOKEN")
    assert not unknown({"SOME_NEWER_TOKEN"})


def test_a_macro_that_the_text_uses_itself_stays_a_number() -> None:
    with pytest.warns(UserWarning, match="'x' stays 300 in generated code"):
        program = codegen(of_sizes("x"), gpu="a100-80gb")
    assert not program.parameters
    assert "x" in OWN_WORDS


ODD = (
    "threadIdx", "dim3", "class", "int", "template", "this", "M_PI", "signbit", "isnan", "sqrt",
    "fmax", "expf", "min", "main", "NULL", "stdin", "eatss_min", "EATSS_MAIN", "cudaMalloc",
    "__x", "_Bool", "a__b", "float4", "double2", "linux", "unix", "and", "xor", "restrict",
    "y0", "y1", "j0", "j1", "jn", "yn", "gamma", "significand", "drem", "logb", "index", "time",
    "new", "errno", "NAN", "INFINITY", "half", "warpSize", "abs", "INT_MAX", "__global__",
    "assert", "printf", "clock", "std", "i", "tile", "sh", "stream", "exp10", "rsqrt", "norm",
    "E", "I", "N", "A", "near", "far", "small", "register", "typeof", "asm", "signed", "DOMAIN",
)  # fmt: skip


@given(st.lists(st.one_of(st.text(max_size=6), st.sampled_from(ODD)), max_size=12))
def test_names_given_out_differ_and_are_free_identifiers(wishes: list[str]) -> None:
    assert all(identifier(wish).isidentifier() for wish in wishes)
    table = NameTable(["i", "A"])
    given_out = [table.fresh(wish) for wish in wishes]
    assert len({*given_out, "i", "A"}) == len(given_out) + 2
    for name in given_out:
        assert name.isascii()
        assert name.isidentifier()
        assert not is_reserved(name)


def test_names_in_every_place_of_a_file_compile(tmp_path: Path) -> None:
    table = NameTable()
    text = file_with([table.fresh(name) for name in ODD])
    (tmp_path / "names.cpp").write_text(text)
    words = {"global": "", "device": "", "restrict": "__restrict"}
    defines = [f"-D__{key}__={value}" for key, value in words.items()]
    command = ["g++", "-std=gnu++17", *defines, "-fsyntax-only", "names.cpp"]
    subprocess.run(command, check=True, cwd=tmp_path)


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


KERNEL = """\
// a kernel(x) { of no account }
#define TWICE(x) \\
    ((x) << 1) /* over
    lines */
__global__ void kernel(double *A, int n);
extern "C" __global__ void __launch_bounds__(256)
kernel(double *A, int n)
{
    if (n > 0) { A[0] = 1.5e-3f; }
}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a<<=b>>c", ["a", "<<=", "b", ">>", "c"]),
        ("k<<<g, 1>>>(x)", ["k", "<<<", "g", ",", "1", ">>>", "(", "x", ")"]),
        ("0x1F+1e-3-.5", ["0x1F", "+", "1e-3", "-", ".5"]),
        ("a // b\n+ /* c\n d */ e", ["a", "+", "e"]),
        (r'f("a\"//b")', ["f", "(", r'"a\"//b"', ")"]),
        ("'\\'' + 1'000", ["'\\''", "+", "1'000"]),
        ('R"x(if (a) ")x" b', ['R"x(if (a) ")x"', "b"]),
        ("  # pragma unroll 8\na", ["  # pragma unroll 8", "a"]),
        ("a # b", ["a", "#", "b"]),
        ("a /* open", ["a"]),
    ],
)
def test_tokens_are_those_of_a_compiler(text: str, found: list[str]) -> None:
    assert [token.text for token in tokens(text)] == found


def test_a_definition_is_no_declaration_comment_or_call() -> None:
    function = definition(tokens(KERNEL), "kernel")
    assert function is not None
    assert [token.text for token in function.parameters] == ["double", "*", "A", ",", "int", "n"]
    assert function.body[0].text == "if"
    assert function.body[-1].text == "}"
    assert definition(tokens(KERNEL), "__launch_bounds__") is None
    assert definition(tokens("a(b) + c"), "a") is None

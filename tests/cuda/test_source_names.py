"""Names of the C source that mean something else to compilers, headers or the generated text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from eatss.api import codegen
from eatss.frontend.declarations import ISL_WORDS
from eatss.measurement.compile import Toolchain, options_of
from eatss.program import Apply, Name, Operator, Program, c_text
from eatss.program.tokens import (
    OWN_WORDS,
    generated_text,
    is_reserved,
    size_macro,
    size_text,
    tokens,
)
from eatss.verify import verify
from eatss.verify.build import SHIM

nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
NVCC = Toolchain(name="nvcc", version="13", command=("nvcc",))

SIZES = ("T", "N_", "E", "I", "T1", "M_PI", "warpSize", "threadIdx", "int4", "std", "__x")
MORE = ("new", "class", "template", "EDOM", "PATH_MAX", "EATSS_MAIN", "eatss_floordiv", "nullptr",
        "blockDim", "float4", "dim3", "C", "Element", "values", "M_PIf", "stdin", "y1",
        "cudaStream_t", "__syncthreads", "assert", "NULL", "min", "max", "x", "device", "size",
        "B", "a", "F", "value", "name", "count", "is_integer", "_Tp")  # fmt: skip
ARRAYS = ("new", "class", "template", "min", "y1", "std", "threadIdx", "EDOM", "eatss_max", "this")


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


def compiled(program: Program, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "one.cu").write_text(program.text)
    command = ["nvcc", "-std=c++17", "-arch=sm_80", *options, "-c", "one.cu", "-o", "one.o"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_no_size_reaches_a_header() -> None:
    program = codegen(of_sizes("T", "new"), gpu="a100-80gb")
    assert [one.macro for one in program.parameters] == ["EATSS_SIZE_T", "EATSS_SIZE_new"]
    options = options_of(NVCC, program, {"T": 5, "new": 6}, 80)
    assert {"-DEATSS_SIZE_T=5", "-DEATSS_SIZE_new=6"} < set(options)
    text = program.text
    assert text.rindex("#include", 0, text.index("#ifdef EATSS_MAIN")) < text.index("#define T ")
    own = text[text.index("#ifdef EATSS_MAIN") :]
    assert own.index("#undef T") < own.index("#include") < own.rindex("#include")
    assert own.rindex("#include") < own.index("#define T EATSS_SIZE_T")
    assert not re.search(r"\bnew\b", re.sub(r'//.*|"[^"\n]*"', "", text))


@pytest.mark.parametrize("as_arguments", [False, pytest.param(True, marks=pytest.mark.long)])
def test_sizes_of_odd_names_run(tmp_path: Path, as_arguments: bool) -> None:
    names = ("T", "M_PI", "class")
    codegen(of_sizes(*names, as_arguments=as_arguments), gpu="a100-80gb", output=tmp_path)
    found = verify(tmp_path, device="cpu", sizes=[dict.fromkeys(names, 33)])
    assert found.ok, found.message


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::eatss.EatssWarning")
@nvcc
@pytest.mark.parametrize("as_arguments", [False, True])
@pytest.mark.parametrize("names", [SIZES, MORE[::2], MORE[1::2]], ids=["usual", "odd", "odder"])
def test_sizes_of_any_name_compile(
    tmp_path: Path, names: tuple[str, ...], as_arguments: bool
) -> None:
    program = codegen(of_sizes(*names, as_arguments=as_arguments), gpu="a100-80gb")
    sizes = {one.name: 70 for one in program.parameters}
    given = [one for one in options_of(NVCC, program, sizes, 80) if one.startswith("-D")]
    macros = set() if as_arguments else {*names} - OWN_WORDS - ISL_WORDS
    assert {one.split("=")[0] for one in given} == {f"-D{size_macro(name)}" for name in macros}
    for options in (given, ["-DEATSS_MAIN", "-DEATSS_CHECK"]):
        done = compiled(program, tmp_path, *options)
        assert done.returncode == 0, done.stderr


@pytest.mark.long
@nvcc
def test_arrays_and_functions_of_any_name_compile(tmp_path: Path) -> None:
    text = "#define N 500\n"
    for name in ARRAYS:
        text += f"void {name}_(double {name}[N], double u) {{\n#pragma scop\n"
        text += f"  for (int i = 0; i < N; i++) {name}[i] = {name}[i] * u;\n#pragma endscop\n}}\n"
    text += "void operator(int n, double explicit[n], double final) {\n#pragma scop\n"
    text += "  for (int auto_ = 0; auto_ < n; auto_++) explicit[auto_] = final;\n"
    text += "#pragma endscop\n}\n"
    program = codegen(text, gpu="a100-80gb")
    done = compiled(program, tmp_path, "-DEATSS_MAIN", "-DEATSS_CHECK")
    assert done.returncode == 0, done.stderr


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


@nvcc
def test_no_macro_of_the_headers_of_cuda_is_a_name(tmp_path: Path) -> None:
    includes = set(re.findall("#include <.*>", codegen(of_sizes("N"), gpu="h200").text))
    (tmp_path / "all.cu").write_text("\n".join([*sorted(includes), "#include <cuda_fp16.h>\n"]))
    found = defined_by("nvcc", "-std=c++17", "-E", "-Xcompiler", "-dM", str(tmp_path / "all.cu"))
    assert len(found) > 500
    assert not unknown(found)


def test_what_the_text_uses_itself_is_no_name_of_a_macro() -> None:
    program = codegen(of_sizes("Q"), gpu="h200")
    kernels, own = program.text.split("#ifdef EATSS_MAIN", 1)
    after = kernels[kernels.index("#define Q ") :] + own[own.index("#define Q ") :]
    words = {one.text for one in tokens(after) if one.kind == "word"}
    ours = {word for word in words if re.match("(?i)eatss_|f0", word)}
    declared = {"Q", "p", "q", "i", "i0", "ti", "stream"}
    assert words - ours - declared <= OWN_WORDS | {word for word in words if is_reserved(word)}


def test_a_macro_that_the_text_uses_itself_stays_a_number() -> None:
    with pytest.warns(UserWarning, match="'x' stays 300 in generated code: it has a name that"):
        program = codegen(of_sizes("x"), gpu="a100-80gb")
    assert not program.parameters
    assert "x" in OWN_WORDS


def test_only_the_generated_text_calls_sizes_otherwise() -> None:
    size = Apply(Operator.MUL, (Name("new"), Name("threadIdx.x")))
    assert c_text(size) == "new * threadIdx.x"
    assert generated_text(size) == "eatss_named_new * threadIdx.x"
    assert (size_text("n"), size_macro("n")) == ("n", "EATSS_SIZE_n")

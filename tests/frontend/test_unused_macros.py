"""Macros given with ``-D`` that change nothing, and those that do."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import Diagnostic, Severity
from eatss.base.shipped import data_directory
from eatss.frontend import FrontendOptions, parse_file, parse_source
from tests.end_to_end.in_process import eatss as command

LOOPS = """\
void f(double A[N]) {
#pragma scop
  for (int i = 0; i < N; i++)
    A[i] = 2.0 * A[i];
#pragma endscop
}
"""
GUARDED = "#ifndef N\n#define N 100\n#endif\n"


def warned(text: str, *defines: str) -> list[Diagnostic]:
    found = parse_source(text, options=FrontendOptions(defines=defines)).warnings
    return [one for one in found if one.code == "EATSS-F095"]


def names(found: list[Diagnostic]) -> list[str]:
    return [re.findall(r"^-D (\w+) changes nothing: ", one.message)[0] for one in found]


@pytest.mark.parametrize(
    ("before", "define", "hint"),
    [
        ("#define N 100\n", "N=200", "write #ifndef N before its #define and #endif after it"),
        ("#define N 9\n#if 0\nint M;\n#endif\n", "M", "write #ifndef M"),
        ("#undef M\n#define N 9\n", "M=4", "write #ifndef M"),
        ("#define N 9\nint F;\n", "F(x)=x", "write #ifndef F"),
        (GUARDED, "NN=3", "did you mean N?"),
        (GUARDED, "n=3", "did you mean N?"),
        (
            "#ifdef SMALL_DATASET\n#endif\n#define N 9\n",
            "SMALL_DATASE",
            "did you mean SMALL_DATASET?",
        ),
    ],
)
def test_what_it_never_uses_is_told(before: str, define: str, hint: str) -> None:
    (found,) = warned(before + LOOPS, define)
    assert found.severity is Severity.WARNING
    assert "nothing that is compiled in '<source>' uses it" in found.message
    assert (found.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("before", "define"),
    [
        (GUARDED, "N=200"),
        ("", "N=200"),
        ("#define N M\n", "M=200"),  # within another macro only
        ("#define CAT(a, b) a##b\n#define N CAT(SI, ZE)\n", "SIZE=200"),
        ("#define N F(4)\n", "F(x)=(x+1)"),
        ("#if M > 3\n#endif\n#define N 9\n", "M=4"),
        ("#ifndef M\n#endif\n#define N 9\n", "M"),
        ("#define W N\nenum { WIDTH = W };\n#undef N\n#define N 9\n", "N=4"),  # used before
    ],
)
def test_what_the_preprocessor_uses_is_not_told(before: str, define: str) -> None:
    assert warned(before + LOOPS, define) == []


def test_several_are_told_each_and_those_that_work_are_not(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define K 3\n" + GUARDED)
    (tmp_path / "main.c").write_text('#include "sizes.h"\n' + LOOPS)
    options = FrontendOptions(defines=("K=4", "N=7", "MISSPELT", "NDEBUG"))
    found = parse_file(tmp_path / "main.c", options).warnings
    assert names(list(found)) == ["K", "MISSPELT", "NDEBUG"]


@pytest.mark.parametrize("subcommand", ["select", "codegen"])
def test_commands_tell_it_once(subcommand: str, tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text("#define N 64\n" + LOOPS)
    done = command(subcommand, tmp_path / "k.c", "-g", "a100", "-D", "N=32", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("EATSS-F095") == 1


@pytest.mark.parametrize("kernel", ["gemm", "jacobi-2d"])
def test_the_macros_of_the_shipped_kernels_all_work(kernel: str) -> None:
    text = (data_directory("kernels") / f"{kernel}.c").read_text()
    for dataset in ("MINI", "SMALL", "STANDARD", "MEDIUM", "LARGE", "EXTRALARGE"):
        assert warned(text, f"{dataset}_DATASET", "DATA_TYPE=float") == []


names_of_macros = st.sampled_from(["A", "B", "C", "D"])
words = st.lists(names_of_macros | st.sampled_from(["1", "2"]), max_size=3).map(" ".join)
line = st.one_of(
    st.builds("#define {} {}".format, names_of_macros, words),
    st.builds("#define {}(x) x {}".format, names_of_macros, words),
    st.builds("#undef {}".format, names_of_macros),
    st.builds("const char *VARIABLE = STR({});".format, words),
)


def block(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    condition = st.one_of(
        st.builds("#ifdef {}".format, names_of_macros),
        st.builds("#ifndef {}".format, names_of_macros),
        st.builds("#if defined({}) || {} > 1".format, names_of_macros, names_of_macros),
    )
    lines = st.lists(inner, max_size=3).map("\n".join)
    return st.builds("{}\n{}\n#else\n{}\n#endif".format, condition, lines, lines)


programs = st.lists(st.recursive(line, block, max_leaves=6), max_size=6).map("\n".join)


@pytest.mark.skipif(shutil.which("cpp") is None, reason="needs cpp")
@settings(max_examples=15, deadline=None)
@given(programs, names_of_macros)
def test_what_is_told_to_change_nothing_changes_nothing(body: str, name: str) -> None:
    """The preprocessor's output is the same with other values, and without the macro."""
    number = count()
    body = re.sub("VARIABLE", lambda _: f"v{next(number)}", body)
    text = f"#define STR_(x) #x\n#define STR(x) STR_(x)\n{body}\n" + EIGHT
    given_as = ("1", "5", "z z")
    outputs = {preprocessed(text, f"-D{name}={value}") for value in given_as}
    outputs.add(preprocessed(text))
    assume(None not in outputs)
    told = names(warned(text, f"{name}=1"))
    event("told" if told else "not told")
    if told:
        assert len(outputs) == 1
    if not re.search(rf"\b{name}\b", text):
        assert told == [name]


EIGHT = LOOPS.replace("N", "8").replace("A", "a")


def preprocessed(text: str, *options: str) -> str | None:
    """Return what the preprocessor makes of a text, ``None`` where it finds a fault."""
    words = ["cpp", "-P", "-w", *options, "-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None

"""Names that C cannot have are those of the headers and of the compiler that are here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clang import cindex

from eatss.base.diagnostics import InputError
from eatss.frontend.python import read_python
from eatss.frontend.python_types import c_name_is_free, is_declared, is_macro

HEADERS = "#include <math.h>\n#include <stdlib.h>\n"
MACRO = re.compile(r"#define (?P<name>\w+)(?P<call>\(?)")
KINDS = ("FUNCTION_DECL", "TYPEDEF_DECL", "VAR_DECL")


def preprocessed(*options: str) -> str:
    """Return what gcc makes of the headers, as verification calls it."""
    command = ["gcc", "-E", "-P", "-x", "c", "-std=gnu11", *options, "-"]
    return subprocess.run(command, input=HEADERS, check=True, capture_output=True, text=True).stdout


def public(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("options", [(), ("-D_GNU_SOURCE",)])
def test_all_that_the_headers_have_is_known(options: tuple[str, ...]) -> None:
    text = preprocessed(*options)
    index: Any = cindex.Index
    unit = index.create().parse(
        "headers.c", args=["-std=gnu11"], unsaved_files=[("headers.c", text)]
    )
    declared = {one.spelling for one in unit.cursor.get_children() if one.kind.name in KINDS}
    macros = list(MACRO.finditer(preprocessed("-dM", *options)))
    called = {one["name"] for one in macros if one["call"]}
    plain = {one["name"] for one in macros if not one["call"]}
    assert {"exit", "y1", "int32_t"} <= declared
    assert {name for name in public(declared | called) if not is_declared(name)} == set()
    assert {"NULL", "linux"} <= plain
    unknown = {name for name in public(plain) if not is_macro(name) and not is_declared(name)}
    assert unknown == set()


@pytest.mark.parametrize("name", ["scale", "gemm", "divf", "y2", "selects", "mult", "M_total"])
def test_other_names_are_free(name: str) -> None:
    assert not is_declared(name)
    assert c_name_is_free(name)


KERNEL = """import eatss
@eatss.scop
def {0}({1}: eatss.Param, A: eatss.f64["{1}"]):
    for i in range({1}):
        A[i] = 2.0
"""


@pytest.mark.parametrize(
    "name",
    ["select", "gamma", "exit", "int32_t", "j0", "y1", "div", "random", "system", "abort", "NULL"],
)
def test_a_function_of_such_a_name_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.py"
    path.write_text(KERNEL.format(name, "n"), encoding="utf-8")
    with pytest.raises(InputError, match=f"'{name}'") as caught:
        read_python(path)
    assert [one.code for one in caught.value.diagnostics] == ["EATSS-Y004"]


@pytest.mark.parametrize("name", ["NULL", "M_PI", "INFINITY", "NAN", "RAND_MAX", "linux", "unix"])
def test_a_parameter_of_the_name_of_a_macro_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.py"
    path.write_text(KERNEL.format("loops", name), encoding="utf-8")
    with pytest.raises(InputError, match=f"no variable of the name '{name}'") as caught:
        read_python(path)
    assert caught.value.code == "EATSS-Y004"


@pytest.mark.parametrize("name", ["y1", "div", "index", "select"])
def test_a_parameter_may_have_the_name_of_a_function(name: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.py"
    path.write_text(KERNEL.format("loops", name), encoding="utf-8")
    assert read_python(path).arguments[0].name == name

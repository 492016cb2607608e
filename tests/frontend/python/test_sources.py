"""Loops in Python wherever a C file goes, and names that C cannot have."""

from __future__ import annotations

from pathlib import Path

import pytest

import eatss
import eatss.polyhedral.expression
from eatss.base.cache import Cache
from eatss.base.diagnostics import InputError
from eatss.frontend.python import PythonScop, read_python
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.frontend.python.kernels_in_python import gemm, mvt
from tests.refusals import refusing

# -- Loops in Python wherever a C file goes: the API, the command line, folders of programs.


SCALE = '''import does_not_exist

import eatss

does_not_exist.launch()


@eatss.scop
def scale(n: eatss.Param, x: eatss.f64, A: eatss.f64["n", "n"]):
    """Scale a matrix."""
    for i in range(n):
        for j in range(n):
            A[i, j] = x * A[i, j]
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loops.py"
    path.write_text(SCALE, encoding="utf-8")
    return path


def test_a_python_scop_is_data() -> None:
    assert isinstance(gemm, PythonScop)
    assert gemm.name == "gemm"
    assert gemm.function is not None
    assert gemm.function.__name__ == "gemm"
    assert gemm.c_source.startswith("#include")
    assert " ".join(one.name for one in gemm.arguments) == "NI NJ NK alpha beta C A B"
    assert len({gemm, mvt, gemm}) == 2
    assert repr(gemm) == f"<PythonScop gemm of {gemm.file}>"


def test_selection_and_prediction_are_those_of_the_same_loops_in_c() -> None:
    mine, theirs = (
        eatss.select(source, gpu="h200", target="ppcg", parameters={"NI": 500})
        for source in (gemm, gemm.c_source)
    )
    assert mine.file == gemm.file
    assert [one.tile_sizes for one in mine.kernels] == [one.tile_sizes for one in theirs.kernels]
    assert (
        eatss.predict(gemm, gpu="h200", tiles={"k": 16}).energy_j
        == eatss.predict(gemm.c_source, gpu="h200", tiles={"k": 16}).energy_j
    )


def test_a_folder_has_the_c_and_its_comments_name_the_python(tmp_path: Path) -> None:
    program = eatss.codegen(mvt, gpu="h200", output=tmp_path / "mvt")
    assert (program.name, program.original.file) == ("mvt", "mvt.c")
    assert (tmp_path / "mvt" / "mvt.c").read_text(encoding="utf-8") == mvt.c_source
    text = (tmp_path / "mvt" / "mvt.cu").read_text(encoding="utf-8")
    line = next(
        number
        for number, text in enumerate(Path(mvt.file).read_text().splitlines(), start=1)
        if "x1[i] = x1[i] + A[i, j] * y1[j]" in text
    )
    assert f"// kernels_in_python.py:{line}: x1[i] = x1[i] + A[i][j] * y1[j];" in text
    assert verify(tmp_path / "mvt", device="cpu", sizes=[{"NI": 33}]).ok


def test_a_file_is_read_and_not_run(file: Path) -> None:
    found = read_python(file)
    assert (found.name, found.function, found.file) == ("scale", None, str(file))
    assert eatss.select(f"{file}:scale", gpu="h200", target="ppcg").functions == ("scale",)


def test_which_function_of_a_file(file: Path) -> None:
    with refusing("EATSS-Y001", "no function 'other'"):
        eatss.select(f"{file}:other", gpu="h200")
    file.write_text(SCALE + SCALE.partition("\n\n\n")[2].replace("scale", "again"))
    with pytest.raises(InputError, match="has 2 functions") as caught:
        eatss.select(file, gpu="h200")
    assert caught.value.diagnostics[0].hint == f"write {file}:NAME with one of: scale, again"
    file.write_text("x = 1\n")
    with pytest.raises(InputError, match="has no functions"):
        eatss.select(file, gpu="h200")
    file.write_text("def f(:\n")
    with refusing("EATSS-Y001", "no valid Python"):
        eatss.select(file, gpu="h200")
    with refusing("EATSS-Y001", "cannot be read"):
        eatss.select(file.with_name("none.py"), gpu="h200")


def test_warnings_point_at_the_python(file: Path) -> None:
    file.write_text(SCALE.replace("x * A[i, j]", "x * A[i, j + 1]"), encoding="utf-8")
    (warning,) = Session(file).warnings
    assert warning.code == "EATSS-F090"
    assert str(warning.span) == f"{file}:13:27"
    assert warning.source_line == "            A[i, j] = x * A[i, j + 1]"


def test_what_was_found_is_found_again_and_after_a_change_anew(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = Cache(folder)
    first = eatss.codegen(file, gpu="h200", cache=cache)
    entries = [path for path in folder.rglob("*") if path.is_file()]
    assert entries
    assert eatss.codegen(read_python(file), gpu="h200", cache=cache).text == first.text
    assert eatss.codegen(f"{file}:scale", gpu="h200", cache=cache).text == first.text
    assert [path for path in folder.rglob("*") if path.is_file()] == entries
    file.write_text("\n" + SCALE, encoding="utf-8")  # comments name the line
    moved = eatss.codegen(file, gpu="h200", cache=cache)
    assert "loops.py:13:" in first.text
    assert "loops.py:14:" in moved.text


KERNEL = """@eatss.scop
def loops(n: eatss.Param, A: eatss.f64["n"]):
    for i in range(n):
        A[i] = max(A[i], 0.5)
"""


@pytest.mark.parametrize(
    "before",
    [
        "import eatss\nfrom .fast import max\n",
        "import eatss\nmax = my\n",
        "import eatss\nfor max in mine:\n    pass\n",
        "import eatss\nif fast:\n    from math import sqrt as max\nelse:\n    max = my\n",
        "import eatss\ndef max(a, b):\n    pass\n",
        "import eatss\ndef change():\n    global max\n    max = my\n",
    ],
)
def test_a_name_with_a_value_of_its_own_is_no_builtin(before: str, file: Path) -> None:
    file.write_text(before + KERNEL, encoding="utf-8")
    with pytest.raises(InputError, match="call of 'max'") as caught:
        read_python(file)
    assert [one.code for one in caught.value.diagnostics] == ["EATSS-Y004"]


def test_stars_may_be_anything(file: Path) -> None:
    file.write_text("import eatss\nfrom fast import *\n" + KERNEL)
    with pytest.raises(InputError, match="what is no range"):
        read_python(file)


@pytest.mark.parametrize("odd", ["# a\fb\f\f", "# a\u2028b\x85c\x1cd", "# a\rx = 1\r"])
def test_lines_are_those_of_python(odd: str, file: Path) -> None:
    text = f"import eatss\n{odd}\n{KERNEL}".replace("max(", "other(")
    file.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InputError) as caught:
        read_python(file)
    (finding,) = caught.value.diagnostics
    assert finding.source_line == "        A[i] = other(A[i], 0.5)"


def test_a_file_is_read_in_the_encoding_that_it_names(file: Path) -> None:
    text = "# -*- coding: latin-1 -*-\nimport eatss\n# größer\n" + KERNEL
    file.write_bytes(text.encode("latin-1"))
    assert "max(A[i], 0.5)" in read_python(file).c_source
    for wrong in (text[text.index("import") :], text.replace("latin-1", "no-such")):
        file.write_bytes(wrong.encode("latin-1"))
        with refusing("EATSS-Y001", "cannot be read"):
            read_python(file)

"""What is refused, where the finding points, and what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eatss
from eatss.base.diagnostics import Diagnostic, InputError
from eatss.session.session import Session
from tests.frontend.python.running import loaded
from tests.refusals import refusing

HEAD = (
    "@eatss.scop\ndef loops(n: eatss.Param, x: eatss.f64, A: eatss.f64['n', 'n'],\n"
    "          a: eatss.f32['n'], b: eatss.i32['n'], u: eatss.u32['n']):\n"
)


def findings(text: str, folder: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        Session(loaded(text, folder)).parsed  # noqa: B018
    return caught.value.diagnostics


def body(text: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in text.strip().splitlines())


STATEMENTS = [
    ("while x > 0:\n    A[i, 0] = 1", "Y004", "while x > 0:"),
    ("3", "Y004", "3"),
    ("A[i, 0] = 'text'", "Y004", "'text'"),
    ("A[i, 0] = x < 1", "Y004", "x < 1"),
    ("A[i, 0] = a", "Y004", "a"),
    ("A[i, 0] = other", "Y004", "other"),
    ("for j in range(x):\n    A[i, j] = 1", "Y004", "x"),
    ("for j in range(n):\n    A[i, j] = 1\nelse:\n    pass", "Y004", "pass"),
    ("for i in range(n):\n    A[i, 0] = 1", "Y004", "i"),
    ("A[i, 0] = int(x)", "Y004", "int(x)"),
    ("A[i, -1] = 1", "Y004", "-1"),
    ("A[i, :] = 1", "Y004", ":"),
    ("n = 3", "Y004", "n"),
    ("A[i, 0] = min(a[i], A[i, 0])", "Y004", "min(a[i], A[i, 0])"),
    ("t = a[i]\nt = A[i, 0]", "Y004", "t = A[i, 0]"),
    ("A[i, 0] = x & 1", "Y004", "x & 1"),
    ("A[i, 0] = abs(u[i])", "Y004", "abs(u[i])"),
    ("b[i] = u[i] // 2", "Y004", "u[i] // 2"),
    ("A[i, 0] = t\nt = 1.0", "Y004", "t"),
    ("b[i] = b[i] // n", "Y004", "b[i] // n"),
    ("A[i, 0] = x ** 0.5", "Y004", "x ** 0.5"),
    ("a[i] = 1e300", "Y004", "1e300"),
    ("A[i, 0] = 99999999999999999999", "Y004", "99999999999999999999"),
    *(
        (f"b[i] = {text}", "Y004", text)
        for text in (
            "np.fmax(b[i], 3)",
            "np.fmod(b[i], 7)",
            "np.floor(b[i])",
        )
    ),
    ("A[i, 0] = (i + 1) * 3000000000", "Y004", "3000000000"),
    ("if x:\n    A[i, 0] = 1", "Y004", "x"),
    # what the front end says of the C
    ("A[i, i * i] = 1", "F012", "i * i"),
    ("for j in range(b[i]):\n    A[i, j] = 1", "F012", "b[i]"),
]


@pytest.mark.parametrize(("text", "code", "place"), STATEMENTS)
def test_a_statement_is_refused_where_it_stands(
    text: str, code: str, place: str, tmp_path: Path
) -> None:
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    found = findings(body(f"for i in range(n):\n    A[i, 0] = 2\n{lines}"), tmp_path)
    (finding,) = [one for one in found if one.code == f"EATSS-{code}"]
    assert finding.span is not None
    assert finding.source_line is not None
    end = finding.span.end_column if finding.span.end_line == finding.span.line else None
    shown = finding.source_line[finding.span.column - 1 : end and end - 1]
    assert shown == place
    assert Path(finding.span.file).read_text().splitlines()[finding.span.line - 1] == (
        finding.source_line
    )


HEADS = [
    ("def loops(n):", "Y004", "n"),
    ("def loops(n: int):", "Y004", "int"),
    ("def loops(n: eatss.Param = 3):", "Y004", "3"),
    ("def loops(*n: eatss.Param):", "Y004", "n: eatss.Param"),
    ("def loops(int: eatss.Param):", "Y004", "int: eatss.Param"),
    ("def loops(größe: eatss.Param):", "Y004", "größe: eatss.Param"),
    ("def loops(A: eatss.f64['n'], n: eatss.Param):", "Y004", "'n'"),
    ("def loops(A: eatss.f64['n']):", "Y004", "'n'"),
    ("def loops(n: eatss.Param, A: eatss.f64['n * ']):", "Y004", "'n * '"),
    ("def loops(n: eatss.Param, A: eatss.f64['n // 2']):", "Y004", "'n // 2'"),
]


@pytest.mark.parametrize(("head", "code", "place"), HEADS)
def test_a_head_is_refused(head: str, code: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.py"
    path.write_text(f"import eatss\n\n\n@eatss.scop\n{head}\n    A[0] = 1\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        eatss.inspect(path)
    finding = caught.value.diagnostics[0]
    assert finding.code == f"EATSS-{code}"
    assert finding.span is not None
    assert head[finding.span.column - 1 : finding.span.end_column - 1] == place


def test_all_findings_are_reported_in_the_manner_of_clang(tmp_path: Path) -> None:
    found = findings(
        body(
            """
for i in range(n):
    s = a[i]
    while s > 0:
        A[i, -1] = total
    A[i, 0] = x // 2  # half
"""
        ),
        tmp_path,
    )
    text = str(InputError(*found))
    name = found[0].span.file if found[0].span else ""
    assert text.replace(name, "loops.py") == (
        """\
loops.py:13:9: error: statement outside the subset [EATSS-Y004]
   13 |         while s > 0:
      |         ^~~~~~~~~~~~
  hint: write loops over range(…), if and elif, and assignments to elements of arrays and locals
loops.py:14:18: error: a negative subscript counts from the end in Python [EATSS-Y004]
   14 |             A[i, -1] = total
      |                  ^~
  hint: give every subscript, from 0 on: A[i, n - 1]
loops.py:15:19: error: '//' and '%' are of an integer by a constant greater than zero [EATSS-Y004]
   15 |         A[i, 0] = x // 2  # half
      |                   ^~~~~~
  hint: write numpy.floor(x / y), or numpy.fmod(x, y), which rounds towards zero"""
    )


@pytest.mark.parametrize(("signs", "code"), [(1_000, "Y004"), (20_000, "Y001")])
def test_what_is_nested_too_deeply_is_refused(signs: int, code: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.py"
    file.write_text(body(f"for i in range(n):\n    A[i, 0] = {'-' * signs}x"))
    with refusing(f"EATSS-{code}"):
        Session(file).parsed  # noqa: B018


def test_what_has_no_source_is_refused() -> None:
    made: dict[str, object] = {}
    with refusing("EATSS-Y001", "not to be had"):
        exec("import eatss\n@eatss.scop\ndef f(n: eatss.Param): pass", made)
    with pytest.raises(InputError, match="is no def"):
        eatss.scop(lambda n: None)
    with pytest.raises(InputError, match="is no function"):
        eatss.scop(len)


def test_codes_are_documented_and_used() -> None:
    root = Path(__file__).parents[3]
    table = (root / "docs" / "python-loops.md").read_text(encoding="utf-8")
    files = (root / "eatss" / "frontend").glob("*.[pt]*")
    sources = "".join(path.read_text("utf-8") for path in files)
    assert {*re.findall(r"\| (EATSS-Y\d+) \|", table)} == {*re.findall(r"EATSS-Y\d{3}", sources)}

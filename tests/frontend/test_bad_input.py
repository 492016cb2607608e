"""What is not understood is refused: one claim per class of bad input, with the place it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eatss.frontend
from eatss.frontend.source import KINDS
from tests.frontend.reading import refused

LOOP = "for (i = 0; i < n; i++) "
STRUCT = "struct pair { double x; }; struct pair q[9]; union u { int i; float f; } w;\n"

CASES = [
    # code, statements, what the caret marks, code before the function
    ("EATSS-F012", LOOP + "A[i * i] = 0;", "i * i", ""),
    ("EATSS-F012", LOOP + "A[(int) (i * 0.5)] = 0;", "(int) (i * 0.5)", ""),
    ("EATSS-F012", LOOP + "if (i * i > n) A[i] = 0;", "i * i > n", ""),
    ("EATSS-F012", LOOP + "A[idx[i]] = 0;", "idx[i]", ""),
    ("EATSS-F018", "while (s > 0) s = s - 1;", "while (s > 0)", ""),
    ("EATSS-F018", LOOP + "return;", "return", ""),
    ("EATSS-F018", "for (i = 0; i < min(n, m); i++) A[i] = 0;", "min(n, m)",
     "int calls; int min(int a, int b) { calls++; return a < b ? a : b; }\n"),
    ("EATSS-F024", LOOP + "*(A + i) = 0;", "A + i", ""),
    ("EATSS-F024", LOOP + "A[i] = q[i].x;", "q[i].x", STRUCT),
    ("EATSS-F024", "p = A;", "p", ""),
    ("EATSS-F018", "for (; i < n; i++) A[0] = 0;", "for (; i < n; i++)", ""),
    ("EATSS-F018", "for (i = 0; i % 4 < 3 && i < n; i++) A[i] = 0;", "i % 4 < 3 && i < n", ""),
    ("EATSS-F031", LOOP + "for (i = 0; i < 3; i++) A[i] = 0;", "i = 0", ""),
    ("EATSS-F012", LOOP + "{ n = 3; A[i] = 0; }", "n", ""),
    ("EATSS-F018", "for (i = 0; i != n; i += 2) A[i] = 0;", "i != n", ""),
    ("EATSS-F036", "for (unsigned u = 0; u < g; u++) A[u - 1] = 0;", "u - 1", "unsigned g;\n"),
    ("EATSS-F036", LOOP + "A[(signed char) i] = 0;", "(signed char) i", ""),
    ("EATSS-F018", LOOP + "A[k = i] = 2;", "k = i", ""),
    ("EATSS-F018", "for (i = 0, j = n; i < j; i++, j--) A[i] = 0;", "i = 0, j = n", ""),
    ("EATSS-F040", LOOP + "l[i] = 0;", "l[i]"[:1], "long double l[9];\n"),
    ("EATSS-F040", "for (i = 0; i < v; i++) A[i] = 0;", "v", "volatile int v;\n"),
    ("EATSS-F036", LOOP + "for (j = 0; j <= m; j++) p[i * m + j] = 0;", "p[i * m + j]", ""),
    ("EATSS-F007", LOOP + "A[i] = unknown;", "u", ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "body", "marked", "before"), CASES)
def test_refused_with_its_code_at_its_place(code: str, body: str, marked: str, before: str) -> None:
    findings = refused(body, before=before)
    found = [d for d in findings if d.code == code]
    assert found, [str(d) for d in findings]
    first = found[0]
    assert first.span is not None
    assert first.source_line is not None
    assert first.source_line[first.span.column - 1 :].startswith(marked), str(first)
    assert code == "EATSS-F007" or first.hint


def test_all_findings_come_in_one_run() -> None:
    body = """\
  for (i = 0; i < n; i++) {
    A[i * i] = 0;
    A[idx[i]] = foo(i) + s;
    if (A[i] > foo(i)) A[i] = 1;
    for (j = 0; j < idx[i]; j++) { A[i * j] = 0; break; }
    while (s > 0) { s = s - A[idx[0]]; return; }
    p = A;
  }
  A[i] = 0;"""
    findings = refused(body, before="double foo(int);\n")
    assert [(d.code, d.span.line) for d in findings if d.span is not None] == [
        ("EATSS-F012", 7),
        ("EATSS-F012", 8),
        ("EATSS-F018", 8),
        ("EATSS-F018", 9),
        ("EATSS-F012", 10),
        ("EATSS-F018", 11),
        ("EATSS-F024", 12),
        ("EATSS-F031", 14),
    ]


def test_a_finding_prints_in_the_manner_of_clang() -> None:
    (finding,) = refused("for (i = 0; i < n; i++)\n  A[i * i] = 0;")
    assert str(finding) == (
        "<source>:6:5: error: subscript 'i * i' is not affine: product of counters [EATSS-F012]"
    )
    assert finding.source_line == "  A[i * i] = 0;"
    assert finding.span is not None
    assert (finding.span.end_line, finding.span.end_column) == (6, 10)


def test_a_bound_that_a_counter_chooses_is_not_to_be_copied_in_front() -> None:
    (finding,) = refused(LOOP + "for (int k = idx[i]; k < n; k++) A[k] = 0;")
    assert "depends on a counter" in (finding.hint or "")


def test_columns_count_characters_not_bytes() -> None:
    (finding,) = refused("/* größe */ A[n * idx[0]] = 0;")
    assert finding.span is not None
    assert finding.span.column == 19


def test_a_macro_is_named_where_the_user_wrote_it() -> None:
    (finding,) = refused("for (i = 0; i < n; i++)\n  A[SQUARE(i)] = 0;",
                         before="#define SQUARE(x) ((x) * (x))\n")  # fmt: skip
    assert finding.code == "EATSS-F012"
    assert "SQUARE(i)" in finding.message


def test_a_counter_read_after_the_region_is_refused() -> None:
    body = "for (i = 0; i < n; i++) A[i] = 0;\n#pragma endscop\n  s = i;\n#pragma scop\n  A[0] = 0;"
    assert refused(body)[0].code == "EATSS-F031"


def test_every_kind_of_finding_is_told_of_and_has_its_words() -> None:
    files = Path(eatss.frontend.__file__).parent.glob("*.py")
    named = {one for file in files for one in re.findall(r'"(\w+)"', file.read_text())}
    assert KINDS.keys() <= named
    for code, message, *hints in KINDS.values():
        assert re.fullmatch(r"(EATSS-[FY]\d{3})?", code)
        assert message
        assert all(hints)

"""Findings are printed as clang prints them."""

from __future__ import annotations

import json

from rich.text import Text

from eatss.base.diagnostics import Diagnostic, Severity, SourceSpan
from eatss.report.diagnostics import diagnostics_json, diagnostics_text
from eatss.report.render import listing, render

SPAN = SourceSpan(file="a.c", line=7, column=12, end_line=7, end_column=18)
FINDING = Diagnostic(
    code="EATSS-F012",
    message="subscript is not affine",
    span=SPAN,
    source_line="    A[i] = B[idx[i]];",
    hint="write it without indirection",
)


def test_a_finding_shows_place_message_line_caret_and_hint() -> None:
    assert diagnostics_text([FINDING]).plain == (
        "a.c:7:12: error: subscript is not affine [EATSS-F012]\n"
        "    7 |     A[i] = B[idx[i]];\n"
        "      |            ^~~~~~\n"
        "  hint: write it without indirection"
    )


def test_a_very_long_line_is_cut_around_the_caret() -> None:
    column = 5001
    span = SourceSpan(file="a.c", line=1, column=column, end_line=1, end_column=column + 3)
    line = "x" * (column - 1) + "bad" + "y" * 5000
    finding = Diagnostic(code="EATSS-F001", message="m", span=span, source_line=line)
    _, shown, caret = diagnostics_text([finding]).plain.splitlines()
    assert len(shown) < 200
    start = caret.index("^")
    assert shown[start : start + 3] == "bad"
    assert caret[start:] == "^~~"


def test_control_characters_of_a_source_line_are_not_printed() -> None:
    finding = Diagnostic(
        code="EATSS-F001", message="m", span=SPAN, source_line="a\x1b[31m\x00\tb = 1;"
    )
    assert diagnostics_text([finding]).plain.isascii()
    assert "\x1b" not in diagnostics_text([finding]).plain


def test_a_finding_without_a_place_is_one_line() -> None:
    finding = Diagnostic(code="EATSS-C001", message="m", severity=Severity.WARNING)
    assert diagnostics_text([finding]).plain == "warning: m [EATSS-C001]"


def test_findings_as_json_carry_every_field() -> None:
    (finding,) = json.loads(diagnostics_json([FINDING]))["diagnostics"]
    assert finding["code"] == "EATSS-F012"
    assert finding["span"] == {
        "file": "a.c",
        "line": 7,
        "column": 12,
        "end_line": 7,
        "end_column": 18,
    }
    assert finding["hint"] == "write it without indirection"


def test_control_characters_are_spelled_out() -> None:
    steering = Diagnostic(
        code="EATSS-F001", message="cannot read '\x1b[2J\udcff'", hint="\x07rename it\nor not"
    )
    assert diagnostics_text([steering]).plain == (
        "error: cannot read '\\x1b[2J\\udcff' [EATSS-F001]\n  hint: \\x07rename it\nor not"
    )


def test_control_characters_in_tables_are_spelled_out() -> None:
    table = listing(["card"], [["\x1b]0;title\x07\x9b31m×"]])
    assert render(table, Text("\x1b[1m")) == "  card\n  \\x1b]0;title\\x9b31m×\n\\x1b[1m\n"

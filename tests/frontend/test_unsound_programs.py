"""Programs that are not what they look like are refused, or read for what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.frontend.parse import parse_file
from tests.frontend.reading import equal, only


def _function(body: str, *, before: str = "", inside: str = "", after: str = "") -> str:
    return (
        f"{before}\nvoid f(int n, int m, double *A, double *B, int *C) {{\n{inside}\n"
        f"#pragma scop\n{body}\n#pragma endscop\n{after}\n}}\n"
    )


def _findings(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        parse_file(text)
    return caught.value.diagnostics


COPY = "for (int i = 1; i < n; i++) p[i] = A[i - 1];"
RESET = "for (i = 0; i < n; i++) A[i] = 1;"

REFUSED = {
    "a function the file defines": (
        _function(
            "for (int i = 0; i < n; i++) A[i] = max(A[i], g);",
            before="double g; static double max(double a, double b) { g += 1; return a; }",
        ),
        "EATSS-F018",
    ),
    "a floor of the file's own in a bound": (
        _function(
            "for (int i = (int) floor((double) n / 2); i < n; i++) A[i] = 1;",
            before="static double floor(double x) { static int k; k++; return x + k; }",
        ),
        "EATSS-F012",
    ),
    "a static variable": (
        _function("for (int i = 0; i < n; i++) { static double t = 0; t += A[i]; A[i] = t; }"),
        "EATSS-F018",
    ),
    "an extern declaration": (
        _function(
            "for (int i = 0; i < n; i++) { extern double G[9]; G[i] = A[i]; } "
            "for (int i = 0; i < n; i++) A[i] = G[i];",
            before="double G[9];",
        ),
        "EATSS-F018",
    ),
    "a macro that ends the region in its middle": (
        _function("for (int i = 0; i < n; i++) A[i] = 1;").replace(
            "#pragma endscop", 'A[2] = 3; END'
        ).replace("\nvoid", '#define END A[2] = 3; _Pragma("endscop") A[3] = 4;\nvoid', 1),
        "EATSS-F010",
    ),
    "a side effect in a size": (
        _function("for (int i = 0; i < n; i++) { double T[m++]; A[i] = B[i]; }"),
        "EATSS-F018",
    ),
    "a size fixed by a typedef and changed since": (
        _function(
            "for (int i = 0; i < 5; i++) for (int j = 0; j < m; j++) T[i][j] = A[j];",
            inside="typedef double row[n]; n = n + 3; row T[5];",
        ),
        "EATSS-F031",
    ),
    "a pointer to a counter": (
        _function("for (i = 0; i < n; i++) C[i] = p[0];", inside="int i; int *p = &i;"),
        "EATSS-F031",
    ),
    "members of a union": (
        _function(
            "for (int i = 1; i < n; i++) p[i] = q[i - 1];",
            inside="union { double a[9]; double b[9]; } u; double *p = u.a, *q = u.b;",
        ),
        "EATSS-F024",
    ),
    "a pointer a function returns": (
        _function(COPY, before="double *same(double *);", inside="double *p = same(A);"),
        "EATSS-F024",
    ),
    "a counter read in the next round of a loop": (
        _function(
            RESET, inside="int i = 0; while (m--) { A[0] += i;", after="}"
        ),
        "EATSS-F031",
    ),
    "a global counter": (_function(RESET, before="int i;"), "EATSS-F031"),
    "an unsigned step over the end": (
        _function("for (unsigned i = 0; i < 4294967295u; i += 4294967290u) A[2] = 1;"),
        "EATSS-F036",
    ),
    "a bound beyond int": (
        _function("for (int i = 0; i < 3000000000; i++) A[0] = 1;"), "EATSS-F036",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused(what: str) -> None:
    text, code = REFUSED[what]
    assert code in {finding.code for finding in _findings(text)}


def test_an_include_inside_the_region_is_refused(tmp_path: Path) -> None:
    (tmp_path / "body.inc").write_text("A[0] = 2;\n")
    main = tmp_path / "main.c"
    main.write_text(_function('\n#include "body.inc"\nfor (int i = 0; i < n; i++) B[i] = A[i];'))
    with pytest.raises(InputError) as caught:
        parse_file(main)
    assert [finding.code for finding in caught.value.diagnostics] == ["EATSS-F010"]


def test_statements_included_before_the_region_are_not_of_it(tmp_path: Path) -> None:
    (tmp_path / "before.inc").write_text(" " * 200 + "A[0] = 2;\n")
    main = tmp_path / "main.c"
    body = "for (int i = 0; i < n; i++) B[i] = A[i];" + " " * 200
    main.write_text(_function(body, inside='\n#include "before.inc"\n'))
    assert [s.text for s in parse_file(main).scops[0].statements] == ["B[i] = A[i];"]


def test_a_variable_of_the_region_used_after_it_is_live() -> None:
    body = "double s = 0; double t = 1; for (int i = 0; i < n; i++) s += A[i] * t;"
    scop = only(_function(body, after="B[0] = s;"))
    assert not scop.array("s").is_local
    assert scop.array("t").is_local


def test_a_size_in_a_condition_is_no_fact() -> None:
    scop = only(
        _function(
            "for (int i = 0; i < n; i++) A[i] = i;\n"
            "if (n > 5) { double t[n - 5]; t[0] = A[0]; A[1] = t[0]; }"
        )
    )
    assert equal(scop.context, "[n] -> { : }")
    assert equal(scop.statements[0].domain, "[n] -> { S0[i] : 0 <= i < n }")


ACCEPTED = {
    "allocated pointers": _function(
        COPY, before="#include <stdlib.h>", inside="double *p = (double *) malloc(n * 8);"
    ),
    "a pointer set by its address": _function(
        COPY, before="int make(double **, int);", inside="double *p; make(&p, n);"
    ),
    "a restrict pointer from a struct": _function(
        COPY, before="struct S { double *a; };",
        inside="struct S s; double *restrict p = s.a;",
    ),
    "a scalar set by its address": _function(
        COPY.replace("p[i]", "B[i]").replace("A[i - 1]", "A[i - 1] * c"),
        before="void get(double *);", inside="double c; get(&c);",
    ),
    "a counter of the function, set again in every round": _function(
        RESET, inside="int i; for (int t = 0; t < m; t++) {",
        after="for (i = 0; i < n; i++) B[i] = 1; }",
    ),
    "unsigned counters": _function(
        "for (unsigned i = 0; i <= 4294967294u; i++) A[0] = 1; "
        "for (unsigned i = 0; i <= k; i++) A[i] = 1;", inside="unsigned k = m;"
    ),
    "a library's declaration": _function(
        "for (int i = 0; i < n; i++) A[i] = fmax(exp(A[i]), sqrt(B[i]));",
        before="#include <math.h>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ACCEPTED)
def test_is_accepted(what: str) -> None:
    assert parse_file(ACCEPTED[what]).scops

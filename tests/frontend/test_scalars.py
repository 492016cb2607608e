"""Integer scalars that a region sets count as what they are set to."""

from __future__ import annotations

import islpy as isl
import pytest

from eatss.base.diagnostics import InputError
from eatss.frontend.parse import parse_file
from tests.frontend.reading import equal, only

LOOP = "for (int i = 0; i < n; i++)"


def function(body: str, after: str = "") -> str:
    arguments = "int n, int m, double *a, double *b, double A[3][n], int *c"
    return (
        f"void f({arguments}) {{\nint j, k, t;\nunsigned u;\nshort s;\n"
        f"#pragma scop\n{body}\n#pragma endscop\n{after}\n}}\n"
    )


@pytest.mark.parametrize(
    ("body", "subscript"),
    [
        (f"{LOOP} {{ j = i + 1; a[j] = 0; }}", "i + 1"),
        (f"{LOOP} {{ j = 2 * i; k = j - 1; a[k] = 0; }}", "2i - 1"),
        (f"{LOOP} {{ if (i == 0) t = 0; else t = i - 1; a[t] = 0; }}", "max(i - 1, 0)"),
        (f"{LOOP} {{ t = i + 1; if (t >= n) t = n - 1; a[t] = 0; }}", "min(i + 1, n - 1)"),
        (f"{LOOP} {{ j = i; if (c[i]) {{ j = i + 1; }} j = i + 2; a[j] = 0; }}", "i + 2"),
        (f"{LOOP} {{ u = i; a[u] = 0; }}", "i"),
        (f"{LOOP} {{ int p = i - 1, q = p - 2; a[q + 2 * p] = 0; }}", "3i - 5"),
    ],
)
def test_a_scalar_is_what_it_is_set_to(body: str, subscript: str) -> None:
    scop = only(function(body))
    statement = next(s for s in scop.statements if s.write.array == "a")
    pieces = "; ".join(
        f"{statement.name}[i] -> a[{piece}]" if ":" not in piece else
        f"{statement.name}[i] -> a[{piece.split(':')[0]}] : {piece.split(':')[1]}"
        for piece in subscript.split(";")
    )  # fmt: skip
    expected = isl.Map.read_from_str(scop.isl_context, f"[n, m] -> {{ {pieces} }}")
    relation = statement.write.relation
    assert relation.is_equal(expected.intersect_domain(statement.domain)), str(relation)
    assert {s.write.array for s in scop.statements} <= {"a"}  # the scalar is set by nothing


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{LOOP} {{ a[k] = 0; k = i; }}", "what it is here is not known"),  # at first
        (f"k = 0; {LOOP} {{ if (c[i] > 0) k++; b[k] = 0; }}", "what it is here is not known"),
        (f"{LOOP} {{ k = c[i]; a[k] = 0; }}", "what it is here is not known"),
        (f"{LOOP} {{ k = i; k += 2; a[k] = 0; }}", "what it is here is not known"),
        (f"{LOOP} {{ k = i * i; j = k + 1; a[j % 3] = 0; }}", "product of variables"),
        (f"{LOOP} k = i; a[k] = 0;", "what it is here is not known"),
        (f"{LOOP} {{ u = i - 1; a[u] = 0; }}", "what it is here is not known"),
        (f"{LOOP} {{ s = 200 * i; a[s] = 0; }}", "what it is here is not known"),
    ],
)
def test_a_scalar_that_is_not_known_is_refused(body: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_file(function(body))
    assert {one.code for one in caught.value.diagnostics} == {"EATSS-F012"}
    assert any(reason in one.message for one in caught.value.diagnostics)


def test_each_arm_begins_with_what_was_known_before() -> None:
    arms = "if (c[i]) { j = i + 1; a[j] = 1; } else b[j] = 0;"
    scop = only(function(f"{LOOP} {{ j = i; {arms} }}"))
    for array, subscript in (("a", "i + 1"), ("b", "i")):
        (statement,) = (s for s in scop.statements if s.write.array == array)
        relation = f"[n] -> {{ {statement.name}[i] -> {array}[{subscript}] : 0 <= i < n }}"
        assert equal(statement.write.relation, relation)


def test_a_scalar_that_is_read_after_the_region_is_set_there() -> None:
    body = f"{LOOP} {{ k = 2 * i; a[k] = 0; }}"
    scop = only(function(body, after="c[0] = k;"))
    assert [s.write.array for s in scop.statements] == ["k", "a"]
    assert all(access.array != "k" for s in scop.statements for access in s.reads)
    again = only(function(body, after="k = 1; c[0] = k;"))
    assert [s.write.array for s in again.statements] == ["a"]


def test_scalars_give_linearised_subscripts() -> None:
    text = "for (t = 0; t < m; t++) { int at = (i * n + j) * m + t; b[at] = 0; }"
    scop = only(function(f"{LOOP} for (j = 0; j < n; j++) {text}"))
    assert scop.array("b").n_dims == 3

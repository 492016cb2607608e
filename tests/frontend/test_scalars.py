"""Integer scalars that a region sets count as what they are set to."""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor

import islpy as isl
import pytest

from eatss.base.diagnostics import InputError
from eatss.frontend import parse_source
from eatss.polyhedral.scop import Scop

Only = Callable[[str], Scop]
Equal = Callable[[isl.Set | isl.Map, str], bool]

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
        (f"{LOOP} {{ j = i; j += 2; a[j] = 0; }}", "i + 2"),
        (f"{LOOP} {{ j = 2 * i; k = j - 1; a[k] = 0; }}", "2i - 1"),
        (f"k = 0; {LOOP} {{ a[k] = 0; k += 2; }}", "2i"),
        (f"k = n; {LOOP} {{ --k; a[k] = 0; }}", "n - i - 1"),
        ("k = 0; for (int i = n; i > 0; i -= 2) { a[k] = 0; k++; }", "floor((n - i) / 2)"),
        (f"k = 0; {LOOP} {{ a[k] = 0; for (j = 0; j < 4; j++) k++; }}", "4i"),
        (f"k = 0; {LOOP} k++; for (int i = 0; i < 1; i++) a[k] = 0;", "max(n, 0)"),
        (f"k = n - 1; {LOOP} {{ a[k] = 0; k = i; }}", "n - 1 : i = 0; i - 1 : i > 0"),
        (
            f"k = n - 1; t = n - 2; {LOOP} {{ a[t] = 0; t = k; k = i; }}",
            "n - 2 : i = 0; n - 1 : i = 1; i - 2 : i > 1",
        ),
        (f"t = 0; {LOOP} {{ a[t] = 0; t = 1 - t; }}", "i mod 2"),
        (f"t = 0; {LOOP} {{ a[t] = 0; t = (t + 1) % 3; }}", "i mod 3"),
        (f"{LOOP} {{ if (i == 0) t = 0; else t = i - 1; a[t] = 0; }}", "max(i - 1, 0)"),
        (f"{LOOP} {{ t = i + 1; if (t >= n) t = n - 1; a[t] = 0; }}", "min(i + 1, n - 1)"),
        (f"{LOOP} {{ j = i; if (c[i]) {{ j = i + 1; }} j = i + 2; a[j] = 0; }}", "i + 2"),
        (f"u = 0; {LOOP} {{ a[u] = 0; u++; }}", "i"),
        (f"{LOOP} {{ int p = i, q = --p, r = p++; a[q + 2 * r + 4 * p] = 0; }}", "7i - 3"),
        ("k = n; while (k) { k--; a[k] = 0; }", "i - 1"),
        (f"while (0) a[5] = 1; {LOOP} do {{ j = i; a[j] = 0; }} while (0);", "i"),
        ("for (int p = 0, i = ++p; i < n; i++) a[i - p] = 0;", "i - 1"),
        ("s = 0; for (int i = 0; i < 9; i++) { a[s] = 0; s += 2; }", "2i"),
    ],
)
def test_a_scalar_is_what_it_is_set_to(body: str, subscript: str, only: Only, equal: Equal) -> None:
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
    ("body", "code", "reason"),
    [
        (f"{LOOP} {{ a[k] = 0; k = i; }}", "F031", "what it is here is not known"),  # at first
        (f"k = 0; {LOOP} {{ if (c[i] > 0) k++; b[k] = 0; }}", "F012", "set under 'c[i] > 0'"),
        (f"k = 0; {LOOP} if (c[i] > 0) a[k++] = 0;", "F012", "set under 'c[i] > 0'"),
        (f"k = 0; {LOOP} {{ if (i > 5) continue; a[k] = 0; k++; }}", "F012", "may be left"),
        (f"k = 0; {LOOP} for (j = 0; j <= i; j++) {{ a[k] = 0; k++; }}", "F012", "not all add"),
        ("k = n; while (k > 1) { a[k] = 1; k = k / 2; }", "F018", "'k = k / 2' does not add a"),
        (
            "k = 0; while (k++ < n) { if (k == 3) continue; a[k] = 1; }",
            "F018",
            "may be left before they change 'k'",
        ),
        ("k = 0; up: a[k] = 1; k++; if (k < n) goto up;", "F019", "goto that goes back"),
        (f"k = 0; {LOOP} {{ a[k] = 0; k += c[i]; }}", "F012", "'k += c[i]' sets 'k'"),
        (f"{LOOP} {{ k = c[i]; a[k] = 0; }}", "F012", "'k' is set to 'c[i]'"),
        (f"{LOOP} {{ k = i * i; j = k + 1; a[j % 3] = 0; }}", "F012", "'j' is i*i + 1 here"),
        (f"{LOOP} k = i; a[k] = 0;", "F031", "what it is here is not known"),
        (f"s = 0; {LOOP} {{ a[s] = 0; s += 200; }}", "F036", "leave the range of its type 'short'"),
        (f"{LOOP} {{ u = i - 1; a[u] = 0; }}", "F036", "may be negative"),
        (f"k = 0; {LOOP} for (j = 0; j < m; j++) {{ a[k % 9] = 0; k++; }}", "F012", "'k' is i*m"),
    ],
)
def test_a_scalar_that_is_not_known_is_refused(body: str, code: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_source(function(body))
    assert {one.code for one in caught.value.diagnostics} == {f"EATSS-{code}"}
    assert all(reason in one.message for one in caught.value.diagnostics), str(caught.value)


def test_each_arm_begins_with_what_was_known_before(only: Only, equal: Equal) -> None:
    arms = "if (c[i]) { j = i + 1; a[j] = 1; } else b[j] = 0;"
    scop = only(function(f"{LOOP} {{ j = i; {arms} }}"))
    for array, subscript in (("a", "i + 1"), ("b", "i")):
        (statement,) = (s for s in scop.statements if s.write.array == array)
        relation = f"[n] -> {{ {statement.name}[i] -> {array}[{subscript}] : 0 <= i < n }}"
        assert equal(statement.write.relation, relation)


def test_a_scalar_that_is_read_after_the_region_is_set_there(only: Only, equal: Equal) -> None:
    body = f"k = 0; {LOOP} {{ a[k] = 0; k++; }}"
    scop = only(function(body, after="c[0] = k;"))
    assert [s.write.array for s in scop.statements] == ["k", "a", "k"]
    assert all(access.array != "k" for s in scop.statements for access in s.reads)
    again = only(function(body, after="k = 1; c[0] = k;"))
    assert [s.write.array for s in again.statements] == ["a"]


def test_counted_scalars_give_linearised_subscripts(only: Only, equal: Equal) -> None:
    body = f"k = 0; {LOOP} for (j = 0; j < m; j++) {{ a[k] = b[k]; k++; }}"
    (statement,) = only(function(body)).statements
    assert equal(
        statement.write.relation,
        "[n, m] -> { S0[i, j] -> a[i, j] : 0 <= i < n and 0 <= j < m }",
    )
    text = "for (t = 0; t < m; t++) { int at = (i * n + j) * m + t; b[at] = 0; }"
    scop = only(function(f"{LOOP} for (j = 0; j < n; j++) {text}"))
    assert scop.array("b").n_dims == 3


@pytest.mark.parametrize("mask", [1, 3, 6, 13, -4, -3, 0])
@pytest.mark.parametrize("operator", ["&", "|", "^"])
def test_bits_are_those_of_c(operator: str, mask: int, only: Only) -> None:
    loop = f"for (int i = -9; i < 9; i++) p[((i {operator} {mask}) & 15) + (~i & 3)] = 0;"
    scop = only(f"void f(double *p) {{\n#pragma scop\n{loop}\n#pragma endscop\n}}\n")
    (statement,) = scop.statements
    bits = {"&": and_, "|": or_, "^": xor}[operator]
    pairs = "; ".join(f"S0[{i}] -> p[{(bits(i, mask) & 15) + (~i & 3)}]" for i in range(-9, 9))
    assert statement.write.relation.is_equal(
        isl.Map.read_from_str(scop.isl_context, f"{{{pairs}}}")
    )


@pytest.mark.parametrize(
    ("before", "is_known"),
    [
        ("int q = 2;", True),
        ("int q; q = 2;", True),
        ("int q = n;", False),
        ("int q = 2; if (n > 3) q = 1;", False),
        ('int q = 2; scanf("%d", &q);', False),
        ("static int q = 2;", False),
        ("int q = 1; for (j = 0; j < 3; j++) q++;", False),
    ],
)
def test_a_number_set_just_before_the_region_is_known(before: str, is_known: bool) -> None:
    body = f"{LOOP} {{ a[q] = 0; q++; }}"
    text = function(body).replace("#pragma scop", f"{before}\n#pragma scop")
    text = "int scanf(const char *, ...);\n" + text
    if is_known:
        scop = parse_source(text).scops[0]
        assert [s.write.array for s in scop.statements] == ["a"]
        assert scop.whole_function == (before == "int q = 2;")
    else:
        with pytest.raises(InputError):
            parse_source(text)


def test_a_region_sets_the_scalar_whose_number_it_knows(only: Only) -> None:
    loop = "#pragma scop\ndo { a[i] = i; i++; } while (i < n);\nout[0] = i;\n#pragma endscop\n"
    scop = only(f"void f(int n, int a[n], int out[1]) {{\nint i = 0;\n{loop}}}\n")
    assert [array.name for array in scop.arrays if not array.is_local] == ["a", "out"]
    first = scop.statements[0]
    assert (first.text, first.write.array, first.loops) == ("int i = 0;", "i_value", ())
    assert scop.whole_function
    with pytest.raises(InputError, match="'i' has no value before that is known"):
        parse_source(f"int f(int n, int a[n], int out[1]) {{\nint i = 0;\n{loop}return i;\n}}\n")

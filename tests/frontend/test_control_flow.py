"""``continue``, ``break``, and conditions that are not affine."""

from __future__ import annotations

import random
from collections.abc import Callable

import islpy as isl
import pytest

from eatss.frontend.parse import parse_file
from eatss.polyhedral.expression import Binary, Expression, Literal, Read, Select, Unary
from eatss.polyhedral.scop import Scop
from tests.frontend import random_programs
from tests.frontend.reading import only, refused, region
from tests.refusals import refusing

LOOP = "for (i = 0; i < n; i++) "


def text_of(scop: Scop, number: int = 0) -> str:
    """Write out what a statement stores; literals without their types."""
    statement = scop.statements[number]

    def text(value: Expression) -> str:
        match value:
            case Read(access=access):
                return statement.accesses[access].text
            case Select(condition=condition, if_true=yes, if_false=no):
                return f"({text(condition)} ? {text(yes)} : {text(no)})"
            case Binary(operator=operator, left=left, right=right):
                return f"{text(left)} {operator} {text(right)}"
            case Unary(operator=operator, operand=operand):
                return operator + text(operand)
            case Literal(text=written):
                return written
        return text(value.operand) if hasattr(value, "operand") else "affine"

    return f"{statement.write.text} = {text(statement.value)}"


def run_alike(one: Scop, other: Scop) -> bool:
    """Return whether the statements of two regions have the same domains."""
    assert len(one.statements) == len(other.statements)
    return all(
        a.domain.is_equal(isl.Set(str(b.domain), context=a.domain.get_ctx()))
        for a, b in zip(one.statements, other.statements, strict=True)
    )


# -- leaving rounds and loops -------------------------------------------------------------


def test_continue_leaves_the_rest_of_a_round() -> None:
    one = region(LOOP + "{ A[i] = 1; if (i % 2) continue; p[i] = 2; }")
    other = region(LOOP + "{ A[i] = 1; if (i % 2 == 0) p[i] = 2; }")
    assert run_alike(one, other)


def test_break_ends_a_loop_in_its_direction() -> None:
    one = region("for (i = n; i > 0; i -= 2) { A[i] = 1; if (3 * i < m) break; p[i] = 2; }")
    other = region(
        "for (i = n; i > 0; i -= 2) { if (3 * i + 6 >= m || i == n) A[i] = 1;"
        " if (3 * i >= m) p[i] = 2; }"
    )
    assert run_alike(one, other)


def test_a_break_of_a_loop_around_the_region_is_refused() -> None:
    text = (
        "void f(int n, double A[n]) {\n  for (int t = 0; t < n; t++) {\n#pragma scop\n"
        "    A[t] = 0;\n    break;\n#pragma endscop\n  }\n}\n"
    )
    with refusing("EATSS-F018"):
        parse_file(text)


# -- conditions that are not affine -------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        pytest.param("if (A[i] > s) s = A[i];", "s = (A[i] > s ? A[i] : s)", id="maximum"),
        pytest.param("if (s > A[i]) { s = A[i]; }", "s = (s > A[i] ? A[i] : s)", id="minimum"),
        pytest.param("if (s == 0) A[i] = 0; else A[i] = 1;", "A[i] = (s == 0 ? 0 : 1)", id="two"),
        pytest.param(
            "if (A[i] > 0) s += A[i];", "s = s + (A[i] > 0 ? A[i] : -0)", id="part of a sum"
        ),
        pytest.param(
            "if (s) A[i] *= s; else if (t > 0) A[i] *= t;",
            "A[i] = A[i] * (s ? s : (t > 0 ? t : 1))",
            id="factors",
        ),
        pytest.param(
            "if (s > 0) idx[i] += s;",
            "idx[i] = (s > 0 ? idx[i] + s : idx[i])",
            id="no sum of what rounding changes",
        ),
        pytest.param(
            "if (s > 0) if (t > 0) A[i] = 2; else A[i]++;",
            "A[i] = (s > 0 ? (t > 0 ? 2 : A[i] + 1) : A[i])",
            id="nested",
        ),
    ],
)
def test_a_condition_of_one_element_is_a_choice(body: str, stored: str) -> None:
    scop = region(LOOP + body)
    assert text_of(scop) == stored
    assert len(scop.statements) == 1


def test_a_condition_of_scalars_guards_each_statement_of_a_nest() -> None:
    scop = region(f"if (s != 0) {LOOP}{{ p[i] = 1; A[i] = p[i]; }} else {LOOP}p[i] = 2;")
    assert [text_of(scop, number) for number in range(3)] == [
        "p[i] = (s != 0 ? 1 : p[i])",
        "A[i] = (s != 0 ? p[i] : A[i])",
        "p[i] = (s != 0 ? p[i] : 2)",
    ]


def test_affine_parts_of_a_condition_bound_where_it_is_asked() -> None:
    scop = region(LOOP + "if (i > 0 && A[i - 1] > 0 && i < m) A[i] = 0;")
    other = region(LOOP + "if (i > 0 && i < m) A[i] = 0;")
    assert run_alike(scop, other)
    assert text_of(scop) == "A[i] = (A[i - 1] > 0 ? 0 : A[i])"


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n - 1 && b[i + 1] > 0) a[i] = b[i + 1]; else a[i] = 1;",
        "if (i < n - 1 && b[i + 1] > 0 && a[i] > 1) a[i] = b[i + 1]; else a[i] = 1;",
        "a[i] = i == n - 1 || b[i + 1] < 0 ? 0 : b[i + 1];",
        "if (!(i < n - 1 && b[i + 1] > 0)) a[i] = 1; else a[i] = b[i + 1];",
        "if (i == n - 1 || b[i + 1] > 0) { a[i] = 1; r = 1; } else { a[i] = b[i + 1]; r = 2; }",
        "if (i < n - 1 && b[i + 1] > r) { a[i + 1] = b[i + 1]; r = 1; } else { r = 2; }",
    ],
)
def test_an_arm_is_read_where_affine_parts_of_its_condition_say(body: str) -> None:
    scop = only(
        "void f(int n, int a[n], int b[n], int r) {\n#pragma scop\n"
        f"for (int i = 0; i < n; i++) {{ {body} }}\n#pragma endscop\n}}\n"
    )
    found = [x for s in scop.statements for x in s.accesses if "[i + 1]" in x.text]
    inside = isl.Set.read_from_str(scop.isl_context, "[n] -> { [i] : 0 <= i < n - 1 }")
    assert len(found) > 1
    for one in found:
        assert one.relation.domain().reset_tuple_id().is_subset(inside), str(one.relation)


@pytest.mark.parametrize(
    "body",
    [
        "if (A[i] > 0) { A[i] = -1; s = 2; }",
        "if (A[i] > 0) A[i] = -1; else s = 2;",
        "if (A[i] > 0) for (j = 0; j < n; j++) A[j] = 1;",
    ],
)
def test_a_condition_that_its_statements_change_is_kept(body: str) -> None:
    scop = region(LOOP + body)
    assert text_of(scop) == "condition = (A[i] > 0 ? 1 : 0)"
    assert scop.array("condition").is_local
    assert all("(condition ? " in text_of(scop, at) for at in range(1, len(scop.statements)))


def test_a_condition_below_a_loop_that_is_refused_is_no_finding() -> None:
    found = refused("for (i = 0; i < idx[0]; i++) if (A[i] > s) s = A[i];")
    assert [one.code for one in found] == ["EATSS-F012"]


Outcome = tuple[frozenset[int], frozenset[bool]]
"""What a condition reads, and which values it may have."""


def leaf(rng: random.Random) -> tuple[str, Callable[[int, int], Outcome]]:
    """Write a comparison; say what C may read at ``i`` of ``n``."""
    kind, number = rng.choice(["above", "below", "read", "read"]), rng.randint(0, 3)
    if kind == "read":
        both = frozenset([True, False])
        return f"A[i + {number - 2}] > 0", lambda i, _: (frozenset([i + number - 2]), both)
    if kind == "above":
        return f"i > {number}", lambda i, _: (frozenset(), frozenset([i > number]))
    return f"i < n - {number}", lambda i, n: (frozenset(), frozenset([i < n - number]))


def condition(rng: random.Random, depth: int = 0) -> tuple[str, Callable[[int, int], Outcome]]:
    """Write a condition whose left operands are comparisons."""
    kind = rng.choice(["leaf"] * (depth > 0) + ["!", "&&", "||", "&&", "||"] * (depth < 3))
    if kind == "leaf":
        return leaf(rng)
    if kind == "!":
        inner, of_inner = condition(rng, depth + 1)
        return f"!({inner})", lambda i, n: (
            of_inner(i, n)[0], frozenset(not value for value in of_inner(i, n)[1])
        )  # fmt: skip
    (left, of_left), (right, of_right) = leaf(rng), condition(rng, depth + 1)

    def joined(i: int, n: int) -> Outcome:
        (reads, values), goes_on = of_left(i, n), kind == "&&"
        if goes_on not in values:
            return reads, values
        more, others = of_right(i, n)
        return reads | more, (values - {goes_on}) | others

    return f"({left} {kind} {right})", joined


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_a_condition_reads_what_c_may_read(seed: int) -> None:
    text, reads_at = condition(random.Random(seed))
    stores = ("if (%s) p[i] = 1; else p[i] = 2;", "p[i] = %s ? s : 2.0;", "p[i] += 3 * %s;")
    scop, n = region(LOOP + stores[seed % 3] % text), 6
    found: dict[int, set[int]] = {}
    for access in (one for statement in scop.statements for one in statement.reads):
        if access.array == "A":
            elements = random_programs.points_of_map(access.relation, {"n": n})
            for (at,), (element,) in elements.items():
                found.setdefault(at, set()).add(element)
    may_read = [reads_at(i, n)[0] for i in range(n)]
    if any(may_read):  # what is never read counts as read everywhere
        assert [found.get(i, set()) for i in range(n)] == may_read, text

"""Deep, long and wide input ends within seconds, with a region or a finding."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from eatss.base.diagnostics import InputError
from eatss.frontend import parse_source
from eatss.polyhedral.expression import Binary, Expression, Read

LIMIT_S = 60.0
"""Processor time: that of a busy machine's other work does not count."""


def wrapped(body: str, before: str = "") -> str:
    head = "void f(int n, int m, double *A, double *B, double s) {\n#pragma scop\n"
    return f"{before}{head}{body}\n#pragma endscop\n}}\n"


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < LIMIT_S


REFUSED = {
    "5000 parentheses": wrapped("A[0] = " + "(" * 5000 + "1" + ")" * 5000 + ";"),
    "200 parentheses in a sum": wrapped("A[0] = " + "s + (" * 200 + "1" + ")" * 200 + ";"),
    "200 levels in a subscript": wrapped("A[" + "n + (" * 200 + "1" + ")" * 200 + "] = 0;"),
    "5000 minus signs": wrapped("A[0] = " + "- " * 5000 + "s;"),
    "5000 casts": wrapped("A[0] = " + "(double)" * 5000 + "s;"),
    "1000 choices": wrapped("A[0] = " + "s > 1 ? 1.0 : " * 1000 + "s;"),
    "1000 else ifs": wrapped(
        "if (n == 0) A[0] = 1;" + "".join(f"else if (n == {k}) A[0] = 1;" for k in range(1, 1000))
    ),
    "300 nested loops": wrapped(
        "".join(f"for (int i{k} = 0; i{k} < n; i{k}++)" for k in range(300)) + "A[0] = 1;"
    ),
    "1000 blocks": wrapped("{" * 1000 + "A[0] = 1;" + "}" * 1000),
    "200000 operators": wrapped("A[0] = " + "+".join("s" for _ in range(200_000)) + ";"),
}


@pytest.mark.samples(4)
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_absurd_nesting_is_a_finding(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_source(text)
    assert caught.value.code == "EATSS-F009"


def test_macros_that_expand_without_end_are_a_finding() -> None:
    macros = ["#define A0 s+s+s+s+s+s+s+s+s+s\n"]
    macros += [f"#define A{k} " + "+".join([f"A{k - 1}"] * 10) + "\n" for k in range(1, 9)]
    with pytest.raises(InputError) as caught:
        parse_source(wrapped("A[0] = A8;", before="".join(macros)))
    assert caught.value.code == "EATSS-F009"


def test_too_many_cases_are_a_finding() -> None:
    condition = " || ".join(f"n == {3 * k}" for k in range(600))
    with pytest.raises(InputError) as caught:
        parse_source(wrapped(f"if ({condition}) A[0] = 1;"))
    assert caught.value.code == "EATSS-F009"


def test_forty_nested_loops() -> None:
    loops = "".join(
        f"for (int i{k} = {f'i{k - 1}' if k else 0}; i{k} < n; i{k}++)" for k in range(40)
    )
    scop = parse_source(wrapped(loops + "A[i0 + i39] += B[i1 - i2];")).scops[0]
    assert len(scop.statements[0].loops) == 40


def spine_length(expression: Expression) -> int:
    length = 0
    while isinstance(expression, Binary):
        expression, length = expression.left, length + 1
    assert isinstance(expression, Read)
    return length


@pytest.mark.long
def test_a_sum_of_twenty_thousand_terms() -> None:
    terms = " + ".join(f"B[i + {k}]" for k in range(20_000))
    scop = parse_source(wrapped(f"for (int i = 0; i < n; i++) A[i] = {terms};")).scops[0]
    assert len(scop.statements[0].reads) == 20_000
    assert spine_length(scop.statements[0].value) == 19_999


@pytest.mark.long
def test_a_subscript_of_twenty_thousand_terms() -> None:
    terms = " + ".join("i" for _ in range(20_000))
    scop = parse_source(wrapped(f"for (int i = 0; i < n; i++) A[{terms}] = 0;")).scops[0]
    relation = scop.statements[0].write.relation
    expected = "[n] -> { S0[i] -> A[20000i] : 0 <= i < n }"
    assert relation.is_equal(type(relation).read_from_str(relation.get_ctx(), expected))


def test_a_long_condition() -> None:
    condition = " && ".join(f"n > {k}" for k in range(1000))
    domain = parse_source(wrapped(f"if ({condition}) A[0] = 1;")).scops[0].statements[0].domain
    assert domain.is_equal(
        type(domain).read_from_str(domain.get_ctx(), "[n] -> { S0[] : n > 999 }")
    )


def test_a_thousand_statements() -> None:
    body = "".join(f"A[{k}] = B[{k}];" for k in range(1000))
    scop = parse_source(wrapped(body)).scops[0]
    assert [s.name for s in scop.statements[:3]] == ["S0", "S1", "S2"]
    assert len(scop.statements) == 1000


def test_a_long_table_outside_the_region_does_not_matter() -> None:
    table = "int table[] = {" + ",".join("-1" for _ in range(150_000)) + "};\n"
    assert len(parse_source(wrapped("A[0] = 0;", before=table)).scops) == 1

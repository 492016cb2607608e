"""Tokens of C and CUDA text."""

from __future__ import annotations

import pytest

from eatss.program.tokens import closing, definition, tokens

KERNEL = """\
// a kernel(x) { of no account }
#define TWICE(x) \\
    ((x) << 1) /* over
    lines */
__global__ void kernel(double *A, int n);
extern "C" __global__ void __launch_bounds__(256)
kernel(double *A, int n)
{
    if (n > 0) { A[0] = 1.5e-3f; }
}
"""


def spelled(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a<<=b>>c", ["a", "<<=", "b", ">>", "c"]),
        ("k<<<g, 1>>>(x)", ["k", "<<<", "g", ",", "1", ">>>", "(", "x", ")"]),
        ("0x1F+1e-3-.5", ["0x1F", "+", "1e-3", "-", ".5"]),
        ("a // b\n+ /* c\n d */ e", ["a", "+", "e"]),
        (r'f("a\"//b")', ["f", "(", r'"a\"//b"', ")"]),
        ("'\\'' + 1'000", ["'\\''", "+", "1'000"]),
        ('R"x(if (a) ")x" b', ['R"x(if (a) ")x"', "b"]),
        ("  # pragma unroll 8\na", ["  # pragma unroll 8", "a"]),
        ("a # b", ["a", "#", "b"]),
        ("a /* open", ["a"]),
    ],
)
def test_tokens_are_those_of_a_compiler(text: str, found: list[str]) -> None:
    assert spelled(text) == found


def test_tokens_know_their_place() -> None:
    assert all(KERNEL[token.start : token.end] == token.text for token in tokens(KERNEL))
    assert [token.kind for token in tokens(KERNEL)][:2] == ["directive", "word"]


def test_a_definition_is_no_declaration_comment_or_call() -> None:
    function = definition(tokens(KERNEL), "kernel")
    assert function is not None
    assert [token.text for token in function.parameters] == ["double", "*", "A", ",", "int", "n"]
    assert function.body[0].text == "if"
    assert function.body[-1].text == "}"
    assert definition(tokens(KERNEL), "__launch_bounds__") is None
    assert definition(tokens("a(b) + c"), "a") is None


def test_a_bracket_that_is_never_closed_reaches_to_the_end() -> None:
    assert closing(tokens("{ { } a"), 0) == len(tokens("{ { } a"))
    assert closing(tokens("( ( ) )"), 0) == 3

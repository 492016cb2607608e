"""The integer expressions of PPCG's host code, from tokens to :class:`IntExpr`."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.ppcg_build.refusal import NotUnderstoodError
from eatss.program import Apply, Constant, IntExpr, Name, Operator, select
from eatss.program.tokens import Token

_LEVELS: tuple[dict[str, Operator], ...] = (
    {"||": Operator.OR},
    {"&&": Operator.AND},
    {"==": Operator.EQ},
    {"<=": Operator.LE, "<": Operator.LT, ">=": Operator.GE, ">": Operator.GT},
    {"+": Operator.ADD, "-": Operator.SUB},
    {"*": Operator.MUL, "/": Operator.QUOTIENT, "%": Operator.REMAINDER},
)
"""Binary operators, those that bind least first. isl divides only where ``/`` and floor agree."""

_FUNCTIONS = {
    "ppcg_min": Operator.MIN,
    "ppcg_max": Operator.MAX,
    "ppcg_fdiv_q": Operator.FLOORDIV,
}


def integer(tokens: Sequence[Token]) -> IntExpr:
    """Read an expression that the tokens are, all of them.

    Raises:
        NotUnderstoodError: they are none.
    """
    reader = _Reader(tokens)
    found = reader.ternary()
    if reader.place != len(tokens):
        raise reader.error()
    return found


class _Reader:
    """Reads from left to right; ``place`` is the next token."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.place = 0

    def ternary(self) -> IntExpr:
        condition = self.binary(0)
        if not self.takes("?"):
            return condition
        yes = self.ternary()
        self.expect(":")
        return select(condition, yes, self.ternary())

    def binary(self, level: int) -> IntExpr:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := _LEVELS[level].get(self.text())) is not None:
            self.place += 1
            left = Apply(operator, (left, self.binary(level + 1)))
        return left

    def unary(self) -> IntExpr:
        if self.takes("-"):
            operand = self.unary()
            if isinstance(operand, Constant):
                return Constant(-operand.value)
            return Apply(Operator.SUB, (operand,))
        if self.takes("("):
            inner = self.ternary()
            self.expect(")")
            return inner
        if self.place >= len(self.tokens):
            raise self.error()
        token = self.tokens[self.place]
        self.place += 1
        if token.kind == "number" and token.text.isdigit():
            return Constant(int(token.text))
        if token.kind == "word" and self.text() != "(":
            return Name(token.text)
        if token.text in _FUNCTIONS:
            self.expect("(")
            first = self.ternary()
            self.expect(",")
            second = self.ternary()
            self.expect(")")
            return Apply(_FUNCTIONS[token.text], (first, second))
        self.place -= 1
        raise self.error()

    def text(self) -> str:
        return self.tokens[self.place].text if self.place < len(self.tokens) else ""

    def takes(self, text: str) -> bool:
        found = self.text() == text
        self.place += found
        return found

    def expect(self, text: str) -> None:
        if not self.takes(text):
            raise self.error()

    def error(self) -> NotUnderstoodError:
        whole = " ".join(token.text for token in self.tokens[:20])
        return NotUnderstoodError(f"'{whole}' is no integer expression that is known here")

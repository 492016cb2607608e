"""The integer expressions of PPCG's host code, from tokens to :class:`IntExpr`."""

from __future__ import annotations

from collections.abc import Sequence

from eatss.program import Apply, Constant, IntExpr, Name, Operator, select
from eatss.program.tokens import Token


class NotUnderstoodError(Exception):
    """PPCG generated something that is read nowhere here; the sentence says what."""


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
    reader = Reader(tokens)
    found = reader.integer()
    if reader.place != len(tokens):
        raise reader.no_integer()
    return found


class Reader:
    """Reads from left to right; ``place`` is the next token, ``begun`` that of an expression."""

    def __init__(self, tokens: Sequence[Token], place: int = 0) -> None:
        self.tokens = tokens
        self.place = self.begun = place

    def integer(self) -> IntExpr:
        """Read the longest expression that stands next.

        Raises:
            NotUnderstoodError: there is none.
        """
        self.begun = self.place
        return self.ternary()

    def ternary(self) -> IntExpr:
        """Read an expression with a condition."""
        condition = self.binary(0)
        if not self.takes("?"):
            return condition
        yes = self.ternary()
        self.expect(":")
        return select(condition, yes, self.ternary())

    def binary(self, level: int) -> IntExpr:
        """Read what operators of a level and those that bind more join."""
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := _LEVELS[level].get(self.text())) is not None:
            self.place += 1
            left = Apply(operator, (left, self.binary(level + 1)))
        return left

    def unary(self) -> IntExpr:
        """Read what no operator joins."""
        if self.takes("-"):
            operand = self.unary()
            if isinstance(operand, Constant):
                return Constant(-operand.value)
            return Apply(Operator.SUB, (operand,))
        if self.takes("("):
            inner = self.ternary()
            self.expect(")")
            return inner
        kind, text = self.kind(), self.text()
        if kind == "number" and text.isdigit():
            self.place += 1
            return Constant(int(text))
        if kind == "word" and self.text(1) != "(":
            self.place += 1
            return Name(text)
        if text not in _FUNCTIONS:
            raise self.no_integer()
        self.place += 1
        self.expect("(")
        first = self.ternary()
        self.expect(",")
        second = self.ternary()
        self.expect(")")
        return Apply(_FUNCTIONS[text], (first, second))

    def kind(self) -> str:
        """Return of what kind the next token is, "" behind the last."""
        return self.tokens[self.place].kind if self.place < len(self.tokens) else ""

    def text(self, ahead: int = 0) -> str:
        """Return the next token, or one further ahead, "" behind the last."""
        place = self.place + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def takes(self, text: str) -> bool:
        """Go on behind a token if it is the next; tell whether it is."""
        found = self.text() == text
        self.place += found
        return found

    def expect(self, *texts: str) -> None:
        """Go on behind tokens that have to be the next."""
        for text in texts:
            if not self.takes(text):
                raise self.unknown()

    def unknown(self) -> NotUnderstoodError:
        """Return the error of tokens that stand where others are expected."""
        return self.no_integer()

    def no_integer(self) -> NotUnderstoodError:
        """Return the error of what is no expression."""
        whole = self.said(self.begun)
        return NotUnderstoodError(f"'{whole}' is no integer expression that is known here")

    def said(self, begun: int) -> str:
        """Return some tokens in words."""
        return " ".join(token.text for token in self.tokens[begun : begun + 20])

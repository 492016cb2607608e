"""C and CUDA text as tokens: for a program's text, which its user may have edited.

Comments and white space are left out; a directive of the preprocessor is one token. Nothing is
expanded, so what macros hide stays hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, cast

Kind: TypeAlias = Literal["directive", "text", "word", "number", "operator"]

_TOKEN = re.compile(
    r"""
    (?P<directive> ^[ \t]*\#(?: \\\r?\n | //[^\n]* | /\*.*?\*/ | [^\n] )* )
    | (?P<blank> \s | \\\r?\n | //(?: \\\r?\n | [^\n] )* | /\*.*?(?:\*/|\Z) )
    | (?P<text> (?:u8|[uUL])? (?:
          R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"
        | "(?: \\. | [^"\\\n] )*"
        | '(?: \\. | [^'\\\n] )*' ) )
    | (?P<word> [^\W\d]\w* )
    | (?P<number> \.?\d(?: [eEpP][+-] | '\w | [\w.] )* )
    | (?P<operator> <<<|>>>|<<=|>>=|\.\.\.|->\*|::|->|\+\+|--|<<|>>|[-+*/%&|^!=<>]=|&&|\|\||. )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and where in the text it starts and ends."""

    kind: Kind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Function:
    """The definition of a function: its parameters and its body, without the brackets."""

    name: str
    parameters: tuple[Token, ...]
    body: tuple[Token, ...]


@lru_cache(maxsize=4)
def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text in their order."""
    return tuple(
        Token(cast("Kind", match.lastgroup), match[0], match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "blank"
    )


def closing(found: Sequence[Token], opening: int) -> int:
    """Return the place of the bracket that closes the one at ``opening``, or the number of all."""
    opened = found[opening].text
    closed = {"(": ")", "{": "}", "[": "]"}[opened]
    depth = 0
    for place in range(opening, len(found)):
        depth += (found[place].text == opened) - (found[place].text == closed)
        if depth == 0:
            return place
    return len(found)


def definition(found: Sequence[Token], name: str) -> Function | None:
    """Return the first definition of a function, not its declarations or calls."""
    for place, token in enumerate(found[:-1]):
        if token.text != name or found[place + 1].text != "(":
            continue
        close = closing(found, place + 1)
        if close + 1 < len(found) and found[close + 1].text == "{":
            end = closing(found, close + 1)
            return Function(name, tuple(found[place + 2 : close]), tuple(found[close + 2 : end]))
    return None


def definitions(text: str, names: Iterable[str]) -> list[Function]:
    """Return the definitions of functions that do anything, in their order in the text."""
    found = tokens(text)
    known = (definition(found, name) for name in names)
    return sorted((one for one in known if one and one.body), key=lambda one: one.body[0].start)

"""Finds the branches of a program's text and has them counted where it runs on a CPU."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eatss.program import Program
from eatss.program.tokens import Function, Token, closing, definition, tokens

_TYPES = frozenset(("int", "long", "double", "float", "unsigned", "eatss_half"))
_RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A condition of the text: an ``if``, or what a ``for`` tests before every round.

    ``function`` is the kernel or the launcher it stands in; ``line`` counts from 1. ``has_else``
    marks code in two versions: for tiles that are full and for those that are not.
    """

    function: str
    line: int
    kind: Literal["if", "for"]
    condition: str
    has_else: bool

    def decided(self, sizes: Mapping[str, int]) -> bool | None:
        """Return whether a size compared with a number holds; ``None`` for any other condition."""
        words = self.condition.split(" ")
        if len(words) != 3 or words[1] not in _RELATIONS:
            return None
        left, right = (_value(word, sizes) for word in (words[0], words[2]))
        return None if left is None or right is None else _RELATIONS[words[1]](left, right)


def _value(word: str, sizes: Mapping[str, int]) -> int | None:
    return int(word) if re.fullmatch("0|[1-9][0-9]*", word) else sizes.get(word)


@dataclass(frozen=True, slots=True)
class _Condition:
    """The tokens that an ``if`` or a ``for`` tests."""

    kind: Literal["if", "for"]
    tested: Sequence[Token]
    has_else: bool

    @property
    def counts(self) -> bool:
        """Whether it is worth counting: it is no constant, and declares no variable."""
        words = [token.kind == "word" for token in self.tested[:2]]
        declares = words == [True, True] and [token.text for token in self.tested[2:3]] == ["="]
        return not declares and any(
            token.kind == "word" and token.text not in _TYPES for token in self.tested
        )


def instrumented_text(program: Program) -> tuple[str, tuple[Branch, ...]]:
    """Return the text with every branch counted, on the same lines, and the branches in order.

    Where a kernel begins stands of which pointers it says that nothing else changes what they
    point to.
    At the end stands which kernels take what exceeds the grid in strides, so that fewer blocks do
    too. Conditions that declare a variable are left alone, they ask the CUDA runtime for errors,
    and so are those of constants.
    """
    text = program.text
    pieces: list[str] = []
    branches: list[Branch] = []
    done = 0
    promises = list(_promises(program))
    for function, condition in _conditions(program):
        first, last = condition.tested[0].start, condition.tested[-1].end
        if first < done:
            continue
        while promises and promises[0][0] <= first:
            at, promise = promises.pop(0)
            pieces += [text[done:at], promise]
            done = at
        tested = text[first:last]
        pieces += [text[done:first], f"eatss::took_{condition.kind}({len(branches)}, {tested})"]
        done = last
        branches.append(
            Branch(
                function=function,
                line=text.count("\n", 0, first) + 1,
                kind=condition.kind,
                condition=" ".join(tested.split()),
                has_else=condition.has_else,
            )
        )
    for at, promise in promises:
        pieces += [text[done:at], promise]
        done = at
    counted = "".join((*pieces, text[done:]))
    return counted + "".join(_strides(program)), tuple(branches)


def _promises(program: Program) -> Iterator[tuple[int, str]]:
    """Yield where kernels begin, and calls that tell of their parameters with ``__restrict__``."""
    found = tokens(program.text)
    functions = (definition(found, kernel.name) for kernel in program.kernels)
    known = [one for one in functions if one is not None and one.body]
    for function in sorted(known, key=lambda one: one.body[0].start):
        calls = "".join(f"eatss::promise({name}); " for name in _restricted(function))
        if calls:  # behind the bracket: what is first in the body may be a line of its own
            yield program.text.index("{", function.parameters[-1].end) + 1, f" {calls}"


def _restricted(function: Function) -> Iterator[str]:
    """Yield the names of the parameters of a function that are declared with ``__restrict__``."""
    restricted, last = False, ""
    for token in (*function.parameters, None):
        if token is None or token.text == ",":
            if restricted:
                yield last
            restricted, last = False, ""
        elif token.text == "__restrict__":
            restricted = True
        elif token.kind == "word":
            last = token.text


def _strides(program: Program) -> Iterator[str]:
    """Yield definitions that say along which axes the blocks of a kernel take strides."""
    for kernel in program.kernels:
        if kernel.grid_strides:
            call = f'eatss::strides("{kernel.name}", "{"".join(kernel.grid_strides)}")'
            yield f"\nstatic bool eatss_strides_{kernel.name} = {call};\n"


def _conditions(program: Program) -> Iterator[tuple[str, _Condition]]:
    """Yield the conditions of the kernels and launchers that count, in the order of the text."""
    found = tokens(program.text)
    names = [kernel.name for kernel in program.kernels]
    names += [entry.launcher for entry in program.entries]
    functions = [one for name in names if (one := definition(found, name)) and one.body]
    for function in sorted(functions, key=lambda one: one.body[0].start):
        for place, token in enumerate(function.body[:-1]):
            if token.text in ("if", "for") and function.body[place + 1].text == "(":
                condition = _condition(function.body, place)
                if condition.counts:
                    yield function.name, condition


def _condition(body: Sequence[Token], place: int) -> _Condition:
    """Return what the keyword at a place tests."""
    close = closing(body, place + 1)
    head = body[place + 2 : close]
    if body[place].text == "if":
        return _Condition("if", head, _has_else(body, close + 1))
    ends = [k for k, token in enumerate(head) if token.text == ";"]
    return _Condition("for", head[ends[0] + 1 : ends[1]] if len(ends) == 2 else (), False)


def _has_else(body: Sequence[Token], place: int) -> bool:
    """Tell whether the statement in braces at a place has an ``else``."""
    if place >= len(body) or body[place].text != "{":
        return False
    after = closing(body, place) + 1
    return after < len(body) and body[after].text == "else"

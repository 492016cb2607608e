"""Finds the branches of a program's text and has them counted where it runs on a CPU."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eatss.program import Program
from eatss.program.tokens import Function, Token, closing, definition, tokens

_TYPES = frozenset(("int", "long", "double", "float", "unsigned", "eatss_half"))
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_BEFORE_OPERAND = frozenset((*_ASSIGNMENTS, ",", ";", "?", ":", "return"))
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
    """A condition of the text: of an ``if``, of a ``for`` before every round, or before a ``?``.

    ``function`` is the kernel or the launcher it stands in; ``line`` counts from 1. ``has_else``
    marks code in two versions: for tiles that are full and for those that are not. ``inside`` are
    the numbers of the conditions it stands behind, and whether these have to hold. ``spare`` is a
    copy of 16 bytes beside one of single elements: a version of the loop that has only such may
    leave nothing for it to do, and the text does not tell.
    """

    function: str
    line: int
    kind: Literal["if", "for", "choice"]
    condition: str
    has_else: bool
    inside: tuple[tuple[int, bool], ...] = ()
    spare: bool = False

    @property
    def ways(self) -> tuple[bool, ...]:
        """What has to hold for code behind it to run: either, where there is code for both."""
        return (True, False) if self.has_else or self.kind == "choice" else (True,)

    def decided(self, sizes: Mapping[str, int]) -> bool | None:
        """Return whether a condition holds at some sizes, as far as these alone tell.

        Sizes and numbers are compared, and sums in which counters stand with a plus: they are
        taken not to be negative, so that ``k0 + 32 <= N`` cannot hold where ``N`` is less than 32.
        """
        parts = [_compared(part, sizes) for part in self.condition.split(" && ")]
        if False in parts:
            return False
        return True if all(parts) else None


def least_sizes(branches: Sequence[Branch], number: int, names: Collection[str]) -> dict[str, int]:
    """Return how large some sizes have to be at least, for a condition of kernels to hold.

    What has to hold before it, and it itself, are read as sums of counters, which are 0 at first,
    and numbers that are at most a size: ``k0 + 96 + 32 <= N`` needs 128. A counter that is beyond
    another one has made a step, which is taken to be as long: ``i < j && j + 16 <= N`` needs 32.
    """
    one = branches[number]
    conditions = [branches[k].condition for k, holds in one.inside if holds]
    parts = [part.split(" ") for part in " && ".join((*conditions, one.condition)).split(" && ")]
    beyond = {part[2] for part in parts if len(part) == 3 and part[1] == "<"} - set(names)
    found: dict[str, int] = {}
    for words in parts:
        if len(words) >= 3 and words[-1] in names and words[-2] in ("<", "<="):
            left = _sum(words[:-2], {})
            steps = 2 if beyond.intersection(words[:-2]) else 1
            least = steps * (left[0] if left else 0) + (words[-2] == "<")
            found[words[-1]] = max(found.get(words[-1], 1), least)
    return found


def _compared(condition: str, sizes: Mapping[str, int]) -> bool | None:
    """Return what is known of ``left < right``, for any relation."""
    words = condition.split(" ")
    relations = [word for word in words if word in _RELATIONS]
    if len(relations) != 1:
        return None
    place = words.index(relations[0])
    left, right = (_sum(part, sizes) for part in (words[:place], words[place + 1 :]))
    if left is None or right is None:
        return None
    holds = _RELATIONS[relations[0]](left[0], right[0])
    if left[1] and right[1]:
        return holds
    beyond = relations[0] in ("<", "<=") and right[1] and not holds
    return False if beyond else None


def _sum(words: Sequence[str], sizes: Mapping[str, int]) -> tuple[int, bool] | None:
    """Return the least value of a sum of words, and whether it is its value; or nothing."""
    least, known = 0, True
    for term in " ".join(words).split(" + "):
        if not re.fullmatch(r"\w+( \* \w+)*", term):
            return None
        value = _value(term, sizes)
        least, known = least + (value or 0), known and value is not None
    return least, known


def _value(word: str, sizes: Mapping[str, int]) -> int | None:
    return int(word) if re.fullmatch("0|[1-9][0-9]*", word) else sizes.get(word)


@dataclass(frozen=True, slots=True)
class _Condition:
    """The tokens that an ``if``, a ``for`` or a ``?`` tests, and those it decides about."""

    kind: Literal["if", "for", "choice"]
    place: int
    tested: Sequence[Token]
    holds: range = range(0)
    fails: range = range(0)

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
    around: list[tuple[str, _Condition, int]] = []
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
        inside = [
            (number, condition.place in one.holds)
            for of, one, number in around
            if of == function and (condition.place in one.holds or condition.place in one.fails)
        ]
        around.append((function, condition, len(branches)))
        path = [(branches[number].condition, holds) for number, holds in inside]
        branches.append(
            Branch(
                function=function,
                line=text.count("\n", 0, first) + 1,
                kind=condition.kind,
                condition=" ".join(tested.split()),
                has_else=bool(condition.fails),
                inside=tuple(inside),
                spare=_is_spare([*path, (" ".join(tested.split()), True)]),
            )
        )
    for at, promise in promises:
        pieces += [text[done:at], promise]
        done = at
    counted = "".join((*pieces, text[done:]))
    return counted + "".join(_strides(program)), tuple(branches)


def _is_spare(path: Sequence[tuple[str, bool]]) -> bool:
    """Tell whether conditions, of which some hold, lead to a copy of 16 bytes that may not run."""
    return any(holds and re.search(r"\bwide_", condition) for condition, holds in path)


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
    """Yield the conditions of the kernels and launchers that count, in the order of the text.

    Of launchers, what stands before a ``?`` is left out: they choose how large a grid is.
    """
    found = tokens(program.text)
    kernels = {kernel.name for kernel in program.kernels}
    names = [*kernels, *(entry.launcher for entry in program.entries)]
    functions = [one for name in names if (one := definition(found, name)) and one.body]
    for function in sorted(functions, key=lambda one: one.body[0].start):
        body = function.body
        for place, token in enumerate(body[:-1]):
            if token.text in ("if", "for") and body[place + 1].text == "(":
                condition = _condition(body, place)
            elif token.text == "?" and function.name in kernels:
                start = _operand_start(body, place)
                condition = _Condition("choice", place, body[start:place])
            else:
                continue
            if condition.counts:
                yield function.name, condition


def _operand_start(body: Sequence[Token], place: int) -> int:
    """Return where the operand begins that stands before the ``?`` at a place."""
    depth = 0
    while place > 0:
        text = body[place - 1].text
        depth += (text in _CLOSING) - (text in _OPENING)
        if depth < 0 or (depth == 0 and text in _BEFORE_OPERAND):
            break
        place -= 1
    return place


def _condition(body: Sequence[Token], place: int) -> _Condition:
    """Return what the keyword at a place tests."""
    close = closing(body, place + 1)
    head = body[place + 2 : close]
    after = _statement_end(body, close + 1)
    holds = range(close + 1, after)
    if body[place].text == "if":
        has_else = after < len(body) and body[after].text == "else"
        fails = range(after, _statement_end(body, after + 1) if has_else else after)
        return _Condition("if", place, head, holds, fails)
    ends = [k for k, token in enumerate(head) if token.text == ";"]
    return _Condition("for", place, head[ends[0] + 1 : ends[1]] if len(ends) == 2 else (), holds)


def _statement_end(body: Sequence[Token], place: int) -> int:
    """Return the place behind the statement that starts at a place."""
    while place < len(body) and body[place].kind == "directive":
        place += 1
    if place >= len(body):
        return place
    if body[place].text == "{":
        return closing(body, place) + 1
    if body[place].text in ("if", "for", "while"):
        after = _statement_end(body, closing(body, place + 1) + 1)
        if after < len(body) and body[after].text == "else":
            return _statement_end(body, after + 1)
        return after
    while place < len(body) and body[place].text != ";":
        place = closing(body, place) + 1 if body[place].text in ("(", "{") else place + 1
    return place + 1

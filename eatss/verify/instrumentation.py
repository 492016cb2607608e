"""Finds the branches of a program's text and has them counted where it runs on a CPU."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from eatss.base.frozen import frozen
from eatss.base.text import Edit, Texts, edited
from eatss.program import Program
from eatss.program.expression import OwnSizes, c_text
from eatss.program.tokens import Function, Token, closing, definitions, tokens

_TYPES = frozenset(("int", "long", "double", "float", "unsigned", "eatss_half"))
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_BEFORE_OPERAND = frozenset((*_ASSIGNMENTS, ",", ";", "?", ":", "return"))
_AT_MOST = re.compile(r"(.+) (<|<=|==) (\w+)")
_AT_LEAST = re.compile(r"(\w+) (==|>|>=) (.+)")
_BEYOND = re.compile(r"\S+ < (\S+)")
_TERM = re.compile(r"\w+( \* \w+)*")
_RESTRICTED = re.compile(r"__restrict__ (\w+)")
_PART = re.compile(r"[\w ()+*%<>=-]+")
"""A condition that computes with numbers alone: it may be asked for whatever the others say."""


@frozen
class Branch:
    """A condition of the text: of an ``if``, of a ``for`` before every round, or before a ``?``.

    ``function`` is the kernel or the launcher it stands in; ``line`` counts from 1. ``has_else``
    marks code in two versions: for tiles that are full and for those that are not. ``inside`` are
    the numbers of the conditions it stands behind, and whether these have to hold. A ``part`` is
    one of several conditions that together decide between two versions: it counts when it alone
    does not hold.
    """

    function: str
    line: int
    kind: Literal["if", "for", "choice", "part"]
    condition: str
    has_else: bool
    inside: tuple[tuple[int, bool], ...] = ()

    @property
    def ways(self) -> tuple[bool, ...]:
        """What has to hold for code behind it to run: either, where there is code for both."""
        if self.kind == "part":
            return (False,)
        return (True, False) if self.has_else or self.kind == "choice" else (True,)


def least_sizes(
    branches: Sequence[Branch], number: int, way: bool, names: Collection[str]
) -> list[OwnSizes]:
    """Return how large some sizes have to be at least, for a branch of kernels to go a way.

    What has to hold before it, and it itself, are read as sums of counters, which are 0 at first,
    and numbers that are at most a size: ``k0 + 96 + 32 <= N`` needs 128. A counter that is beyond
    another one has made a step, which is taken to be as long: ``i < j && j + 16 <= N`` needs 32.
    If the condition must not hold, sizes may be too small for it, or larger than it needs.
    """
    one = branches[number]
    before = [branches[k].condition for k, holds in one.inside if holds]
    found = [_least([*before, one.condition], names)]
    return found if way else [_least(before, names), *found]


def _least(conditions: Sequence[str], names: Collection[str]) -> OwnSizes:
    parts = " && ".join(conditions).split(" && ")
    beyond = {one[1] for part in parts if (one := _BEYOND.fullmatch(part))} - {*names}
    found: OwnSizes = {}
    for part in parts:
        turned, straight = _AT_LEAST.fullmatch(part), _AT_MOST.fullmatch(part)
        if turned is not None and turned[1] in names:
            name, relation, total = turned.groups()
        elif straight is not None and straight[3] in names:
            total, relation, name = straight.groups()
        else:
            continue
        steps = 2 if beyond.intersection(total.split()) else 1
        least = steps * _least_value(total) + (relation in "<>")
        found[name] = max(found.get(name, 1), least)
    return found


def _least_value(total: str) -> int:
    """Return the least value of a sum of numbers and counters, 0 if it is none."""
    terms = total.split(" + ")
    if not all(_TERM.fullmatch(term) for term in terms):
        return 0
    return sum(int(term) for term in terms if term.isdecimal())


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
    branches: list[Branch] = []
    edits = []
    done = 0
    around: list[tuple[str, _Condition, int]] = []
    for function, condition in _conditions(program):
        first, last = condition.tested[0].start, condition.tested[-1].end
        if first < done:
            continue
        tested = text[first:last]
        parts = _parts(tested) if condition.fails else []
        asked = f"eatss::all_hold({len(branches) + 1}, {', '.join(parts)})" if parts else tested
        edits.append((first, last, f"eatss::took_{condition.kind}({len(branches)}, {asked})"))
        done = last
        inside = [
            (number, condition.place in one.holds)
            for of, one, number in around
            if of == function and (condition.place in one.holds or condition.place in one.fails)
        ]
        around.append((function, condition, len(branches)))
        one = Branch(
            function=function,
            line=text.count("\n", 0, first) + 1,
            kind=condition.kind,
            condition=" ".join(tested.split()),
            has_else=bool(condition.fails),
            inside=tuple(inside),
        )
        numbers = range(len(branches) + 1, len(branches) + 1 + len(parts))
        branches.append(one)
        for number, part in zip(numbers, parts, strict=True):
            others = [(other, True) for other in numbers if other != number]
            both = (*inside, *others)
            branches.append(replace(one, kind="part", condition=part, has_else=False, inside=both))
    kernels = definitions(text, (kernel.name for kernel in program.kernels))
    counted = edited(text, [*edits, *_promises(text, kernels), *_rows(program, kernels)])
    for kernel in program.kernels:  # which go on by a grid along some axes
        if kernel.grid_strides:
            call = f'eatss::strides("{kernel.name}", "{"".join(kernel.grid_strides)}")'
            counted += f"\nstatic bool eatss_strides_{kernel.name} = {call};\n"
    return counted, tuple(branches)


def _parts(tested: str) -> list[str]:
    """Return the conditions of which all have to hold, if each can be asked for by itself."""
    parts = " ".join(tested.split()).split(" && ")
    sound = all(_PART.fullmatch(one) and one.count("(") == one.count(")") for one in parts)
    return parts if sound and len(parts) > 1 else []


def _promises(text: str, kernels: Sequence[Function]) -> Iterator[Edit]:
    """Yield where kernels begin, and calls that tell of their parameters with ``__restrict__``."""
    for function in kernels:
        if not function.parameters:
            continue
        first, last = function.parameters[0].start, function.parameters[-1].end
        names = _RESTRICTED.findall(text, first, last)
        if names:  # behind the bracket: what is first in the body may be a line of its own
            place = text.index("{", last) + 1
            yield place, place, "".join(f" eatss::promise({name});" for name in names) + " "


def _rows(program: Program, kernels: Sequence[Function]) -> Iterator[Edit]:
    """Yield checks that elements ``A[i * N + j]`` are in the row ``i``, around their places.

    An element beside its row is often another one of the array, and beside it in the last row only.
    """
    extents: dict[str, set[Texts]] = {}
    for entry in program.entries:
        arrays = [(one.name, one.shape) for one in entry.arguments]
        for name, shape in (*arrays, *((one.name, one.shape) for one in entry.temporaries)):
            extents.setdefault(name, set()).add(tuple(map(c_text, shape[1:])))
    known = {name: inner.pop() for name, inner in extents.items() if len(inner) == 1}
    for body in (function.body for function in kernels):
        for place in range(1, len(body) - 1):
            name, opening = body[place].text, body[place + 1]
            if not known.get(name) or opening.text != "[" or body[place - 1].text in (".", "->"):
                continue
            close = closing(body, place + 1)
            if body[close + 1].text != "[":
                checks = _checks(body[place + 2 : close], known[name], program.text) or ()
                calls = "".join(f"eatss::in_row({one}, {extent}, " for one, extent in checks)
                yield opening.end, opening.end, calls
                yield body[close].start, body[close].start, ")" * len(checks)


def _checks(
    subscript: Sequence[Token], extents: Sequence[str], text: str
) -> list[tuple[str, str]] | None:
    """Return the places in rows and how long these are, of ``(i * N + j) * M + k``; or nothing."""
    if not extents:
        return []
    depth, last = 0, 0
    for place, token in enumerate(subscript):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        last = place if depth == 0 and token.text == "+" else last
    before, inner = subscript[:last], subscript[last + 1 :]
    extent = [token.text for token in tokens(extents[-1])]
    for wanted in (extent, ["(", *extent, ")"]):
        outer = before[: -len(wanted) - 1]
        if outer and [token.text for token in before[len(outer) :]] == ["*", *wanted]:
            if outer[0].text == "(" and closing(outer, 0) == len(outer) - 1:
                outer = outer[1:-1]
            others = _checks(outer, extents[:-1], text)
            own = text[inner[0].start : inner[-1].end], extents[-1]
            return None if others is None else [*others, own]
    return None


def _conditions(program: Program) -> Iterator[tuple[str, _Condition]]:
    """Yield the conditions of the kernels and launchers that count, in the order of the text.

    Of launchers, what stands before a ``?`` is left out: they choose how large a grid is.
    """
    kernels = {kernel.name for kernel in program.kernels}
    names = [*kernels, *(entry.launcher for entry in program.entries)]
    for function in definitions(program.text, names):
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
        fails = range(after, _statement_end(body, after + 1) if _is_else(body, after) else after)
        return _Condition("if", place, head, holds, fails)
    ends = [k for k, token in enumerate(head) if token.text == ";"]
    return _Condition("for", place, head[ends[0] + 1 : ends[1]] if len(ends) == 2 else (), holds)


def _is_else(body: Sequence[Token], place: int) -> bool:
    return place < len(body) and body[place].text == "else"


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
        return _statement_end(body, after + 1) if _is_else(body, after) else after
    while place < len(body) and body[place].text != ";":
        place = closing(body, place) + 1 if body[place].text in ("(", "{") else place + 1
    return place + 1

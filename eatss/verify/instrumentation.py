"""Finds the branches of a program's text and has them counted where it runs on a CPU."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from eatss.base.frozen import fixed, frozen
from eatss.base.text import Edit, edited
from eatss.program import Argument, Program, Temporary
from eatss.program.expression import c_text
from eatss.program.tokens import Token, closing, definitions

_TYPES = frozenset(("int", "long", "double", "float", "unsigned", "eatss_half"))
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_BEFORE_OPERAND = frozenset((*_ASSIGNMENTS, ",", ";", "?", ":", "return"))
_RESTRICTED = re.compile(r"__restrict__ (\w+)")
_ELEMENT = re.compile(r"(?<![\w.>])(\w+)\[([^][]+)\](?!\[)")
_CAST = re.compile(r"\((?:int|long)\)")
_PART = re.compile(r"[\w ()+*%<>=-]+")
"""A condition that computes with numbers alone: it may be asked for whatever the others say."""


Inside: TypeAlias = tuple[tuple[int, bool], ...]
"""Numbers of conditions, from the outermost one on, and whether these have to hold."""


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
    inside: Inside = ()

    @property
    def ways(self) -> tuple[bool, ...]:
        """What has to hold for code behind it to run: either, where there is code for both."""
        if self.kind == "part":
            return (False,)
        return (True, False) if self.has_else or self.kind == "choice" else (True,)


@fixed
class _Condition:
    """What an ``if``, a ``for`` or a ``?`` tests, and the conditions it decides about."""

    kind: Literal["if", "for", "choice"]
    tested: Sequence[Token]
    holds: Sequence[_Condition] = ()
    fails: Sequence[_Condition] | None = None

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
    and so are those of constants. Of launchers, what stands before a ``?`` is left out: they choose
    how large a grid is.
    """
    text = program.text
    branches: list[Branch] = []
    edits: list[Edit] = []

    def count(name: str, found: Sequence[_Condition], inside: Inside) -> None:
        for one in found:
            first, last, number = one.tested[0].start, one.tested[-1].end, len(branches)
            tested = text[first:last]
            branch = Branch(
                function=name,
                line=text.count("\n", 0, first) + 1,
                kind=one.kind,
                condition=" ".join(tested.split()),
                has_else=one.fails is not None,
                inside=inside,
            )
            branches.append(branch)
            parts = _parts(branch.condition) if branch.has_else else []
            numbers = range(number + 1, number + 1 + len(parts))
            for own, part in zip(numbers, parts, strict=True):
                both = (*inside, *((other, True) for other in numbers if other != own))
                new = replace(branch, kind="part", condition=part, has_else=False, inside=both)
                branches.append(new)
            asked = f"eatss::all_hold({number + 1}, {', '.join(parts)})" if parts else tested
            edits.append((first, last, f"eatss::took_{one.kind}({number}, {asked})"))
            count(name, one.holds, (*inside, (number, True)))
            count(name, one.fails or (), (*inside, (number, False)))

    kernels = {kernel.name for kernel in program.kernels}
    for function in definitions(text, [*kernels, *(one.launcher for one in program.entries)]):
        is_kernel = function.name in kernels
        found = _Reader(function.body, choices=is_kernel).statements(0, len(function.body))
        count(function.name, found, ())
        if is_kernel and function.parameters:
            first, last = function.parameters[0].start, function.body[0].start
            names = _RESTRICTED.findall(text, first, last)
            begins = text.rindex("{", first, last) + 1  # the first line may be a directive's
            edits.append((begins, begins, "".join(f" eatss::promise({name});" for name in names)))
            edits += _rows(program, begins, function.body[-1].end)
    counted = edited(text, edits)
    for kernel in program.kernels:  # which go on by a grid along some axes
        if kernel.grid_strides:
            call = f'eatss::strides("{kernel.name}", "{"".join(kernel.grid_strides)}")'
            counted += f"\nstatic bool eatss_strides_{kernel.name} = {call};\n"
    return counted, tuple(branches)


def _parts(condition: str) -> list[str]:
    """Return the conditions of which all have to hold, if each can be asked for by itself."""
    parts = condition.split(" && ")
    sound = all(_PART.fullmatch(one) and one.count("(") == one.count(")") for one in parts)
    return parts if sound and len(parts) > 1 else []


def _rows(program: Program, first: int, last: int) -> Iterator[Edit]:
    """Yield checks that elements ``A[i * N + j]`` are in the row ``i``, around their places.

    An element beside its row is often another one of the array, and beside it in the last row only.
    """
    arrays: list[Argument | Temporary] = []
    for entry in program.entries:
        arrays += (*entry.arguments, *entry.temporaries)
    shapes = {(one.name, tuple(map(c_text, one.shape[1:]))) for one in arrays}
    several = Counter(name for name, _ in shapes)
    known = {name: extents for name, extents in shapes if several[name] == 1}
    for match in _ELEMENT.finditer(program.text, first, last):
        checks = _checks(match[2], known.get(match[1], ()))
        calls = "".join(f"eatss::in_row({one}, {extent}, " for one, extent in checks)
        yield match.start(2), match.start(2), calls
        yield match.end(2), match.end(2), ")" * len(checks)


def _checks(subscript: str, extents: Sequence[str]) -> list[tuple[str, str]]:
    """Return the places in rows and how long these are, of ``(i * N + j) * M + k``; or nothing."""
    blank = _CAST.sub(lambda match: " " * len(match[0]), " ".join(subscript.splitlines()))
    try:
        tree = ast.parse(blank.strip(), mode="eval").body
        widths = [ast.dump(ast.parse(extent, mode="eval").body) for extent in extents]
    except SyntaxError:
        return []
    found = []
    for extent, width in zip(reversed(extents), reversed(widths), strict=True):
        match tree:
            case ast.BinOp(ast.BinOp(outer, ast.Mult(), right), ast.Add(), inner) if (
                ast.dump(right) == width
            ):
                shift = len(blank) - len(blank.lstrip())
                own = subscript[inner.col_offset + shift : (inner.end_col_offset or 0) + shift]
                found.append((own, extent))
                tree = outer
            case _:
                return []
    return found[::-1]


class _Reader:
    """Finds the conditions of a function that count, those before a ``?`` among ``choices``."""

    def __init__(self, body: Sequence[Token], *, choices: bool) -> None:
        self._body, self._choices = body, choices

    def statements(self, place: int, end: int) -> list[_Condition]:
        """Return those of the statements between two places, in their order."""
        found: list[_Condition] = []
        while place < end:
            place, more = self._statement(place, end)
            found += more
        return found

    def _statement(self, place: int, end: int) -> tuple[int, list[_Condition]]:
        """Return the place behind the statement that starts at a place, and its conditions."""
        body = self._body
        while place < end and body[place].kind == "directive":
            place += 1
        word = body[place].text if place < end else ""
        if word == "{":
            close = closing(body, place)
            return close + 1, self.statements(place + 1, close)
        if word not in ("if", "for", "while"):
            return self._simple(place, end)
        close = closing(body, place + 1)
        after, holds = self._statement(close + 1, end)
        if word == "if":
            tested, fails = body[place + 2 : close], None
            if after < end and body[after].text == "else":
                after, fails = self._statement(after + 1, end)
            own = _Condition("if", tested, holds, fails)
        else:
            ends = [k for k in range(place, close) if body[k].text == ";"] or [close, close]
            steps = self._simple(ends[1] + 1, close)[1]
            own = _Condition("for", body[ends[0] + 1 : ends[1]], [*steps, *holds])
        return after, [own] if own.counts else [*own.holds, *(own.fails or ())]

    def _simple(self, place: int, end: int) -> tuple[int, list[_Condition]]:
        """Return the place behind a semicolon, and the conditions before it, those of lambdas."""
        body, found = self._body, list[_Condition]()
        start = place
        while place < end and body[place].text != ";":
            if body[place].text == "{":
                close = closing(body, place)
                found += self.statements(place + 1, close)
                place = close
            elif body[place].text == "?" and self._choices:
                own = _Condition("choice", body[self._operand_start(start, place) : place])
                nested = found and own.tested[0].start < found[-1].tested[-1].end
                found += [own] if own.counts and not nested else []
            place += 1
        return place + 1, found

    def _operand_start(self, first: int, place: int) -> int:
        """Return where the operand begins that stands before the ``?`` at a place."""
        depth = 0
        while place > first:
            text = self._body[place - 1].text
            depth += (text in _CLOSING) - (text in _OPENING)
            if depth < 0 or (depth == 0 and text in _BEFORE_OPERAND):
                break
            place -= 1
        return place

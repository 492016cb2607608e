"""Finds the branches of the generated text and has them counted where it runs on a CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from eatss.program import Program

_KEYWORD = re.compile(r"\b(if|for)\s*\(")
_ELSE = re.compile(r"\s*else\b")
_DECLARES = re.compile(r"\s*\w+ \w+ = ")
_STRIDE = re.compile(r"\+= \d+ \* \([\w ]+\)gridDim\.([xyz])\)")
_VARIES = re.compile(r"(?!(?:int|long|double|float|unsigned)\b)\b[A-Za-z_]")


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


def counted_text(program: Program) -> tuple[str, tuple[Branch, ...]]:
    """Return the text with every branch counted, on the same lines, and the branches in order.

    At the end stands which kernels take what exceeds the grid in strides, so that fewer blocks do
    too. Conditions that declare a variable are left alone, they ask the CUDA runtime for errors,
    and so are those of constants.
    """
    text = program.text
    pieces: list[str] = []
    branches: list[Branch] = []
    done = 0
    for function, start, end in sorted(_functions(program), key=lambda found: found[1]):
        for kind, first, last in _conditions(text, start, end):
            condition = text[first:last]
            if _DECLARES.match(condition) or not _VARIES.search(condition) or first < done:
                continue
            pieces += [text[done:first], f"eatss::took_{kind}({len(branches)}, {condition})"]
            done = last
            branches.append(
                Branch(
                    function=function,
                    line=text.count("\n", 0, first) + 1,
                    kind=kind,
                    condition=" ".join(condition.split()),
                    has_else=kind == "if" and _has_else(text, last + 1, end),
                )
            )
    counted = "".join((*pieces, text[done:]))
    return counted + "".join(_strides(program)), tuple(branches)


def _strides(program: Program) -> Iterator[str]:
    """Yield definitions that say along which axes the blocks of a kernel take strides."""
    kernels = {kernel.name for kernel in program.kernels}
    for function, start, end in _functions(program):
        axes = sorted(set(_STRIDE.findall(program.text, start, end)))
        if function in kernels and axes:
            call = f'eatss::strides("{function}", "{"".join(axes)}")'
            yield f"\nstatic bool eatss_strides_{function} = {call};\n"


def _functions(program: Program) -> Iterator[tuple[str, int, int]]:
    """Yield the kernels and launchers with where their bodies start and end."""
    names = [kernel.name for kernel in program.kernels]
    names += [entry.launcher for entry in program.entries]
    for name in names:
        for head in re.finditer(rf"\b{re.escape(name)}\s*\(", program.text):
            close = _closing(program.text, head.end() - 1, len(program.text))
            body = re.compile(r"\s*\{").match(program.text, close + 1)
            if body is not None:
                yield name, body.end(), _closing(program.text, body.end() - 1, len(program.text))
                break


def _conditions(text: str, start: int, end: int) -> Iterator[tuple[Literal["if", "for"], int, int]]:
    """Yield what is tested between two places: the kind, where it starts and ends."""
    for match in _KEYWORD.finditer(text, start, end):
        line = text.rfind("\n", 0, match.start()) + 1
        if "//" in text[line : match.start()]:
            continue
        close = _closing(text, match.end() - 1, end)
        if match[1] == "if":
            yield "if", match.end(), close
            continue
        first = text.find(";", match.end(), close) + 1
        last = text.find(";", first, close)
        if first and last >= 0 and text[first:last].strip():
            yield "for", first + (text[first] == " "), last


def _has_else(text: str, after: int, end: int) -> bool:
    """Tell whether the statement in braces after an ``if`` has an ``else``."""
    body = re.compile(r"\s*\{").match(text, after)
    if body is None:
        return False
    return bool(_ELSE.match(text, _closing(text, body.end() - 1, end) + 1))


def _closing(text: str, opening: int, end: int) -> int:
    """Return where the bracket at ``opening`` is closed; ``end`` if it is not."""
    pair = {"(": ")", "{": "}"}[text[opening]]
    depth = 0
    for place in range(opening, end):
        depth += (text[place] == text[opening]) - (text[place] == pair)
        if depth == 0:
            return place
    return end

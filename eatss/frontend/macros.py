"""The macros of a file that a user may override: guarded by ``#ifndef``, as text.

What a macro is worth is clang's business; this file only finds the names. It reads directives
line by line and keeps the open conditions, since real headers guard several macros at once
(``#if !defined(NI) && !defined(NJ)``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from eatss.frozen import frozen

_SPLICE = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)", re.DOTALL)
_DEFINED = re.compile(r"(!\s*)?\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_WORD = re.compile(r"[A-Za-z_]\w*")


@frozen
class MacroNames:
    """Macros of a program by name.

    ``guarded`` are the object-like macros defined only where they are not yet, each with its
    bodies; ``tested`` are those that decide which code there is (``#if N > 100``), ``conditions``
    all names in conditions, ``#ifdef`` and ``defined`` too.
    """

    guarded: tuple[tuple[str, tuple[str, ...]], ...]
    tested: frozenset[str]
    conditions: frozenset[str] = frozenset()


def macro_names(texts: Iterable[str]) -> MacroNames:
    """Find the macros in the texts of the files of one program."""
    guarded: dict[str, list[str]] = {}
    bodies: dict[str, set[str]] = {}
    tested: set[str] = set()
    asked: set[str] = set()
    for text in texts:
        conditions: list[frozenset[str]] = []
        for word, rest in _directives(text):
            if word in ("if", "elif"):
                tested.update(_WORD.findall(_DEFINED.sub(" ", rest)))
            if word in ("if", "elif", "ifdef", "ifndef"):
                asked.update(_WORD.findall(rest))
            if word in ("if", "ifdef", "ifndef"):
                conditions.append(_absent(word, rest))
            elif word in ("else", "elif") and conditions:
                conditions[-1] = frozenset()
            elif word == "endif" and conditions:
                conditions.pop()
            elif word == "define" and (match := _DEFINE.match(rest)) is not None:
                name, parenthesis, body = match[1], match[2], match[3].strip()
                bodies.setdefault(name, set()).update(_WORD.findall(body))
                if not parenthesis and any(name in absent for absent in conditions):
                    guarded.setdefault(name, []).append(body)
    return MacroNames(
        guarded=tuple((name, tuple(found)) for name, found in guarded.items()),
        tested=_closure(tested, bodies),
        conditions=frozenset(asked - {"defined"}),
    )


def _directives(text: str) -> Iterator[tuple[str, str]]:
    plain = _COMMENT.sub(" ", _SPLICE.sub(" ", text))
    for match in _DIRECTIVE.finditer(plain):
        yield match[1], match[2]


def _absent(word: str, rest: str) -> frozenset[str]:
    """Return the macros that a condition demands to be undefined."""
    if word == "ifndef":
        return frozenset(_WORD.findall(rest)[:1])
    if word == "ifdef" or "||" in rest:
        return frozenset()
    return frozenset(m[2] or m[3] for m in _DEFINED.finditer(rest) if m[1])


def _closure(names: set[str], bodies: dict[str, set[str]]) -> frozenset[str]:
    """Return ``names`` and every macro they expand to."""
    closed: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in closed:
            closed.add(name)
            todo.extend(bodies.get(name, ()))
    return frozenset(closed)

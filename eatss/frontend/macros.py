"""The macros of a file that a user may override: guarded by ``#ifndef``, as text.

What a macro is worth is clang's business; this file only finds the names. It reads directives
line by line and keeps the open conditions, since real headers guard several macros at once
(``#if !defined(NI) && !defined(NJ)``).

Warns of macros given with ``-D`` that change nothing: misspelt, or defined again by the file.

A macro is used where clang records that it is expanded, or tested by ``#if`` or ``#ifdef``, with
the definition of the command line. What is expanded only within other macros is not recorded. So
where there is no record, the text is parsed with what is no C in the macro's place: where clang
then says what it said before, the macro stands nowhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from clang.cindex import TranslationUnitLoadError

from eatss.base.frozen import frozen
from eatss.frontend.clang import Unit
from eatss.frontend.errors import span_of
from eatss.frontend.findings import Findings, SourceText

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


_NO_C = ") @ ("
"""What is no C wherever it stands; the parentheses break what would make it a string."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_UNDEF = re.compile(rb"^[ \t]*#[ \t]*undef[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_MOST_NAMED = 8


def warn_of_unused(
    defines: Sequence[str],
    unit: Unit,
    parsed_with: Callable[[Sequence[str]], Unit],
    source: SourceText,
    findings: Findings,
) -> None:
    """Add a warning for each macro of the command line that changes nothing.

    Args:
        defines: macros as for a compiler: ``NAME``, ``NAME=VALUE``, ``NAME(A)=VALUE``.
        unit: what was parsed with them, macros recorded.
        parsed_with: parses the same text with other macros.
        source: the main file.
        findings: gets the warnings.
    """
    heads = {macro_name(define): define.partition("=")[0] for define in defines}
    used = unit.used_macros
    doubtful = [name for name in heads if name not in used]
    if not doubtful:
        return

    def says_the_same(names: Iterable[str]) -> bool:
        instead = {name: f"{heads[name]}={_NO_C}" for name in names}
        others = [instead.get(macro_name(one), one) for one in defines]
        try:
            return parsed_with(others).messages == unit.messages
        except TranslationUnitLoadError:  # so much was it used
            return False

    if not says_the_same(doubtful):
        doubtful = [name for name in doubtful if says_the_same([name])]
    definitions = unit.macro_definitions
    for name in doubtful:
        again = next((one for one in definitions if one.name == name), None)
        if again is None:
            _warn_of_no_use(name, unit, source, findings)
        else:
            findings.warn(
                "EATSS-F095",
                f"-D {name} changes nothing: '{name}' is defined here all the same",
                span=span_of(again, source, len(again.name)),
                hint=f"write #ifndef {name} before it and #endif after it",
            )


def macro_name(define: str) -> str:
    """Return the name that ``NAME``, ``NAME=VALUE`` or ``NAME(A)=VALUE`` defines."""
    match = _NAME.match(define)
    assert match is not None
    return match[0]


def _warn_of_no_use(name: str, unit: Unit, source: SourceText, findings: Findings) -> None:
    for match in _UNDEF.finditer(source.data):
        if match[1].decode() == name:
            findings.warn(
                "EATSS-F095",
                f"-D {name} changes nothing: '{name}' is undefined here",
                span=source.span(match.start(1), match.end(1)),
                hint="remove the #undef",
            )
            return
    texts = [source.data.decode("utf-8", "replace")]
    texts += [Path(one).read_text("utf-8", "replace") for one in unit.user_files[1:]]
    found = macro_names(texts)
    offered = [one for one, bodies in found.guarded if any(bodies)]
    spelled = {one.lower(): one for one in (*sorted(found.conditions), *offered)}
    close = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.6)
    if name in found.conditions:
        hint = "what asks for it stands where other macros leave it out"
    elif close:
        hint = f"did you mean {spelled[close[0]]}?"
    elif offered:
        hint = f"macros that -D sets here: {', '.join(offered[:_MOST_NAMED])}"
    else:
        hint = "no macro of this file can be set with -D: #ifndef before its #define lets it be"
    findings.warn(
        "EATSS-F095",
        f"-D {name} changes nothing: nothing that is compiled in '{source.file}' uses it",
        hint=hint,
    )

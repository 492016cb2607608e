"""What stands around statements: regions, clang's diagnostics and the macros of a file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend.clang import ClangMessage, CursorKind, Found, Unit
from eatss.frontend.source import Findings, RefusedError, SourceText

# -- regions -----------------------------------------------------------------------------------
# Finds the regions: where the pragmas stand, by clang's own word, and what lies between.


UNKNOWN_PRAGMAS = "-Wunknown-pragmas"
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
_PRAGMA_OPERATOR = re.compile(rb'_Pragma\s*\(\s*L?"\s*(\w*)')
_ARGUMENT = re.compile(rb"\w+\s*\(\s*(scop|endscop)\s*\)")
_AFTER_PRAGMA = re.compile(rb"pragma[ \t]*(?:/\*.*?\*/[ \t]*)*\Z", re.DOTALL)
_SPLICE = re.compile(rb"\\\r?\n")


@frozen
class Pragma:
    """``#pragma scop`` or ``#pragma endscop``."""

    opens: bool
    start: int
    end: int


@frozen
class Region:
    """A pair of pragmas; ``index`` counts from 0."""

    index: int
    opening: Pragma
    closing: Pragma


@frozen
class PlacedRegion:
    """A region with the libclang cursors of its function, block and statements.

    ``following`` is the rest of its block, ``later`` what may run after that, the next round of
    loops around it included.
    """

    region: Region
    function: Any
    block: Any
    statements: tuple[Any, ...]
    following: tuple[Any, ...]
    later: tuple[Any, ...]


def find_pragmas(unit: Unit, source: SourceText, findings: Findings) -> tuple[Pragma, ...]:
    """Return the scop pragmas that are in force, in source order.

    clang reports every unknown pragma it meets, so comments, strings, line splices,
    inactive branches, ``_Pragma`` and macros are all its business.
    """
    found = []
    for message in unit.messages:
        if message.option != UNKNOWN_PRAGMAS or message.file != source.file:
            continue
        word, length = _pragma_word(source.data, message.offset)
        if word is None:
            findings.warn(
                "EATSS-F010",
                "the pragma of a macro that a header defines is not looked into",
                span=source.span(message.offset, message.offset + length),
                hint="define macros for #pragma scop in the file itself",
            )
        if word in (b"scop", b"endscop"):
            found.append(
                Pragma(
                    opens=word == b"scop",
                    start=message.offset,
                    end=message.offset + length,
                )
            )
    starts = [pragma.start for pragma in found]
    for pragma in found:
        if starts.count(pragma.start) > 1:
            findings.add(
                "EATSS-F010",
                "a macro holds more than one pragma of a region",
                span=source.span(pragma.start, pragma.end),
                hint="write #pragma scop and #pragma endscop outside the macro",
            )
    findings.raise_errors()
    return tuple(sorted(found, key=lambda pragma: pragma.start))


def _pragma_word(data: bytes, offset: int) -> tuple[bytes | None, int]:
    """Return the first word of the pragma at an offset, and the length of what stands there.

    The word is ``None`` where a macro stands whose definition is not in the file.
    """
    here = _SPLICE.sub(b"", data[offset : offset + 200])
    match = _WORD.match(here)
    if match is None:
        return b"", 0
    word = match[0]
    if word == b"_Pragma":
        operator = _PRAGMA_OPERATOR.match(here)
        closing = here.find(b")")
        length = closing + 1 if closing >= 0 else match.end()
        return (operator[1] if operator else b""), length
    if word in (b"scop", b"endscop"):
        return word, match.end()
    if _AFTER_PRAGMA.search(_SPLICE.sub(b"", data[max(0, offset - 200) : offset])):
        return word, match.end()
    argument = _ARGUMENT.match(here)
    if argument is not None:
        return argument[1], argument.end()
    return _word_of_macro(data, word, offset), match.end()


def _word_of_macro(data: bytes, name: bytes, offset: int) -> bytes | None:
    """Return the pragma word a macro of the same file expands to, ``None`` if unknown."""
    define = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+" + name + rb"\b(.*)$", re.MULTILINE)
    before = _SPLICE.sub(b"", data[:offset])
    definitions = define.findall(before)
    if not definitions:
        return None
    operator = re.search(_PRAGMA_OPERATOR, definitions[-1])
    return operator[1] if operator else b""


def pair_pragmas(
    pragmas: Iterable[Pragma], source: SourceText, findings: Findings
) -> tuple[Region, ...]:
    """Pair the pragmas; unmatched and nested ones become findings."""
    regions: list[Region] = []
    opening: Pragma | None = None
    alone: list[Pragma] = []
    for pragma in pragmas:
        if pragma.opens is (opening is None):
            if opening is not None:
                regions.append(Region(index=len(regions), opening=opening, closing=pragma))
            opening = pragma if pragma.opens else None
        else:
            alone.append(pragma)
    for pragma in [*alone, *([] if opening is None else [opening])]:
        findings.add(
            "EATSS-F010",
            f"#pragma {'scop' if pragma.opens else 'endscop'} without its counterpart",
            span=source.span(pragma.start, pragma.end),
            hint="each region has one #pragma scop before and one #pragma endscop behind it, and "
            "none inside",
        )
    return tuple(regions)


def place_region(
    region: Region, unit: Unit, source: SourceText, findings: Findings
) -> PlacedRegion | None:
    """Find the statements of a region; a region that cuts a statement is a finding."""
    with suppress(RefusedError):
        return _placed(region, unit, source, findings)
    return None


def _placed(region: Region, unit: Unit, source: SourceText, findings: Findings) -> PlacedRegion:
    start, end = region.opening.start, region.closing.start
    span = source.span(start, region.opening.end)

    def refuse(message: str, hint: str, code: str = "EATSS-F010") -> NoReturn:
        findings.add(code, message, span=span, hint=hint)
        raise RefusedError

    function = next((f for f in unit.functions if _covers(f, start)), None)
    if function is None or not _covers(function, end):
        refuse(
            "region does not lie within one function body",
            "put both pragmas around statements of one block",
        )
    _refuse_includes([at for at in unit.includes if start < at < end], source, findings)
    path = _path(function, start, end)
    inside: list[Any] = []
    following: list[Any] = []
    for child in path[-1].get_children():
        first, last = child.extent.start.offset, child.extent.end.offset
        if not unit.holds(child):
            following += [child] if inside or following else []
        elif first in (start, end):
            refuse(
                "a macro holds the pragma together with statements",
                "give the pragma a line or a macro of its own",
            )
        elif first >= end:
            following.append(child)
        elif first > start and last <= end:
            inside.append(child)
        elif last > start:
            refuse(
                "region begins or ends in the middle of a statement",
                "put both pragmas around whole statements of one block",
            )
    if not inside:
        refuse(
            "region has no statements",
            "put the loops between the pragmas, on lines of their own",
            "EATSS-F010",
        )
    return PlacedRegion(
        region=region,
        function=function,
        block=path[-1],
        statements=tuple(inside),
        following=tuple(following),
        later=tuple(_after(path)),
    )


def _refuse_includes(inside: list[int], source: SourceText, findings: Findings) -> None:
    """Refuse a region that has an ``#include`` between its pragmas."""
    for offset in inside:
        findings.add(
            "EATSS-F010",
            "#include inside the region",
            span=source.span(offset, offset + 1),
            hint="write the statements out between the pragmas",
        )
    if inside:
        raise RefusedError


def _covers(cursor: Any, offset: int) -> bool:
    extent = cursor.extent
    return bool(extent.start.offset <= offset < extent.end.offset)


def _after(path: list[Any]) -> list[Any]:
    """Return what may run after the last of nested statements ends, in this order."""
    at = path[-1].extent.start.offset
    following: list[Any] = []
    for outer, inner in reversed([*pairwise(path)]):
        parts = list(outer.get_children())
        if outer.kind is CursorKind.COMPOUND_STMT:
            following += [c for c in parts if c.extent.start.offset > at and c != inner]
        elif outer.kind is CursorKind.FOR_STMT:
            following += [*(c for c in parts[1:] if c != inner), inner]
        elif outer.kind in (CursorKind.WHILE_STMT, CursorKind.DO_STMT):
            following += [*(c for c in parts if c != inner), inner]
    return following


_CONTAINERS = frozenset(
    {
        CursorKind.COMPOUND_STMT, CursorKind.FOR_STMT, CursorKind.IF_STMT, CursorKind.WHILE_STMT,
        CursorKind.DO_STMT, CursorKind.SWITCH_STMT, CursorKind.CASE_STMT,
        CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT,
    }
)  # fmt: skip


def _path(function: Any, start: int, end: int) -> list[Any]:
    """Return a function and the statements in it that hold both pragmas, outermost first."""
    path: list[Any] = []
    inner = [function]
    while inner:
        path.append(inner[0])
        inner = [
            child
            for child in path[-1].get_children()
            if child.kind in _CONTAINERS
            and child.extent.start.offset < start
            and end < child.extent.end.offset
        ]
    return path


# -- errors ------------------------------------------------------------------------------------
# Decides which of clang's errors matter.


_DIRECTIVES = "Lexical or Preprocessor Issue"
_OWN_WORDS = "User-Defined Issue"


def check_cycles(unit: Unit, source: SourceText, findings: Findings) -> None:
    """Record that headers include one another without end, or are nested beyond clang's limit."""
    for message in [m for m in unit.messages if m.message == "#include nested too deeply"][:1]:
        hint = "write #pragma once into the header, or guard it with #ifndef"
        findings.add("EATSS-F009", message.message, span=span_of(message, source), hint=hint)


def check_messages(
    unit: Unit, source: SourceText, regions: tuple[Region, ...], findings: Findings
) -> None:
    """Record the errors of clang that make a region unreliable."""
    errors = [m for m in unit.messages if m.is_error and m.option != UNKNOWN_PRAGMAS]
    missing = [m for m in errors if m.message.endswith("file not found")]
    for message in errors:
        if message in missing:
            _warn_of_header(message, source, findings)
        elif _matters(message, source, regions, missing):
            _record(message, source, missing, findings)


def _matters(
    message: ClangMessage,
    source: SourceText,
    regions: tuple[Region, ...],
    missing: list[ClangMessage],
) -> bool:
    """Return whether an error is not one that only a header we lack may have caused."""
    in_region = message.file == source.file and any(
        r.opening.start <= message.offset <= r.closing.end for r in regions
    )
    if message.category == _DIRECTIVES:
        unbalanced = "#" in message.message or message.message.startswith("unterminated")
        return in_region or unbalanced or not missing
    return in_region or message.category in ("Parse Issue", _OWN_WORDS)


def _record(
    message: ClangMessage, source: SourceText, missing: list[ClangMessage], findings: Findings
) -> None:
    undeclared = "undeclared" in message.message or "unknown type" in message.message
    hint = None
    if missing:  # a macro that is missing shows as a syntax error
        names = ", ".join(m.message.split("'")[1] for m in missing)
        hint = f"headers that were not found: {names}; pass their folder with -I"
    elif undeclared:
        hint = "declare it, or pass -I or -D"
    text = message.message
    if message.category == _OWN_WORDS:
        text = f"#error {text}"
    elif message.file == source.file and source.data[message.offset : message.offset + 1] == b"#":
        text = "'#' within a line, where no directive begins"
        hint = 'give the directive a line of its own, or write _Pragma("scop")'
    findings.add("EATSS-F007", text, span=span_of(message, source), hint=hint)


def span_of(found: Found, source: SourceText, length: int = 1) -> SourceSpan:
    """Return where something stands that clang found, in the main file or in a header."""
    if found.file == source.file:
        return source.span(found.offset, found.offset + length)
    return SourceSpan.in_line(found.file or source.file, found.line, found.column, length)


def _warn_of_header(message: ClangMessage, source: SourceText, findings: Findings) -> None:
    """Warn of a header of the user's own; system headers may be missing."""
    if message.file != source.file or source.data[message.offset : message.offset + 1] != b'"':
        return
    name = message.message.split("'")[1]
    span = source.span(message.offset, message.offset + len(name) + 2)
    findings.warn("EATSS-F091", message.message, span=span, hint="pass its folder with -I")


# -- macros ------------------------------------------------------------------------------------
# The macros of a file that a user may override: guarded by ``#ifndef``, as text.
#
# What a macro is worth is clang's business; this file only finds the names. It reads directives
# line by line and keeps the open conditions, since real headers guard several macros at once
# (``#if !defined(NI) && !defined(NJ)``).
#
# A macro given with ``-D`` is used where clang records that it is expanded, or tested by ``#if`` or
# ``#ifdef``, with the definition of the command line. What is expanded within other macros only is
# not recorded, so what their bodies name counts as used.


_SPLICED = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)", re.DOTALL)
_DEFINED = re.compile(r"(!\s*)?\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_MACRO_WORD = re.compile(r"[A-Za-z_]\w*")


@frozen
class MacroNames:
    """Macros of a program by name.

    ``guarded`` are the object-like macros defined only where they are not yet, each with its
    bodies; ``tested`` are those that decide which code there is (``#if N > 100``), ``conditions``
    all names in conditions, ``#ifdef`` and ``defined`` too, ``named`` those in bodies of macros.
    """

    guarded: tuple[tuple[str, tuple[str, ...]], ...]
    tested: frozenset[str]
    conditions: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()


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
                tested.update(_MACRO_WORD.findall(_DEFINED.sub(" ", rest)))
            if word in ("if", "elif", "ifdef", "ifndef"):
                asked.update(_MACRO_WORD.findall(rest))
            if word in ("if", "ifdef", "ifndef"):
                conditions.append(_absent(word, rest))
            elif word in ("else", "elif") and conditions:
                conditions[-1] = frozenset()
            elif word == "endif" and conditions:
                conditions.pop()
            elif word == "define" and (match := _DEFINE.match(rest)) is not None:
                name, parenthesis, body = match[1], match[2], match[3].strip()
                bodies.setdefault(name, set()).update(_MACRO_WORD.findall(body))
                if not parenthesis and any(name in absent for absent in conditions):
                    guarded.setdefault(name, []).append(body)
    return MacroNames(
        guarded=tuple((name, tuple(found)) for name, found in guarded.items()),
        tested=_closure(tested, bodies),
        conditions=frozenset(asked - {"defined"}),
        named=frozenset().union(*bodies.values()),
    )


def _directives(text: str) -> Iterator[tuple[str, str]]:
    plain = _COMMENT.sub(" ", _SPLICED.sub(" ", text))
    for match in _DIRECTIVE.finditer(plain):
        yield match[1], match[2]


def _absent(word: str, rest: str) -> frozenset[str]:
    """Return the macros that a condition demands to be undefined."""
    if word == "ifndef":
        return frozenset(_MACRO_WORD.findall(rest)[:1])
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


def macro_name(define: str) -> str:
    """Return the name that ``NAME``, ``NAME=VALUE`` or ``NAME(A)=VALUE`` defines."""
    match = _MACRO_WORD.match(define)
    assert match is not None
    return match[0]


def warn_of_unused(
    defines: Sequence[str], unit: Unit, source: SourceText, findings: Findings
) -> None:
    """Add a warning for each macro of the command line that surely changes nothing.

    Args:
        defines: macros as for a compiler: ``NAME``, ``NAME=VALUE``, ``NAME(A)=VALUE``.
        unit: what was parsed with them, macros recorded.
        source: the main file.
        findings: gets the warnings.
    """
    unrecorded = {macro_name(define) for define in defines} - unit.used_macros
    if not unrecorded:
        return
    texts = [source.data.decode("utf-8", "replace")]
    texts += [Path(one).read_text("utf-8", "replace") for one in unit.user_files[1:]]
    if any("##" in text for text in texts):
        return
    found = macro_names(texts)
    given = set(_MACRO_WORD.findall(" ".join(one.partition("=")[2] for one in defines)))
    guarded = [name for name, bodies in found.guarded if any(bodies)]
    spelled = {one.lower(): one for one in (*sorted(found.conditions), *guarded)}
    for name in sorted(unrecorded - found.named - given):
        close = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.6)
        hint = f"write #ifndef {name} before its #define and #endif after it"
        if close and spelled[close[0]] != name:
            hint = f"did you mean {spelled[close[0]]}?"
        findings.warn(
            "EATSS-F095",
            f"-D {name} changes nothing: nothing that is compiled in '{source.file}' uses it as it "
            "is given",
            hint=hint,
        )

"""What stands around statements: regions, clang's diagnostics and the macros of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import frozen
from eatss.frontend import clang
from eatss.frontend.clang import ClangMessage, Unit
from eatss.frontend.source import Findings, RefusedError, SourceText
from eatss.frontend.tree import Node, read_tree

# -- regions -----------------------------------------------------------------------------------
# Finds the regions: where the pragmas stand, by clang's own word, and what lies between.


UNKNOWN_PRAGMAS, REDEFINED = "-Wunknown-pragmas", "-Wmacro-redefined"
_PRAGMA = re.compile(rb'(?:_Pragma\s*\(\s*L?")?\s*((?:end)?scop)\b(?:\s*"\s*\))?')


@frozen
class Region:
    """A pair of pragmas, each from one byte to another; ``index`` counts from 0."""

    index: int
    opening: tuple[int, int]
    closing: tuple[int, int]


@frozen
class PlacedRegion:
    """A region with the cursor of its function, and its statements.

    ``path`` are the statements around it, from the body of the function to its block.
    """

    region: Region
    function: Any
    path: list[Node]
    statements: list[Node]

    @property
    def before(self) -> list[Node]:
        """The statements before the region in its block."""
        block = self.path[-1].children
        return block[: block.index(self.statements[0])]

    @property
    def following(self) -> list[Node]:
        """The statements after it in its block."""
        block = self.path[-1].children
        return block[block.index(self.statements[-1]) + 1 :]

    @property
    def later(self) -> list[Node]:
        """These, and what may run after them, the next round of loops around it included."""
        found = self.following
        for outer, inner in reversed([*pairwise(self.path)]):
            at = outer.children.index(inner)
            if outer.kind == "compound":
                found += outer.children[at + 1 :]
            elif outer.kind in ("for", "while", "do"):  # but not the start of a for
                parts = [*outer.children[:at], *outer.children[at + 1 :]]
                found += [*parts[outer.kind == "for" :], inner]
        return found


def find_regions(unit: Unit, source: SourceText, findings: Findings) -> tuple[Region, ...]:
    """Pair the scop pragmas that are in force; unmatched and nested ones become findings.

    clang reports every unknown pragma it meets, so comments, strings, line splices, inactive
    branches and ``_Pragma`` are all its business.
    """
    places = sorted(
        message.offset
        for message in unit.messages
        if message.option == UNKNOWN_PRAGMAS and message.file == source.file
    )
    regions: list[Region] = []
    opening: re.Match[bytes] | None = None
    alone: list[re.Match[bytes]] = []
    for match in filter(None, (_PRAGMA.match(source.data, at) for at in places)):
        opens = match[1] == b"scop"
        if opens is not (opening is None):
            alone.append(match)
            continue
        if opening is not None:
            both = opening.span(), match.span()
            regions.append(Region(index=len(regions), opening=both[0], closing=both[1]))
        opening = match if opens else None
    for match in [*alone, *([] if opening is None else [opening])]:
        findings.add(
            "EATSS-F010",
            f"#pragma {match[1].decode()} without its counterpart",
            span=source.span(*match.span()),
            hint="each region has one #pragma scop before and one #pragma endscop behind it, and "
            "none inside",
        )
    return tuple(regions)


def place_region(
    region: Region, unit: Unit, source: SourceText, findings: Findings
) -> PlacedRegion:
    """Find the statements of a region.

    Raises:
        RefusedError: It cuts a statement, or there are none; the finding is recorded.
    """
    start, end = region.opening[0], region.closing[0]

    def refuse(message: str, hint: str) -> NoReturn:
        span = source.span(*region.opening)
        findings.add("EATSS-F010", message, span=span, hint=hint)
        raise RefusedError

    function = next((f for f in unit.functions if _covers(f, start)), None)
    if function is None or not _covers(function, end):
        refuse(
            "region does not lie within one function body",
            "put both pragmas around statements of one block",
        )
    if any(start < at < end for at in unit.includes):
        refuse("#include inside the region", "write the statements out between the pragmas")
    path = _path(function, start, end)
    inside: list[Node] = []
    for child in path[-1].children if path else ():
        first, last = child.offsets
        if start < first and last <= end and unit.holds(child.cursor):
            inside.append(child)
        elif first < end and start < last and unit.holds(child.cursor):
            refuse(
                "region begins or ends in the middle of a statement",
                "put both pragmas around whole statements of one block",
            )
    if not inside:
        refuse(
            "region has no statements", "put the loops between the pragmas, on lines of their own"
        )
    return PlacedRegion(region=region, function=function, path=path, statements=inside)


def _covers(cursor: Any, offset: int) -> bool:
    extent = cursor.extent
    return bool(extent.start.offset <= offset < extent.end.offset)


def _path(function: Any, start: int, end: int) -> list[Node]:
    """Return the statements of a function that hold both pragmas, outermost first."""
    path: list[Node] = []
    inner = [read_tree(clang.children(function)[-1])]
    while inner:
        path.append(inner[0])
        inner = [
            child
            for child in path[-1].children
            if child.cursor.kind.is_statement()
            and child.offsets[0] < start
            and end < child.offsets[1]
        ]
    return path


# -- errors ------------------------------------------------------------------------------------
# Decides which of clang's errors matter.


_ALWAYS = ("Parse Issue", "User-Defined Issue")


def check_messages(
    unit: Unit, source: SourceText, regions: tuple[Region, ...], findings: Findings
) -> None:
    """Record the errors of clang that make a region unreliable, and headers of the user's own.

    What only a header that is missing may have caused does not matter outside regions.
    """
    errors = [m for m in unit.messages if m.is_error and m.option != UNKNOWN_PRAGMAS]
    missing = [m for m in errors if m.message.endswith("file not found")]
    names = [m.message.split("'")[1] for m in missing]
    hint = "declare it, or pass -I or -D"
    if missing:  # a macro that is missing shows as a syntax error
        hint = f"headers that were not found: {', '.join(names)}; pass their folder with -I"
    for message, name in zip(missing, names, strict=True):
        is_here = message.file == source.file
        if is_here and source.data[message.offset : message.offset + 1] == b'"':
            span = span_of(message, source, len(name) + 2)
            findings.warn("EATSS-F091", message.message, span=span, hint="pass its folder with -I")
    for message in errors:
        in_region = message.file == source.file and any(
            r.opening[0] <= message.offset <= r.closing[1] for r in regions
        )
        is_directive = message.category.startswith("Lexical") and not missing
        if in_region or is_directive or (message.category in _ALWAYS and message not in missing):
            findings.add("EATSS-F007", message.message, span=span_of(message, source), hint=hint)


def span_of(found: ClangMessage, source: SourceText, length: int = 1) -> SourceSpan | None:
    """Return where something stands that clang found: in the main file, a header, or no file."""
    if found.file is None:
        return None
    if found.file == source.file:
        return source.span(found.offset, found.offset + length)
    return SourceSpan.in_line(found.file, found.line, found.column, length)


# -- macros ------------------------------------------------------------------------------------
# The macros of a file that a user may override: guarded by ``#ifndef``, as text.
#
# What a macro is worth is clang's business; this file only finds the names. It reads directives
# line by line and keeps the open conditions, since real headers guard several macros at once
# (``#if !defined(NI) && !defined(NJ)``).


_SPLICED = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)", re.DOTALL)
_DEFINED = re.compile(r"(!\s*)?\bdefined[\s(]*(\w+)")
_WORD = re.compile(r"[A-Za-z_]\w*")


@frozen
class MacroNames:
    """Macros of a program by name.

    ``guarded`` are the object-like macros defined only where they are not yet, each with its
    bodies; ``tested`` are those that decide which code there is (``#if N > 100``).
    """

    guarded: dict[str, list[str]]
    tested: set[str]


def macro_names(texts: Iterable[str]) -> MacroNames:
    """Find the macros in the texts of the files of one program."""
    guarded: dict[str, list[str]] = {}
    bodies: dict[str, set[str]] = {}
    tested: set[str] = set()
    for text in texts:
        absent: list[set[str]] = []  # what each open condition demands to be undefined
        for word, rest in _directives(text):
            if word in ("if", "elif"):
                tested.update(_WORD.findall(_DEFINED.sub(" ", rest)))
            if word in ("if", "ifdef", "ifndef"):
                wanted = f"!defined {rest}" if word == "ifndef" else "" if "||" in rest else rest
                absent.append({name for sign, name in _DEFINED.findall(wanted) if sign})
            elif word in ("else", "elif"):
                absent[-1:] = [set()]
            elif word == "endif":
                del absent[-1:]
            elif word == "define" and (match := _DEFINE.match(rest)) is not None:
                name, parenthesis, body = match[1], match[2], match[3].strip()
                bodies.setdefault(name, set()).update(_WORD.findall(body))
                if not parenthesis and any(name in names for names in absent):
                    guarded.setdefault(name, []).append(body)
    while more := {word for name in tested for word in bodies.get(name, ())} - tested:
        tested |= more
    return MacroNames(guarded=guarded, tested=tested)


def _directives(text: str) -> list[tuple[str, str]]:
    return _DIRECTIVE.findall(_COMMENT.sub(" ", _SPLICED.sub(" ", text)))


def warn_of_unused(
    defines: Sequence[str], unit: Unit, source: SourceText, findings: Findings
) -> None:
    """Warn of each macro given with ``-D`` that no text names, or that one defines anew.

    Args:
        defines: macros as for a compiler: ``NAME``, ``NAME=VALUE``, ``NAME(A)=VALUE``.
        unit: what was parsed with them.
        source: the main file.
        findings: gets the warnings.
    """
    texts = [source.data.decode("utf-8", "replace"), *(one.partition("=")[2] for one in defines)]
    texts += [Path(one).read_text("utf-8", "replace") for one in unit.user_files[1:]]
    anew = {m.message.split("'")[1]: m for m in unit.messages if m.option == REDEFINED}
    for name in sorted({_WORD.findall(one)[0] for one in defines}):
        used = re.compile(rf"\b{name}\b|##")
        if name in anew:
            span = span_of(anew[name], source, len(name))
            message = f"-D {name} changes nothing: it is defined anew"
            hint = f"write #ifndef {name} before its #define and #endif after it"
            findings.warn("EATSS-F095", message, span=span, hint=hint)
        elif not any(map(used.search, texts)):
            findings.warn("EATSS-F095", f"-D {name} changes nothing: nothing uses it")

"""Finds the regions: where the pragmas stand, by clang's own word, and what lies between."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn

from eatss.base.frozen import frozen
from eatss.frontend.clang import CursorKind, Unit
from eatss.frontend.findings import Findings, RefusedError, SourceText

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
                "EATSS-F011",
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
                "EATSS-F045",
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
    for pragma in pragmas:
        span = source.span(pragma.start, pragma.end)
        if pragma.opens:
            if opening is not None:
                where = source.line_and_column(opening.start)[0]
                findings.add(
                    "EATSS-F011",
                    f"#pragma scop inside the region that begins on line {where}",
                    span=span,
                    hint="end the region before with #pragma endscop",
                )
                continue
            opening = pragma
        elif opening is None:
            findings.add(
                "EATSS-F011",
                "#pragma endscop without #pragma scop",
                span=span,
                hint="write #pragma scop before the first statement of the region",
            )
        else:
            regions.append(Region(index=len(regions), opening=opening, closing=pragma))
            opening = None
    if opening is not None:
        findings.add(
            "EATSS-F011",
            "#pragma scop without #pragma endscop",
            span=source.span(opening.start, opening.end),
            hint="write #pragma endscop after the last statement of the region",
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

    def refuse(message: str, hint: str, code: str = "EATSS-F045") -> NoReturn:
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
            "EATSS-F046",
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
            "EATSS-F045",
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

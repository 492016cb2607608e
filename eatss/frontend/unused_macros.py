"""Warns of macros given with ``-D`` that change nothing: misspelt, or defined again by the file.

A macro is used where clang records that it is expanded, or tested by ``#if`` or ``#ifdef``, with
the definition of the command line. What is expanded only within other macros is not recorded. So
where there is no record, the text is parsed with what is no C in the macro's place: where clang
then says what it said before, the macro stands nowhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from clang.cindex import TranslationUnitLoadError

from eatss.diagnostics import SourceSpan
from eatss.frontend.clang import MacroDefinition, Unit
from eatss.frontend.codes import Code
from eatss.frontend.findings import Findings
from eatss.frontend.macros import macro_names
from eatss.frontend.source import SourceText

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
                Code.UNUSED_MACRO,
                f"-D {name} changes nothing: '{name}' is defined here all the same",
                span=_span(again, source),
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
                Code.UNUSED_MACRO,
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
        Code.UNUSED_MACRO,
        f"-D {name} changes nothing: nothing that is compiled in '{source.file}' uses it",
        hint=hint,
    )


def _span(definition: MacroDefinition, source: SourceText) -> SourceSpan:
    if definition.file == source.file:
        return source.span(definition.offset, definition.offset + len(definition.name))
    return SourceSpan(
        file=definition.file,
        line=definition.line,
        column=definition.column,
        end_line=definition.line,
        end_column=definition.column + len(definition.name),
    )
